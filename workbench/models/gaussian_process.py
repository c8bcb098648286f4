"""Gaussian processes of papers A and B, and a warped one: dRMSE rests on it (paper B, Fig. 9)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor

from workbench.models.base import Floats
from workbench.models.encoding import Encoding
from workbench.models.estimator import (
    ProfileEstimator,
    fingerprint_rows,
    one_thread,
    seeded_subset,
)
from workbench.models.kernels import BellKernel, FactorKernel, LineKernel, NoiseKernel
from workbench.models.scales import NORMAL_95

METHOD_VERSION = 1
"""Raised by hand when the same samples give another model: benchmarks keep results by it."""


class GaussianProcess(ProfileEstimator):
    """GP with the kernel Constant * RBF + White of paper B, section 5.1, or that of paper A.

    Paper A's (section 3.2) is Constant * (DotProduct + RBF) + White: a linear trend besides. Both
    axes are standardised before the fit, so that one set of bounds serves every KPI; categories
    are one-hot. The hyperparameters maximise the evidence; noise that is known per point goes on
    the diagonal of the kernel matrix, White takes what is left.

    A KPI that is flat over a decade and then jumps has no single length scale: the one that
    follows the jump lets the curve fall back to its mean between flat samples. `warp` lays a
    single column out by the arc length of the line through the samples, on which flat and steep
    pieces are alike; it does nothing where there are more columns.

    A fit takes time with the cube of the points: above `most_points` the model rests on that many,
    drawn by the seed, and above `evidence_points` of them the hyperparameters on those.

    Parameters
    ----------
    warp : bool, default=True
        Stretch a single column where the samples rise; False is the papers' own GP.
    restarts : int, default=1
        Starts of the optimiser besides the first.
    smallest_length, largest_length : float
        Bounds of the RBF length scale, as shares of the range of a single column, of the standard
        deviation of many.
    random_state : int, default=0
        Seeds the restarts and the subset: the same points give the same fit.
    kernel : str, default="b"
        `a` or `b`, the paper.
    most_points, evidence_points : int, default=2000, 400
        Points that the model rests on, and those that its hyperparameters do.
    categorical, ceiling
        As in `workbench.models.base`.

    Attributes
    ----------
    coefficients_ : ndarray of shape (3 + n,)
        Constant, length scale and noise level on the standardised axes, then the dual weights.
        Kernel a has its inhomogeneity after the constant. Above 400 points predictions at 64 of
        the rows take the place of the weights.
    """

    def __init__(
        self,
        warp: bool = True,
        restarts: int = 1,
        smallest_length: float = 0.03,
        largest_length: float = 10.0,
        random_state: int = 0,
        kernel: str = "b",
        most_points: int = 2000,
        evidence_points: int = 400,
        categorical: tuple[int, ...] = (),
        ceiling: float | None = None,
    ) -> None:
        self.warp = warp
        self.restarts = restarts
        self.smallest_length = smallest_length
        self.largest_length = largest_length
        self.random_state = random_state
        self.kernel = kernel
        self.most_points = most_points
        self.evidence_points = evidence_points
        self.categorical = categorical
        self.ceiling = ceiling

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to the table `X` (n, d); `noise` (n,) is the sd of each y."""
        X, target, known = self._checked(X, y, noise)
        known = np.zeros_like(target) if known is None else known
        self.y_offset_ = float(target.mean())
        self.y_scale_ = float(target.std()) or 1.0
        self.single_ = X.shape[1] == 1 and not self.categorical
        if self.single_:
            self.knots_, self.places_ = _arc_length(X.ravel(), target, float(self.warp))
        else:
            self.encoding_ = Encoding.of(X, self.categorical)
        Z = self._laid_out(X)
        z = (target - self.y_offset_) / self.y_scale_
        # The jitter keeps the factorisation sound where points repeat without noise.
        alpha = np.square(known / self.y_scale_) + 1e-8
        kept = seeded_subset(len(z), self.most_points, self.random_state)
        few = kept[seeded_subset(len(kept), self.evidence_points, self.random_state)]
        with warnings.catch_warnings(), one_thread():
            # A hyperparameter at its bound (a flat KPI, no noise) is an answer, not a failure.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.regressor_ = self._process(self._kernel(Z.shape[1]), alpha[few], _climb)
            self.regressor_.fit(Z[few], z[few])
            if len(kept) > len(few):
                found = self.regressor_.kernel_
                self.regressor_ = self._process(found, alpha[kept], None).fit(Z[kept], z[kept])
        hyper = np.exp(self.regressor_.kernel_.theta)
        self.noise_level_ = float(hyper[-1])
        rest = (
            self.regressor_.alpha_ if len(kept) == len(few) else self.predict(fingerprint_rows(X))
        )
        self.coefficients_ = np.concatenate([hyper, rest])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, d), as shape (m,)."""
        Z = self._laid_out(self._rows(X))
        with one_thread():
            mean, _ = self._posterior(Z)
        return self._capped(mean * self.y_scale_ + self.y_offset_)

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, d), each bound of shape (m,)."""
        Z = self._laid_out(self._rows(X))
        with one_thread():
            mean, near = self._posterior(Z)
            v = solve_triangular(self.regressor_.L_, near.T, lower=True, check_finite=False)
        variance = self.regressor_.kernel_.diag(Z) - np.einsum("ij,ji->i", v.T, v)
        sd = np.sqrt(np.maximum(variance, 0.0))  # of a new observation, as scikit-learn's
        # White belongs to that, not to the mean.
        sd = np.sqrt(np.maximum(sd**2 - self.noise_level_, 0.0)) * self.y_scale_
        centre = mean * self.y_scale_ + self.y_offset_
        return self._capped(centre - NORMAL_95 * sd), self._capped(centre + NORMAL_95 * sd)

    def _posterior(self, Z: Floats) -> tuple[Floats, Floats]:
        """Standardised mean at laid-out rows, and their kernel with what was learned from.

        As the regressor's own `predict`, which first checks rows that are checked already.
        """
        near: Floats = self.regressor_.kernel_(Z, self.regressor_.X_train_)
        mean: Floats = near @ self.regressor_.alpha_
        return mean, near

    def _kernel(self, columns: int) -> Any:
        signal = BellKernel(
            0.3 if self.single_ else np.sqrt(columns), (self.smallest_length, self.largest_length)
        )
        if self.kernel == "a":
            signal = LineKernel(1.0, (1e-2, 1e2)) + signal
        return FactorKernel(1.0, (1e-2, 1e3)) * signal + NoiseKernel(1e-2, (1e-6, 1.0))

    def _process(self, kernel: Any, alpha: Floats, optimizer: Any) -> GaussianProcessRegressor:
        return GaussianProcessRegressor(
            kernel,
            alpha=alpha,
            optimizer=optimizer,
            n_restarts_optimizer=self.restarts if optimizer else 0,
            random_state=self.random_state,
        )

    def _capped(self, values: Floats) -> Floats:
        return values if self.ceiling is None else np.minimum(values, self.ceiling)

    def _laid_out(self, X: Floats) -> Floats:
        """Rows on the kernel's own axes; a single one is 0 to 1 within the samples."""
        if not self.single_:
            return self.encoding_(X)
        x = X.ravel()
        inside = np.interp(x, self.knots_, self.places_)
        span = float(np.ptp(self.knots_)) or 1.0
        beyond = np.minimum(x - self.knots_[0], 0.0) + np.maximum(x - self.knots_[-1], 0.0)
        return np.asarray(inside + beyond / span)[:, None]


def process_a() -> GaussianProcess:
    """Paper A's, section 3.2: with a linear trend, nothing warped."""
    return GaussianProcess(warp=False, kernel="a")


def process_b() -> GaussianProcess:
    """Paper B's, section 5.1: nothing warped."""
    return GaussianProcess(warp=False)


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
