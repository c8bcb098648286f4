"""Fitting profiling functions to regions of one load, all regions at once.

Given its shape (at most two numbers), a profiling function is a weighted linear least-squares
problem with an answer in closed form, signs and bounds included. So only the shape is searched: on
a grid over all that it may be, then on ever finer grids around the best (variable projection:
Golub & Pereyra, SIAM J. Numer. Anal. 10(2), 1973). That is deterministic and has no start that
could fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from workbench.models.base import Floats
from workbench.models.functions import Frame, ProfilingFunction, Shape
from workbench.models.one_load import Mask, Points

_HALVINGS = 10
_SPLITS_AT_ONCE = 12


def fit_regions(
    function: ProfilingFunction, points: Points, regions: Mask, fewest: int, relative: bool = True
) -> tuple[Floats, Floats]:
    """Fit one function to each region.

    Points that are only bounds are left out where enough others remain; a function without a shape
    to search is tried with them too.

    Parameters
    ----------
    regions : which points each region has, shape (k, n).
    fewest : loads below which a region has no fit.
    relative : whether errors count relative to the KPI, or as they are.

    Returns
    -------
    coefficients, sse : shape (k, size) and (k,)
        The coefficients, and their sum of squared log residuals in units of their standard
        deviations over the whole region; infinite where there is no fit.
    """
    inner = regions & ~points.bounded
    enough = inner.sum(axis=1) >= max(fewest, function.size + 1)
    fitted = np.where(enough[:, None], inner, regions)
    coefficients, sse = _fit(function, points, fitted, regions, fewest, relative)
    if not function.shape and not np.array_equal(fitted, regions):
        others, other_sse = _fit(function, points, regions, regions, fewest, relative)
        better = other_sse < sse
        coefficients = np.where(better[:, None], others, coefficients)
        sse = np.where(better, other_sse, sse)
    return coefficients, sse


def _fit(
    function: ProfilingFunction,
    points: Points,
    fitted: Mask,
    judged: Mask,
    fewest: int,
    relative: bool,
) -> tuple[Floats, Floats]:
    enough = fitted.sum(axis=1) >= fewest
    used = np.where(enough[:, None], fitted, True)
    first = np.where(used, points.r, np.inf).min(axis=1)
    last = np.where(used, points.r, -np.inf).max(axis=1)
    frame = Frame(first, np.where(last > first, last - first, first))
    t = np.clip((points.r - first[:, None]) / frame.width[:, None], -1e6, 1e6)
    if function.domain == "log":
        values, spread = points.y, points.sd
    else:
        values, spread = points.kpi, points.sd * (points.kpi if relative else 1.0)
    # Weights and values near 1: a KPI of 1e-90 must not underflow when it is squared.
    unit = 1.0 if function.domain == "log" else float(points.kpi.max())
    weights = used * np.square(spread.min() / spread)
    level, scale, shape = _search(function, t, values / unit, weights, frame, unit)
    coefficients = np.stack(function.named(level * unit, scale * unit, shape, frame), axis=1)
    residual = (points.log(function.evaluate(coefficients, points.r)) - points.y) / points.sd
    sse = np.sum(np.where(judged, residual**2, 0.0), axis=1)
    return coefficients, np.where(enough & np.isfinite(coefficients).all(axis=1), sse, np.inf)


def _search(
    function: ProfilingFunction,
    t: Floats,
    values: Floats,
    weights: Floats,
    frame: Frame,
    unit: float,
) -> tuple[Floats, Floats, Shape]:
    """Level, scale and shape with the least weighted squares, each of shape (k,)."""
    rows, axes = np.arange(len(t)), function.shape
    offset = (frame.first / frame.width)[:, None, None]
    grid = list(product(*(np.linspace(0.0, 1.0, axis.count) for axis in axes)))
    shares = np.broadcast_to(np.array(grid), (len(t), len(grid), len(axes)))
    steps = np.array(list(product((-0.5, 0.0, 0.5), repeat=len(axes))))
    reach = np.array([1.0 / (axis.count - 1) for axis in axes])
    for _ in range(_HALVINGS + 1 if axes else 1):
        shape = tuple(axis.at(shares[..., place]) for place, axis in enumerate(axes))
        if function.z is None:
            z = np.zeros((len(t), 1, t.shape[1]))
        else:
            z = function.z(t[:, None, :], tuple(s[:, :, None] for s in shape), offset)
        level, scale, sse = _solve(function, z, values, weights, unit)
        best = np.argmin(sse, axis=1)
        answer = level[rows, best], scale[rows, best], tuple(s[rows, best] for s in shape)
        shares = np.clip(shares[rows, best][:, None, :] + steps * reach, 0.0, 1.0)
        reach = reach / 2.0
    return answer


def _solve(
    function: ProfilingFunction, z: Floats, values: Floats, weights: Floats, unit: float
) -> tuple[Floats, Floats, Floats]:
    """Weighted least squares in level and scale for each z (k, g, n), as three arrays (k, g)."""
    if isinstance(function.level, float) or function.level == "none":
        given = function.level / unit if isinstance(function.level, float) else 0.0
        level = np.full(z.shape[:2], given)
        scale = _slope(z, values - given, weights, function.sign)
    else:
        total = weights.sum(axis=1, keepdims=True)
        mean = (weights @ values)[:, None] / total
        mean_z = np.matmul(z, weights[:, :, None])[:, :, 0] / total
        centred = values - mean
        scale = _slope(z - mean_z[:, :, None], centred, weights, function.sign)
        level = mean - scale * mean_z
        if function.level == "positive" and (level < 0.0).any():
            scale = np.where(level < 0.0, _slope(z, values, weights, function.sign), scale)
            level = np.maximum(level, 0.0)
    residual = values - level[:, :, None] - scale[:, :, None] * z
    return level, scale, np.matmul(np.square(residual), weights[:, :, None])[:, :, 0]


def _slope(z: Floats, values: Floats, weights: Floats, sign: int) -> Floats:
    """Best factor of z (k, g, n) for values (n,) or (k, n), of the given sign, as (k, g)."""
    square = np.matmul(np.square(z), weights[:, :, None])[:, :, 0]
    cross = np.matmul(z, (weights * values)[:, :, None])[:, :, 0]
    slope = np.divide(cross, square, out=np.zeros_like(cross), where=square > 1e-280)
    return np.asarray(slope if sign == 0 else np.maximum(slope * sign, 0.0) * sign)


@dataclass(frozen=True)
class ProfiledRegion:
    """What Algorithm 2 saves of one region, ready for export.

    `errors` are the standard errors of the coefficients, `standard_error` that of the regression,
    as a relative error of the KPI. `low` and `high` are loads in their unit.
    """

    region: str
    function: str
    formula: str
    low: float
    high: float
    coefficients: dict[str, float]
    errors: dict[str, float]
    standard_error: float


@dataclass(frozen=True)
class Piece:
    """A function with its coefficients, fitted to one region.

    Attributes
    ----------
    coefficients : shape (size,).
    covariance : of the coefficients by the delta method, shape (size, size).
    standard_error : of the regression, as a relative error of the KPI.
    spare : degrees of freedom.
    """

    function: ProfilingFunction
    coefficients: Floats
    covariance: Floats
    standard_error: float
    spare: int

    @classmethod
    def of(
        cls, function: ProfilingFunction, coefficients: Floats, points: Points, region: Mask
    ) -> Piece:
        """The piece with its errors, from the scatter of the residuals in its region.

        With no sample to spare the scatter is the samples' own noise.
        """
        used = region & ~points.bounded if (region & ~points.bounded).any() else region
        fitted = points.log(function.evaluate(coefficients, points.r))
        residual = ((fitted - points.y) / points.sd)[used]
        spare = int(used.sum()) - function.size
        variance = float(residual @ residual) / spare if spare > 0 else 1.0
        slopes = jacobian(function, coefficients, points.r[used]) / points.sd[used, None]
        # Coefficients differ by many powers of ten: unit columns keep the inverse sound.
        size = np.linalg.norm(slopes, axis=0)
        size[size == 0.0] = 1.0
        unit = slopes / size
        inverse = np.linalg.pinv(unit.T @ unit, rcond=1e-12, hermitian=True)
        error = float(np.sqrt(variance) * np.median(points.sd[used]))
        return cls(
            function, coefficients, variance * inverse / np.outer(size, size), error, max(spare, 1)
        )

    @property
    def standard_errors(self) -> Floats:
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    def kpi(self, r: Floats) -> Floats:
        return self.function.evaluate(self.coefficients, r)

    def region(self, name: str, low: float, high: float) -> ProfiledRegion:
        """It as data, from one load to another."""
        names = self.function.coefficients
        return ProfiledRegion(
            name,
            self.function.name,
            self.function.formula,
            low,
            high,
            dict(zip(names, self.coefficients.tolist(), strict=True)),
            dict(zip(names, self.standard_errors.tolist(), strict=True)),
            self.standard_error,
        )

    def half_width(self, r: Floats) -> Floats:
        """Half of the 95 % interval of the log of the KPI's mean at loads (n,)."""
        from scipy.special import stdtrit

        slopes = jacobian(self.function, self.coefficients, r)
        variance = np.einsum("ni,ij,nj->n", slopes, self.covariance, slopes)
        return np.asarray(stdtrit(self.spare, 0.975) * np.sqrt(np.maximum(variance, 0.0)))


def jacobian(function: ProfilingFunction, coefficients: Floats, r: Floats) -> Floats:
    """Derivatives of the log KPI by the coefficients at loads r (n,), as shape (n, size).

    Central differences; where the KPI has no logarithm a coefficient counts as known.
    """
    columns = []
    for place, value in enumerate(coefficients):
        step = 1e-6 * abs(float(value)) or 1e-9
        logs = []
        for sign in (-1.0, 1.0):
            moved = coefficients.copy()
            moved[place] += sign * step
            logs.append(np.log(np.clip(function.evaluate(moved, r), 1e-300, 1e300)))
        columns.append((logs[1] - logs[0]) / (2.0 * step))
    return np.nan_to_num(np.stack(columns, axis=1), posinf=0.0, neginf=0.0)


def penalised(sse: Floats, points: Points, coefficients: Floats) -> Floats:
    """What a fit's squared residuals and its number of coefficients cost: the smallest is best.

    The larger penalty of BIC and of AIC corrected for few samples (Burnham & Anderson 2002,
    2.4): the first holds with many loads, the second forbids to explain five loads by five numbers.
    Residuals under half of a known noise are no merit.
    """
    n = len(points.r)
    small = 2.0 * n / np.maximum(n - coefficients - 1.0, 0.5)
    least = 0.25 if points.noise_known else 1e-12
    spread = np.maximum(sse / n, least)
    return np.asarray(n * np.log(spread) + coefficients * np.maximum(np.log(n), small))


def best_split(n: int, cost: Callable[[NDArray[np.int64]], Floats]) -> tuple[int, float]:
    """The number of loads below the cheapest split of `n` >= 4, two on either side, and its cost.

    `cost` takes numbers of loads of shape (k,). With many loads a dozen splits are tried first, and
    then all that lie beside the best of them.
    """
    tried = np.unique(np.linspace(2, n - 2, _SPLITS_AT_ONCE).astype(np.int64))
    costs = cost(tried)
    gap = int(np.diff(tried).max(initial=1))
    while gap > 1:
        best = int(tried[np.argmin(costs)])
        between = np.arange(max(2, best - gap + 1), min(n - 2, best + gap - 1) + 1)
        if len(between) > _SPLITS_AT_ONCE:
            between = between[np.linspace(0, len(between) - 1, _SPLITS_AT_ONCE).astype(np.int64)]
        gap = int(np.diff(between).max(initial=1))
        between = between[~np.isin(between, tried)]
        if not between.size:
            break
        costs = np.concatenate([costs, cost(between)])
        tried = np.concatenate([tried, between])
    return int(tried[np.argmin(costs)]), float(costs.min())
