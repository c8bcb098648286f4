"""Which parameters matter: partial least squares on a few samples (paper B, 6.3, Fig. 8)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.domain.errors import DataError
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.scales import log_kpi
from workbench.models.selection import must_be_alike, stated
from workbench.sampling.base import Space
from workbench.sampling.edges import edges
from workbench.sampling.factors import Coordinates

EDGES = 64
"""Points of the edges at most: six parameters in full."""
FEWEST = 3
"""Valid samples that say something."""
COMPONENTS = 2
"""Latent components at most: edges are near orthogonal, and more would fit their noise."""


@dataclass(frozen=True)
class Influence:
    """The share that every parameter has in what moves each KPI: the bars of paper B's Fig. 8.

    Attributes
    ----------
    parameters : keys of the factors, then the primary workload.
    kpis : names of the KPIs.
    weights : for each KPI, one share for each parameter; they sum to 1, or are all 0 where the
        KPI is the same in all samples or rises and falls with no parameter by itself.
    """

    parameters: tuple[str, ...]
    kpis: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]

    @property
    def overall(self) -> dict[str, float]:
        """Mean share over the KPIs that vary, by parameter."""
        moved = [row for row in self.weights if sum(row) > 0.0]
        return {
            key: sum(row[place] for row in moved) / len(moved) if moved else 0.0
            for place, key in enumerate(self.parameters)
        }


def edge_samples(space: Space, samples: Sequence[Sample], most: int = EDGES) -> tuple[Sample, ...]:
    """Valid samples of a complete two-level design, repetitions too.

    Parameters
    ----------
    most : points of the design at most: a fraction of the full one where it would have more.

    Returns
    -------
    tuple of Sample
        In the order given; none where a corner of the design has no valid sample, or where the
        corners are too few to say anything.
    """
    wanted = set(edges(space, most))
    own = [s for s in samples if s.valid and s.point.target == space.target]
    found = tuple(s for s in own if (s.point.configuration, s.point.wl) in wanted)
    seen = {(s.point.configuration, s.point.wl) for s in found}
    return found if seen == wanted and len(seen) >= FEWEST else ()


def influence_of(space: Space, samples: Sequence[Sample], kpis: Sequence[str]) -> Influence:
    """Regress all KPIs at once on all parameters, everything standardised, KPIs in logs.

    Parameters
    ----------
    samples : sequence of Sample
        Of the edges, or any others; only valid ones count. The KPI of the space is at its ceiling
        at least where overload left a bound or no figure.
    kpis : names of the KPIs; those that some valid sample lacks are left out.

    Raises
    ------
    DataError
        If fewer than three samples are valid, if they are of different kinds, or if no KPI is
        stated by all of them.
    """
    used = [
        s
        for s in samples
        if s.valid and s.point.target == space.target
        and s.point.configuration in space.configurations
    ]  # fmt: skip
    if len(used) < FEWEST:
        raise DataError(
            f"only {len(used)} valid samples say nothing about which parameter matters",
            where=space.target,
            remedy="Measure the edges of its range again",
        )
    must_be_alike(used)
    columns = [(name, column) for name in kpis if (column := _column(space, used, name))]
    if not columns:
        raise DataError(
            f"no KPI of {', '.join(kpis)} is stated by all {len(used)} valid samples",
            where=space.target,
            remedy="Name a KPI that its load model has",
        )
    where = Coordinates(space.configurations, space.primary)
    X = np.array([where.of(s.point.configuration, s.point.wl) for s in used])
    Y = np.array([column for _, column in columns]).T
    weights = _weights(X, Y)
    return Influence(
        (*(factor.key for factor in where.factors), space.primary.name),
        tuple(name for name, _ in columns),
        tuple(tuple(float(w) for w in row) for row in weights),
    )


def _column(space: Space, samples: Sequence[Sample], kpi: str) -> list[float] | None:
    """Log KPI of every sample, above its ceiling too: at the edges most of it lies there."""
    ceiling = log_kpi(space.kpi, space.kpi_max) if kpi == space.kpi else None
    found = []
    for sample in samples:
        value = sample.kpi(kpi)
        level = None if value is None else log_kpi(kpi, value)
        if ceiling is not None and (level is None or stated(sample, kpi) is None):
            level = max(ceiling, ceiling if level is None else level)  # a bound, or none
        if level is None:
            return None
        found.append(level)
    return found


def _weights(X: Floats, Y: Floats) -> Floats:
    """Absolute standardised coefficients as shares, of shape (kpis, parameters)."""
    weights = np.zeros((Y.shape[1], X.shape[1]))
    moves, varies = np.ptp(Y, axis=0) > 1e-9, np.ptp(X, axis=0) > 1e-9
    if not moves.any() or not varies.any():
        return weights
    x, y = (
        (table - table.mean(axis=0)) / table.std(axis=0) for table in (X[:, varies], Y[:, moves])
    )
    # What moves with no parameter by itself has no direction: its scores would be 0 / 0.
    linked = (np.abs(x.T @ y) > 1e-9 * len(x)).any(axis=0)
    if not linked.any():
        return weights
    moves[moves] = linked
    # Allocations that rise together are one direction: a component beyond the rank has no scores.
    components = min(COMPONENTS, int(np.linalg.matrix_rank(x, tol=1e-6)))
    size = np.abs(_coefficients(x, y[:, linked], components))
    total = size.sum(axis=1, keepdims=True)
    weights[np.ix_(moves, varies)] = np.divide(
        size, total, out=np.zeros_like(size), where=total > 0.0
    )
    return weights


def _coefficients(x: Floats, y: Floats, components: int) -> Floats:
    """Of a partial least squares regression with at most so many components: (kpis, parameters).

    Raises
    ------
    DataError
        If no component can be found.
    """
    from sklearn.cross_decomposition import PLSRegression

    for count in range(components, 0, -1):
        with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
            # One component explains a single KPI on an orthogonal design: nothing is left for
            # another. Two directions of equal weight are not told apart, and need not be.
            warnings.filterwarnings("ignore", message=".*residual is constant.*")
            warnings.filterwarnings("ignore", message=".*number of iterations.*")
            try:
                found = PLSRegression(n_components=count, scale=False).fit(x, y).coef_
            except ValueError:  # what a component leaves moves with no parameter: 0 / 0
                continue
        if np.isfinite(found).all():
            return np.atleast_2d(found)
    raise DataError("no direction of the parameters moves a KPI")
