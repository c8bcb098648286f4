"""One visit to an operating point after the other, whoever chooses them: a sampler, or a user."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

from workbench.domain.durations import duration
from workbench.domain.errors import LabError, LabGone, LabStopped
from workbench.domain.events import (
    BypassMeasured,
    LogWritten,
    Noted,
    RunContinued,
    RunPaused,
    SampleTaken,
    TargetDeployed,
)
from workbench.domain.lab import EMULATED, HostFacts
from workbench.domain.parameters import OperatingPoint
from workbench.domain.samples import Purpose, Sample
from workbench.domain.sessions import Outcome
from workbench.domain.topology import Target
from workbench.engine.learning.pool import Pool
from workbench.engine.runs.budget import Budget
from workbench.engine.runs.busy_host import BusyHost
from workbench.engine.runs.control import Control
from workbench.engine.runs.faults import Faults
from workbench.engine.runs.lab_away import LabAway
from workbench.engine.runs.measurement import LabDriver
from workbench.engine.runs.progress import ProgressReport
from workbench.engine.runs.stolen_cpu import StolenCpu
from workbench.engine.sessions.channel import Publisher
from workbench.log import logger
from workbench.measuring.floor import VarianceFloor

PAUSE_TICK_S = 1.0
MOST_WARNED = 100
"""Different sentences of one run."""
NO_BYPASS = "this lab has no path past the functions: no sample is checked against a bypass"

Ending = tuple[Outcome, str]
"""How a run ends, and why."""

log = logger("engine.run")


@dataclass(frozen=True)
class SampleRunnerParts:
    """What visits work with.

    Attributes
    ----------
    out : where everything that happens is recorded.
    control : what users want of the turn.
    on_host : it measures on this host, so that one that others keep busy is waited for.
    """

    out: Publisher
    pool: Pool
    bench: LabDriver
    control: Control
    progress: ProgressReport
    on_host: bool = False


class SampleRunner:
    """Deploys what is to be measured, measures and stores; knows when to stop.

    Parameters
    ----------
    budget : what it may take.
    """

    def __init__(self, parts: SampleRunnerParts, budget: Budget) -> None:
        self.faults = Faults()
        self._out = parts.out
        self._pool = parts.pool
        self._bench = parts.bench
        self._control = parts.control
        self._progress = parts.progress
        self._budget = budget
        self._on_host = parts.on_host
        self.busy_host = BusyHost(parts.control, self._waiting, self._warn)
        self._stolen_cpu = StolenCpu(self._warn)
        self._lab_away = LabAway(parts.control, self._waiting, self._warn)
        self.waited_in_vain_s = 0.0
        """How long it waited for a host that stayed busy until the end."""
        self._warned: set[str] = set()
        """What was said of deployments already."""

    async def take(
        self,
        target: Target,
        point: OperatingPoint,
        block: int,
        first_s: float,
        floor: VarianceFloor,
        purpose: Purpose = "profile",
    ) -> Sample:
        """Measure a point and store the sample, valid or not. Raises `LabError`."""
        if (self._bench.target, self._bench.block) != (target.name, block):
            await self._deploy(target, point, block)
        if self._bench.lacks_bypass(point):
            await self._measure_bypass(point)
        self._stolen_cpu.begin()
        measurement = await self._bench.measure(point, first_s, floor)
        self._lab_away.answered()
        sample = _taken_for(_marked(measurement.sample, self._out.view.host), purpose)
        self._progress.samples_s += sample.lab_s
        self.busy_host.taken(sample)
        if self._on_host:
            await self._stolen_cpu.taken()
        await self._out.record(SampleTaken(sample), replace(measurement, sample=sample))
        await self._keep_logs(target.name, sample.id)
        await self._tell_of_site(sample)
        return sample

    async def _tell_of_site(self, sample: Sample) -> None:
        """What the site's metrics lacked, the first time that it is so."""
        for remark in sample.remarks:
            if remark.label == "site_metric" and remark.evidence not in self._warned:
                if len(self._warned) < MOST_WARNED:
                    await self.note(
                        "warning", f"{remark.evidence[:1].upper()}{remark.evidence[1:]}."
                    )
                self._warned.add(remark.evidence)

    async def _keep_logs(self, target: str, sample: str = "") -> bool:
        """Store what the target wrote, before anything removes it; whether it wrote anything."""
        written = await self._bench.written()
        for log_of_component in written:
            await self._out.record(LogWritten(target, log_of_component, sample))
        return bool(written)

    async def _deploy(self, target: Target, point: OperatingPoint, block: int) -> None:
        """Bring the target up anew: every block is a start of its own."""
        self._pool.warm()  # what the first fit needs is imported while the lab deploys
        before_s = self._bench.lab_s
        deployment = await self._bench.deploy(target, point.configuration, block)
        await self._out.record(
            TargetDeployed(
                point.target,
                deployment.generator,
                deployment.keep_alive,
                deployment.path,
                self._bench.lab_s - before_s,
                block,
            )
        )
        for warning in deployment.warnings:
            if warning not in self._warned:  # each block is a deployment like the one before
                self._warned.add(warning)
                await self.note("warning", warning)
        await self._keep_logs(target.name)

    async def _measure_bypass(self, point: OperatingPoint) -> None:
        """What source and sink carry on their own; a campaign goes on without, if it must."""
        before_s = self._bench.lab_s
        try:
            curve = await self._bench.measure_bypass(point)
        except (LabGone, LabStopped):
            raise
        except LabError as error:
            log.warning("no bypass", session=self._out.view.session, exc_info=error)
            where = f"{point.target} {point.configuration.key}"
            await self.note(
                "warning", f"{error} Samples of {where} are not checked against a bypass."
            )
            return
        if curve is not None:
            await self._out.record(BypassMeasured(curve, self._bench.lab_s - before_s))
            if busy := next((p for p in curve.points if p.busy_host), None):
                await self.note(
                    "warning",
                    f"The bypass was limited by a busy host twice at {busy.wl:g} "
                    f"({busy.limited_by}): what source and sink carry there is not known, and no "
                    "sample is called `bypass_limited` for it. Free the host of other work.",
                )
        elif all(line.text != NO_BYPASS for line in self._out.view.log):
            await self.note("info", NO_BYPASS)

    async def gives_up(self, point: OperatingPoint, error: LabError) -> bool:
        """Note a lab error. True if the configuration is given up; raises if the lab is.

        A lab that is gone is waited for, and no configuration given up for that.
        """
        place = (point.target, point.configuration)
        where = f"{point.target} {point.configuration.key}"
        log.warning("lab error", session=self._out.view.session, point=where, exc_info=error)
        if isinstance(error, LabGone) and self._lab_away.excused:
            await self._wait_for_lab(error)
            return False
        if await self._keep_logs(point.target):
            session = self._out.view.session
            rest = f"read what was written until then (workbench show {session} --logs)"
            error.remedy = f"{error.remedy}; {rest}" if error.remedy else rest.capitalize()
        gone = await self._undeploy(where)
        if isinstance(error, LabStopped):
            raise error
        if gone is not None:  # what failed went down with the lab
            await self._wait_for_lab(gone)
            return False
        verdict = self.faults.blame(place, error)
        if verdict == "lab":
            raise error
        if verdict == "once more":
            await self.note(
                "warning", f"{error} {where} is deployed again and {point.wl:g} tried once more."
            )
            return False
        await self.note("error", f"{error} {where} is given up.")
        return True

    async def _undeploy(self, where: str) -> LabGone | None:
        """Remove the target as far as that is possible; what the lab said if it is gone."""
        try:
            await self._bench.undeploy()
        except LabGone as gone:
            return gone
        except LabError as stuck:
            log.warning("target was not removed", point=where, exc_info=stuck)
        return None

    async def _wait_for_lab(self, error: LabGone) -> None:
        async def speak() -> None:
            if gone := await self._undeploy("the target"):
                raise gone

        await self._lab_away.wait(error, speak, lambda: self._budget.left_s)

    def begin(self) -> None:
        """The turn has come: its time counts from now."""
        self._budget.begin()

    async def hold(self, foreseen_s: float = 0.0) -> Ending | None:
        """Between samples: hold while paused or while others keep the host busy; say whether the
        end has come before the next one.

        Parameters
        ----------
        foreseen_s : what the next one is to take. Where the budget does not reach for it, the end
            has come; a sample that settles late may still exceed it, by its time-out at most.
        """
        budget = self._budget
        while True:
            if self._control.on_hold():
                await self._pause()
            if self._control.stop:
                return "stopped", ""
            if budget.left_s is not None and foreseen_s > budget.left_s:
                return "budget", _spent_of(budget, foreseen_s)
            if not self._on_host:
                return None
            if not await self.busy_host.until_quiet(lambda: _left_after(budget, foreseen_s)):
                self.waited_in_vain_s = self.busy_host.waited_s
                return "budget", _too_busy(self._out.view.session, self.busy_host)
            if not (self._control.on_hold() or self._control.stop):
                return None

    async def _pause(self) -> None:
        control, begin = self._control, time.monotonic()
        control.holds = True
        try:
            await self._out.record(RunPaused(control.paused_by or ""))
            while control.on_hold():
                self._progress.phase("paused", None)
                await control.rung(PAUSE_TICK_S)
            self._budget.paused(time.monotonic() - begin)
            if not control.ending:
                await self._out.record(RunContinued(control.continued_by))
        finally:
            control.holds = False

    def _waiting(self, note: str) -> None:
        self._progress.phase("waiting", None, note)

    async def _warn(self, text: str) -> None:
        await self.note("warning", text)

    async def note(self, level: Literal["info", "warning", "error"], text: str) -> None:
        await self._out.record(Noted(level, text))


def _left_after(budget: Budget, foreseen_s: float) -> float | None:
    return None if budget.left_s is None else budget.left_s - foreseen_s


def _spent_of(budget: Budget, foreseen_s: float) -> str:
    total_s = budget.total_s or 0.0
    said = f"{duration(budget.spent_s)} spent of {duration(total_s)}"
    if budget.spent_s >= total_s or not foreseen_s:
        return said
    return f"{said}; the next sample would take about {duration(foreseen_s)}"


def _too_busy(session: str, host: BusyHost) -> str:
    return (
        f"others kept this host busy; the run waited {duration(host.waited_s)} in vain. "
        f"{host.seen}. End that, or wait for it; `workbench resume {session}` goes on"
    )


def _marked(sample: Sample, host: HostFacts | None) -> Sample:
    """The sample, labelled where it was measured on an emulated CPU."""
    if host is None or not host.is_emulated or EMULATED in sample.labels:
        return sample
    return replace(sample, labels=(*sample.labels, EMULATED))


def _taken_for(sample: Sample, purpose: Purpose) -> Sample:
    """The sample with its purpose; what a lab recalls was perhaps taken for another.

    A campaign that is resumed may ask for the very point of a trial, so ids differ.
    """
    if sample.purpose == purpose == "profile":
        return sample
    plain = sample.id.removesuffix(f"/{sample.purpose}")
    id = plain if purpose == "profile" else f"{plain}/{purpose}"
    return replace(sample, id=id, purpose=purpose)
