"""Paper B's sampling in logs: both ends, then bisection where the KPI breaks (Algorithms 1, 2)."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.models.base import ProfileModel
from workbench.sampling.base import Ask, Ending, Space
from workbench.sampling.track import Track

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""


class BisectionSampler:
    """Samples every configuration of a target by bisection of `wl`, interleaved.

    Configurations take turns in rounds, each round in its own seeded order, because an allocation
    is changed in place and neighbouring samples share the drift of the host (METHOD.md 1).
    Repetitions come after a configuration's bisection, so that those of one load lie apart.

    The state is a function of the space, the plan and the samples told, in their order: a sampler
    rebuilt from stored samples asks what the lost one would have asked.

    Parameters
    ----------
    space : Space
        Target, configurations, range and KPI.
    plan : SamplingPlan
        `max_samples` counts all samples of a configuration, repetitions and invalid ones included.
        `epsilon` is |dRMSE| over the KPI's log range, from its lowest value to `kpi_max`. dRMSE
        stops nothing before five valid loads, nor as long as the KPI covers a quarter of its range
        within an interval wider than 10 %: that interval holds the breakpoint.
    model_factory : callable
        Makes the model behind dRMSE, the one that `plan.model` names.

    Raises
    ------
    DataError
        If the range of the primary workload holds no load above zero.
    """

    def __init__(
        self,
        space: Space,
        plan: SamplingPlan,
        *,
        model_factory: Callable[[], ProfileModel],
    ) -> None:
        self.space = space
        self.plan = plan
        self._tracks = {c: Track(c, space, plan, model_factory) for c in space.configurations}
        self._skipped: set[Configuration] = set()

    def tell(self, samples: Sequence[Sample]) -> None:
        """New samples, valid or not, in the order they were taken; strangers are ignored."""
        for sample in samples:
            track = self._tracks.get(sample.point.configuration)
            in_range = self.space.primary.low <= sample.point.wl <= self.space.primary.high
            if track and sample.point.target == self.space.target and in_range:
                track.observe(sample)

    def skip(self, configuration: Configuration) -> None:
        """The user wants no more of it."""
        self._skipped.add(configuration)

    def ask(self) -> Ask | None:
        """The next point; None when every configuration has ended. Asking again changes nothing."""
        active = [
            track
            for configuration, track in self._tracks.items()
            if configuration not in self._skipped and not track.ending
        ]
        if not active:
            return None
        turn = min(track.taken for track in active)
        waiting = [track for track in active if track.taken == turn]
        order = [c.key for c in self._tracks]
        random.Random(f"{self.space.seed}/{self.space.target}/{turn}").shuffle(order)
        return min(waiting, key=lambda track: order.index(track.configuration.key)).next()

    @property
    def endings(self) -> Mapping[Configuration, Ending]:
        """Configurations that need no more samples."""
        found: dict[Configuration, Ending] = {}
        for configuration, track in self._tracks.items():
            if track.ending:
                found[configuration] = track.ending
            elif configuration in self._skipped:
                found[configuration] = Ending("skipped", f"skipped after {track.taken} samples")
        return found
