"""Curve fit: paper B's Eq. 2, an exponential below saturation and a hyperbola above it."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.models.base import Floats
from workbench.models.functions import CONSTANT, OFFSET_EXPONENTIAL, hyperbolic
from workbench.models.one_load import OneLoad, gap_around, loads_of, points_of, top_of
from workbench.models.regions import Piece, ProfiledRegion, best_split, fit_regions, penalised

Ints = NDArray[np.int64]

_GRID = 241
"""Loads at which both pieces are compared to find where they meet."""


class CurveFit(OneLoad):
    """Two rising pieces over the load: a + exp(b (x - c)), then top (1 - d / (x - e)).

    Inside, it works on loads and KPI as they are, clipped to [0, top] as in the paper; logs are at
    the interface only. `top` is 100 for a percentage; for any other KPI it is the ceiling, so that
    a response time that grows in proportion to the load is the flank of a wide hyperbola. All of
    a, d >= 0 and b > 0, so that the curve never falls: a KPI that falls with the load is fitted
    by a level. exp has the factor 1, so that c is its amplitude and can be told apart from a
    (in paper D's Eq. 2, a exp(b (x - c)), it cannot: there c is 0).

    The paper parts the samples where the KPI covaries more with the load than the usage does. There
    is no usage here: the gaps between loads are tried (`workbench.models.regions.best_split`), both
    pieces are fitted on their side, and of all places where they meet the one with the smallest
    RMSE over all samples is kept; where they do not meet, a step up in the gap itself. Either piece
    alone competes under a penalty for coefficients: a flat KPI gets no break-point.

    Errors count relative to the KPI (in the saturated piece: the paper's weighting towards low KPI)
    in both pieces and in the RMSE, as our scores do. `relative=False` is the paper to the letter:
    only the saturated piece is weighted, and the RMSE is that of the KPI.

    Samples at the KPI's floor or ceiling only bound it; predictions stay between the two.

    Parameters
    ----------
    relative : bool, default=True
        What an error is.
    ceiling : float, optional
        Log of the KPI ceiling.

    Attributes
    ----------
    below_, above_ : Piece or None
        The pieces; None where the other serves for all loads.
    breakpoint_ : float
        Log of the load where `above_` takes over; infinite where it never does, minus infinite
        where it always has.
    coefficients_ : ndarray of shape (6,)
        Break-point, a, b, c, d, e; 0 for what is not there (a level has only a).
    standard_errors_ : ndarray of shape (5,)
        Of a to e by the delta method.
    """

    def __init__(self, relative: bool = True, ceiling: float | None = None) -> None:
        self.relative = relative
        self.ceiling = ceiling

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to the last column of `X` (n, d); `noise` (n,) is the sd of y."""
        X, y, sd = self._checked(X, y, noise)
        points = points_of(X[:, -1], y, sd, self.ceiling)
        n = len(points.r)
        self.points_ = points
        self.saturated_ = hyperbolic(top_of(points, self.ceiling))

        whole = np.ones(1, dtype=np.int64) * n
        left, right, none = self._left(whole)[0], self._right(0 * whole)[0], np.empty((1, 0))
        level = fit_regions(CONSTANT, points, np.ones((1, n), dtype=bool), 1)[0]
        # As an exponential that is nothing at any load.
        level = np.column_stack([level, 1.0 / points.r[-1:], 691.0 * points.r[-1:]])
        alone = [(level, none, math.inf), (left, none, math.inf), (none, right, -math.inf)]
        costs = [self._alone(*one[:2]) for one in alone]
        choice = alone[int(np.argmin(costs))]
        if n >= 4:
            # What was found is kept: fitted alone, the pieces of a split may come out with other
            # last digits, and then pieces that just met need not meet.
            pairs: dict[int, _Pair] = {}

            def cost_of(splits: Ints) -> Floats:
                found = self._joined(splits)
                pairs.update(zip(splits.tolist(), found, strict=True))
                return np.array([pair.cost for pair in found])

            split, cost = best_split(n, cost_of)
            if cost < min(costs):
                choice = (pairs[split].left, pairs[split].right, pairs[split].place)
        self._keep(*choice)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, d), as shape (m,); it never falls with the load."""
        return self._mean(self._loads(X))

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, d) by the delta method, each of shape (m,).

        It takes the law for right; `PerConfiguration` can widen it by what that errs. The
        break-point may lie anywhere in its gap: there the band is that of both pieces.
        """
        x = self._loads(X)
        low = self._mean(x)
        high, r = low.copy(), loads_of(x)
        first, last = gap_around(self.points_, self.breakpoint_)
        inside = (first < x) & (x < last)
        for piece, here in ((self.below_, ~self._above(x)), (self.above_, self._above(x))):
            if piece is None:
                continue
            places = here | inside
            mean, half = self.points_.log(piece.kpi(r[places])), piece.half_width(r[places])
            low[places] = np.minimum(low[places], mean - half)
            high[places] = np.maximum(high[places], mean + half)
        return low, high

    def describe(self) -> list[ProfiledRegion]:
        """The pieces with their coefficients and standard errors, by rising load."""
        first, last = float(self.points_.r[0]), float(self.points_.r[-1])
        edge = float(np.exp(self.breakpoint_)) if math.isfinite(self.breakpoint_) else None
        found = []
        if self.below_ is not None:
            name = "no saturation" if edge is not None else "whole range"
            found.append(self.below_.region(name, first, last if edge is None else edge))
        if self.above_ is not None:
            name = "saturation" if edge is not None else "whole range"
            found.append(self.above_.region(name, first if edge is None else edge, last))
        return found

    def inverse(self, kpi: float) -> float:
        """Log of the highest `wl` at which the log KPI is at most `kpi`.

        Both are logs of figures in the units of the fit. Infinite if the curve never exceeds `kpi`
        (from the KPI's ceiling on), minus infinite if it lies above `kpi` at every load.
        """
        if kpi >= self.points_.high:
            return math.inf
        if kpi < self.points_.low:
            return -math.inf
        raw = math.exp(kpi)
        if self.above_ is None or kpi < self._at(self.above_, self.breakpoint_):
            if self.below_ is None:
                return -math.inf
            if kpi < self._at(self.below_, -math.inf):
                return -math.inf
            return min(self._reached(self.below_, raw), self.breakpoint_)
        return max(self._reached(self.above_, raw), self.breakpoint_)

    def _at(self, piece: Piece, x: float) -> float:
        """Log KPI of a piece at the log load x."""
        return float(self.points_.log(piece.kpi(loads_of(np.array([x]))))[0])

    def _reached(self, piece: Piece, kpi: float) -> float:
        """Log of the load at which a piece exceeds the KPI; infinite if it never does."""
        if piece.function.inverse is None:
            return math.inf
        load = piece.function.inverse(piece.coefficients, kpi)
        return math.log(load) if load > 0.0 else math.inf if math.isnan(load) else -math.inf

    def _mean(self, x: Floats) -> Floats:
        r = loads_of(x)
        below = self.points_.log(self.below_.kpi(r)) if self.below_ else np.zeros_like(r)
        above = self.points_.log(self.above_.kpi(r)) if self.above_ else np.zeros_like(r)
        return np.where(self._above(x), above, below)

    def _above(self, x: Floats) -> NDArray[np.bool_]:
        return np.asarray(x >= self.breakpoint_)

    def _left(self, splits: Ints) -> tuple[Floats, Floats]:
        """Coefficients (k, 3) and log sse (k,) of the exponential below each split."""
        below = self.points_.below(splits)
        return fit_regions(OFFSET_EXPONENTIAL, self.points_, below, 1, self.relative)

    def _right(self, splits: Ints) -> tuple[Floats, Floats]:
        """Coefficients (k, 2) and log sse (k,) of the hyperbola above each split."""
        return fit_regions(self.saturated_, self.points_, ~self.points_.below(splits), 1)

    def _alone(self, left: Floats, right: Floats) -> float:
        """Cost of a single piece for all loads: of the one that has coefficients."""
        r = self.points_.r
        if left.size:
            kpi, count = OFFSET_EXPONENTIAL.evaluate(left, r), self._counted(left)
        else:
            kpi, count = self.saturated_.evaluate(right, r), np.array([2.0])
        return float(penalised(self._squares(kpi), self.points_, count)[0])

    def _counted(self, left: Floats) -> Floats:
        """How many of the exponential's coefficients (k, 3) do something: 3, or 1 for a level.

        Less than a thousandth of the level at the last load: nobody sees it.
        """
        a, b, c = left.T
        last = b * (self.points_.r[-1] - c)
        return np.where(last < np.log(np.maximum(a, 1e-300)) - 7.0, 1.0, 3.0)

    def _squares(self, kpi: Floats) -> Floats:
        """Sum of squared errors of KPIs (..., n): of logs, or of the KPI, per the parameter."""
        points = self.points_
        if self.relative:
            return np.asarray(np.sum(np.square((points.log(kpi) - points.y) / points.sd), axis=-1))
        errors = np.exp(points.log(kpi)) - points.kpi
        return np.asarray(np.sum(np.square(errors / points.kpi.max()), axis=-1))

    def _joined(self, splits: Ints) -> list[_Pair]:
        """The two pieces that are parted at each split."""
        points = self.points_
        left, right = self._left(splits)[0], self._right(splits)[0]
        grid = np.linspace(np.log(points.r[0]), np.log(points.r[-1]), _GRID)
        ahead = points.log(self.saturated_.evaluate(right, loads_of(grid)))
        ahead = ahead - points.log(OFFSET_EXPONENTIAL.evaluate(left, loads_of(grid)))
        places = np.concatenate([_meetings(grid, ahead), self._steps(splits, left, right)], axis=1)
        below = OFFSET_EXPONENTIAL.evaluate(left, points.r)[:, None, :]
        above = self.saturated_.evaluate(right, points.r)[:, None, :]
        sse = self._squares(np.where(np.log(points.r) < places[:, :, None], below, above))
        sse = np.where(np.isnan(places), np.inf, sse)
        best = np.argmin(sse, axis=1)
        rows = np.arange(len(splits))
        cost = penalised(sse[rows, best], points, 2.0 + self._counted(left))
        return [
            _Pair(left[[row]], right[[row]], float(places[row, best[row]]), float(cost[row]))
            for row in rows
        ]

    def _steps(self, splits: Ints, left: Floats, right: Floats) -> Floats:
        """Middles of the gaps where the second piece lies above the first, else NaN: (k, 1)."""
        middle = np.sqrt(self.points_.r[splits - 1] * self.points_.r[splits])[:, None]
        ends = OFFSET_EXPONENTIAL.evaluate(left[:, None, :], middle[:, :, None])[:, :, 0]
        begins = self.saturated_.evaluate(right[:, None, :], middle[:, :, None])[:, :, 0]
        return np.where(begins >= ends, np.log(middle), np.nan)

    def _keep(self, left: Floats, right: Floats, breakpoint_: float) -> None:
        points = self.points_
        self.breakpoint_ = breakpoint_
        above = self._above(np.log(points.r))
        self.below_ = self.above_ = None
        numbers, errors = np.zeros(5), np.zeros(5)
        if left.size:
            region = ~above if (~above).any() else np.ones_like(above)
            flat = self._counted(left)[0] == 1.0
            function = CONSTANT if flat else OFFSET_EXPONENTIAL
            self.below_ = Piece.of(function, left[0, : function.size], points, region)
            numbers[: function.size] = self.below_.coefficients
            errors[: function.size] = self.below_.standard_errors
        if right.size:
            region = above if above.any() else np.ones_like(above)
            self.above_ = Piece.of(self.saturated_, right[0], points, region)
            numbers[3:], errors[3:] = right[0], self.above_.standard_errors
        start = breakpoint_ if math.isfinite(breakpoint_) else 0.0
        self.coefficients_ = np.concatenate([[start], numbers])
        self.standard_errors_ = errors


class _Pair(NamedTuple):
    """Coefficients (1, 3) and (1, 2) of two pieces, the log break-point and what they cost.

    The place is NaN and the cost infinite where nothing joins them.
    """

    left: Floats
    right: Floats
    place: float
    cost: float


def _meetings(grid: Floats, difference: Floats) -> Floats:
    """All places where rows of a difference (k, m) on the grid (m,) change sign: (k, most of them).

    A convex exponential and a concave hyperbola meet twice at most; floor and ceiling, on which
    both may lie, add one at either end. Linear between the grid's places; NaN where there are
    fewer.
    """
    changes = np.signbit(difference[:, 1:]) != np.signbit(difference[:, :-1])
    places = np.full((len(difference), int(changes.sum(axis=1).max(initial=0))), np.nan)
    for number in range(places.shape[1]):
        rows = np.flatnonzero(changes.any(axis=1))
        first = changes[rows].argmax(axis=1)
        before, after = difference[rows, first], difference[rows, first + 1]
        places[rows, number] = grid[first] + before / (before - after) * (grid[1] - grid[0])
        changes[rows, first] = False
    return places
