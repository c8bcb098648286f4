"""`Engine`: owns a workspace, answers requests, holds the queue of runs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from workbench import __version__
from workbench.audit import AuditLog
from workbench.domain import codec, messages
from workbench.domain.campaign import TargetPlan
from workbench.domain.curation import DecideSample, ExtendBudget, RequestPoint
from workbench.domain.drafts import DraftCommand, DraftQuery
from workbench.domain.errors import (
    EngineError,
    SessionError,
    UsageError,
    WorkbenchError,
    WorkspaceHeld,
)
from workbench.domain.events import Wheel
from workbench.domain.housekeeping import HousekeepingCommand
from workbench.domain.lab import HOST_NOISE, MeasureHost, Reaped, ReapStrays
from workbench.domain.messages import Hello, Reply, Request
from workbench.domain.questions import Question
from workbench.domain.samples import TrialPurpose
from workbench.engine.admission import Admission
from workbench.engine.answers import queries
from workbench.engine.answers.asking import Asking
from workbench.engine.drafts import Drafts
from workbench.engine.lag import LagMonitor
from workbench.engine.learning.pool import Pool
from workbench.engine.runs import curating
from workbench.engine.runs.host_lock import FileLock, own
from workbench.engine.runs.host_measuring import HostMeasuring
from workbench.engine.runs.profiling import Order
from workbench.engine.runs.run import Run
from workbench.engine.runs.starting import Ready, Starting
from workbench.engine.runs.strays import reap_strays
from workbench.engine.runs.trials import Trials
from workbench.engine.runs.turn import Turn
from workbench.engine.sessions import housekeeping
from workbench.engine.sessions.channel import Channel, Following
from workbench.engine.sessions.library import Library
from workbench.engine.wheels import Wheels
from workbench.log import logger, open_log
from workbench.paths import Workspace, measuring_lock

if TYPE_CHECKING:
    from workbench.engine.http import HttpDoor

SCREENS_SHARE = 0.1
"""Of a core: what all screens together may take while this host measures."""
FINISHED_TICK_S = 0.2
PATIENCE_S = 3.0
"""How long a start waits for another command that holds the workspace for a moment."""

BACKGROUND_S = 5.0
"""How long an engine that ends waits for its own housekeeping."""

log = logger("engine")


class Engine:
    """One per workspace, held by a lock. `handle` never raises: a failure is a reply, too.

    Attributes
    ----------
    stopping : set when somebody asked the engine to end; who runs it looks at that.
    """

    def __init__(self, workspace: Workspace, *, http: str | None = None) -> None:
        self.workspace = workspace
        self.stopping = asyncio.Event()
        self.clients = 0
        """Connections to the socket."""
        self.lag = LagMonitor()
        self.library = Library(workspace)
        self.host_lock = FileLock(measuring_lock())
        self._http_address = http
        self._http: HttpDoor | None = None
        self._lock = FileLock(workspace.engine_lock)
        self._pool = Pool()
        self._starting = Starting(self.library, self._pool)
        self._slot = asyncio.Lock()
        """One campaign of this engine measures at a time."""
        self._host = HostMeasuring(self.library, self._pool, self._slot, self.host_lock)
        self._runs: dict[str, Turn] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._asking = Asking(self.library, self.trials)
        self._drafts = Drafts(workspace)
        self.admission = Admission(
            Wheels(self._is_unfinished, self._show_wheel), AuditLog(workspace.audit)
        )
        self._started_at = 0.0
        self._background: set[asyncio.Task[None]] = set()
        self._ending = False
        self._close_log: Callable[[], None] | None = None

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Take the workspace. Raises `WorkspaceHeld` naming who holds it, if somebody does."""
        await self._take_workspace()
        self._close_log = open_log(self.workspace.log)
        self._started_at = time.time()
        self.lag.start()
        try:
            if self._http_address is not None:
                from workbench.engine.http import HttpDoor

                self._http = await HttpDoor.open(self, self._http_address)
        except BaseException:
            await self.close()
            raise
        log.info("engine started", pid=os.getpid(), workspace=str(self.workspace.root))

    async def _take_workspace(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        try:
            self.workspace.sessions.mkdir(parents=True, exist_ok=True)
            while not self._lock.take(own(self.workspace.root)):
                if time.monotonic() > deadline:
                    holder = self._lock.holder()
                    raise WorkspaceHeld(
                        f"the workspace is held by process {holder.pid if holder else 'unknown'}",
                        where=str(self.workspace.root),
                        remedy="Wait for it, or end it with `workbench engine stop`",
                    )
                await asyncio.sleep(0.05)
        except OSError as error:
            raise SessionError(
                f"the workspace cannot be written: {error.strerror}",
                where=str(self.workspace.root),
                remedy="Choose another one with --workspace DIR",
            ) from None

    async def interrupt_runs(self) -> None:
        """End all runs where they stand, their labs torn down; their feeds end. No new ones."""
        self._ending = True
        await self._host.stop()
        for run in self._runs.values():
            run.interrupt()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self.library.end_feeds()

    async def close(self) -> None:
        """Interrupt what runs, close what is open, give the workspace back. Idempotent."""
        await self.interrupt_runs()
        if self._background:
            # A reaper that is interrupted leaves half of what it came for.
            _, slow = await asyncio.wait(self._background, timeout=BACKGROUND_S)
            for task in slow:
                task.cancel()
        if self._http is not None:
            await self._http.close()
            self._http = None
        await self.library.close()
        await self._pool.close()
        await self._asking.close()
        await self.lag.stop()
        if self._lock.held:
            log.info("engine ended", pid=os.getpid())
            self._lock.free()
        if self._close_log is not None:
            self._close_log()
            self._close_log = None

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Sessions whose campaign runs or waits for its turn."""
        return tuple(name for name, run in self._runs.items() if not run.concluded)

    def _is_unfinished(self, session: str) -> bool:
        return session in self.unfinished

    def _show_wheel(self, wheel: Wheel) -> None:
        channel = self.channel_of(wheel.session)
        if channel is not None:
            channel.tick(wheel)

    async def until_finished(self) -> None:
        """Return when no campaign runs or waits, or when asked to stop."""
        while self.unfinished and not self.stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), FINISHED_TICK_S)

    async def until_idle(self, linger_s: float) -> None:
        """Return when asked to stop, or after `linger_s` without campaign and client."""
        loop = asyncio.get_running_loop()
        idle_since = loop.time()
        while not self.stopping.is_set():
            if self._runs or self._host.busy or self.clients:
                idle_since = loop.time()
            elif loop.time() - idle_since >= linger_s:
                log.info("nobody needs the engine", linger_s=linger_s)
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), min(1.0, linger_s / 4 + 0.01))

    def reap_in_background(self) -> None:
        """Remove strays of dead sessions, without holding up who waits for the engine."""
        self._do_in_background(self._reap())

    async def _reap(self) -> None:
        try:
            await reap_strays(self.host_lock, self.running)
        except Exception as error:  # a plugin's reaper must not end the engine
            log.error("strays were not reaped", exc_info=error)

    def _do_in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    @property
    def running(self) -> str:
        """The session that is being measured; empty if none."""
        return next((n for n, run in self._runs.items() if run.started and not run.concluded), "")

    def worker_pid(self) -> int | None:
        return self._pool.worker_pid()

    # ------------------------------------------------------------------ requests

    async def handle(self, request: Request, who: Hello) -> Reply:
        """Answer a request; errors come back as `Failed`, and the engine goes on."""
        reply = await self._reply(request, who)
        self.admission.settled(request, who, reply)
        return reply

    async def _reply(self, request: Request, who: Hello) -> Reply:
        try:
            return await self._answer(self.admission.admit(request, who), who)
        except WorkbenchError as error:
            log.info("request failed", request=type(request).__name__, error=str(error))
            return codec.failed(error)
        except Exception as error:  # a bug or a plugin: a sentence for the user, a trace in the log
            log.error("unexpected error", request=type(request).__name__, exc_info=error)
            return codec.failed(
                EngineError(
                    f"unexpected {type(error).__name__}: {error}",
                    where=type(request).__name__,
                    remedy="The whole trace is in `workbench logs`",
                )
            )

    async def _answer(self, request: Request, who: Hello) -> Reply:
        if isinstance(request, HousekeepingCommand):
            return await housekeeping.answer(self.library, request)
        if isinstance(request, Question):
            return await self._asking.answer(request, who)
        if isinstance(request, DraftCommand | DraftQuery):
            return await self._drafts.answer(request, who)
        match request:
            case messages.RunCampaign() | messages.ResumeSession() | MeasureHost() if self._ending:
                raise EngineError("is ending", remedy="Try again in a moment")
            case messages.RunCampaign():
                return self._launch(await self._starting.new(request))
            case messages.ResumeSession(session=session):
                await self._let_go(session)
                return self._launch(await self._starting.resume(request))
            case messages.PauseRun(session=session, by=by):
                return self._pause(self._run(session), by or who.identity)
            case messages.ContinueRun(session=session, by=by):
                return self._continue(self._run(session), by or who.identity)
            case MeasureHost():
                return await self._host.measure(request)
            case messages.StopRun(session=session) if session == HOST_NOISE and self._host.busy:
                await self._host.stop()
                return messages.Done("the host is not measured any more")
            case messages.StopRun(session=session, abort=abort, by=by):
                return await self._stop(self._run(session), abort, by or who.identity)
            case messages.AskWheel(session=session):
                return self.admission.wheels.ask(session, who)
            case messages.AnswerWheel(session=session, give=give):
                return self.admission.wheels.answer(session, give, who)
            case DecideSample(session=session, by=by):
                run = self._runs.get(session)
                return await curating.decide(
                    self.library, self._pool, run, request, by or who.identity
                )
            case RequestPoint():
                return await self._request_point(request, request.by or who.identity)
            case ExtendBudget(session=session, by=by):
                run = self._run(session)
                return await curating.extend(self.library, run, request, by or who.identity)
            case messages.SkipConfiguration():
                return self._skip(self._run(request.session), request)
            case messages.ImportBundle():
                return await queries.import_bundle(self.library, request)
            case ReapStrays():
                return Reaped(await reap_strays(self.host_lock, self.running))
            case messages.StopEngine():
                self.stopping.set()
                self._do_in_background(self.interrupt_runs())
                return messages.Done("the engine ends")
            case messages.GetStatus():
                return self.status()
            case messages.PlanCampaign():
                return messages.Planned(await self._starting.plan(request))
            case messages.Unsubscribe():
                return messages.Done()
            case _:
                return await queries.answer(self.library, request)

    @property
    def share(self) -> float | None:
        """What part of a core each client may draw with now; None: nothing here could be disturbed.

        It matters not which workspace's engine measures.
        """
        if self.host_lock.holder() is None:
            return None
        return SCREENS_SHARE / max(1, self.clients)

    def _held_by(self) -> str:
        """Who measures on this host in another workspace; empty if nobody does."""
        holder = self.host_lock.holder()
        if holder is None or holder.pid == os.getpid():
            return ""
        return f"{holder.session} ({holder.workspace}, process {holder.pid})"

    def status(self) -> messages.EngineStatus:
        return messages.EngineStatus(
            version=__version__,
            workspace=str(self.workspace.root),
            pid=os.getpid(),
            started_at=self._started_at,
            running=self.running,
            queued=tuple(name for name, run in self._runs.items() if not run.started),
            clients=self.clients,
            host_held_by=self._held_by(),
            http=self._http.address if self._http else "",
            loop_lag_p99_ms=self.lag.p99_ms,
            host_measuring=self._host.doing,
            scoring=self._asking.doing,
        )

    @asynccontextmanager
    async def follow(self, session: str) -> AsyncIterator[Following]:
        """A session as it stands, and every change after that."""
        async with self.library.borrow(session) as channel:
            following = channel.follow()
            try:
                yield following
            finally:
                channel.unfollow(following)

    def channel_of(self, session: str) -> Channel | None:
        """The channel of a session that is running or queued."""
        return self.library.live(session) if session in self._runs else None

    # ------------------------------------------------------------------ runs

    def _launch(self, ready: Ready[Order]) -> messages.RunAccepted:
        session, behind = ready.channel.view.session, self._behind(ready.uses_host)
        run = Run(
            ready.order,
            ready.lab,
            ready.channel,
            self._pool,
            self._slot,
            self.host_lock if ready.uses_host else None,
            own(self.workspace.root, session),
        )
        self._take_on(run, ready.channel)
        return messages.RunAccepted(session, behind)

    def _behind(self, uses_host: bool) -> str:
        """Who has the lab now; empty if nobody."""
        behind = self.running or (HOST_NOISE if self._host.busy else "")
        if not behind and uses_host:
            behind = self._held_by()
        return behind

    def _take_on(self, turn: Turn, channel: Channel) -> None:
        self._runs[turn.session] = turn
        self._tasks[turn.session] = asyncio.create_task(
            self._see_through(turn, channel), name=f"session {turn.session}"
        )
        self.admission.wheels.begun(turn.session)

    @asynccontextmanager
    async def trials(
        self,
        session: str,
        purpose: TrialPurpose,
        *,
        plans: Sequence[TargetPlan] = (),
        budget_s: float | None = None,
        points: int = 0,
        by: str = "",
        pace: float | None = None,
        oversubscribe: bool = False,
    ) -> AsyncIterator[Trials]:
        """The lab of a session whose campaign has ended, for whoever asks it point by point.

        They take their turn like a campaign: `measure` waits for it. With the body they end, are
        torn down and summed up; a body that is cancelled aborts them. Pause, stop and abort reach
        them by the session's name. Who opens them holds nothing of the session borrowed.

        Parameters
        ----------
        purpose : kept with every sample.
        plans : targets that the campaign does not have, such as replicas behind a balancer, and
            targets of it that are asked beyond its range or allocations. Templates come with the
            campaign, earlier trials or the library.
        budget_s : lab time of these trials after which no new sample is begun.
        points : how many will be asked for, for those who watch; 0: nobody knows.
        oversubscribe : `plans` may need more cores than there are.

        Raises
        ------
        SessionError, UsageError
            If there is no such session here, its campaign has not ended, or it is being measured.
        LabError
            If the lab cannot be opened, or host or images are others than the session's.
        """
        if self._ending:
            raise EngineError("is ending", remedy="Try again in a moment")
        await self._let_go(session)
        ready = await self._starting.trials(
            session,
            purpose,
            plans=plans,
            budget_s=budget_s,
            points=points,
            by=by,
            pace=pace,
            oversubscribe=oversubscribe,
        )
        trials = Trials(
            ready.order,
            ready.lab,
            ready.channel,
            self._pool,
            self._slot,
            self.host_lock if ready.uses_host else None,
            own(self.workspace.root, session),
            self._behind(ready.uses_host),
        )
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

    async def _see_through(self, run: Turn, channel: Channel) -> None:
        try:
            await run.execute()
        finally:
            await self.library.release(channel)
            del self._runs[run.session]
            del self._tasks[run.session]

    async def _let_go(self, session: str) -> None:
        """Wait until a run that has announced its end has also let go of its session."""
        run = self._runs.get(session)
        if run is None:
            return
        if not run.concluded:
            raise UsageError("is running already", where=session)
        await asyncio.wait([self._tasks[session]])

    def _run(self, session: str) -> Turn:
        run = self._runs.get(session)
        if run is None or run.concluded:
            raise EngineError(
                "is not running",
                where=session,
                remedy=f"Go on with it by `workbench resume {session}`",
            )
        return run

    def _pause(self, run: Turn, by: str) -> Reply:
        run.control.paused_by = by
        run.control.ring()
        return messages.Done("it pauses after the sample that is being measured")

    def _continue(self, run: Turn, by: str) -> Reply:
        if run.control.paused_by is None:
            return messages.Done("it is not paused")
        run.control.paused_by, run.control.continued_by = None, by
        run.control.ring()
        return messages.Done("it goes on")

    async def _stop(self, run: Turn, abort: bool, by: str) -> Reply:
        await run.stop(by, abort=abort)
        if abort:
            return messages.Done("it ends now; what was announced is stored")
        return messages.Done("it ends after the sample that is being measured")

    async def _request_point(self, request: RequestPoint, by: str) -> Reply:
        run = self._runs.get(request.session)
        if run is not None and not run.concluded and not isinstance(run, Run):
            raise UsageError("is taken by trials now", where=request.session)
        wanted = await curating.request_point(self.library, request, by)
        if run is None or run.concluded:
            await self._let_go(request.session)
            again = messages.ResumeSession(request.session, pace=request.pace)
            return self._launch(await self._starting.resume(again))
        run.control.ring()
        where = f"{wanted.target} at {wanted.wl:g}, repetition {wanted.repetition}"
        return messages.Done(f"{where} is measured next, or when its target is")

    def _skip(self, run: Turn, request: messages.SkipConfiguration) -> Reply:
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
        return messages.Done(f"no more samples are taken of {place[0]} {place[1].key}")
