"""Random sampling: loads at random, configurations in a random order, as a baseline."""

from __future__ import annotations

import random
from collections.abc import Sequence

from workbench.domain.campaign import SamplingPlan
from workbench.sampling.base import Space
from workbench.sampling.factors import Coordinates
from workbench.sampling.grid_sampler import GridSampler, NextLoad
from workbench.sampling.intervals import ends, rounded

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""
TRIES = 50
"""Draws at one load before it is given up: whole loads and recorded ones come twice."""


class Design(GridSampler):
    """A list of points that is made beforehand; `points` says how."""

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        super().__init__(space, plan)
        self.where = Coordinates(space.configurations, space.primary)
        self._points = self.points() if space.configurations else []

    def points(self) -> list[tuple[int, float]]:
        """Places of configurations and loads, distinct, in the order of the asks.

        At most `each` of every configuration.
        """
        raise NotImplementedError

    def choose(self, open_: Sequence[int]) -> NextLoad | None:
        """The next point of the list that was not visited."""
        among = set(open_)
        for place, wl in self._points:
            if place in among and wl not in self.visits[place].samples:
                return NextLoad(place, wl, wl, wl, f"a point of the {self.plan.method} design")
        return None

    def load_at(self, place: int, share: float, used: set[float]) -> float | None:
        """The load at a share of the range, or the nearest recorded one; None if it is used."""
        if recorded := self.visits[place].recorded:
            free = [wl for wl in recorded if wl not in used]
            return min(free, key=lambda wl: abs(self.where.load(wl) - share), default=None)
        bounds = ends(self.space.primary)
        wl = rounded(self.where.at(share), bounds[0], bounds[-1], self.space.primary)
        return None if wl in used else wl


class RandomSampler(Design):
    """Uniformly random loads on the scale of the range, as many of every configuration.

    Parameters
    ----------
    space : Space
    plan : SamplingPlan
        `max_samples` // `repetitions` loads of every configuration.
    """

    def points(self) -> list[tuple[int, float]]:
        """Loads of one configuration after the other, shuffled."""
        draw = random.Random(f"{self.space.seed}/{self.space.target}/random")
        points = []
        for place in range(len(self.visits)):
            used: set[float] = set()
            for _ in range(self.each):
                tries = (self.load_at(place, draw.random(), used) for _ in range(TRIES))
                found = next((wl for wl in tries if wl is not None), None)
                if found is not None:
                    used.add(found)
                    points.append((place, found))
        draw.shuffle(points)
        return points
