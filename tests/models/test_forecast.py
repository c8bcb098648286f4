"""Forecasts: probabilities of a limit, draws of whole curves, extrapolation that is said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike

from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.models.base import Floats
from workbench.models.forecast import Forecast, ProfileForecaster
from workbench.models.interpolation import LogInterpolation
from workbench.models.table import Column, Table


def forecast(mean: float, low: float, high: float) -> Forecast:
    return Forecast(np.array([mean]), np.array([low]), np.array([high]), np.array([False]))


def test_the_ends_of_an_interval_are_its_quantiles() -> None:
    one = forecast(0.0, -1.0, 0.5)
    assert one.probability_below(0.0) == pytest.approx(0.5)
    assert one.probability_below(-1.0) == pytest.approx(0.025, abs=1e-4)
    assert one.probability_below(0.5) == pytest.approx(0.975, abs=1e-4)


def test_without_an_interval_the_mean_decides() -> None:
    sure = forecast(1.0, 1.0, 1.0)
    assert [float(sure.probability_below(at)[0]) for at in (0.9, 1.0, 1.1)] == [0.0, 0.5, 1.0]


def test_one_deviate_moves_the_whole_curve() -> None:
    curve = Forecast(np.zeros(3), np.full(3, -2.0), np.full(3, 1.0), np.zeros(3, dtype=bool))
    drawn = curve.draws(np.array([-1.959964, 0.0, 1.959964]))
    assert drawn == pytest.approx(np.array([[-2.0] * 3, [0.0] * 3, [1.0] * 3]))


def table() -> Table:
    wl = np.log([10.0, 100.0, 10.0, 100.0])
    vcpu = np.log([0.25, 0.25, 1.0, 1.0])
    X = np.column_stack([vcpu, wl])
    y = np.log([4.0, 40.0, 1.0, 10.0])
    return Table(
        "proxy",
        "p95_ms",
        (Column("proxy.vcpu", "resource"), Column("rate", "primary")),
        X,
        y,
        np.full(4, 0.1),
        np.arange(4),
        np.array([0, 0, 1, 1]),
        ("a", "b", "c", "d"),
        math.log(30.0),
    )


def at(vcpu: float, wl: float) -> tuple[Configuration, float]:
    return Configuration({"proxy.vcpu": vcpu}, {}), wl


def test_a_profile_forecasts_within_its_samples_and_says_where_it_does_not() -> None:
    known = table()
    profile = ProfileForecaster(known, LogInterpolation().fit(known.X, known.y, known.noise))
    said = profile.forecast([at(0.5, 10.0), at(0.25, 100.0), at(0.5, 1000.0), at(2.0, 10.0)])
    assert np.exp(said.mean[0]) == pytest.approx(2.0)
    assert np.exp(said.mean[1]) == pytest.approx(30.0), "nothing is said beyond the ceiling"
    assert (said.low <= said.mean).all()
    assert (said.mean <= said.high).all()
    assert said.extrapolates.tolist() == [False, False, True, True]
    assert profile.forecast([]).mean.shape == (0,)


def test_a_parameter_that_was_not_profiled_is_named() -> None:
    known = table()
    profile = ProfileForecaster(known, LogInterpolation().fit(known.X, known.y, known.noise))
    with pytest.raises(DataError, match=r"proxy\.vcpu"):
        profile.forecast([(Configuration({}, {}), 10.0)])


class Falling:
    """A formula that goes astray beyond its samples: response times fall with the load."""

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Falling:
        return self

    def predict(self, X: ArrayLike) -> Floats:
        return -np.asarray(X, dtype=float)[:, -1]

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        return self.predict(X), self.predict(X)


def test_beyond_the_samples_no_formula_is_trusted_alone() -> None:
    profile = ProfileForecaster(table(), Falling())
    said = profile.forecast([at(0.5, 50.0), at(0.5, 1000.0)])
    assert np.exp(said.mean) == pytest.approx([1 / 50, 1 / 100]), "not below the last load's"
    assert np.exp(said.low[1]) == pytest.approx(1 / 1000), "the interval says what the formula does"
    assert np.exp(said.high[1]) == pytest.approx(1 / 100)
    assert said.low[0] == said.high[0]
