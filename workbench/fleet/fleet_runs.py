"""A campaign over a fleet, from its shards to the one session that they end in."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import __version__
from workbench.descriptors.loading import LoadedCampaign, load_campaign
from workbench.domain.counts import counted
from workbench.domain.errors import SessionTaken, Stopped, WorkbenchError
from workbench.domain.events import RunFinished, SessionCreated
from workbench.domain.fleet_requests import BeginFleetSession
from workbench.domain.fleets import Fleet, FleetRun, HostsCompared, ShardOrder
from workbench.domain.lab import HostFacts
from workbench.domain.messages import Viewed, ViewSession
from workbench.domain.profiles import Breakpoint
from workbench.domain.sessions import Outcome, Plan
from workbench.engine.runs.planning import make_plan
from workbench.fleet.anchor_judging import AnchorJudge
from workbench.fleet.begun_runs import Asks, id_of_run, must_keep_begun, new_id, only_one_begins
from workbench.fleet.central_planning import CentralPlanning, FleetRound, Measure
from workbench.fleet.cuts import (
    CampaignCut,
    cut_orders,
    keep_cut,
    measure_anchors_again,
    must_be_as_begun,
)
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.dispatched import Tell
from workbench.fleet.fleet_lifecycle import come_up, end_after, let_end
from workbench.fleet.fleet_looks import FleetLooks
from workbench.fleet.fleet_reports import Connect, FleetReports, StopAsked
from workbench.fleet.fleet_standing import (
    FleetError,
    FleetFolder,
    FleetStanding,
    SameFolder,
)
from workbench.fleet.folding import (
    FoldedAs,
    ShardSession,
    fold,
    lab_kind,
    put_in_place,
    read_piece,
)
from workbench.fleet.host_absence import HostAbsence
from workbench.fleet.host_engine import one_lab_kind
from workbench.fleet.leases import Leases
from workbench.fleet.ledger import Ledger
from workbench.fleet.scheduler_clients import SchedulerLost, connected
from workbench.labs.base import LabCosts
from workbench.models.host_factors import compare_hosts, on_reference, short_of_anchors
from workbench.models.host_terms import terms_of
from workbench.paths import Workspace
from workbench.sampling.shards import LEARN_ACROSS
from workbench.store.catalogue import check_name, fresh_name, session_path

if TYPE_CHECKING:
    from distributed import Client

    from workbench.link.client import Client as EngineClient

KEEPERS = 3
"""How often a fleet is started for one campaign without a shard finished in between."""


@dataclass(frozen=True)
class FleetOutcome:
    """What came of a campaign over a fleet."""

    session: str
    compared: HostsCompared | None
    note: str
    """What is missing, anchor points that models need included; empty where nothing is."""
    wall_s: float
    lab_s: dict[str, float]
    """By host, anchor points included."""
    samples: int
    """In the session."""
    anchor_samples: int
    """Besides, at the points that every host measures."""
    is_whole: bool
    """Whether all of the campaign was measured, and enough at the anchor points of all hosts that
    measured it; if not, the same command goes on with the rest."""
    anchor_lab_s: float = 0.0
    """Of `lab_s`, at anchor points, of all hosts."""


@dataclass(frozen=True)
class FleetWork:
    """A campaign as a fleet is to measure it: its shards, and for each host its anchor points."""

    loaded: LoadedCampaign
    asked: FleetRun
    fleet: Fleet
    workspace: Workspace
    name: str
    shards: tuple[ShardOrder, ...]
    own: Mapping[str, ShardOrder]
    looks: FleetLooks
    whole: Mapping[str, ShardOrder] = field(default_factory=dict)
    """Where all hosts are planned for in one place: of each shard, by key, what another host
    measures where the one that began it is lost; empty: each host plans for its shards."""
    cut: CampaignCut | None = None
    """What is kept of how it was cut; None: nothing."""


async def run_over_fleet(
    asked: FleetRun,
    fleet: Fleet,
    workspace: Workspace,
    tell: Tell,
    connect: Connect | None = None,
    stop: StopAsked | None = None,
) -> FleetOutcome:
    """Measure a campaign with all hosts of a fleet, and make one session of it.

    A fleet that is not up comes up for the campaign, and goes down after the last that is measured
    with it. Shards that were finished before, by a run of the same session's name that was cut off,
    are not measured again.

    Parameters
    ----------
    connect : to the workspace's engine, which shows meanwhile how the hosts stand; None: nobody is
        told before the end.
    stop : with `connect`: how the command's own person asks for the end.

    Raises
    ------
    SessionTaken, FleetError, Stopped
    UsageError : hosts have labs of different kinds, or the session was begun with another campaign.
    """
    loaded = await asyncio.to_thread(load_campaign, asked.campaign, workspace=workspace)
    async with only_one_begins(FleetFolder.of(workspace, fleet.name)):
        work = await _work(loaded, asked, fleet, workspace, connect)
        reports = await _begun(work, tell, connect, stop)
    if reports is None:
        return await _measured(work, tell, None)
    name, command = work.name, work.looks.command
    tell(f"watch it on the screens: `workbench` in a terminal, session {name}")

    def tell_all(text: str) -> None:
        tell(text)
        reports.note(text)

    try:
        return await _unless_stopped(_measured(work, tell_all, reports), reports, command)
    except WorkbenchError as error:
        outcome: Outcome = "stopped" if isinstance(error, Stopped) else "failed"
        with suppress(WorkbenchError):
            await reports.end(RunFinished(outcome, 0, 0, 0.0, 0.0, (), error.what))
        raise
    finally:
        await reports.close()


async def _work(
    loaded: LoadedCampaign,
    asked: FleetRun,
    fleet: Fleet,
    workspace: Workspace,
    connect: Connect | None,
) -> FleetWork:
    """What is to be measured, under which name and keys. Raises `UsageError`."""
    name = asked.session or fresh_name(workspace, loaded.campaign.name)
    check_name(name)
    folder = FleetFolder.of(workspace, fleet.name)
    kept = folder.run(name)
    is_there = session_path(workspace, name).exists()
    if connect is not None and not is_there:
        folder.forget_run(name)  # of a session that is there no more
        asked = replace(asked, id=new_id())
    else:
        asks = _asks(connect) if connect is not None else None
        asked = replace(asked, id=await id_of_run(asked, loaded.campaign, name, kept, asks))
    cut = await asyncio.to_thread(cut_orders, loaded, asked, fleet, name, kept)
    if is_there:
        must_be_as_begun(kept, cut.cut, name)
    total, in_rounds = len(cut.shards) + len(cut.own), bool(cut.whole)
    looks = FleetLooks(fleet, folder, cut.own, total, in_rounds=in_rounds)
    looks.command, looks.run = asked.command(name), asked.id
    work = FleetWork(
        loaded, asked, fleet, workspace, name, cut.shards, cut.own, looks, cut.whole, cut.cut
    )
    _lab_kind(work)
    return work


def _asks(connect: Connect) -> Asks:
    """Of the workspace's engine, which has its sessions open."""

    async def asked(request: ViewSession) -> Viewed:
        client = await connect()
        try:
            return await client.ask(request)
        finally:
            await client.close()

    return asked


async def _begun(
    work: FleetWork, tell: Tell, connect: Connect | None, stop: StopAsked | None
) -> FleetReports | None:
    """The session that is begun, once what it is begun with is kept; None: nobody is told of one.

    Raises
    ------
    SessionTaken, FleetError
    """
    name, asked = work.name, work.asked
    is_new = not session_path(work.workspace, name).exists()
    folder = FleetFolder.of(work.workspace, work.fleet.name)
    if connect is None and not is_new:
        raise SessionTaken("exists already", where=name, remedy="Choose another --session")
    if connect is None:
        must_keep_begun(folder.run(name), asked)
        _keep_cut(work, tell)
        return None
    if is_new:
        must_keep_begun(folder.run(name), asked)
    begin = BeginFleetSession(name, _created(work), _plan(work), work.looks.first, os.getpid())
    reports = FleetReports(_in_place(work.workspace, connect), begin, stop)
    try:
        await reports.begin(work.looks.look)
        if not is_new:  # of one that somebody else measures all stays as it is
            must_keep_begun(folder.run(name), asked)
    except WorkbenchError as error:
        await reports.close()
        if is_new and isinstance(error, SessionTaken):
            folder.forget_run(name)
        raise
    _keep_cut(work, tell)
    return reports


def _in_place(workspace: Workspace, connect: Connect) -> Connect:
    """The same, but no engine is started in a workspace that is made anew for it once the one that
    the campaign began in is gone."""
    began: list[SameFolder] = []

    async def connected_there() -> EngineClient:
        if began:
            began[0].must_be_there()
        client = await connect()
        began[:] = began or [SameFolder.of(workspace.root)]
        return client

    return connected_there


async def _unless_stopped(
    work: Coroutine[None, None, FleetOutcome], reports: FleetReports, command: str
) -> FleetOutcome:
    """What comes of it, unless somebody stops it. Raises `Stopped`."""
    measuring = asyncio.create_task(work)
    stopping = asyncio.create_task(reports.stop.asked.wait())
    try:
        await asyncio.wait((measuring, stopping), return_when=asyncio.FIRST_COMPLETED)
        if measuring.done():
            return measuring.result()
    finally:
        for task in (measuring, stopping):
            task.cancel()
        await asyncio.gather(measuring, stopping, return_exceptions=True)
    raise Stopped(
        f"was stopped by {reports.stop.by or 'somebody'}",
        where=reports.session,
        remedy=f"What was measured is kept. Go on with `{command}`",
    )


async def _measured(work: FleetWork, tell: Tell, reports: FleetReports | None) -> FleetOutcome:
    """From the hosts to the session that is in its place."""
    began = time.time()
    fleet, workspace, name = work.fleet, work.workspace, work.name
    method = work.loaded.campaign.sampling.method
    if work.whole:
        tell(f"{method} learns across configurations: points are planned here for all hosts")
    elif method in LEARN_ACROSS:
        tell(f"warning: {method} learns across configurations, here only within each shard")
    tell(
        f"{counted(len(work.shards), 'shard')}"
        f"{f' and {len(work.own)} of anchor points' * bool(work.own)} for "
        f"{counted(len(fleet.hosts), 'host')}, session {name}"
    )
    folder = FleetFolder.of(workspace, fleet.name)
    await let_end(folder)
    measure = _measures(work, tell)
    try:
        with Leases(folder.leases).contending(name, work.asked.priority):
            if work.whole:
                campaign, seed = work.loaded.campaign, work.asked.seed
                plan = CentralPlanning(campaign, seed, work.shards, work.whole, tell)
                dispatch = await plan.run(work.own, measure)
            else:
                dispatch = await measure(FleetRound(work.shards, work.own))
    finally:
        await end_after(workspace, fleet, tell)
    outcome, between = await folded_session(work, dispatch, began, reports)
    if reports is not None:
        await reports.end(folded=str(between))
    else:
        put_in_place(between, session_path(workspace, name))
    if outcome.is_whole:
        folder.forget_run(name)
    else:
        tell(f"`{work.asked.command(name)}` goes on with what is missing")
    return outcome


def _keep_cut(work: FleetWork, tell: Tell) -> None:
    """A command that goes on hands out the same shards, whatever hosts there are then."""
    if work.cut is None:
        return
    folder = FleetFolder.of(work.workspace, work.fleet.name).run(work.name)
    try:
        keep_cut(folder, work.cut)
    except OSError as error:
        tell(
            f"warning: what the campaign was cut into cannot be kept in {folder} "
            f"({error.strerror or error}): with another number of hosts the same command would "
            "measure all of it again"
        )


def _measures(work: FleetWork, tell: Tell) -> Measure:
    """Who hands a round to the hosts of the fleet, which comes up for it where it is not."""
    fleet, workspace, name = work.fleet, work.workspace, work.name
    folder = FleetFolder.of(workspace, fleet.name)
    leases = Leases(folder.leases)
    hosts = tuple(host.name for host in fleet.hosts)
    others = {host.name for host in fleet.hosts if host.kind != "simulated"}
    here = [host.name for host in fleet.hosts if host.name not in others]
    here += [path.name for path in folder.of_hosts() if path.name not in others]  # of before
    local = {name: Workspace(folder.host(name)).exports for name in here}
    loop = asyncio.get_running_loop()

    def from_thread(text: str) -> None:
        loop.call_soon_threadsafe(lambda: tell(text))

    absence = HostAbsence(tell)
    judge = AnchorJudge(work.own, work.loaded.campaign.kpi, from_thread)

    def made_of(client: Client, asked: FleetRound) -> Dispatch:
        dispatch = Dispatch(client, asked.orders, asked.own, Ledger(folder.run(name), local), tell)
        dispatch.bind(asked.bound)
        dispatch.mean_for(asked.meant_for)
        dispatch.in_rounds = asked.goes_on
        if asked.before is not None:
            dispatch.carry_on(asked.before)
        dispatch.hosts = {host.name: host for host in fleet.hosts}
        dispatch.share = work.asked.share
        dispatch.held = lambda: leases.refused(name, hosts)
        dispatch.queued, dispatch.absence = folder.any_queued, absence
        dispatch.unsteady = judge.unsteady
        work.looks.dispatch = dispatch
        return dispatch

    began = SameFolder.of(workspace.root)

    async def up() -> FleetStanding:
        began.must_be_there()
        return await come_up(fleet, workspace, tell, stays=False, had_hosts=absence.had_one)

    async def measure(asked: FleetRound) -> Dispatch:
        return await _dispatched(
            up,
            lambda client: made_of(client, asked),
            tell,
        )

    return measure


async def folded_session(
    work: FleetWork, dispatch: Dispatch, began: float, reports: FleetReports | None = None
) -> tuple[FleetOutcome, Path]:
    """All shards as one session file, which is not in its place yet."""
    campaign, name = work.loaded.campaign, work.name
    folder = FleetFolder.of(work.workspace, work.fleet.name)
    missing = dispatch.missing(work.shards)
    anchors, pieces = await _pieces(dispatch, work)
    if not pieces:
        why = "; ".join(missing)
        raise FleetError(f"nothing was measured: {why}", where=name, remedy=f"See {folder.log}")
    compared = compare_hosts({p.host: p.samples for p in anchors}, campaign.kpi)
    if compared is not None:
        compared = on_reference(compared, _breakpoints(pieces))
    short = _short_of_anchors(work, anchors, pieces, compared)
    note = _note(work, dispatch, pieces, compared, short)
    is_whole = not missing and not short and not _without_anchors(work, dispatch, pieces)
    told = await reports.told() if reports is not None else ()
    began = min([began, *(event.at for event in told[:1])])
    lab = lab_kind(((p.host, p.created.lab, p.created.host.is_emulated) for p in pieces), name)
    frame = FoldedAs(
        campaign, work.loaded.descriptors, lab,
        work.asked.seed, began, note, is_whole, told,
    )  # fmt: skip
    between = folder.run(name) / session_path(work.workspace, name).name
    await fold(pieces, frame, compared, between)
    lab_s: dict[str, float] = {}
    for gathered in dispatch.gathered.values():
        host = gathered.result.host
        lab_s[host] = lab_s.get(host, 0.0) + gathered.result.lab_s
    outcome = FleetOutcome(
        session=name,
        compared=compared,
        note=note,
        wall_s=time.time() - began,
        lab_s=lab_s,
        samples=sum(piece.finished.samples for piece in pieces),
        anchor_samples=sum(piece.finished.samples for piece in anchors),
        is_whole=is_whole,
        anchor_lab_s=sum(piece.gathered.result.lab_s for piece in anchors),
    )
    return outcome, between


def _note(
    work: FleetWork,
    dispatch: Dispatch,
    pieces: Sequence[ShardSession],
    compared: HostsCompared | None,
    short: Mapping[str, str],
) -> str:
    """What is missing of a campaign, and of what models need of it; empty where nothing is.

    Parameters
    ----------
    short : as of `_short_of_anchors`.
    """
    hosts = {piece.host for piece in pieces if piece.samples}
    missing = dispatch.missing(work.shards)
    needed = _without_anchors(work, dispatch, pieces)
    for host, order in work.own.items():
        if order.shard.key in dispatch.set_aside or host in needed:
            missing += [f"anchor points of {host}, {why}" for why in dispatch.missing([order])]
    said = [f"not measured: {'; '.join(missing)}"] if missing else []
    said += [f"too few samples at anchor points of {host} ({why})" for host, why in short.items()]
    alone = sorted(hosts - terms_of(compared, work.loaded.campaign.kpi).keys())
    if len(hosts) > 1 and alone:
        said.append(
            f"no anchor points tell how {', '.join(alone)} compare, so that no model learns from "
            "this session"
        )
        if short:
            said.append(
                f"see what is wrong with {', '.join(short)}: the same command measures its anchor "
                "points again; or measure the campaign under another name without it"
            )
        elif not needed and work.own.keys() >= set(alone):
            said.append(
                "they are valid, and measured again they would tell no more: measure the campaign "
                "under another name, with a range whose highest load is more than hosts carry"
            )
    return "; ".join(said)


def _short_of_anchors(
    work: FleetWork,
    anchors: Sequence[ShardSession],
    pieces: Sequence[ShardSession],
    compared: HostsCompared | None,
) -> dict[str, str]:
    """Hosts that are to measure their anchor points again, with how few samples there are valid,
    where some host has no factor for want of them; the same command has them measured."""
    hosts, kpi = {piece.host for piece in pieces if piece.samples}, work.loaded.campaign.kpi
    if len(hosts) < 2 or hosts <= terms_of(compared, kpi).keys():
        return {}
    found = {each.host: short_of_anchors(each.samples) for each in anchors if each.host in hosts}
    found = {host: why for host, why in found.items() if why}
    folder = FleetFolder.of(work.workspace, work.fleet.name).run(work.name)
    times = measure_anchors_again(folder, found)
    return {
        host: why + f"; measured {times[host]} times" * (times[host] > 1)
        for host, why in found.items()
    }


def _without_anchors(
    work: FleetWork, dispatch: Dispatch, pieces: Sequence[ShardSession]
) -> set[str]:
    """Hosts whose anchor points are to be measured yet: nothing tells how their samples compare
    with those of others. A host that measured nothing needs none, nor does one alone."""
    hosts = {piece.host for piece in pieces if piece.samples}
    if len(hosts) < 2:
        return set()
    return {h for h in hosts & work.own.keys() if work.own[h].shard.key not in dispatch.gathered}


def _breakpoints(pieces: Sequence[ShardSession]) -> dict[str, list[Breakpoint]]:
    """By the host that measured them."""
    found: dict[str, list[Breakpoint]] = {}
    for piece in pieces:
        found.setdefault(piece.host, []).extend(piece.finished.breakpoints)
    return found


def _lab_kind(work: FleetWork) -> str:
    """What kind of lab the hosts have, before one of them has said it. Raises `UsageError`."""
    return one_lab_kind(work.fleet.hosts, work.asked.lab or work.loaded.campaign.lab)


def _created(work: FleetWork) -> SessionCreated:
    """The session before any host has said what it is."""
    names = ", ".join(host.name for host in work.fleet.hosts)
    details = {"fleet": f"{counted(len(work.fleet.hosts), 'host')}: {names}"}
    unknown = HostFacts(_lab_kind(work), 0, 0, "unknown", "unknown", "none", "unknown", {}, details)
    return SessionCreated(
        work.loaded.campaign,
        work.loaded.descriptors,
        _lab_kind(work),
        work.asked.seed,
        unknown,
        __version__,
        None,
    )


def _plan(work: FleetWork) -> Plan:
    """Without what deployments cost, which the hosts know."""
    return make_plan(
        work.loaded.campaign,
        _lab_kind(work),
        LabCosts(0.0, 0.0, 0.0),
        ("the lab time is without deployments, of which each host knows what they cost",),
    )


async def _dispatched(
    up: Callable[[], Awaitable[FleetStanding]], made: Callable[[Client], Dispatch], tell: Tell
) -> Dispatch:
    """All shards measured or set aside; where the keeper dies, the fleet is started again, and the
    hosts are asked what they have finished."""
    starts, most = 0, 0
    while True:
        starts += 1
        standing = await up()
        dispatch = None
        try:
            async with connected(standing) as client:
                dispatch = made(client)
                await dispatch.run()
                return dispatch
        except SchedulerLost as error:
            if dispatch is not None and len(dispatch.gathered) > most:
                starts, most = 0, len(dispatch.gathered)
            if starts == KEEPERS:
                raise
            tell(f"{error.what}; it is asked again, and started where it is not up any more")


async def _pieces(
    dispatch: Dispatch, work: FleetWork
) -> tuple[list[ShardSession], list[ShardSession]]:
    """Anchors in the order of the hosts file, of which the first host is what the others are
    compared with, those of hosts that it has no more at the end; and the campaign's own, in its
    order."""
    gathered = dispatch.gathered

    async def read(orders: Iterable[ShardOrder]) -> list[ShardSession]:
        keys = (order.shard.key for order in orders)
        return [
            await asyncio.to_thread(read_piece, gathered[key]) for key in keys if key in gathered
        ]

    names = dict.fromkeys((*(host.name for host in work.fleet.hosts), *work.own))
    own = (work.own[name] for name in names if name in work.own)
    return await read(own), await read(work.shards)
