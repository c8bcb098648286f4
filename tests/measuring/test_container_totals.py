"""Counters over a whole session: they only grow, and what nobody counts is not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from workbench.measuring.container_totals import ContainerTotals
from workbench.measuring.records import (
    ComponentCounters,
    Counters,
    Drive,
    ObservedKey,
    RequestRecords,
)

WEB = ("web", "web")


def drive(
    *instants: Mapping[str, ComponentCounters], seen: tuple[Mapping[ObservedKey, float], ...] = ()
) -> Drive:
    none = np.zeros(0)
    nothing = none.astype(np.int64)
    observed = seen or ({},) * len(instants)
    return Drive(
        0.0,
        float(len(instants)),
        RequestRecords(none, none, none, none, nothing, nothing),
        tuple(
            Counters(float(i), components, 0.0, observed=observed[i])
            for i, components in enumerate(instants)
        ),
        generator="",
        kpi_definition="none",
        connections=0,
        allotted_cores={},
        threads={},
    )


def test_drives_are_added_though_each_deployment_counts_anew() -> None:
    totals = ContainerTotals()
    limited = ComponentCounters(5.0, 100, 40, 2.0, 1e6, 10.0, 20.0, 1.0, 2.0)
    later = ComponentCounters(8.0, 130, 50, 2.5, 2e6, 15.0, 26.0, 2.0, 3.0)
    totals.add("web", drive({"web": limited}, {"web": later}))
    fresh = ComponentCounters(0.5, 10, 0, 0.0, 3e6, 1.0, 1.0, 1.0, 1.0)
    totals.add("web", drive({"web": fresh}, {"web": replace(fresh, cpu_s=1.5, periods=20)}))
    assert totals.figures()[WEB] == {
        "cpu_s": 4.0,
        "periods": 40.0,
        "throttled_periods": 10.0,
        "throttled_s": 0.5,
        "memory_bytes": 3e6,
        "rx_bytes": 5.0,
        "tx_bytes": 6.0,
        "rx_packets": 1.0,
        "tx_packets": 1.0,
    }


def test_a_counter_that_began_anew_counts_from_nothing() -> None:
    totals = ContainerTotals()
    totals.add("web", drive(*({"web": ComponentCounters(at)} for at in (7.0, 9.0, 1.0, 2.0))))
    assert totals.figures()[WEB] == {"cpu_s": 4.0}


def test_what_nobody_counts_is_not_there() -> None:
    totals = ContainerTotals()
    one = ComponentCounters(1.0, rx_bytes=5.0)
    key = ("web", "pressure_cpu_s", "")
    counted = drive(
        {"web": one, "host": one, "workbench": one},
        {"web": replace(one, cpu_s=2.0), "host": one, "workbench": one},
        seen=({key: 3.0}, {key: 3.5}),
    )
    totals.add("web", counted)
    assert totals.figures() == {
        WEB: {"cpu_s": 1.0, "rx_bytes": 0.0, "tx_bytes": 0.0, "pressure_cpu_s": 0.5}
    }
    elsewhere = ContainerTotals()
    absent = {("web", "pressure_cpu_s"): "no PSI", ("web", "rx_bytes"): "shared"}
    elsewhere.add("web", replace(counted, absent=absent))
    assert elsewhere.figures() == {WEB: {"cpu_s": 1.0, "tx_bytes": 0.0}}


def test_levels_are_those_of_the_target_that_is_loaded() -> None:
    totals = ContainerTotals()
    one = ComponentCounters(1.0, memory_bytes=4e6)
    totals.add("web", drive({"web": one}, {"web": one}))
    totals.add("other", drive({"fw": one}, {"fw": one}))
    assert totals.figures() == {
        WEB: {"cpu_s": 0.0},
        ("other", "fw"): {"cpu_s": 0.0, "memory_bytes": 4e6},
    }
