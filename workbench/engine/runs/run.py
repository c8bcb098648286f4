"""One campaign on one lab, from its place in the queue to `RunFinished`."""

from __future__ import annotations

from dataclasses import replace

from workbench.domain.events import Noted, RunStarted
from workbench.engine.runs.control import Place
from workbench.engine.runs.lab_job import LabJob, LabJobParts
from workbench.engine.runs.profiling import Profiler, RunOrder
from workbench.engine.runs.progress import ProgressReport
from workbench.engine.runs.sample_runner import Ending
from workbench.engine.runs.verdict import finished, unfinished


class Run(LabJob):
    """A turn in which a sampler asks, target by target, until all configurations have ended."""

    def __init__(self, order: RunOrder, parts: LabJobParts) -> None:
        self._order = order
        super().__init__(order.campaign, parts)
        self._profiler = Profiler(order, self._visit_parts(parts))

    def knows(self, place: Place) -> bool:
        """Whether the campaign holds that configuration."""
        target, configuration = place
        campaign = self._order.campaign
        return any(
            plan.target.name == target and configuration in campaign.configurations(plan)
            for plan in campaign.targets
        )

    def _make_progress(self) -> ProgressReport:
        order = self._order
        return ProgressReport(
            self._out,
            lambda: order.lab_s + order.trials_s + self._bench.lab_s,
            sum(sample.lab_s for sample in order.samples),
        )

    async def _begin(self) -> None:
        self._profiler.begin()
        await self._out.record(RunStarted(self._order.resumed, self._order.budget_s))
        for note in self._order.notes:
            await self._out.record(note)

    async def _measure_all(self) -> Ending:
        plans = self._order.campaign.targets
        for plan in plans:
            ending = await self._profiler.profile(plan)
            if ending is not None:
                return ending
        # Somebody may have asked for a point of a target whose turn was over.
        while late := next((p for p in plans if self._profiler.requests(p.target.name)), None):
            ending = await self._profiler.profile(late)
            if ending is not None:
                return ending
        if unproven := self._profiler.faults.given_up:
            return "failed", " ".join(fault.note for fault in unproven.values())
        return "done", ""

    async def _conclude(self, ending: Ending | None, wall_s: float) -> None:
        if ending is None:
            text = "the engine ended in mid-run; `workbench resume` goes on where it stood"
            await self._out.record(Noted("warning", text))
            return
        outcome, note = ending
        view, campaign = self._out.view, self._order.campaign
        for left in unfinished(view, outcome, note, self._profiler.faults.given_up):
            await self._out.record(left)
        fact = finished(
            view, campaign, outcome, note, wall_s, self._order.lab_s + self._bench.lab_s
        )
        fact = replace(fact, waited_s=self._profiler.visits.waited_in_vain_s)
        self.concluded = True
        await self._out.record(fact)
