"""`Engine`: owns a workspace, and hands every request to who answers it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from workbench import __version__, files
from workbench.audit import AuditLog
from workbench.domain import codec, messages
from workbench.domain.errors import (
    EngineError,
    SessionError,
    Stopped,
    WorkbenchError,
    WorkspaceHeld,
)
from workbench.domain.events import ControlLock, Noted
from workbench.domain.messages import Failed, Hello, Request
from workbench.engine.admission import Admission
from workbench.engine.answers.jobs import Jobs
from workbench.engine.control_locks import ControlLocks
from workbench.engine.function_watching import ReportedWatches
from workbench.engine.handlers import HANDLERS
from workbench.engine.handlers.registry import Services
from workbench.engine.lag import LagMonitor
from workbench.engine.learning.pool import Pool
from workbench.engine.notifying import Notifier
from workbench.engine.runs.idle_work import IdleWork
from workbench.engine.runs.queue import PARTS, Queue
from workbench.engine.runs.strays import reap_strays
from workbench.engine.sessions.channel import Channel, Following
from workbench.engine.sessions.fleet_sessions import FleetSessions
from workbench.engine.sessions.library import Library
from workbench.locks import FileLock, HostLock, own
from workbench.log import logger, open_log, without_log
from workbench.paths import Workspace, measuring_lock, notify_file

if TYPE_CHECKING:  # its imports take time
    from workbench.engine.http import HttpDoor

R = TypeVar("R")

SCREENS_SHARE = 0.09
"""Of a core: what is shared out to all screens while this host measures. They spend it to the end
and a little more, and are to stay under a tenth (`benchmarks/viewers.py`)."""
FINISHED_TICK_S, LEFT_TICK_S = 0.2, 0.05
PATIENCE_S = 3.0
"""How long a start waits for another command that holds the workspace for a moment."""
LEAVING_S = 2.0
"""How long an engine in a command waits for clients that have not hung up: a screen does not."""

BACKGROUND_S = 5.0
"""How long an engine that ends waits for its own housekeeping."""

log = logger("engine")


class Engine:
    """One per workspace, held by a lock. `handle` never raises: a failure is a reply, too.

    Attributes
    ----------
    stopping : set when somebody asked the engine to end; who runs it looks at that.
    """

    def __init__(
        self, workspace: Workspace, *, http: str | None = None, may_look: bool = False
    ) -> None:
        """`may_look`: where the workspace cannot be written, it answers what only reads."""
        self.workspace = workspace
        self._may_look = may_look
        self._unwritable: SessionError | None = None
        self.stopping = asyncio.Event()
        self.clients = 0
        """Connections to the socket."""
        self.lag = LagMonitor()
        self.library = Library(workspace)
        self._notifier = Notifier(notify_file(), self._warn)
        self.library.heard = self._notifier.hear
        self.host_lock = HostLock(measuring_lock())
        self._http_address = http
        self._http: HttpDoor | None = None
        self._lock = FileLock(workspace.engine_lock)
        self._pool = Pool(gives_way=False)
        self.admission = Admission(
            ControlLocks(self._is_unfinished, self._show_control_lock), AuditLog(workspace.audit)
        )
        self.idle_work = IdleWork(self._nothing_measured)
        self.queue = Queue(
            self.library,
            self._pool,
            self.host_lock,
            self.admission.control_locks.begun,
            self.idle_work.after,
        )
        self._jobs = Jobs(self.library, lambda: not self._nothing_measured())
        self._fleets = FleetSessions(self.library)
        self._services = Services(
            self.library,
            self.queue,
            self._jobs,
            workspace,
            self.admission.control_locks,
            self._fleets,
            ReportedWatches(),
            self.status,
            self._removed_strays,
            self._end,
        )
        self._started_at = 0.0
        self._background: set[asyncio.Task[None]] = set()
        self._close_log: Callable[[], None] | None = None

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Take the workspace. Raises `WorkspaceHeld` naming who holds it, if somebody does."""
        try:
            await self._take_workspace()
            self._close_log = open_log(self.workspace.log)
            await asyncio.to_thread(self._sweep)
        except OSError as error:
            self._lock.free()
            self._unwritable = SessionError(
                f"the workspace cannot be written: {error.strerror}",
                where=str(self.workspace.root),
                remedy="Choose another one with --workspace DIR",
            )
            if not self._may_look:
                raise self._unwritable from None
            self._close_log = without_log()
        self._started_at = time.time()
        self.lag.start()
        try:
            if self._http_address is not None:
                from workbench.engine.http import HttpDoor

                self._http = await HttpDoor.open(
                    self._http_address, self.status, self._measured, self._services.watches
                )
        except BaseException:
            await self.close()
            raise
        log.info("engine started", pid=os.getpid(), workspace=str(self.workspace.root))

    def _sweep(self) -> None:
        """Remove what processes left half written that were killed."""
        own = self.workspace
        for folder in (own.sessions, own.exports, own.trash, own.drafts, own.state):
            for path in files.sweep(folder):
                log.info("half written by a process that is gone: removed", path=str(path))

    async def _take_workspace(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        files.make_folder(self.workspace.sessions)
        while not self._lock.take(own(self.workspace.root)):
            if time.monotonic() > deadline:
                holder = self._lock.holder()
                raise WorkspaceHeld(
                    f"the workspace is held by process {holder.pid if holder else 'unknown'}",
                    where=str(self.workspace.root),
                    remedy="Wait for it, or end it with `workbench engine stop`",
                )
            await asyncio.sleep(0.05)

    async def interrupt_runs(self) -> None:
        """End all runs where they stand, their labs torn down; their feeds end. No new ones."""
        await self.queue.interrupt()
        self.library.end_feeds()

    async def close(self) -> None:
        """Interrupt what runs, close what is open, give the workspace back. Idempotent."""
        await self.interrupt_runs()
        await self.idle_work.stop()
        if self._background:
            # A reaper that is interrupted leaves half of what it came for.
            _, slow = await asyncio.wait(self._background, timeout=BACKGROUND_S)
            for task in slow:
                task.cancel()
        if self._http is not None:
            await self._http.close()
            self._http = None
        await self._notifier.close()
        await self._fleets.close()
        await self.library.close()
        await self._pool.close()
        await self._jobs.close()
        await self.lag.stop()
        if self._lock.held:
            log.info("engine ended", pid=os.getpid())
            self._lock.free()
        if self._close_log is not None:
            self._close_log()
            self._close_log = None

    def _nothing_measured(self) -> bool:
        """On this host, in any workspace; nor is a lab made ready for that."""
        return self.host_lock.holder() is None and not self.queue.preparing

    def _is_unfinished(self, session: str) -> bool:
        return session in self.queue.unfinished

    def _show_control_lock(self, control_lock: ControlLock) -> None:
        channel = self.queue.channel_of(control_lock.session)
        if channel is not None:
            channel.tick(control_lock)

    async def until_finished(self) -> None:
        """Return when no campaign runs or waits, or when asked to stop."""
        while self.queue.unfinished and not self.stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), FINISHED_TICK_S)

    async def until_left(self) -> None:
        """Return when every client has hung up or something runs, after `LEAVING_S` at the latest.

        Who has just come may be about to submit, and who submitted reads how it ended.
        """
        deadline = time.monotonic() + LEAVING_S
        while self.clients and not self.queue.unfinished and time.monotonic() < deadline:
            if self.stopping.is_set():
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), LEFT_TICK_S)

    async def until_idle(self, linger_s: float) -> None:
        """Return when asked to stop, or after `linger_s` without campaign, client and idle work."""
        loop = asyncio.get_running_loop()
        idle_since = loop.time()
        while not self.stopping.is_set():
            if self.queue.busy or self.clients or self.idle_work.doing:
                idle_since = loop.time()
            elif loop.time() - idle_since >= linger_s:
                log.info("nobody needs the engine", linger_s=linger_s)
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), min(1.0, linger_s / 4 + 0.01))

    def reap_in_background(self) -> None:
        """Remove strays of dead sessions, without holding up who waits for the engine."""
        self._do_in_background(self._reap())

    def import_in_background(self) -> None:
        """What runs and drafts need: after the socket answers, and before the first of them."""
        self._do_in_background(asyncio.to_thread(_import_the_rest))

    async def _reap(self) -> None:
        try:
            await self._removed_strays()
        except Exception as error:  # a plugin's reaper must not end the engine
            log.error("strays were not reaped", exc_info=error)

    async def _removed_strays(self) -> tuple[str, ...]:
        return await reap_strays(self.host_lock, self.queue.running)

    def _end(self) -> None:
        self.stopping.set()
        self._do_in_background(self.interrupt_runs())

    def _do_in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def worker_pid(self) -> int | None:
        return self._pool.worker_pid()

    # ------------------------------------------------------------------ requests

    async def handle(self, request: Request[R], who: Hello) -> R | Failed:
        """Answer a request; errors come back as `Failed`, and the engine goes on."""
        try:
            reply = await self._reply(request, who)
        except asyncio.CancelledError:
            self.admission.settled(request, who, codec.failed(Stopped("nobody waits for it")))
            raise
        self.admission.settled(request, who, reply)
        return reply

    async def _reply(self, request: Request[R], who: Hello) -> R | Failed:
        try:
            admitted = self.admission.admit(request, who)
            if self._unwritable is not None and isinstance(request, messages.Command):
                raise self._unwritable
            return await HANDLERS.answer(self._services, admitted, who)
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

    async def _warn(self, session: str, text: str) -> None:
        """Into a session's own log, as far as it can be written."""
        with suppress(WorkbenchError):
            async with self.library.writing(session) as channel:
                await channel.record(Noted("warning", text))

    def _measured(self) -> Channel | None:
        return self.queue.channel_of(self.queue.running)

    @property
    def share(self) -> float | None:
        """What part of a core each client may draw with now; None: nothing here could be disturbed.

        It matters not which workspace's engine measures.
        """
        if self.host_lock.holder() is None:
            return None
        return SCREENS_SHARE / max(1, self.clients)

    def status(self) -> messages.EngineStatus:
        computing = self._jobs.latest
        return messages.EngineStatus(
            version=__version__,
            workspace=str(self.workspace.root),
            pid=os.getpid(),
            started_at=self._started_at,
            running=self.queue.running,
            queued=self.queue.waiting,
            clients=self.clients,
            host_held_by=self.queue.held_by,
            http=self._http.address if self._http else "",
            loop_lag_p99_ms=self.lag.p99_ms,
            host_measuring=self.queue.host_measuring,
            scoring=computing.doing if computing else "",
            scoring_s=computing.remaining.elapsed_s if computing else 0.0,
            scoring_eta_s=computing.remaining.eta_s if computing else 0.0,
            preparing=self.queue.preparing,
            idle_work=self.idle_work.doing,
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


def _import_the_rest() -> None:
    for name in (*PARTS, "workbench.engine.drafts"):
        import_module(name)
