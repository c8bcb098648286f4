"""What threads did, from a trace: states, the time in each, changes; also of virtual machines."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.measuring.thread_states import (
    COMPUTING,
    IDLE,
    INTERRUPT,
    LOCK,
    MEMORY,
    PEER_OR_DISK,
    SOFTIRQ,
    STATES,
    SYSTEM_CALL,
    THROTTLED,
    UNKNOWN,
    WAITING,
    ThreadStates,
    thread_states,
    trace_events,
)

POLL, FUTEX, READ, UNHEARD_OF = 7, 202, 0, 9999


def line(at_s: float, thread: int, what: str, who: str = "haproxy") -> str:
    return f"         {who}-{thread}   [001] d..2.   {at_s:.6f}: {what}"


def switch(at_s: float, left: int, state: str, came: int) -> str:
    return line(
        at_s,
        left,
        f"sched_switch: prev_comm=a b prev_pid={left} prev_prio=120 prev_state={state} ==> "
        f"next_comm=c d next_pid={came} next_prio=120",
    )


def woken(at_s: float, thread: int) -> str:
    return line(at_s, 99, f"sched_wakeup: comm=haproxy pid={thread} prio=120 target_cpu=001")


def enter(at_s: float, thread: int, call: int) -> str:
    return line(at_s, thread, f"sys_enter: NR {call} (5, 7ffd, 0, 0, 0, 0)")


def leave(at_s: float, thread: int, call: int) -> str:
    return line(at_s, thread, f"sys_exit: NR {call} = 0")


def followed(lines: list[str], *threads: int, begin_s: float = 0.0, end_s: float = 10.0):
    return thread_states(trace_events(lines), threads or (1,), begin_s, end_s)


def times(found: ThreadStates) -> dict[str, float]:
    return {state: pytest.approx(s, abs=1e-5) for state in STATES if (s := found.seconds(state))}


REQUEST = [
    switch(1.0, 0, "R", 1),  # nobody woke it: it could go on since the trace began
    leave(1.5, 1, READ),
    enter(2.0, 1, POLL),
    switch(2.25, 1, "S", 0),
    woken(5.0, 1),
    switch(5.5, 7, "S", 1),
    leave(5.75, 1, POLL),
    switch(7.0, 1, "R", 7),  # somebody else has its turn
    switch(7.5, 7, "S", 1),
    switch(8.0, 1, "R", 0),  # nobody has: the quota
    switch(9.0, 0, "R", 1),
]


def test_the_time_of_a_thread_is_told_apart() -> None:
    found = followed(REQUEST)
    assert times(found) == {
        # 1.0 to 1.5 it returns from a call that nobody saw it enter, which could not be known then
        COMPUTING: 0.5 + 0.5 + 1.25 + 0.5 + 1.0,
        SYSTEM_CALL: 0.25 + 0.25,
        WAITING: 1.0 + 0.5 + 0.5,
        THROTTLED: 1.0,
        IDLE: 2.75,
    }
    assert found.threads == 1
    assert list(found.changes[COMPUTING, WAITING]) == [7.0]
    assert list(found.changes[COMPUTING, THROTTLED]) == [8.0]
    assert list(found.changes[IDLE, WAITING]) == [5.0]


@pytest.mark.parametrize(
    ("call", "state"),
    [(POLL, IDLE), (FUTEX, LOCK), (READ, PEER_OR_DISK), (UNHEARD_OF, PEER_OR_DISK)],
)
def test_what_a_thread_slept_in_is_known_by_its_call(call: int, state: str) -> None:
    seen = followed([enter(1, 1, call), switch(2, 1, "S", 0), woken(4, 1), switch(4, 0, "R", 1)])
    assert seen.seconds(state) == pytest.approx(2.0)


@pytest.mark.parametrize(("call", "state"), [(POLL, IDLE), (READ, PEER_OR_DISK)])
def test_a_call_that_was_entered_before_the_trace_is_known_when_it_returns(
    call: int, state: str
) -> None:
    found = followed([woken(3.0, 1), switch(3.5, 0, "R", 1), leave(4.0, 1, call)])
    assert times(found) == {
        state: 3.0,
        WAITING: 0.5,
        SYSTEM_CALL: 0.5,
        COMPUTING: 6.0,
    }


def test_sleep_that_no_call_explains_is_not_assigned() -> None:
    found = followed([switch(2.0, 1, "S", 0)])
    assert found.seconds(UNKNOWN) == pytest.approx(10.0)


def test_work_of_the_kernel_in_a_threads_turn_is_not_its_own() -> None:
    found = followed(
        [
            enter(1.0, 1, READ),
            line(2.0, 1, "irq_handler_entry: irq=25 name=virtio0-input"),
            line(2.5, 1, "irq_handler_exit: irq=25 ret=handled"),
            line(2.5, 1, "softirq_entry: vec=3 [action=NET_RX]"),
            line(4.0, 1, "softirq_exit: vec=3 [action=NET_RX]"),
            leave(5.0, 1, READ),
        ]
    )
    assert times(found) == {
        COMPUTING: 1.0 + 5.0,
        SYSTEM_CALL: 1.0 + 1.0,
        INTERRUPT: 0.5,
        SOFTIRQ: 1.5,
    }


def test_threads_that_it_starts_are_followed_and_others_are_not() -> None:
    fork = "sched_process_fork: comm=haproxy pid=1 child_comm=haproxy child_pid=2"
    found = followed(
        [
            enter(1.0, 1, 56),
            line(2.0, 1, fork),
            switch(3.0, 1, "S", 2),
            line(3.5, 8, fork.replace("child_pid=2", "child_pid=3")),
            switch(4.0, 2, "S", 3),
            enter(5.0, 3, READ),
        ]
    )
    assert found.threads == 2
    assert found.seconds(WAITING) == pytest.approx(1.0)  # of the new one, until its first turn
    assert found.seconds(COMPUTING) == pytest.approx(1.0 + 1.0)


def test_sums_until_an_instant_are_those_of_a_trace_that_ends_there() -> None:
    found = followed(REQUEST)
    at_s = np.array([0.0, 1.25, 2.5, 6.0, 7.25, 8.5, 10.0, 12.0])
    for i, until in enumerate(at_s[:-1]):
        before = [one for one in REQUEST if float(one.split()[3][:-1]) <= until]
        short = followed(before, end_s=until)
        for state in (WAITING, THROTTLED):
            assert found.seconds_by(state, at_s)[i] == pytest.approx(short.seconds(state))
    for state in STATES:
        assert found.seconds_by(state, at_s)[-1] == pytest.approx(found.seconds(state))
    assert list(found.traced_by(at_s)) == [*at_s[:-1], 10.0]
    assert list(found.changes_by((IDLE, WAITING), at_s)) == [0, 0, 0, 1, 1, 1, 1, 1]


REPORT = """\
cpus=2
 qemu-system-x86-4242  [001]  100.000000: kvm_entry:            vcpu 0, rip 0xffffffff810
 qemu-system-x86-4242  [001]  100.400000: kvm_exit:             reason EPT_VIOLATION rip 0xfff info 184 0
 qemu-system-x86-4242  [001]  100.500000: kvm_entry:            vcpu 0, rip 0xffffffff810
 qemu-system-x86-4242  [001]  100.600000: kvm_exit:             reason IO_INSTRUCTION rip 0xfff info c
 qemu-system-x86-4242  [001]  100.650000: kvm_entry:            vcpu 0, rip 0xffffffff810
 qemu-system-x86-4242  [001]  100.700000: kvm_exit:             reason EXTERNAL_INTERRUPT rip 0xfff
 qemu-system-x86-4242  [001]  100.710000: kvm_entry:            vcpu 0, rip 0xffffffff810
 qemu-system-x86-4242  [001]  100.800000: kvm_exit:             reason HLT rip 0xffffffff info 0 0
 qemu-system-x86-4242  [001]  100.800000: sched_switch:         qemu-system-x86:4242 [120] S ==> swapper/1:0 [120]
          <idle>-0     [001]  101.000000: sched_wakeup:         qemu-system-x86:4242 [120] success=1 CPU:001
          <idle>-0     [001]  101.100000: sched_switch:         swapper/1:0 [120] R ==> qemu-system-x86:4242 [120]
 qemu-system-x86-4242  [001]  101.200000: kvm_entry:            vcpu 0, rip 0xffffffff810
 qemu-system-x86-4242  [001]  101.300000: kvm_exit:             reason NOBODY_KNOWS rip 0xfff
"""  # noqa: E501


def test_a_virtual_machine_in_the_form_of_trace_cmd_report() -> None:
    """Paper E, Table 2. No KVM guest runs on our hosts: the lines are made by hand."""
    found = thread_states(trace_events(REPORT.splitlines()), {4242}, 100.0, 101.4)
    assert times(found) == {
        COMPUTING: 0.4 + 0.1 + 0.05 + 0.09 + 0.1,
        MEMORY: 0.1,
        PEER_OR_DISK: 0.05,
        INTERRUPT: 0.01,
        IDLE: 0.2,
        WAITING: 0.1,
        SYSTEM_CALL: 0.1 + 0.1,  # back in the host's kernel; an exit that no table knows
    }


@given(st.lists(st.one_of(st.text(max_size=60), st.sampled_from([*REQUEST, *REPORT.splitlines()]))))
def test_every_instant_of_every_thread_is_in_one_state_whatever_the_lines(lines: list[str]) -> None:
    events = sorted(trace_events(lines), key=lambda event: event.at_s)
    found = thread_states(events, {1, 2}, 0.0, 10.0)
    assert sum(map(found.seconds, STATES)) == pytest.approx(20.0)
