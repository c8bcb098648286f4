"""What a law of the chain leaves over the load, where it leaves anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.models.base import Floats
from workbench.models.folds import Ints
from workbench.models.pooled.surface import matern

FEWEST_POINTS = 6
"""Operating points below which a pattern cannot be told from noise."""
CLEARLY = 0.75
"""Of the law's mean error: at most so much may be left at points that were held out."""
SURELY = 2.0
"""Standard errors of the difference that it must be better by."""
SHARED = 0.5
"""Of the process's variance, common to all configurations."""
FLOOR = 0.03
"""Log standard deviation that a sample has at least: processes do not follow noise."""
_SIZES = (0.05, 0.1, 0.2, 0.4, 0.8)
_REACHES = (0.5, 1.0, 2.0)
"""In log load."""


@dataclass(frozen=True)
class ResidualProcess:
    """Gaussian process with Matérn 3/2 over log load; half of its variance is shared.

    Far from the samples it is zero: there the law stands alone. Configurations go by number; one
    that no sample has shares half.

    Attributes
    ----------
    x, groups : log load and configuration of each operating point, of shape (n,).
    alpha, inverse : weights (n,) and inverse covariance (n, n).
    remainder : variance of what it leaves at points that were held out, noise taken off.
    """

    x: Floats
    groups: Ints
    size: float
    reach: float
    alpha: Floats
    inverse: Floats
    remainder: float

    def at(self, x: Floats, groups: Ints) -> tuple[Floats, Floats]:
        """Mean and variance at log loads `x` (m,) of configurations `groups` (m,)."""
        cross = kernel(x, groups, self.x, self.groups, self.size, self.reach)
        taken = np.einsum("ij,jk,ik->i", cross, self.inverse, cross)
        return cross @ self.alpha, np.maximum(self.size**2 - taken, 0.0) + self.remainder

    @property
    def coefficients(self) -> Floats:
        return np.concatenate([[self.size, self.reach, self.remainder], self.alpha])


def residual_of(
    x: Floats, groups: Ints, points: Ints, left: Floats, sd: Floats
) -> ResidualProcess | None:
    """The process, if it predicts points that it has not seen clearly better than nothing does.

    Size and reach are those of the largest evidence. Without one point at a time it says the
    others (in closed form: Rasmussen & Williams 2006, Gaussian Processes for Machine Learning,
    Eq. 5.12); its mean absolute error must be at most three quarters of what the law leaves, and
    be smaller by two standard errors of the difference.

    Parameters
    ----------
    x, groups, points : log load, configuration and operating point of each sample, of shape (n,).
    left : what the law leaves of its log KPI; `sd` is the noise of that.
    """
    _, first, place = np.unique(points, return_index=True, return_inverse=True)
    count = np.bincount(place)
    if len(count) < FEWEST_POINTS:
        return None
    mean = np.bincount(place, left) / count
    variance = np.bincount(place, np.square(sd)) / np.square(count) + FLOOR**2
    x, groups = x[first], groups[first]

    def inverse_of(size: float, reach: float) -> Floats:
        covariance = kernel(x, groups, x, groups, size, reach) + np.diag(variance)
        return np.asarray(np.linalg.inv(covariance))

    def evidence(inverse: Floats) -> float:
        return float(0.5 * np.linalg.slogdet(inverse)[1] - 0.5 * mean @ inverse @ mean)

    size, reach = max(
        ((size, reach) for size in _SIZES for reach in _REACHES),
        key=lambda one: evidence(inverse_of(*one)),
    )
    inverse = inverse_of(size, reach)
    alpha = inverse @ mean
    missed = alpha / np.diag(inverse)
    better = np.abs(mean) - np.abs(missed)
    error = float(better.std(ddof=1)) / np.sqrt(len(better))
    clear = np.abs(missed).mean() <= CLEARLY * np.abs(mean).mean()
    if not clear or better.mean() < SURELY * error:
        return None
    remainder = max(float(np.mean(np.square(missed) - variance)), FLOOR**2)
    return ResidualProcess(x, groups, size, reach, alpha, inverse, remainder)


def kernel(
    x: Floats, groups: Ints, other: Floats, others: Ints, size: float, reach: float
) -> Floats:
    """Matérn 3/2 over log loads `x` (n,) and `other` (m,); other configurations share a part."""
    same = groups[:, None] == others[None, :]
    along = matern(np.abs(x[:, None] - other[None, :]) / reach)
    return np.asarray(size**2 * along * np.where(same, 1.0, SHARED))
