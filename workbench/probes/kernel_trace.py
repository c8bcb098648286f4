"""A few seconds of a drive traced by the kernel: what each thread of a function did.

One instance of ftrace for each function, filtered by its threads: switches, wake-ups, system calls,
softirqs, interrupts, and the exits of virtual machines where there are such. An instance disturbs
nobody else's tracing. It is removed by a program that waits for a pipe, which the kernel closes
when this process ends, however it ends. Tracing system calls slows every process of the host a
little while it lasts (docs/evidence.md says how much).
"""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import ParamSpec, TypeVar

from workbench.measuring.records import Floats
from workbench.measuring.thread_states import (
    STATES,
    ThreadStates,
    TraceEvent,
    thread_states,
    trace_events,
)
from workbench.probes import cgroup
from workbench.probes.child_ending import signal_child
from workbench.probes.process import PROC

PLACES = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
TRACED_S = 2.0
SETTLED_S = 0.3
"""After the warm-up: a generator takes a moment to start."""
PATIENCE_S = 5.0
MOST_KIB, MOST_KIB_A_CORE = 32_768, 4_096
"""Of a function's buffers. A full buffer drops what is new, and the trace ends there."""
MOST_EVENTS = 250_000
MOST_THREADS = 512
EVENTS = (
    "sched/sched_switch",
    "sched/sched_wakeup",
    "sched/sched_process_fork",
    "raw_syscalls/sys_enter",
    "raw_syscalls/sys_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "kvm/kvm_entry",
    "kvm/kvm_exit",
)
NEEDED = EVENTS[:5]
"""Without these nothing can be said; kernels without KVM lack others."""
STATE_S, CHANGES, TRACED, LOST = "state_s", "state_changes", "traced_s", "trace_lost"
NOT_MOUNTED = (
    "tracefs is not mounted, or is not for this user: as root, mount -t tracefs nodev "
    "/sys/kernel/tracing"
)
_REMOVING = 'cat >/dev/null; echo 0 >"$1/tracing_on"; rmdir "$1"'
_numbers = count()
P = ParamSpec("P")
T = TypeVar("T")


def why_not(places: tuple[Path, ...] | None = None) -> str:
    """Why nothing can be traced here; empty where it can."""
    if (place := _place(PLACES if places is None else places)) is None:
        return NOT_MOUNTED
    lacking = [name for name in NEEDED if not (place / "events" / name / "enable").exists()]
    return f"this kernel has no tracepoint {', '.join(lacking)}" if lacking else ""


def _place(places: tuple[Path, ...]) -> Path | None:
    return next((one for one in places if os.access(one / "instances", os.W_OK)), None)


@dataclass
class TraceReader:
    """Trace of one function, from a moment after `begin` for `TRACED_S`, or until `end`.

    Attributes
    ----------
    folders : its control group.
    after_s : from when on after `begin` is traced.
    absent : what was not recorded, by observable, and why.
    """

    folders: cgroup.CgroupFolders
    after_s: float
    absent: dict[str, str] = field(default_factory=dict)
    places: tuple[Path, ...] = field(default_factory=lambda: PLACES)
    _instance: Path | None = None
    _guard: asyncio.subprocess.Process | None = None
    _tracing: asyncio.Task[None] | None = None
    _threads: tuple[int, ...] = ()
    _began_s: float = 0.0
    _ended_s: float = 0.0
    _states: ThreadStates | None = None
    _lost: int = 0

    @classmethod
    def of(cls, warmup_s: float, folders: cgroup.CgroupFolders) -> TraceReader:
        """Of a function by its control group. Raises `OSError` where it has ended."""
        cgroup.threads(folders)
        return cls(folders, warmup_s + SETTLED_S)

    async def begin(self) -> None:
        """See that it is traced in a moment. Raises nothing."""
        if why := why_not(self.places):
            self._lose(why)
            return
        place = _place(self.places)
        assert place is not None
        instance = place / "instances" / f"workbench-{os.getpid()}-{next(_numbers)}"
        try:
            self._guard = await asyncio.create_subprocess_exec(
                *("sh", "-c", _REMOVING, "sh", str(instance)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C ends this process and not what cleans up after it
            )
            await _to_its_end(_prepare, instance)
        except OSError as error:
            self._lose(f"the kernel refuses a trace: {error.strerror}")
            await self._remove(instance)
            return
        except BaseException:  # cancelled, for one
            await self._remove(instance)
            raise
        self._instance = instance
        self._tracing = asyncio.create_task(self._trace(instance))

    async def end(self) -> None:
        """Stop, read what was traced and remove it; it is gone afterwards, whatever happens."""
        instance, self._instance = self._instance, None
        if instance is None or self._tracing is None:
            return
        self._tracing.cancel()
        with suppress(asyncio.CancelledError):
            await self._tracing
        try:
            if self._began_s:
                await asyncio.to_thread(self._read, instance)
            else:
                self._lose("the load ended before its trace began")
        except (OSError, ValueError) as error:
            self._lose(f"the trace cannot be read: {error}")
        finally:
            await self._remove(instance)

    def at(self, at_s: Floats) -> dict[tuple[str, str], Floats]:
        """Sums so far at instants of the monotonic clock, by observable and detail."""
        states = self._states
        if states is None:
            return {}
        found = {(STATE_S, state): states.seconds_by(state, at_s) for state in STATES}
        for before, after in states.changes:
            found[CHANGES, f"{before} > {after}"] = states.changes_by((before, after), at_s)
        found[TRACED, ""] = states.traced_by(at_s)
        found[LOST, ""] = self._lost * (at_s >= states.end_s).astype(float)
        return {key: sums for key, sums in found.items() if sums.any() or key[0] in (TRACED, LOST)}

    async def _trace(self, instance: Path) -> None:
        await asyncio.sleep(self.after_s)
        try:
            self._threads = cgroup.threads(self.folders)
            if not 0 < len(self._threads) <= MOST_THREADS:
                self._lose(f"it has {len(self._threads)} threads; up to {MOST_THREADS} are traced")
                return
            self._began_s = await _to_its_end(_start, instance, self._threads)
            await asyncio.sleep(TRACED_S)
        except OSError as error:
            self._lose(f"the kernel refuses to trace its threads: {error.strerror}")
        finally:
            self._ended_s = time.monotonic()
            with suppress(OSError):
                _stop(instance)

    def _read(self, instance: Path) -> None:
        events: list[TraceEvent] = []
        end_s = self._ended_s
        with (instance / "trace").open(errors="replace") as lines:
            for event in trace_events(lines):
                events.append(event)
                if len(events) == MOST_EVENTS:
                    end_s = event.at_s
                    break
        full = {core: lost for core, lost in _dropped(instance).items() if lost}
        last_s = {event.core: event.at_s for event in events}
        end_s = min([end_s, *(last_s.get(core, self._began_s) for core in full)])
        self._lost = sum(full.values())
        self._states = thread_states(
            events, self._threads, self._began_s, end_s, platform.machine()
        )
        if not self._states.threads:
            self._states = None
            self._lose("none of its threads did anything while it was traced")

    async def _remove(self, instance: Path) -> None:
        """By its guard, so that it is the same way for every end."""
        guard, self._guard = self._guard, None
        if guard is None:
            return
        assert guard.stdin is not None
        guard.stdin.close()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await guard.wait()
        except TimeoutError:
            signal_child(guard)
            await guard.wait()
        with suppress(OSError):
            await asyncio.to_thread(instance.rmdir)

    def _lose(self, why: str) -> None:
        for name in (STATE_S, CHANGES, TRACED, LOST):
            self.absent.setdefault(name, why)


async def _to_its_end(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Do it in a thread, and go on once that has ended, though this is cancelled meanwhile: it
    would write to an instance that is being removed."""
    doing = asyncio.ensure_future(asyncio.to_thread(work, *given, **named))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        while not doing.done():
            with suppress(asyncio.CancelledError):  # a second one does not end it either
                await asyncio.wait((doing,))
        doing.exception()  # of no interest any more
        raise


def _prepare(instance: Path) -> None:
    """An instance that traces nothing yet; those of dead processes go. Raises `OSError`."""
    for left in instance.parent.glob("workbench-*-*"):
        if not (PROC / left.name.split("-")[1]).exists():  # its guard was killed, too
            with suppress(OSError):
                left.rmdir()
    instance.mkdir()
    for name, value in (
        ("tracing_on", "0"),
        ("trace_clock", "mono"),
        ("buffer_size_kb", str(min(MOST_KIB_A_CORE, MOST_KIB // (os.cpu_count() or 1)))),
        ("options/overwrite", "0"),
        ("options/event-fork", "1"),
    ):
        (instance / name).write_text(value)


def _start(instance: Path, threads: tuple[int, ...]) -> float:
    """Trace these threads from now on, which is when on its clock. Raises `OSError`."""
    (instance / "set_event_pid").write_text(" ".join(map(str, threads)))
    for name in EVENTS:
        enable = instance / "events" / name / "enable"
        if name in NEEDED or enable.exists():
            enable.write_text("1")
    began_s = time.monotonic()
    (instance / "tracing_on").write_text("1")
    return began_s


def _stop(instance: Path) -> None:
    (instance / "tracing_on").write_text("0")
    (instance / "events" / "enable").write_text("0")


def _dropped(instance: Path) -> dict[int, int]:
    """Events that found no room, by core."""
    found = {}
    for file in (instance / "per_cpu").glob("cpu*/stats"):
        lines = file.read_text().splitlines()
        known = dict(line.partition(":")[::2] for line in lines)
        lost = int(known.get("dropped events", 0)) + int(known.get("overrun", 0))
        found[int(file.parent.name.removeprefix("cpu"))] = lost
    return found
