"""Plays the stored events of a session through the same screen as a live one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from workbench.domain.errors import WorkbenchError
from workbench.domain.events import Event
from workbench.domain.messages import EventPage, ListEvents
from workbench.link.client import Client

LONGEST_GAP_S = 3.0
"""What nobody wants to wait for in a replay, such as the night between a run and its resumption."""
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
PAGE = 1000


class Replay:
    """A session's events at `speed` times their own pace; pace and pause change at any time."""

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed
        self.paused = False
        self.ended = False
        self.started_at = 0.0
        self.ends_at = 0.0
        self.at = 0.0
        """Time of the event that was shown last, as the session knew it."""
        self._turned = asyncio.Event()

    async def events(self, client: Client, session: str) -> AsyncIterator[Event]:
        """Every event of the session, each when it is due."""
        stored = await _stored(client, session)
        if not stored:
            raise WorkbenchError("it holds no events to replay", where=session)
        self.started_at = self.at = stored[0].at
        self.ends_at = stored[-1].at
        for event in stored:
            await self._wait(min(max(0.0, event.at - self.at), LONGEST_GAP_S))
            self.at = event.at
            yield event
        self.ended = True

    def pause(self) -> None:
        self.paused = True
        self._turned.set()

    def play(self) -> None:
        self.paused = False
        self._turned.set()

    def faster(self) -> None:
        self._turn(next((s for s in SPEEDS if s > self.speed), SPEEDS[-1]))

    def slower(self) -> None:
        self._turn(next((s for s in reversed(SPEEDS) if s < self.speed), SPEEDS[0]))

    def _turn(self, speed: float) -> None:
        self.speed = speed
        self._turned.set()

    async def _wait(self, gap_s: float) -> None:
        """Wait for `gap_s` of the session's time; a change of pace counts from where it came."""
        loop = asyncio.get_running_loop()
        while self.paused or gap_s > 0:
            self._turned.clear()
            begun, pace = loop.time(), 0.0 if self.paused else self.speed
            try:
                async with asyncio.timeout(gap_s / pace if pace else None):
                    await self._turned.wait()
            except TimeoutError:
                return
            gap_s -= (loop.time() - begun) * pace


async def _stored(client: Client, session: str) -> list[Event]:
    found: list[Event] = []
    while True:
        page = await client.ask(
            ListEvents(session, after=found[-1].seq if found else 0, limit=PAGE)
        )
        if not isinstance(page, EventPage) or not page.events:
            return found
        found += page.events
        if found[-1].seq >= page.last_seq:
            return found
