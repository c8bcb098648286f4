"""How much new configurations change the profile of all: |dRMSE| of paper B's Fig. 10."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.models.base import Floats

FEWEST_LOADS = 3
"""Of a curve that is a neighbour: the two edges alone say nothing of where a KPI breaks."""

Row = tuple[float, ...]


@dataclass(frozen=True)
class Seen:
    """A valid sample: the place of its configuration on every factor, of its load, its log KPI."""

    row: Row
    x: float
    y: float


@dataclass(frozen=True)
class _Curve:
    x: Floats
    y: Floats

    def __call__(self, x: Floats) -> Floats:
        found: Floats = np.interp(x, self.x, self.y)
        return found


def change_of_rmse(
    old: Sequence[Seen], new: Sequence[Seen], along: int | None, ceiling: float
) -> float:
    """|RMSE(old) - RMSE(new)| over the KPI's range, both models compared on all samples.

    The model interpolates linearly: over `wl` within a configuration, and between configurations
    along the factor to which a value was added, nearest beyond its ends. It is exact at the means
    of what it knows, so that the change is what the old one missed at the new loads. An
    interpolation in all directions at once would mix configurations that lie as far away and
    blame a parameter without influence for the others'.

    Parameters
    ----------
    old, new : samples of the configurations sampled before, and of those that came with the value
    along : number of the factor that got the value; None takes the nearest configuration
    ceiling : log KPI of the ceiling; every y is at most that

    Returns
    -------
    float
        0 where nothing is new; infinite where nothing is old.
    """
    if not new:
        return 0.0
    known = {row: c for row, c in _curves(old).items() if len(c.x) >= FEWEST_LOADS}
    if not known:
        return math.inf
    fresh = _curves(new)
    missed = [
        error**2
        for row, curve in fresh.items()
        for error in _between(known, row, along, curve.x) - curve.y
    ]
    loads = sum(len(c.x) for c in _curves(old).values()) + len(missed)
    lowest = min(s.y for s in (*old, *new))
    return math.sqrt(sum(missed) / loads) / max(ceiling - lowest, math.log(2.0))


def _curves(samples: Sequence[Seen]) -> dict[Row, _Curve]:
    """By configuration: loads, rising, and the mean log KPI of their repetitions."""
    by_row: dict[Row, list[Seen]] = {}
    for sample in samples:
        by_row.setdefault(sample.row, []).append(sample)
    found = {}
    for row, own in by_row.items():
        x, place = np.unique([s.x for s in own], return_inverse=True)
        found[row] = _Curve(x, np.bincount(place, [s.y for s in own]) / np.bincount(place))
    return found


def _between(known: Mapping[Row, _Curve], row: Row, along: int | None, x: Floats) -> Floats:
    """What the known configurations say of another one at its loads."""
    in_line = [
        other
        for other in known
        if along is not None
        and all(abs(a - b) < 1e-9 for k, (a, b) in enumerate(zip(other, row, strict=True))
                if k != along)
    ]  # fmt: skip
    if along is None or not in_line:
        nearest = min(known, key=lambda other: (math.dist(other, row), other))
        return known[nearest](x)
    at = row[along]
    below = max((r for r in in_line if r[along] <= at), key=lambda r: r[along], default=None)
    above = min((r for r in in_line if r[along] >= at), key=lambda r: r[along], default=None)
    if below is None or above is None:
        return known[below or above or in_line[0]](x)
    width = above[along] - below[along]
    share = (at - below[along]) / width if width else 0.0
    return (1.0 - share) * known[below](x) + share * known[above](x)
