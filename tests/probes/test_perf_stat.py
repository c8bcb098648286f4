"""`perf stat` as evidence: what it says, what it does not count, and how it dies."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from workbench.domain.observations import PERF
from workbench.probes import cgroup, perf_stat
from workbench.probes.perf_stat import EVENTS, PerfHere, PerfReader, parse_line

LINE = (
    '{"interval" : 0.5, "cgroup" : "a", "counter-value" : "%s", "unit" : "", "event" : "%s", '
    '"event-runtime" : 1, "pcnt-running" : %s}'
)
SOME = PerfHere(("perf_task_s", "perf_switches", "perf_cycles"))


def stand_in(folder: Path, body: str) -> str:
    """A program in perf's place; it ignores its arguments."""
    program = folder / "perf"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return str(program)


def said(*readings: tuple[str, str, str, str]) -> str:
    """What it writes: seconds, task-clock, context-switches, cycles of each reading."""
    lines = []
    for at_s, clock, switches, cycles in readings:
        for value, event, ran in (
            (clock, "task-clock", "100.00"),
            (switches, "context-switches", "100.00"),
            (cycles, "cycles", "40.00"),
        ):
            lines.append((LINE % (value, event, ran)).replace("0.5,", f"{at_s},", 1))
    return "cat >&2 <<'END'\n" + "\n".join(lines) + "\nEND\n"


async def read(program: str, here: PerfHere = SOME) -> PerfReader:
    reader = PerfReader(here, ("-a",), program=program)
    await reader.begin()
    await asyncio.sleep(0.3)
    await reader.end()
    return reader


def test_events_and_observables_are_the_same_names() -> None:
    assert tuple(EVENTS) == PERF


def test_a_line_holds_a_count_or_why_there_is_none() -> None:
    count = parse_line(LINE % ("12.500000", "task-clock", "37.50"))
    assert count is not None
    assert (count.value, count.ran, count.at_s) == (12.5, 0.375, 0.5)
    for words in ("not supported", "not counted"):
        count = parse_line(LINE % (f"<{words}>", "cycles", "0.00"))
        assert count is not None
        assert (count.value, count.why) == (None, words)


@pytest.mark.parametrize(
    "line",
    ["", "{", "[1]", "null", '{"interval": "x"}', LINE % ("nan", "cycles", "1"),
     LINE % ("-1", "cycles", "1"), LINE % ("1e999", "cycles", "1"), "[" * 100_000],
)  # fmt: skip
def test_other_lines_are_none(line: str) -> None:
    assert parse_line(line) is None


async def test_counts_are_summed_scaled_and_interpolated(tmp_path: Path) -> None:
    text = said(("1.0", "100.0", "10", "1000"), ("2.0", "200.0", "30", "3000"))
    reader = await read(stand_in(tmp_path, f"{text}cat >/dev/null"))
    zero_s = reader._zero_s
    counted = reader.at(np.array([zero_s, zero_s + 1.0, zero_s + 1.5]))
    assert counted["perf_switches", ""].tolist() == pytest.approx([0.0, 10.0, 25.0])
    assert counted["perf_task_s", ""].tolist() == pytest.approx([0.0, 0.1, 0.2])
    scaled = [key for key in counted if key[0] == "perf_cycles"]
    assert "40% of the time" in scaled[0][1], "that it shared a counter is told"
    assert reader.absent == {}


async def test_an_idle_group_counts_nothing_and_a_lost_event_is_absent(tmp_path: Path) -> None:
    idle = ("1.0", "<not counted>", "<not counted>", "<not counted>")
    reader = await read(stand_in(tmp_path, said(idle) + "cat >/dev/null"))
    assert reader.at(np.array([reader._zero_s + 1.0]))["perf_switches", ""].tolist() == [0.0]
    (tmp_path / "perf").unlink()
    lost = ("1.0", "100.0", "10", "<not counted>")
    reader = await read(stand_in(tmp_path, said(lost) + "cat >/dev/null"))
    assert "had no turn" in reader.absent["perf_cycles"]
    assert {name for name, _ in reader.at(np.array([1e9]))} == {"perf_task_s", "perf_switches"}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (said(("1.0", "1", "1", "1")) + "exit 3", "exit code 3"),
        ("echo 'No permission to count' >&2; exit 1", "No permission to count"),
        ("head -c 9000 /dev/zero >&2; cat >/dev/null", "over 4096 bytes"),
        ("exec cat >/dev/null", "before its first reading"),
    ],
)
async def test_a_perf_that_fails_is_named(tmp_path: Path, body: str, why: str) -> None:
    reader = await read(stand_in(tmp_path, body))
    reader.at(np.array([0.0]))
    assert set(reader.absent) == set(SOME.events)
    assert all(why in told for told in reader.absent.values()), reader.absent


async def test_one_that_will_not_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf_stat, "PATIENCE_S", 0.2)
    reader = PerfReader(SOME, (), program=stand_in(tmp_path, "trap '' TERM; exec sleep 60"))
    await reader.begin()
    process = reader._process
    assert process is not None
    await reader.end()
    assert process.returncode == -signal.SIGKILL
    assert "did not end" in reader.absent["perf_cycles"]


async def test_without_perf_everything_is_absent_with_the_package() -> None:
    here = await perf_stat.detect("no-such-perf")
    assert not here.events
    assert set(here.absent) == set(EVENTS)
    assert "linux-perf" in str(here)


async def test_a_perf_that_says_nothing_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf_stat, "PATIENCE_S", 0.2)
    called = tmp_path / "called"
    here = await perf_stat.detect(stand_in(tmp_path, f"echo >>{called}; exec sleep 60"))
    assert not here.events
    assert "said nothing" in str(here)
    assert called.read_text() == "\n"


async def test_an_event_that_perf_does_not_know_takes_no_other_away(tmp_path: Path) -> None:
    body = (
        'case "$5" in *net:*) echo "event syntax error: unknown tracepoint" >&2; exit 129;; esac\n'
        'for event in $(echo "$5" | tr , " "); do\n'
        'value=1; [ $event = cycles ] && value="<not supported>"\n'
        'echo "{\\"counter-value\\": \\"$value\\", \\"event\\": \\"$event\\"}" >&2; done'
    )
    here = await perf_stat.detect(stand_in(tmp_path, body))
    assert {"perf_task_s", "perf_switches", "perf_instructions"} <= set(here.events)
    assert "syntax error" in here.absent["perf_sent"]
    assert "no PMU" in here.absent["perf_cycles"]


def burning() -> subprocess.Popen[bytes]:
    code = "import time\nwhile True: sum(range(9999)); time.sleep(0.002)"
    return subprocess.Popen([sys.executable, "-c", code])


@pytest.mark.needs("perf")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root counts other users' events everywhere")
async def test_real_events_of_a_process_agree_with_its_clock() -> None:
    here = await perf_stat.detect()
    assert {"perf_task_s", "perf_switches"} <= set(here.events)
    assert set(here.events) | set(here.absent) == set(EVENTS)
    process = burning()
    try:
        reader = PerfReader(here, ("-p", str(process.pid)), dict(here.absent))
        stat = Path(f"/proc/{process.pid}/schedstat")
        await reader.begin()
        await asyncio.sleep(0.5)
        began_s, before = time.monotonic(), int(stat.read_text().split()[0])
        await asyncio.sleep(1.0)
        ended_s, after = time.monotonic(), int(stat.read_text().split()[0])
        await reader.end()
        counted = np.diff(reader.at(np.array([began_s, ended_s]))["perf_task_s", ""])[0]
        assert counted == pytest.approx((after - before) / 1e9, rel=0.35, abs=0.02)
        assert np.diff(reader.at(np.array([began_s, ended_s]))["perf_switches", ""])[0] > 50
    finally:
        process.kill()
        process.wait()


@pytest.mark.needs("perf")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root counts other users' events everywhere")
def test_perf_ends_with_whoever_was_killed() -> None:
    code = (
        "import asyncio\nfrom workbench.probes.perf_stat import PerfHere, PerfReader\n"
        "async def main():\n"
        "    reader = PerfReader(PerfHere(('perf_task_s',)), ('-a',))\n"
        "    await reader.begin()\n"
        "    print(reader._process.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        perf = int(owner.stdout.readline())
        assert Path(f"/proc/{perf}").exists()
        owner.kill()
    until = time.monotonic() + 10
    while time.monotonic() < until and _lives(perf):
        time.sleep(0.02)
    assert not _lives(perf)


def _lives(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_a_group_that_perf_knows_is_named_below_its_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `/proc`: hierarchies of version 1, of which perf asks its own."""
    top = tmp_path / "top"
    (top / "lab" / "web").mkdir(parents=True)
    for folder in ("self", "7", "8"):
        (tmp_path / folder).mkdir()
    line = f"30 23 0:26 / {top} rw - cgroup cgroup rw,perf_event\n"
    (tmp_path / "self" / "mountinfo").write_text(line)
    (tmp_path / "7" / "cgroup").write_text("3:perf_event:/lab/web\n2:cpu:/elsewhere\n")
    (tmp_path / "8" / "cgroup").write_text("3:perf_event:/\n")
    monkeypatch.setattr(perf_stat, "PROC", tmp_path)
    assert perf_stat.group_of(7) == "lab/web"
    assert perf_stat.group_of(8) == "", "the root's group counts everybody"
    (tmp_path / "8" / "cgroup").write_text("3:perf_event:/lab/gone\n")
    assert perf_stat.group_of(8) == "", "it is not there"


async def test_a_function_that_has_ended_is_an_error(tmp_path: Path) -> None:
    gone = cgroup.CgroupFolders("v1", tmp_path / "a", tmp_path / "a", tmp_path / "a")
    with pytest.raises(OSError, match=r"cgroup\.procs"):
        PerfReader.of(SOME, gone)
