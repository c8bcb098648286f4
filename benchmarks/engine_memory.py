"""Memory of the engine and its worker over a simulated week: it must not grow.

    python benchmarks/engine_memory.py [--days 7] [--allocate-s 180]

Campaigns follow each other in one engine, on the simulated lab's own clock; a change of allocation
takes minutes there, so that a week holds some thousands of samples and passes in minutes. After
each campaign both processes are read. The slope is that of a line through the last two thirds.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.domain.events import Event, RunFinished
from workbench.domain.messages import RunCampaign
from workbench.engine.core import Engine
from workbench.engine.process import serving
from workbench.link.local import LocalClient
from workbench.paths import Workspace

DAY_S = 86_400.0
TARGET_MB = 1.0
"""Per simulated day; a week's growth is then under a tenth of what the engine starts with."""
PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1e6
CAMPAIGN = """
kind: campaign
summary: two configurations under light load
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {vnf: tinyproxy, name: vcpu, values: [12.5%, 25%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [50/s, 400/s], scale: log}
load: {kind: open, connections: 64}
kpi: p95
kpi_max: 1000 ms
loss_goal: 0.5%
sampling: {method: uniform, max_samples: 8, repetitions: 2}
"""


@dataclass(frozen=True)
class Reading:
    """Resident memory after so much lab time."""

    days: float
    samples: int
    engine_mb: float
    worker_mb: float


async def readings(days: float, allocate_s: float, folder: Path) -> list[Reading]:
    """Run campaigns until so many days have passed on the lab's clock."""
    descriptor = folder / "light.yaml"
    descriptor.write_text(CAMPAIGN, encoding="utf-8")
    found: list[Reading] = []
    lab_s, samples = 0.0, 0
    async with serving(Workspace(folder)) as engine:
        client = LocalClient(engine, "benchmark")
        while lab_s < days * DAY_S:
            name = f"run-{len(found)}"
            lab = f"sim:allocate_s={allocate_s:g}"
            await client.ask(RunCampaign(str(descriptor), session=name, lab=lab, seed=len(found)))
            async with client.follow(name) as feed:
                async for change in feed.changes:
                    if isinstance(change, Event) and isinstance(change.fact, RunFinished):
                        lab_s += change.fact.measured_s
                        samples += change.fact.samples
                        break
            found.append(_read(engine, lab_s / DAY_S, samples))
            engine.library.file_of(name).unlink(missing_ok=True)
    return found


def slopes_mb(found: list[Reading]) -> tuple[float, float]:
    """Growth of engine and worker per lab day, after a third of the time for warming up."""
    last = [r for r in found if r.days >= found[-1].days / 3]
    days = [r.days for r in last]
    engine = np.polyfit(days, [r.engine_mb for r in last], 1)[0]
    worker = np.polyfit(days, [r.worker_mb for r in last], 1)[0]
    return float(engine), float(worker)


def _read(engine: Engine, days: float, samples: int) -> Reading:
    worker = engine.worker_pid()
    return Reading(days, samples, _resident_mb(os.getpid()), _resident_mb(worker) if worker else 0)


def _resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=float, default=7.0)
    parser.add_argument("--allocate-s", type=float, default=180.0)
    parser.add_argument("--figure", action="store_true", help="the worse slope alone, MB per day")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wb-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        found = asyncio.run(readings(chosen.days, chosen.allocate_s, Path(folder)))
    engine, worker = slopes_mb(found)
    if chosen.figure:
        print(max(engine, worker))
        return
    for reading in found:
        print(
            f"{reading.days:6.2f} days {reading.samples:6d} samples "
            f"engine {reading.engine_mb:6.1f} MB  worker {reading.worker_mb:6.1f} MB"
        )
    print(
        f"growth per simulated day: engine {engine:+.2f} MB, worker {worker:+.2f} MB   "
        f"target < {TARGET_MB:g} MB"
    )


if __name__ == "__main__":
    main()
