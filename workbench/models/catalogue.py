"""Catalogue fit: paper D's Algorithm 2, the best of many profiling functions below and above
saturation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.models.base import Floats
from workbench.models.functions import ProfilingFunction, profiling_functions
from workbench.models.one_load import (
    Mask,
    OneLoad,
    Points,
    gap_around,
    loads_of,
    points_of,
    top_of,
)
from workbench.models.regions import Piece, ProfiledRegion, best_split, fit_regions, penalised

Ints = NDArray[np.int64]


class Catalogue(OneLoad):
    """The profiling function with the smallest standard error, below and above the break-point.

    Functions are those of `workbench.models.functions`, over the load itself and not its logarithm;
    the standard error is that of log KPI, so that small figures count as large ones do. A
    superfluous coefficient lowers it by chance: functions whose error exceeds the smallest by less
    than a share of 2/n, n loads in the region, for each coefficient that they save count as equal
    to it (2/n too if they save none). Of these the one with fewest coefficients is taken, the
    first in the catalogue, which begins with the plain ones.

    The break-point may be given (from CPU usage, as in the paper). Otherwise it is found on the KPI
    alone: the gaps between loads are tried, with two loads on either side, against no break-point
    (`workbench.models.regions.penalised`). In its gap it is where both functions meet, or the
    middle. The pieces need not meet: delay jumps at saturation.

    Samples at the KPI's floor or ceiling only bound it; predictions stay between the two.

    Parameters
    ----------
    breakpoint : float, optional
        Log of the load at which saturation begins.
    ceiling : float, optional
        Log of the KPI ceiling.

    Attributes
    ----------
    pieces_ : list of Piece
        One, or two if there is a break-point.
    breakpoint_ : float
        Its log; infinite without one.
    coefficients_ : ndarray
        The break-point (0 without one), then for each piece the number of its function in the
        catalogue and its coefficients.
    standard_errors_ : ndarray
        Of the coefficients of all pieces, one after the other.
    """

    def __init__(self, breakpoint: float | None = None, ceiling: float | None = None) -> None:
        self.breakpoint = breakpoint
        self.ceiling = ceiling

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to the last column of `X` (n, d); `noise` (n,) is the sd of y."""
        X, y, sd = self._checked(X, y, noise)
        points = points_of(X[:, -1], y, sd, self.ceiling)
        functions = profiling_functions(top_of(points, self.ceiling))
        n = len(points.r)

        def halves(splits: Ints) -> list[RegionFunctions]:
            below = points.below(splits)
            return [_best(functions, points, half) for half in (below, ~below)]

        def cost(splits: Ints) -> Floats:
            low, high = halves(splits)
            # A change point that is searched for is as dear as three coefficients (Ninomiya, Stat.
            # Probab. Lett. 75(1), 2005).
            return penalised(low.sse + high.sse, points, 3.0 + low.size + high.size)

        whole = _best(functions, points, np.ones((1, n), dtype=bool))
        split, split_cost = self._given(points), -math.inf
        if self.breakpoint is None and n >= 4:
            split, split_cost = best_split(n, cost)
        if split and split_cost < penalised(whole.sse, points, whole.size)[0]:
            chosen = halves(np.array([split]))
        else:
            split, chosen = 0, [whole]
        below = points.below(np.array([split]))
        regions = [below[0], ~below[0]][-len(chosen) :]
        self.pieces_ = [
            Piece.of(functions[one.places[0]], one.coefficients[0], points, region)
            for one, region in zip(chosen, regions, strict=True)
        ]
        self.breakpoint_ = self._place(points, split) if split else math.inf
        self.points_ = points
        numbers = [np.concatenate([[float(one.places[0])], one.coefficients[0]]) for one in chosen]
        start = self.breakpoint_ if split else 0.0
        self.coefficients_ = np.concatenate([[start], *numbers])
        self.standard_errors_ = np.concatenate([p.standard_errors for p in self.pieces_])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, d), as shape (m,)."""
        return self._mean(self._loads(X))

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, d) by the delta method, each of shape (m,).

        It takes the functions for right; `PerConfiguration` can widen it by what they err. A
        break-point that was found may lie anywhere in its gap: there the band is that of both.
        """
        x = self._loads(X)
        r = loads_of(x)
        ends = [
            (mean - half, mean + half)
            for piece in self.pieces_
            for mean, half in [(self.points_.log(piece.kpi(r)), piece.half_width(r))]
        ]
        low, high = (self._by_piece(x, [end[side] for end in ends]) for side in (0, 1))
        if len(ends) == 2 and self.breakpoint is None:
            first, last = gap_around(self.points_, self.breakpoint_)
            inside = (first < x) & (x < last)
            low = np.where(inside, np.minimum(ends[0][0], ends[1][0]), low)
            high = np.where(inside, np.maximum(ends[0][1], ends[1][1]), high)
        return low, high

    def describe(self) -> list[ProfiledRegion]:
        """The profile as Algorithm 2 saves it, one entry for each region."""
        r = self.points_.r
        whole = len(self.pieces_) == 1
        edge = float(loads_of(np.array(self.breakpoint_)))
        bounds = [(r[0], r[-1])] if whole else [(r[0], edge), (edge, r[-1])]
        names = ["whole range"] if whole else ["no saturation", "saturation"]
        return [
            piece.region(name, float(low), float(high))
            for name, (low, high), piece in zip(names, bounds, self.pieces_, strict=True)
        ]

    def _mean(self, x: Floats) -> Floats:
        r = loads_of(x)
        return self._by_piece(x, [self.points_.log(piece.kpi(r)) for piece in self.pieces_])

    def _by_piece(self, x: Floats, values: list[Floats]) -> Floats:
        return np.where(x < self.breakpoint_, values[0], values[-1])

    def _given(self, points: Points) -> int:
        """How many loads lie below the given break-point; 0 where it parts nothing."""
        if self.breakpoint is None:
            return 0
        count = int((np.log(points.r) < self.breakpoint).sum())
        return count if count < len(points.r) else 0

    def _place(self, points: Points, split: int) -> float:
        """The break-point in the gap between the last load below and the first above."""
        if self.breakpoint is not None:
            return float(self.breakpoint)
        low, high = np.log(points.r[split - 1 : split + 1])
        gap = np.linspace(low, high, 101)[1:-1]
        difference = np.subtract(*(points.log(piece.kpi(np.exp(gap))) for piece in self.pieces_))
        crossing = np.flatnonzero(np.diff(np.sign(difference)))
        return float(gap[crossing[0]] if crossing.size else gap[len(gap) // 2])


@dataclass(frozen=True)
class RegionFunctions:
    """The function of each of k regions: its place in the catalogue, its coefficients, their number
    and the sum of squared residuals, of shape (k,) each."""

    places: Ints
    coefficients: list[Floats]
    size: Floats
    sse: Floats


def _best(
    functions: tuple[ProfilingFunction, ...], points: Points, regions: Mask
) -> RegionFunctions:
    """The function with the smallest standard error, or as good as that and simpler, per region."""
    fits = [
        # A constant needs a load, everything else one more than it has coefficients.
        fit_regions(f, points, regions, fewest=1 if f.size == 1 else f.size + 1)
        for f in functions
    ]
    sse = np.stack([one for _, one in fits])
    size = np.array([f.size for f in functions])[:, None]
    loads = regions.sum(axis=1)
    error = np.sqrt(sse / np.maximum(loads - size, 1))
    smallest = error.min(axis=0)
    saved = size[np.argmin(error, axis=0), 0] - size
    close = error <= smallest * (1.0 + 2.0 / loads * np.maximum(saved, 1)) + 1e-6
    fewest = np.where(close, size, 99).min(axis=0)
    places = np.argmax(close & (size == fewest), axis=0)
    return RegionFunctions(
        places,
        [fits[place][0][region] for region, place in enumerate(places)],
        size[places, 0].astype(float),
        sse[places, np.arange(len(places))],
    )
