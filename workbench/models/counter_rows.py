"""Counters of one function or chain as a table: what models of counters learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.domain.competitors import NONE
from workbench.models.base import Floats
from workbench.models.folds import Ints

SAME = 1.0 - 1e-9
"""Correlation from which two counters are one: they differ by a factor and rounding only."""
MOST_MISSING = 0.05
"""Share of rows that may lack a counter before it is left out."""


@dataclass(frozen=True)
class CounterRows:
    """n rows of d features, and the KPI that was measured with each.

    Attributes
    ----------
    features : names of the d columns, such as `bridge_LLC-loads`.
    x : of shape (n, d), as counted.
    y : of shape (n,), the KPI in its own unit, above 0.
    groups : of shape (n,), the experiment or traffic profile that each row is from; rows of one
        group are never both learned from and predicted, except where the published split is shown.
    beside : of shape (n,), the number of who competed with the function, 0 where nobody did; None
        where that is not known.
    competitors : what `beside` numbers, by number.
    """

    features: tuple[str, ...]
    x: Floats
    y: Floats
    groups: Ints
    beside: Ints | None = None
    competitors: tuple[str, ...] = ()

    def taken(self, rows: Ints) -> CounterRows:
        """These rows only."""
        beside = None if self.beside is None else self.beside[rows]
        return replace(
            self, x=self.x[rows], y=self.y[rows], groups=self.groups[rows], beside=beside
        )

    def only(self, features: tuple[str, ...]) -> CounterRows:
        """These columns only, in this order. Raises `ValueError` where one is not there."""
        columns = [self.features.index(name) for name in features]
        return replace(self, features=features, x=self.x[:, columns])

    @property
    def group_count(self) -> int:
        return len(np.unique(self.groups))


@dataclass(frozen=True)
class DroppedFeature:
    """A column that teaches nothing: `why` is `constant`, or `same as NAME`, or that it is not in
    every row."""

    name: str
    why: str


def rows_of(
    counted: Sequence[Mapping[str, float]],
    y: Sequence[float],
    experiments: Sequence[str],
    beside: Sequence[str] = (),
) -> tuple[CounterRows, tuple[DroppedFeature, ...]]:
    """A table of rows that each name their counters; a row without a value is not filled in.

    A counter that more than `MOST_MISSING` of the rows lack is dropped, rows that lack another are.

    Parameters
    ----------
    beside : who competed in each row, `none` where nobody did.
    """
    names = sorted({name for row in counted for name in row})
    there = np.array([[name in row for name in names] for row in counted], dtype=bool)
    there = there.reshape(len(counted), len(names))
    common = there.mean(axis=0) >= 1.0 - MOST_MISSING
    features = tuple(name for name, kept in zip(names, common, strict=True) if kept)
    whole = np.flatnonzero(there[:, common].all(axis=1)).tolist()
    x = np.array([[counted[i][name] for name in features] for i in whole], dtype=float)
    numbers = {name: i for i, name in enumerate(dict.fromkeys(experiments))}
    rivals = {name: i for i, name in enumerate(dict.fromkeys((NONE, *beside)))}
    rows = CounterRows(
        features,
        x.reshape(len(whole), len(features)),
        np.array([y[i] for i in whole], dtype=float),
        np.array([numbers[experiments[i]] for i in whole], dtype=int),
        np.array([rivals[beside[i]] for i in whole], dtype=int) if beside else None,
        tuple(rivals) if beside else (),
    )
    dropped = (
        DroppedFeature(name, f"not counted in {share:.0%} of the rows")
        for name, share in zip(names, 1.0 - there.mean(axis=0), strict=True)
        if share > MOST_MISSING
    )
    return rows, tuple(dropped)


def without_idle_features(rows: CounterRows) -> tuple[CounterRows, tuple[DroppedFeature, ...]]:
    """The rows without constant columns and without columns that repeat an earlier one."""
    dropped: list[DroppedFeature] = []
    kept: list[int] = []
    spread, deviation = np.ptp(rows.x, axis=0), rows.x.std(axis=0)
    # Of figures of 1e-200 the deviation is 0, though they differ.
    spread = np.where(deviation > 0.0, spread, 0.0)
    scaled = (rows.x - rows.x.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0)
    for column, name in enumerate(rows.features):
        if spread[column] <= 0.0:
            dropped.append(DroppedFeature(name, "constant"))
            continue
        alike = scaled[:, kept].T @ scaled[:, column] / len(rows.y)
        if alike.size and alike.max() >= SAME:
            other = rows.features[kept[int(alike.argmax())]]
            dropped.append(DroppedFeature(name, f"same as {other}"))
        else:
            kept.append(column)
    return rows.only(tuple(rows.features[column] for column in kept)), tuple(dropped)


def least_above_0(column: Floats) -> float:
    """The least figure of a column (n,) that is not 0: below it there is no telling one from
    another; 1 where all are 0."""
    above = column[column > 0.0]
    return float(above.min()) if above.size else 1.0
