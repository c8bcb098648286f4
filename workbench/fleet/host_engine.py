"""A lab host's side: its own engine measures shards into sessions of its own, durable first."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from workbench import files
from workbench.descriptors.loading import RESOLVED, LoadedCampaign, save_resolved
from workbench.domain.counts import counted
from workbench.domain.errors import LabError, UsageError, WorkbenchError
from workbench.domain.events import (
    BypassMeasured,
    Event,
    RunFinished,
    SampleTaken,
    TargetDeployed,
)
from workbench.domain.fleets import LabHost, PlannedPoint, ShardOrder, ShardResult
from workbench.domain.messages import (
    ExportSession,
    ListSessions,
    ResumeSession,
    RunCampaign,
    StopRun,
)
from workbench.domain.parameters import Configuration
from workbench.domain.projection import SessionView
from workbench.domain.sample_review import PointRequested, RequestPoint
from workbench.domain.sessions import SessionSummary
from workbench.engine.core import Engine
from workbench.engine.runs.sample_decisions import request_point
from workbench.fleet.lab_checks import must_be_able, says_nothing
from workbench.link.local import LocalClient
from workbench.link.paging import events_between
from workbench.log import logger
from workbench.store.bundle import digest_of, is_whole
from workbench.store.catalogue import session_path

log = logger("fleet")

FLEET = "fleet"
"""Who commands, as event logs name it."""
ABLE_S, ABLE_PAUSE_S = 60.0, 5.0
"""How long a lab may take to become able (what it needs may start after the worker, as Docker does
where a host was started again), and between looks."""


_scoring: list[str] = []
"""Who has this host score models now: a thread of its worker does, and its loop is asked."""


@contextmanager
def scoring(name: str) -> Iterator[None]:
    """This host scores models meanwhile, for whoever is named so."""
    _scoring.append(name)
    try:
        yield
    finally:
        _scoring.remove(name)


class NotExported(WorkbenchError):
    """A session that is measured to its end, of which no bundle could be made."""


class HostEngine:
    """Measures shards on this host, one at a time; what it has measured it never measures again."""

    def __init__(self, engine: Engine, host: LabHost) -> None:
        self.host = host
        self._engine = engine
        self._client = LocalClient(engine, FLEET)
        self._alone = asyncio.Lock()
        self._order: ShardOrder | None = None
        self._running = ""
        self._able: set[str] = set()
        """Labs that can measure here."""
        self._is_stopped = False
        """Whether what runs was told to end, maybe before the engine knew of it."""

    async def measure(self, order: ShardOrder) -> ShardResult:
        """A shard measured and stored; at once where it was before. Failures are results, too."""
        async with self._alone:
            # Before anything is awaited: a stop may come while the session is still read.
            self._order, self._running, self._is_stopped = order, order.session, False
            try:
                return await (self._more(order) if order.points else self._measured(order))
            except WorkbenchError as error:
                return ShardResult(
                    order.shard.key, self.host.name, order.session, failure=str(error),
                    is_measured=isinstance(error, NotExported),
                )  # fmt: skip
            finally:
                self._order, self._running = None, ""

    async def found(self, key: str, session: str) -> ShardResult | None:
        """The shard if it is finished here; None where it is not."""
        if not session_path(self._engine.workspace, session).is_file():
            return None
        view = await self._view(session)
        return await self._all_of(key, view, taken=0) if is_done(view) else None

    @property
    def exports(self) -> Path:
        return self._engine.workspace.exports

    def waits_for(self, session: str) -> str:
        """Who measures on this host before that session may, or scores models, as words; empty:
        nobody. One that this host is not at yet waits for what it is at, of whichever fleet."""
        at = self._running or next(iter(_scoring), "")
        if at and session != at:
            return at
        queue = self._engine.queue
        return queue.held_by if session in queue.waiting else ""

    def at_what(self) -> str:
        """What this host measures now and for which campaign, or which models it scores, as words;
        empty: nothing."""
        if self._order is None:
            return self.waits_for("")
        shard = self._order.shard
        many = f" ({counted(len(shard.configurations), 'configuration')})" * bool(
            shard.configurations
        )
        return f"{shard.target}{many} of {shard.campaign.name}, session {self._order.run}"

    async def stop(self, sessions: Collection[str]) -> None:
        """End what is measured now if it is one of these; the samples taken so far are kept."""
        if self._running in sessions:
            self._is_stopped = True
            await self._end(self._running)

    async def _end(self, session: str) -> None:
        with suppress(WorkbenchError):  # one that is not accepted yet is ended once it is
            await self._client.ask(StopRun(session, abort=True, by=FLEET))

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """What lies in this host's workspace; not the recordings that ship."""
        found = await self._client.ask(ListSessions())
        return tuple(one for one in found.sessions if one.kind == "session")

    async def must_be_able(self, lab: str) -> None:
        """Raises `LabError`, `PluginUnknown` where that lab cannot measure here within `ABLE_S`."""
        name = lab.partition(":")[0]
        why = says_nothing(name, self.host.name, ABLE_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(ABLE_S):
                while name not in self._able:
                    try:
                        await must_be_able(name, self.host.name)
                        self._able.add(name)
                    except LabError as error:
                        why = error
                        await asyncio.sleep(ABLE_PAUSE_S)
        if name not in self._able:
            raise why

    async def _measured(self, order: ShardOrder) -> ShardResult:
        path = session_path(self._engine.workspace, order.session)
        before = await self._view(order.session) if path.is_file() else None
        if before is not None and is_done(before):
            return await self._all_of(order.shard.key, before, taken=0)
        after = before.seq if before is not None else 0
        if before is None:
            await self._client.ask(self._begin(order))
        else:
            await self._client.ask(ResumeSession(order.session, pace=order.pace))
        if self._is_stopped:
            await self._end(order.session)
        taken = await self._to_the_end(order.session, after)
        view = await self._view(order.session)
        if not is_done(view):
            return self._unfinished(order, view, taken)
        return await self._all_of(order.shard.key, view, taken=taken)

    async def _more(self, order: ShardOrder) -> ShardResult:
        """Points that were planned elsewhere, into the session of the shard that they go on with;
        those that it has are not measured again."""
        session = order.session
        if not session_path(self._engine.workspace, session).is_file():
            raise UsageError("has not begun what is to go on", where=self.host.name)
        view = before = await self._view(session)
        if view.requested or not is_done(view):  # it was cut off
            view = await self._resumed(order, view)
        if is_done(view) and (wanted := not_measured(view, order)):
            for point in wanted:
                asked = RequestPoint(
                    session, order.shard.target, point.configuration, point.wl, FLEET
                )
                await request_point(self._engine.library, asked, FLEET)
            view = await self._resumed(order, view)
        taken = view.samples_taken - before.samples_taken
        if not is_done(view):
            return self._unfinished(order, view, taken)
        place = self.exports / f"{session}.{order.shard.key}.bundle"
        result = await self._result(order.shard.key, view, taken=taken, place=place)
        had, had_lab_s = 0, 0.0
        if len(not_measured(before, order)) < len(order.points):
            had, had_lab_s = await self._had(before, order.points)
        lab_s = view.lab_s - before.lab_s + had_lab_s
        return replace(result, samples=taken + had, lab_s=lab_s)

    async def _all_of(self, key: str, view: SessionView, *, taken: int) -> ShardResult:
        """Of a shard's own session, without points that were planned elsewhere since: these are of
        orders of their own."""
        result = await self._result(key, view, taken=taken)
        if taken < result.samples:
            had, had_lab_s = await self._had(view)
            if had < result.samples:
                return replace(result, samples=had, lab_s=had_lab_s)
        return result

    async def _had(
        self, view: SessionView, points: Sequence[PlannedPoint] = ()
    ) -> tuple[int, float]:
        """What a session has of these points, or of all that was not planned elsewhere: samples,
        and lab seconds of these and of the deployments that they began with.

        Raises `WorkbenchError`.
        """
        wanted = {(point.configuration, point.wl) for point in points}
        planned: set[tuple[Configuration, float]] = set()
        samples, lab_s, besides_s = 0, 0.0, 0.0
        async for event in events_between(self._client, view.session, 0, view.seq):
            match event.fact:
                case PointRequested(configuration=configuration, wl=wl, by=by) if by == FLEET:
                    planned.add((configuration, wl))
                case TargetDeployed() | BypassMeasured() as fact:
                    besides_s += fact.lab_s
                case SampleTaken(sample=sample):
                    place = sample.point.configuration, sample.point.wl
                    if place in wanted if points else place not in planned:
                        samples += 1
                        lab_s += besides_s + sample.lab_s
                    besides_s = 0.0
        return samples, lab_s

    def _unfinished(self, order: ShardOrder, view: SessionView, taken: int) -> ShardResult:
        """Who hears of the failure names host and configurations: a session's name is a key."""
        note = view.finished.note if view.finished else ""
        failure = f"its run is {view.state}" + (note and f": {note}")
        log.warning("shard not measured", session=order.session, why=failure)
        return ShardResult(
            order.shard.key, self.host.name, order.session, taken=taken, failure=failure
        )

    async def _resumed(self, order: ShardOrder, view: SessionView) -> SessionView:
        """Its session as it is at the end of another run. Raises `WorkbenchError`."""
        await self._client.ask(ResumeSession(order.session, pace=order.pace))
        if self._is_stopped:
            await self._end(order.session)
        await self._to_the_end(order.session, view.seq)
        return await self._view(order.session)

    def _begin(self, order: ShardOrder) -> RunCampaign:
        folder = self._engine.workspace.state / "shards"
        files.make_folder(folder)
        path = folder / f"{order.session}{RESOLVED}"
        save_resolved(LoadedCampaign(order.shard.campaign, order.descriptors), path)
        return RunCampaign(
            campaign=str(path),
            session=order.session,
            # A named lab: else a host that has lost its engine would simulate what others measure.
            lab=lab_of(self.host, order.lab) or order.shard.campaign.lab or "docker",
            seed=order.shard.seed,
            oversubscribe=order.oversubscribe,
            pace=order.pace,
        )

    async def _to_the_end(self, session: str, after: int) -> int:
        """Follow the run; how many samples it took."""
        taken, seq = 0, after

        def count(event: Event) -> bool:
            nonlocal taken, seq
            if event.seq > seq:
                seq = event.seq
                taken += isinstance(event.fact, SampleTaken)
                return isinstance(event.fact, RunFinished)
            return False

        async with self._client.follow(session) as feed:
            async for event in events_between(self._client, session, after, feed.view.seq):
                if count(event):
                    return taken
            async for change in feed.changes:
                if isinstance(change, Event) and count(change):
                    return taken
        return taken

    async def _view(self, session: str) -> SessionView:
        async with self._client.follow(session) as feed:
            return feed.view

    async def _result(
        self, key: str, view: SessionView, *, taken: int, place: Path | None = None
    ) -> ShardResult:
        """Of a session that is measured to its end. Raises `NotExported`."""
        place = place or self.exports / f"{view.session}.bundle"
        try:
            if not await asyncio.to_thread(is_whole, place):  # of a disk that has lost some of it
                files.make_folder(place.parent)
                await self._client.ask(ExportSession(view.session, "bundle", str(place)))
            digest = digest_of(place)
        except (WorkbenchError, OSError) as error:
            why = error.what if isinstance(error, WorkbenchError) else error.strerror or str(error)
            raise NotExported(
                f"its bundle cannot be written there: {why}",
                where=str(place),
                remedy="Make room there; the session itself is kept",
            ) from error
        return ShardResult(
            key,
            self.host.name,
            view.session,
            str(place),
            digest,
            view.samples_taken,
            taken,
            view.lab_s,
        )


def not_measured(view: SessionView, order: ShardOrder) -> tuple[PlannedPoint, ...]:
    """Of an order's points, those that its session neither has nor waits for."""
    waits = {(each.configuration, each.wl) for each in view.requested}
    found = []
    for point in order.points:
        place = view.configuration(f"{order.shard.target}/{point.configuration.key}")
        loads = {sample.wl for sample in place.samples} if place is not None else set()
        if point.wl not in loads and (point.configuration, point.wl) not in waits:
            found.append(point)
    return tuple(found)


def is_done(view: SessionView) -> bool:
    return view.finished is not None and view.finished.outcome == "done"


def lab_of(host: LabHost, wanted: str | None) -> str | None:
    """The lab that a host measures with: as the campaign's run asks, with what the host is."""
    if host.kind != "simulated":
        return wanted or host.lab or None
    lab = next((lab for lab in (wanted, host.lab) if lab and lab.partition(":")[0] == "sim"), "sim")
    from workbench.labs.simulated.options import SimulationOptions

    _, _, given = lab.partition(":")
    usual = SimulationOptions.parse(given)
    own = [given] if given else []
    if host.speed != 1.0:
        own.append(f"host_speed={usual.host_speed * host.speed:g}")
    if host.noise != 1.0:
        own += [f"{name}={getattr(usual, name) * host.noise:g}" for name in LUCK]
    return f"sim:{','.join(own)}" if own else "sim"


def one_lab_kind(hosts: Sequence[LabHost], wanted: str | None) -> str:
    """The kind of lab that all hosts measure with, `docker` where nobody says.

    Raises `UsageError` where they would not measure alike: figures of two kinds of lab never meet
    in one session.
    """
    kinds: dict[str, list[str]] = {}
    for host in hosts:
        kind = (lab_of(host, wanted) or "docker").partition(":")[0]
        kinds.setdefault(kind, []).append(host.name)
    if len(kinds) > 1:
        told = "; ".join(f"{kind} of {', '.join(names)}" for kind, names in kinds.items())
        raise UsageError(
            f"its hosts have labs of different kinds: {told}",
            where="hosts file",
            remedy="Give all hosts one kind of lab, or measure the campaign once for each kind",
        )
    return next(iter(kinds))


LUCK = ("window_sd", "tail_sd", "jitter_sd", "delay_sd", "restart_sd", "drift_sd")
"""Options of the simulated lab that a host's `noise` multiplies."""
