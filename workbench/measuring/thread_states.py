"""What the threads of a function did, from a trace of the kernel: states, time in each, changes.

The behaviour analysis of paper E (5.2, 6.3, Table 2): its categories are for virtual machines, and
their exits give the same states as a process has here. Lines are those of a tracing instance, or of
`trace-cmd report`; both are text, and whatever is no event is left out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from workbench.measuring.records import Floats

COMPUTING, SYSTEM_CALL = "computing", "system call"
SOFTIRQ, INTERRUPT = "softirq", "interrupt"
MEMORY = "memory access"
WAITING, THROTTLED = "waiting for CPU", "throttled"
PEER_OR_DISK, LOCK, IDLE = "waiting for a peer or a disk", "waiting for a lock", "idle"
UNKNOWN = "not assigned"
STATES = (
    COMPUTING, SYSTEM_CALL, SOFTIRQ, INTERRUPT, MEMORY, WAITING, THROTTLED, PEER_OR_DISK, LOCK,
    IDLE, UNKNOWN,
)  # fmt: skip
"""Every instant of every traced thread is in one of them.

`softirq` and `interrupt`: work of the kernel for anybody, in this thread's turn. `throttled`: taken
off although it could go on, and its core was left idle. `memory access`: of a virtual machine, an
exit that the hypervisor must emulate. `not assigned`: what the trace does not say.
"""
ON_CORE = (COMPUTING, SYSTEM_CALL, SOFTIRQ, INTERRUPT, MEMORY)

IDLE_CALLS: Mapping[str, frozenset[int]] = {
    "x86_64": frozenset({7, 23, 34, 35, 43, 61, 128, 130, 208, 230, 232, 247, 270, 271, 281, 288,
                         426, 441}),
    "aarch64": frozenset({4, 22, 72, 73, 95, 101, 115, 133, 137, 202, 242, 260, 426, 441}),
}  # fmt: skip
"""By machine, system calls in which a thread waits for work: poll, select, epoll, accept, sleep,
wait, io_uring (numbers of the kernel's tables)."""
LOCK_CALLS: Mapping[str, frozenset[int]] = {
    "x86_64": frozenset({202, 449}),
    "aarch64": frozenset({98, 449}),
}
"""futex, futex_waitv."""

EXITS: Mapping[str, str] = {
    **dict.fromkeys(
        ("EPT_VIOLATION", "EPT_MISCONFIG", "MSR_READ", "MSR_WRITE", "APIC_ACCESS", "APIC_WRITE",
         "npf", "msr"),
        MEMORY,
    ),
    **dict.fromkeys(
        ("PAUSE_INSTRUCTION", "EXTERNAL_INTERRUPT", "PENDING_INTERRUPT", "INTERRUPT_WINDOW",
         "EXCEPTION_NMI", "EOI_INDUCED", "pause", "interrupt", "vintr"),
        INTERRUPT,
    ),
    "IO_INSTRUCTION": PEER_OR_DISK,
    "io": PEER_OR_DISK,
    "HLT": IDLE,
    "hlt": IDLE,
}  # fmt: skip
"""Reasons for which a virtual machine leaves its core (Intel's names, and AMD's), after Table 2 of
paper E."""

_LINE = re.compile(
    r"^\s*(.{1,16})-(\d+)\s+\[(\d+)\]\s+(?:[^\s:]{3,8}\s+)?(\d+\.\d+):\s+(\w+):\s*(.*)$"
)
_SWITCH = re.compile(
    r"prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> next_comm=.* next_pid=(\d+) next_prio="
)
_SWITCH_REPORT = re.compile(r":(\d+) \[-?\d+\] (\S+) ==> .*:(\d+) \[-?\d+\]")
_WOKEN = re.compile(r" pid=(\d+) prio=-?\d+ ")
_WOKEN_REPORT = re.compile(r":(\d+) \[-?\d+\]")
_FORKED = re.compile(r" child_pid=(\d+)")
_CALL = re.compile(r"NR (-?\d+)")
_EXIT = re.compile(r"reason (\w+)")
LONGEST_LINE = 1000
_IN_TURN: Mapping[str, str] = {
    "sys_enter": COMPUTING,
    "sys_exit": SYSTEM_CALL,
    "kvm_exit": COMPUTING,
    "kvm_entry": SYSTEM_CALL,
    **dict.fromkeys(
        ("softirq_entry", "softirq_exit", "irq_handler_entry", "irq_handler_exit"), UNKNOWN
    ),
}
"""Events of a thread's own turn, and what it did before where such a one is its first."""


@dataclass(frozen=True)
class TraceEvent:
    """One event: in which thread's turn, on which core, when (s, the trace's clock)."""

    thread: int
    core: int
    at_s: float
    name: str
    text: str


def trace_events(lines: Iterable[str]) -> Iterator[TraceEvent]:
    """What of these lines is an event, in their order."""
    for line in lines:
        found = _LINE.match(line[:LONGEST_LINE])
        if found is not None:
            _, thread, core, at_s, name, text = found.groups()
            yield TraceEvent(int(thread), int(core), float(at_s), name, text)


@dataclass
class _Thread:
    """One thread: what it does now and since when; how it was, until now.

    Attributes
    ----------
    call : the system call that it is in; None: in none, or not known.
    left_guest : what its virtual machine left the core for, as a state; None while it is inside.
    within : interrupts and softirqs of its turn, the outermost first.
    unresolved : it slept in a call that was entered unseen; the next return says in which.
    """

    since_s: float
    state: str = UNKNOWN
    call: int | None = None
    left_guest: str | None = None
    within: list[str] = field(default_factory=list)
    running: bool = False
    seen: bool = False
    unresolved: bool = False
    past: list[tuple[float, float, str]] = field(default_factory=list)

    def turn(self, state: str, at_s: float) -> None:
        """It goes over into a state; of one that it is in already nothing is noted."""
        self.seen = True
        if state == self.state:
            return
        if at_s > self.since_s:
            self.past.append((self.since_s, at_s, self.state))
        self.state, self.since_s = state, max(at_s, self.since_s)


@dataclass(frozen=True)
class ThreadStates:
    """What all threads of a function did while they were traced.

    Attributes
    ----------
    begin_s, end_s : of the trace, on its clock.
    threads : how many were seen at all.
    spans : by state, shape (n, 2): from when to when a thread was in it, by rising begin.
    changes : by state and the next one, the instants, rising.
    """

    begin_s: float
    end_s: float
    threads: int
    spans: Mapping[str, Floats]
    changes: Mapping[tuple[str, str], Floats]

    def seconds(self, state: str) -> float:
        spans = self.spans.get(state)
        return 0.0 if spans is None else float((spans[:, 1] - spans[:, 0]).sum())

    def seconds_by(self, state: str, at_s: Floats) -> Floats:
        """Time in a state until each instant, summed over the threads."""
        spans = self.spans.get(state)
        if spans is None:
            return np.zeros(at_s.shape)
        return _passed(at_s, spans[:, 0]) - _passed(at_s, np.sort(spans[:, 1]))

    def changes_by(self, change: tuple[str, str], at_s: Floats) -> Floats:
        """How often it came until each instant."""
        return np.searchsorted(self.changes[change], at_s, side="right").astype(np.float64)

    def traced_by(self, at_s: Floats) -> Floats:
        """How long was traced until each instant."""
        return np.clip(at_s - self.begin_s, 0.0, self.end_s - self.begin_s)


def _passed(at_s: Floats, instants: Floats) -> Floats:
    """Time since all instants before each of `at_s`, added up; `instants` rise."""
    before = np.searchsorted(instants, at_s, side="right")
    sums = np.concatenate(([0.0], np.cumsum(instants - instants[0])))
    passed: Floats = before * (at_s - instants[0]) - sums[before]
    return passed


def thread_states(
    events: Iterable[TraceEvent],
    threads: Collection[int],
    begin_s: float,
    end_s: float,
    machine: str = "x86_64",
) -> ThreadStates:
    """Follow the threads of a function, and those that they start, through a trace.

    Parameters
    ----------
    events : by rising time. Those of other threads count only where they wake one of ours.
    threads : ids of those that there were when it began.
    begin_s, end_s : what was traced, on the trace's clock; events outside are left out.
    machine : whose numbers of system calls these are; of one that is not known, who sleeps waits
        for a peer or a disk.
    """
    follower = _Follower({one: _Thread(begin_s) for one in threads}, machine)
    for event in events:
        if begin_s <= event.at_s <= end_s:
            follower.take(event)
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    changes: dict[tuple[str, str], list[float]] = defaultdict(list)
    for thread in follower.threads.values():
        if end_s > thread.since_s:
            thread.past.append((thread.since_s, end_s, thread.state))
        for first, last, state in thread.past:
            spans[state].append((first, last))
        for (_, _, before), (at_s, _, after) in pairwise(thread.past):
            if before != after:
                changes[before, after].append(at_s)
    return ThreadStates(
        begin_s,
        end_s,
        sum(thread.seen for thread in follower.threads.values()),
        {state: np.array(sorted(found)) for state, found in spans.items()},
        {change: np.array(sorted(found)) for change, found in changes.items()},
    )


@dataclass
class _Follower:
    threads: dict[int, _Thread]
    machine: str

    def take(self, event: TraceEvent) -> None:
        if event.name == "sched_switch":
            self._switch(event)
        elif event.name == "sched_wakeup":
            found = _WOKEN.search(event.text) or _WOKEN_REPORT.search(event.text)
            if found and (thread := self.threads.get(int(found[1]))) and not thread.running:
                thread.unresolved |= not thread.seen
                thread.turn(WAITING, event.at_s)
        elif event.name == "sched_process_fork":
            if event.thread in self.threads and (found := _FORKED.search(event.text)):
                self.threads[int(found[1])] = _Thread(event.at_s, WAITING, seen=True)
        elif thread := self.threads.get(event.thread):
            self._in_turn(thread, event)

    def _switch(self, event: TraceEvent) -> None:
        found = _SWITCH.search(event.text) or _SWITCH_REPORT.search(event.text)
        if found is None:
            return
        left, came = self.threads.get(int(found[1])), self.threads.get(int(found[3]))
        if left is not None:
            left.running = False
            left.within.clear()
            left.turn(self._left(left, found[2], int(found[3])), event.at_s)
        if came is not None:
            if not came.seen:  # nobody woke it since the trace began
                came.state = WAITING
            came.running = True
            in_call = came.call is not None or came.unresolved or came.left_guest is not None
            came.turn(SYSTEM_CALL if in_call else COMPUTING, event.at_s)

    def _left(self, thread: _Thread, kernel_state: str, after: int) -> str:
        """What it does from now on: `after` is who has its core, 0 for nobody."""
        if kernel_state.startswith("R"):
            return WAITING if after else THROTTLED
        if kernel_state.startswith(("X", "Z", "I")):
            return IDLE
        if kernel_state.startswith("D"):
            return PEER_OR_DISK
        if thread.left_guest == IDLE:
            return IDLE
        thread.unresolved = thread.call is None
        return UNKNOWN if thread.call is None else self._asleep(thread.call)

    def _asleep(self, call: int) -> str:
        if call in IDLE_CALLS.get(self.machine, ()):
            return IDLE
        return LOCK if call in LOCK_CALLS.get(self.machine, ()) else PEER_OR_DISK

    def _in_turn(self, thread: _Thread, event: TraceEvent) -> None:
        """Something that a thread does, or that is done in its turn."""
        name, at_s = event.name, event.at_s
        if name not in _IN_TURN:
            return
        if not thread.seen:  # it had its turn since the trace began
            thread.state = _IN_TURN[name]
        thread.running = thread.seen = True
        if name in ("softirq_entry", "irq_handler_entry"):
            thread.within.append(SOFTIRQ if name == "softirq_entry" else INTERRUPT)
        elif name in ("softirq_exit", "irq_handler_exit"):
            del thread.within[-1:]
        elif name in ("sys_enter", "sys_exit") and (found := _CALL.search(event.text)):
            thread.call = int(found[1]) if name == "sys_enter" else None
            if name == "sys_exit" and thread.unresolved:
                self._resolve(thread, int(found[1]))
        elif name == "kvm_entry":
            thread.left_guest = None
        elif name == "kvm_exit":
            reason = _EXIT.search(event.text)
            thread.left_guest = EXITS.get(reason[1], SYSTEM_CALL) if reason else SYSTEM_CALL
        thread.turn(self._own(thread, name), at_s)

    def _own(self, thread: _Thread, name: str) -> str:
        if thread.within:
            return thread.within[-1]
        if name.startswith("kvm"):
            return thread.left_guest or COMPUTING
        return SYSTEM_CALL if thread.call is not None else COMPUTING

    def _resolve(self, thread: _Thread, call: int) -> None:
        """The call that it returns from, entered unseen, is the one that it slept in."""
        thread.unresolved = False
        for place in reversed(range(len(thread.past))):
            first, last, state = thread.past[place]
            if state == UNKNOWN:
                thread.past[place] = (first, last, self._asleep(call))
                return
