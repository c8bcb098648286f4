"""A forecast on samples: what misses it makes it less sure, up to what is known without samples."""

from __future__ import annotations

import math

import numpy as np

from workbench.chains.alignment import Measured
from workbench.chains.conditioned import ConditionedForecaster
from workbench.domain.parameters import Configuration
from workbench.models.forecast import Forecast, Points
from workbench.models.table import Table

ONE, OTHER = Configuration({"proxy.vcpu": 0.5}, {}), Configuration({"proxy.vcpu": 0.25}, {})
LOADS = (10.0, 20.0, 40.0)


class Says:
    """10 ms everywhere, with a band of that half width in logs: of ONE, and of OTHER."""

    kpi = "p95_ms"

    def __init__(self, half: float, other: float | None = None) -> None:
        self._half = {ONE: half, OTHER: half if other is None else other}

    def forecast(self, points: Points) -> Forecast:
        mean = np.full(len(points), math.log(10.0))
        half = np.array([self._half[configuration] for configuration, _ in points])
        return Forecast(mean, mean - half, mean + half, np.zeros(len(points), dtype=bool))


def resting(measured_ms: float, at_most: Says | None) -> ConditionedForecaster:
    n = len(LOADS)
    y, noise = np.full(n, math.log(measured_ms)), np.full(n, 0.05)
    table = Table(
        "chain", Says.kpi, (), np.empty((n, 0)), y, noise, np.arange(n), np.zeros(n, dtype=int),
        tuple("abc"), math.inf,
    )  # fmt: skip
    seen = Measured(table, tuple((ONE, wl) for wl in LOADS), np.full(n, np.nan), {})
    return ConditionedForecaster(Says(0.1), seen, at_most=at_most)


def upper(forecaster: ConditionedForecaster, configuration: Configuration, wl: float) -> float:
    said = forecaster.forecast([(configuration, wl)])
    return float(said.high[0] - said.mean[0])


def test_samples_far_off_leave_it_no_less_sure_than_a_chain_that_nobody_measured() -> None:
    alone, held = resting(25.0, None), resting(25.0, Says(2.0, other=0.3))
    assert upper(alone, OTHER, 400.0) > 0.5
    assert upper(held, OTHER, 400.0) < 0.35
    assert upper(held, ONE, 20.0) == upper(alone, ONE, 20.0)


def test_samples_that_miss_that_too_make_it_less_sure_than_that() -> None:
    assert upper(resting(200.0, Says(0.3)), OTHER, 400.0) > 0.5


def test_samples_that_bear_the_forecast_out_leave_it_as_sure_as_it_is() -> None:
    assert upper(resting(10.2, Says(1.2)), OTHER, 400.0) < 0.15
