"""One turn at the lab: from its place in the queue until all is torn down and concluded."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from workbench.domain.campaign import Campaign
from workbench.domain.errors import EngineError, PluginError, WorkbenchError
from workbench.domain.events import (
    Noted,
    PauseRequested,
    RunContinued,
    StopRequested,
    UsageTick,
)
from workbench.domain.parameters import OperatingPoint
from workbench.domain.samples import Usage
from workbench.engine.learning.pool import Pool
from workbench.engine.runs.asking_site import SiteMetrics
from workbench.engine.runs.control import Control, Place
from workbench.engine.runs.measurement import LabDriver
from workbench.engine.runs.progress import ProgressReport
from workbench.engine.runs.retrying_publisher import RetryingPublisher
from workbench.engine.runs.sample_runner import Ending, SampleRunnerParts
from workbench.engine.runs.strays import reap_lab
from workbench.engine.sessions.channel import Publisher
from workbench.engine.sessions.clock import now
from workbench.engine.sessions.memory import give_back
from workbench.labs.base import Lab
from workbench.locks import FileLock, Holder
from workbench.log import logger

QUEUE_TICK_S = 1.0

log = logger("engine.run")


@dataclass(frozen=True)
class LabJobParts:
    """What a turn works with.

    Attributes
    ----------
    publisher : of the session that it writes.
    slot : one turn of this engine at a time.
    host_lock : one turn of this host at a time; None for a lab that loads no host.
    holder : who it is, for those that wait behind it.
    """

    lab: Lab
    publisher: Publisher
    pool: Pool
    slot: asyncio.Lock
    host_lock: FileLock | None
    holder: Holder

    @property
    def on_host(self) -> bool:
        """Whether it measures on this host."""
        return self.host_lock is not None


class LabJob(ABC):
    """Queues, works, tears down, concludes; everything that happens is in the session's events.

    Attributes
    ----------
    control : what users want of it.
    started : it has its turn.
    concluded : its end is announced; it lets go of its session in a moment.
    error : why it failed; None while it has not.
    """

    def __init__(self, campaign: Campaign, parts: LabJobParts) -> None:
        lab, publisher, pool = parts.lab, parts.publisher, parts.pool
        self.session = parts.holder.session
        self.control = Control()
        self.started = False
        self.concluded = False
        self.error: Exception | None = None
        self._lab = lab
        self._publisher = publisher
        self._pool = pool
        self._out = RetryingPublisher(publisher, self.control, self._on_wait)
        self._slot = parts.slot
        self._host_lock = parts.host_lock
        self._holder = parts.holder
        self._bench = LabDriver(
            lab, campaign, pool, self._on_phase, self._on_usage, publisher.view.bypasses
        )
        self._bench.on_drive = self._out.count
        if campaign.servers:
            self._bench.site = SiteMetrics(campaign, self.session, lab)
        self._progress = self._make_progress()
        self._work: asyncio.Task[Ending] | None = None

    def _visit_parts(self, parts: LabJobParts) -> SampleRunnerParts:
        """What its visits work with."""
        return SampleRunnerParts(
            self._out, parts.pool, self._bench, self.control, self._progress, parts.on_host
        )

    @abstractmethod
    def _make_progress(self) -> ProgressReport:
        """What its ticks say."""

    @abstractmethod
    async def _begin(self) -> None:
        """Record that its turn has come."""

    @abstractmethod
    async def _measure_all(self) -> Ending:
        """Take samples until there is an end to it."""

    @abstractmethod
    async def _conclude(self, ending: Ending | None, wall_s: float) -> None:
        """Record how it ended, and set `concluded`; None if the engine is ending."""

    def knows(self, place: Place) -> bool:
        """Whether it measures that configuration of its own accord, so that it can be skipped."""
        del place
        return False

    # ------------------------------------------------------------------ from outside

    async def stop(self, by: str, *, abort: bool) -> None:
        """End after the sample that is being measured, or at once; a queued one ends at once."""
        try:
            await self._publisher.record(StopRequested(by, abort))
        finally:  # who cannot write any more can still be stopped
            self.control.stop = True
            self.control.abort = self.control.abort or abort
            self.control.ring()
            if abort or not self.started:
                self._cancel()

    async def pause(self, by: str) -> None:
        """Pause after the sample that is being measured; everybody hears of it now."""
        self.control.paused_by = by
        try:
            await self._publisher.record(PauseRequested(by))
        finally:
            self.control.ring()

    async def go_on(self, by: str) -> None:
        """Go on, or do not pause after all."""
        control = self.control
        control.paused_by, control.continued_by = None, by
        try:
            if not control.holds:  # else who holds says it
                await self._publisher.record(RunContinued(by))
        finally:
            control.ring()

    def interrupt(self) -> None:
        """End at once because the engine ends; what is stored stays."""
        self.control.interrupted = True
        self._cancel()

    def _cancel(self) -> None:
        if self._work is not None:
            self._work.cancel()

    # ------------------------------------------------------------------ the frame

    async def execute(self) -> None:
        """Wait for the turn, work, tear down, conclude. Raises nothing but cancellation."""
        begin = time.monotonic()
        async with AsyncExitStack() as turn:
            ending = await self._ending(turn)
            await self._close_lab()
            try:
                await self._conclude(ending, time.monotonic() - begin)
            except Exception as error:
                # What is stored stays stored, and the session reads as interrupted. Who follows it
                # waits for an end that cannot be stored, so it is told.
                log.error("the end cannot be stored", session=self.session, exc_info=error)
                self.concluded = True  # who reads the error may resume at once
                self._out.end(error if isinstance(error, WorkbenchError) else _unexpected(error))
        await asyncio.to_thread(give_back)

    async def _ending(self, turn: AsyncExitStack) -> Ending | None:
        """How the work ended; None if the engine is ending."""
        self._work = asyncio.create_task(self._from_queue_to_end(turn), name=f"run {self.session}")
        if self.control.ending:  # a wish was faster than this task
            self._work.cancel()
        try:
            return await self._work
        except asyncio.CancelledError:
            if self.control.abort:
                return "aborted", ""
            # Who stops a run that has begun does not cancel it; then it is the engine that ends.
            never_began = self.control.stop and not self.started
            return ("stopped", "before it began") if never_began else None
        except WorkbenchError as error:  # it says what to do; only a plugin's needs its trace
            trace = error if isinstance(error, PluginError) else None
            log.error("run failed", session=self.session, error=str(error), exc_info=trace)
            self.error = error
            return "failed", str(error)
        except Exception as error:  # a bug or a plugin: the engine outlives it
            log.error("run failed", session=self.session, exc_info=error)
            self.error = error
            return "failed", str(_unexpected(error))

    async def _from_queue_to_end(self, turn: AsyncExitStack) -> Ending:
        waiting = asyncio.create_task(self._say_queued())
        try:
            await turn.enter_async_context(self._slot)
            if self._host_lock is not None:
                await turn.enter_async_context(self._host_lock.queue(self._holder))
        finally:
            waiting.cancel()
        self.started = True
        await self._begin()
        if self._host_lock is not None:
            self._pool.give_way()
            for name in await reap_lab(type(self._lab), frozenset()):
                await self._out.record(
                    Noted("warning", f"removed what a dead session left: {name}")
                )
        return await self._measure_all()

    async def _close_lab(self) -> None:
        try:
            await self._lab.close()
        except Exception as error:  # a lab promises not to raise here, a plugin may still do so
            log.error("lab did not close", session=self.session, exc_info=error)
        finally:
            await self._close_site()

    async def _close_site(self) -> None:
        try:
            if self._bench.site is not None:
                await self._bench.site.close()
        except Exception as error:  # what the site's Prometheus said is stored by now
            log.error("the site's metrics did not close", session=self.session, exc_info=error)

    # ------------------------------------------------------------------ ticks

    async def _say_queued(self) -> None:
        while True:
            self._progress.phase("queued", None)
            await asyncio.sleep(QUEUE_TICK_S)

    def _on_phase(self, phase: str, point: OperatingPoint | None, note: str = "") -> None:
        self._progress.phase(phase, point, note)

    def _on_wait(self, trouble: str) -> None:
        self._progress.phase("waiting", None, trouble)

    def _on_usage(self, usage: Mapping[str, Usage]) -> None:
        self._out.tick(UsageTick(self.session, now(), usage))
        self._progress.again()


def _unexpected(error: Exception) -> EngineError:
    return EngineError(f"Unexpected {type(error).__name__}: {error}", remedy="See `workbench logs`")
