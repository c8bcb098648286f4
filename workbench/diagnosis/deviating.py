"""Which figures deviate, by the statistics of paper E (sections 6.1 to 6.3): pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.measuring.records import Floats

WHISKER = 1.5
"""Quartile ranges beyond the quartiles from which a value is an outlier (Tukey 1977; paper E
names the quartile range alone)."""
FEWEST_VALUES = 4
"""Values from which quartiles say anything; of fewer nothing is dropped."""
FEWEST_REPETITIONS = 3
"""Stand-alone samples under which a standard deviation is no boundary."""
FEWEST_POINTS = 5
"""Configurations under which a line through all of them says nothing of one."""


@dataclass(frozen=True)
class Kept:
    """What an interquartile filter left of values: their mean, and what was dropped.

    Attributes
    ----------
    sigma : standard deviation of those kept (n - 1); 0 for a single one.
    """

    mean: float
    sigma: float
    count: int
    dropped: tuple[float, ...]


def without_outliers(values: Sequence[float]) -> Kept | None:
    """Mean and deviation of what lies within `WHISKER` quartile ranges of the quartiles (paper E,
    6.1); values that are not finite are dropped. None where nothing is left."""
    given = np.asarray(values, dtype=float)
    finite = np.isfinite(given)
    kept = finite.copy()
    if int(finite.sum()) >= FEWEST_VALUES:
        low, high = np.percentile(given[finite], (25.0, 75.0))
        reach = WHISKER * (high - low)
        kept &= (given >= low - reach) & (given <= high + reach)
    left = given[kept]
    if not left.size:
        return None
    sigma = float(left.std(ddof=1)) if left.size > 1 else 0.0
    return Kept(float(left.mean()), sigma, int(left.size), tuple(given[~kept].tolist()))


def cooks_distances(x: Sequence[float], y: Sequence[float]) -> Floats:
    """Cook's distance of every point from the line through all of them (paper E, Eq. 1-5).

    Parameters
    ----------
    x, y : observation points and values, shape (n,), finite.

    Returns
    -------
    ndarray of shape (n,)
        0 everywhere where all points lie on the line, or all x are the same and all y are. A point
        that alone decides the slope (leverage 1) has no distance: infinite where it is off what
        the others say, which the line cannot show, so it is 0 here.

    Raises
    ------
    ValueError
        With fewer points than `FEWEST_POINTS`.
    """
    points, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    count = points.size
    if count < FEWEST_POINTS or values.size != count:
        raise ValueError(f"{count} points, and {FEWEST_POINTS} at least are needed")
    apart = points - points.mean()
    spread = float(apart @ apart)
    flat = spread <= 1e-12 * max(1.0, float(np.abs(points).max()) ** 2)
    slope = 0.0 if flat else float(apart @ (values - values.mean())) / spread
    residual = values - (values.mean() + slope * apart)
    leverage = np.full(count, 1.0 / count) if flat else 1.0 / count + apart**2 / spread
    parameters = 1 if flat else 2  # k + 1
    # The residuals of a line with an intercept have mean 0: Eq. 4 is their sum of squares.
    mse = float(residual @ residual) / (count - parameters)
    scale = max(1e-300, float(np.abs(values).max()) ** 2)
    if mse <= 1e-18 * scale:
        return np.zeros(count)
    free = np.maximum(1.0 - leverage, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = residual**2 / (parameters * mse) * leverage / free**2
    return np.where(free > 1e-9, distance, 0.0)


@dataclass(frozen=True)
class Ranked:
    """One of several points, by its mean distance over all features.

    Attributes
    ----------
    point : its index.
    beyond : features whose distance is over the threshold, the largest first.
    """

    point: int
    mean_distance: float
    beyond: tuple[str, ...]


def suspects(x: Sequence[float], features: Mapping[str, Sequence[float]]) -> list[Ranked]:
    """Points whose distance is over 4/n by some feature, by their mean distance over all (paper E,
    section 6.2); a feature that lacks a value anywhere is left out."""
    found = {
        name: cooks_distances(x, values)
        for name, values in features.items()
        if all(math.isfinite(value) for value in values)
    }
    if not found:
        return []
    threshold = 4.0 / len(x)
    ranked = []
    for point in range(len(x)):
        own = {name: float(distances[point]) for name, distances in found.items()}
        beyond = sorted((n for n, d in own.items() if d > threshold), key=lambda n: -own[n])
        if beyond:
            ranked.append(Ranked(point, sum(own.values()) / len(own), tuple(beyond)))
    return sorted(ranked, key=lambda one: -one.mean_distance)


def sigmas_from(value: float, alone: Sequence[float]) -> float | None:
    """By how many standard deviations a value lies off what a function does alone; None under
    `FEWEST_REPETITIONS` of it. Infinite where those do not differ and it does."""
    if len(alone) < FEWEST_REPETITIONS:
        return None
    known = np.asarray(alone, dtype=float)
    apart = value - float(known.mean())
    sigma = float(known.std(ddof=1))
    if sigma <= 1e-12 * max(1.0, float(np.abs(known).max())):
        return 0.0 if abs(apart) <= 1e-9 * max(1.0, abs(value)) else math.copysign(math.inf, apart)
    return apart / sigma
