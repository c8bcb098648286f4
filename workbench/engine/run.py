"""One campaign on one lab, from its place in the queue to `RunFinished`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.errors import LabError, PluginError, WorkbenchError
from workbench.domain.events import (
    ConfigurationFinished,
    ConfigurationStarted,
    Fact,
    ModelFitted,
    Noted,
    PointAsked,
    RunContinued,
    RunPaused,
    RunStarted,
    SampleTaken,
    TargetDeployed,
    UsageTick,
)
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Sample, Usage
from workbench.domain.sessions import ConfigurationOutcome, Outcome
from workbench.engine.advice import Advice
from workbench.engine.advisor import Advisor
from workbench.engine.channel import Publisher
from workbench.engine.control import Control, Place
from workbench.engine.host_lock import FileLock, Holder
from workbench.engine.measurement import Bench
from workbench.engine.pool import Pool
from workbench.engine.progress import ProgressReport
from workbench.engine.verdict import finished, unfinished
from workbench.labs.base import Lab
from workbench.log import logger

GIVE_UP_AFTER = 3
"""Lab errors in a row, without one sample between them, after which the lab itself is blamed."""
STRIKES = 2
"""Lab errors after which a configuration is given up."""
TICK_S = 1.0

Ending = tuple[Outcome, str]

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
    """Lab time of the session at which no new sample is begun."""
    spent_s: float
    """Lab time of the session so far."""
    notes: tuple[Noted, ...] = ()


class Run:
    """Asks, measures, stores, publishes, tells, until all configurations have ended."""

    def __init__(
        self,
        order: Order,
        lab: Lab,
        publisher: Publisher,
        pool: Pool,
        slot: asyncio.Lock,
        host_lock: FileLock | None,
        holder: Holder,
    ) -> None:
        self.order = order
        self.session = holder.session
        self.control = Control()
        self.progress = ProgressReport(order.campaign, lab.costs, publisher, order.spent_s)
        self.started = False
        self.concluded = False
        """Its end is announced."""
        self._campaign = order.campaign
        self._lab = lab
        self._out = publisher
        self._pool = pool
        self._slot = slot
        self._host_lock = host_lock
        self._holder = holder
        self._bench = Bench(lab, order.campaign, pool, self._on_phase, self._on_usage)
        self._taken = {sample.point for sample in order.samples}
        self._begun: set[str] = set()
        """Keys of configurations that were announced in this run."""
        self._given_up: dict[str, tuple[str, Configuration, str]] = {}
        """Configurations whose last word was a lab error, until a sample clears the lab itself."""
        self._strikes: dict[str, int] = {}
        self._errors_in_a_row = 0
        self._work: asyncio.Task[Ending] | None = None

    # ------------------------------------------------------------------ from outside

    def knows(self, place: Place) -> bool:
        """Whether the campaign holds that configuration."""
        target, configuration = place
        return any(
            plan.target.name == target and configuration in self._campaign.configurations(plan)
            for plan in self._campaign.targets
        )

    async def record(self, fact: Fact) -> None:
        await self._out.record(fact)

    def stop(self) -> None:
        """End after the sample that is being measured; at once where none is."""
        self.control.stop = True
        self.control.ring()
        if not self.started:
            self._cancel()

    def abort(self) -> None:
        """End at once; the sample that is being measured is lost."""
        self.control.abort = True
        self._cancel()

    def interrupt(self) -> None:
        """End at once because the engine ends; nothing is concluded."""
        self.control.interrupted = True
        self._cancel()

    def _cancel(self) -> None:
        self.control.ring()
        if self._work is not None:
            self._work.cancel()

    # ------------------------------------------------------------------ the frame

    async def execute(self) -> None:
        """Wait for the turn, work, tear down, conclude. Raises nothing but cancellation."""
        begin = time.monotonic()
        async with AsyncExitStack() as turn:
            ending = await self._concluded(turn)
            await self._close_lab()
            try:
                if ending is None:
                    text = "the engine ended in mid-run; `workbench resume` goes on where it stood"
                    await self._out.record(Noted("warning", text))
                    return
                outcome, note = ending
                for left in self._leftovers(outcome, note):
                    await self._out.record(left)
                lab_s = self.order.spent_s + self._bench.lab_s
                wall_s = time.monotonic() - begin
                view, campaign = self._out.view, self._campaign
                fact = finished(view, campaign, outcome, note, wall_s, lab_s)
                self.concluded = True
                await self._out.record(fact)
            except WorkbenchError as error:
                # What is stored stays stored; the session reads as interrupted.
                log.error("the run's end cannot be stored", session=self.session, error=str(error))

    async def _concluded(self, turn: AsyncExitStack) -> Ending | None:
        """How the work ended; None if the engine is ending."""
        if self.control.ending:
            return ("aborted" if self.control.abort else "stopped", "before it began")
        self._work = asyncio.create_task(self._from_queue_to_end(turn), name=f"run {self.session}")
        try:
            return await self._work
        except asyncio.CancelledError:
            if self.control.abort:
                return "aborted", ""
            return ("stopped", "before it began") if self.control.stop else None
        except WorkbenchError as error:
            log.error("run failed", session=self.session, error=str(error), exc_info=error)
            return "failed", str(error)
        except Exception as error:  # a bug or a plugin: the engine outlives it
            log.error("run failed", session=self.session, exc_info=error)
            return "failed", f"Unexpected {type(error).__name__}: {error}. See the log."

    async def _from_queue_to_end(self, turn: AsyncExitStack) -> Ending:
        waiting = asyncio.create_task(self._say_queued())
        try:
            await turn.enter_async_context(self._slot)
            if self._host_lock is not None:
                await turn.enter_async_context(self._host_lock.queue(self._holder))
        finally:
            waiting.cancel()
        if self.control.stop:
            return "stopped", "before it began"
        self.started = True
        await self._out.record(RunStarted(self.order.resumed, self.order.budget_s))
        for note in self.order.notes:
            await self._out.record(note)
        for plan in self._campaign.targets:
            ending = await self._profile(plan)
            if ending is not None:
                return ending
        if self._given_up:
            return "failed", "; ".join(text for _, _, text in self._given_up.values())
        return "done", ""

    async def _close_lab(self) -> None:
        try:
            await self._lab.close()
        except Exception as error:  # a lab promises not to raise here, a plugin may still do so
            log.error("lab did not close", session=self.session, exc_info=error)

    # ------------------------------------------------------------------ one target

    async def _profile(self, plan: TargetPlan) -> Ending | None:
        """Sample a target until all its configurations have ended; how the run ends, if it does."""
        name = plan.target.name
        advisor = Advisor(
            self._pool,
            self._campaign,
            name,
            self.order.seed,
            (s for s in self.order.samples if s.point.target == name),
            self._skipped_before(name),
        )
        advice = await self._advise(advisor, self._fit_again(name))
        while (ask := advice.ask) is not None:
            ending = await self._between_samples()
            if ending is not None:
                return ending
            advisor.skip(self.control.skipped(name))
            if advisor.has_news:
                advice = await self._advise(advisor)
                continue
            point = OperatingPoint(name, ask.configuration, ask.wl, ask.repetition)
            if point in self._taken:
                raise PluginError(
                    f"the sampler {self._campaign.sampling.method!r} asked twice for one point",
                    where=f"{name} {ask.configuration.key} wl={ask.wl:g}",
                )
            await self._announce(point, advice)
            try:
                sample = await self._measure(plan, point, advice.first_s)
            except LabError as error:
                if await self._lab_failed(point, error):
                    advisor.skip((point.configuration,))
                    advice = await self._advise(advisor)
                continue
            advisor.samples.append(sample)
            advisor.skip(self.control.skipped(name))
            self.progress.phase("fitting", point)
            advice = await self._advise(advisor, (point.configuration,))
        if self._bench.target is not None:
            await self._bench.undeploy()
        return None

    async def _announce(self, point: OperatingPoint, advice: Advice) -> None:
        place = (point.target, point.configuration)
        key = f"{point.target}/{point.configuration.key}"
        self.control.measuring = place
        if key not in self._begun:
            self._begun.add(key)
            await self._out.record(ConfigurationStarted(*place))
        ask = advice.ask
        assert ask is not None
        await self._out.record(
            PointAsked(*place, ask.wl, ask.repetition, ask.low, ask.high, ask.why)
        )

    async def _measure(self, plan: TargetPlan, point: OperatingPoint, first_s: float) -> Sample:
        if self._bench.target != point.target:
            self._pool.warm()
            deployment = await self._bench.deploy(plan.target, point.configuration)
            await self._out.record(
                TargetDeployed(
                    point.target, deployment.generator, deployment.keep_alive, deployment.path
                )
            )
            for warning in deployment.warnings:
                await self._out.record(Noted("warning", warning))
        measurement = await self._bench.measure(point, first_s)
        self.progress.spent_s = self.order.spent_s + self._bench.lab_s
        await self._out.record(SampleTaken(measurement.sample), measurement)
        self._taken.add(point)
        self._errors_in_a_row = 0
        await self._give_up_for_good()
        return measurement.sample

    async def _advise(self, advisor: Advisor, fit: tuple[Configuration, ...] = ()) -> Advice:
        """The sampler's advice; what it concluded is recorded."""
        advice = await advisor.advise(fit)
        for fitted in advice.fits:
            target = advisor.target
            await self._out.record(
                ModelFitted(
                    target,
                    fitted.configuration,
                    fitted.curve,
                    fitted.breakpoints,
                    fitted.model,
                    fitted.cpu_s,
                )
            )
            if fitted.trouble:
                text = f"{target} {fitted.configuration.key}: no fit: {fitted.trouble}"
                await self._out.record(Noted("warning", text))
        for configuration, ended in advice.endings.items():
            await self._end(advisor.target, configuration, ended.outcome, ended.note)
        return advice

    async def _end(
        self, target: str, configuration: Configuration, outcome: ConfigurationOutcome, note: str
    ) -> None:
        key = f"{target}/{configuration.key}"
        view = self._out.view.configuration(key)
        if key in self._given_up or (view is not None and view.state in (outcome, "unusable")):
            return
        await self._out.record(
            ConfigurationFinished(
                target,
                configuration,
                outcome,
                len(view.samples) if view else 0,
                view.invalid if view else 0,
                note,
            )
        )

    # ------------------------------------------------------------------ what users want

    async def _between_samples(self) -> Ending | None:
        """Hold while paused; say whether the run must end before the next sample."""
        control = self.control
        if control.paused_by is not None and not control.ending:
            await self._out.record(RunPaused(control.paused_by))
            while control.paused_by is not None and not control.ending:
                self.progress.phase("paused", None)
                await control.rung(TICK_S)
            if not control.ending:
                await self._out.record(RunContinued(control.continued_by))
        if control.stop:
            return "stopped", ""
        spent = self.order.spent_s + self._bench.lab_s
        if self.order.budget_s is not None and spent >= self.order.budget_s:
            return "budget", f"{spent:.0f} s of lab time spent of {self.order.budget_s:.0f} s"
        return None

    async def _say_queued(self) -> None:
        while True:
            self.progress.phase("queued", None)
            await asyncio.sleep(TICK_S)

    # ------------------------------------------------------------------ what labs do

    async def _lab_failed(self, point: OperatingPoint, error: LabError) -> bool:
        """Note a lab error. True if the configuration is given up; raises if the lab is."""
        key = f"{point.target}/{point.configuration.key}"
        log.warning("lab error", session=self.session, point=key, wl=point.wl, exc_info=error)
        self._errors_in_a_row += 1
        self._strikes[key] = self._strikes.get(key, 0) + 1
        if self._errors_in_a_row >= GIVE_UP_AFTER:
            self._given_up.clear()  # the lab's fault, not theirs
            raise error
        try:
            await self._bench.undeploy()
        except LabError as stuck:
            log.warning("target was not removed", session=self.session, exc_info=stuck)
        if self._strikes[key] < STRIKES:
            text = f"{error} {point.target} is deployed again and wl={point.wl:g} tried once more."
            await self._out.record(Noted("warning", text))
            return False
        self._given_up[key] = (point.target, point.configuration, str(error))
        await self._out.record(Noted("error", f"{error} {key} is given up."))
        return True

    async def _give_up_for_good(self) -> None:
        """A sample was taken since: the lab works, so the fault was the configuration's."""
        given_up, self._given_up = self._given_up, {}
        for target, configuration, note in given_up.values():
            await self._end(target, configuration, "unusable", note)

    def _on_phase(self, phase: str, point: OperatingPoint | None) -> None:
        self.progress.spent_s = self.order.spent_s + self._bench.lab_s
        self.progress.phase(phase, point)

    def _on_usage(self, usage: Mapping[str, Usage]) -> None:
        self._out.tick(UsageTick(self.session, time.time(), usage))
        self.progress.again()

    # ------------------------------------------------------------------ what is stored already

    def _skipped_before(self, target: str) -> tuple[Configuration, ...]:
        """Configurations that the user skipped before the run was resumed, or while it queued."""
        stored = (
            c.configuration
            for c in self._out.view.configurations
            if c.target == target and c.state == "skipped"
        )
        return (*stored, *self.control.skipped(target))

    def _fit_again(self, target: str) -> tuple[Configuration, ...]:
        """The configuration of the last stored sample: its fit may not have been stored."""
        last = self.order.samples[-1:]
        return tuple(s.point.configuration for s in last if s.point.target == target)

    def _leftovers(self, outcome: Outcome, note: str) -> list[ConfigurationFinished]:
        """The ends of configurations that the run leaves unfinished."""
        given_up = {key: text for key, (_, _, text) in self._given_up.items()}
        return unfinished(self._out.view, outcome, note, given_up)
