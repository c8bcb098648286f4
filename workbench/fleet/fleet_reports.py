"""What others see of a campaign over a fleet while it is measured: its hosts, on every screen.

The command that runs it tells the workspace's engine, over the link as everybody else. What cannot
be told now is told a moment later, and measuring waits for none of it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from workbench.domain.errors import EngineError, WorkbenchError
from workbench.domain.events import Event, RunFinished, StopRequested
from workbench.domain.fleet_requests import BeginFleetSession, EndFleetSession, ReportFleet
from workbench.domain.fleets import FleetSeen, HostSeen
from workbench.domain.messages import ListEvents, Request
from workbench.fleet.fleet_standing import FleetError
from workbench.link.client import Client
from workbench.log import logger

LOOK_S = 0.5
"""Between looks at how the hosts stand."""
MOST_NOTES = 200
"""Sentences that wait for an engine that does not answer."""
TOLD = ("FleetSeen", "Noted", "SampleDecided")
"""Events that the folded session takes over."""

R = TypeVar("R")

log = logger("fleet")
Connect = Callable[[], Awaitable[Client]]


class StopAsked:
    """Whether somebody asks for the end of a campaign, at its command or on a screen.

    Attributes
    ----------
    by : who, once `asked` is set.
    """

    def __init__(self) -> None:
        self.asked, self.by = asyncio.Event(), ""

    def ask(self, by: str) -> None:
        self.by = self.by or by
        self.asked.set()


class FleetReports:
    """One campaign's session in the workspace's engine.

    Parameters
    ----------
    connect : to the engine; starts it where none runs.
    begin : how the session begins.
    stop : told of who asks for the end on a screen.
    """

    def __init__(
        self, connect: Connect, begin: BeginFleetSession, stop: StopAsked | None = None
    ) -> None:
        self._connect, self._begin = connect, replace(begin, pid=os.getpid())
        self._client: Client | None = None
        self._following: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._notes: list[str] = []
        self._known: dict[str, HostSeen] = {}
        self._counts: tuple[int, ...] = ()
        self._unreported = ""
        self._one_at_a_time = asyncio.Lock()
        self.stop = stop or StopAsked()

    @property
    def session(self) -> str:
        return self._begin.session

    async def begin(self, look: Callable[[], Awaitable[FleetSeen | None]]) -> None:
        """From now on what changes is reported, until `end` or `close`.

        Raises `SessionTaken` where a session of that name is anything else.
        """
        await self._connected()
        self._watching = asyncio.create_task(self._watch(look))

    def note(self, text: str) -> None:
        """A sentence for the session's events."""
        self._notes.append(text)
        del self._notes[:-MOST_NOTES]

    async def _watch(self, look: Callable[[], Awaitable[FleetSeen | None]]) -> None:
        while True:
            with suppress(WorkbenchError):
                if self._following is None or self._following.done():
                    # The engine has ended, and the next one knows of nothing before it is told.
                    await self._hang_up()
                    await self._connected()
                await self._report(await look())
            await asyncio.sleep(LOOK_S)

    async def _report(self, seen: FleetSeen | None) -> None:
        changed = None
        if seen is not None:
            hosts = tuple(host for host in seen.hosts if self._known.get(host.name) != host)
            counts = (seen.shards, seen.measured, seen.set_aside)
            if hosts or counts != self._counts:
                changed = replace(seen, hosts=hosts)
        notes = tuple(self._notes)
        if changed is None and not notes:
            return
        try:
            await self._ask(ReportFleet(self.session, changed, notes))
        except WorkbenchError as error:
            if self._unreported != str(error):  # it is tried again twice a second
                log.warning("not reported", session=self.session, why=str(error))
            self._unreported = str(error)
            raise
        self._unreported = ""
        del self._notes[: len(notes)]
        if changed is not None:
            self._known |= {host.name: host for host in changed.hosts}
            self._counts = (changed.shards, changed.measured, changed.set_aside)

    async def told(self) -> tuple[Event, ...]:
        """All that was reported and decided, of runs before as well. Raises `FleetError` where the
        engine does not say it: the folded session, which takes the place of this one, would be
        without the decisions on its samples."""
        found: list[Event] = []
        try:
            await self._report(None)
            while True:
                after = found[-1].seq if found else 0
                page = await self._ask(ListEvents(self.session, after=after, kinds=TOLD))
                if not page.events:
                    return tuple(found)
                found += page.events
        except WorkbenchError as error:
            raise FleetError(
                f"what was decided on its samples cannot be read: {error.what}",
                where=self.session,
                remedy="Nothing is lost: the hosts keep what they measured, and the same command "
                f"with --session {self.session} goes on",
            ) from error

    async def end(self, finished: RunFinished | None = None, folded: str = "") -> None:
        """Raises `WorkbenchError` where the folded session could not be put in its place."""
        await self._watch_no_more()
        try:
            await self._ask(EndFleetSession(self.session, finished, folded))
        finally:
            await self.close()

    async def close(self) -> None:
        """Hang up; the session is interrupted once this process ends."""
        await self._watch_no_more()
        await self._hang_up()

    async def _watch_no_more(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _hang_up(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _ask(self, request: Request[R]) -> R:
        """The reply; where the engine went away, of the one that is started in its place."""
        try:
            return await (await self._connected()).ask(request)
        except EngineError:
            await self._hang_up()
            return await (await self._connected()).ask(request)

    async def _connected(self) -> Client:
        async with self._one_at_a_time:
            if self._client is None:
                client = await self._connect()
                try:
                    await client.ask(self._begin)
                except BaseException:
                    await client.close()
                    raise
                self._client = client
                self._known, self._counts = {}, ()  # it was told how they were in the beginning
                self._following = asyncio.create_task(self._follow(client))
            return self._client

    async def _follow(self, client: Client) -> None:
        """Hear who asks for the end, on whatever screen."""
        with suppress(WorkbenchError, OSError):
            async with client.follow(self.session) as feed:
                async for change in feed.changes:
                    if isinstance(change, Event) and isinstance(change.fact, StopRequested):
                        self.stop.ask(change.fact.by)
