"""One campaign on one lab, from its place in the queue to `RunFinished`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack

from workbench.domain.errors import WorkbenchError
from workbench.domain.events import Noted, RunStarted, StopRequested, UsageTick
from workbench.domain.parameters import OperatingPoint
from workbench.domain.samples import Usage
from workbench.engine.channel import Publisher
from workbench.engine.control import Control, Place
from workbench.engine.host_lock import FileLock, Holder
from workbench.engine.measurement import Bench
from workbench.engine.pool import Pool
from workbench.engine.profiling import Ending, Order, Profiler
from workbench.engine.progress import ProgressReport
from workbench.engine.strays import reap_lab
from workbench.engine.verdict import finished, unfinished
from workbench.labs.base import Lab
from workbench.log import logger

QUEUE_TICK_S = 1.0

log = logger("engine.run")


class Run:
    """Queues, works, tears down, concludes; everything that happens is in the session's events.

    Attributes
    ----------
    control : what users want of it.
    started : it has its turn.
    concluded : its end is announced; it lets go of its session in a moment.
    """

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
        self.session = holder.session
        self.control = Control()
        self.started = False
        self.concluded = False
        self._order = order
        self._lab = lab
        self._out = publisher
        self._slot = slot
        self._host_lock = host_lock
        self._holder = holder
        self._progress = ProgressReport(order.campaign, lab.costs, publisher, order.spent_s)
        self._bench = Bench(lab, order.campaign, pool, self._on_phase, self._on_usage)
        self._profiler = Profiler(order, publisher, pool, self._bench, self.control, self._progress)
        self._work: asyncio.Task[Ending] | None = None

    # ------------------------------------------------------------------ from outside

    def knows(self, place: Place) -> bool:
        """Whether the campaign holds that configuration."""
        target, configuration = place
        campaign = self._order.campaign
        return any(
            plan.target.name == target and configuration in campaign.configurations(plan)
            for plan in campaign.targets
        )

    async def stop(self, by: str, *, abort: bool) -> None:
        """End after the sample that is being measured, or at once; a queued run ends at once."""
        await self._out.record(StopRequested(by, abort))
        self.control.stop = True
        self.control.abort = self.control.abort or abort
        self.control.ring()
        if abort or not self.started:
            self._cancel()

    def interrupt(self) -> None:
        """End at once because the engine ends; nothing is concluded, all can be resumed."""
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
            except WorkbenchError as error:
                # What is stored stays stored, and the session reads as interrupted. Who follows it
                # waits for an end that cannot be stored, so it is told.
                log.error("the run's end cannot be stored", session=self.session, exc_info=error)
                self._out.end(error)

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
        except WorkbenchError as error:
            log.error("run failed", session=self.session, exc_info=error)
            return "failed", str(error)
        except Exception as error:  # a bug or a plugin: the engine outlives it
            log.error("run failed", session=self.session, exc_info=error)
            return "failed", f"Unexpected {type(error).__name__}: {error}. See `workbench logs`."

    async def _from_queue_to_end(self, turn: AsyncExitStack) -> Ending:
        waiting = asyncio.create_task(self._say_queued())
        try:
            await turn.enter_async_context(self._slot)
            if self._host_lock is not None:
                await turn.enter_async_context(self._host_lock.queue(self._holder))
        finally:
            waiting.cancel()
        self.started = True
        await self._out.record(RunStarted(self._order.resumed, self._order.budget_s))
        for note in self._order.notes:
            await self._out.record(note)
        if self._host_lock is not None:
            for name in await reap_lab(type(self._lab), frozenset()):
                await self._out.record(
                    Noted("warning", f"removed what a dead session left: {name}")
                )
        for plan in self._order.campaign.targets:
            ending = await self._profiler.profile(plan)
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
            view, campaign, outcome, note, wall_s, self._order.spent_s + self._bench.lab_s
        )
        self.concluded = True
        await self._out.record(fact)

    async def _close_lab(self) -> None:
        try:
            await self._lab.close()
        except Exception as error:  # a lab promises not to raise here, a plugin may still do so
            log.error("lab did not close", session=self.session, exc_info=error)

    # ------------------------------------------------------------------ ticks

    async def _say_queued(self) -> None:
        while True:
            self._progress.phase("queued", None)
            await asyncio.sleep(QUEUE_TICK_S)

    def _on_phase(self, phase: str, point: OperatingPoint | None) -> None:
        self._progress.spent_s = self._order.spent_s + self._bench.lab_s
        self._progress.phase(phase, point)

    def _on_usage(self, usage: Mapping[str, Usage]) -> None:
        self._out.tick(UsageTick(self.session, time.time(), usage))
        self._progress.again()
