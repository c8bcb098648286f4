"""The method is chosen on the predicted trend, before the chain is measured."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from synthetic_chain import CHAIN, CLIENTS, KPI_MAX, SETTINGS, SyntheticChain

from workbench.chains.alignment import measured
from workbench.chains.trend import LATE, TrendTerms, rank_by_trend, trained
from workbench.domain.errors import DataError
from workbench.models.base import Floats
from workbench.models.crossvalidation import ModelFactory, Row
from workbench.models.forecast import Forecast, Points
from workbench.models.interpolation import LogInterpolation


class Line:
    """Log KPI linear in all columns."""

    def fit(self, X: Floats, y: Floats, noise: Floats | None = None) -> Line:
        self.beta_ = np.linalg.lstsq(self._wide(X), y, rcond=None)[0]
        return self

    def predict(self, X: Floats) -> Floats:
        return self._wide(X) @ self.beta_

    def predict_band(self, X: Floats) -> tuple[Floats, Floats]:
        mean = self.predict(X)
        return mean - 0.1, mean + 0.1

    def _wide(self, X: Floats) -> Floats:
        return np.column_stack([np.ones(len(X)), X])


class Broken(Line):
    def predict(self, X: Floats) -> Floats:
        return np.full(len(X), math.nan)


FACTORIES: dict[str, ModelFactory] = {
    "interpolation": LogInterpolation,
    "broken": Broken,
    "line": Line,
}


def ranked(**options: object) -> list[Row]:
    terms = TrendTerms(KPI_MAX, **options)  # type: ignore[arg-type]
    return rank_by_trend(CHAIN, FACTORIES, SyntheticChain(0), SETTINGS, CLIENTS, terms)


def test_what_extrapolates_the_predicted_trend_best_comes_first() -> None:
    """The prediction is proportional to the load: a line goes on, interpolation stops."""
    rows = ranked()
    assert [row.method for row in rows] == ["line", "interpolation", "broken"]
    assert [row.best for row in rows] == [True, False, False]
    assert rows[0].scores is not None
    assert rows[1].scores is not None
    assert rows[0].scores.log_error < 0.1 < rows[1].scores.log_error
    assert "not finite" in rows[2].trouble


def test_methods_that_the_budget_does_not_reach_are_not_tried_and_say_so() -> None:
    ticks = iter(range(100))
    rows = ranked(budget_s=1.5, clock=lambda: float(next(ticks)))
    assert [row.method for row in rows] == ["interpolation", "broken", "line"]
    assert rows[0].best
    assert "not tried" not in rows[0].trouble
    assert [row.trouble == LATE for row in rows] == [False, True, True]


def test_the_same_seed_ranks_alike() -> None:
    assert ranked(seed=3) == ranked(seed=3)
    assert ranked(seed=3)[0].scores != ranked(seed=4)[0].scores


def test_the_chosen_method_is_then_trained_on_the_chains_own_samples() -> None:
    chain = SyntheticChain(0)
    samples = [chain.measure(c, float(wl)) for c in SETTINGS for wl in (60, 80, 100, 120)]
    seen = measured(CHAIN, samples, kpi="mean_ms", kpi_max=KPI_MAX, primary=CLIENTS)
    said = trained(FACTORIES[ranked()[0].method], seen).forecast([(SETTINGS[0], 90.0)])
    assert said.mean[0] == pytest.approx(math.log(chain.truth(SETTINGS[0], 90.0)), abs=0.3)


def test_a_prediction_that_only_extrapolates_cannot_choose() -> None:
    class Beyond(SyntheticChain):
        def forecast(self, points: Points) -> Forecast:
            said = super().forecast(points)
            return replace(said, extrapolates=np.array([wl > 64.0 for _, wl in points]))

    with pytest.raises(DataError, match=r"extrapolates everywhere from 67\.675"):
        rank_by_trend(CHAIN, FACTORIES, Beyond(0), SETTINGS, CLIENTS, TrendTerms(KPI_MAX))
    with pytest.raises(DataError, match="no method"):
        rank_by_trend(CHAIN, {}, SyntheticChain(0), SETTINGS, CLIENTS, TrendTerms(KPI_MAX))
