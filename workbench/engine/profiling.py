"""The loop of a run: ask, measure, store, publish, tell - one target at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.errors import LabError, PluginError
from workbench.domain.events import (
    ConfigurationFinished,
    ConfigurationStarted,
    ModelFitted,
    Noted,
    PointAsked,
    RunContinued,
    RunPaused,
    SampleTaken,
    TargetDeployed,
)
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Sample
from workbench.domain.sessions import ConfigurationOutcome, Outcome
from workbench.engine.advice import Advice
from workbench.engine.advisor import Advisor
from workbench.engine.channel import Publisher
from workbench.engine.control import Control, Place
from workbench.engine.faults import Faults
from workbench.engine.measurement import Bench
from workbench.engine.pool import Pool
from workbench.engine.progress import ProgressReport
from workbench.log import logger
from workbench.sampling.base import Ask

PAUSE_TICK_S = 1.0

Ending = tuple[Outcome, str]
"""How a run ends, and why."""

log = logger("engine.run")


@dataclass(frozen=True)
class Order:
    """What is to be run: fixed when the run is accepted."""

    campaign: Campaign
    seed: int
    samples: tuple[Sample, ...]
    """Stored already, in the order they were taken; empty for a new session."""
    resumed: bool
    budget_s: float | None
    """Lab time of the session after which no new sample is begun."""
    spent_s: float
    """Lab time of the session so far."""
    notes: tuple[Noted, ...] = ()


class Profiler:
    """Takes samples of target after target until all configurations have ended."""

    def __init__(
        self,
        order: Order,
        out: Publisher,
        pool: Pool,
        bench: Bench,
        control: Control,
        progress: ProgressReport,
    ) -> None:
        self.faults = Faults()
        self._order = order
        self._campaign = order.campaign
        self._out = out
        self._pool = pool
        self._bench = bench
        self._control = control
        self._progress = progress
        self._taken = {sample.point for sample in order.samples}
        self._begun: set[Place] = set()
        """Configurations that were announced in this run."""
        self._worker_losses = pool.losses

    async def profile(self, plan: TargetPlan) -> Ending | None:
        """Sample a target until all its configurations have ended; how the run ends, if it does.

        Raises `LabError` when the lab itself is at fault.
        """
        target = plan.target.name
        advisor = Advisor(
            self._pool,
            self._campaign,
            target,
            self._order.seed,
            (s for s in self._order.samples if s.point.target == target),
            (*self._skipped_before(target), *self._control.skipped(target)),
        )
        advice = await self._advise(advisor, self._fitted_perhaps(target))
        while (ask := advice.ask) is not None:
            ending = await self._between_samples()
            if ending is not None:
                return ending
            advisor.skip(self._control.skipped(target))
            if advisor.has_news:
                advice = await self._advise(advisor)
                continue
            point = OperatingPoint(target, ask.configuration, ask.wl, ask.repetition)
            await self._announce(point, ask)
            try:
                sample = await self._measure(plan, point, advice.first_s)
            except LabError as error:
                if await self._gives_up(point, error):
                    advisor.skip((point.configuration,))
                    advice = await self._advise(advisor)
                continue
            advisor.samples.append(sample)
            advisor.skip(self._control.skipped(target))
            self._progress.phase("fitting", point)
            advice = await self._advise(advisor, (point.configuration,))
        if self._bench.target is not None:
            await self._bench.undeploy()
        return None

    # ------------------------------------------------------------------ ask and tell

    async def _advise(self, advisor: Advisor, fit: tuple[Configuration, ...] = ()) -> Advice:
        """The sampler's advice; what it concluded is recorded."""
        advice = await advisor.advise(fit)
        if self._pool.losses > self._worker_losses:
            self._worker_losses = self._pool.losses
            await self._note("warning", "the worker process died and was replaced; nothing is lost")
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

    async def _end(self, place: Place, outcome: ConfigurationOutcome, note: str) -> None:
        """Record how a configuration ended, unless that is known."""
        view = self._out.view.configuration(f"{place[0]}/{place[1].key}")
        if place in self.faults.given_up or (view and view.state in (outcome, "unusable")):
            return
        await self._out.record(
            ConfigurationFinished(
                *place,
                outcome,
                len(view.samples) if view else 0,
                view.invalid if view else 0,
                note,
            )
        )

    async def _announce(self, point: OperatingPoint, ask: Ask) -> None:
        if point in self._taken:
            raise PluginError(
                f"the sampler {self._campaign.sampling.method!r} asked twice for one point",
                where=f"{point.target} {point.configuration.key} wl={point.wl:g}",
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

    async def _measure(self, plan: TargetPlan, point: OperatingPoint, first_s: float) -> Sample:
        if self._bench.target != point.target:
            self._pool.warm()  # what the first fit needs is imported while the lab deploys
            before_s = self._bench.lab_s
            deployment = await self._bench.deploy(plan.target, point.configuration)
            await self._out.record(
                TargetDeployed(
                    point.target,
                    deployment.generator,
                    deployment.keep_alive,
                    deployment.path,
                    self._bench.lab_s - before_s,
                )
            )
            for warning in deployment.warnings:
                await self._note("warning", warning)
        measurement = await self._bench.measure(point, first_s)
        self._progress.spent_s = self._order.spent_s + self._bench.lab_s
        await self._out.record(SampleTaken(measurement.sample), measurement)
        self._taken.add(point)
        for fault in self.faults.sample_taken():
            await self._end(fault.place, "unusable", fault.note)
        return measurement.sample

    async def _gives_up(self, point: OperatingPoint, error: LabError) -> bool:
        """Note a lab error. True if the configuration is given up; raises if the lab is."""
        place = (point.target, point.configuration)
        where = f"{point.target} {point.configuration.key}"
        log.warning("lab error", session=self._out.view.session, point=where, exc_info=error)
        verdict = self.faults.blame(place, error)
        if verdict == "lab":
            raise error
        try:
            await self._bench.undeploy()
        except LabError as stuck:
            log.warning("target was not removed", point=where, exc_info=stuck)
        if verdict == "once more":
            await self._note(
                "warning", f"{error} {where} is deployed again and wl={point.wl:g} tried once more."
            )
            return False
        await self._note("error", f"{error} {where} is given up.")
        return True

    # ------------------------------------------------------------------ what users want

    async def _between_samples(self) -> Ending | None:
        """Hold while paused; say whether the run must end before the next sample."""
        control = self._control
        if control.on_hold():
            await self._out.record(RunPaused(control.paused_by or ""))
            while control.on_hold():
                self._progress.phase("paused", None)
                await control.rung(PAUSE_TICK_S)
            if not control.ending:
                await self._out.record(RunContinued(control.continued_by))
        if control.stop:
            return "stopped", ""
        spent, budget = self._order.spent_s + self._bench.lab_s, self._order.budget_s
        if budget is not None and spent >= budget:
            return "budget", f"{spent:.0f} s of lab time spent of {budget:.0f} s"
        return None

    async def _note(self, level: Literal["info", "warning", "error"], text: str) -> None:
        await self._out.record(Noted(level, text))

    # ------------------------------------------------------------------ what is stored already

    def _skipped_before(self, target: str) -> tuple[Configuration, ...]:
        """Configurations that the user skipped before the run was resumed."""
        return tuple(
            c.configuration
            for c in self._out.view.configurations
            if c.target == target and c.state == "skipped"
        )

    def _fitted_perhaps(self, target: str) -> tuple[Configuration, ...]:
        """The configuration of the last stored sample: its fit may not have been stored."""
        last = self._order.samples[-1:]
        return tuple(s.point.configuration for s in last if s.point.target == target)
