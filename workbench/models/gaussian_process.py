"""Gaussian process over one axis: the model behind dRMSE that paper B's Fig. 9 advises."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.utils.validation import check_is_fitted

from workbench.models.base import Floats
from workbench.models.scales import NORMAL_95


class GaussianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """GP with the kernel Constant * RBF + White of paper B, section 5.1.

    Both axes are standardised before the fit, so that one set of bounds serves every KPI. The
    hyperparameters maximise the evidence; noise that is known per point goes on the diagonal of
    the kernel matrix, White takes what is left.

    Parameters
    ----------
    restarts : int, default=1
        Starts of the optimiser besides the first.
    smallest_length, largest_length : float
        Bounds of the RBF length scale, as shares of the range of X.
    random_state : int, default=0
        Seeds the restarts: the same points give the same fit.

    Attributes
    ----------
    coefficients_ : ndarray of shape (3 + n,)
        Constant, length scale and noise level on the standardised axes, then the dual weights.
    """

    def __init__(
        self,
        restarts: int = 1,
        smallest_length: float = 0.03,
        largest_length: float = 10.0,
        random_state: int = 0,
    ) -> None:
        self.restarts = restarts
        self.smallest_length = smallest_length
        self.largest_length = largest_length
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to log `wl` `X` (n, 1); `noise` (n,) is the sd of each y."""
        x = np.asarray(X, dtype=float).reshape(-1, 1)
        target = np.asarray(y, dtype=float)
        known = np.zeros_like(target) if noise is None else np.asarray(noise, dtype=float)
        self.x_offset_ = float(x.min())
        self.x_scale_ = float(np.ptp(x)) or 1.0
        self.y_offset_ = float(target.mean())
        self.y_scale_ = float(target.std()) or 1.0
        kernel = ConstantKernel(1.0, (1e-2, 1e3)) * RBF(
            0.3, (self.smallest_length, self.largest_length)
        ) + WhiteKernel(1e-2, (1e-6, 1.0))
        self.regressor_ = GaussianProcessRegressor(
            kernel,
            # The jitter keeps the factorisation sound where points repeat without noise.
            alpha=np.square(known / self.y_scale_) + 1e-8,
            n_restarts_optimizer=self.restarts,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            # A hyperparameter at its bound (a flat KPI, no noise) is an answer, not a failure.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.regressor_.fit(
                (x - self.x_offset_) / self.x_scale_, (target - self.y_offset_) / self.y_scale_
            )
        hyper = np.exp(self.regressor_.kernel_.theta)
        self.noise_level_ = float(hyper[2])
        self.coefficients_ = np.concatenate([hyper, self.regressor_.alpha_])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, 1), as shape (m,)."""
        check_is_fitted(self)
        mean: Floats = self.regressor_.predict(self._standard(X))
        return mean * self.y_scale_ + self.y_offset_

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, 1), each bound of shape (m,)."""
        check_is_fitted(self)
        mean, sd = self.regressor_.predict(self._standard(X), return_std=True)
        # scikit-learn's figure is for a new observation: White belongs to that, not to the mean.
        sd = np.sqrt(np.maximum(sd**2 - self.noise_level_, 0.0)) * self.y_scale_
        centre = mean * self.y_scale_ + self.y_offset_
        return centre - NORMAL_95 * sd, centre + NORMAL_95 * sd

    def _standard(self, X: ArrayLike) -> Floats:
        scaled: Floats = (
            np.asarray(X, dtype=float).reshape(-1, 1) - self.x_offset_
        ) / self.x_scale_
        return scaled
