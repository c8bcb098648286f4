"""Where a run stands, as ticks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, cast

from workbench.domain.events import Progress
from workbench.domain.parameters import OperatingPoint
from workbench.domain.sessions import Plan
from workbench.engine.sessions.channel import Publisher

Phase = Literal["queued", "deploying", "allocating", "measuring", "fitting", "paused", "waiting"]
HELD = ("paused", "waiting")
"""Phases in which nothing is measured: their time says nothing of the pace."""
PRIOR_SAMPLES = 3


class ProgressReport:
    """Tells phase, samples, lab time and what is left of it.

    Parameters
    ----------
    spent_s : says the lab time of the session so far.
    """

    def __init__(
        self,
        publisher: Publisher,
        spent_s: Callable[[], float],
        samples_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spent_s = spent_s
        self.samples_s = samples_s
        """What of it its samples took."""
        self._out = publisher
        self._clock = clock
        self._began: float | None = None
        """By the clock, when the turn came."""
        self._cycles: list[tuple[int, float, float]] = []
        """When the turn came, when the first cycle of sample and fit was over and when the last
        was: samples, by the clock without what was held, lab time."""
        self._held_since: float | None = None
        self._held_s = 0.0
        """Paused or waiting, all in all."""
        self._phase: Phase = "queued"
        self._point: OperatingPoint | None = None
        self._note = ""

    def phase(self, phase: str, point: OperatingPoint | None, note: str = "") -> None:
        self._phase, self._point, self._note = cast(Phase, phase), point, note
        self._count_clock()
        self.again()

    def _count_clock(self) -> None:
        now = self._clock()
        if self._began is None and self._phase != "queued":
            self._began = now
        if self._held_since is not None:
            self._held_s += now - self._held_since
        self._held_since = now if self._phase in HELD else None
        if self._began is None or self._phase not in ("measuring", "deploying"):
            return
        taken = self._out.view.samples_taken
        if not self._cycles or taken > self._cycles[-1][0]:
            cycle = (taken, now - self._began - self._held_s, self._spent_s())
            self._cycles = [*self._cycles[:2], cycle]

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
                wall_s=self._clock() - self._began if self._began is not None else 0.0,
                eta_wall_s=self._by_clock(eta_s),
            )
        )

    def _by_clock(self, lab_s: float | None) -> float | None:
        """What so many lab seconds to go take by the clock, at the pace of this run so far.

        The first sample came with deployment and bypass, whose pace is another: it counts only
        as long as there is no later one.
        """
        if lab_s is None or len(self._cycles) < 2:
            return None
        first, last = self._cycles[-2 if len(self._cycles) == 2 else 1], self._cycles[-1]
        done_s = last[2] - first[2]
        return lab_s * (last[1] - first[1]) / done_s if done_s > 0.0 else None

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
            if seen is None or not seen.ended:
                left += max(0, plan.samples - taken)
                left_s += max(0, plan.samples - taken) * each
        count = max(1, view.plan.samples)
        # A few samples say little of the pace: as many as planned stand beside them.
        prior_s = PRIOR_SAMPLES * sum(p.lab_s for p in view.plan.configurations) / count
        pace = (self.samples_s + prior_s) / (planned_so_far + prior_s) if prior_s else 1.0
        besides = besides_s(view.plan)
        # Deployments are spread over the samples; bypasses come first and are shared.
        to_come_s = max(0.0, besides - (self._spent_s() - self.samples_s))
        return left_s * pace + min(besides * left / count, to_come_s)


def besides_s(plan: Plan) -> float:
    """What a plan holds beside samples: deployments and bypasses."""
    return plan.lab_s - sum(configuration.lab_s for configuration in plan.configurations)
