"""Sessions of campaigns that a fleet measures: what is planned and how the hosts stand, until the
shards are folded into the session that takes their place."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.domain.errors import SessionError, SessionReplaced, SessionTaken, UsageError
from workbench.domain.events import (
    CampaignPlanned,
    Noted,
    Progress,
    RunFinished,
    RunStarted,
    StopRequested,
)
from workbench.domain.fleet_requests import BeginFleetSession, EndFleetSession, ReportFleet
from workbench.domain.fleets import FleetSeen
from workbench.domain.projection import SessionView
from workbench.engine.sessions.channel import Channel
from workbench.engine.sessions.clock import now
from workbench.engine.sessions.library import Library
from workbench.log import logger
from workbench.probes.process import started

LOOK_S = 2.0
"""Between looks at whether the process that measures is there."""
TRIES, PAUSE_S = 100, 0.1
"""A session that somebody reads at this moment is replaced a moment later."""

log = logger("engine.fleet")


@dataclass
class FleetRunHere:
    """A campaign that a process of this host has measured by a fleet."""

    channel: Channel
    pid: int
    began: float | None
    """When that process started: its number may be another's later."""
    before: RunFinished | None = None
    """How the session of shards that it completes had ended."""

    @property
    def is_there(self) -> bool:
        return self.began is not None and started(self.pid) == self.began


class FleetSessions:
    """Those that are measured now, by name."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._open: dict[str, FleetRunHere] = {}
        self._one_at_a_time = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None

    def __contains__(self, session: str) -> bool:
        return session in self._open

    async def begin(self, request: BeginFleetSession) -> None:
        """Raises `SessionTaken` where a session of that name is anything else."""
        name = request.session
        async with self._one_at_a_time:
            here = self._open.get(name)
            if here is not None and here.is_there:
                if here.pid == request.pid:
                    return
                raise SessionTaken(f"is being measured by process {here.pid}", where=name)
            if here is not None:
                await self._let_go(name)
            resumed = self._library.file_of(name).exists()
            channel = await self._again(name) if resumed else await self._new(request)
            before = channel.view.finished if channel.view.shards else None
            self._open[name] = FleetRunHere(channel, request.pid, started(request.pid), before)
            await channel.record(RunStarted(resumed, None))
            await channel.record(request.seen)
            if not resumed:
                await self._library.note(channel)
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())

    async def _new(self, request: BeginFleetSession) -> Channel:
        await self._library.new_name(request.session, "")  # refuses the name of a recording
        channel = await self._library.create(request.session, request.created, now())
        await channel.record(CampaignPlanned(request.plan))
        return channel

    async def _again(self, name: str) -> Channel:
        async with self._library.borrow(name) as channel:
            view = channel.snapshot()
        if not (view.on_hosts or lacks_shards(view)):
            raise SessionTaken("exists already", where=name, remedy="Choose another --session")
        return await self._library.revive(name)

    async def report(self, request: ReportFleet) -> None:
        """Raises `SessionError` for a session that nobody began."""
        channel = self._measured(request.session).channel
        for text in request.notes:
            await channel.record(Noted("info", text))
        if request.seen is not None:
            await channel.record(request.seen)
            if (fleet := channel.view.fleet) is not None:
                channel.tick(_progress(channel.view, fleet))

    async def end(self, request: EndFleetSession) -> None:
        """Its file is closed, or another one takes its place."""
        name = request.session
        async with self._one_at_a_time:
            here = self._measured(name)
            if request.finished is not None:
                await here.channel.record(_finished(request.finished, here.before))
            await self._let_go(name)
            if request.folded:
                await self._replace(name, Path(request.folded))

    async def stop(self, session: str, by: str, *, abort: bool) -> None:
        """Written down: the process that measures follows the session."""
        await self._measured(session).channel.record(StopRequested(by, abort))

    async def refuse_measuring(self, session: str) -> None:
        """Raise `UsageError` where it is hosts of a fleet that measure it, or have: samples of this
        host would be taken for those of one of them."""
        async with self._library.borrow(session) as channel:
            view = channel.snapshot()
        if view.on_hosts or lacks_shards(view):
            raise UsageError(
                "is measured by a fleet",
                where=session,
                remedy=f"Go on with `{view.fleet_command}`",
            )
        if view.shards:
            raise UsageError(
                "holds what hosts of a fleet measured, and no factor says how this host compares",
                where=session,
                remedy="Measure it again with `workbench run CAMPAIGN`, or with --fleet HOSTS",
            )

    async def close(self) -> None:
        """Those under way are interrupted here; their hosts go on."""
        if self._looking is not None:
            self._looking.cancel()
        for name in tuple(self._open):
            await self._let_go(name)

    def _measured(self, name: str) -> FleetRunHere:
        here = self._open.get(name)
        if here is None:
            raise SessionError("is not measured by a fleet now", where=name)
        return here

    async def _let_go(self, name: str) -> None:
        here = self._open.pop(name)
        await self._library.release(here.channel)

    async def _replace(self, name: str, folded: Path) -> None:
        told = SessionReplaced("holds all samples of its hosts now", where=name)
        for left in reversed(range(TRIES)):
            try:
                async with self._library.closed(name, told) as path:
                    await asyncio.to_thread(os.replace, folded, path)
            except OSError as error:
                raise SessionError(
                    f"cannot be put in its place: {error.strerror}", where=str(folded)
                ) from None
            except SessionError:
                if not left:
                    raise
                await asyncio.sleep(PAUSE_S)
            else:
                return

    async def _look(self) -> None:
        """Interrupt the sessions of processes that are gone."""
        while self._open:
            await asyncio.sleep(LOOK_S)
            for name, here in tuple(self._open.items()):
                try:
                    await self._look_at(name, here)
                except Exception as error:  # the others are to be looked at, too
                    log.error("a fleet's session was not looked at", session=name, exc_info=error)

    async def _look_at(self, name: str, here: FleetRunHere) -> None:
        if not here.is_there:
            log.warning("who measured it is gone", session=name, pid=here.pid)
            with suppress(SessionError, KeyError):
                await self._let_go(name)


def lacks_shards(view: SessionView) -> bool:
    """Whether it holds what hosts measured of a campaign, and not all of that: a fleet may complete
    it. Trials of this host stand in its way: those of no host are in what takes its place."""
    whole = view.finished is not None and view.finished.outcome == "done"
    return bool(view.shards) and not whole and not view.trials


def _finished(now: RunFinished, before: RunFinished | None) -> RunFinished:
    """What a session that was not completed says in the end: what it holds is as it was."""
    return now if before is None else replace(before, outcome=now.outcome, note=now.note)


def _progress(view: SessionView, fleet: FleetSeen) -> Progress:
    """As screens show how far a run is: samples of the shards that are finished, which the campaign
    has planned; those at anchor points it has not."""
    there, hosts = fleet.there, len(fleet.hosts)
    return Progress(
        session=view.session,
        phase="measuring" if any(host.does == "measuring" for host in fleet.hosts) else "waiting",
        target="",
        configuration=None,
        wl=None,
        samples=sum(host.samples - host.anchor_samples for host in fleet.hosts),
        samples_planned=view.plan.samples if view.plan else 0,
        lab_s=fleet.lab_s,
        eta_s=fleet.eta_s,
        note=f"{there} of {hosts} hosts",
    )
