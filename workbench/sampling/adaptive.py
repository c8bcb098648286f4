"""The learners of the `adaptive` package behind our interface, as a baseline.

Nijholt, Weston, Hoofwijk, Akhmerov: "Adaptive: parallel active learning of mathematical functions".
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import PluginError
from workbench.domain.samples import Sample
from workbench.sampling.base import Space
from workbench.sampling.exploring import Choice, Explorer
from workbench.sampling.factors import Coordinates
from workbench.sampling.intervals import ends, rounded

PACKAGE = "adaptive"
MOST_ASKED = 32
"""Points that a learner is asked for at once, until one is free: recorded loads lie anywhere."""


class AdaptiveSampler(Explorer):
    """A `Learner1D` over `wl` for each configuration; the one that gains the most asks next.

    Its loss is the length of the curve between neighbours, both axes over their ranges. A load
    without a valid sample stays pending, so that the learner looks beside it.

    Parameters
    ----------
    space : Space
    plan : SamplingPlan

    Raises
    ------
    PluginError
        If the package is not installed.
    """

    def __init__(self, space: Space, plan: SamplingPlan) -> None:
        learner = load_learner("learner1D", "Learner1D", space.target)
        super().__init__(space, plan)
        self._where = Coordinates(space.configurations, space.primary)
        self._learners = [learner(None, self._bounds(visits.recorded)) for visits in self.visits]

    def observe(self, place: int, sample: Sample) -> None:
        """Tell the learner of that configuration."""
        level, share = self.level(sample), self._where.load(sample.point.wl)
        if level is None:
            self._learners[place].tell_pending(share)
        else:
            self._learners[place].tell(share, level)

    def choose(self, open_: Sequence[int]) -> Choice | None:
        """The point that lowers the loss of its curve most; ties go to the fewest samples."""
        order = list(range(len(self.visits)))
        random.Random(f"{self.space.seed}/{self.space.target}").shuffle(order)
        best: tuple[float, int, int] | None = None
        chosen: Choice | None = None
        for place in open_:
            found = self._propose(place)
            if found is None:
                continue
            wl, gain = found
            rank = (-gain, len(self.visits[place].samples), order[place])
            if best is None or rank < best:
                best = rank
                chosen = Choice(place, wl, wl, wl, f"largest gain of its learner ({gain:.2g})")
        return chosen

    def _propose(self, place: int) -> tuple[float, float] | None:
        """A free load and how much the loss falls with it; asking changes nothing."""
        visits, learner = self.visits[place], self._learners[place]
        count = 1
        while count <= MOST_ASKED:
            shares, gains = learner.ask(count, tell_pending=False)
            for share, gain in zip(shares, gains, strict=True):
                wl = self._load(visits.recorded, float(share))
                if wl not in visits.samples:
                    return wl, float(gain)
            count *= 2
        return (visits.left[0], 0.0) if visits.left else None

    def _load(self, recorded: Sequence[float], share: float) -> float:
        if recorded:
            return min(recorded, key=lambda wl: abs(self._where.load(wl) - share))
        bounds = ends(self.space.primary)
        return rounded(self._where.at(share), bounds[0], bounds[-1], self.space.primary)

    def _bounds(self, recorded: Sequence[float]) -> tuple[float, float]:
        bounds = ends(self.space.primary, recorded)
        low, high = self._where.load(bounds[0]), self._where.load(bounds[-1])
        return (low, high) if low < high else (low, low + 1.0)


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
        raise PluginError(
            f"the sampler {PACKAGE!r} needs the package {PACKAGE!r}, which is not installed",
            where=where,
            remedy="Install it with `pip install 'vnf-workbench[adaptive]'`",
        )
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
