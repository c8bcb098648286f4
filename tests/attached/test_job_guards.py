"""No load that a Job sends goes on, or counts, without a guard that is heard."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from load_by_jobs import AS_IT_IS, driven, job_campaign, nothing_is_left, standing
from running_system import RunningSystem
from stand_in_cluster import Pods, StandIn
from stand_in_jobs import StandInJobs

from workbench.domain.attaching import LoadJob
from workbench.domain.errors import (
    LabStopped,
)
from workbench.domain.parameters import OperatingPoint, Sla
from workbench.labs.cluster import job_load
from workbench.labs.cluster.job_guard import JobGuard, answer_s


async def test_no_load_begins_before_its_guard_is_heard(
    system: RunningSystem, clustered: StandIn, pods: Pods, tmp_path: Path
) -> None:
    lab = await standing(pods(job_campaign(tmp_path, system.port, guard="p95<=150ms")))
    (clustered.folder / "bin").mkdir()
    curl = clustered.folder / "bin" / "curl"
    curl.write_text("#!/bin/sh\necho 'curl: option --rate: is unknown' >&2\nexit 2\n")
    curl.chmod(0o755)
    programs, clustered.jobs.programs = clustered.jobs.programs, f"{curl.parent}:"
    clustered.jobs.programs += programs
    said = r"guard ended with exit code 2 \(its last line: curl: option --rate: is"
    with pytest.raises(LabStopped, match=said):
        await driven(lab)
    clustered.jobs.programs = programs
    await lab.deploy(lab._campaign.targets[0].target, AS_IT_IS)
    system.delay.write_text("0.3")
    with pytest.raises(LabStopped, match=r"p95<=150ms is broken before any load: of the last"):
        await driven(lab)
    assert "load" not in clustered.jobs.began_s
    assert await nothing_is_left(clustered)


async def test_a_system_that_hangs_and_a_server_that_falters_do_not_keep_the_guard_from_it(
    system: RunningSystem, clustered: StandIn, pods: Pods, tmp_path: Path
) -> None:
    campaign = job_campaign(tmp_path, system.port, guard="p95<=150ms")
    campaign.write_text(campaign.read_text().replace("request_timeout: 2s", "request_timeout: 20s"))
    lab = await standing(pods(campaign))
    driving = asyncio.create_task(driven(lab, 60.0))
    for _ in range(1000):
        if "load" not in clustered.jobs.began_s:
            await asyncio.sleep(0.02)
    clustered.refuses["list"] = [503] * 8
    system.delay.write_text("30")
    hung_s = time.monotonic()
    with pytest.raises(LabStopped, match=r"guard p95<=150ms broke: of the last .* failed or took"):
        await driving
    assert time.monotonic() - hung_s < 5
    assert await nothing_is_left(clustered)


class TornLogs:
    """A stand-in for an API server whose first answer is cut off amid a line."""

    def __init__(self) -> None:
        self.lines = [b"2026-11-27T10:00:0%d.5Z 200 0.0%d1\n" % (n, n) for n in range(1, 4)]
        self.asked = 0

    async def log_lines(self, *arguments: object, **options: object) -> AsyncIterator[bytes]:
        self.asked += 1
        assert options == {"timestamps": True}
        for line in self.lines[:2] if self.asked == 1 else self.lines:
            yield line[:-3] if self.asked == 1 and line == self.lines[1] else line
        await asyncio.sleep(0.0 if self.asked == 1 else 60)


async def test_a_line_that_is_torn_is_heard_whole_and_one_that_comes_late_is_old() -> None:
    job = LoadJob("registry.example/load:1", "load")
    run: Any = SimpleNamespace(api=TornLogs(), job=job)
    guard = JobGuard(run, "pod", Sla("p95_ms", 150.0), "web", 1.0)
    following = asyncio.create_task(guard._follow())
    async with asyncio.timeout(5):
        await guard.alive()
    assert [asked.ms for _, asked in guard._seen] == [11.0, 21.0, 31.0]
    # They came all at once: what was written a second before the last is a second old.
    guard.load_began(time.monotonic() - 0.9)
    assert [asked.ms for _, asked in guard._seen] == [31.0]
    guard._hear("2026-11-27T10:00:00.5Z 200 0.041")
    assert time.monotonic() - 3.5 < guard.heard_s < time.monotonic() - 2.9
    following.cancel()


def muted(jobs: StandInJobs) -> None:
    jobs.mute = True


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (muted, r"its guard told nothing for 1\.5 s \(its last line: 200 "),
        (StandInJobs.guard_dies, r"its guard ended with exit code 137 \(its last line: 200 "),
    ],
)
async def test_a_guard_that_is_lost_meanwhile_leaves_no_measurement(
    system: RunningSystem,
    clustered: StandIn,
    pods: Pods,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[StandInJobs], None],
    said: str,
) -> None:
    monkeypatch.setattr("workbench.labs.cluster.job_guard.SILENT_S", 0.5)
    monkeypatch.setattr(job_load, "EVERY_S", 0.2)
    monkeypatch.setattr(job_load, "LONGER_S", 0.1)
    lab = await standing(pods(job_campaign(tmp_path, system.port, guard="p95<=150ms")))
    with pytest.raises(LabStopped, match=said):
        await lab.drive(
            OperatingPoint("web", AS_IT_IS, 2),
            1.0,
            lambda usage: clustered._loop.call_soon_threadsafe(happens, clustered.jobs) and None,
        )
    assert await nothing_is_left(clustered)


@pytest.mark.parametrize(
    ("sla", "timeout_s", "longest_s"),
    [
        (Sla("p95_ms", 150.0), 20.0, 1.0),
        (Sla("p95_ms", 4000.0), 20.0, 8.0),
        (Sla("p95_ms", 4000.0), 2.0, 2.0),
        (Sla("error_pct", 1.0), 20.0, 3.0),
    ],
)
def test_a_system_that_hangs_is_seen_long_before_its_requests_time_out(
    sla: Sla, timeout_s: float, longest_s: float
) -> None:
    assert answer_s(sla, timeout_s) == longest_s
