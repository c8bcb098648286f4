"""What our scikit-learn estimators share: checked input, one named error, one thread."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import (  # type: ignore[import-untyped]  # comes with scikit-learn, has no types
    ThreadpoolController,
)

from workbench.domain.errors import DataError
from workbench.models.base import Floats
from workbench.models.encoding import Encoding

FINGERPRINT = 64
"""Most predictions that stand for a model whose state is too large to be stored."""


class ProfileEstimator(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Base of all profile models: data are checked on the way in, and what is bad is named.

    All errors are `DataError`, which is a `ValueError` as scikit-learn wants it. A constant y is
    no error here: a KPI may well be constant on one fold or at one configuration. Whether a whole
    table can teach anything is asked of the table (`must_teach`).
    """

    fewest_points = 2
    """Distinct rows below which there is nothing to learn."""

    def _checked(
        self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None
    ) -> tuple[Floats, Floats, Floats | None]:
        """X (n, d), y (n,) and noise (n,) or None as finite floats. Raises `DataError`."""
        if _plain(X) and _plain(y, 1) and len(X) == len(y) and not _by_name(self):
            rows, target = X, y
            self.n_features_in_ = X.shape[1]
        else:
            rows, target = _named(self, X, y, y_numeric=True)
            target = np.asarray(target, dtype=float)
        n, points = len(target), len(np.unique(rows, axis=0))
        if points < self.fewest_points:
            raise DataError(
                f"{'one sample' if n == 1 else f'{n} samples'} at {points} distinct "
                f"point{'s' * (points != 1)}, where {type(self).__name__} needs "
                f"{self.fewest_points}",
                remedy="Measure at more operating points",
            )
        if noise is None:
            return rows, target, None
        sd = np.asarray(noise, dtype=float)
        if sd.shape != target.shape or not np.isfinite(sd).all() or (sd < 0.0).any():
            raise DataError(
                f"noise must be {n} finite standard deviations, none below 0, "
                f"and is {sd.shape} from {np.min(sd, initial=np.inf):g}"
            )
        return rows, target, sd

    def _rows(self, X: ArrayLike) -> Floats:
        """X of a prediction, of shape (m, d). Raises `DataError`, or `NotFittedError`."""
        if _plain(X) and X.shape[1] == getattr(self, "n_features_in_", 0) and not _by_name(self):
            return X
        check_is_fitted(self)
        rows: Floats = _named(self, X, reset=False)
        return rows


class EncodedRegressor(ProfileEstimator):
    """A scikit-learn regressor on encoded columns; y is standardised, known noise is not used.

    Subclasses make the regressor in `_learner`.

    Attributes
    ----------
    coefficients_ : ndarray
        What the fit has learned; predictions at up to 64 of its rows unless a subclass has better.
    """

    def __init__(
        self,
        categorical: tuple[int, ...] = (),
        ceiling: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.categorical = categorical
        self.ceiling = ceiling
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to the table `X` (n, d); `noise` (n,) is checked, not used."""
        X, y, _ = self._checked(X, y, noise)
        self.encoding_ = Encoding.of(X, self.categorical)
        self.y_offset_, self.y_scale_ = float(y.mean()), float(y.std()) or 1.0
        with one_thread():
            self.regressor_ = self._learner(self.encoding_(X), (y - self.y_offset_) / self.y_scale_)
        own = self._coefficients()
        self.coefficients_ = self.predict(fingerprint_rows(X)) if own is None else own
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, d), as shape (m,)."""
        rows = self._rows(X)
        with one_thread():
            mean = self._mean(self.encoding_(rows)) * self.y_scale_ + self.y_offset_
        return mean if self.ceiling is None else np.minimum(mean, self.ceiling)

    def _learner(self, Z: Floats, y: Floats) -> Any:
        """A regressor fitted to encoded rows Z (equal where the rows are) and standardised y."""
        raise NotImplementedError

    def _mean(self, Z: Floats) -> Floats:
        """Standardised prediction at encoded rows."""
        mean: Floats = np.asarray(self.regressor_.predict(Z), dtype=float)
        return mean

    def _coefficients(self) -> Floats | None:
        """All that the fit has learned; None if that is too much to be stored."""
        return None


def must_teach(X: Floats, y: Floats, what: str, floor: float = -math.inf, part: str = "") -> None:
    """Raise `DataError` if a whole table, `what` it is of, holds nothing that a model can learn.

    `part` is said behind the number of its samples, where more were measured.

    A y that is nowhere above `floor`, what a model cannot tell from zero, is learned: that a
    function lost nothing at any load is what its chain is forecast from.
    """
    points = len(np.unique(X, axis=0))
    if points < 2:
        raise DataError(
            f"has {len(y)} sample{'s' * (len(y) != 1)}{part}, all at one operating point",
            where=what,
            remedy="Measure at more operating points",
        )
    if np.ptp(y) == 0.0 and y[0] > floor:
        raise DataError(
            f"is the same in all {len(y)} samples: there is nothing to model",
            where=what,
            remedy="Widen the ranges, or choose another KPI",
        )


def fingerprint_rows(X: Floats) -> Floats:
    """Up to 64 rows, evenly spread over the table in its order."""
    places = np.unique(np.linspace(0, len(X) - 1, min(len(X), FINGERPRINT)).astype(int))
    rows: Floats = X[places]
    return rows


def seeded_subset(n: int, most: int, seed: int) -> NDArray[np.int64]:
    """Places of all `n` rows, or of `most` of them drawn by the seed, in rising order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[object]:
    """Keep linear algebra and trees on one thread.

    On a host whose cores are busy (as a lab's are) their threads wait spinning for one another: a
    fit of 15 ms then burns most of a second of CPU, beside the functions under test.
    """
    limiter: AbstractContextManager[object] = _libraries().limit(limits=1)
    return limiter


def _plain(values: ArrayLike, dimensions: int = 2) -> TypeGuard[Floats]:
    """Whether these are finite floats already, as nearly all are.

    scikit-learn's checks find the same, and take ten times as long as most predictions.
    """
    return (
        type(values) is np.ndarray
        and values.dtype == np.float64
        and values.ndim == dimensions
        and values.size > 0
        and bool(np.isfinite(values).all())
    )


def _by_name(model: ProfileEstimator) -> bool:
    """Whether it was fitted to named columns, which scikit-learn compares."""
    return hasattr(model, "feature_names_in_")


def _named(model: ProfileEstimator, *arrays: ArrayLike, **how: object) -> Any:
    """`validate_data`, its complaint as one sentence of ours."""
    try:
        return validate_data(model, *arrays, dtype=np.float64, **how)
    except ValueError as error:
        first = str(error).partition("\n")[0].rstrip(".:")
        flat = "Reshape your data to a row per sample, a column per parameter"
        raise DataError(first, remedy=flat if "Reshape" in str(error) else None) from error
