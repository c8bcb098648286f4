"""Models cross-validated by the hosts of a fleet, on Dask: as the engine's own worker scores them,
each method by one host that measures nothing meanwhile. Who scores uses the fleet as a campaign
does: it is told to others, and the fleet does not end under it.

Dask's own futures and not joblib's backend carry them: who waits for that can neither be stopped
nor hear how far it is."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence, Set
from contextlib import ExitStack, asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from workbench import __version__
from workbench.computing import computed
from workbench.domain import codec
from workbench.domain.counts import counted
from workbench.domain.errors import DataError, SessionError
from workbench.domain.fleets import STARTED_ELSEWHERE, Fleet, LabHost
from workbench.domain.profiles import ModelScore
from workbench.domain.questions import ModelsScored, ScoreModels
from workbench.engine.learning.scoring import (
    PATIENCE_S,
    SHORT,
    By,
    Material,
    all_methods,
    material_of,
    scores_of,
    short_list,
    table_for,
)
from workbench.fleet.dispatched import Tell
from workbench.fleet.fleet_asking import answer_of
from workbench.fleet.fleet_lifecycle import end_after, only_one
from workbench.fleet.fleet_reports import Connect
from workbench.fleet.fleet_standing import FleetError, FleetFolder, FleetStanding
from workbench.fleet.hearing import Hearing
from workbench.fleet.host_waits import hear_waits
from workbench.fleet.leases import Leases
from workbench.fleet.named_scheduler import LAB, workers_of
from workbench.fleet.scheduler_clients import connected
from workbench.fleet.scoring_task import packed, score_packed
from workbench.fleet.tasks import be_posted
from workbench.link.paging import all_samples
from workbench.paths import Workspace

if TYPE_CHECKING:
    from distributed import Client, Future

    from workbench.models.crossvalidation import Row
    from workbench.models.table import Table

Job = tuple["Table", str, By]

MOST_LOSSES = 3
"""Hosts that may be lost with the same score, which may be what ends them."""
LOOKING_S = 5.0
AGAIN = (
    "Why stands in .workbench/fleet/NAME/keeper.log of the workspace; give the same command again "
    "once `workbench fleet status` shows a host up"
)
LOST_S = 30.0
"""How long none of the hosts may be there: their keeper starts them again within a few seconds."""


async def scored_by_fleet(
    asked: ScoreModels, fleet: Fleet, workspace: Workspace, connect: Connect, tell: Tell
) -> ModelsScored:
    """What `ScoreModels` is answered with, but for what is stored: nothing is.

    Raises
    ------
    FleetError
        If the fleet is not up, or does not answer in time.
    DataError, UsageError
        As the engine says them.
    """
    leases = Leases(FleetFolder.of(workspace, fleet.name).leases)
    async with _using(fleet, workspace, asked.session, tell) as (standing, name):
        return await _scored(
            asked, connect, standing, lambda jobs: HandedScores(name, jobs, leases, tell)
        )


async def _scored(
    asked: ScoreModels,
    connect: Connect,
    standing: FleetStanding,
    handed: Callable[[Sequence[Job]], HandedScores],
) -> ModelsScored:
    """By a fleet that stays up meanwhile."""
    from workbench.models.crossvalidation import best_marked

    given = await _material(asked, connect)
    methods, jobs, scores = all_methods(asked.methods), list[Job](), list[ModelScore]()
    for target in given.targets(asked.target):
        own = given.of(target)
        if not own and asked.target is None:
            continue
        try:
            table = await computed(table_for, given.campaign, target, own, given.kpi)
        except DataError as error:
            scores.append(ModelScore(target, given.kpi, "all", len(own), trouble=str(error)))
            continue
        listed = short_list(given.campaign, target)
        names = dict.fromkeys(n for m in methods for n in (listed if m == SHORT else (m,)))
        jobs += [(table, name, asked.by) for name in names]
    if not jobs:
        raise DataError("has nothing to score", where=asked.session, remedy="Measure it first")
    hosts, rows = await _answered(standing, handed(jobs))
    for table in {id(table): table for table, _, _ in jobs}.values():
        scores += scores_of(best_marked([r for r in rows if r.target == table.target]), len(table))
    note = (
        f"scored by {counted(hosts, 'host')} of the fleet {standing.fleet.name}; nothing is stored"
    )
    return ModelsScored(tuple(scores), notes=(note,))


async def _material(asked: ScoreModels, connect: Connect) -> Material:
    client = await connect()
    try:
        async with client.follow(asked.session) as feed:
            view = feed.view
        samples = (await all_samples(client, asked.session)).samples
    finally:
        await client.close()
    if view.campaign is None:
        raise SessionError("does not hold its campaign", where=asked.session)
    return material_of(asked.session, view, samples, asked.kpi)


@asynccontextmanager
async def _using(
    fleet: Fleet, workspace: Workspace, session: str, tell: Tell
) -> AsyncIterator[tuple[FleetStanding, str]]:
    """A fleet that is up, and stays so while the body runs, as for a campaign; and the name by
    which others see who uses it. Raises `FleetError` where it is not up."""
    folder = FleetFolder.of(workspace, fleet.name)
    leases = Leases(folder.leases)
    down = FleetError("is not up", where=fleet.name, remedy=f"Start it with {fleet.command('up')}")
    if await asyncio.to_thread(folder.read) is None:
        raise down
    with ExitStack() as used:
        async with only_one(folder):  # else it may end in between
            taken = {each.session for each in leases.measuring()}
            names = (f"scoring of {session}" + (f", {n}" if n > 1 else "") for n in count(1))
            name = next(each for each in names if each not in taken)
            used.enter_context(leases.contending(name))
            if (standing := await asyncio.to_thread(folder.read)) is None:  # its keeper ends alone
                raise down
        try:
            yield standing, name
        finally:
            used.close()
            await end_after(workspace, fleet, tell)


async def _answered(standing: FleetStanding, scores: HandedScores) -> tuple[int, list[Row]]:
    """How many hosts there were, and the rows in the order of the jobs.

    Whoever cancels this waits for nobody: the scheduler drops what no host has begun, and a host
    ends the fit that it is in.
    """
    name = standing.fleet.name
    try:
        async with connected(standing) as client:
            return await scores.run(client, await scores.fit(client, standing.fleet.hosts))
    except FleetError as error:
        what = f"the fleet {name} {error.what}" if error.where is None else error.what
        raise FleetError(what, where=error.where, remedy=error.remedy) from None
    except OSError as error:
        raise FleetError(f"does not answer: {error}", where=name) from None


class HandedScores:
    """Hands scores to the hosts of a fleet: one at a time to each, so that a campaign on the same
    hosts has its turn after the fit that a host is in.

    Parameters
    ----------
    name : by which the fleet's other users see this one.
    jobs : what is to be scored.
    leases : of the fleet: hosts that are held, or that a campaign of a higher priority has, are
        given nothing meanwhile.
    """

    def __init__(self, name: str, jobs: Sequence[Job], leases: Leases, tell: Tell) -> None:
        self._name, self._jobs, self._leases, self._tell = name, jobs, leases, tell
        self._left = deque(range(len(jobs)))
        self._rows: dict[int, Row] = {}
        self._busy: dict[asyncio.Task[Row], tuple[int, str]] = {}
        """By what waits for it: which job, and at which address."""
        self._refused: Mapping[str, str] = {}
        self._losses = Counter[int]()

    async def fit(self, client: Client, hosts: Sequence[LabHost]) -> set[str]:
        """Names of those that may score: all but workers that somebody else has started, or a job,
        of another version, which are told. Raises `OSError`."""
        elsewhere = [host for host in hosts if host.kind in STARTED_ELSEWHERE]
        there = await workers_of(client) if elsewhere else {}
        asked = [host for host in elsewhere if host.name in there]
        answers = await asyncio.gather(
            *(
                answer_of(client, be_posted, (codec.dumps(codec.to_plain(h)),), there[h.name])
                for h in asked
            )
        )
        others = {
            host.name: said
            for host, said in zip(asked, answers, strict=True)
            if isinstance(said, str) and said != __version__
        }
        for host, said in others.items():
            self._tell(
                f"{host} gets no work: has workbench {said}, this is {__version__}; install "
                "the same there"
            )
        return {host.name for host in hosts} - others.keys()

    async def run(self, client: Client, own: Set[str]) -> tuple[int, list[Row]]:
        """How many hosts there were at first, and a row for each job, in their order.

        Raises `FleetError` where none of these hosts is there, or a score does not come;
        `OSError`, and what the client raises, where the scheduler is gone.
        """
        hearing, first, loop = Hearing(), 0, asyncio.get_running_loop()
        seen_at = loop.time()
        try:
            while len(self._rows) < len(self._jobs):
                there = await _present(client, own, hearing)
                seen_at = loop.time() if there else seen_at
                if loop.time() - seen_at > LOST_S:  # a scheduler would wait for ever
                    raise self._lost()
                if there is not None:
                    first = first or self._begun_with(there)
                    self._drop_gone(there)
                    self._hand_out(client, there)
                looking = asyncio.create_task(asyncio.sleep(LOOKING_S))
                try:
                    done, _ = await asyncio.wait(
                        (looking, *self._busy), return_when=asyncio.FIRST_COMPLETED
                    )
                finally:
                    looking.cancel()
                self._take(done)
        finally:
            for task in self._busy:
                task.cancel()
            await asyncio.gather(*self._busy, return_exceptions=True)
        return first, [self._rows[index] for index in range(len(self._jobs))]

    def _lost(self) -> FleetError:
        left = len(self._jobs) - len(self._rows)
        return FleetError(
            f"lost all its hosts: none was there for {LOST_S:g} s, with {left} of "
            f"{counted(len(self._jobs), 'score')} left; what was scored is not kept",
            remedy=AGAIN,
        )

    def _begun_with(self, there: Mapping[str, str]) -> int:
        """How many hosts score; raises `FleetError` where there is none."""
        held, _ = self._leases.held()
        if not (hosts := there.keys() - held.keys()):
            raise FleetError("has no host that is up and not held")
        scores = counted(len(self._jobs), "score")
        self._tell(f"{scores} by {counted(len(hosts), 'host')}")
        return len(hosts)

    def _drop_gone(self, there: Mapping[str, str]) -> None:
        """What a host had that is gone is another's, or its own once it is back."""
        addresses = set(there.values())
        for task, (index, address) in list(self._busy.items()):
            if address not in addresses and not task.done():
                task.cancel()
                del self._busy[task]
                self._left.append(index)  # one that takes its host down keeps no other back
                self._losses[index] += 1
                if self._losses[index] >= MOST_LOSSES:
                    table, method, _ = self._jobs[index]
                    raise FleetError(
                        f"could not have {method} of {table.target} scored: its host was lost "
                        f"{MOST_LOSSES} times meanwhile; what was scored is not kept",
                        remedy="See in `workbench fleet status` how they ended, and leave it out "
                        "with --methods",
                    )

    def _hand_out(self, client: Client, there: Mapping[str, str]) -> None:
        refused = self._leases.refused(self._name, tuple(there))
        for host, why in refused.items():
            if self._refused.get(host) != why:
                self._tell(f"{host} gets no work: {why}")
        self._refused = refused
        busy = {address for _, address in self._busy.values()}
        for host, address in there.items():
            if self._left and host not in refused and address not in busy:
                index = self._left.popleft()
                task = asyncio.create_task(self._row(client, host, address, self._jobs[index]))
                self._busy[task] = index, address

    def _take(self, done: Collection[asyncio.Future[Any]]) -> None:
        """Rows that have come; raises what one of them came to instead."""
        for task in [each for each in self._busy if each in done]:
            index, _ = self._busy.pop(task)
            self._rows[index] = row = task.result()
            how_far = f"{len(self._rows)} of {len(self._jobs)}"
            self._tell(f"{row.target}, {row.kpi}: {row.method} ({how_far})")

    async def _row(self, client: Client, host: str, address: str, own_job: Job) -> Row:
        """A job by one host, within `PATIENCE_S` without what that measures before. Raises
        `FleetError`."""
        from distributed.client import FutureCancelledError

        table, method, _ = own_job
        job = await computed(packed, *own_job, self._name)
        what = f"could not have {method} of {table.target} scored"
        limit = asyncio.timeout(PATIENCE_S)

        def hear(who: str) -> None:
            if who:
                self._tell(f"{host} scores once it is done with {who}")
            until = asyncio.get_running_loop().time() + PATIENCE_S
            limit.reschedule(None if who else until)

        future: Future[Row] = client.submit(
            score_packed, job, key=f"scored-{uuid4()}", workers=[address],
            allow_other_workers=False, resources={LAB: 1}, pure=False,
        )  # fmt: skip
        waits = asyncio.create_task(hear_waits(client, address, self._name, hear))
        try:
            async with limit:
                found: Row = await future
            return found
        except asyncio.CancelledError:
            if (own := asyncio.current_task()) is not None and own.cancelling():
                raise  # who asked leaves, or the host is gone
            raise FleetError("lost its scheduler", remedy=AGAIN) from None
        except Exception as error:  # noqa: BLE001 - whatever the host's code raised
            if isinstance(error, FutureCancelledError):
                raise FleetError("lost its scheduler", remedy=AGAIN) from None
            why = f"{type(error).__name__}: {error}"
            if limit.expired():
                why = f"{host} has not answered for {PATIENCE_S:g} s"
            raise FleetError(f"{what}: {why}") from None
        finally:
            waits.cancel()
            await asyncio.gather(waits, return_exceptions=True)
            future.release()


async def _present(client: Client, own: Set[str], hearing: Hearing) -> dict[str, str] | None:
    """Addresses of these hosts, by name; None where the scheduler does not answer."""
    try:
        known = await workers_of(client, hearing)
    except OSError:
        return None
    return {host: known[host] for host in sorted(own & known.keys())}
