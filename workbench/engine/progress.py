"""Where a run stands, as ticks."""

from __future__ import annotations

from typing import Literal, cast

from workbench.domain.campaign import Campaign
from workbench.domain.events import Progress
from workbench.domain.parameters import OperatingPoint
from workbench.engine.channel import Publisher
from workbench.engine.verdict import ENDED
from workbench.labs.base import LabCosts

Phase = Literal["queued", "deploying", "allocating", "measuring", "fitting", "paused"]


class ProgressReport:
    """Tells phase, samples, lab time and what is left of it."""

    def __init__(
        self, campaign: Campaign, costs: LabCosts, publisher: Publisher, spent_s: float
    ) -> None:
        self.spent_s = spent_s
        self._campaign = campaign
        self._costs = costs
        self._out = publisher
        self._phase: Phase = "queued"
        self._point: OperatingPoint | None = None

    def phase(self, phase: str, point: OperatingPoint | None) -> None:
        self._phase, self._point = cast(Phase, phase), point
        self.again()

    def again(self) -> None:
        """The same phase, a little later."""
        view, point = self._out.view, self._point
        self._out.tick(
            Progress(
                session=view.session,
                phase=self._phase,
                target=point.target if point else "",
                configuration=point.configuration if point else None,
                wl=point.wl if point else None,
                samples=view.samples_taken,
                samples_planned=view.plan.samples if view.plan else 0,
                lab_s=self.spent_s,
                eta_s=self.eta_s(),
            )
        )

    def eta_s(self) -> float | None:
        """Lab seconds to go, at most: what the plan holds for configurations that have not ended.

        The plan's seconds per sample are corrected by what the samples so far took.
        """
        view = self._out.view
        if view.plan is None:
            return None
        planned_so_far = left = 0.0
        targets = set()
        for plan in view.plan.configurations:
            seen = view.configuration(f"{plan.target}/{plan.configuration.key}")
            each = plan.lab_s / plan.samples if plan.samples else 0.0
            taken = len(seen.samples) if seen else 0
            planned_so_far += taken * each
            if seen is None or seen.state not in ENDED:
                left += max(0, plan.samples - taken) * each
                if taken == 0:
                    targets.add(plan.target)
        pace = view.lab_s / planned_so_far if planned_so_far else 1.0
        return left * pace + len(targets) * self._costs.deploy_s
