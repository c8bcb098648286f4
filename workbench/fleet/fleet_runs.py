"""A campaign over a fleet, from its shards to the one session that they end in."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from workbench import __version__, files, locks
from workbench.descriptors.loading import LoadedCampaign, load_campaign
from workbench.domain import codec
from workbench.domain.counts import counted
from workbench.domain.errors import SessionTaken, Stopped, UsageError, WorkbenchError
from workbench.domain.events import RunFinished, SessionCreated
from workbench.domain.fleet_requests import BeginFleetSession
from workbench.domain.fleets import Fleet, FleetRun, HostsCompared, LabHost, ShardOrder
from workbench.domain.lab import HostFacts
from workbench.domain.profiles import Breakpoint
from workbench.domain.sessions import Outcome, Plan
from workbench.engine.runs.planning import make_plan
from workbench.fleet.anchor_judging import AnchorJudge
from workbench.fleet.central_planning import CentralPlanning, FleetRound, Measure
from workbench.fleet.cuts import CampaignCut, cut_orders, keep_cut
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.dispatched import Tell
from workbench.fleet.fleet_looks import FleetLooks
from workbench.fleet.fleet_reports import Connect, FleetReports
from workbench.fleet.fleet_standing import (
    FleetError,
    FleetFolder,
    FleetStanding,
    end_stray,
    is_keeper,
)
from workbench.fleet.folding import (
    FoldedAs,
    ShardSession,
    fold,
    lab_kind,
    put_in_place,
    read_piece,
)
from workbench.fleet.host_calls import SchedulerLost
from workbench.fleet.host_engine import one_lab_kind
from workbench.fleet.host_reaping import reap_hosts
from workbench.fleet.keeper import GRACE_S, STARTING_S, KeeperPosting, opened_errors
from workbench.fleet.leases import Leases
from workbench.fleet.ledger import Ledger
from workbench.fleet.named_scheduler import ANSWER_S, must_answer, secrets_of
from workbench.fleet.security import Secrets, configure, expired, made
from workbench.fleet.slurm_jobs import cancel_left, must_submit, remove_certificates
from workbench.labs.base import LabCosts
from workbench.models.host_factors import compare_hosts, on_reference
from workbench.models.host_terms import terms_of
from workbench.paths import Workspace
from workbench.sampling.shards import LEARN_ACROSS
from workbench.store.catalogue import check_name, fresh_name, session_path

if TYPE_CHECKING:
    from distributed import Client

POLL_S = 0.1
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
    """Whether all of the campaign was measured; if not, the same command goes on with the rest."""


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


# ------------------------------------------------------------------------- up and down


async def come_up(
    fleet: Fleet, workspace: Workspace, tell: Tell, *, stays: bool = True
) -> FleetStanding:
    """Start a fleet's keeper, and wait until no host is starting any more.

    Parameters
    ----------
    stays : until `fleet down`; else it ends with the last campaign that is measured with it, and
        one of its hosts is waited for as long as Slurm has any in its queue.

    Raises
    ------
    FleetError : none of the hosts is there, or in the queue of Slurm; or nothing keeps them up.
    UsageError : the fleet that is up cannot be used, or cannot be started like this.
    """
    folder = FleetFolder.of(workspace, fleet.name)
    async with _alone(folder):
        if (standing := folder.read()) is None:
            folder.clear()
            await _start_keeper(fleet, workspace, folder)
            tell(f"starting {counted(len(fleet.hosts), 'host')}")
            standing = folder.read()
        if standing is not None:  # not what was just asked for where another one was starting
            _must_suit(standing, fleet)
        if stays:
            folder.let_stay(True)
    standing = await _ready(folder, tell, stays)
    if standing is None:
        raise _keeper_gone(fleet, folder, "has ended")
    if not standing.any_up and not (stays and standing.any_queued):
        notes = [f"{h.name}: {h.note}" for h in standing.hosts if h.note]
        raise FleetError(
            "no host came up" + (f"; {notes[0]}" if notes else ""),
            where=fleet.name,
            remedy=f"See {folder.log}",
        )
    return standing


async def _ready(folder: FleetFolder, tell: Tell, stays: bool) -> FleetStanding | None:
    """A fleet once none of its hosts is starting, or after `STARTING_S`; None: its keeper died.
    Where it does not stay up without a campaign, that waits for the queue of Slurm as well."""
    deadline, told = time.monotonic() + STARTING_S, False
    while (standing := folder.read()) is not None and time.monotonic() < deadline:
        waits = not stays and standing.any_queued and not standing.any_up
        if standing.ready and not waits:
            break
        if waits:
            deadline = time.monotonic() + STARTING_S
            if not told:
                queued = next(host for host in standing.hosts if host.state == "queued")
                tell(f"{queued.name}: {queued.note}, and is waited for")
            told = True
        await asyncio.sleep(POLL_S)
    return standing


@asynccontextmanager
async def _alone(folder: FleetFolder) -> AsyncIterator[None]:
    """Nobody else starts or ends that fleet meanwhile. Raises `FleetError` after a while."""
    lock = folder.starting
    deadline = time.monotonic() + STARTING_S + GRACE_S
    while not lock.take(locks.own(folder.root)):
        if time.monotonic() > deadline:
            who = f" ({holder.pid})" if (holder := lock.holder()) else ""
            raise FleetError(
                f"is still being started or ended by another process{who}",
                where=folder.root.name,
                remedy=f"Try again later; {folder.log} says how far it is",
            )
        await asyncio.sleep(POLL_S)
    try:
        yield
    finally:
        lock.free()


def _must_suit(standing: FleetStanding, fleet: Fleet) -> None:
    """Raises `UsageError`, `FleetError` where the fleet that is up cannot be used."""
    if fleet.scheduler is None:
        fleet = replace(fleet, scheduler=standing.fleet.scheduler)
    if standing.fleet != fleet:
        raise UsageError(
            f"the fleet {fleet.name} is up with another hosts file",
            remedy="End it first with `workbench fleet down`",
        )
    if since := expired(standing.secrets):
        raise FleetError(
            f"its certificate expired on {since}",
            where=fleet.name,
            remedy="End the fleet with `workbench fleet down`, and start it again",
        )


async def _start_keeper(fleet: Fleet, workspace: Workspace, folder: FleetFolder) -> None:
    must_submit(fleet.hosts)
    secrets = await _secrets(fleet)
    posting = KeeperPosting(fleet, str(workspace.root), secrets)
    files.make_folder(folder.root)
    with opened_errors(folder.root / "keeper.err") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "workbench.fleet.keeper",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=errors,
            cwd="/", start_new_session=True,
        )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(codec.dumps(codec.to_plain(posting)))
    await process.stdin.drain()
    process.stdin.close()
    deadline = time.monotonic() + STARTING_S
    while folder.read() is None:
        if process.returncode is not None or time.monotonic() > deadline:
            raise _keeper_gone(fleet, folder, "did not start")
        await asyncio.sleep(POLL_S)


def _keeper_gone(fleet: Fleet, folder: FleetFolder, how: str) -> FleetError:
    """With the last line of what it said."""
    text = ""
    with suppress(OSError):
        text = (folder.root / "keeper.err").read_text(errors="replace").strip()
    last = text.splitlines()[-1] if text else ""
    return FleetError(
        f"the process that keeps its hosts up {how}" + (f": {last}" if last else ""),
        where=fleet.name,
        remedy=f"See {folder.log}",
    )


async def _secrets(fleet: Fleet) -> Secrets:
    """New ones for a scheduler of our own, those of one that exists where it can be used.

    Raises `UsageError`, `FleetError`.
    """
    if fleet.scheduler is not None:
        secrets = await asyncio.to_thread(secrets_of, fleet.scheduler)
        await must_answer(fleet.scheduler, secrets)
        return secrets
    lone = [host.name for host in fleet.hosts if host.kind == "dask"]
    if lone:
        raise UsageError(
            "is a worker at a scheduler that exists, and none is named",
            where=lone[0],
            remedy="Name it with --scheduler tls://HOST:PORT, or in the hosts file",
        )
    return made()


async def go_down(workspace: Workspace, fleet: Fleet, tell: Tell) -> bool:
    """End a fleet and wait until its processes are gone, those that were stuck on hosts reached by
    SSH as well; False where none was up. What does not end is told.

    Raises
    ------
    UsageError : a campaign is measured with it.
    FleetError : somebody else is starting or ending it for too long.
    """
    folder = FleetFolder.of(workspace, fleet.name)
    if not folder.root.exists():
        return False
    async with _alone(folder):
        if users := _users(folder):
            raise UsageError(
                f"{users} with it",
                where=fleet.name,
                remedy="Stop that first, with `s` on the screen Hosts or ctrl+c: the same command "
                "goes on later; or wait for its end",
            )
        return await _ended(folder, fleet, tell)


def _users(folder: FleetFolder) -> str:
    """What other processes measure with a fleet, in words; empty: nothing."""
    others = [each for each in Leases(folder.leases).measuring() if each.pid != os.getpid()]
    if not others:
        return ""
    names = ", ".join(f"{each.session} (process {each.pid})" for each in others)
    return f"{names} {'is' if len(others) == 1 else 'are'} measured"


async def _ended(folder: FleetFolder, fleet: Fleet, tell: Tell) -> bool:
    """A fleet that nobody else starts or ends meanwhile; whether it was up."""
    last, standing, holder = folder.last(), folder.read(), folder.keeping.holder()
    keepers = {standing.pid} if standing is not None else set()
    if holder is not None and is_keeper(holder.pid):  # also one that has not said so yet
        keepers.add(holder.pid)
    for pid in keepers:
        await _end_keeper(pid)
    folder.clear()
    folder.let_stay(False)
    # Those of the hosts file may have another address by now than those that were started.
    known = (*(last.fleet.hosts if last is not None else ()), *fleet.hosts)
    far = [host for host in known if host.kind == "ssh"]
    both = _end_strays(folder, tell), _end_far(folder, far, tell)
    for error in await asyncio.gather(*both, return_exceptions=True):
        if error is not None:
            raise error
    return bool(keepers)


async def _end_keeper(pid: int) -> None:
    with suppress(ProcessLookupError):  # it may have ended since
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 2 * GRACE_S
    while is_keeper(pid):
        if time.monotonic() > deadline:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # its workers end with it
            break
        await asyncio.sleep(POLL_S)


async def _end_strays(folder: FleetFolder, tell: Tell) -> None:
    """Workers and jobs that keepers have left; one that does not end keeps nobody else back."""
    ending = (*map(end_stray, folder.of_hosts()), cancel_left(folder))
    found = await asyncio.gather(*ending, return_exceptions=True)
    remove_certificates(folder)
    errors = [each for each in found if isinstance(each, BaseException)]
    for error in errors:
        if not isinstance(error, WorkbenchError | OSError):
            raise error
        tell(f"warning: {error}")


async def _end_far(folder: FleetFolder, hosts: Sequence[LabHost], tell: Tell) -> None:
    """What is left on hosts that are reached by SSH, each place once."""
    try:
        far = [(folder.owner(host.name), host) for host in hosts]
    except FleetError as error:
        tell(f"warning: what may be left on hosts was not looked at: {error}")
        return
    places = {(owner, h.address, h.port, h.folder): (owner, h) for owner, h in far}
    await reap_hosts(tuple(places.values()), tell)


async def _let_end(folder: FleetFolder) -> None:
    """A fleet that is not up now ends with the campaigns that it comes up for."""
    async with _alone(folder):
        if folder.read() is None and not _users(folder):  # they start it again as it was
            folder.let_stay(False)


async def _end_after(workspace: Workspace, fleet: Fleet, tell: Tell) -> None:
    """After a campaign, of which what was measured counts all the same: end the fleet, unless it
    stays up without one or another is measured with it, which then ends it."""
    folder = FleetFolder.of(workspace, fleet.name)
    try:
        async with _alone(folder):
            if folder.stays:
                return
            if users := _users(folder):
                tell(f"the fleet {fleet.name} stays up: {users} with it")
                return
            await _ended(folder, fleet, tell)
    except (WorkbenchError, OSError) as error:
        tell(f"warning: {error}")


@asynccontextmanager
async def connected(standing: FleetStanding) -> AsyncIterator[Client]:
    """A client of a fleet's scheduler. Raises `SchedulerLost` where it does not answer."""
    from distributed import Client

    configure()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is told by us
    try:
        client = await Client(
            standing.scheduler,
            security=standing.secrets.security(),
            asynchronous=True,
            set_as_default=False,
            timeout=f"{ANSWER_S:g}s",
        )
    except OSError as error:
        raise SchedulerLost(
            f"its scheduler does not answer: {str(error) or f'within {ANSWER_S:g} s'}",
            where=standing.fleet.name,
            remedy="End the fleet with `workbench fleet down`, and start it again",
        ) from None
    try:
        yield client
    finally:
        await client.close()


# ------------------------------------------------------------------------------ a campaign


async def run_over_fleet(
    asked: FleetRun, fleet: Fleet, workspace: Workspace, tell: Tell, connect: Connect | None = None
) -> FleetOutcome:
    """Measure a campaign with all hosts of a fleet, and make one session of it.

    A fleet that is not up comes up for the campaign, and goes down after the last that is measured
    with it. Shards that were finished before, by a run of the same session's name that was cut off,
    are not measured again.

    Parameters
    ----------
    connect : to the workspace's engine, which shows meanwhile how the hosts stand; None: nobody is
        told before the end.

    Raises
    ------
    SessionTaken, FleetError, Stopped
    UsageError : hosts have labs of different kinds.
    """
    loaded = await asyncio.to_thread(load_campaign, asked.campaign, workspace=workspace)
    name = asked.session or fresh_name(workspace, loaded.campaign.name)
    check_name(name)
    folder = FleetFolder.of(workspace, fleet.name)
    cut = await asyncio.to_thread(cut_orders, loaded, asked, fleet, name, folder.run(name))
    total, in_rounds = len(cut.shards) + len(cut.own), bool(cut.whole)
    looks = FleetLooks(fleet, folder, cut.own, total, in_rounds=in_rounds)
    work = FleetWork(
        loaded, asked, fleet, workspace, name, cut.shards, cut.own, looks, cut.whole, cut.cut
    )
    _lab_kind(work)
    if connect is None:
        if session_path(workspace, name).exists():
            raise SessionTaken("exists already", where=name, remedy="Choose another --session")
        return await _measured(work, tell, None)
    begin = BeginFleetSession(name, _created(work), _plan(work), looks.first, os.getpid())
    reports = FleetReports(connect, begin)
    await reports.begin(looks.look)

    def tell_all(text: str) -> None:
        tell(text)
        reports.note(text)

    try:
        return await _unless_stopped(_measured(work, tell_all, reports), reports)
    except WorkbenchError as error:
        outcome: Outcome = "stopped" if isinstance(error, Stopped) else "failed"
        with suppress(WorkbenchError):
            await reports.end(RunFinished(outcome, 0, 0, 0.0, 0.0, (), error.what))
        raise
    finally:
        await reports.close()


async def _unless_stopped(
    work: Coroutine[None, None, FleetOutcome], reports: FleetReports
) -> FleetOutcome:
    """What comes of it, unless somebody stops it on a screen. Raises `Stopped`."""
    measuring = asyncio.create_task(work)
    stopping = asyncio.create_task(reports.stopped.wait())
    try:
        await asyncio.wait((measuring, stopping), return_when=asyncio.FIRST_COMPLETED)
        if measuring.done():
            return measuring.result()
    finally:
        for task in (measuring, stopping):
            task.cancel()
        await asyncio.gather(measuring, stopping, return_exceptions=True)
    raise Stopped(
        f"was stopped by {reports.stopped_by or 'somebody'}",
        where=reports.session,
        remedy=f"What was measured is kept, and the same command with --session {reports.session} "
        "goes on",
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
        f"{counted(len(work.shards), 'shard')} for {counted(len(fleet.hosts), 'host')}, "
        f"session {name}" + ("; each host measures the anchor points besides" if work.own else "")
    )
    folder = FleetFolder.of(workspace, fleet.name)
    _keep_cut(work, tell)
    measure = _measures(work, tell)
    await _let_end(folder)
    try:
        with Leases(folder.leases).contending(name, work.asked.priority):
            if work.whole:
                campaign, seed = work.loaded.campaign, work.asked.seed
                plan = CentralPlanning(campaign, seed, work.shards, work.whole, tell)
                dispatch = await plan.run(work.own, measure)
            else:
                dispatch = await measure(FleetRound(work.shards, work.own))
    finally:
        await _end_after(workspace, fleet, tell)
    outcome, between = await folded_session(work, dispatch, began, reports)
    if reports is not None:
        await reports.end(folded=str(between))
    else:
        put_in_place(between, session_path(workspace, name))
    if outcome.is_whole:
        folder.forget_run(name)
    else:
        tell(f"the same command with --session {name} goes on with what is missing")
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
        dispatch.queued = folder.any_queued
        dispatch.unsteady = judge.unsteady
        work.looks.dispatch = dispatch
        return dispatch

    async def measure(asked: FleetRound) -> Dispatch:
        return await _dispatched(
            lambda: come_up(fleet, workspace, tell, stays=False),
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
    note = _note(work, dispatch, pieces, compared)
    told = await reports.told() if reports is not None else ()
    began = min([began, *(event.at for event in told[:1])])
    lab = lab_kind(((p.host, p.created.lab, p.created.host.is_emulated) for p in pieces), name)
    frame = FoldedAs(
        campaign, work.loaded.descriptors, lab,
        work.asked.seed, began, note, not missing, told,
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
        is_whole=not missing,
    )
    return outcome, between


def _note(
    work: FleetWork,
    dispatch: Dispatch,
    pieces: Sequence[ShardSession],
    compared: HostsCompared | None,
) -> str:
    """What is missing of a campaign, and of what models need of it; empty where nothing is."""
    hosts = {piece.host for piece in pieces if piece.samples}
    missing = dispatch.missing(work.shards)
    for host, order in work.own.items():
        # A host that was never there, and measured nothing, needs no anchor points.
        if order.shard.key in dispatch.set_aside or (len(hosts) > 1 and host in hosts):
            missing += [f"anchor points of {host}, {why}" for why in dispatch.missing([order])]
    said = [f"not measured: {'; '.join(missing)}"] if missing else []
    alone = sorted(hosts - terms_of(compared, work.loaded.campaign.kpi).keys())
    if len(hosts) > 1 and alone:
        said.append(
            f"no anchor points tell how {', '.join(alone)} compare, so that no model learns from "
            "this session"
        )
    return "; ".join(said)


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


def described(standing: FleetStanding) -> FleetStanding:
    """What may be shown of a fleet: no key."""
    return replace(standing, secrets=type(standing.secrets)("", ""))
