"""One session as it stands, and those who follow it.

Every fact goes the same way: committed by the store, folded into the view, handed to followers.
A follower's queue is bounded; what falls out of it is read again from the store, so a slow reader
costs no memory and misses no event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from workbench.domain.errors import WorkbenchError
from workbench.domain.event_log import LogLine
from workbench.domain.events import Event, Fact, ModelFitted, SampleTaken, Tick
from workbench.domain.projection import SessionView
from workbench.domain.samples import Measurement, Sample
from workbench.domain.sessions import UNDER_WAY
from workbench.engine.sessions.clock import now
from workbench.engine.sessions.finishing import to_the_end
from workbench.measuring.records import Drive
from workbench.store.session_file import SessionFile

if TYPE_CHECKING:  # its imports take longer than a command that only asks
    from workbench.measuring.container_totals import ContainerTotals

QUEUE = 256
"""Events that a follower may lag behind before it is served from the store."""


AGAIN = 32
"""Events that are read again at a time for one that lags behind: they wait in memory for it."""


class Publisher(Protocol):
    """What a run needs of a channel."""

    @property
    def view(self) -> SessionView: ...

    @property
    def broken(self) -> bool: ...

    async def mend(self) -> tuple[Event, ...]: ...

    async def record(self, fact: Fact, measurement: Measurement | None = None) -> Event: ...

    def tick(self, tick: Tick) -> None: ...

    def count(self, target: str, drive: Drive) -> None: ...

    def end(self, error: WorkbenchError | None = None) -> None: ...


class Channel:
    """A session file, the fold of its events, and its followers."""

    def __init__(self, file: SessionFile, view: SessionView | None = None) -> None:
        self.file = file
        self._view = view
        self.heard: Callable[[Event, SessionView], None] | None = None
        """Told of every event that is recorded; returns at once."""
        self.live = False
        """A run of this engine writes to it."""
        self.last_ticks: dict[type, Tick] = {}
        self.last_samples: dict[str, Sample] = {}
        """By target; for the figures that a monitoring system asks for."""
        self.found_at: dict[tuple[str, str, str, str], float] = {}
        """When a breakpoint that still stands was found at first, while this was open: by target,
        configuration, rule and KPI."""
        self._followers: set[Following] = set()
        self._recording = asyncio.Lock()

    @property
    def view(self) -> SessionView:
        """The fold of its events, from `fold` on."""
        assert self._view is not None
        return self._view

    async def fold(self) -> None:
        """Find out how the session stands, unless that is known; of a long one it takes a while."""
        if self._view is None:
            self._view = await self.file.view()

    @property
    def followed(self) -> bool:
        return bool(self._followers)

    @property
    def followers(self) -> int:
        return len(self._followers)

    async def record(self, fact: Fact, measurement: Measurement | None = None) -> Event:
        """Commit a fact, then show it to everybody.

        Who is cancelled meanwhile (an abort) waits for that: what is in the file is in the view.
        """
        return await to_the_end(self._record(fact, measurement))

    async def _record(self, fact: Fact, measurement: Measurement | None) -> Event:
        async with self._recording:  # events are seen in the order of their numbers
            # An engine before this one may have had a clock that was ahead.
            at = max(now(), self._view.at if self._view is not None else 0.0)
            event = await self.file.append(fact, at=at, measurement=measurement)
            self._show(event)
        return event

    @property
    def broken(self) -> bool:
        """A write failed: nothing can be recorded until the file is opened anew."""
        return self.file.broken

    async def mend(self) -> tuple[Event, ...]:
        """Open the file anew after a failed write; the events that are in it all the same.

        Raises `SessionError` as long as it cannot be opened, or another one lies there: then all
        that is stored is in memory alone, and stays open.
        """
        async with self._recording:
            self.file.refuse_displaced()
            await self.file.close()
            self.file = await SessionFile.open(self.file.path)
            stored = await self.file.events(self.view.seq)
            for event in stored:
                self._show(event)
        return stored

    async def rescue(self, path: Path) -> None:
        """Write everything that it holds to another file, and go on with that."""
        async with self._recording:
            await self.file.write_again(path)
            await self.file.close()
            self.file = await SessionFile.open(path)

    def _show(self, event: Event) -> None:
        self.view.apply(event)
        if isinstance(event.fact, SampleTaken):
            self.last_samples[event.fact.sample.point.target] = event.fact.sample
        elif isinstance(event.fact, ModelFitted):
            self._note_breakpoints(event.at, event.fact)
        for follower in self._followers:
            follower.offer(event)
        if self.heard is not None:
            self.heard(event, self.view)

    def _note_breakpoints(self, at: float, fitted: ModelFitted) -> None:
        for one in fitted.breakpoints:
            key = (one.target, one.configuration.key, one.rule, one.kpi)
            if one.state == "found":
                self.found_at.setdefault(key, at)
            else:
                self.found_at.pop(key, None)

    @cached_property
    def totals(self) -> ContainerTotals:
        """What a monitoring system asks for, too: from 0 on whenever a session is opened to be
        measured."""
        from workbench.measuring.container_totals import ContainerTotals

        return ContainerTotals()

    def count(self, target: str, drive: Drive) -> None:
        """Take a stretch of load that has ended into the totals."""
        self.totals.add(target, drive)

    def tick(self, tick: Tick) -> None:
        """Show something fleeting."""
        self.last_ticks[type(tick)] = tick
        for follower in self._followers:
            follower.offer_tick(tick)

    def follow(self) -> Following:
        """A follower from here on. Not a coroutine: no event can slip between view and queue."""
        following = Following(self, self.snapshot())
        self._followers.add(following)
        return following

    def unfollow(self, following: Following) -> None:
        self._followers.discard(following)

    def snapshot(self) -> SessionView:
        """A copy that others may fold on; of a session whose engine died, as `interrupted`."""
        view = self.view.copy()
        if not self.live:
            view.cut_off()
            view.log += [LogLine(view.seq, view.at, "warning", w) for w in self.file.damage]
        if not self.live and view.state in ("planned", *UNDER_WAY):
            view.state = "interrupted"
        return view

    def rest(self) -> None:
        """The run is over; followers stay, since the session may be resumed."""
        self.live = False
        self.last_ticks.clear()

    def end(self, error: WorkbenchError | None = None) -> None:
        """No more events will come; every follower's stream ends, or raises `error`."""
        for follower in self._followers:
            follower.end(error)


class Following:
    """One reader's place in a session: the view at `view.seq`, then every change after it."""

    def __init__(self, channel: Channel, view: SessionView) -> None:
        self.view = view
        self._channel = channel
        self._seq = view.seq
        self._queue: deque[Event] = deque(maxlen=QUEUE)
        self._again: deque[Event] = deque()
        self._ticks: dict[type, Tick] = dict(channel.last_ticks)
        self._changed = asyncio.Event()
        self._ended = False
        self._error: WorkbenchError | None = None

    @property
    def changes(self) -> Following:
        return self

    def offer(self, event: Event) -> None:
        self._queue.append(event)
        self._changed.set()

    def offer_tick(self, tick: Tick) -> None:
        self._ticks[type(tick)] = tick  # only the latest of a kind: ticks coalesce
        self._changed.set()

    def end(self, error: WorkbenchError | None = None) -> None:
        self._ended, self._error = True, error
        self._changed.set()

    def __aiter__(self) -> Following:
        return self

    async def __anext__(self) -> Event | Tick:
        while True:
            event = await self._next_event()
            if event is not None:
                self._seq = event.seq
                return event
            if self._ticks:
                return self._ticks.pop(next(iter(self._ticks)))
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()

    async def _next_event(self) -> Event | None:
        if self._again:
            return self._again.popleft()
        while self._queue and self._queue[0].seq <= self._seq:
            self._queue.popleft()
        if not self._queue:
            return None
        if self._queue[0].seq == self._seq + 1:
            return self._queue.popleft()
        # The reader was so slow that its queue ran over; the store has what fell out.
        self._again.extend(await self._channel.file.events(self._seq, AGAIN))
        return self._again.popleft()
