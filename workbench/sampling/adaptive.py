"""The learners of the `adaptive` package behind our interface, as a baseline.

Nijholt, Weston, Hoofwijk, Akhmerov: "Adaptive: parallel active learning of mathematical functions".
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, product
from types import ModuleType
from typing import Any

import numpy as np

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError, PluginError
from workbench.domain.samples import Sample
from workbench.sampling.base import Space
from workbench.sampling.factors import Coordinates
from workbench.sampling.grid_sampler import GridSampler, NextLoad
from workbench.sampling.intervals import ends, middle_of, rounded

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""
PACKAGE = "adaptive"
LACKING = f"needs the package {PACKAGE!r}, which is not installed"
INSTALL = "Install it with `pip install 'vnf-workbench[adaptive]'`"
LEARNERS = {
    "1d": ("learner1D", "Learner1D"),
    "2d": ("learner2D", "Learner2D"),
    "nd": ("learnerND", "LearnerND"),
}
ASKED = (1, 8)
"""Points that a learner is asked for at once, until one is free: recorded loads lie anywhere, and
so do configurations."""


class AdaptiveSampler(GridSampler):
    """Asks where a learner of the package gains most; which of them is an option.

    `1d`, the default, is a `Learner1D` over `wl` for each configuration; the one that gains the
    most asks next. `2d` and `nd` are one `Learner2D` or `LearnerND` over all factors and `wl`:
    what it asks for is taken at the nearest configuration that is still open; of a single
    configuration `nd` is `1d`. Their losses are the
    package's own, the KPI in logs and every axis over its range. A load without a valid sample
    stays pending, so that the learner looks beside it; so does a corner that no configuration has.
    Where all that a learner asks for is taken, the widest gap of the least sampled is bisected.

    Parameters
    ----------
    space : Space
    plan : SamplingPlan
        `options["learner"]` is `1d` (default), `2d` or `nd`.

    Raises
    ------
    DataError
        If the learner is another, or has not as many axes as the space.
    PluginError
        If the package is not installed.
    """

    @staticmethod
    def lacking() -> tuple[str, str] | None:
        """What this installation has not, and what to do; `workbench doctor` asks."""
        return (LACKING, INSTALL) if importlib.util.find_spec(PACKAGE) is None else None

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        kind = str(plan.options.get("learner", "1d"))
        if kind not in LEARNERS:
            raise DataError(
                f"{kind!r} is no learner",
                where=f"sampling of {space.target}, option `learner`",
                remedy=f"Choose one of: {', '.join(LEARNERS)}",
            )
        super().__init__(space, plan)
        self._where = Coordinates(space.configurations, space.primary)
        factors = len(self._where.factors)
        if kind == "2d" and factors != 1:
            raise DataError(
                f"the learner 2d has two axes, the space has {factors + 1}",
                where=f"sampling of {space.target}, option `learner`",
                remedy="Choose 1d or nd",
            )
        if kind == "nd" and not factors:
            kind = "1d"
        learner = load_learner(*LEARNERS[kind], space.target)
        self._rows = np.array([self._where.row(c) for c in space.configurations])
        order = list(range(len(self.visits)))
        random.Random(f"{space.seed}/{space.target}").shuffle(order)
        self._order = dict(zip(order, range(len(order)), strict=True))
        self._whole: Any = None
        self._learners: list[Any] = []
        if kind == "1d":
            self._learners = [learner(None, self._bounds(v.recorded)) for v in self.visits]
        elif space.configurations:
            self._whole = learner(None, self._box(factors))
            for corner in product(*self._box(factors)):
                place = self._nearest(corner, range(len(self.visits)))
                if self._point(place, self._load(place, corner[-1])) != corner:
                    self._whole.tell_pending(corner)

    def observe(self, place: int, sample: Sample) -> None:
        """Tell the learner of that configuration, or that of all."""
        level, wl = self.level(sample), sample.point.wl
        point: Any = self._where.load(wl) if self._whole is None else self._point(place, wl)
        learner = self._learners[place] if self._whole is None else self._whole
        if level is None:
            learner.tell_pending(point)
        else:
            learner.tell(point, level)

    def choose(self, open_: Sequence[int]) -> NextLoad | None:
        """The point that lowers a loss most; of several learners ties go to the fewest samples."""
        if self._whole is not None:
            return self._of_all(open_) or self._left_over(open_)
        best: tuple[float, int, int] | None = None
        chosen: NextLoad | None = None
        for place in open_:
            found = self._propose(place)
            if found is None:
                continue
            wl, gain = found
            rank = (-gain, len(self.visits[place].samples), self._order[place])
            if best is None or rank < best:
                best = rank
                chosen = NextLoad(place, wl, wl, wl, f"largest gain of its learner ({gain:.2g})")
        return chosen or self._left_over(open_)

    def _propose(self, place: int) -> tuple[float, float] | None:
        """A free load and how much the loss falls with it; asking changes nothing."""
        for share, gain in _asked(self._learners[place]):
            wl = self._load(place, float(share))
            if wl not in self.visits[place].samples:
                return wl, gain
        return None

    def _of_all(self, open_: Sequence[int]) -> NextLoad | None:
        """The free point nearest to what the learner of the whole space asks for."""
        for point, gain in _asked(self._whole):
            place = self._nearest(point, open_)
            wl = self._load(place, float(point[-1]))
            if wl not in self.visits[place].samples:
                return NextLoad(place, wl, wl, wl, f"largest gain of the learner ({gain:.2g})")
        return None

    def _left_over(self, open_: Sequence[int]) -> NextLoad | None:
        """The middle of the widest gap of the configuration with the fewest samples."""
        fewest = sorted(open_, key=lambda p: (len(self.visits[p].samples), self._order[p]))
        for place in fewest:
            visits, primary = self.visits[place], self.space.primary
            bounds = ends(primary, visits.recorded)
            free = [wl for wl in bounds if wl not in visits.samples]
            if not free:
                loads = sorted(visits.samples)
                middles = {
                    self._where.load(high) - self._where.load(low): middle
                    for low, high in pairwise(loads)
                    if (middle := middle_of(low, high, primary, visits.recorded)) is not None
                }
                free = [middles[max(middles)]] if middles else visits.left
            if free:
                return NextLoad(place, free[0], free[0], free[0], "the widest gap that is left")
        return None

    def _nearest(self, point: Sequence[float], places: Sequence[int]) -> int:
        distance = np.square(self._rows[list(places)] - np.array(point[:-1])).sum(axis=1)
        return places[int(np.argmin(distance))]

    def _point(self, place: int, wl: float) -> tuple[float, ...]:
        return (*self._where.row(self.space.configurations[place]), self._where.load(wl))

    def _load(self, place: int, share: float) -> float:
        if recorded := self.visits[place].recorded:
            return min(recorded, key=lambda wl: abs(self._where.load(wl) - share))
        bounds = ends(self.space.primary)
        return rounded(self._where.at(share), bounds[0], bounds[-1], self.space.primary)

    def _box(self, factors: int) -> tuple[tuple[float, float], ...]:
        """The unit cube, its last axis as far as loads go."""
        loads = sorted({wl for visits in self.visits for wl in visits.recorded})
        return (*((0.0, 1.0) for _ in range(factors)), self._bounds(loads))

    def _bounds(self, recorded: Sequence[float]) -> tuple[float, float]:
        bounds = ends(self.space.primary, recorded)
        low, high = self._where.load(bounds[0]), self._where.load(bounds[-1])
        return (low, high) if low < high else (low, low + 1.0)


def _asked(learner: Any) -> Iterator[tuple[Any, float]]:
    """Points and gains that a learner asks for; asking changes nothing."""
    for count in ASKED:
        points, gains = learner.ask(count, tell_pending=False)
        yield from zip(points, map(float, gains), strict=True)


@cache
def load_learner(module: str, name: str, where: str) -> Any:
    """A learner's class, without the package's own `__init__`.

    That imports its runner, which sets uvloop's policy for the whole process. Our copy leaves no
    module behind: whoever imports the package himself gets the whole of it.

    Raises
    ------
    PluginError
        If the package is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.submodule_search_locations is None:
        raise PluginError(f"{PACKAGE!r} {LACKING}", where=where, remedy=INSTALL)
    if PACKAGE in sys.modules:  # somebody did already
        return getattr(importlib.import_module(f"{PACKAGE}.learner.{module}"), name)
    bare = ModuleType(PACKAGE)
    bare.__path__ = list(found.submodule_search_locations)
    sys.modules[PACKAGE] = bare
    try:
        return getattr(importlib.import_module(f"{PACKAGE}.learner.{module}"), name)
    finally:
        for known in [m for m in sys.modules if m.partition(".")[0] == PACKAGE]:
            del sys.modules[known]
