"""Between the samples: lines, triangles and their like in any number of columns."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from workbench.models.base import Floats
from workbench.models.encoding import Encoding
from workbench.models.estimator import ProfileEstimator, one_thread
from workbench.models.mesh import Bools, Ints, Mesh
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD

METHOD_VERSION = 1
"""Raised by hand when the same samples give another model: benchmarks keep results by it."""


class LogInterpolation(ProfileEstimator):
    """Linear barycentric interpolation of log KPI over a Delaunay triangulation.

    The method of papers A (section 3.2) and B (section 5), in the scales of the table; with a
    single column it is the line from sample to sample. Repetitions of a point are averaged,
    weighted by their precision, and the surface goes exactly through these averages. Each
    combination of categories has a surface of its own. Columns that do not vary are ignored;
    where the points of a combination span less than all columns (they are collinear, or fewer than
    columns), what they do span is interpolated and other rows are projected onto it.

    Outside the samples (`extrapolates` says where): a row whose configuration lies among those
    that were profiled takes the value at the nearest `wl` of the surface, straight along `wl`.
    Any other is first moved to the nearest profiled configuration; so is one of a combination of
    categories that was never profiled. With more than five columns, where no triangulation can be
    had, the simplex of each row is found by itself (some 10 ms), and any other row takes the value
    of the nearest point.

    The band is the noise of the samples carried along the surface; it says nothing about curvature
    between them. `Conformal` around this class does.

    Parameters
    ----------
    default_noise : float, default=0.12
        Standard deviation of y where none is known.
    categorical : tuple of int, default=()
        Columns that hold codes of categories.
    ceiling : float, optional
        Log of the KPI ceiling; a surface through values under it stays under it.

    Attributes
    ----------
    coefficients_ : ndarray of shape ((d + 2) * k,)
        The k distinct points, row by row, their y and the standard deviations of these.
    """

    fewest_points = 1

    def __init__(
        self,
        default_noise: float = UNKNOWN_LOG_SD,
        categorical: tuple[int, ...] = (),
        ceiling: float | None = None,
    ) -> None:
        self.default_noise = default_noise
        self.categorical = categorical
        self.ceiling = ceiling

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to the table `X` (n, d); `noise` (n,) is the sd of each y."""
        X, y, sd = self._checked(X, y, noise)
        if sd is None:
            sd = np.full_like(y, self.default_noise)
        self.points_, place = np.unique(X, axis=0, return_inverse=True)
        place = place.reshape(-1)
        precision = 1.0 / np.square(np.maximum(sd, 1e-6))
        total = np.bincount(place, precision)
        self.y_ = np.bincount(place, precision * y) / total
        self.sd_ = 1.0 / np.sqrt(total)
        self.coefficients_ = np.concatenate([self.points_.ravel(), self.y_, self.sd_])

        self.encoding_ = Encoding.of(self.points_, self.categorical)
        self.constant_ = np.ptp(self.points_, axis=0) == 0.0
        self.surfaces_: dict[tuple[float, ...], tuple[Mesh, Ints]] = {}
        codes = self._codes(self.points_)
        along_wl = self.points_.shape[1] == 1 or X.shape[1] - 1 in self.encoding_.numbers
        for combination in np.unique(codes, axis=0):
            own = np.flatnonzero((codes == combination).all(axis=1))
            with one_thread():
                mesh = Mesh(self._laid_out(self.points_[own]), along_wl)
            self.surfaces_[tuple(combination.tolist())] = mesh, own
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, d), as shape (m,)."""
        corners, weights, _ = self._places(self._rows(X))
        mean: Floats = np.sum(weights * self.y_[corners], axis=1)
        return mean

    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, d), each bound of shape (m,)."""
        corners, weights, _ = self._places(self._rows(X))
        mean = np.sum(weights * self.y_[corners], axis=1)
        half = NORMAL_95 * np.sqrt(np.sum(np.square(weights * self.sd_[corners]), axis=1))
        return mean - half, mean + half

    def extrapolates(self, X: ArrayLike) -> Bools:
        """Whether each row of `X` (m, d) lies outside what the samples span, as shape (m,)."""
        return self._places(self._rows(X))[2]

    def nearest(self, X: ArrayLike) -> Floats:
        """Rows of `X` (m, d) as `predict` moves them onto what the samples span."""
        corners, weights, _ = self._places(self._rows(X))
        moved: Floats = np.einsum("mk,mkd->md", weights, self.points_[corners])
        return moved

    def _places(self, X: Floats) -> tuple[Ints, Floats, Bools]:
        """Numbers of points and their weights, (m, d + 1) each, and what is outside, (m,)."""
        rows, stray = self._known(X)
        if X.shape[1] > 1:
            aside = self.constant_
            stray = stray | (rows[:, aside] != self.points_[0, aside]).any(axis=1)
        width = self.points_.shape[1] + 1
        corners = np.zeros((len(rows), width), dtype=np.int64)
        weights, outside = np.zeros((len(rows), width)), stray.copy()
        codes = self._codes(rows)
        for combination, (mesh, own) in self.surfaces_.items():
            here = np.flatnonzero((codes == combination).all(axis=1))
            if not here.size:
                continue
            with one_thread():
                found = mesh.places(self._laid_out(rows[here]))
            used = found.corners.shape[1]
            corners[here, :used] = own[found.corners]
            weights[here, :used] = found.weights
            outside[here] |= found.outside
        return corners, weights, outside

    def _known(self, X: Floats) -> tuple[Floats, Bools]:
        """Rows; those of combinations never profiled moved to the nearest configuration."""
        stray = ~np.array([tuple(c) in self.surfaces_ for c in self._codes(X).tolist()], dtype=bool)
        if not stray.any():
            return X, stray
        # The load is no part of a configuration: levelled on both sides, it weighs nothing.
        level = [*[0.0] * (X.shape[1] - 1), 1.0]
        near = cKDTree(self.encoding_(np.where(level, 0.0, self.points_)))
        nearest = near.query(self.encoding_(np.where(level, 0.0, X[stray])))[1]
        rows = X.copy()
        rows[stray, :-1] = self.points_[nearest, :-1]
        return rows, stray

    def _codes(self, X: Floats) -> Floats:
        return X[:, sorted(self.categorical)]

    def _laid_out(self, X: Floats) -> Floats:
        """Numeric columns that vary, standardised; a single column is taken as it is."""
        if X.shape[1] == 1:
            return X
        return self.encoding_(X)[:, : len(self.encoding_.numbers)]
