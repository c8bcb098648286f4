"""Which counters a KPI goes with: correlations by stimulus, partial least squares, shuffling.

Paper C has Pearson's correlations under load stimulus and under resource stimulus apart (Tables I
and II); a session has both, and its rows say which is which.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from workbench.models.base import Floats
from workbench.models.counter_rows import CounterRows
from workbench.models.counter_scores import FEWEST_GROUPS, TIMES, Maker, taught_by
from workbench.models.estimator import seeded_subset
from workbench.models.folds import folds_of

MOST_SHUFFLED = 1_000
MOST_PROJECTIONS = 5
"""Latent variables of partial least squares; each counts by how much of the KPI it tells, so that
those that tell nothing change nothing."""
FEWEST_ROWS = 8
"""Rows of one stimulus, below which no correlation is told of it alone."""
_ENDS = (2.5, 97.5)


@dataclass(frozen=True)
class Correlation:
    """Pearson's, with its 95 % bootstrap interval: whole experiments are drawn, and of fewer than
    `FEWEST_GROUPS`, of which seconds or windows would be drawn instead, there is none."""

    pearson: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Weight:
    """How a KPI goes with one counter.

    Attributes
    ----------
    pearson, low, high : correlation over all rows and its 95 % interval, as of `Correlation`.
    projected : importance in the projection of partial least squares (`projections`).
    importance : mean absolute share that predictions lose when the counter is shuffled, over what
        they err by otherwise; None where it was not asked for.
    by_load : over the rows in which nobody competed. by_others : over those beside a competitor.
        None where not both stimuli are there.
    """

    name: str
    pearson: float
    low: float | None
    high: float | None
    projected: float
    importance: float | None = None
    by_load: Correlation | None = None
    by_others: Correlation | None = None


def weights_of(rows: CounterRows, make: Maker | None, seed: int) -> list[Weight]:
    """Correlations with the KPI, the strongest first, and importances of a model's features.

    The importance is that of a model which has seen half of the groups, on the other half.
    """
    importances = None if make is None else _importances(rows, make, seed)
    projected = projections(rows)
    found = [
        Weight(
            name, one.pearson, one.low, one.high, float(projected[i]),
            None if importances is None else float(importances[i]),
        )
        for i, (name, one) in enumerate(zip(rows.features, correlations(rows, seed), strict=True))
    ]  # fmt: skip
    return sorted(_by_stimulus(found, rows, seed), key=lambda weight: -abs(weight.pearson))


def _by_stimulus(found: list[Weight], rows: CounterRows, seed: int) -> list[Weight]:
    """With the correlations of each stimulus alone, where the rows have both."""
    alone = np.zeros(0, dtype=bool) if rows.beside is None else rows.beside == 0
    if min(alone.sum(), (~alone).sum()) < FEWEST_ROWS:
        return found
    load, others = (
        correlations(rows.taken(np.flatnonzero(chosen)), seed) for chosen in (alone, ~alone)
    )
    return [
        replace(weight, by_load=a, by_others=b)
        for weight, a, b in zip(found, load, others, strict=True)
    ]


def correlations(rows: CounterRows, seed: int) -> list[Correlation]:
    """Of each counter with the KPI; 0 where one of them does not vary."""
    random = np.random.default_rng(seed)
    by_group = [np.flatnonzero(rows.groups == name) for name in np.unique(rows.groups)]
    kept = seeded_subset(len(by_group), 2_000, seed)
    pieces = [_moments(rows.x[by_group[g]], rows.y[by_group[g]]) for g in kept]
    totals = np.array(pieces)
    middle = _pearson(totals.sum(axis=0)[None])[0]
    if len(by_group) < FEWEST_GROUPS:
        return [Correlation(float(one), None, None) for one in middle]
    drawn = random.multinomial(len(kept), np.full(len(kept), 1.0 / len(kept)), TIMES)
    spread = _pearson(np.tensordot(drawn, totals, axes=1))
    low, high = np.nanpercentile(spread, _ENDS, axis=0)
    return [Correlation(*map(float, one)) for one in zip(middle, low, high, strict=True)]


def projections(rows: CounterRows) -> Floats:
    """Importance of each counter in the projection, of shape (d,): its share of the weights of
    partial least squares, by how much of the KPI each latent variable tells (VIP; Wold et al.,
    Chemometrics and Intelligent Laboratory Systems 58, 2001). The mean of the squares is 1: above 1
    a counter tells more than its share. Zeros where nothing varies."""
    from sklearn.cross_decomposition import PLSRegression

    spread = rows.x.std(axis=0)
    x = (rows.x - rows.x.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    count = min(MOST_PROJECTIONS, x.shape[1], len(rows.y) - 1)
    if count < 1 or not np.ptp(rows.y):
        return np.zeros(x.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing is left of the KPI to be told
        fitted = PLSRegression(count, scale=False).fit(x, rows.y / rows.y.std())
    told = np.nan_to_num(np.square(fitted.x_scores_).sum(axis=0) * fitted.y_loadings_[0] ** 2)
    if not told.sum():
        return np.zeros(x.shape[1])
    weights = np.nan_to_num(np.square(fitted.x_weights_))
    return np.asarray(np.sqrt(x.shape[1] * (weights @ (told / told.sum()))))


def _moments(x: Floats, y: Floats) -> Floats:
    """Sums that a correlation is made of, of shape (6, d): n, x, y, x², y², xy."""
    ones = np.ones(x.shape[1])
    return np.array(
        [len(y) * ones, x.sum(0), y.sum() * ones, (x**2).sum(0), (y**2).sum() * ones, x.T @ y]
    )


def _pearson(sums: Floats) -> Floats:
    """Correlations, of shape (k, d), from moments of shape (k, 6, d); 0 where nothing varies."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, 1, 0)
    across = np.maximum(n * xx - x * x, 0.0) * np.maximum(n * yy - y * y, 0.0)
    with np.errstate(all="ignore"):
        found = (n * xy - x * y) / np.sqrt(across)
    return np.asarray(np.clip(np.nan_to_num(found), -1.0, 1.0))


def _importances(rows: CounterRows, make: Maker, seed: int) -> Floats:
    half = folds_of(rows.groups, 2, seed) == 0
    if half.all() or not half.any():
        half = np.arange(len(rows.y)) % 2 == 0
    model = taught_by(make, rows.taken(np.flatnonzero(half)), seed)
    out = np.flatnonzero(~half)
    out = out[seeded_subset(len(out), MOST_SHUFFLED, seed)]
    x, y = rows.x[out], rows.y[out]
    base = np.abs(model.predict(x) / y - 1.0).mean()
    random = np.random.default_rng(seed)
    found = np.empty(x.shape[1])
    for column in range(x.shape[1]):
        shuffled = x.copy()
        shuffled[:, column] = random.permutation(x[:, column])
        found[column] = np.abs(model.predict(shuffled) / y - 1.0).mean() - base
    return np.maximum(found, 0.0)
