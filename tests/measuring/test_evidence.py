"""From readings to evidence by window: amounts, levels, what was lost, what is absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from workbench.domain.observations import OBSERVABLES, Observation
from workbench.measuring.evidence import BUSIEST_THREADS, observations
from workbench.measuring.records import Counters, Drive, ObservedKey, RequestRecords


@dataclass(frozen=True)
class Window:
    drive: Drive
    start_s: float
    end_s: float


def drive(*instants: Mapping[ObservedKey, float]) -> Drive:
    none = np.zeros(0)
    nothing = none.astype(np.int64)
    return Drive(
        0.0,
        float(len(instants) - 1),
        RequestRecords(none, none, none, none, nothing, nothing),
        tuple(Counters(float(i), {}, 0.0, observed=seen) for i, seen in enumerate(instants)),
        generator="",
        kpi_definition="none",
        connections=0,
        allotted_cores={},
        threads={},
    )


ACKS, HELD = ("haproxy", "delayed_acks", ""), ("haproxy", "time_wait", "")


def test_amounts_are_what_came_in_the_window_and_levels_their_mean() -> None:
    seen = drive(*({ACKS: 10.0 * i, HELD: 4.0 * i} for i in range(5)))
    assert observations([Window(seen, 1.5, 3.0)]) == (
        Observation(0, "haproxy", "delayed_acks", 15.0),
        Observation(0, "haproxy", "time_wait", 10.0),
    )


def test_a_counter_that_goes_back_or_is_lost_has_no_value() -> None:
    seen = drive({ACKS: 5.0, HELD: 1.0}, {ACKS: 3.0, HELD: 1.0}, {ACKS: 9.0})
    back, lost = observations([Window(seen, 0.0, 2.0)])
    assert (back.value, back.detail) == (None, "it went back from 5 to 3")
    assert (lost.value, lost.detail) == (None, "it could not be read to the end")


def test_a_thread_that_begins_in_mid_drive_had_counted_nothing() -> None:
    keys = [("ha", "thread_cpu_s", f"thread {n}") for n in range(1, BUSIEST_THREADS + 3)]
    seen = drive({keys[0]: 1.0}, {keys[0]: 1.5}, {key: 2.0 + n for n, key in enumerate(keys)})
    found = observations([Window(seen, 0.0, 2.0)])
    assert [one.detail for one in found] == [f"thread {n}" for n in (6, 5, 4, 3)], "the busiest"
    assert found[0].value == 7.0


def test_what_is_absent_says_why_and_what_stands_holds_for_every_window() -> None:
    seen = replace(
        drive({ACKS: 0.0}, {ACKS: 1.0}, {ACKS: 2.0}),
        standing={("host", "burner_cores", "container 0a1b (stress)"): 1.25},
        absent={("haproxy", "disk_bytes"): "no blkio", ("haproxy", "delayed_acks"): "not said"},
    )
    found = observations([Window(seen, 0.0, 1.0), Window(seen, 1.0, 2.0)])
    assert [one.window for one in found] == [0, 0, 0, 1, 1, 1]
    assert found[:3] == (
        Observation(0, "haproxy", "delayed_acks", 1.0),
        Observation(0, "host", "burner_cores", 1.25, "container 0a1b (stress)"),
        Observation(0, "haproxy", "disk_bytes", None, "no blkio"),
    )


def test_a_lab_that_collects_nothing_leaves_nothing() -> None:
    assert observations([Window(drive({}, {}), 0.0, 1.0)]) == ()


def test_every_observable_says_what_it_is_and_what_it_takes() -> None:
    for name, one in OBSERVABLES.items():
        assert one.name == name
        assert all((one.unit, one.says, one.takes))
