"""72 virtual hours of measuring with 20 viewers: nobody misses an event, memory stays flat.

    pytest --accept acceptance/test_long_runs.py --minutes 5 --results reliability.json

One engine, one session after another on the simulated lab, whose seconds are lab time. A viewer is
what a screen is to the engine: a connection that follows every session and folds what it hears.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import scipy.stats
from driving import Workbench
from engine_watching import Watched, stored_samples
from tally import MakeTally
from yard import a_yard

from workbench.domain.messages import RunCampaign
from workbench.engine.sessions.library import KEPT_OPEN
from workbench.link.socket import SocketClient
from workbench.paths import Workspace

CAMPAIGN = """\
kind: campaign
summary: minutes of lab time per sample
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {vnf: tinyproxy, name: vcpu, values: [25%, 50%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [2/s, 20/s], scale: log}
load: {kind: open, connections: 64}
kpi: p95
kpi_max: 1000 ms
loss_goal: 0.5%
sla: p95<=50ms @ rate=10/s, filesize=10kB
sampling: {method: uniform, max_samples: 6, repetitions: 1}
windows: {warmup: 10 s, window: 180 s, timeout: 400 s}
"""
VIEWERS, FEW_VIEWERS = 20, 5
"""In `make accept`, and in the gate."""
LONGEST_S = 900.0
"""After which a session hangs, whose minutes of windows this host computes beside others' work."""
HOURS = 72
WARM_SHARE = 0.25
"""Of the run, after which memory is looked at, and not before as many sessions have been as stay
open: what is loaded and kept once is no growth."""
MOST_MB = 300.0
"""Of an engine; see the 500 clients of tests/engine."""
MOST_GROWTH_MB = 30.0
"""In 72 hours, by the upper end of the slope's interval."""


@pytest.mark.slow
async def test_memory_stays_flat_over_days_with_viewers(
    workbench: Workbench, tally: MakeTally, full_length: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(workbench.runtime))
    workbench.variables["DOCKER_HOST"] = f"unix://{workbench.runtime}/none"
    part = f"virtual hours with {VIEWERS} viewers"
    watching = VIEWERS if full_length else FEW_VIEWERS
    counts = tally("long runs", {part: HOURS}, few=1)
    campaign = workbench.root / "long.yaml"
    campaign.write_text(CAMPAIGN, encoding="utf-8")
    hours, number = 0.0, 0
    memory: list[tuple[float, float]] = []
    async with a_yard(workbench) as yard:
        client = await yard.engine_up()
        assert yard.engine is not None
        viewers = [await viewer(yard.workspace, n) for n in range(watching)]
        for hour in counts.numbers(part):
            while hours < hour - counts.before[part] + 1:
                session, number = f"long-{number}", number + 1
                run = RunCampaign(str(campaign), session=session, lab="sim", seed=number)
                await client.ask(run)
                seen = await asyncio.gather(*(follow(each, session) for each in viewers))
                stored = await stored_samples(client, session)
                taken = sorted(sample.id for sample in stored)
                assert all(ids == taken for ids in seen), "a viewer missed some"
                hours += sum(sample.lab_s for sample in stored) / 3600
                await yard.idle()
                memory.append((hours, resident_mb(yard.engine.pid)))
        for each in viewers:
            await each.close()
    assert max(mb for _, mb in memory) < MOST_MB
    late = [(at, mb) for at, mb in memory[KEPT_OPEN + 2 :] if at >= WARM_SHARE * hours]
    if full_length:
        hour, mb = zip(*late, strict=True)
        slope, _, low, high = scipy.stats.theilslopes(mb, hour)
        counts.figures |= {
            "hours of this run": round(hours, 1),
            "sessions of this run": number,
            "MB at first, at last, most": [
                round(mb, 1) for mb in (memory[0][1], memory[-1][1], max(mb for _, mb in memory))
            ],
            "MB per hour, 95 %": [round(float(x), 3) for x in (slope, low, high)],
        }
        assert high * HOURS < MOST_GROWTH_MB, counts.figures
    counts.keep()


async def viewer(workspace: Workspace, number: int) -> SocketClient:
    return await SocketClient.connect(workspace.socket, f"viewer-{number}", "observer")


async def follow(client: SocketClient, session: str) -> list[str]:
    """Ids of the samples that it has seen by the end of the run."""
    async with asyncio.timeout(LONGEST_S), client.follow(session) as feed:
        watched = Watched(feed)
        if feed.view.state in ("planned", "running"):
            assert (await watched.finish()).outcome == "done"
        return sorted(s.id for each in feed.view.configurations for s in each.samples)


def resident_mb(pid: int) -> float:
    (line,) = (
        line
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        if line.startswith("VmRSS")
    )
    return int(line.split()[1]) * 1024 / 1e6
