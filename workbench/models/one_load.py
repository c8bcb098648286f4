"""Models over a single load: their samples as points, and what such models share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.models.base import Floats
from workbench.models.estimator import ProfileEstimator
from workbench.models.scales import UNKNOWN_LOG_SD

Mask = NDArray[np.bool_]

_LARGEST_LOG = 300.0  # e^300 can still be squared
_SMALLEST_SD = 1e-3
_BELOW_SMALLEST = 4.6  # a KPI without a floor is followed to a hundredth of the smallest sample


@dataclass(frozen=True)
class Points:
    """Distinct loads of one configuration by rising load, repetitions averaged by precision.

    Attributes
    ----------
    r : loads in their unit, shape (n,).
    y : log KPI, shape (n,).
    sd : standard deviation of y, shape (n,).
    bounded : of shape (n,), whether y is at the KPI's floor or ceiling and so says only where the
        KPI is not: the floor is the smallest y where several loads share it to the last digit.
    low, high : logs between which the KPI lies.
    noise_known : whether `sd` was told, or is what METHOD.md 6 expects.
    """

    r: Floats
    y: Floats
    sd: Floats
    bounded: Mask
    low: float
    high: float
    noise_known: bool

    @property
    def kpi(self) -> Floats:
        return np.asarray(np.exp(self.y))

    def log(self, kpi: Floats) -> Floats:
        """Log of a fitted KPI, within what the KPI may be."""
        logs = np.log(np.clip(kpi, 1e-300, 1e300))
        return np.asarray(np.clip(logs, self.low, self.high))

    def below(self, splits: NDArray[np.int64]) -> Mask:
        """Regions of the first loads, as many as each of `splits` (k,) says, shape (k, n)."""
        return np.asarray(np.arange(len(self.r)) < splits[:, None])


def loads_of(x: Floats) -> Floats:
    """Loads in their unit from their logs."""
    return np.asarray(np.exp(np.clip(x, -_LARGEST_LOG, _LARGEST_LOG)))


def points_of(x: Floats, y: Floats, noise: Floats | None, ceiling: float | None) -> Points:
    """Points from logs of loads and KPI, each of shape (n,)."""
    sd = np.full_like(y, UNKNOWN_LOG_SD) if noise is None else np.maximum(noise, _SMALLEST_SD)
    r, place = np.unique(loads_of(x), return_inverse=True)
    precision = np.bincount(place, sd**-2.0)
    largest = _LARGEST_LOG if ceiling is None else ceiling
    mean = np.bincount(place, np.clip(y, -_LARGEST_LOG, largest) * sd**-2.0) / precision
    smallest = float(mean.min())
    at_floor = mean <= smallest + 1e-9
    has_floor = bool(at_floor.sum() > 1)
    low = smallest if has_floor else smallest - _BELOW_SMALLEST
    bounded = (at_floor & has_floor) | (mean >= largest - 1e-9)
    return Points(r, mean, 1.0 / np.sqrt(precision), bounded, low, largest, noise is not None)


def gap_around(points: Points, place: float) -> tuple[float, float]:
    """Logs of the loads on either side of a break-point; twice its own where there are none."""
    loads = np.log(points.r)
    count = int((loads < place).sum())
    if not 0 < count < len(loads):
        return place, place
    return float(loads[count - 1]), float(loads[count])


def top_of(points: Points, ceiling: float | None) -> float:
    """The KPI at which a function saturates: 100 %, or, for what is not a percentage, its ceiling.

    A ceiling up to 100 may be a percentage, cut at 30 % loss as in the papers: the asymptote stays
    at 100. Without a ceiling, and above 100, it is ten times the largest sample.
    """
    if ceiling is not None:
        return max(100.0, float(np.exp(min(ceiling, _LARGEST_LOG))))
    largest = float(points.kpi.max())
    return 100.0 if largest <= 100.0 else 10.0 * largest


class OneLoad(ProfileEstimator):
    """Base of models over the last column, log `wl`, alone.

    Other columns are ignored: of several configurations it is the mean curve. `PerConfiguration`
    gives each its own.
    """

    fewest_points = 1

    def _loads(self, X: ArrayLike) -> Floats:
        """Log loads of a prediction, of shape (m,)."""
        return self._rows(X)[:, -1]
