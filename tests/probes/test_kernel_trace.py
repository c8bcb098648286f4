"""Tracing the threads of a function by the kernel: what it says, what it lacks, how it ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tracefs_mounting import mounted

from workbench.domain.observations import TRACE
from workbench.probes import kernel_trace
from workbench.probes.cgroup import CgroupFolders
from workbench.probes.kernel_trace import TraceReader
from workbench.probes.process import read_threads

WORKING = (
    "import select, time\n"
    "while True:\n"
    "    select.poll().poll(4)\n"
    "    until = time.monotonic() + 0.004\n"
    "    while time.monotonic() < until: pass"
)


@pytest.fixture(scope="module")
def tracefs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with mounted(tmp_path_factory.mktemp("tracefs")) as place:
        yield place


@pytest.fixture
def working() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", WORKING]) as process:
        time.sleep(0.2)
        yield process.pid
        process.kill()


def group(folder: Path, *threads: int) -> CgroupFolders:
    (folder / "cgroup.threads").write_text("".join(f"{one}\n" for one in threads))
    return CgroupFolders("v2", folder, folder, folder, folder)


def left_in(place: Path) -> list[str]:
    return [one.name for one in (place / "instances").glob(f"workbench-{os.getpid()}-*")]


async def traced(
    folders: CgroupFolders, place: Path, monkeypatch: pytest.MonkeyPatch, seconds: float = 0.5
) -> TraceReader:
    monkeypatch.setattr(kernel_trace, "TRACED_S", seconds)
    reader = TraceReader(folders, 0.05, places=(place,))
    await reader.begin()
    await asyncio.sleep(seconds + 0.4)
    await reader.end()
    return reader


async def test_what_a_thread_did_is_told_apart(
    tracefs: Path, working: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await traced(group(tmp_path, working), tracefs, monkeypatch)
    assert reader.absent == {}
    found = reader.at(np.array([0.0, time.monotonic()]))
    amounts = {key: sums[1] - sums[0] for key, sums in found.items()}
    assert amounts["traced_s", ""] == pytest.approx(0.5, abs=0.4)
    states = {key[1]: value for key, value in amounts.items() if key[0] == "state_s"}
    assert sum(states.values()) == pytest.approx(amounts["traced_s", ""], rel=1e-3)
    assert states["computing"] > 0.02
    assert states["idle"] > 0.05
    assert amounts["state_changes", "idle > waiting for CPU"] > 5
    assert amounts["trace_lost", ""] == 0.0
    assert left_in(tracefs) == []


async def test_waiting_for_cpu_is_what_the_kernels_own_count_says(
    tracefs: Path, working: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside somebody who spins on its core; schedstat is read where the trace begins and ends."""
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(working, {core})
    read: list[float] = []

    def noting(count: Callable[..., float | None]) -> Callable[..., float | None]:
        def noted(*given: object) -> float | None:
            read.append(read_threads([working], switches=True)[working].wait_s or 0.0)
            return count(*given)

        return noted

    monkeypatch.setattr(kernel_trace, "_start", noting(kernel_trace._start))
    monkeypatch.setattr(kernel_trace, "_stop", noting(kernel_trace._stop))
    spinning = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", spinning]) as spinner:
        time.sleep(0.2)
        reader = await traced(group(tmp_path, working), tracefs, monkeypatch, 1.0)
        spinner.kill()
    waited = reader.at(np.array([time.monotonic()]))["state_s", "waiting for CPU"][0]
    # Enabling the events takes a moment that only the kernel's own count sees.
    assert waited == pytest.approx(read[1] - read[0], rel=0.25)
    assert waited > 0.1


async def test_a_buffer_that_is_full_ends_the_trace_and_says_so(
    tracefs: Path, working: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_trace, "MOST_KIB", 8)
    with subprocess.Popen([sys.executable, "-c", "import os\nwhile True: os.getppid()"]) as calling:
        time.sleep(0.1)
        reader = await traced(group(tmp_path, working, calling.pid), tracefs, monkeypatch)
        calling.kill()
    found = reader.at(np.array([time.monotonic()]))
    assert found["trace_lost", ""][0] > 100
    assert 0.0 < found["traced_s", ""][0] < 0.3


async def test_events_beyond_the_bound_end_the_trace(
    tracefs: Path, working: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_trace, "MOST_EVENTS", 50)
    reader = await traced(group(tmp_path, working), tracefs, monkeypatch)
    assert 0.0 < reader.at(np.array([time.monotonic()]))["traced_s", ""][0] < 0.3


async def test_what_cannot_be_traced_is_a_sentence_and_no_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await traced(group(tmp_path, os.getpid()), tmp_path / "none", monkeypatch, 0.01)
    assert set(reader.absent) == set(TRACE)
    assert "mount -t tracefs" in reader.absent["state_s"]
    assert reader.at(np.array([1.0])) == {}
    (tmp_path / "instances").mkdir()
    assert "no tracepoint sched/sched_switch" in kernel_trace.why_not((tmp_path,))


async def test_a_function_without_threads_and_a_load_that_is_too_short(
    tracefs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await traced(group(tmp_path), tracefs, monkeypatch, 0.01)
    assert "it has 0 threads" in reader.absent["state_s"]
    short = TraceReader(group(tmp_path, os.getpid()), 5.0, places=(tracefs,))
    await short.begin()
    await short.end()
    assert short.absent["state_s"] == "the load ended before its trace began"
    assert left_in(tracefs) == []


class Held:
    """A step of a trace that lasts until the test lets it go on, in its thread."""

    def __init__(self, step: Callable[..., Any], told: list[str]) -> None:
        self.begun, self.let, self.done = threading.Event(), threading.Event(), threading.Event()
        self._step, self._told = step, told

    def __call__(self, *given: object) -> object:
        self.begun.set()
        assert self.let.wait(10)
        try:
            return self._step(*given)
        finally:
            self._told.append("done")
            self.done.set()

    async def let_go(self, cancelled: asyncio.Task[None]) -> None:
        """Once whoever waits for it has heard that it is cancelled."""
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.let.set()
        await asyncio.wait((cancelled,))
        assert await asyncio.to_thread(self.done.wait, 10)


async def test_nothing_is_left_of_a_trace_that_is_cancelled_while_it_is_prepared(
    tracefs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preparing = Held(kernel_trace._prepare, [])
    monkeypatch.setattr(kernel_trace, "_prepare", preparing)
    reader = TraceReader(group(tmp_path, os.getpid()), 0.0, places=(tracefs,))
    beginning = asyncio.create_task(reader.begin())
    assert await asyncio.to_thread(preparing.begun.wait, 10)
    beginning.cancel()
    await preparing.let_go(beginning)
    assert beginning.cancelled()
    assert left_in(tracefs) == []
    assert reader._guard is None


async def test_a_trace_that_ends_while_it_begins_is_stopped_after_it_has_begun(
    tracefs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be set going again behind the back of who removes it."""
    told: list[str] = []
    starting, stop = Held(kernel_trace._start, told), kernel_trace._stop

    def stopped(instance: Path) -> None:
        told.append("stopped")
        stop(instance)

    monkeypatch.setattr(kernel_trace, "_start", starting)
    monkeypatch.setattr(kernel_trace, "_stop", stopped)
    reader = TraceReader(group(tmp_path, os.getpid()), 0.0, places=(tracefs,))
    await reader.begin()
    assert await asyncio.to_thread(starting.begun.wait, 10)
    await starting.let_go(asyncio.create_task(reader.end()))
    assert told == ["done", "stopped"]
    assert left_in(tracefs) == []
    assert reader.absent["state_s"] == "the load ended before its trace began"


def test_nothing_is_left_tracing_by_who_was_killed(tracefs: Path, tmp_path: Path) -> None:
    group(tmp_path, os.getpid())
    code = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from workbench.probes.cgroup import CgroupFolders\n"
        "from workbench.probes.kernel_trace import TraceReader\n"
        "async def main():\n"
        "    folder, place = map(Path, sys.argv[1:])\n"
        "    reader = TraceReader(CgroupFolders('v2', *[folder] * 4), 0.0, places=(place,))\n"
        "    await reader.begin()\n"
        "    await asyncio.sleep(0.2)\n"
        "    print(reader._instance.name, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())"
    )
    argv = [sys.executable, "-c", code, str(tmp_path), str(tracefs)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        instance = tracefs / "instances" / owner.stdout.readline().strip()
        assert (instance / "tracing_on").read_text().strip() == "1"
        owner.kill()
    until = time.monotonic() + 10
    while time.monotonic() < until and instance.exists():
        time.sleep(0.02)
    assert not instance.exists()
