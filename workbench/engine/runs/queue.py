"""The queue of runs: who measures, who waits, and what may be asked of either."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.domain.errors import EngineError, UsageError
from workbench.domain.lab import HOST_NOISE, HostMeasured, MeasureHost
from workbench.domain.messages import (
    Done,
    PlanCampaign,
    Planned,
    ResumeSession,
    RunAccepted,
    RunCampaign,
    SkipConfiguration,
)
from workbench.domain.sample_review import DecideSample, ExtendBudget, RequestPoint
from workbench.engine.learning.pool import Pool
from workbench.engine.sessions.channel import Channel
from workbench.engine.sessions.library import Library
from workbench.locks import FileLock, own

if TYPE_CHECKING:  # labs, samplers and numpy are imported with the first run that needs them
    from workbench.engine.runs.costing import Costing
    from workbench.engine.runs.host_measuring import HostMeasuring
    from workbench.engine.runs.lab_job import LabJob, LabJobParts
    from workbench.engine.runs.profiling import RunOrder
    from workbench.engine.runs.starting import Ready, Starting
    from workbench.engine.runs.trials import Trials, TrialsRequest

PARTS = tuple(
    f"workbench.engine.runs.{name}"
    for name in ("starting", "host_measuring", "run", "sample_decisions", "trials")
)
"""Modules that a queue imports when they are needed."""


class Queue:
    """The turns of one engine: campaigns, trials and runs that measure the host; one at a time.

    Attributes
    ----------
    ending : whether the engine ends, and takes on nothing more.
    """

    def __init__(
        self,
        library: Library,
        pool: Pool,
        host_lock: FileLock,
        begun: Callable[[str], None],
        left: Callable[[str], None],
    ) -> None:
        """`begun` is told the session of every turn that is taken on, `left` the lab of every one
        that is over."""
        self.ending = False
        self._library = library
        self._pool = pool
        pool.others_measure = lambda: bool(self.held_by)
        self._host_lock = host_lock
        self._begun, self._left = begun, left
        self._slot = asyncio.Lock()
        """One campaign of this engine measures at a time."""
        self._turns: dict[str, LabJob] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @cached_property
    def _costing(self) -> Costing:
        from workbench.engine.runs.costing import Costing

        return Costing(self._library, self._pool)

    @cached_property
    def _starting(self) -> Starting:
        from workbench.engine.runs.starting import Starting

        return Starting(self._library, self._pool, self._costing)

    @cached_property
    def _host(self) -> HostMeasuring:
        from workbench.engine.runs.host_measuring import HostMeasuring

        return HostMeasuring(self._library, self._pool, self._slot, self._host_lock)

    # ------------------------------------------------------------------ how it stands

    @property
    def busy(self) -> bool:
        """Whether anything is measured, or waits for that."""
        return bool(self._turns) or self._host_busy

    @property
    def _host_busy(self) -> bool:
        return "_host" in vars(self) and self._host.busy

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Sessions whose campaign runs or waits for its turn."""
        return tuple(name for name, turn in self._turns.items() if not turn.concluded)

    @property
    def running(self) -> str:
        """The session that is being measured; empty if none."""
        turns = self._turns.items()
        return next((name for name, turn in turns if turn.started and not turn.concluded), "")

    @property
    def waiting(self) -> tuple[str, ...]:
        """Sessions whose turn has not come."""
        return tuple(name for name, turn in self._turns.items() if not turn.started)

    @property
    def preparing(self) -> str:
        """What a run that is being started waits for, as `SESSION: WHAT`; empty if none is."""
        return self._starting.preparing if "_starting" in vars(self) else ""

    @property
    def host_measuring(self) -> str:
        """How far a run that measures the host is, as a sentence; empty where there is none."""
        return self._host.doing if "_host" in vars(self) else ""

    @property
    def held_by(self) -> str:
        """Who measures on this host in another workspace; empty if nobody does."""
        return "" if self._host_lock.held else self._host_lock.told()

    def channel_of(self, session: str) -> Channel | None:
        """The channel of a session that is running or queued."""
        return self._library.live(session) if session in self._turns else None

    # ------------------------------------------------------------------ requests

    async def start(self, request: RunCampaign) -> RunAccepted:
        """Begin a campaign, or have it wait for its turn. This and the others raise
        `WorkbenchError`."""
        self._must_take_on()
        return self._launch(await self._starting.new(request))

    async def resume(self, request: ResumeSession) -> RunAccepted:
        self._must_take_on()
        await self._let_go(request.session)
        return self._launch(await self._starting.resume(request))

    async def plan(self, request: PlanCampaign) -> Planned:
        return Planned(await self._costing.plan(request))

    async def measure_host(self, request: MeasureHost) -> HostMeasured:
        self._must_take_on()
        return await self._host.measure(request)

    async def pause(self, session: str, by: str) -> Done:
        run = self._run(session)
        if run.control.holds and run.control.paused_by is not None:
            return Done("it is paused already")
        if run.control.paused_by is None:
            await run.pause(by)
        return Done("it pauses after the sample that is being measured")

    async def go_on(self, session: str, by: str) -> Done:
        run = self._run(session)
        if run.control.paused_by is None:
            return Done("it is not paused")
        await run.go_on(by)
        return Done("it goes on")

    async def stop(self, session: str, by: str, *, abort: bool) -> Done:
        if session == HOST_NOISE and self._host_busy:
            await self._host.stop()
            return Done("the host is not measured any more")
        if "_starting" in vars(self) and self._starting.stop(session):
            return Done("it is given up; nothing was measured")
        await self._run(session).stop(by, abort=abort)
        if abort:
            return Done("it ends now; the samples taken so far are stored")
        return Done("it ends after the sample that is being measured")

    async def decide_sample(self, request: DecideSample) -> Done:
        from workbench.engine.runs import sample_decisions

        run = self._turns.get(request.session)
        return await sample_decisions.decide(self._library, self._pool, run, request, request.by)

    async def extend_budget(self, request: ExtendBudget) -> Done:
        from workbench.engine.runs import sample_decisions

        run = self._run(request.session)
        return await sample_decisions.extend(self._library, run, request, request.by)

    async def request_point(self, request: RequestPoint) -> Done | RunAccepted:
        from workbench.engine.runs import sample_decisions
        from workbench.engine.runs.run import Run

        run = self._turns.get(request.session)
        if run is not None and not run.concluded and not isinstance(run, Run):
            raise UsageError("is taken by trials now", where=request.session)
        wanted = await sample_decisions.request_point(self._library, request, request.by)
        if run is None or run.concluded:
            await self._let_go(request.session)
            again = ResumeSession(request.session, pace=request.pace)
            return self._launch(await self._starting.resume(again))
        run.control.ring()
        where = f"{wanted.target} at {wanted.wl:g}, repetition {wanted.repetition}"
        return Done(f"{where} is measured next, or when its target is")

    def skip(self, request: SkipConfiguration) -> Done:
        run = self._run(request.session)
        if request.configuration is None or request.target is None:
            place = run.control.measuring
            if place is None:
                raise EngineError("measures nothing that could be skipped", where=run.session)
        else:
            place = (request.target, request.configuration)
            if not run.knows(place):
                raise UsageError(
                    f"has no configuration {place[1].key} of {place[0]}", where=run.session
                )
        run.control.skip(place)
        run.control.ring()
        return Done(f"no more samples are taken of {place[0]} {place[1].key}")

    async def interrupt(self) -> None:
        """End all turns where they stand, their labs torn down. No new ones."""
        self.ending = True
        if self._host_busy:
            await self._host.stop()
        for turn in self._turns.values():
            turn.interrupt()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _launch(self, ready: Ready[RunOrder]) -> RunAccepted:
        from workbench.engine.runs.run import Run

        session, behind = ready.channel.view.session, self._behind(ready.uses_host)
        self._take_on(Run(ready.order, self._parts(ready, session)), ready.channel)
        return RunAccepted(session, behind)

    def _parts(self, ready: Ready[Any], session: str) -> LabJobParts:
        from workbench.engine.runs.lab_job import LabJobParts

        return LabJobParts(
            ready.lab,
            ready.channel,
            self._pool,
            self._slot,
            self._host_lock if ready.uses_host else None,
            own(self._library.workspace.root, session),
        )

    def _behind(self, uses_host: bool) -> str:
        """Who has the lab now; empty if nobody."""
        behind = self.running or (HOST_NOISE if self._host_busy else "")
        if not behind and uses_host:
            behind = self.held_by
        return behind

    def _take_on(self, turn: LabJob, channel: Channel) -> None:
        self._turns[turn.session] = turn
        self._tasks[turn.session] = asyncio.create_task(
            self._see_through(turn, channel), name=f"session {turn.session}"
        )
        self._begun(turn.session)

    @asynccontextmanager
    async def trials(self, request: TrialsRequest) -> AsyncIterator[Trials]:
        """The lab of a session whose campaign has ended, for whoever asks it point by point.

        They take their turn like a campaign: `measure` waits for it. With the body they end, are
        torn down and summed up; a body that is cancelled aborts them. Pause, stop and abort reach
        them by the session's name. Who opens them holds nothing of the session borrowed.

        Raises
        ------
        SessionError, UsageError
            If there is no such session here, its campaign has not ended, or it is being measured.
        LabError
            If the lab cannot be opened, or host or images are others than the session's.
        """
        from workbench.engine.runs.trials import Trials

        self._must_take_on()
        session = request.session
        await self._let_go(session)
        ready = await self._starting.trials(request)
        behind = self._behind(ready.uses_host)
        trials = Trials(ready.order, self._parts(ready, session), behind)
        self._take_on(trials, ready.channel)
        task = self._tasks[session]
        try:
            yield trials
        except BaseException as error:
            await trials.leave(abort=not isinstance(error, Exception))
            raise
        else:
            await trials.leave()
        finally:
            await asyncio.wait([task])

    async def _see_through(self, run: LabJob, channel: Channel) -> None:
        try:
            await run.execute()
        finally:
            try:
                await self._library.release(channel)
            finally:  # a session that cannot be closed may be asked for again all the same
                del self._turns[run.session]
                del self._tasks[run.session]
                self._left(channel.view.lab)

    def _must_take_on(self) -> None:
        if self.ending:
            raise EngineError("the engine is ending", remedy="Try again in a moment")

    async def _let_go(self, session: str) -> None:
        """Wait until a run that has announced its end has also let go of its session."""
        run = self._turns.get(session)
        if run is None:
            return
        if not run.concluded:
            raise UsageError("is running already", where=session)
        await asyncio.wait([self._tasks[session]])

    def _run(self, session: str) -> LabJob:
        run = self._turns.get(session)
        if run is None or run.concluded:
            raise EngineError(
                "is not running",
                where=session,
                remedy=f"Resume it (workbench resume {session})",
            )
        return run
