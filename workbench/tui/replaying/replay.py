"""Plays the stored events of a session through the same screens as a live one.

Events come in pages and are folded as they are due. Whoever goes somewhere else gets the view as of
there from the engine, and plays on from it: however long a session is, no more than a page and a
view of it is held here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from workbench.domain.errors import WorkbenchError
from workbench.domain.events import Event, ModelFitted, SampleTaken
from workbench.domain.messages import ListEvents, ViewSession
from workbench.domain.projection import SessionView
from workbench.domain.timeline import (
    LONGEST_GAP_S,
    FindMoment,
    GetTimeLine,
    TimeLine,
    TimeMark,
)
from workbench.link.client import Client
from workbench.tui.draw_throttle import DrawThrottle

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1000.0)
PAGE = 200
MOST_LATE_S = 0.25
"""How much of what it is behind a replay makes up for; a slow host plays slower beyond that."""

BURST = 100
"""Events that are folded while the host measures before it is looked at what they cost."""


class Replay:
    """A session's events at `speed` times their own pace; pace and place change at any time.

    Parameters
    ----------
    start : number of the event to begin after, held there; None: from the first, playing.
    """

    def __init__(self, speed: float = 1.0, start: int | None = None) -> None:
        self.speed = speed
        self.paused = start is not None
        self.ended = False
        self.line: TimeLine | None = None
        """Once the engine has told."""
        self.seq = 0
        """Of the event that was shown last."""
        self.at = 0.0
        """Its time, as the session knew it."""
        self._wanted: int | None = start
        """Where to go: as of that event."""
        self._steps = 0
        """Samples to go on, or back."""
        self._left_s: float | None = None
        """Of the session's time until the next event."""
        self._late_s = 0.0
        self._burst = 0
        """Events since it was looked at what they cost."""
        self._turned = asyncio.Event()

    async def changes(
        self,
        client: Client,
        session: str,
        focus: Callable[[], str] = lambda: "",
        pace: DrawThrottle | None = None,
        ending: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[Event | SessionView]:
        """Every event when it is due, and a view where it does not follow from the one before.

        `focus` says which configuration is looked at (its key). While the host measures, `pace`
        holds it to its share of a core, as drawing is. `ending` is called at the end, which is
        known only after the last event was shown.
        """
        pace = pace or DrawThrottle(lambda: client.share)
        line = await client.ask(GetTimeLine(session))
        if not line.last_seq:
            raise WorkbenchError("it holds no events to replay", where=session)
        self.line, self.at = line, line.started_at
        if self._wanted is None:
            yield SessionView(session)  # what there is of it can be seen before its events come
        pages = _Pages(client, session)
        while True:
            if self._wanted is not None:
                seq, self._wanted = self._wanted, None
                yield await self._view(client, session, seq, focus())
                pages.begin_after(self.seq)
                async for fitted in self._fits(pages):
                    yield fitted
            elif self._steps < 0:
                self._wanted = await self._samples_back(client, session)
            elif (event := await pages.next()) is None:
                self._steps, self.ended = min(0, self._steps), True
                ending()
                await self._until_turned()
            elif self._steps > 0:
                yield self._shown(pages, event)
                if isinstance(event.fact, SampleTaken):
                    async for fitted in self._fits(pages):
                        yield fitted
                    self._steps = max(0, self._steps - 1)
            elif self.paused:
                await self._until_turned()
            elif await self._is_due(event):
                yield self._shown(pages, event)
                await self._keep_to(pace, client)

    # ------------------------------------------------------------------ knobs

    def pause(self) -> None:
        self.paused = True
        self._turned.set()

    def play(self) -> None:
        """Go on; from the end, from the start again."""
        if self.ended:
            self.go_to(0)
        self.paused = False
        self._turned.set()

    def faster(self) -> None:
        self._turn(next((s for s in SPEEDS if s > self.speed), SPEEDS[-1]))

    def slower(self) -> None:
        self._turn(next((s for s in reversed(SPEEDS) if s < self.speed), SPEEDS[0]))

    def step(self, samples: int) -> None:
        """Show so many samples more, or fewer, and hold there."""
        self.paused = True
        self._steps += samples
        self.ended = self.ended and samples > 0
        self._turned.set()

    def go_to(self, seq: int) -> None:
        """Show the session as of an event; it plays on from there, or is held as before."""
        self.paused = self.paused or self.ended  # what had ended does not start by itself
        self._wanted, self._steps, self.ended = max(0, seq), 0, False
        self._turned.set()

    def mark(self, direction: int) -> TimeMark | None:
        """The next mark on the time line, or the one before (-1)."""
        marks = self.line.marks if self.line else ()
        if direction > 0:
            return next((mark for mark in marks if mark.seq > self.seq), None)
        return next((mark for mark in reversed(marks) if mark.seq < self.seq), None)

    # ------------------------------------------------------------------ places

    async def _view(self, client: Client, session: str, seq: int, focus: str) -> SessionView:
        if seq:
            reply = await client.ask(ViewSession(session, until=seq, focus=focus))
            view = reply.view
        else:
            view = SessionView(session)
        assert self.line is not None
        self.seq, self.at = view.seq, view.at or self.line.started_at
        self._left_s, self._late_s = None, 0.0
        return view

    async def _samples_back(self, client: Client, session: str) -> int:
        """The event of the sample that is as many steps back as are wanted."""
        seq = await _sample_before(client, session, self.seq + 1)
        while self._steps < 0 and seq:
            self._steps += 1
            seq = await _sample_before(client, session, seq)
        self._steps = 0
        return seq

    async def _fits(self, pages: _Pages) -> AsyncIterator[Event]:
        """What was concluded from a sample belongs to it."""
        while (event := await pages.next()) is not None and isinstance(event.fact, ModelFitted):
            yield self._shown(pages, event)

    def _shown(self, pages: _Pages, event: Event) -> Event:
        pages.take()
        self.seq, self.at, self._left_s = event.seq, event.at, None
        return event

    # ------------------------------------------------------------------ time

    def _turn(self, speed: float) -> None:
        self.speed = speed
        self._turned.set()

    async def _until_turned(self) -> None:
        self._turned.clear()
        if self._wanted is None and not self._steps:
            await self._turned.wait()

    async def _is_due(self, event: Event) -> bool:
        """Wait for the event's time; False if something else is wanted meanwhile."""
        loop = asyncio.get_running_loop()
        if self._left_s is None:
            self._left_s = min(max(0.0, event.at - self.at), LONGEST_GAP_S)
        wait_s = self._left_s / self.speed - self._late_s
        if wait_s <= 0:
            self._late_s = min(-wait_s, MOST_LATE_S)
            return True
        self._turned.clear()
        if self._wanted is not None or self._steps or self.paused:
            return False
        begun, pace = loop.time(), self.speed
        try:
            async with asyncio.timeout(wait_s):
                await self._turned.wait()
        except TimeoutError:
            self._late_s = min(loop.time() - begun - wait_s, MOST_LATE_S)
            return True
        self._left_s = max(0.0, self._left_s - (loop.time() - begun + self._late_s) * pace)
        self._late_s = 0.0
        return False

    async def _keep_to(self, pace: DrawThrottle, client: Client) -> None:
        """After a burst, wait until what it cost is our share; what somebody asks ends the wait."""
        self._burst += 1
        if self._burst < BURST:
            return
        self._burst = 0
        self._turned.clear()
        while client.share is not None and (left := pace.wait_s) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, 1.0)):  # the share may change
                    await self._turned.wait()
                    break
        pace.drawing()


class _Pages:
    """The events of a session from a place on, fetched a page at a time."""

    def __init__(self, client: Client, session: str) -> None:
        self._client, self._session = client, session
        self._events: deque[Event] = deque()
        self._after = 0

    def begin_after(self, seq: int) -> None:
        self._events.clear()
        self._after = seq

    async def next(self) -> Event | None:
        """The next event, which stays the next until it is taken; None at the end."""
        if not self._events:
            page = await self._client.ask(ListEvents(self._session, self._after, PAGE))
            self._events.extend(page.events)
        return self._events[0] if self._events else None

    def take(self) -> None:
        self._after = self._events.popleft().seq


async def _sample_before(client: Client, session: str, seq: int) -> int:
    """The event of the last sample before an event; 0 where there is none."""
    try:
        found = await client.ask(FindMoment(session, sample_before=seq))
    except WorkbenchError:
        return 0
    return found.seq
