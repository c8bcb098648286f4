"""An alarm for chains that leave their model, at the stated rate of false ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from synthetic_chain import CHAIN, KPI_MAX, sample

from workbench.chains.drift import drift, threshold
from workbench.domain.errors import DataError
from workbench.domain.retraining import Drift
from workbench.domain.samples import Sample
from workbench.models.forecast import Forecast, Points


class Model:
    kpi = "mean_ms"

    def forecast(self, points: Points) -> Forecast:
        mean = np.full(len(points), math.log(100.0))
        half = 1.96 * 0.03
        return Forecast(mean, mean - half, mean + half, np.zeros(len(points), dtype=bool))


def later(factor: float, count: int, seed: int = 0, start: int = 0) -> list[Sample]:
    random = np.random.default_rng(seed)
    scatter = 0.05 * random.standard_t(4, count) / math.sqrt(2.0)
    return [
        sample(8.0, 100.0 * factor * math.exp(e), repetition=start + k, at=float(start + k))
        for k, e in enumerate(scatter)
    ]


def watched(samples: list[Sample], **options: float) -> Drift:
    return drift(CHAIN, samples, Model(), kpi_max=KPI_MAX, **options)


def test_a_chain_that_becomes_slower_raises_the_alarm_soon() -> None:
    for seed in range(20):
        found = watched(later(1.0, 30, seed) + later(1.15, 30, seed + 100, start=30))
        assert found.direction == "above"
        assert 30 < found.samples <= 45
        assert found.shift > 0.5
        assert "times what it says" in found.note


def test_one_that_becomes_faster_does_too() -> None:
    found = watched(later(1.0, 10) + later(0.8, 10, start=10))
    assert found.direction == "below"
    assert found.shift < 0.0


def test_false_alarms_are_no_more_often_than_stated() -> None:
    """40 runs of 250 samples: 20 alarms in 10,000 samples are stated."""
    alarms = sum(
        bool(watched(later(1.0, 250, seed), samples_per_false_alarm=500.0).direction)
        for seed in range(40)
    )
    assert alarms <= 20


def test_the_threshold_is_that_of_the_tables() -> None:
    """A two-sided CUSUM with allowance 0.5 and h = 5 runs 465 samples (Montgomery, Table 9.3)."""
    assert threshold(465.0) == pytest.approx(5.0, abs=0.05)
    assert threshold(5_000.0) > threshold(500.0)


def test_a_single_stall_is_no_drift() -> None:
    samples = later(1.0, 20)
    samples[10] = sample(8.0, 2_000.0, repetition=10, at=10.0)
    found = watched(samples)
    assert found.sample_id is None
    assert found.samples == 20
    assert "agree" in found.note


def test_order_is_that_of_the_clock_and_overload_counts_as_its_bound() -> None:
    steady, slow = later(1.0, 20), later(1.3, 10, start=20)
    assert watched(slow + steady) == watched(steady + slow)
    overloaded = [
        sample(8.0, 900.0, repetition=20 + k, at=20.0 + k, overloaded=True) for k in range(4)
    ]
    assert watched(steady + overloaded).direction == "above"
    low = [sample(8.0, 5.0, repetition=20 + k, at=20.0 + k, overloaded=True) for k in range(9)]
    assert watched(steady + low).samples == 20, "at least 5 ms says nothing"


def test_nothing_to_watch_is_named() -> None:
    with pytest.raises(DataError, match="no sample says how mean_ms is now"):
        watched([sample(8.0, 100.0, reason="errors")])
