"""Paper B's sampling in logs: both ends, then bisection where the KPI breaks (Algorithms 1, 2)."""

from __future__ import annotations

from collections.abc import Callable

from workbench.domain.campaign import SamplingPlan
from workbench.models.base import ProfileModel
from workbench.sampling.base import Ask, Space
from workbench.sampling.taking_turns import TakingTurns
from workbench.sampling.track import Track

METHOD_VERSION = 1
"""Raised by hand when other points are asked for: benchmarks keep results by it."""


class BisectionSampler(TakingTurns[Track]):
    """Samples every configuration of a target by bisection of `wl`, interleaved.

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
        super().__init__(
            space, {c: Track(c, space, plan, model_factory) for c in space.configurations}
        )
        self.plan = plan

    def ask(self) -> Ask | None:
        """The next point; None when every configuration has ended. Asking again changes nothing."""
        track = self._following()
        return track.next() if track else None
