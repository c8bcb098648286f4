"""Where a run stands, as ticks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

from workbench.domain.events import Progress
from workbench.domain.parameters import OperatingPoint
from workbench.domain.sessions import Plan
from workbench.engine.runs.verdict import ENDED
from workbench.engine.sessions.channel import Publisher

Phase = Literal["queued", "deploying", "allocating", "measuring", "fitting", "paused"]


class ProgressReport:
    """Tells phase, samples, lab time and what is left of it.

    Parameters
    ----------
    spent_s : says the lab time of the session so far.
    """

    def __init__(
        self, publisher: Publisher, spent_s: Callable[[], float], samples_s: float
    ) -> None:
        self._spent_s = spent_s
        self.samples_s = samples_s
        """What of it its samples took."""
        self._out = publisher
        self._phase: Phase = "queued"
        self._point: OperatingPoint | None = None
        self._note = ""

    def phase(self, phase: str, point: OperatingPoint | None, note: str = "") -> None:
        self._phase, self._point, self._note = cast(Phase, phase), point, note
        self.again()

    def again(self) -> None:
        """The same phase, a little later."""
        point = self._point
        taken, planned, eta_s = self.tally()
        self._out.tick(
            Progress(
                session=self._out.view.session,
                phase=self._phase,
                target=point.target if point else "",
                configuration=point.configuration if point else None,
                wl=point.wl if point else None,
                samples=taken,
                samples_planned=planned,
                lab_s=self._spent_s(),
                eta_s=eta_s,
                note=self._note,
            )
        )

    def tally(self) -> tuple[int, int, float | None]:
        """Samples taken, samples planned, and lab seconds to go."""
        view = self._out.view
        return view.samples_taken, view.plan.samples if view.plan else 0, self.eta_s()

    def eta_s(self) -> float | None:
        """Lab seconds to go, at most: what the plan holds for configurations that have not ended.

        The plan's seconds per sample are corrected by what the samples so far took; deployments
        and bypasses are spread over the samples.
        """
        view = self._out.view
        if view.plan is None:
            return None
        planned_so_far = left_s = 0.0
        left = 0
        for plan in view.plan.configurations:
            seen = view.configuration(f"{plan.target}/{plan.configuration.key}")
            each = plan.lab_s / plan.samples if plan.samples else 0.0
            taken = seen.taken if seen else 0
            planned_so_far += taken * each
            if seen is None or seen.state not in ENDED:
                left += max(0, plan.samples - taken)
                left_s += max(0, plan.samples - taken) * each
        pace = self.samples_s / planned_so_far if planned_so_far else 1.0
        return left_s * pace + besides_s(view.plan) * left / max(1, view.plan.samples)


def besides_s(plan: Plan) -> float:
    """What a plan holds beside samples: deployments and bypasses."""
    return plan.lab_s - sum(configuration.lab_s for configuration in plan.configurations)
