"""Straight lines between the samples: paper B's interpolation method on one axis."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from workbench.models.base import Floats
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD


class LogInterpolation(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Linear interpolation of log KPI over log `wl`; beyond the samples the last one holds.

    Repeated loads are averaged, weighted by their precision. The band is the noise of the samples
    carried along the line; it says nothing about curvature between them.

    Parameters
    ----------
    default_noise : float, default=0.12
        Standard deviation of y where none is known.

    Attributes
    ----------
    coefficients_ : ndarray of shape (3 * k,)
        The k distinct x, their y and the standard deviations of these.
    """

    def __init__(self, default_noise: float = UNKNOWN_LOG_SD) -> None:
        self.default_noise = default_noise

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to log `wl` `X` (n, 1); `noise` (n,) is the sd of each y."""
        x = np.asarray(X, dtype=float).ravel()
        target = np.asarray(y, dtype=float)
        sd = np.full_like(target, self.default_noise) if noise is None else np.asarray(noise, float)
        self.x_, place = np.unique(x, return_inverse=True)
        precision = 1.0 / np.square(np.maximum(sd, 1e-6))
        total = np.bincount(place, precision)
        self.y_ = np.bincount(place, precision * target) / total
        self.sd_ = 1.0 / np.sqrt(total)
        self.coefficients_ = np.concatenate([self.x_, self.y_, self.sd_])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, 1), as shape (m,)."""
        check_is_fitted(self)
        mean: Floats = np.interp(np.asarray(X, dtype=float).ravel(), self.x_, self.y_)
        return mean

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, 1), each bound of shape (m,)."""
        check_is_fitted(self)
        x = np.asarray(X, dtype=float).ravel()
        mean = np.interp(x, self.x_, self.y_)
        if self.x_.size == 1:
            sd = np.full_like(x, self.sd_[0])
        else:
            right = np.clip(np.searchsorted(self.x_, x), 1, self.x_.size - 1)
            gap = self.x_[right] - self.x_[right - 1]
            share = np.clip((x - self.x_[right - 1]) / gap, 0.0, 1.0)
            sd = np.hypot((1.0 - share) * self.sd_[right - 1], share * self.sd_[right])
        return mean - NORMAL_95 * sd, mean + NORMAL_95 * sd
