"""A formula at its clip is not sure: where samples do not bear a forecast out, it says so."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import ArrayLike

from workbench.chains.bounded_forecaster import BoundedForecaster
from workbench.domain.parameters import Configuration
from workbench.models.base import Floats
from workbench.models.forecast import Forecast
from workbench.models.parametric import catalogue
from workbench.models.table import Column, Table, fitted_to

HERE = Configuration({"proxy.vcpu": 0.25}, {})
NOISE = 0.1


def table(loads: list[float], p95_ms: list[float], ceiling: float = 1000.0) -> Table:
    count = len(loads)
    return Table(
        "proxy",
        "p95_ms",
        (Column("proxy.vcpu", "resource"), Column("rate", "primary")),
        np.column_stack([np.full(count, math.log(0.25)), np.log(loads)]),
        np.log(np.minimum(p95_ms, ceiling)),
        np.full(count, NOISE),
        np.arange(count),
        np.zeros(count, dtype=np.int64),
        tuple(f"s{place}" for place in range(count)),
        math.log(ceiling),
    )


@dataclass
class Sure:
    """Says the same figure everywhere, with a band of that half width."""

    figure: float
    half: float = 0.0

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Sure:
        return self

    def predict(self, X: ArrayLike) -> Floats:
        return np.full(len(np.asarray(X)), math.log(self.figure))

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        return self.predict(X) - self.half, self.predict(X) + self.half


def said_at(known: Table, model: Sure, wl: float) -> Forecast:
    return BoundedForecaster(known, model).forecast([(HERE, wl)])


def test_the_floor_of_a_formula_between_samples_is_a_guess() -> None:
    # p95 of tinyproxy at 25 % of a core (sessions/recorded/chain-first): of these ten the catalogue
    # makes a curve that falls below zero between the first two.
    loads = [100, 294.8, 399, 412, 418, 450, 461, 474, 1341, 4000]
    p95_ms = [4.0, 1.52, 610.75, 463.58, 107.09, 331.05, 703.06, 689.51, 2853.83, 3325.1]
    known = table(loads, p95_ms)
    model = fitted_to(catalogue(), known).fit(known.X, known.y, known.noise)
    said = BoundedForecaster(known, model).forecast([(HERE, wl) for wl in (150.0, 170.0, 190.0)])
    assert np.exp(said.mean) == pytest.approx(1.52 / 100.0, rel=0.02), "the case is still there"
    assert said.extrapolates.all()
    assert (np.exp(said.high) > 1.52).all(), "its interval reaches what was measured around"


@pytest.mark.parametrize("half", [0.0, 0.5])
@pytest.mark.parametrize("figure", [0.04, 900.0])
def test_beyond_all_samples_no_formula_is_sure(figure: float, half: float) -> None:
    said = said_at(table([100, 400], [4.0, 16.0]), Sure(figure, half), 200.0)
    assert said.extrapolates.all()
    low, high = np.exp([said.low[0], said.high[0]])
    assert low < 8.0 < high, "what lies between the samples"
    assert np.exp(said.mean[0]) == pytest.approx(figure)
    assert low <= figure * math.exp(-half) * 1.001
    assert high >= min(figure * math.exp(half), 1000.0) * 0.999


def test_no_width_is_no_knowledge_where_the_samples_around_say_something_else() -> None:
    said = said_at(table([100, 400], [250.0, 2000.0]), Sure(1000.0), 200.0)
    assert not said.extrapolates.any(), "one of the samples is at the ceiling"
    assert np.exp(said.low[0]) < 500.0
    assert np.exp(said.high[0]) == pytest.approx(1000.0), "nothing is said beyond the ceiling"


def test_what_the_samples_around_say_themselves_is_left_as_it_is() -> None:
    ceiling = said_at(table([100, 400], [1500.0, 2000.0]), Sure(1000.0), 200.0)
    assert ceiling.low[0] == ceiling.mean[0] == ceiling.high[0]
    assert not ceiling.extrapolates.any()
    between = said_at(table([100, 400], [4.0, 16.0]), Sure(6.0, 0.2), 200.0)
    assert np.exp([between.low[0], between.high[0]]) == pytest.approx(
        [6.0 * math.exp(-0.2), 6.0 * math.exp(0.2)]
    )
    assert not between.extrapolates.any()


def test_what_no_samples_surround_is_told_as_before() -> None:
    outside = said_at(table([100, 400], [4.0, 16.0]), Sure(6.0), 1000.0)
    assert outside.extrapolates.all()
    assert outside.low[0] == outside.high[0]


def test_where_a_sample_of_the_very_point_exists_the_forecast_rests_on_it() -> None:
    """A model that misses its samples by more than windows scatter is no better than they are."""
    known = table([100, 400, 1600], [4.0, 16.0, 60.0])
    for wl, measured_ms in ((100.0, 4.0), (400.0, 16.0), (1600.0, 60.0)):
        said = said_at(known, Sure(12.0, 0.2), wl)
        assert np.exp(said.mean[0]) == pytest.approx(measured_ms, rel=0.03)
        assert said.low[0] < math.log(measured_ms) < said.high[0]
    elsewhere = BoundedForecaster(known, Sure(12.0)).forecast(
        [(Configuration({"proxy.vcpu": 0.5}, {}), 400.0)]
    )
    assert np.exp(elsewhere.mean[0]) == pytest.approx(12.0), "another configuration"


def test_a_model_that_misses_its_samples_by_their_scatter_is_left_as_it_is() -> None:
    known = table([100, 400, 1600], [11.0, 13.0, 12.5])
    assert np.exp(said_at(known, Sure(12.0, 0.2), 100.0).mean[0]) == pytest.approx(12.0)
