"""Greedy gradient: bisect the gap of the largest dx·dy of the whole space, as a baseline.

What Algorithm 2 does along `wl` is done along every parameter at once, as the samplers do that
paper B reviews ("Optimized Sampling Strategies", 2: PANIC and its kin) and sets aside in 6.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.domain.campaign import SamplingPlan
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.sampling.base import Space
from workbench.sampling.grid_sampler import NextLoad
from workbench.sampling.intervals import SMALLEST_RISE, ends, middle_of, rounded
from workbench.sampling.variance import Beginning

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""
INSIDE = 1.0 - 1e-9
"""A point bisects a gap if it lies within its ball; both ends lie on it."""


@dataclass(frozen=True)
class _Node:
    place: int
    wl: float
    x: Floats
    y: float


class GradientSampler(Beginning):
    """Asks for the middle of the gap with the largest product of width and rise.

    A gap is a pair of measured points with no other in the ball between them (the edges of a
    Gabriel graph); along a single axis these are the intervals of Algorithm 2. Its middle is the
    nearest load of the nearest configuration in the ball. Width is taken on axes of range one,
    rise in logs over the KPI's range; gaps whose both ends are at the ceiling are left alone. An
    invalid point counts as one at the ceiling, since overload is the usual reason.

    Parameters
    ----------
    space : Space
    plan : SamplingPlan
    """

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        super().__init__(space, plan)
        self._rows = np.array([self.where.row(c) for c in space.configurations]).reshape(
            len(space.configurations), len(self.where.factors)
        )
        self._nodes: list[_Node] = []
        self._gaps: dict[tuple[int, int], float] = {}
        """Width by the numbers of both ends."""

    def observe(self, place: int, sample: Sample) -> None:
        """A new node closes the gaps that it lies in, and opens some to its neighbours."""
        level = self.level(sample)
        wl = sample.point.wl
        x = self.where.of(self.visits[place].configuration, wl)
        new = _Node(place, wl, x, self.ceiling if level is None else level)
        known = np.array([node.x for node in self._nodes]).reshape(len(self._nodes), len(x))
        self._gaps = {
            (i, j): width
            for (i, j), width in self._gaps.items()
            # By Thales, a point lies in the ball over two others where it sees them obtusely.
            if float(np.dot(known[i] - x, known[j] - x)) >= -1e-12
        }
        for j, node in enumerate(self._nodes):
            seen = np.einsum("nd,nd->n", known - node.x, known - x)
            seen[j] = 0.0
            if not (seen < -1e-12).any():
                self._gaps[j, len(self._nodes)] = float(np.linalg.norm(node.x - x))
        self._nodes.append(new)

    def choose(self, open_: Sequence[int]) -> NextLoad | None:
        """The middle of the most telling gap that has one; the edges before that."""
        if edge := self.edge(open_):
            return edge
        lowest = min((node.y for node in self._nodes), default=self.ceiling)
        full = max(self.ceiling - lowest, math.log(2.0))
        scored = []
        for (i, j), width in self._gaps.items():
            one, other = self._nodes[i], self._nodes[j]
            if min(one.y, other.y) < self.ceiling:
                rise = abs(one.y - other.y) / full
                scored.append((-width * max(rise, SMALLEST_RISE), i, j))
        for score, i, j in sorted(scored):
            found = self._middle(self._nodes[i], self._nodes[j], open_)
            if found:
                place, wl = found
                low, high = sorted((self._nodes[i].wl, self._nodes[j].wl))
                return NextLoad(place, wl, low, high, f"bisects the largest dx·dy ({-score:.2g})")
            del self._gaps[i, j]  # what is free or open only ever shrinks
        return None

    def _middle(self, one: _Node, other: _Node, open_: Sequence[int]) -> tuple[int, float] | None:
        """The free point nearest to the middle of a gap, None where there is none in its ball."""
        if one.place == other.place:
            if one.place not in open_:
                return None
            low, high = sorted((one.wl, other.wl))
            wl = middle_of(low, high, self.space.primary, self.visits[one.place].recorded)
            return None if wl is None else (one.place, wl)
        centre = 0.5 * (one.x + other.x)
        radius = 0.5 * float(np.linalg.norm(one.x - other.x)) * INSIDE
        places = np.asarray(open_)
        distances = np.linalg.norm(self._rows[places] - centre[:-1], axis=1)
        for k in np.argsort(distances, kind="stable"):
            if distances[k] >= radius:
                return None
            place = int(places[k])
            reach = math.sqrt(radius**2 - float(distances[k]) ** 2)
            wl = self._nearest(place, float(centre[-1]))
            if wl is not None and abs(self.where.load(wl) - centre[-1]) < reach:
                return place, wl
        return None

    def _nearest(self, place: int, share: float) -> float | None:
        visits = self.visits[place]
        if visits.recorded:
            return min(visits.left, key=lambda wl: abs(self.where.load(wl) - share), default=None)
        bounds = ends(self.space.primary)
        wl = rounded(self.where.at(share), bounds[0], bounds[-1], self.space.primary)
        return None if wl in visits.samples else wl
