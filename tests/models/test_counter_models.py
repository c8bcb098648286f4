"""Models of counters: what they learn, what they are held against, how surely."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from published_counters import LineModel, co_located, experiments
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.neural_network import MLPRegressor

from workbench.descriptors.co_located_files import read_co_located
from workbench.descriptors.counter_tables import read_counters
from workbench.models.base import Floats
from workbench.models.co_located import (
    all_co_located,
    at_accelerator,
    co_located_methods,
    co_located_score,
)
from workbench.models.counter_models import (
    CacheLine,
    CounterBoosting,
    CounterLine,
    CounterNetwork,
    ExtrapolatedBoosting,
    OwnCounterModel,
    cache_columns,
)
from workbench.models.counter_rows import CounterRows, without_idle_features
from workbench.models.counter_scores import (
    bands_by_group,
    compared,
    curve_words,
    held_out_models,
    makers_for,
    out_of_group,
    score_of,
    taught_by,
)
from workbench.models.counter_weights import projections, weights_of


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what holds however well a model has learned."""

    def few(**given: Any) -> GradientBoostingRegressor:
        return GradientBoostingRegressor(**{**given, "n_estimators": 10})

    monkeypatch.setattr("workbench.models.counter_models.GradientBoostingRegressor", few)
    monkeypatch.setattr("workbench.models.counter_models.MOST_EPOCHS", 20)


def levels(count: int, seconds: int = 30, seed: int = 0) -> CounterRows:
    """Experiments with luck of their own, which no counter tells: seconds share it."""
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(count), seconds)
    load = np.repeat(random.uniform(1.0, 10.0, count), seconds) * random.uniform(
        0.9, 1.1, len(groups)
    )
    luck = np.repeat(np.exp(0.2 * random.standard_normal(count)), seconds)
    noise = random.standard_normal((2, len(groups)))
    x = np.column_stack([load * np.exp(0.01 * noise[0]), np.exp(noise[1])])
    return CounterRows(("a_LLC-loads", "a_noise"), x, 100.0 * load * luck, groups)


def test_rows_at_random_flatter_where_experiments_have_luck_of_their_own() -> None:
    score = compared(levels(12), "boosting", CounterBoosting, 0)
    assert score.by_row.mape < 0.6 * score.by_experiment.mape
    assert score.by_row.within_10 > score.by_experiment.within_10


def test_an_interval_by_group_holds_experiments_that_were_not_seen() -> None:
    held, widths = [], []
    for seed in range(8):
        rows = levels(20, seconds=10, seed=seed)
        said = out_of_group(rows, CounterLine, seed)
        interval = bands_by_group(rows.y, said, rows.groups, seed)
        assert interval is not None
        held.append(score_of("line", rows.y, said, interval).coverage)
        widths.append(np.median(interval[1] / interval[0]))
    assert 0.92 <= np.mean(held) <= 0.995
    # Luck scatters by 0.2 in logs: nobody who knows it all could be narrower than exp(0.8).
    assert np.exp(0.8) * 0.9 < np.median(widths) < np.exp(0.8) * 2.0


def test_too_few_experiments_have_no_interval() -> None:
    rows = levels(3)
    assert bands_by_group(rows.y, rows.y, rows.groups, 0) is None


@pytest.mark.slow
def test_ours_is_chosen_without_the_rows_it_is_held_against(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.models.counter_models.INNER_FOLDS", 2)
    profile, _, _ = read_co_located(sorted(co_located(tmp_path).iterdir()))
    methods = {method.name: method for method in co_located_methods(profile)}
    found = {
        name: co_located_score(profile, methods[name], 1) for name in ("ours", "Yala", "linear")
    }
    errors = {name: one.score.mape for name, one in found.items()}
    assert found["ours"].chosen
    assert errors["ours"] < 0.03
    assert errors["ours"] < errors["Yala"] < errors["linear"]
    assert at_accelerator(profile).min() >= profile.unseen.y.min() * 0.999, "made of that very line"


@pytest.mark.usefixtures("few_trees")
def test_others_are_held_against_ours_on_the_same_rows_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.models.co_located.OwnCounterModel", LineModel)
    monkeypatch.setattr("workbench.models.counter_models.GRID_FEW_ROWS", 1)
    profile, _, _ = read_co_located(sorted(co_located(tmp_path).iterdir()))
    told: list[str] = []
    found = {one.score.model: one for one in all_co_located(profile, 2, told.append)}
    alone = found.pop("the accelerator alone")
    assert (alone.learned_from, alone.by_accelerator, alone.score.coverage) == (2, 24, None)
    assert found["linear"].by_accelerator == 0 < found["ours"].by_accelerator < 24
    assert next(iter(found)) == "ours"
    assert len(told) == len(found) == 9
    alike = [name for name in found if name == "ours" or name.endswith("of all rows")]
    assert len(alike) == 5, "ours, Yala, the network and both lines"
    for name, one in found.items():
        rows = (
            81
            if name in alike
            else 41
            if name in ("linear", "SLOMO without its extrapolation")
            else 40
        )
        assert one.learned_from == rows, name
        assert 0.0 <= one.score.coverage <= 1.0
        assert one.score.width > 0.0
        assert one.mape_low <= one.score.mape <= one.mape_high
        assert len(one.predicted) == 24
    assert found["linear, of all rows"].score.mape < found["linear"].score.mape, "it has traffic"
    assert found["ours"].chosen == ("line",)


def test_which_counter_counts_and_how_surely() -> None:
    rows = levels(15)
    weights = {weight.name: weight for weight in weights_of(rows, CounterBoosting, 0)}
    load, noise = weights["a_LLC-loads"], weights["a_noise"]
    assert load.pearson == pytest.approx(np.corrcoef(rows.x[:, 0], rows.y)[0, 1])
    assert load.low < load.pearson < load.high
    assert load.low > 0.5
    assert noise.low < 0.0 < noise.high
    assert load.importance is not None
    assert noise.importance is not None
    assert load.importance > 5.0 * noise.importance
    assert load.projected > 1.0 > noise.projected
    assert load.by_load is load.by_others is None, "nothing says who competed"


def test_each_stimulus_has_correlations_of_its_own() -> None:
    """Alone the load moves the KPI, beside competitors at one load they do."""
    random = np.random.default_rng(5)
    alone = np.repeat([True, False], 60)
    load = np.where(alone, random.uniform(1.0, 10.0, 120), 5.0)
    load *= np.exp(0.02 * random.standard_normal(120))
    waiting = np.where(alone, 0.1, random.uniform(0.1, 3.0, 120))
    waiting *= np.exp(0.02 * random.standard_normal(120))
    rows = CounterRows(
        ("packets", "waiting"), np.column_stack([load, waiting]), load + 4.0 * waiting,
        np.arange(120) // 10, (~alone).astype(int), ("none", "cpu"),
    )  # fmt: skip
    packets, others = sorted(weights_of(rows, None, 0), key=lambda weight: weight.name)
    assert packets.by_load is not None
    assert packets.by_others is not None
    assert others.by_others is not None
    assert packets.by_load.low > 0.9
    assert others.by_others.low > 0.9
    assert packets.by_others.low < 0.0 < packets.by_others.high
    assert np.square(projections(rows)).mean() == pytest.approx(1.0)
    assert projections(replace(rows, y=np.ones(120))).tolist() == [0.0, 0.0]


def test_fewer_than_three_experiments_of_a_stimulus_have_no_interval() -> None:
    """Windows of two passes drawn one by one would make one that is far too narrow."""
    rows = contended()
    two = replace(rows, groups=np.where(rows.beside == 0, rows.groups % 2, rows.groups))
    (first, *_) = weights_of(two, None, 0)
    assert first.by_load is not None
    assert first.by_others is not None
    assert first.by_load.low is first.by_load.high is None
    assert first.by_load.pearson == pytest.approx(
        np.corrcoef(rows.x[:40, rows.features.index(first.name)], rows.y[:40])[0, 1]
    )
    assert first.by_others.low is not None, "there are four of these"
    assert first.low is not None


def test_a_network_that_diverges_tells_the_mean_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def diverge(self: MLPRegressor, X: Floats, y: Floats) -> MLPRegressor:
        raise ValueError("Solver produced non-finite parameter weights.")

    monkeypatch.setattr(MLPRegressor, "fit", diverge)
    rows = levels(4, seconds=5)
    model = CounterNetwork().fit(rows.x, rows.y, rows.groups)
    assert model.predict(rows.x[:3]) == pytest.approx(np.full(3, rows.y.mean()))


def test_a_cache_model_where_something_counts_references(tmp_path: Path) -> None:
    rows, _ = without_idle_features(read_counters(experiments(tmp_path)).rows)
    makers = makers_for(rows)
    assert "linear in cache references" in makers
    model = makers["linear in cache references"](0)
    assert isinstance(model, CacheLine)
    assert [rows.features[i] for i in model.columns] == [
        "bridge_cache-references",
        "bridge_LLC-loads",
    ]
    assert "linear in cache references" not in makers_for(levels(3).only(("a_noise",)))
    assert cache_columns(("perf_cycles", "perf_cache_references")) == (1,), "as sessions name it"


def contended() -> CounterRows:
    """A time that grows with the root of traffic, and doubles beside who came at one traffic."""
    random = np.random.default_rng(7)
    traffic = np.concatenate([np.geomspace(10.0, 1_000.0, 40), np.full(40, 20.0)])
    beside = np.repeat([0, 1], 40)
    waiting = np.where(beside == 1, 1.0, 0.01) * np.exp(0.05 * random.standard_normal(80))
    y = np.sqrt(traffic) * np.where(beside == 1, 2.0, 1.0)
    x = np.column_stack([traffic, waiting])
    names = ("rx_packets", "cpu_wait_s")
    return CounterRows(names, x, y, np.arange(80) // 10, beside, ("none", "cpu"))


def test_slomo_extrapolates_contention_to_traffic_that_it_was_seen_without() -> None:
    rows = contended()
    makers = makers_for(rows)
    asked = np.array([[500.0, 1.0]])
    true = 2.0 * np.sqrt(500.0)
    said = {
        name: float(taught_by(makers[name], rows, 0).predict(asked)[0])
        for name in ("SLOMO, extrapolated", "boosting (SLOMO)")
    }
    assert said["SLOMO, extrapolated"] == pytest.approx(true, rel=0.05)
    assert said["boosting (SLOMO)"] < 0.8 * true
    alone = replace(rows, beside=np.zeros(80, dtype=int))
    assert "SLOMO, extrapolated" not in makers_for(alone), "nobody competed"
    assert "SLOMO, extrapolated" not in makers_for(rows.only(("cpu_wait_s",))), "no traffic"


@pytest.mark.parametrize(
    ("alone", "curve", "words"),
    [
        (8, "quadratic", None),
        (5, "line", "in 4 of 4 folds fewer than 6 windows alone were left"),
        (2, "mean", "in 4 of 4 folds fewer than 3 windows alone were left"),
    ],
)
def test_slomo_says_where_too_few_windows_alone_leave_it_no_curve(
    alone: int, curve: str, words: str | None
) -> None:
    """A fold that holds a pass alone out leaves the other pass: five loads, and still a line."""
    rows = contended()
    few = rows.taken(np.concatenate([np.linspace(0, 39, alone).astype(int), np.arange(40, 80)]))
    model = taught_by(lambda seed: ExtrapolatedBoosting(0, seed), few, 0)
    assert isinstance(model, ExtrapolatedBoosting)
    assert model.curve == curve
    far = float(model.predict(np.array([[900.0, 0.01]]))[0])
    if curve == "mean":
        boosted = taught_by(CounterBoosting, few, 0).predict(few.x)
        assert model.predict(few.x) == pytest.approx(boosted), "only the unit differs"
    else:
        assert far == pytest.approx(30.0, rel=0.1), "the root of its traffic"
    of_folds = replace(few, groups=np.where(few.beside == 0, 9, few.groups))
    makers = makers_for(of_folds)
    models = [
        one for one in held_out_models(of_folds, makers["SLOMO, extrapolated"], 0)
        if 9 not in of_folds.groups[one.out]
    ]  # fmt: skip
    said = curve_words(models)
    assert len(said) == (words is not None)
    if words:
        assert words in said[0]


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("rows", [levels(4, 20), contended()], ids=["levels", "contended"])
def test_the_same_rows_and_seed_give_the_same_model(
    rows: CounterRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.models.counter_models.GRID_FEW_ROWS", 2)  # each takes a second
    monkeypatch.setattr("workbench.models.counter_models.INNER_FOLDS", 2)
    for make in makers_for(rows).values():
        first, second = (taught_by(make, rows, 3).predict(rows.x) for _ in "ab")
        assert np.array_equal(first, second)
        assert np.isfinite(first).all()


def test_a_kpi_that_its_counters_count_is_told_at_loads_that_were_not_measured() -> None:
    """Throughput of what was never measured that low: no tree or process says it, a line does."""
    random = np.random.default_rng(5)
    packets = random.uniform(1_000.0, 10_000.0, 32)
    x = np.column_stack([1_400.0 * packets, packets, random.exponential(5.0, (32, 3))])
    y = 0.2 * packets * np.exp(0.001 * random.standard_normal(32))
    own = OwnCounterModel().fit(x, y, np.repeat(np.arange(8), 4))
    low = np.array([[1_400.0 * 600.0, 600.0, 5.0, 5.0, 5.0]])
    assert own.chosen_ == "line"
    assert own.predict(low)[0] == pytest.approx(120.0, rel=0.02)
