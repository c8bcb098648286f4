"""`watch` of a process that runs: counters by the second, a restart, an end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from running_system import RunningSystem

from workbench.cli.watch_loop import Orders, follow
from workbench.domain.attaching import Attached
from workbench.domain.errors import LabError
from workbench.domain.parameters import Sla
from workbench.engine.answers.counter_learning import CountedRows
from workbench.labs.attached.finding import find
from workbench.labs.attached.live_counters import LiveCounters, busiest_beside
from workbench.measuring.window_counters import THROTTLED
from workbench.models.counter_rows import CounterRows
from workbench.models.counter_watch import AlarmRates, CounterLook

FEATURES = ("cpu_cores", "voluntary_switches", "perf_cycles")
SLA = Sla("throughput_rps", 1e9, ">=", text="throughput>=1000000000/s")


class CpuAlone:
    """Stands for a learned model: a request takes a millisecond of a core."""

    chosen = "stub"
    score = SimpleNamespace(mape=0.1, within_5=0.5, coverage=0.95)

    def __init__(self, rows: CounterRows) -> None:
        self.rows, self.features = rows, rows.features

    def look(self, counted: Mapping[str, float], missing: Mapping[str, str]) -> CounterLook:
        value = 1e3 * counted["cpu_cores"] + 1.0
        return CounterLook(value, value / 2, value * 2, apart=0.5)

    def rates(self, sla: Sla | None, allowance: float) -> AlarmRates:
        return AlarmRates(10, 1, 0)

    def strayed(self, look: CounterLook) -> float:
        return -1.0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> CountedRows:
    monkeypatch.setattr("workbench.models.counter_watch.CounterWatch", CpuAlone)
    rows = CounterRows(FEATURES, np.ones((4, 3)), np.ones(4), np.arange(4))
    return CountedRows(rows, (), 1.0, 4, 4)


def orders(attached: Attached, folder: Path, seconds: int) -> Orders:
    return Orders("web", SLA.kpi, attached, SLA, seconds, folder / "web.prom", json=True)


async def written(folder: Path, metric: str, following: asyncio.Task[None]) -> str:
    """The text file of `orders`, once that metric is 1 in it."""
    labels = r'function="web",kpi="throughput_rps",place="[^"]+",session=""'
    wanted = re.compile(rf"^workbench_watch_{metric}{{{labels}}} 1\.0$", re.MULTILINE)
    file = folder / "web.prom"
    while not file.exists() or not wanted.search(text := file.read_text()):
        assert not following.done(), wanted
        await asyncio.sleep(0.05)
    return text


async def test_what_it_does_in_a_second_is_counted(system: RunningSystem) -> None:
    live = LiveCounters(await find(Attached("web", "pid", str(system.pid))), over_s=1.0)
    assert live.read() == {}
    assert live.spanned_s is None

    def ask() -> None:
        for _ in range(100):
            urllib.request.urlopen(f"http://127.0.0.1:{system.port}/").read()

    await asyncio.to_thread(ask)
    await asyncio.sleep(1.0)
    seen = live.read()
    assert live.spanned_s is not None
    assert live.spanned_s >= 1.0, "longer than the second since the last one: it was busy, too"
    assert seen["cpu_cores"] > 0.0
    assert seen["voluntary_switches"] >= 10.0
    assert seen["host softirqs NET_RX"] > 0.0
    assert "its host's network" in live.missing["rx_packets"]
    assert "rx_packets" not in seen


async def test_levels_are_means_of_the_readings_in_a_window(
    system: RunningSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveCounters(await find(Attached("web", "pid", str(system.pid))), over_s=2.0)
    clock = SimpleNamespace(now_s=0.0, monotonic=lambda: clock.now_s)
    monkeypatch.setattr("workbench.labs.attached.live_counters.time", clock)
    seen = []
    for clock.now_s, connections in enumerate((90.0, 3.0, 9.0, 6.0)):
        reading = {
            ("established", "established"): connections,
            ("cpu_wait_s", "cpu_wait_s"): 0.5 * clock.now_s,
            (THROTTLED, "periods"): 10.0 * clock.now_s,
            (THROTTLED, "throttled"): 0.0,
        }
        monkeypatch.setattr(live._read, "_now", lambda missing, reading=reading: reading)
        seen.append(live.read())
    assert seen[:2] == [{}, {}]
    assert seen[2] == {"established": 34.0, "cpu_wait_s": 0.5, THROTTLED: 0.0}
    assert seen[3]["established"] == 6.0, "what came before the window is no part of it"
    assert live.spanned_s == 2.0


async def test_who_is_busy_beside_it_is_named(
    system: RunningSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.probes.evidence.MOST_BURNERS", 1_000)  # other tests burn, too
    found = await find(Attached("web", "pid", str(system.pid)))
    # Not a child of this process: its own are the workbench's.
    burner = subprocess.Popen(["sh", "-c", "(while :; do :; done) & wait"], start_new_session=True)
    try:
        names = await busiest_beside(found, 1.0)
    finally:
        os.killpg(burner.pid, signal.SIGKILL)
        burner.wait()
    assert any("sh" in name and name.endswith(" cores") for name in names), names
    assert not any(f"(process {system.pid})" in name for name in names)


def connections_with(port: int) -> set[str]:
    """Both ends of each, as the kernel lists them; one that has ended stays there for a minute."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    ends = (tuple(line.split()[1:4]) for line in lines)
    return {
        f"{here} {there}"
        for here, there, state in ends
        if state != "0A" and f"{port:04X}" in (here[-4:], there[-4:])  # 0A: it listens
    }


async def test_nothing_is_sent_to_what_is_watched(
    system: RunningSystem, counted: CountedRows, tmp_path: Path
) -> None:
    before = connections_with(system.port)
    attached = Attached("web", "pid", str(system.pid))
    await follow(orders(attached, tmp_path, 3), counted)
    assert connections_with(system.port) <= before
    ask = urllib.request.urlopen
    await asyncio.to_thread(lambda: ask(f"http://127.0.0.1:{system.port}/").read())
    assert connections_with(system.port) - before, "what is sent would have been seen"


async def test_a_restart_is_told_and_the_watch_goes_on(
    system: RunningSystem,
    counted: CountedRows,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    attached = Attached("web", "cgroup", system.path)
    following = asyncio.create_task(follow(orders(attached, tmp_path, 8), counted))
    metrics = await written(tmp_path, "alarm", following)
    assert "workbench_watch_value" in metrics
    system.kill()
    gone = await written(tmp_path, "silent", following)
    assert "workbench_watch_value" not in gone, "an old figure is none"
    system.start()
    await asyncio.wait_for(following, 20.0)
    said = capsys.readouterr()
    assert "learned without perf_cycles: not read of a running function" in said.err
    assert "how many breaches it would miss is not known" in said.err
    assert "alarm: web is predicted to break throughput>=1000000000/s" in said.err
    assert "has ended" in said.err
    assert f"runs again as process {system.pid}: the watch goes on" in said.err
    assert "of a core" in said.err
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert len(lines) == 8
    assert lines[-1]["alarm"] is True
    assert not (tmp_path / "web.prom").exists(), "nobody looks any more"


async def test_a_process_that_ends_ends_the_watch_with_a_sentence(
    system: RunningSystem, counted: CountedRows, tmp_path: Path
) -> None:
    attached = Attached("web", "pid", str(system.pid))
    following = asyncio.create_task(follow(orders(attached, tmp_path, 60), counted))
    await asyncio.sleep(3.0)
    system.kill()
    system.server = None
    with pytest.raises(LabError, match="has ended"):
        await asyncio.wait_for(following, 20.0)


async def test_a_counter_that_could_not_be_read_for_a_moment_comes_back(
    system: RunningSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.labs.attached.live_counters.RETRIED_S", 0.2)
    live = LiveCounters(await find(Attached("web", "pid", str(system.pid))), over_s=0.5)
    for _ in range(4):
        live.read()
        await asyncio.sleep(0.25)
    with monkeypatch.context() as many:
        many.setattr("workbench.probes.evidence.MOST_THREADS", 0)
        assert "voluntary_switches" not in live.read()
        assert "threads; up to 0 are read" in live.missing["voluntary_switches"]
        await asyncio.sleep(0.25)
    seen: Mapping[str, float] = {}
    for _ in range(12):
        seen = live.read()
        await asyncio.sleep(0.25)
    assert "voluntary_switches" in seen
    assert "voluntary_switches" not in live.missing


async def test_renewed_sums_leave_no_hole(
    system: RunningSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.labs.attached.live_counters.RENEWED_S", 1.0)
    live = LiveCounters(await find(Attached("web", "pid", str(system.pid))), over_s=0.5)
    looks = []
    for _ in range(14):
        looks.append(live.read())
        await asyncio.sleep(0.25)
    assert looks[0] == {}
    assert all("cpu_cores" in look for look in looks[3:])
