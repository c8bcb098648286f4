"""An interval for any model: how far it missed points that it had not seen."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from workbench.models.base import Floats
from workbench.models.estimator import ProfileEstimator, seeded_subset
from workbench.models.folds import Ints, folds_of, point_numbers
from workbench.models.scales import NORMAL_95

HELD = 0.95
FEWEST_FOR_QUANTILES = 39
"""Points from which the quantile of the errors themselves is used; Student's t below."""
_ROWS_AT_ONCE = 1000


class Conformal(ProfileEstimator):
    """Any estimator with a 95 % band from cross-validated errors (Vovk, Ann. Math. Artif. Intell.
    74, 2015).

    The estimator is fitted to all samples, and once without each fold; repetitions of a point
    share a fold. What a model without fold k misses the points of fold k by, is how far off a
    prediction at an unseen point is. The band is the prediction plus or minus `reach_`, that 95 %
    of these misses would stay within. Where the fold models disagree more than they do at any
    sample (outside the samples, mostly) the jackknife variance of the prediction, as far as it
    exceeds that at the samples, is added.

    The band is for the *long-run mean* (see `ProfileModel.predict_band`). A point that was held
    out is itself measured with noise s, so its miss m is larger than the model's error: of it
    √(m² - (1.96 s)²) is left, so that bands which are widened by a sample's noise, half of it
    to √(h² + (1.96 s)²), hold 95 % of what was held out, whatever the distribution of errors. s
    is the noise that `fit` is told, else what repetitions of points scatter by; without either
    nothing is taken away, and the band is for a new *measurement*.

    Few points: less than 39 misses have no 95 % quantile that deserves the name, they are taken
    for draws of Student's t with their root mean square less that of the noise. The model's
    error is never taken to be less than its own uncertainty, √(2/n) of the squared misses: where
    a model errs by far less than the noise its band holds more than 95 % of the truth. It takes
    three points.

    Bands of CV+ (Barber, Candès, Ramdas, Tibshirani 2021), which add these errors to each fold
    model's own prediction, count disagreement twice: on surfaces of the models' own families they
    held 96 to 99.5 % of the truth.

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
    reach_ : float
        Half width of the band of the mean.
    disagreement_ : float
        Largest jackknife standard deviation of a prediction at a sample.
    coefficients_ : ndarray
        Those of the estimator, then these two.
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
        self.reach_ = reach_of(misses, points, sd)
        seen = X[seeded_subset(len(X), _ROWS_AT_ONCE, self.random_state)]
        self.disagreement_ = float(self._disagreement(seen).max())
        own = getattr(self.estimator_, "coefficients_", ())
        self.coefficients_ = np.concatenate([own, [self.reach_, self.disagreement_]])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, d), as shape (m,)."""
        rows = self._rows(X)
        mean: Floats = np.asarray(self.estimator_.predict(rows), dtype=float)
        return mean

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, d), each bound of shape (m,)."""
        rows = self._rows(X)
        centre, apart = self.predict(rows), self._disagreement(rows)
        beyond = np.maximum(np.square(apart) - self.disagreement_**2, 0.0)
        half = np.sqrt(self.reach_**2 + NORMAL_95**2 * beyond)
        return centre - half, centre + half

    def _disagreement(self, rows: Floats) -> Floats:
        """Jackknife standard deviation of the prediction at each row, of shape (m,): the root of
        (K - 1) times the variance of what the K fold models say (Efron, Stein 1981)."""
        apart = np.empty(len(rows))
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            voices = [model.predict(rows[part]) for model in self.fold_models_]
            apart[part] = np.std(voices, axis=0)
        return np.asarray(apart * np.sqrt(len(self.fold_models_) - 1.0))

    def _fitted(self, X: Floats, y: Floats, noise: Floats | None) -> Any:
        model = clone(self.estimator)
        if noise is not None and has_fit_parameter(model, "noise"):
            return model.fit(X, y, noise)
        return model.fit(X, y)


def reach_of(
    misses: Floats, points: Ints, noise: Floats | None, band: Floats | None = None
) -> float:
    """What 95 % of the errors of the mean at unseen points stay within, from misses of samples.

    Parameters
    ----------
    misses : of shape (n,), of models that had not seen the point.
    points : of shape (n,), numbers of the points; repetitions share it.
    noise : standard deviations of the samples, of shape (n,), where they are known.
    band : half widths of bands that those models stated themselves, of shape (n,), on the side
        of the miss: the reach is then what must be added to their squares.
    """
    repetitions = np.bincount(points)
    n = len(repetitions)
    miss = np.bincount(points, misses) / repetitions
    if noise is not None:
        variance = np.bincount(points, np.square(noise)) / np.square(repetitions)
    else:
        within = np.square(misses - miss[points]).sum() / max(len(misses) - n, 1)
        variance = within / repetitions
    observed = float(np.square(miss).mean())
    least = np.sqrt(2.0 / n) * observed
    if band is not None:
        variance = variance + np.bincount(points, np.square(band / NORMAL_95)) / repetitions
        least = 0.0
    if n < FEWEST_FOR_QUANTILES:
        error = max(observed - float(variance.mean()), least)
        return float(np.sqrt(error * (1.0 + 1.0 / n)) * student.ppf(0.5 + HELD / 2.0, n))
    errors = np.sqrt(np.maximum(np.square(miss) - NORMAL_95**2 * variance, 0.0))
    # A band of its own errs near break-points and nowhere else: the next larger error is of another
    # kind, and fits that lack a fold's loads err more already.
    level = HELD * (1.0 + 1.0 / n) if band is None else HELD
    reach = np.quantile(errors, min(level, 1.0))
    return max(float(reach), NORMAL_95 * float(np.sqrt(least)))
