"""Cross-validation that nothing leaks through, and the best of many models."""

import math
from itertools import count

import numpy as np
import pytest
from synthetic_function import RATE, TARGET, make_sample

from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.models.base import ProfileModel
from workbench.models.crossvalidation import Row, best_of, compare_models, cross_validate
from workbench.models.curve_fit import CurveFit
from workbench.models.interpolation import LogInterpolation
from workbench.models.per_configuration import PerConfiguration
from workbench.models.scores import score
from workbench.models.table import Table, table_of


def table(configurations=3, loads=8, repetitions=2, seed=0) -> Table:
    random = np.random.default_rng(seed)
    samples = []
    for vcpu in 0.25 * 2.0 ** np.arange(configurations):
        own = Configuration({"haproxy.vcpu": float(vcpu)}, {"filesize_bytes": 1e4})
        for wl in np.geomspace(50.0, 3000.0, loads):
            for repetition in range(repetitions):
                kpi = 2.0 + np.maximum(wl / (2000.0 * vcpu) - 1.0, 0.0) * 50.0
                kpi *= math.exp(random.normal(0.0, 0.05))
                samples.append(
                    make_sample(wl, {"p95_ms": kpi}, configuration=own, repetition=repetition)
                )
    return table_of(TARGET, samples, kpi="p95_ms", kpi_max=20_000.0, primary=RATE)


class Watcher:
    """Remembers what it was fitted to and asked for; says a constant."""

    seen: list[tuple[np.ndarray, np.ndarray]]

    def __init__(self):
        self.seen = []

    def fit(self, X, y, noise=None):
        assert len(X) == len(y) == len(noise)
        self.seen.append((X, None))
        self.level = y.mean()
        return self

    def predict(self, X):
        self.seen[-1] = (self.seen[-1][0], X)
        return np.full(len(X), self.level)


@pytest.mark.parametrize(("by", "columns"), [("point", slice(None)), ("configuration", slice(-1))])
def test_no_group_straddles_training_and_test_and_each_sample_is_tested_once(by, columns):
    watcher = Watcher()
    whole = table()
    scores = cross_validate(lambda: watcher, whole, folds=5, by=by)
    groups = len(np.unique(whole.X[:, columns], axis=0))
    assert len(watcher.seen) == min(5, groups)
    assert sum(len(test) for _, test in watcher.seen) == len(whole) == scores.n
    for train, test in watcher.seen:
        known = {tuple(row) for row in train[:, columns]}
        assert known.isdisjoint(tuple(row) for row in test[:, columns])


def test_the_same_seed_gives_the_same_scores_and_another_does_not():
    a, b, c = (cross_validate(LogInterpolation, table(), seed=seed).log_error for seed in (1, 1, 2))
    assert a == b != c


def test_a_model_of_the_law_beats_one_that_knows_nothing():
    law = cross_validate(lambda: PerConfiguration(CurveFit()), table(loads=14))
    nothing = cross_validate(Watcher, table(loads=14))
    assert law.log_error < 0.5 * nothing.log_error
    assert law.log_error < 0.08  # the samples scatter by 0.05
    assert nothing.coverage is None
    assert law.coverage > 0.8
    assert 0.0 < law.width < 1.0


def test_intervals_are_widened_by_the_noise_of_the_samples():
    """The band of a mean that is known for sure still misses samples: they scatter."""

    class Sure(Watcher):
        def predict_band(self, X):
            return self.predict(X), self.predict(X)

    flat = table()
    flat = Table(**{**flat.__dict__, "y": np.random.default_rng(0).normal(0.0, 1.0, len(flat)),
                    "noise": np.full(len(flat), 1.0)})  # fmt: skip
    scores = cross_validate(Sure, flat, folds=len(flat))
    assert scores.width == pytest.approx(2 * 1.96, rel=1e-3)
    assert 0.85 < scores.coverage <= 1.0


def test_the_ceiling_of_the_table_caps_predictions():
    whole = table()
    capped = Table(**{**whole.__dict__, "ceiling": 1.0, "y": np.minimum(whole.y, 1.0)})

    class High(Watcher):
        def predict(self, X):
            return np.full(len(X), 9.0)

    assert cross_validate(High, capped).log_error < 1.0


def test_fits_are_timed_by_the_callers_clock():
    ticks = count(0.0, 0.25)
    assert cross_validate(Watcher, table(), timer=lambda: next(ticks)).fit_s == 0.25
    assert cross_validate(Watcher, table()).fit_s is None


@pytest.mark.parametrize(("by", "what"), [("point", "1 point "), ("configuration", "1 config")])
def test_what_cannot_be_parted_is_named(by, what):
    one = table(configurations=1, loads=1 if by == "point" else 4)
    with pytest.raises(DataError, match=what):
        cross_validate(Watcher, one, by=by)


def broken(kind):
    class Broken(Watcher):
        def fit(self, X, y, noise=None):
            if kind == "raises":
                raise ZeroDivisionError("by a plugin")
            return super().fit(X, y, noise)

        def predict(self, X):
            return super().predict(X) * (math.nan if kind == "nan" else 1.0)

        def predict_band(self, X):
            return self.predict(X), self.predict(X) * math.inf

    return Broken


def test_a_broken_model_is_named_and_set_aside():
    rows = compare_models(
        {
            "raises": broken("raises"),
            "nan": broken("nan"),
            "infinite band": broken("band"),
            "interpolation": LogInterpolation,
            "constant": Watcher,
        },
        table(),
    )
    assert [row.method for row in rows] == [
        "raises", "nan", "infinite band", "interpolation", "constant",
    ]  # fmt: skip
    assert [row.scores is None for row in rows] == [True, True, True, False, False]
    assert rows[0].trouble == "ZeroDivisionError: by a plugin"
    assert "48 of 48 predictions are not finite" in rows[1].trouble
    assert "bands are not finite" in rows[2].trouble
    assert [row.method for row in rows if row.best] == ["interpolation"]
    assert {(row.target, row.kpi) for row in rows} == {(TARGET, "p95_ms")}


def row(method, error, interval=None, bias=0.0):
    true = np.linspace(1.0, 3.0, 5)
    band = None if interval is None else (true - interval, true + interval)
    return Row(TARGET, "p95_ms", method, score("p95_ms", true, true + error + bias, band))


def test_without_intervals_the_smaller_rmse_is_best_and_without_scores_none():
    assert best_of([row("a", 0.2), row("b", 0.1), row("c", 0.3)]) == "b"
    assert best_of([Row(TARGET, "p95_ms", "a", None, "failed")]) is None
    assert best_of([]) is None


def test_among_comparable_errors_the_better_interval_is_best_then_the_smaller_rmse_then_the_name():
    assert best_of([row("a", 0.1), row("b", 0.115, 0.5), row("c", 0.115, 0.4)]) == "c"
    assert best_of([row("a", 0.1), row("b", 0.19, 0.2)]) == "b"
    assert best_of([row("a", 0.115), row("b", 0.1)]) == "b"
    assert best_of([row("b", 0.1), row("a", 0.1)]) == "a"


def test_an_interval_over_the_whole_range_is_not_best():
    assert best_of([row("neighbours", 0.05, 2.0), row("law", 0.08, 0.3)]) == "law"


def test_a_median_that_is_clearly_worse_is_made_up_for_by_no_interval():
    assert best_of([row("a", 0.1, 1.0), row("b", 0.23, 0.3)]) == "a"


def test_where_half_of_a_grid_is_flat_the_median_does_not_decide():
    assert best_of([row("neighbours", 0.0, 2.0), row("law", 0.017, 0.3)]) == "law"


def test_a_factory_makes_what_the_table_can_tell():
    made: list[ProfileModel] = []

    def factory():
        made.append(PerConfiguration(CurveFit()))
        return made[-1]

    whole = table()
    cross_validate(factory, whole)
    assert all(m.get_params()["estimator__ceiling"] == whole.ceiling for m in made)
