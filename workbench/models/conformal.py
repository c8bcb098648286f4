"""An interval for any model: how far it missed points that it had not seen."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from workbench.models.base import Floats
from workbench.models.estimator import ProfileEstimator
from workbench.models.folds import Ints, folds_of, point_numbers

MISSED = 0.05
RUNGS = 100
"""Errors that stand for all of them: quantiles of theirs."""
FEWEST_FOR_QUANTILES = 39
"""Points from which the quantiles of the errors themselves are used; Student's t below."""
_ROWS_AT_ONCE = 1000


class Conformal(ProfileEstimator):
    """Any estimator with a 95 % band by CV+ (Barber, Candès, Ramdas, Tibshirani 2021).

    The estimator is fitted to all samples, and once without each fold; repetitions of a point
    share a fold. What a model without fold k misses the points of fold k by, is how far off a
    prediction at an unseen point is. The band of a row is the 95 % range of the predictions of
    the fold models, each plus or minus these errors: it widens where the models disagree.

    The band is for the *long-run mean* (see `ProfileModel.predict_band`). A point that was held
    out is itself measured with noise, so its miss is larger than the model's error: of r² =
    e² + s², the noise s² is taken away in the mean, and each miss is scaled by the root of the
    share that is left. s is the noise that `fit` is told, else what repetitions of points scatter
    by; without either nothing is taken away, and the band is for a new *measurement*. Where a
    new measurement with noise s shall lie: widen each half of the band h to √(h² + (1.96 s)²).

    Few points: less than 39 misses have no 95 % quantile that deserves the name, they are taken
    for draws of Student's t with their root mean square, and the model's error is never taken to
    be less than its own uncertainty, √(2/n) of the squared misses. It takes three points.

    Parameters
    ----------
    estimator : estimator
        With `fit(X, y)` and `predict`; it is cloned. Known noise is passed on if it takes it.
    folds : int, default=5
        Folds; each point is a fold of its own up to `2 * folds` points.
    random_state : int, default=0
        Deals points out to folds.

    Attributes
    ----------
    estimator_ : the estimator, fitted to all samples.
    errors_ : ndarray of shape (100,)
        Absolute errors of the mean at unseen points, from small to large.
    coefficients_ : ndarray
        Those of the estimator, then three of these errors: median, 95 % and largest.
    """

    fewest_points = 3

    def __init__(self, estimator: Any, folds: int = 5, random_state: int = 0) -> None:
        self.estimator = estimator
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to the table `X` (n, d); `noise` (n,) is the sd of each y."""
        X, y, sd = self._checked(X, y, noise)
        points = point_numbers(X)
        total = int(points.max()) + 1
        count = total if total <= 2 * self.folds else self.folds
        folds = folds_of(points, count, self.random_state)
        self.estimator_ = self._fitted(X, y, sd)
        self.fold_models_ = []
        misses = np.empty_like(y)
        for fold in range(count):
            out = folds == fold
            model = self._fitted(X[~out], y[~out], None if sd is None else sd[~out])
            misses[out] = y[out] - model.predict(X[out])
            self.fold_models_.append(model)
        self.errors_ = _errors(misses, points, sd)
        own = getattr(self.estimator_, "coefficients_", ())
        self.coefficients_ = np.concatenate([own, np.quantile(self.errors_, [0.5, 0.95, 1.0])])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, d), as shape (m,)."""
        rows = self._rows(X)
        mean: Floats = np.asarray(self.estimator_.predict(rows), dtype=float)
        return mean

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, d), each bound of shape (m,)."""
        rows = self._rows(X)
        centre = self.predict(rows)
        low, high = np.empty_like(centre), np.empty_like(centre)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            voices = np.column_stack([model.predict(rows[part]) for model in self.fold_models_])
            below = (voices[:, :, None] - self.errors_).reshape(len(voices), -1)
            above = (voices[:, :, None] + self.errors_).reshape(len(voices), -1)
            low[part] = np.quantile(below, MISSED, axis=1)
            high[part] = np.quantile(above, 1.0 - MISSED, axis=1)
        return np.minimum(low, centre), np.maximum(high, centre)

    def _fitted(self, X: Floats, y: Floats, noise: Floats | None) -> Any:
        model = clone(self.estimator)
        if noise is not None and has_fit_parameter(model, "noise"):
            return model.fit(X, y, noise)
        return model.fit(X, y)


def _errors(misses: Floats, points: Ints, noise: Floats | None) -> Floats:
    """What the mean at unseen points is missed by, (100,), rising, from the misses of samples."""
    repetitions = np.bincount(points)
    n = len(repetitions)
    miss = np.bincount(points, misses) / repetitions
    if noise is not None:
        variance = np.bincount(points, np.square(noise)) / np.square(repetitions)
    else:
        within = np.square(misses - miss[points]).sum() / max(len(misses) - n, 1)
        variance = within / repetitions
    observed = float(np.square(miss).mean())
    error = max(observed - float(variance.mean()), np.sqrt(2.0 / n) * observed)
    miss = np.abs(miss) * np.sqrt(error / np.maximum(error + variance, 1e-300))
    levels = (np.arange(RUNGS) + 0.5) / RUNGS
    if n < FEWEST_FOR_QUANTILES:
        spread = np.sqrt(np.square(miss).mean() * (1.0 + 1.0 / n))
        return np.asarray(spread * student.ppf(0.5 + levels / 2.0, n))
    errors: Floats = np.quantile(miss, np.minimum(levels * (1.0 + 1.0 / n), 1.0))
    return errors
