"""A profile model that assumes only that the KPI never falls when the load rises.

An example of a plugin: one class that implements `workbench.models.base.ProfileModel`, one entry
point in `pyproject.toml`. Everything else the workbench does by itself.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.isotonic import IsotonicRegression

Floats = NDArray[np.float64]

BAND_WIDTH = 1.96
"""Standard deviations on either side of the mean that hold 95 % of a normal distribution."""


class Isotonic(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Monotone regression of log KPI on log `wl` (Barlow et al. 1972), with a residual band.

    Parameters
    ----------
    floor : float, default=0.05
        Smallest standard deviation of the band, as a difference of logs: five per cent.

    Attributes
    ----------
    regression_ : IsotonicRegression
        Constant beyond the outermost points: it does not extrapolate.
    spread_ : float
        Standard deviation of the residuals, at least `floor`.
    """

    def __init__(self, floor: float = 0.05) -> None:
        self.floor = floor

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` of shape (n,) to log `wl` `X` of shape (n, 1)."""
        x, values = np.asarray(X, dtype=float).ravel(), np.asarray(y, dtype=float)
        weights = None if noise is None else np.maximum(np.asarray(noise, dtype=float), 1e-3) ** -2
        self.regression_ = IsotonicRegression(out_of_bounds="clip").fit(x, values, weights)
        residuals = values - self.regression_.predict(x)
        self.spread_ = max(float(np.std(residuals)), self.floor)
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` of shape (m, 1), as shape (m,)."""
        predicted: Floats = self.regression_.predict(np.asarray(X, dtype=float).ravel())
        return predicted

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Lower and upper bound, each of shape (m,)."""
        mean = self.predict(X)
        return mean - BAND_WIDTH * self.spread_, mean + BAND_WIDTH * self.spread_
