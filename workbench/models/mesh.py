"""A set of points as simplices: which of them surround a place, and with what weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.spatial import ConvexHull, Delaunay, QhullError, cKDTree

from workbench.models.base import Floats

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_TOLERANCE = 1e-9
"""Of standardised coordinates: round-off of Qhull's facets lies below, no real step does."""
_NUDGE = 1e-7
"""How far a row on the hull is pulled towards the middle: on it, round-off decides whether any
simplex holds it, and Qhull's search tries them all."""
_MOST_TRIANGULATED = 5
"""Dimensions up to which a triangulation is made: its size grows with the points to the power of
half of them. Above, the simplex around each row is found by itself."""
_ROWS_AT_ONCE = 1000
"""Rows that are compared with all facets of a hull in one matrix."""


@dataclass(frozen=True)
class MeshPlaces:
    """Rows as weighted sums of vertices.

    Attributes
    ----------
    corners, weights : shape (m, q + 1), numbers of vertices and their weights, which sum to 1.
    outside : shape (m,), whether a row had to be moved onto the set.
    """

    corners: Ints
    weights: Floats
    outside: Bools


class Mesh:
    """Distinct points of shape (k, r), whose last column is `wl` if `along_wl`.

    What the points span may have fewer dimensions than columns: rows are projected onto it.
    """

    def __init__(self, points: Floats, along_wl: bool) -> None:
        self._points = points
        self._origin, self._basis = _span(points)
        self._tree = cKDTree(points) if points.shape[1] else None
        self._flat: Any = None
        while 1 < len(self._basis) <= _MOST_TRIANGULATED:
            laid = self._sheared(self._projected(points))
            try:
                self._flat = Delaunay(laid), _facets(laid)
                break
            except QhullError:
                # Too thin in its last direction for Qhull: left out, as that of collinear points.
                self._basis = self._basis[:-1]
        self._laid = self._sheared(self._projected(points))
        self._order = np.argsort(self._laid[:, 0]) if len(self._basis) == 1 else np.arange(1)
        self._extends = along_wl and bool(np.linalg.norm(self._basis[:, -1]) > 1.0 - 1e-6)
        self._up = self._sheared(self._basis[:, -1]) if self._extends else np.zeros(0)

    def places(self, rows: Floats) -> MeshPlaces:
        """Where rows of shape (m, r) lie; those outside are moved as `LogInterpolation` says."""
        q = len(self._basis)
        flat = self._projected(rows)
        laid = self._sheared(flat)
        off = np.abs(rows - self._origin - flat @ self._basis).max(axis=1, initial=0.0) > 1e-7
        if q == 0:
            found = MeshPlaces(
                np.zeros((len(rows), 1), dtype=np.int64), np.ones((len(rows), 1)), off
            )
        elif q == 1:
            found = self._on_line(laid[:, 0], off)
        elif q > _MOST_TRIANGULATED:
            found = self._one_by_one(laid, rows, off)
        else:
            found = self._in_simplices(laid, rows, off)
        # Exact at the points themselves, whatever Qhull made of them.
        if self._tree is not None:
            distance, vertex = self._tree.query(rows)
            there = distance == 0.0
            found.corners[there, 0] = vertex[there]
            found.weights[there] = np.eye(1, q + 1)
            found.outside[there] = False
        return found

    def _projected(self, rows: Floats) -> Floats:
        return (rows - self._origin) @ self._basis.T

    def _sheared(self, laid: Floats) -> Floats:
        """A slight shear, which changes no barycentric weight.

        The corners of a box lie on one sphere, so that a grid has no unique triangulation: a
        quarter of what Qhull then makes of it is flat, and a search among flat simplices is slow.
        Those of a sheared box do not.
        """
        q = laid.shape[-1]
        return laid @ (np.eye(q) + np.triu(0.1 / (1.0 + np.arange(q * q).reshape(q, q)), 1))

    def _on_line(self, x: Floats, off: Bools) -> MeshPlaces:
        knots = self._laid[self._order, 0]
        right = np.clip(np.searchsorted(knots, x), 1, len(knots) - 1)
        gap = knots[right] - knots[right - 1]
        share = np.clip((x - knots[right - 1]) / gap, 0.0, 1.0)
        beyond = np.maximum(knots[0] - x, x - knots[-1]) > 0.0
        return MeshPlaces(
            np.column_stack([self._order[right - 1], self._order[right]]),
            np.column_stack([1.0 - share, share]),
            off | beyond,
        )

    def _in_simplices(self, laid: Floats, rows: Floats, off: Bools) -> MeshPlaces:
        triangulation, (normals, offsets) = self._flat
        outside = off.copy()
        # Qhull would try every simplex before it says that a row is in none: sorted out first.
        for start in range(0, len(laid), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            outside[part] |= (laid[part] @ normals.T + offsets > -_TOLERANCE).any(axis=1)
        edge = np.flatnonzero(outside)
        if edge.size:
            laid = laid.copy()
            laid[edge], outside[edge] = self._moved(laid[edge], rows[edge])
            outside |= off
        simplex = triangulation.find_simplex(laid)
        affine = triangulation.transform[simplex]
        q = laid.shape[1]
        head = np.einsum("mij,mj->mi", affine[:, :q], laid - affine[:, q])
        weights = np.column_stack([head, 1.0 - head.sum(axis=1)])
        corners = triangulation.simplices[simplex].astype(np.int64)
        # Beside every simplex by round-off, or in one without volume: the nearest point itself.
        lost = (simplex < 0) | ~np.isfinite(weights).all(axis=1)
        if lost.any():
            corners[lost, 0] = cKDTree(self._laid).query(laid[lost])[1]
            weights[lost] = np.eye(1, q + 1)
        weights = np.maximum(weights, 0.0)
        return MeshPlaces(corners, weights / weights.sum(axis=1, keepdims=True), outside)

    def _one_by_one(self, laid: Floats, rows: Floats, off: Bools) -> MeshPlaces:
        """The Delaunay simplex of each row by a linear program, moved along `wl` at a high price.

        Of all weights that make a row of the points, those of its simplex have the least sum of
        weighted squares: that is what Delaunay means (the lower hull of the lifted points).
        """
        k, q = self._laid.shape
        distance, nearest = cKDTree(self._points).query(rows)
        lifted = np.square(self._laid).sum(axis=1)
        steps = np.column_stack([self._up, -self._up]) if self._extends else np.empty((q, 0))
        price = np.concatenate([lifted, np.full(steps.shape[1], 1e3 * lifted.max())])
        sums = np.vstack(
            [np.hstack([self._laid.T, steps]), np.r_[np.ones(k), np.zeros(steps.shape[1])]]
        )
        corners = np.zeros((len(laid), q + 1), dtype=np.int64)
        weights, outside = np.tile(np.eye(1, q + 1), (len(laid), 1)), off.copy()
        for row, place in enumerate(laid):
            corners[row, 0] = nearest[row]
            if distance[row] == 0.0:
                continue
            found = linprog(price, A_eq=sums, b_eq=np.append(place, 1.0), method="highs-ds")
            outside[row] |= found.x is None or found.x[k:].sum() > _TOLERANCE
            if found.x is not None:
                corners[row] = np.argsort(found.x[:k])[::-1][: q + 1]
                weights[row] = found.x[corners[row]] / found.x[corners[row]].sum()
        return MeshPlaces(corners, weights, outside)

    def _moved(self, laid: Floats, rows: Floats) -> tuple[Floats, Bools]:
        """Rows outside, moved onto the hull, and whether that took more than round-off."""
        middle = self._laid.mean(axis=0)
        if not self._extends:
            normals, offsets = self._flat[1]
            beyond: Bools = (laid @ normals.T + offsets > _TOLERANCE).any(axis=1)
            return laid + _NUDGE * (middle - laid), beyond
        low, high = self._range_along_wl(laid)
        among = low <= high + _TOLERANCE
        strangers = np.flatnonzero(~among)
        laid = laid.copy()
        if strangers.size:
            nearest = cKDTree(self._points[:, :-1]).query(rows[strangers, :-1])[1]
            own = np.column_stack([self._points[nearest, :-1], rows[strangers, -1]])
            laid[strangers] = self._sheared(self._projected(own))
            low[strangers], high[strangers] = self._range_along_wl(laid[strangers])
        low, high = np.minimum(low, high), np.maximum(low, high)
        step = np.where(np.isfinite(low), np.clip(0.0, low, high), 0.0)
        laid += step[:, None] * self._up
        return laid + _NUDGE * (middle - laid), ~among | (np.abs(step) > _TOLERANCE)

    def _range_along_wl(self, laid: Floats) -> tuple[Floats, Floats]:
        """How far each row may go along `wl` to stay in the hull: from, to; from > to: nowhere."""
        normals, offsets = self._flat[1]
        low, high = np.full(len(laid), np.inf), np.full(len(laid), -np.inf)
        slopes = normals @ self._up
        rising, falling = slopes > _TOLERANCE, slopes < -_TOLERANCE
        level = ~rising & ~falling
        for start in range(0, len(laid), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            room = -(laid[part] @ normals.T + offsets)
            high[part] = (room[:, rising] / slopes[rising]).min(axis=1, initial=np.inf)
            low[part] = (room[:, falling] / slopes[falling]).max(axis=1, initial=-np.inf)
            aside = (room[:, level] < -_TOLERANCE).any(axis=1)
            low[part][aside], high[part][aside] = np.inf, -np.inf
        return low, high


def _span(points: Floats) -> tuple[Floats, Floats]:
    """Origin (r,) and orthonormal directions (q, r) of the flat that holds all points."""
    k, r = points.shape
    if k == 1:
        return points[0], np.empty((0, r))
    _, sizes, directions = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    rank = int((sizes > 1e-9 * sizes.max(initial=0.0)).sum())
    if rank == r:
        return np.zeros(r), np.eye(r)  # no rotation: grids stay grids
    return points.mean(axis=0), directions[:rank]


def _facets(points: Floats) -> tuple[Floats, Floats]:
    """Normals (f, q) and offsets (f,) of the hull: normals @ x + offsets <= 0 inside."""
    equations = np.unique(np.round(ConvexHull(points).equations, 12), axis=0)
    return equations[:, :-1], equations[:, -1]
