"""Counters of one function or chain as a table: what models of counters learn from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.models.base import Floats
from workbench.models.folds import Ints

SAME = 1.0 - 1e-9
"""Correlation from which two counters are one: they differ by a factor and rounding only."""


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
    """

    features: tuple[str, ...]
    x: Floats
    y: Floats
    groups: Ints

    def taken(self, rows: Ints) -> CounterRows:
        """These rows only."""
        return replace(self, x=self.x[rows], y=self.y[rows], groups=self.groups[rows])

    def only(self, features: tuple[str, ...]) -> CounterRows:
        """These columns only, in this order. Raises `ValueError` where one is not there."""
        columns = [self.features.index(name) for name in features]
        return replace(self, features=features, x=self.x[:, columns])

    @property
    def group_count(self) -> int:
        return len(np.unique(self.groups))


@dataclass(frozen=True)
class DroppedFeature:
    """A column that teaches nothing: `why` is `constant`, or `same as NAME`."""

    name: str
    why: str


def without_idle_features(rows: CounterRows) -> tuple[CounterRows, tuple[DroppedFeature, ...]]:
    """The rows without constant columns and without columns that repeat an earlier one."""
    dropped: list[DroppedFeature] = []
    kept: list[int] = []
    spread = np.ptp(rows.x, axis=0)
    scaled = (rows.x - rows.x.mean(axis=0)) / np.where(spread > 0.0, rows.x.std(axis=0), 1.0)
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
