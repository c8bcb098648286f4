"""Gaussian process over one axis: the model behind dRMSE that paper B's Fig. 9 advises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import (  # type: ignore[import-untyped]  # comes with scikit-learn, has no types
    ThreadpoolController,
)

from workbench.models.base import Floats
from workbench.models.scales import NORMAL_95


class GaussianProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """GP with the kernel Constant * RBF + White of paper B, section 5.1.

    Both axes are standardised before the fit, so that one set of bounds serves every KPI. The
    hyperparameters maximise the evidence; noise that is known per point goes on the diagonal of
    the kernel matrix, White takes what is left.

    A KPI that is flat over a decade and then jumps has no single length scale: the one that
    follows the jump lets the curve fall back to its mean between flat samples. `warp` lays X out
    by the arc length of the line through the samples, on which flat and steep pieces are alike.

    Parameters
    ----------
    warp : bool, default=True
        Stretch X where the samples rise; False is the paper's own GP.
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
        warp: bool = True,
        restarts: int = 1,
        smallest_length: float = 0.03,
        largest_length: float = 10.0,
        random_state: int = 0,
    ) -> None:
        self.warp = warp
        self.restarts = restarts
        self.smallest_length = smallest_length
        self.largest_length = largest_length
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to log `wl` `X` (n, 1); `noise` (n,) is the sd of each y."""
        x = np.asarray(X, dtype=float).ravel()
        target = np.asarray(y, dtype=float)
        known = np.zeros_like(target) if noise is None else np.asarray(noise, dtype=float)
        self.y_offset_ = float(target.mean())
        self.y_scale_ = float(target.std()) or 1.0
        self.knots_, self.places_ = _arc_length(x, target, float(self.warp))
        kernel = ConstantKernel(1.0, (1e-2, 1e3)) * RBF(
            0.3, (self.smallest_length, self.largest_length)
        ) + WhiteKernel(1e-2, (1e-6, 1.0))
        self.regressor_ = GaussianProcessRegressor(
            kernel,
            # The jitter keeps the factorisation sound where points repeat without noise.
            alpha=np.square(known / self.y_scale_) + 1e-8,
            optimizer=_climb,
            n_restarts_optimizer=self.restarts,
            random_state=self.random_state,
        )
        with warnings.catch_warnings(), _one_thread():
            # A hyperparameter at its bound (a flat KPI, no noise) is an answer, not a failure.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.regressor_.fit(self._laid_out(x), (target - self.y_offset_) / self.y_scale_)
        hyper = np.exp(self.regressor_.kernel_.theta)
        self.noise_level_ = float(hyper[2])
        self.coefficients_ = np.concatenate([hyper, self.regressor_.alpha_])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, 1), as shape (m,)."""
        check_is_fitted(self)
        with _one_thread():
            mean: Floats = self.regressor_.predict(self._laid_out(X))
        return mean * self.y_scale_ + self.y_offset_

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, 1), each bound of shape (m,)."""
        check_is_fitted(self)
        with _one_thread():
            mean, sd = self.regressor_.predict(self._laid_out(X), return_std=True)
        # scikit-learn's figure is for a new observation: White belongs to that, not to the mean.
        sd = np.sqrt(np.maximum(sd**2 - self.noise_level_, 0.0)) * self.y_scale_
        centre = mean * self.y_scale_ + self.y_offset_
        return centre - NORMAL_95 * sd, centre + NORMAL_95 * sd

    def _laid_out(self, X: ArrayLike) -> Floats:
        """X on the kernel's own axis, 0 to 1 within the samples, as shape (m, 1)."""
        x = np.asarray(X, dtype=float).ravel()
        inside = np.interp(x, self.knots_, self.places_)
        span = float(np.ptp(self.knots_)) or 1.0
        beyond = np.minimum(x - self.knots_[0], 0.0) + np.maximum(x - self.knots_[-1], 0.0)
        return np.asarray(inside + beyond / span)[:, None]


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def _one_thread() -> AbstractContextManager[object]:
    """Keep the linear algebra of ten by ten matrices on one thread.

    On a host whose cores are busy (as a lab's are) its threads wait spinning for one another: a
    fit of 15 ms then burns most of a second of CPU, beside the functions under test.
    """
    limiter: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limiter


def _climb(
    objective: Callable[[Floats], tuple[float, Floats]], start: Floats, bounds: Floats
) -> tuple[Floats, float]:
    """scikit-learn's own optimiser, but content with a log evidence that is good to 1e-4.

    Its default of 1e-9 spends most of the fit on a noise level that creeps to its bound.
    """
    from scipy.optimize import minimize

    best = minimize(
        objective,
        start,
        method="L-BFGS-B",
        jac=True,
        bounds=bounds,
        options={"ftol": 1e-5, "gtol": 1e-3, "maxiter": 60},
    )
    return best.x, float(best.fun)


def _arc_length(x: Floats, y: Floats, weight: float) -> tuple[Floats, Floats]:
    """Distinct x and their places from 0 to 1: arc length with y weighted by `weight`."""
    knots, place = np.unique(x, return_inverse=True)
    level = np.bincount(place, y) / np.bincount(place)
    dx = np.diff(knots) / (float(np.ptp(knots)) or 1.0)
    dy = np.diff(level) / (float(np.ptp(level)) or 1.0)
    length = np.concatenate([[0.0], np.cumsum(np.hypot(dx, weight * dy))])
    return knots, length / (float(length[-1]) or 1.0)
