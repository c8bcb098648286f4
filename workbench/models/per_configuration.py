"""One model over `wl` per profiled configuration, and what lies between them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from workbench.domain.errors import DataError
from workbench.models.base import Floats, ProfileModel
from workbench.models.conformal import reach_of
from workbench.models.encoding import Encoding
from workbench.models.estimator import ProfileEstimator, seeded_subset
from workbench.models.folds import folds_of, splits_of
from workbench.models.mesh import Mesh
from workbench.models.scales import UNKNOWN_LOG_SD

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_MOST_TRIANGULATED = 5
"""Columns above which a triangulation has too many simplices; the nearest are weighted instead."""


_FOLDS = 5
_FEWEST_HELD_OUT = 5
"""Loads between its lowest and highest from which a configuration says how far its model errs."""


def _has_inverse(model: PerConfiguration) -> bool:
    return hasattr(model.estimator, "inverse")


def _has_band(model: PerConfiguration) -> bool:
    return model.calibrate > 0 or hasattr(model.estimator, "predict_band")


class PerConfiguration(ProfileEstimator):
    """A model of the last column for each distinct row of the others, interpolated between these.

    A configuration with too few distinct loads borrows all samples of its nearest neighbours until
    it has enough; its own loads are its own, and borrowed figures count as less certain. With a
    single column this is just the estimator.

    A row between configurations takes the mean of their log KPIs at the same load, with the weights
    of linear barycentric interpolation (Delaunay) over the standardised columns; above five
    columns, of inverse squared distance among twice as many neighbours as columns. Outside, the
    nearest configuration holds. Only configurations of the same categories are asked; for
    categories that were never profiled, all are.

    Parameters
    ----------
    estimator : ProfileModel
        What models one column; fitted as clones.
    categorical : tuple of int, default=()
        Columns that hold codes of categories.
    fewest_loads : int, default=4
        Distinct loads below which a configuration borrows.
    borrowed_noise : float, default=0.3
        Log standard deviation that is added to a borrowed figure's own.
    calibrate : int, default=0
        Configurations that widen the band: a formula's own takes formula and break-point for right.
        Of so many at most, drawn by a seed, each load between the lowest and the highest is
        predicted by fits without its fold, and what 95 % of the errors exceed the estimator's own
        band by (`workbench.models.conformal.reach_of`) is added to its square. 0: nothing is.

    Attributes
    ----------
    configurations_ : ndarray of shape (k, d - 1)
        The distinct rows without their loads.
    models_ : list of ProfileModel
        Theirs, in this order.
    borrowed_ : ndarray of shape (k,)
        Whether each has samples of neighbours.
    reach_ : float
        What was added to the band, 0 where nothing was.
    coefficients_ : ndarray
        Configurations, then their models' coefficients, one after the other.
    """

    fewest_points = 1

    def __init__(
        self,
        estimator: ProfileModel,
        categorical: tuple[int, ...] = (),
        fewest_loads: int = 4,
        borrowed_noise: float = 0.3,
        calibrate: int = 0,
    ) -> None:
        self.estimator = estimator
        self.categorical = categorical
        self.fewest_loads = fewest_loads
        self.borrowed_noise = borrowed_noise
        self.calibrate = calibrate

    def fit(self, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Fit log KPI `y` (n,) to the table `X` (n, d); `noise` (n,) is the sd of each y."""
        X, y, sd = self._checked(X, y, noise)
        self.configurations_, own = np.unique(X[:, :-1], axis=0, return_inverse=True)
        own = own.reshape(-1)
        self.encoding_ = Encoding.of(self.configurations_, self._names)
        self._group()
        taken = [self._samples(k, X[:, -1], own) for k in range(len(self.configurations_))]
        self.borrowed_ = np.array([bool((own[rows] != k).any()) for k, rows in enumerate(taken)])
        self.models_ = []
        for k, rows in enumerate(taken):
            told = sd if sd is None else sd[rows]
            if self.borrowed_[k]:
                known = np.full(len(rows), UNKNOWN_LOG_SD) if told is None else told
                told = np.hypot(known, np.where(own[rows] == k, 0.0, self.borrowed_noise))
            self.models_.append(self._fitted(X[rows, -1:], y[rows], told))
        self.reach_ = self._reach(X, y, sd, own)
        learned = [np.ravel(getattr(model, "coefficients_", ())) for model in self.models_]
        self.coefficients_ = np.concatenate([self.configurations_.ravel(), *learned])
        return self

    def predict(self, X: ArrayLike) -> Floats:
        """Mean log KPI at `X` (m, d), as shape (m,)."""
        mean: Floats = self._blended(self._rows(X), "predict")[0]
        return mean

    @available_if(_has_band)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def predict_band(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """95 % band of the mean log KPI at `X` (m, d), each of shape (m,).

        The estimators' own bands, interpolated as their means are: nothing is gained by averaging,
        as neighbours err alike, and what happens between them is not in it.
        """
        rows = self._rows(X)
        mean = self.predict(rows)
        low, high = mean, mean
        if hasattr(self.estimator, "predict_band"):
            low, high = self._blended(rows, "predict_band")
        if not self.calibrate:
            return low, high
        return mean - np.hypot(mean - low, self.reach_), mean + np.hypot(high - mean, self.reach_)

    def extrapolates(self, X: ArrayLike) -> Bools:
        """Whether each row of `X` (m, d) lies outside what was profiled, as shape (m,).

        Outside the configurations, or outside the loads of one that it is interpolated from.
        """
        rows = self._rows(X)
        corners, weights, outside = self._places(rows[:, :-1])
        low, high = self.loads_[corners, 0], self.loads_[corners, 1]
        beyond = (rows[:, -1:] < low) | (rows[:, -1:] > high)
        return np.asarray(outside | (beyond & (weights > 0.0)).any(axis=1))

    @available_if(_has_inverse)  # type: ignore[untyped-decorator]  # scikit-learn is untyped
    def inverse(self, kpi: float, configuration: ArrayLike = ()) -> float:
        """Log of the highest `wl` up to which a profiled configuration's log KPI is at most `kpi`.

        `configuration` (d - 1,) is a row of X without its load. It is the estimator's own inverse:
        infinite if the curve never exceeds `kpi`, minus infinite if it always does.

        Raises
        ------
        DataError
            If the configuration was not profiled: what lies between two has no inverse of its own.
        """
        row = np.asarray(configuration, dtype=float).reshape(-1)
        known = self.configurations_
        same = (known == row).all(axis=1) if row.size == known.shape[1] else np.zeros(1, dtype=bool)
        if not same.any():
            raise DataError(
                "was not profiled, and only a profiled configuration's curve is inverted",
                where=f"configuration {row.tolist()}",
                remedy="Take a row of configurations_",
            )
        model: Any = self.models_[int(np.flatnonzero(same)[0])]
        return float(model.inverse(kpi))

    @property
    def _names(self) -> tuple[int, ...]:
        return tuple(self.categorical)

    def _group(self) -> None:
        """Configurations by their categories, each group with what finds neighbours in it."""
        self.laid_ = self.encoding_(self.configurations_)[:, : len(self.encoding_.numbers)]
        codes = self.configurations_[:, sorted(self._names)]
        self.groups_: dict[tuple[float, ...], tuple[Ints, Any, Mesh | None]] = {}
        for combination in np.unique(codes, axis=0):
            members = np.flatnonzero((codes == combination).all(axis=1))
            self.groups_[tuple(combination.tolist())] = self._neighbourhood(members)
        self.everyone_ = self._neighbourhood(np.arange(len(codes)), mesh=False)
        self.loads_ = np.empty((len(codes), 2))

    def _neighbourhood(self, members: Ints, mesh: bool = True) -> tuple[Ints, Any, Mesh | None]:
        laid = self.laid_[members]
        columns = laid.shape[1]
        triangulated = mesh and 0 < columns <= _MOST_TRIANGULATED
        return members, cKDTree(laid) if columns else None, (
            Mesh(laid, along_wl=False) if triangulated else None
        )  # fmt: skip

    def _samples(self, k: int, loads: Floats, own: Ints) -> Ints:
        """Rows that configuration k learns from: its own, and neighbours' at other loads."""
        rows = np.flatnonzero(own == k)
        self.loads_[k] = loads[rows].min(), loads[rows].max()
        if len(np.unique(loads[rows])) >= self.fewest_loads:
            return rows
        key = tuple(self.configurations_[k, sorted(self._names)].tolist())
        members = self.groups_[key][0]
        if len(members) == 1:
            members = self.everyone_[0]
        distance = np.linalg.norm(self.laid_[members] - self.laid_[k], axis=1)
        mine = np.unique(loads[rows])
        for neighbour in members[np.argsort(distance, kind="stable")]:
            if len(np.unique(loads[rows])) >= self.fewest_loads:
                break
            theirs = np.flatnonzero(own == neighbour)
            if neighbour != k:
                rows = np.concatenate([rows, theirs[~np.isin(loads[theirs], mine)]])
        return rows

    def _fitted(self, X: Floats, y: Floats, noise: Floats | None) -> ProfileModel:
        model: ProfileModel = clone(self.estimator)
        if "categorical" in model.get_params():  # type: ignore[attr-defined]  # scikit-learn's own
            # The table's categories are not among the columns that it sees.
            model.set_params(categorical=())  # type: ignore[attr-defined]
        if has_fit_parameter(model, "noise"):
            return model.fit(X, y, noise)
        return model.fit(X, y)

    def _reach(self, X: Floats, y: Floats, noise: Floats | None, own: Ints) -> float:
        """Half width that the band lacks, from loads that fits of their configuration left out."""
        inner = (X[:, -1] > self.loads_[own, 0]) & (X[:, -1] < self.loads_[own, 1])
        held = np.array(
            [len(np.unique(X[inner & (own == k), -1])) for k in range(len(self.loads_))]
        )
        able = np.flatnonzero(held >= _FEWEST_HELD_OUT)
        has_own = hasattr(self.estimator, "predict_band")
        misses, points, known, bands = [], [], [], []
        for k in able[seeded_subset(len(able), self.calibrate, 0)] if self.calibrate else ():
            rows = np.flatnonzero(own == k)
            loads = np.unique(X[rows, -1], return_inverse=True)[1].reshape(-1)
            middle = inner[rows]
            for train, test in splits_of(np.where(middle, folds_of(loads, _FOLDS, 0), -1)):
                if not middle[test].all():
                    continue  # the ends: what lies outside of all loads is another question
                told = None if noise is None else noise[rows[train]]
                model = self._fitted(X[rows[train], -1:], y[rows[train]], told)
                asked = X[rows[test], -1:]
                mean = np.asarray(model.predict(asked), dtype=float)
                misses.append(y[rows[test]] - mean)
                points.append(loads[test] + len(X) * k)
                known.append(rows[test])
                if has_own:
                    low, high = (np.asarray(end) for end in model.predict_band(asked))
                    bands.append(np.where(misses[-1] < 0.0, mean - low, high - mean))
        if not misses:
            return 0.0
        place = np.unique(np.concatenate(points), return_inverse=True)[1].reshape(-1)
        sd = None if noise is None else noise[np.concatenate(known)]
        return reach_of(
            np.concatenate(misses), place, sd, np.concatenate(bands) if has_own else None
        )

    def _blended(self, rows: Floats, method: str) -> Floats:
        """Weighted means of what the configurations' models say, shape (1 or 2, m)."""
        corners, weights, _ = self._places(rows[:, :-1])
        found = np.zeros((2 if method == "predict_band" else 1, len(rows)))
        for k in np.unique(corners[weights > 0.0]):
            share = np.sum(np.where(corners == k, weights, 0.0), axis=1)
            here = np.flatnonzero(share > 0.0)
            said = np.atleast_2d(getattr(self.models_[k], method)(rows[here, -1:]))
            found[:, here] += share[here] * said
        return found

    def _places(self, configurations: Floats) -> tuple[Ints, Floats, Bools]:
        """Numbers of configurations and their weights, (m, q) each, and what is outside, (m,)."""
        distinct, back = np.unique(configurations, axis=0, return_inverse=True)
        columns = self.laid_.shape[1]
        width = 2 * columns + 2
        corners = np.zeros((len(distinct), width), dtype=np.int64)
        weights, outside = np.zeros((len(distinct), width)), np.zeros(len(distinct), dtype=bool)
        laid = self.encoding_(distinct)[:, :columns]
        codes = distinct[:, sorted(self._names)]
        for combination in np.unique(codes, axis=0):
            here = np.flatnonzero((codes == combination).all(axis=1))
            key = tuple(combination.tolist())
            found = _weights(laid[here], *self.groups_.get(key, self.everyone_))
            used = found[0].shape[1]
            corners[here, :used], weights[here, :used] = found[0], found[1]
            outside[here] = found[2] | (key not in self.groups_)
        back = back.reshape(-1)
        return corners[back], weights[back], outside[back]


def _weights(
    laid: Floats, members: Ints, tree: Any, mesh: Mesh | None
) -> tuple[Ints, Floats, Bools]:
    """Which members surround each place (m, c), with what weights, and which is outside."""
    m = len(laid)
    if tree is None:
        return np.full((m, 1), members[0]), np.ones((m, 1)), np.zeros(m, dtype=bool)
    distance, nearest = tree.query(laid)
    if mesh is not None:
        places = mesh.places(laid)
        alone = np.eye(1, places.corners.shape[1])
        corners = np.where(places.outside[:, None], nearest[:, None], places.corners)
        weights = np.where(places.outside[:, None], alone, places.weights)
        return members[corners], weights, places.outside
    count = min(2 * laid.shape[1], len(members))
    distances, corners = (np.reshape(a, (m, count)) for a in tree.query(laid, k=count))
    there = distance == 0.0
    weights = 1.0 / np.maximum(np.square(distances), 1e-18)
    weights = np.where(there[:, None], np.eye(1, count), weights)
    points = tree.data
    outside = ((laid < points.min(axis=0)) | (laid > points.max(axis=0))).any(axis=1)
    return members[corners], weights / weights.sum(axis=1, keepdims=True), outside
