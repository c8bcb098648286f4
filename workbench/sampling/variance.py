"""Gaussian-process maximum variance: ask where the model is least sure (paper B, 6.2)."""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.domain.campaign import SamplingPlan
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.sampling.base import Space
from workbench.sampling.edges import edges
from workbench.sampling.factors import Coordinates
from workbench.sampling.grid_sampler import GridSampler, NextLoad
from workbench.sampling.uniform import even_loads

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""
LOADS = 30
CANDIDATES = 1000
REFRESH = 1.2
"""Hyper-parameters are found anew when the samples have grown by this factor ..."""
LEARNT_FROM = 200
"""... from at most so many of them: the evidence of more costs seconds and says the same."""


class Beginning(GridSampler):
    """An explorer that measures the edges of its space first (paper B, 6.3)."""

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        super().__init__(space, plan)
        self.where = Coordinates(space.configurations, space.primary)
        place = {c: i for i, c in enumerate(space.configurations)}
        budget = self.each * len(space.configurations)
        self._edges = [(place[c], wl) for c, wl in edges(space, budget)]
        # In a random order: the host drifts, and no parameter may take that for its own influence.
        random.Random(f"{space.seed}/{space.target}/edges").shuffle(self._edges)

    def edge(self, open_: Sequence[int]) -> NextLoad | None:
        """The next edge that was not visited."""
        among = set(open_)
        for place, wl in self._edges:
            if place in among and wl not in self.visits[place].samples:
                return NextLoad(place, wl, wl, wl, "an edge of the space")
        return None


class VarianceSampler(Beginning):
    """Asks for the point whose prediction a Gaussian process is least sure of.

    Kernel Constant * RBF + White over all factors and `wl`, on axes of range one, on the log KPI.
    Paper B finds it worse than a uniform grid: it is drawn to the rims and to flat regions.

    Parameters
    ----------
    space : Space
    plan : SamplingPlan
        `options["loads"]` (30): loads of a configuration to choose from, evenly over the range,
        where none are recorded. `options["candidates"]` (1000): points that are compared for one
        ask; of more a seeded subset is taken.
    """

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        super().__init__(space, plan)
        self._most = max(1, int(plan.options.get("candidates", CANDIDATES)))
        # Invalid loads are passed over: there must be more to choose from than may be taken.
        count = max(2, int(plan.options.get("loads", LOADS)), 2 * self.each)
        self._points = [
            (place, wl)
            for place, visits in enumerate(self.visits)
            for wl in (visits.recorded or even_loads(space.primary, count))
        ]
        self._X: list[Floats] = []
        self._y: list[float] = []
        self._kernel: Any = None
        self._learnt = 0

    def observe(self, place: int, sample: Sample) -> None:
        """A point that the process learns from."""
        level = self.level(sample)
        if level is not None:
            self._X.append(self.where.of(self.visits[place].configuration, sample.point.wl))
            self._y.append(level)
            if len(self._y) >= max(3, REFRESH * self._learnt):
                self._kernel = None
                self._learnt = len(self._y)

    def choose(self, open_: Sequence[int]) -> NextLoad | None:
        """The point of the largest variance; the edges before that."""
        if edge := self.edge(open_):
            return edge
        among = set(open_)
        free = [p for p in self._points if p[0] in among and p[1] not in self.visits[p[0]].samples]
        if not free:
            return None
        draw = random.Random(f"{self.space.seed}/{self.space.target}/{len(self._y)}/{len(free)}")
        if len(free) > self._most:
            free = draw.sample(free, self._most)
        if len(self._y) < 3:
            place, wl = draw.choice(free)
            return NextLoad(place, wl, wl, wl, "at random: too little is known of the variance")
        sd = self._sd([self.where.of(self.visits[i].configuration, wl) for i, wl in free])
        place, wl = free[int(np.argmax(sd))]
        return NextLoad(place, wl, wl, wl, f"largest standard deviation, {sd.max():.2g} in log KPI")

    def _sd(self, points: Sequence[Floats]) -> Floats:
        """Standard deviation of the log KPI at points, by the samples so far."""
        from sklearn.gaussian_process import GaussianProcessRegressor

        from workbench.models.estimator import one_thread

        X, y = np.array(self._X), np.array(self._y)
        with one_thread():
            if self._kernel is None:
                self._kernel = _learn(X[: self._learnt], y[: self._learnt])
            process = GaussianProcessRegressor(self._kernel, optimizer=None, normalize_y=True)
            _, sd = process.fit(X, y).predict(np.array(points), return_std=True)
        return np.asarray(sd)


def _learn(X: Floats, y: Floats) -> Any:
    """The kernel with the hyper-parameters of the largest evidence."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor

    from workbench.models.kernels import BellKernel, FactorKernel, NoiseKernel

    kernel = FactorKernel(1.0, (1e-2, 1e3)) * BellKernel(0.3, (0.03, 10.0)) + NoiseKernel(
        1e-2, (1e-5, 1.0)
    )
    chosen = np.unique(np.linspace(0, len(y) - 1, min(len(y), LEARNT_FROM)).astype(int))
    with warnings.catch_warnings():
        # A hyper-parameter at its bound is an answer, not a failure.
        warnings.simplefilter("ignore", ConvergenceWarning)
        process = GaussianProcessRegressor(kernel, normalize_y=True)
        return process.fit(X[chosen], y[chosen]).kernel_
