"""How well models of counters predict experiments that were not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from workbench.models.base import Floats
from workbench.models.conformal import reach_of
from workbench.models.counter_contention import traffic_of
from workbench.models.counter_models import (
    CURVE_WORDS,
    CacheLine,
    CounterBoosting,
    CounterLine,
    CounterModel,
    CounterNetwork,
    ExtrapolatedBoosting,
    OwnCounterModel,
    cache_columns,
)
from workbench.models.counter_rows import CounterRows
from workbench.models.folds import Ints, folds_of, splits_of

FOLDS = 5
FEWEST_GROUPS = 3
"""Experiments below which nothing is said of an unseen one."""
TIMES = 200
"""Bootstrap draws, and draws of one row from each group."""
PUBLISHED_TEST = 0.3
"""Share of rows that paper C's notebooks hold out, at random."""


@dataclass(frozen=True)
class CounterScore:
    """Of one model; shares are of 1.

    Attributes
    ----------
    mape, median, within_5, within_10 : on what was held out: mean and median of
        |predicted / true - 1|, and shares of rows within 5 and 10 %.
    coverage : share of held-out rows within their interval, which is to hold 95 % of an experiment
        that was not seen; None where there are too few experiments, as the next.
    width : median of (upper / lower - 1) of these intervals.
    """

    model: str
    rows: int
    mape: float
    median: float
    within_5: float
    within_10: float
    coverage: float | None = None
    width: float | None = None


class HeldOutModel(NamedTuple):
    """A model, and the rows (k,) whose groups it has not seen."""

    model: CounterModel
    out: Ints


@dataclass(frozen=True)
class SplitScore:
    """One model by experiment, and by rows drawn at random as the notebooks of paper C do."""

    by_experiment: CounterScore
    by_row: CounterScore
    predicted: Floats
    """Of every row, by a model that had not seen its experiment; of shape (n,)."""
    models: list[HeldOutModel]
    """Those that predicted them."""


Maker = Callable[[int], CounterModel]


def makers_for(rows: CounterRows) -> dict[str, Maker]:
    """The models that are compared, by name: a cache model where there are counters for it, and
    SLOMO's extrapolation where the function ran alone, too, and a counter tells its traffic."""
    columns = cache_columns(rows.features)
    traffic = traffic_of(rows.features)
    made: dict[str, Maker] = {
        "ours": OwnCounterModel,
        "MLP (paper C)": lambda seed: CounterNetwork(random_state=seed),
        "boosting (SLOMO)": CounterBoosting,
    }
    if traffic is not None and rows.beside is not None and 0 < (rows.beside == 0).mean() < 1:
        column = rows.features.index(traffic)
        made["SLOMO, extrapolated"] = lambda seed: ExtrapolatedBoosting(column, seed)
    if columns:
        made["linear in cache references"] = lambda seed: CacheLine(columns, seed)
    made["linear"] = CounterLine
    return made


def taught_by(make: Maker, rows: CounterRows, seed: int) -> CounterModel:
    """A model that has seen these rows."""
    return make(seed).fit(rows.x, rows.y, rows.groups, rows.beside)


def score_of(
    model: str, true: Floats, said: Floats, interval: tuple[Floats, Floats] | None = None
) -> CounterScore:
    """Scores of predictions `said` of `true`, both of shape (n,) in the KPI's unit."""
    off = np.abs(said / true - 1.0)
    coverage = width = None
    if interval is not None:
        low, high = interval
        coverage = float(np.mean((low <= true) & (true <= high)))
        width = float(np.median(high / low - 1.0))
    return CounterScore(
        model,
        len(true),
        float(off.mean()),
        float(np.median(off)),
        float(np.mean(off <= 0.05)),
        float(np.mean(off <= 0.10)),
        coverage,
        width,
    )


def compared(rows: CounterRows, name: str, make: Maker, seed: int) -> SplitScore:
    """One model on held-out experiments and on held-out rows. Needs `FEWEST_GROUPS` groups."""
    models = held_out_models(rows, make, seed)
    said = predicted_by(models, rows)
    interval = bands_by_group(rows.y, said, rows.groups, seed)
    order = np.random.default_rng(seed).permutation(len(rows.y))
    test, train = np.split(order, [max(1, round(PUBLISHED_TEST * len(order)))])
    # Rows are not grouped here: a model that looks for its settings does so as the notebooks do.
    model = taught_by(make, replace(rows.taken(train), groups=np.arange(len(train))), seed)
    by_row = score_of(name, rows.y[test], model.predict(rows.x[test]))
    return SplitScore(score_of(name, rows.y, said, interval), by_row, said, models)


def all_compared(
    rows: CounterRows, seed: int, tell: Callable[[str], None]
) -> dict[str, SplitScore]:
    """Every model of `makers_for` on rows of `FEWEST_GROUPS` groups or more, by name; `tell` hears
    which is at work."""
    makers = makers_for(rows)
    found = {}
    for number, (name, make) in enumerate(makers.items(), start=1):
        tell(f"model {number} of {len(makers)}: {name}")
        found[name] = compared(rows, name, make, seed)
    return found


def curve_words(models: list[HeldOutModel]) -> tuple[str, ...]:
    """What SLOMO's extrapolation could not do among these, each that had not seen a fold."""
    curves = [one.model.curve for one in models if isinstance(one.model, ExtrapolatedBoosting)]
    said = []
    for curve, meaning in CURVE_WORDS.items():
        if count := curves.count(curve):
            said.append(f"SLOMO, extrapolated: in {count} of {len(curves)} folds {meaning}")
    return tuple(said)


def held_out_models(rows: CounterRows, make: Maker, seed: int) -> list[HeldOutModel]:
    """Models that each have not seen a fold of the groups; every row is held out of one."""
    return [
        HeldOutModel(taught_by(make, rows.taken(seen), seed), out)
        for seen, out in splits_of(folds_of(rows.groups, FOLDS, seed))
    ]


def predicted_by(models: list[HeldOutModel], rows: CounterRows) -> Floats:
    """Each row's prediction by the model that had not seen its group, of shape (n,)."""
    said = np.empty(len(rows.y))
    for model, out in models:
        said[out] = model.predict(rows.x[out])
    return said


def out_of_group(rows: CounterRows, make: Maker, seed: int) -> Floats:
    """Each row's prediction by a model that had not seen its group, of shape (n,)."""
    return predicted_by(held_out_models(rows, make, seed), rows)


def out_of_company(rows: CounterRows, make: Maker, seed: int) -> Floats:
    """Predictions of rows beside a competitor by a model that had not seen it, of shape (n,).

    NaN of rows alone, and of all where there are fewer than two competitors: what is left without
    one would be rows alone, which teach nothing of others.
    """
    said = np.full(len(rows.y), np.nan)
    rivals = np.zeros(0) if rows.beside is None else np.setdiff1d(rows.beside, [0])
    for rival in rivals if len(rivals) > 1 else ():
        out = rows.beside == rival
        said[out] = taught_by(make, rows.taken(np.flatnonzero(~out)), seed).predict(rows.x[out])
    return said


def bands_by_group(
    true: Floats, said: Floats, groups: Ints, seed: int
) -> tuple[Floats, Floats] | None:
    """Intervals that are to hold 95 % of a group's rows, learned from the other groups only.

    One row of each other group is drawn, so that groups count and not seconds (Dunn, Wasserman,
    Ramdas 2023), and the reach of these misses is taken (`conformal.reach_of`); the mean over draws
    is the half width in logs. The misses of a group are no part of its own interval; the models
    that the others' misses are of have seen it, as in every cross-conformal interval. None where
    there are fewer than `FEWEST_GROUPS` + 1 groups.
    """
    names = np.unique(groups)
    if len(names) <= FEWEST_GROUPS:
        return None
    misses = misses_of(true, said)
    half = np.empty(len(true))
    for name in names:
        others = groups != name
        half[~others] = group_reach(misses[others], groups[others], seed)
    return band_of(said, half, float(true.min()))


def band_of(said: Floats, half: Floats | float, least: float) -> tuple[Floats, Floats]:
    """Both ends of intervals of half width `half` in logs about predictions `said` (n,); one of
    nothing or less has no share, and is taken for 0.001 of the `least` figure."""
    centre = np.maximum(said, least * 1e-3)
    return np.asarray(centre * np.exp(-half)), np.asarray(centre * np.exp(half))


def misses_of(true: Floats, said: Floats) -> Floats:
    """log(true / said) of shape (n,); a prediction of nothing or less is taken for 0.001 of the
    least."""
    return np.asarray(np.log(true / np.maximum(said, true.min() * 1e-3)))


def group_reach(misses: Floats, groups: Ints, seed: int) -> float:
    """What 95 % of the misses at unseen groups stay within, in logs."""
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order][0] - 1))
    sizes = np.diff(np.append(starts, len(order)))
    random = np.random.default_rng(seed)
    numbers = np.arange(len(starts))
    reaches = [
        reach_of(
            misses[order[starts + (random.random(len(starts)) * sizes).astype(int)]], numbers, None
        )
        for _ in range(TIMES // 4)
    ]
    return float(np.mean(reaches))
