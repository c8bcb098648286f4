"""Space-filling designs over configurations x `wl`: Sobol sequence and Latin hypercube."""

from __future__ import annotations

import random
import warnings
from zlib import crc32

import numpy as np

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError
from workbench.models.base import Floats
from workbench.sampling.base import Space
from workbench.sampling.random import TRIES, Design

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""
KINDS = ("sobol", "latin-hypercube")


class SobolSampler(Design):
    """A scrambled Sobol sequence, or a Latin hypercube, over all factors and `wl`.

    A coordinate of the design becomes a value of its factor by equal shares of the unit interval,
    so that every value is as likely; the last one becomes a load on the scale of the range. A
    configuration that has its loads gives way: its nearest neighbour takes the point.

    Parameters
    ----------
    space : Space
    plan : SamplingPlan
        `max_samples` // `repetitions` loads of every configuration.
        `options["design"]` is `sobol` (default) or `latin-hypercube`.

    Raises
    ------
    DataError
        If the design is another.
    """

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        self._kind = str(plan.options.get("design", KINDS[0]))
        if self._kind not in KINDS:
            raise DataError(
                f"{self._kind!r} is no design",
                where=f"sampling of {space.target}, option `design`",
                remedy=f"Choose one of: {', '.join(KINDS)}",
            )
        super().__init__(space, plan)

    def points(self) -> list[tuple[int, float]]:
        """As many points as the budget has, in the order of the sequence."""
        factors = self.where.factors
        ranks = np.array(
            [
                [(f.values.index(f.of(c)) + 0.5) / len(f.values) for f in factors]
                for c in self.space.configurations
            ]
        ).reshape(len(self.visits), len(factors))
        room = np.full(len(self.visits), self.each)
        used: list[set[float]] = [set() for _ in self.visits]
        spare = random.Random(f"{self.space.seed}/{self.space.target}/sobol")
        points = []
        for row in self._design(len(factors) + 1, self.each * len(self.visits)):
            distance = np.where(room > 0, np.square(ranks - row[:-1]).sum(axis=1), np.inf)
            place = int(np.argmin(distance))
            room[place] -= 1
            shares = (float(row[-1]), *(spare.random() for _ in range(TRIES)))
            tries = (self.load_at(place, share, used[place]) for share in shares)
            found = next((wl for wl in tries if wl is not None), None)
            if found is not None:
                used[place].add(found)
                points.append((place, found))
        return points

    def _design(self, dimensions: int, count: int) -> Floats:
        """Of shape (count, dimensions), in the unit cube."""
        from scipy.stats import qmc

        seed = crc32(f"{self.space.seed}/{self.space.target}".encode())
        made = (
            qmc.Sobol(dimensions, scramble=True, rng=seed)
            if self._kind == "sobol"
            else qmc.LatinHypercube(dimensions, rng=seed)
        )
        with warnings.catch_warnings():
            # The budget is what it is: a sequence that ends between powers of two is less even.
            warnings.filterwarnings("ignore", message=".*balance properties.*")
            drawn: Floats = made.random(count)
        return drawn
