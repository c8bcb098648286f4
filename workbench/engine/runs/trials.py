"""Points that somebody asks for one after the other, in a session whose campaign has ended.

Canaries, the verification of a recommendation and greedy scaling are trials: what is measured next
depends on what was measured before, and whoever asks decides. Trials take their turn at the lab as
a campaign does, and their samples are deployed, judged and stored by the same code; they carry a
purpose, by which a stand-alone profile leaves them out.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from workbench.domain.campaign import Campaign, SamplingPlan, TargetPlan
from workbench.domain.counts import counted
from workbench.domain.errors import (
    BudgetSpent,
    EngineError,
    LabError,
    Stopped,
    UsageError,
    WorkbenchError,
)
from workbench.domain.events import Noted, TrialsFinished, TrialsStarted
from workbench.domain.lab import HostNoise
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Sample, TrialPurpose
from workbench.domain.topology import Target
from workbench.domain.trials import sample_s
from workbench.engine.learning.sampler_worker import first_s
from workbench.engine.runs.budget import Budget
from workbench.engine.runs.lab_job import LabJob, LabJobParts
from workbench.engine.runs.planning import blocks
from workbench.engine.runs.progress import ProgressReport
from workbench.engine.runs.sample_runner import Ending, SampleRunner
from workbench.measuring.floor import METHOD_FLOOR, VarianceFloor, variance_floor


@dataclass(frozen=True)
class TrialsRequest:
    """The lab of a session whose campaign has ended, wanted for points that follow.

    Attributes
    ----------
    purpose : kept with every sample.
    plans : targets that the campaign does not have, such as replicas behind a balancer, and
        targets of it that are asked beyond its range or allocations. Templates come with the
        campaign, earlier trials or the library.
    budget_s : of these trials, after which no new sample is begun (`Budget`).
    points : how many will be asked for, for those who watch; 0: nobody knows.
    by : who asks.
    pace : of the simulated lab; None: as fast as it can.
    oversubscribe : `plans` may need more cores than there are.
    """

    session: str
    purpose: TrialPurpose
    plans: tuple[TargetPlan, ...] = ()
    budget_s: float | None = None
    points: int = 0
    by: str = ""
    pace: float | None = None
    oversubscribe: bool = False


@dataclass(frozen=True)
class TrialsOrder:
    """What the trials of a session rest on: fixed when they are accepted.

    Attributes
    ----------
    started : what is recorded when their turn has come.
    campaign : the session's, with the targets and templates that it does not have itself.
    samples : of the whole session, in the order they were taken.
    points : how many are expected, for those who watch; 0 where nobody knows.
    """

    started: TrialsStarted
    campaign: Campaign
    samples: tuple[Sample, ...]
    points: int
    notes: tuple[Noted, ...] = ()


class Trials(LabJob):
    """A turn in which a user asks.

    `Queue.trials` makes one, and ends it with the body of its `async with`.

    Attributes
    ----------
    queued_behind : who had the lab when it was asked for; empty if nobody.
    """

    def __init__(
        self,
        order: TrialsOrder,
        parts: LabJobParts,
        queued_behind: str = "",
    ) -> None:
        self.queued_behind = queued_behind
        self._order = order
        self._taken: list[Sample] = []
        super().__init__(order.campaign, parts)
        self._budget = Budget(
            order.started.budget_s, 0.0, lambda: self._bench.lab_s, by_clock=parts.on_host
        )
        self._visits = SampleRunner(self._visit_parts(parts), self._budget)
        self._asks: asyncio.Queue[_Ask | None] = asyncio.Queue()
        """What is to be measured; None: nothing more."""
        self._samples: dict[str, list[Sample]] = defaultdict(list)
        """Of the whole session, by target."""
        for sample in order.samples:
            self._samples[sample.point.target].append(sample)
        self._floor: VarianceFloor = METHOD_FLOOR
        self._next_block = 0
        self.answering = False
        """Whether a point is being measured."""
        self._ended = asyncio.Event()
        self._outcome: Ending = ("done", "")

    # ------------------------------------------------------------------ who asks

    @property
    def lab_s(self) -> float:
        """Lab seconds that they cost so far."""
        return self._bench.lab_s

    @property
    def spent_s(self) -> float:
        """Of the budget."""
        return self._budget.here_s

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Taken so far, valid or not."""
        return tuple(self._taken)

    async def measure(self, target: str, configuration: Configuration, wl: float) -> Sample:
        """Measure a point, whenever the turn comes; the sample is stored, valid or not.

        A point that was measured before gets the next repetition number.

        Parameters
        ----------
        target : name of one of the campaign's, or of the plans that the trials were opened with.
        configuration : any allocation of its functions; a workload value for every parameter.
        wl : in the unit of the target's primary workload.

        Raises
        ------
        UsageError
            If there is no such target, or the point cannot be one of it.
        LabError
            If the lab failed twice at it; another point may do. If it fails once more, the lab is
            given up, and the trials are over.
        BudgetSpent, Stopped
            The trials are over: nothing was begun any more, or (an abort) not finished.
        EngineError, SessionError
            The engine is ending; the session cannot be written.
        """
        plan = self._checked(target, configuration, wl)
        ask = _Ask(plan.target, configuration, wl, asyncio.get_running_loop().create_future())
        self._asks.put_nowait(ask)
        ended = asyncio.ensure_future(self._ended.wait())
        either: set[asyncio.Future[Any]] = {ask.sample, ended}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if ask.sample.done():
            return ask.sample.result()
        raise self._why_over()

    async def leave(self, *, abort: bool = False) -> None:
        """No more points; `abort` does not wait for one that is being measured."""
        if abort:
            self.control.abort = True
            self.control.ring()
            self._cancel()
        else:
            self._asks.put_nowait(None)
        await self._ended.wait()

    async def stop(self, by: str, *, abort: bool) -> None:
        try:
            await super().stop(by, abort=abort)
        finally:
            self._asks.put_nowait(None)

    async def execute(self) -> None:
        try:
            await super().execute()
        finally:
            self._ended.set()

    def _checked(self, target: str, configuration: Configuration, wl: float) -> TargetPlan:
        """The plan of a target that can be asked for that point. Raises `UsageError`."""
        plans = {plan.target.name: plan for plan in self._order.campaign.targets}
        plan = plans.get(target)
        if plan is None:
            raise UsageError(
                f"has no target {target!r}",
                where=self.session,
                remedy=f"Choose one of: {', '.join(plans)}",
            )
        functions = {vnf.name for vnf in plan.target.vnfs}
        strange = {
            key for key in configuration.resources if key.rpartition(".")[0] not in functions
        }
        workload = {parameter.key for parameter in self._order.campaign.given(plan)}
        strange |= workload ^ set(configuration.workload)
        if strange:
            raise UsageError(
                f"cannot be measured at {configuration.key}: {', '.join(sorted(strange))} is "
                "missing, or is no parameter of it",
                where=f"{self.session}, {target}",
            )
        if not (math.isfinite(wl) and wl > 0) or (plan.primary.integer and wl != round(wl)):
            raise UsageError(
                f"cannot be loaded with {wl:g} {plan.primary.unit}".rstrip(),
                where=f"{self.session}, {target}",
                remedy="Give a whole number above 0" if plan.primary.integer else "Give more",
            )
        return plan

    def _why_over(self) -> WorkbenchError:
        outcome, note = self._outcome
        purpose, kept = self._order.started.purpose, f"{counted(len(self._taken), 'sample')} stored"
        if self.control.interrupted:
            return EngineError(f"the engine ended during the {purpose}; {kept}", where=self.session)
        if outcome == "budget":
            return BudgetSpent(f"{note}; {kept}", where=f"{purpose} of {self.session}")
        if outcome == "failed":
            failed = self.error
            return failed if isinstance(failed, WorkbenchError) else EngineError(note)
        return Stopped(f"the {purpose} was stopped; {kept}", where=self.session)

    # ------------------------------------------------------------------ the turn

    def _make_progress(self) -> ProgressReport:
        return _TrialsProgress(self)

    async def _begin(self) -> None:
        self._visits.begin()
        await self._out.record(self._order.started)
        for note in self._order.notes:
            await self._out.record(note)

    async def _measure_all(self) -> Ending:
        self._floor, self._next_block = await self._pool.run(
            _footing, self._order.samples, self._out.view.noise, self._order.campaign.sampling
        )
        while (ask := await self._asks.get()) is not None:
            ending = await self._visits.hold()
            if ending is not None:
                return ending
            self.answering = True
            await self._answer(ask)
            self.answering = False
        if self._bench.target is not None:
            await self._bench.undeploy()
        return ("stopped" if self.control.stop else "done"), ""

    async def _answer(self, ask: _Ask) -> None:
        """Measure a point, once more where the lab fails. Raises `LabError` if the lab is at fault
        and not the point."""
        target, own = ask.target, self._samples[ask.target.name]
        seen = [s.point for s in own if _same(s.point, ask)]
        repetition = max((point.repetition + 1 for point in seen), default=0)
        point = OperatingPoint(target.name, ask.configuration, ask.wl, repetition)
        near = tuple(s for s in own if s.point.configuration == ask.configuration)
        seconds = await self._pool.run(first_s, self._order.campaign, near, point)
        while True:
            try:
                sample = await self._visits.take(
                    target,
                    point,
                    self._block(target),
                    seconds,
                    self._floor,
                    self._order.started.purpose,
                )
            except LabError as error:
                if await self._visits.gives_up(point, error):
                    ask.sample.set_exception(error)
                    return
                continue
            self._visits.faults.sample_taken((target.name, ask.configuration))
            self._taken.append(sample)
            own.append(sample)
            ask.sample.set_result(sample)
            return

    def _block(self, target: Target) -> int:
        """That of what is deployed; else a new one, which no campaign that is resumed will count
        as its own."""
        if self._bench.target == target.name:
            return self._bench.block
        self._next_block += 1
        return self._next_block - 1

    async def _conclude(self, ending: Ending | None, wall_s: float) -> None:
        self._outcome = outcome, note = ending or ("aborted", "the engine ended")
        self.concluded = True
        if not self.started:
            return
        invalid = sum(not sample.valid for sample in self._taken)
        await self._out.record(
            TrialsFinished(outcome, len(self._taken), invalid, wall_s, self._bench.lab_s, note)
        )


@dataclass(frozen=True)
class _Ask:
    """A point that somebody waits for."""

    target: Target
    configuration: Configuration
    wl: float
    sample: asyncio.Future[Sample]


class _TrialsProgress(ProgressReport):
    """How many of the points are measured, and what is left at the pace so far."""

    def __init__(self, trials: Trials) -> None:
        before_s = trials._out.view.lab_s
        super().__init__(trials._out, lambda: before_s + trials.lab_s, 0.0)
        self._trials = trials

    def tally(self) -> tuple[int, int, float | None]:
        taken, points = self._trials.samples, self._trials._order.points
        if not points:
            return len(taken), points, None
        # Whoever asks may want more than he expected.
        left = max(points - len(taken), int(self._trials.answering))
        if taken:  # what is deployed stays so
            each_s = sum(s.lab_s for s in taken) / len(taken)
            return len(taken), len(taken) + left, left * each_s
        view = self._out.view
        known_s = sample_s(view)
        if known_s is None:
            return 0, points, None
        return 0, points, max(0.0, view.deployed_s - self._trials.lab_s) + left * known_s


def _same(point: OperatingPoint, ask: _Ask) -> bool:
    """Whether a stored point is the one asked for, to the digits that a sample's id has."""
    return point.configuration == ask.configuration and f"{point.wl:.6g}" == f"{ask.wl:.6g}"


# ------------------------------------------------------------------- in the worker


def _footing(
    samples: tuple[Sample, ...], noise: HostNoise | None, sampling: SamplingPlan
) -> tuple[VarianceFloor, int]:
    """The variance floor of a session, and the first block that is neither taken nor planned."""
    taken = max((sample.block + 1 for sample in samples), default=0)
    return variance_floor(samples, noise), max(taken, blocks(sampling))
