"""`perf stat` beside a drive: events of a function's control group, or of its processes.

What this host counts is tried once (`detect`), never assumed. "<not supported>" and "<not counted>"
are no zeros: such an event is absent, with the reason. Counts of events that shared a counter were
scaled by perf; for how long they ran is told with them.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from workbench.measuring.records import Floats
from workbench.probes import cgroup
from workbench.probes.child_ending import signal_child
from workbench.probes.process import PROC

PROGRAM = "perf"
EVERY_MS = 500
"""Between two readings of perf; amounts of windows are interpolated in between."""
PATIENCE_S = 5.0
SILENT = f"perf said nothing within {PATIENCE_S:g} s"
LONGEST_LINE = 4096
MOST_LINES_PER_READING = 256
MOST_READINGS = 7_200
"""Of one watch: an hour; older ones are forgotten."""
MOST_PROCESSES = 64
"""Of a function without a group that perf knows: each takes a file for every event."""
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
UNSUPPORTED, UNCOUNTED = "<not supported>", "<not counted>"
NOT_HERE = "perf is not installed (Debian: linux-perf)"
CLOCK = "perf_task_s"
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


@dataclass(frozen=True)
class PerfEvent:
    """What perf calls it, times what it is in the observable's unit."""

    event: str
    hardware: bool = False
    scale: float = 1.0


EVENTS: Mapping[str, PerfEvent] = {
    "perf_task_s": PerfEvent("task-clock", scale=1e-3),
    "perf_switches": PerfEvent("context-switches"),
    "perf_migrations": PerfEvent("cpu-migrations"),
    "perf_wakeups": PerfEvent("sched:sched_wakeup"),
    "perf_softirqs": PerfEvent("irq:softirq_entry"),
    "perf_minor_faults": PerfEvent("minor-faults"),
    "perf_major_faults": PerfEvent("major-faults"),
    "perf_alignment_faults": PerfEvent("alignment-faults"),
    "perf_emulation_faults": PerfEvent("emulation-faults"),
    "perf_sent": PerfEvent("net:net_dev_xmit"),
    "perf_received": PerfEvent("net:netif_receive_skb"),
    "perf_copied": PerfEvent("skb:skb_copy_datagram_iovec"),
    "perf_cycles": PerfEvent("cycles", hardware=True),
    "perf_instructions": PerfEvent("instructions", hardware=True),
    "perf_branches": PerfEvent("branches", hardware=True),
    "perf_branch_misses": PerfEvent("branch-misses", hardware=True),
    "perf_l1d_misses": PerfEvent("L1-dcache-load-misses", hardware=True),
    "perf_cache_references": PerfEvent("cache-references", hardware=True),
    "perf_cache_misses": PerfEvent("cache-misses", hardware=True),
    "perf_dtlb_misses": PerfEvent("dTLB-load-misses", hardware=True),
}
"""By observable. No tracepoint of system calls: with one every call of every process on the host
takes the kernel's slow way in."""
_NAMES = {one.event: name for name, one in EVENTS.items()}


@dataclass(frozen=True)
class PerfHere:
    """What `perf stat` counts on this host.

    Attributes
    ----------
    events : observables that it counts.
    absent : the others, and why.
    """

    events: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    paranoid: str = ""

    @property
    def hardware(self) -> tuple[str, ...]:
        return tuple(name for name in self.events if EVENTS[name].hardware)

    def __str__(self) -> str:
        if not self.events:
            return next(iter(self.absent.values()), NOT_HERE)
        pmu = f"{len(self.hardware)} hardware" if self.hardware else "no hardware events (no PMU)"
        soft = len(self.events) - len(self.hardware)
        return f"{soft} software events and tracepoints, {pmu}; perf_event_paranoid {self.paranoid}"


@dataclass(frozen=True)
class PerfCount:
    """One line of `perf stat -j -I`."""

    at_s: float
    """Since it began to count."""
    event: str
    value: float | None
    """Since the line before; None where it was not counted."""
    why: str
    ran: float
    """Share of the time in which it had a counter, 0 to 1; `value` is scaled by it already."""


def parse_line(line: str) -> PerfCount | None:
    """None of what is no such line. Raises nothing."""
    try:
        found = json.loads(line)
        said = str(found["counter-value"])
        at_s, ran = float(found.get("interval", 0.0)), float(found.get("pcnt-running", 100.0))
        known = said not in (UNSUPPORTED, UNCOUNTED)
        value = float(said) if known else None
        event = str(found["event"])
    except (ValueError, OverflowError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if value is not None and not 0.0 <= value < float("inf"):
        return None
    return PerfCount(at_s, event, value, "" if known else said.strip("<>"), ran / 100.0)


async def detect(program: str = PROGRAM) -> PerfHere:
    """Which events a short `perf stat` counts here. Raises nothing."""
    paranoid = _paranoid()
    if shutil.which(program) is None:
        return PerfHere((), dict.fromkeys(EVENTS, NOT_HERE), paranoid)
    absent: dict[str, str] = {}
    found, why = await _try(program, EVENTS)
    if why == SILENT:
        return PerfHere((), dict.fromkeys(EVENTS, why), paranoid)
    if not found:  # one event that it does not know takes all others away
        for name in EVENTS:
            alone, why = await _try(program, (name,))
            found |= alone
            if not alone:
                absent[name] = why
    for name, count in found.items():
        if count.why == UNSUPPORTED.strip("<>"):
            hardware = EVENTS[name].hardware
            absent[name] = "not supported: this host has no PMU for it" if hardware else count.why
    return PerfHere(
        tuple(name for name in EVENTS if name in found and name not in absent),
        {**{name: "perf says nothing of it" for name in EVENTS if name not in found}, **absent},
        paranoid,
    )


_here: list[PerfHere] = []
"""What this process has found: a host does not change while it runs."""


async def here() -> PerfHere:
    """What is here, found out once; a perf that said nothing is asked again."""
    if _here:
        return _here[0]
    found = await detect()
    if SILENT not in found.absent.values():
        _here.append(found)
    return found


def _paranoid() -> str:
    with suppress(OSError):
        return PARANOID.read_text().strip()
    return "unknown"


async def _try(program: str, names: Iterable[str]) -> tuple[dict[str, PerfCount], str]:
    """What a moment on all cores counts, by observable; and what perf said where it did not."""
    events = ",".join(EVENTS[name].event for name in names)
    try:
        process = await asyncio.create_subprocess_exec(
            *(program, "stat", "-j", "-a", "-e", events, "--", "true"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=ENVIRONMENT,
        )
    except OSError as error:
        return {}, f"perf cannot be started: {error.strerror}"
    try:
        async with asyncio.timeout(PATIENCE_S):
            _, text = await process.communicate()
    except TimeoutError:
        return {}, SILENT
    finally:
        if process.returncode is None:
            signal_child(process)
            await process.wait()
    lines = text[: LONGEST_LINE * MOST_LINES_PER_READING].decode(errors="replace").splitlines()
    counts = [count for line in lines if (count := parse_line(line))]
    by_event = {count.event: count for count in counts}
    found = {name: by_event[EVENTS[name].event] for name in names if EVENTS[name].event in by_event}
    words = [line.strip() for line in lines if line.strip(" \\_|") and not line.startswith("{")]
    return found, f"perf refuses it: {words[0][:120]}" if words else "perf refuses it"


def group_of(pid: int) -> str:
    """The group of a process in the hierarchy that perf asks; empty where it has none of its own.

    That is `perf_event` of version 1, else version 2, which needs no controller for it.
    """
    mounts = cgroup.parse_mounts((PROC / "self" / "mountinfo").read_text())
    groups = cgroup.parse_membership((PROC / str(pid) / "cgroup").read_text())
    key = "perf_event" if "perf_event" in mounts else cgroup.UNIFIED
    path = groups.get(key, "/").strip("/") if key in mounts else ""
    # perf joins names by commas and reads them as paths below the mount.
    there = path and (mounts[key].point / path).is_dir() and mounts[key].root == "/"
    return path if there and "," not in path and ".." not in path.split("/") else ""


@dataclass
class PerfReader:
    """`perf stat` of one function, from `begin` to `end`.

    It ends with this process however that ends: its command is a `cat` that waits for a pipe, which
    the kernel closes.

    Attributes
    ----------
    absent : what was not counted, by observable, and why.
    """

    here: PerfHere
    scope: tuple[str, ...]
    """Arguments of perf that say what is counted."""
    absent: dict[str, str] = field(default_factory=dict)
    program: str = PROGRAM
    _process: asyncio.subprocess.Process | None = None
    _reading: asyncio.Task[None] | None = None
    _zero_s: float = float("inf")
    _at_s: list[float] = field(default_factory=lambda: [0.0])
    _sums: dict[str, list[float]] = field(default_factory=dict)
    _ran: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: 1.0))
    _line: dict[str, PerfCount] = field(default_factory=dict)
    _said: str = ""
    _ending: bool = False

    @classmethod
    def of(cls, here: PerfHere, folders: cgroup.CgroupFolders) -> PerfReader:
        """Of a function by its control group. Raises `OSError` where it has ended."""
        absent = dict(here.absent)
        processes = cgroup.processes(folders) if here.events else ()
        if processes and (group := group_of(processes[0])):
            return cls(here, ("-a", "--for-each-cgroup", group), absent)
        if not processes or len(processes) > MOST_PROCESSES:
            why = (
                f"it has no control group that perf knows, and {len(processes)} processes; up to "
                f"{MOST_PROCESSES} are counted one by one"
            )
            return cls(PerfHere(), (), absent | dict.fromkeys(here.events, why))
        return cls(here, ("-p", ",".join(map(str, processes))), absent)

    async def begin(self) -> None:
        """Start perf; where that fails all events are absent. Raises nothing."""
        if not self.here.events:
            return
        events = ",".join(EVENTS[name].event for name in self.here.events)
        argv = ("stat", "-j", "-I", str(EVERY_MS), *self.scope, "-e", events, "--", "cat")
        self._sums = {name: [0.0] for name in self.here.events}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(self.program, *argv),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=ENVIRONMENT,
                limit=LONGEST_LINE,
            )
        except OSError as error:
            self._lose(self.here.events, f"perf cannot be started: {error.strerror}")
            return
        self._reading = asyncio.create_task(self._read(self._process))

    async def end(self) -> None:
        """Stop perf, with its last reading; it is gone afterwards, whatever it does."""
        process, self._process = self._process, None
        if process is None or self._reading is None:
            return
        if process.returncode is not None:  # its child may hold the pipe open
            self._lose(
                self.here.events, f"perf ended while it counted (exit code {process.returncode})"
            )
        self._ending = True
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._reading
                await process.wait()
        except TimeoutError:
            self._lose(self.here.events, f"perf did not end within {PATIENCE_S:g} s")
        finally:
            self._reading.cancel()
            if process.returncode is None:
                signal_child(process)
                await process.wait()

    def at(self, at_s: Floats) -> dict[tuple[str, str], Floats]:
        """Counts so far at instants of the monotonic clock, by observable and detail."""
        if len(self._at_s) < 2:
            self._lose(self.here.events, self._said or "perf ended before its first reading")
            return {}
        times = np.array(self._at_s) + self._zero_s
        return {
            (name, self.detail(name)): np.interp(at_s, times, sums)
            for name, sums in self._sums.items()
            if name not in self.absent
        }

    def detail(self, name: str) -> str:
        """What is said beside a count that was scaled; empty where it was not."""
        ran = self._ran[name]
        return "" if ran > 0.995 else f"scaled: it had a counter {ran:.0%} of the time at least"

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        try:
            while raw := await process.stderr.readline():
                line = raw.decode(errors="replace")
                if count := parse_line(line):
                    self._take(count)
                elif line.strip():
                    self._said = f"perf says: {line.strip()[:120]}"
        except ValueError:
            self._lose(self.here.events, f"perf wrote a line of over {LONGEST_LINE} bytes")
        self._close_reading()
        if not self._ending:
            code = await process.wait()
            said = f"; {self._said}" if self._said else ""
            self._lose(self.here.events, f"perf ended while it counted (exit code {code}){said}")

    def _take(self, count: PerfCount) -> None:
        self._zero_s = min(self._zero_s, time.monotonic() - count.at_s)
        if self._line and next(iter(self._line.values())).at_s != count.at_s:
            self._close_reading()
        if name := _NAMES.get(count.event):
            self._line[name] = count

    def _close_reading(self) -> None:
        """Add what one reading counted to the sums."""
        line, self._line = self._line, {}
        if not line:
            return
        clock = line.get(CLOCK)
        # A group that had no turn at all counts nothing, and that is a zero.
        idle = clock is not None and not clock.value
        self._at_s.append(next(iter(line.values())).at_s)
        for name, sums in self._sums.items():
            count = line.get(name)
            added = 0.0
            if count is not None and count.value is not None:
                added = count.value * EVENTS[name].scale
                self._ran[name] = min(self._ran[name], count.ran or 1.0)
            elif not idle:
                why = count.why if count else "perf left it out of a reading"
                hint = ": it shared a counter and had no turn" if EVENTS[name].hardware else ""
                self._lose((name,), f"{why}{hint}")
            sums.append(sums[-1] + added)
            del sums[:-MOST_READINGS]
        del self._at_s[:-MOST_READINGS]

    def _lose(self, names: Iterable[str], why: str) -> None:
        for name in names:
            self.absent.setdefault(name, why)
