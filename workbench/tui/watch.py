"""The open session, as all of its screens share it: followed, started first, or replayed.

One subscription feeds one `SessionView`, however many screens show it. Screens keep nothing that
the watch could know: which configuration, KPI and sample are looked at is in `choice`, so that a
sample picked on one screen is the one that the next screen shows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Literal

from workbench.domain.drafts import PREFIX
from workbench.domain.durations import duration
from workbench.domain.errors import EngineError, SessionError, SessionReplaced, WorkbenchError
from workbench.domain.events import (
    ControlLock,
    Event,
    Progress,
    RunFinished,
    RunStarted,
    StopRequested,
    Tick,
    TrialsFinished,
    TrialsStarted,
    UsageTick,
)
from workbench.domain.housekeeping import RESCUE
from workbench.domain.messages import (
    GetStatus,
    ResumeSession,
    Role,
    RunCampaign,
)
from workbench.domain.projection import SessionView
from workbench.domain.recordings import FIRST
from workbench.link.client import Client
from workbench.link.cooperative_yield import Pieces
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.replaying.replay import Replay
from workbench.tui.text import plain

RESUMABLE = ("interrupted", "stopped", "failed")
"""States that `ResumeSession` can go on from."""

Loss = Literal["", "engine", "session", "refused"]
"""What is lost: nothing, the engine, the session alone (it is not there any more), or neither: the
engine answers and does not do what was asked."""

WAIT_ENDS = RunStarted | RunFinished | TrialsStarted | TrialsFinished | StopRequested
"""What is said once nothing waits for its turn any more; who is stopped while waiting ends."""

WATCHED_PACE = 20.0
"""Lab seconds per second of a simulated run that is started to be watched."""


MUCH_MORE = 5.0
"""Times the estimated time, from which on it is told what it may come to."""


def lab_time(lab: str, seconds: float, most_s: float = 0.0) -> str:
    """Lab time, and what that is on the clock where it passes faster there; `most_s` is what it
    may come to, where that is much more (windows last ten response times, which nobody knows)."""
    simulated = lab.startswith("sim")
    told = f"{duration(seconds)} of {'simulated' if simulated else 'lab'} time"
    if simulated:
        told += f", {duration(seconds / WATCHED_PACE)} on the clock"
    if most_s > MUCH_MORE * seconds:
        most = duration(most_s / WATCHED_PACE if simulated else most_s)
        told += f"; up to {most} where responses are slow"
    return told


POLL_S = 0.5
"""How often the engine is asked what a run waits for that is being started."""

PREVIEW = FIRST
"""A recording that ships: both functions and their chains on real containers."""
PREVIEW_SPEED = 64.0
PREVIEW_AFTER_S = 3.0
"""Labs that are ready by then need no preview."""


class Watch:
    """A session from the moment it is opened; `changed` counts what could be drawn."""

    def __init__(
        self,
        session: str = "",
        *,
        command: RunCampaign | ResumeSession | None = None,
        replay: Replay | None = None,
    ) -> None:
        self.session = session
        self.command = command
        """Sent first; its reply says which session it is."""
        self.replay = replay
        self.live = Shown(SessionView(self.title))
        self.frozen: Shown | None = None
        self.choice = ViewChoice()
        self.connected = False
        self.lost = ""
        """Why nothing comes any more, as a sentence without its full stop."""
        self.loss: Loss = ""
        """What `lost` is about."""
        self.refused: WorkbenchError | None = None
        self.broken: Exception | None = None
        """What nobody expected while events were folded: its trace belongs in the log."""
        """Why it could not be opened at all."""
        self.preparing = ""
        """What the run waits for that we start, such as an image that is built."""
        self.since = 0.0
        """When we began to wait for it, or for the engine; on the monotonic clock."""
        self.previewing = ""
        """The recording that is shown in place of a session whose lab is still made ready."""
        self.queued_behind = ""
        self.control_lock = ControlLock(session, "")
        """Who drives the run, and who asks to."""
        self.person = ""
        """What the engine calls us when it says who drives."""
        self.role: Role = "operator"
        self.bundle = False
        """Whether it is a recording, which nobody changes; as far as is known."""
        self.changed = 0
        self._touched = asyncio.Event()

    @property
    def shown(self) -> Shown:
        """What is drawn: the session as it is, or as it was when the drawing was frozen."""
        return self.frozen or self.live

    @property
    def commandable(self) -> bool:
        """Whether there is a run, of now, that we could tell something."""
        here = self.connected and not self.lost and self.replay is None and not self.bundle
        return here and self.role == "operator"

    @property
    def starting(self) -> str:
        """What to call a run of ours that is made ready, where it can be given up; else empty."""
        able = self.role == "operator" and not self.lost and self.preparing
        return _named(self.command) if able else ""

    @property
    def title(self) -> str:
        """What to call what is opened; that of a draft is the draft's own name."""
        return (self.session or _named(self.command)).removeprefix(PREFIX)

    @property
    def drives(self) -> bool:
        """Whether control is ours."""
        return self.control_lock.driver != "" and self.control_lock.driver == self.person

    @property
    def displaced(self) -> bool:
        """Whether the run waits because its session's file was replaced or removed."""
        progress = self.live.progress
        return progress is not None and progress.phase == "waiting" and RESCUE in progress.note

    @property
    def moving(self) -> bool:
        """Whether the clock of a replay must be drawn, even where nothing happens."""
        return self.replay is not None and not (self.replay.ended or self.replay.paused)

    def touch(self) -> None:
        """There is something to be drawn."""
        self.changed += 1
        self._touched.set()

    async def until_touched(self, longest_s: float) -> None:
        """Return when there is; while a replay plays, after so long in any case."""
        with suppress(TimeoutError):
            async with asyncio.timeout(longest_s if self.moving else None):
                await self._touched.wait()
        self._touched.clear()

    def freeze(self) -> None:
        self.frozen = self.live.frozen()
        self.touch()

    def unfreeze(self) -> None:
        self.frozen = None
        self.touch()

    def choose(self, choice: ViewChoice) -> None:
        self.choice = choice
        self.touch()

    def forget_loss(self) -> None:
        """Before `follow` is called once more."""
        self.lost, self.loss, self.connected = "", "", False
        self.touch()

    async def follow(self, client: Callable[[], Awaitable[Client]]) -> None:
        """Fold what happens until the engine goes away or somebody cancels this. Never raises."""
        self.refused, self.broken, self.since = None, None, time.monotonic()
        waiting = asyncio.create_task(self._wait())
        try:
            engine = await client()
            self.person, self.role = engine.person, engine.role
            if self.command is not None:
                await self._start(engine, self.command)
            if self.replay is not None:
                self._begin(Shown(SessionView(self.session)))
                await self._consume(
                    self.replay.changes(
                        engine,
                        self.session,
                        lambda: self.choice.key or "",
                        ending=self.touch,
                    )
                )
                return
            while True:
                try:
                    async with engine.follow(self.session) as feed:
                        self._begin(Shown(feed.view))
                        await self._consume(feed.changes)
                    break
                except SessionReplaced:  # such as by what its hosts have measured
                    self.frozen = None
            self._lose("it closed the connection", "engine")
        except WorkbenchError as error:
            if not self.connected:
                self.refused = error
            self._lose(self._why(error), _loss(error))
        except OSError as error:
            self._lose(f"{type(error).__name__}: {error}", "engine")
        except Exception as error:  # noqa: BLE001  # must never take the screen down
            self.broken = error
            self._lose(f"what came cannot be shown: {type(error).__name__}: {error}", "refused")
        finally:
            waiting.cancel()

    @property
    def awaited(self) -> str:
        """What is waited for before there is a session to show, and for how long."""
        words = "connecting" if self.command is None else "starting"
        if doing := self.preparing.removeprefix(f"{self.title}: "):
            words = f"starting: {doing}"
        return f"{words} ({duration(time.monotonic() - self.since)})"

    async def _wait(self) -> None:
        """See that it is drawn."""
        while not self.connected:
            self.touch()
            await asyncio.sleep(POLL_S)

    async def _start(self, client: Client, command: RunCampaign | ResumeSession) -> None:
        meanwhile = [
            asyncio.create_task(self._tell_preparing(client)),
            asyncio.create_task(self._preview(client)),
        ]
        try:
            reply = await client.ask(command)
        finally:
            for task in meanwhile:
                task.cancel()
            await asyncio.gather(*meanwhile, return_exceptions=True)
            self.preparing = ""
            self._end_preview()
        self.command, self.session = None, reply.session
        self.queued_behind = reply.queued_behind

    async def _tell_preparing(self, client: Client) -> None:
        with suppress(WorkbenchError):  # who asks for the run hears of it, too
            while True:
                status = await client.ask(GetStatus())
                self.preparing = status.preparing or f"{self.title}: "
                self.touch()
                await asyncio.sleep(POLL_S)

    async def _preview(self, client: Client) -> None:
        """Show a recording that ships, where the lab is not ready at once."""
        await asyncio.sleep(PREVIEW_AFTER_S)
        replay = Replay(PREVIEW_SPEED)
        with suppress(WorkbenchError):  # without it there is nothing to look at, and no harm done
            async for change in replay.changes(client, PREVIEW):
                if isinstance(change, SessionView):
                    self.live, self.previewing = Shown(change), PREVIEW
                else:
                    self.live.view.apply(change)
                self.touch()

    def _end_preview(self) -> None:
        if self.previewing:
            self.previewing, self.frozen, self.choice = "", None, ViewChoice()
            self.live = Shown(SessionView(self.title))
            self.touch()

    def _begin(self, shown: Shown) -> None:
        self.live, self.connected, self.lost, self.loss = shown, True, "", ""
        self.touch()

    def _why(self, error: WorkbenchError) -> str:
        what = error.what.rstrip(".")
        return f"{error.where} {what}" if error.where and error.where == self.session else what

    def _lose(self, why: str, loss: Loss) -> None:
        self.lost, self.loss = plain(why.removeprefix("the engine is gone; ")), loss
        self.touch()

    def _fold(self, event: Event) -> None:
        self.live.view.apply(event)
        tick = self.live.progress
        if tick is not None and tick.phase == "queued" and isinstance(event.fact, WAIT_ENDS):
            self.live.progress = None  # the next tick may be long in coming, or never come

    async def _consume(
        self, changes: AsyncIterator[Event | Tick] | AsyncIterator[Event | SessionView]
    ) -> None:
        pieces = Pieces()  # attaching late, or to a fast one, must not hold the keys up
        async for change in changes:
            match change:
                case Event():
                    self._fold(change)
                case SessionView():
                    self.live = Shown(change)
                case UsageTick():
                    self.live.usage = change
                case Progress():
                    self.live.progress = change
                case ControlLock():
                    self.control_lock = change
            self.touch()
            await pieces.give_way()


def _loss(error: WorkbenchError) -> Loss:
    if isinstance(error, EngineError):
        return "engine"
    return "session" if isinstance(error, SessionError) else "refused"


def _named(command: RunCampaign | ResumeSession | None) -> str:
    """What to call a session that has no name yet."""
    if command is None:
        return ""
    return command.session or (command.campaign if isinstance(command, RunCampaign) else "")
