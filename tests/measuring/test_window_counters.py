"""Windows and their evidence as rows for models of counters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from session_making import measurement

from workbench.domain.observations import Observation
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Finding, Sample, UsageSecond, Window
from workbench.measuring.histograms import build
from workbench.measuring.window_counters import (
    CountedWindow,
    counted_windows,
    hardly_counted,
    kpi_of,
)

TAKEN = measurement("web", Configuration({"web.vcpu": 0.5}, {}), 50.0).sample
LATENCIES = build(np.full(100, 0.02), np.full(10, 1.0))
WINDOW = Window(1.0, 2.0, 110, 100, 0, 10, LATENCIES, LATENCIES)
SEEN = (
    Observation(0, "web", "voluntary_switches", 50.0),
    Observation(0, "web", "threads", 4.0),
    Observation(0, "web", "time_wait", 900.0),
    Observation(0, "web", "retransmitted", None, "Permission denied"),
    Observation(0, "host", "softirqs", 30.0, "NET_RX"),
    Observation(0, "host", "softirqs", 800.0, "RCU"),
    Observation(0, "host", "rx_packets", 1.0),
    Observation(0, "source", "rx_packets", 7.0),
)
SERIES = tuple(UsageSecond(float(s), "web", c, 0.5, 0, 0, 0) for s, c in enumerate((9, 0.2, 0.4)))
EXPECTED = {
    "voluntary_switches": 25.0, "threads": 4.0, "host softirqs NET_RX": 15.0,
    "cpu_cores": pytest.approx(0.3), "throttled_share": pytest.approx(0.5),
}  # fmt: skip


def rows(sample: Sample) -> list[CountedWindow]:
    return counted_windows(sample, (WINDOW,), SERIES, SEEN, "web", "throughput_rps")


def test_amounts_are_per_second_levels_are_not_and_what_is_missing_is_not_zero() -> None:
    (row,) = rows(TAKEN)
    assert row.kpi == 50.0
    assert dict(row.counted) == EXPECTED


def test_a_busy_host_spoils_no_row_and_a_saturated_source_does() -> None:
    spoiled = replace(TAKEN, valid=False, findings=(Finding("host_saturated", 1, 0.85, ""),))
    assert len(rows(spoiled)) == 1
    source = replace(spoiled, findings=(Finding("source_saturated", 1, 0.85, ""),))
    assert rows(source) == []


def test_passes_of_a_configuration_are_experiments_of_their_own() -> None:
    first, second = rows(TAKEN), rows(replace(TAKEN, block=1))
    assert first[0].experiment != second[0].experiment


def test_percentiles_count_whom_nobody_answered_and_need_requests() -> None:
    assert kpi_of(WINDOW, "p50_ms") == pytest.approx(20.0, rel=0.02)
    assert kpi_of(WINDOW, "p95_ms") == pytest.approx(1000.0, rel=0.02)
    assert kpi_of(replace(WINDOW, planned=5), "p95_ms") is None
    assert kpi_of(replace(WINDOW, completed=0), "throughput_rps") is None
    assert kpi_of(WINDOW, "loss_pct") is None


def test_single_events_teach_nothing_and_little_time_does() -> None:
    def window(again: float) -> CountedWindow:
        counted = {
            "retransmitted": again, "cpu_wait_s": 0.001, "threads": 1.0, "cpu_cores": 0.1,
            "rx_packets": 500.0, "host softirqs NET_TX": 0.5,
        }  # fmt: skip
        return CountedWindow("a", "s", 2.0, 1.0, counted)

    assert hardly_counted([window(0.0), window(2.5)]) == {"retransmitted", "host softirqs NET_TX"}
    assert hardly_counted([window(0.0), window(3.0)]) == {"host softirqs NET_TX"}
    assert hardly_counted([]) == frozenset()
