"""The loop of a run: ask, measure, store, publish, tell - one target at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import chain

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.errors import LabError, PluginError
from workbench.domain.events import (
    ConfigurationFinished,
    ConfigurationStarted,
    ModelFitted,
    Noted,
    PointAsked,
)
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.sample_review import in_force
from workbench.domain.samples import Sample
from workbench.domain.sessions import ConfigurationOutcome
from workbench.engine.learning.sampler_client import SamplerCase, SamplerClient
from workbench.engine.learning.sampler_worker import Advice, first_s
from workbench.engine.runs.budget import Budget
from workbench.engine.runs.control import Place
from workbench.engine.runs.planning import blocks, bypasses_s
from workbench.engine.runs.sample_runner import Ending, SampleRunner, SampleRunnerParts
from workbench.measuring.floor import VarianceFloor
from workbench.sampling.base import Ask

MOST_FITS = 16
"""At once: so many take seconds, and a worker that hangs is waited for."""


@dataclass(frozen=True)
class RunOrder:
    """What is to be run: fixed when the run is accepted."""

    campaign: Campaign
    seed: int
    samples: tuple[Sample, ...]
    """The campaign's own that are stored already, in the order they were taken; empty for a new
    session."""
    resumed: bool
    budget_s: float | None
    """After which no new sample is begun (`Budget`), of all runs together."""
    spent_s: float
    """Of the budget, in earlier runs."""
    lab_s: float
    """Lab time of the session so far, without its trials."""
    notes: tuple[Noted, ...] = ()
    trials_s: float = 0.0
    """Lab time of its trials."""


class Profiler:
    """Takes samples of target after target until all configurations have ended."""

    def __init__(self, order: RunOrder, parts: SampleRunnerParts) -> None:
        budget = Budget(
            order.budget_s,
            order.spent_s,
            lambda: parts.bench.lab_s,
            by_clock=parts.on_host,
            extended=lambda: parts.out.view.budget_s,
        )
        self.visits = SampleRunner(parts, budget)
        self.begin = self.visits.begin
        self.faults = self.visits.faults
        self._note = self.visits.note
        self._order = order
        self._campaign = order.campaign
        self._out = parts.out
        self._pool = parts.pool
        self._bench = parts.bench
        self._control = parts.control
        self._progress = parts.progress
        self._taken = {sample.point for sample in order.samples}
        self._samples: dict[str, list[Sample]] = defaultdict(list)
        """Of the whole session, by target."""
        for sample in order.samples:
            self._samples[sample.point.target].append(sample)
        self._refused: set[OperatingPoint] = set()
        """Points whose configuration was given up."""
        self._begun: set[Place] = set()
        """Configurations that were announced in this run."""
        self._worker_losses = parts.pool.losses
        self._asides: set[str] = set()
        """What was said already of plugins that were set aside."""

    async def profile(self, plan: TargetPlan) -> Ending | None:
        """Sample a target until all its configurations have ended; how the run ends, if it does.

        Raises `LabError` when the lab itself is at fault.
        """
        target = plan.target.name
        others = (own for name, own in self._samples.items() if name != target)
        case = SamplerCase(
            self._campaign,
            target,
            self._order.seed,
            self._bench.lab.costs,
            tuple(chain.from_iterable(others)),
            self._out.view.noise,
            self._bench.loads(target),
        )
        advisor = SamplerClient(
            self._pool,
            case,
            [in_force(sample, self._out.view.decisions) for sample in self._samples[target]],
            (*self._skipped_before(target), *self._control.skipped(target)),
        )
        unfitted = dict.fromkeys(self._fitted_perhaps(target))
        advice = await self._advise(advisor, self._due(unfitted, ()))
        while (ask := await self._next(target, advice)) is not None:
            ending = await self.visits.hold(self._foreseen_s(plan, ask, advice))
            if ending is not None:
                await self._fit_rest(advisor, unfitted)
                return ending
            advisor.skip(self._control.skipped(target))
            if self._control.revised:
                self._control.revised = False
                if advisor.revise(self._out.view.decisions):  # whoever decided has it fitted anew
                    advice = await self._advise(advisor)
                    continue
            if advisor.has_news:
                advice = await self._advise(advisor)
                continue
            point = OperatingPoint(target, ask.configuration, ask.wl, ask.repetition)
            await self._announce(point, ask)
            try:
                own = ask is advice.ask
                seconds = advice.first_s if own else await self._first_s(advisor, point)
                sample = await self._measure(plan, point, ask.block, seconds, advice.floor)
            except LabError as error:
                if await self.visits.gives_up(point, error):
                    self._refused.add(point)
                    advisor.skip((point.configuration,))
                    advice = await self._advise(advisor)
                continue
            advisor.samples.append(sample)
            self._samples[target].append(sample)
            advisor.skip(self._control.skipped(target))
            self._progress.phase("fitting", point)
            unfitted[point.configuration] = None
            advice = await self._advise(advisor, self._due(unfitted, advice.endings))
        await self._fit_rest(advisor, unfitted)
        if self._bench.target is not None:
            await self._bench.undeploy()
        return None

    def requests(self, target: str) -> bool:
        """Whether somebody waits for a point of that target."""
        return self._requested(target) is not None

    async def _next(self, target: str, advice: Advice) -> Ask | None:
        """What is measured next; None: nothing."""
        wanted = self._requested(target)
        if wanted is None:
            return advice.ask
        if advice.ask is None and self._bench.target != target:
            # Whoever else measured under the last number did so on another deployment.
            planned = await self._pool.run(blocks, self._campaign.sampling)
            return replace(wanted, block=self._unused_block(target, planned))
        return wanted

    def _unused_block(self, target: str, planned: int) -> int:
        """The first block that is neither taken nor one of those that the sampler plans."""
        return max([planned, *(sample.block + 1 for sample in self._samples[target])])

    def _requested(self, target: str) -> Ask | None:
        """A point that somebody asked for goes before those of the sampler; on what is deployed."""
        for wanted in self._out.view.requested:
            if wanted.target != target or wanted.point in self._taken | self._refused:
                continue
            block = max((sample.block for sample in self._samples[target]), default=0)
            if self._bench.target == target:
                block = max(block, self._bench.block)
            why = f"requested by {wanted.by}" if wanted.by else "requested"
            wl = wanted.wl
            return Ask(wanted.configuration, wl, wanted.repetition, wl, wl, why, block)
        return None

    # ------------------------------------------------------------------ ask and tell

    async def _advise(self, advisor: SamplerClient, fit: tuple[Configuration, ...] = ()) -> Advice:
        """The sampler's advice; what it concluded is recorded."""
        advice = await advisor.advise(fit)
        if self._pool.losses > self._worker_losses:
            self._worker_losses = self._pool.losses
            await self._note("warning", "the worker process died and was replaced; nothing is lost")
        asides = (advisor.distrusted, *advice.set_aside, *(f.set_aside for f in advice.fits))
        for aside in asides:
            if aside and aside not in self._asides:
                self._asides.add(aside)
                await self._note("warning", f"{advisor.target}: {aside}")
        for fitted in advice.fits:
            await self._out.record(
                ModelFitted(
                    advisor.target,
                    fitted.configuration,
                    fitted.curve,
                    fitted.breakpoints,
                    fitted.model,
                    fitted.cpu_s,
                )
            )
            if fitted.trouble:
                key = f"{advisor.target} {fitted.configuration.key}"
                await self._note("warning", f"{key} cannot be fitted: {fitted.trouble}")
        for configuration, ended in advice.endings.items():
            await self._end((advisor.target, configuration), ended.outcome, ended.note)
        return advice

    def _due(
        self, unfitted: dict[Configuration, None], ended: Collection[Configuration]
    ) -> tuple[Configuration, ...]:
        """Which of the unfitted are fitted now, and taken from them.

        Between samples that take seconds every one is: who watches sees what it changed. Samples
        that are only read would wait for it, so there a configuration is fitted when it has ended.
        """
        due = [c for c in unfitted if not self._bench.recalls or c in ended][:MOST_FITS]
        for configuration in due:
            del unfitted[configuration]
        return tuple(due)

    async def _fit_rest(self, advisor: SamplerClient, unfitted: dict[Configuration, None]) -> None:
        while due := self._due(unfitted, tuple(unfitted)):
            await self._advise(advisor, due)

    async def _end(self, place: Place, outcome: ConfigurationOutcome, note: str) -> None:
        """Record how a configuration ended, unless that is known."""
        view = self._out.view.configuration(f"{place[0]}/{place[1].key}")
        if place in self.faults.given_up or (view and view.state in (outcome, "unusable")):
            return
        await self._out.record(
            ConfigurationFinished(
                *place,
                outcome,
                view.taken if view else 0,
                view.invalid if view else 0,
                note,
            )
        )

    async def _announce(self, point: OperatingPoint, ask: Ask) -> None:
        if point in self._taken:
            raise PluginError(
                f"the sampler {self._campaign.sampling.method!r} asked twice for one point",
                where=f"{point.target} {point.configuration.key} at {point.wl:g}",
            )
        place = (point.target, point.configuration)
        self._control.measuring = place
        if place not in self._begun:
            self._begun.add(place)
            await self._out.record(ConfigurationStarted(*place))
        await self._out.record(
            PointAsked(*place, ask.wl, ask.repetition, ask.low, ask.high, ask.why)
        )

    # ------------------------------------------------------------------ measure

    async def _measure(
        self,
        plan: TargetPlan,
        point: OperatingPoint,
        block: int,
        seconds: float,
        floor: VarianceFloor,
    ) -> Sample:
        sample = await self.visits.take(plan.target, point, block, seconds, floor)
        self._taken.add(point)
        for fault in self.faults.sample_taken((point.target, point.configuration)):
            await self._end(fault.place, "unusable", fault.note)
        return sample

    def _foreseen_s(self, plan: TargetPlan, ask: Ask, advice: Advice) -> float:
        """What the next sample is to take, with the deployment and bypass that it may need."""
        costs = self._bench.lab.costs
        seconds = costs.drive_overhead_s + advice.first_s  # also about that of a requested point
        if (self._bench.target, self._bench.block) != (plan.target.name, ask.block):
            seconds += costs.deploy_s
            if not self._out.view.bypasses:
                seconds += bypasses_s(self._campaign, self._out.view.lab, costs)
        return seconds

    async def _first_s(self, advisor: SamplerClient, point: OperatingPoint) -> float:
        """Seconds of the first drive at a point that the sampler did not ask for."""
        return await self._pool.run(first_s, self._campaign, tuple(advisor.samples), point)

    # ------------------------------------------------------------------ what is stored already

    def _skipped_before(self, target: str) -> tuple[Configuration, ...]:
        """Configurations that the user skipped before the run was resumed."""
        return tuple(
            c.configuration
            for c in self._out.view.configurations
            if c.target == target and c.state == "skipped"
        )

    def _fitted_perhaps(self, target: str) -> tuple[Configuration, ...]:
        """Configurations of stored samples whose last fit may not have been stored."""
        last = self._order.samples if self._bench.recalls else self._order.samples[-1:]
        return tuple(s.point.configuration for s in last if s.point.target == target)
