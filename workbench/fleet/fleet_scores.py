"""Models cross-validated by the hosts of a fleet, on Dask: as the engine's own worker scores them,
each method by one host that measures nothing meanwhile.

Dask's own futures and not joblib's backend carry them: who waits for that can neither be stopped
nor hear how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence, Set
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from workbench.domain.counts import counted
from workbench.domain.errors import DataError, SessionError
from workbench.domain.fleets import Fleet
from workbench.domain.profiles import ModelScore
from workbench.domain.questions import ModelsScored, ScoreModels
from workbench.engine.learning.scoring import (
    PATIENCE_S,
    SHORT,
    By,
    Material,
    all_methods,
    material_of,
    row_of,
    scores_of,
    short_list,
    table_for,
    together,
)
from workbench.fleet.dispatched import Tell
from workbench.fleet.fleet_reports import Connect
from workbench.fleet.fleet_standing import FleetError, FleetFolder, FleetStanding
from workbench.fleet.hearing import Hearing
from workbench.fleet.leases import Leases
from workbench.fleet.named_scheduler import LAB, workers_of
from workbench.fleet.scheduler_clients import connected
from workbench.link.paging import all_samples
from workbench.paths import Workspace

if TYPE_CHECKING:
    from distributed import Client, Future

    from workbench.models.crossvalidation import Row
    from workbench.models.table import Table

Job = tuple["Table", str, By]

LOOKING_S = 5.0
MOST_MISSED = 3
"""Looks in a row that find none of the hosts, after which nobody waits for them."""


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
    from workbench.models.crossvalidation import best_marked

    standing = await asyncio.to_thread(FleetFolder.of(workspace, fleet.name).read)
    if standing is None:
        raise FleetError("is not up", where=fleet.name, remedy="Start it with `workbench fleet up`")
    given = await _material(asked, connect)
    methods, jobs, scores = all_methods(asked.methods), list[Job](), list[ModelScore]()
    for target in given.targets(asked.target):
        own = given.of(target)
        if not own and asked.target is None:
            continue
        try:
            table = await asyncio.to_thread(table_for, given.campaign, target, own, given.kpi)
        except DataError as error:
            scores.append(ModelScore(target, given.kpi, "all", len(own), trouble=str(error)))
            continue
        listed = short_list(given.campaign, target)
        names = dict.fromkeys(n for m in methods for n in (listed if m == SHORT else (m,)))
        jobs += [(table, name, asked.by) for name in names]
    if not jobs:
        raise DataError("has nothing to score", where=asked.session, remedy="Measure it first")
    held, _ = await asyncio.to_thread(Leases(FleetFolder.of(workspace, fleet.name).leases).held)
    hosts, rows = await _answered(standing, jobs, held.keys(), tell)
    for table in {id(table): table for table, _, _ in jobs}.values():
        scores += scores_of(best_marked([r for r in rows if r.target == table.target]), len(table))
    note = f"scored by {counted(hosts, 'host')} of {fleet.name}; nothing is stored"
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


async def _answered(
    standing: FleetStanding, jobs: Sequence[Job], held: Set[str], tell: Tell
) -> tuple[int, list[Row]]:
    """How many hosts there were, and the rows in the order of the jobs.

    Whoever cancels this waits for nobody: the scheduler drops what no host has begun, and a host
    ends the fit that it is in.
    """
    longest_s = PATIENCE_S * len(jobs)
    name = standing.fleet.name
    try:
        async with asyncio.timeout(longest_s), connected(standing) as client:
            own = {host.name for host in standing.fleet.hosts} - held
            workers = await workers_of(client)
            addresses = [address for host, address in workers.items() if host in own]
            if not addresses:
                raise FleetError("has no host that is up and not held", where=name)
            return len(addresses), await _gathered(client, jobs, addresses, tell)
    except TimeoutError:
        raise FleetError(f"has not answered for {longest_s:g} s", where=name) from None
    except OSError as error:
        raise FleetError(f"does not answer: {error}", where=name) from None


async def _gathered(
    client: Client, jobs: Sequence[Job], addresses: Collection[str], tell: Tell
) -> list[Row]:
    """Rows in the order of the jobs, told as they come, by workers at these addresses."""
    done = 0

    async def row(job: Job) -> Row:
        nonlocal done
        table, method, _ = job
        future: Future[Row] = client.submit(
            scored_alone, *job, key=f"scored-{uuid4()}", workers=list(addresses),
            allow_other_workers=False, resources={LAB: 1}, pure=False,
        )  # fmt: skip
        try:
            found: Row = await future
        except asyncio.CancelledError:
            if not future.cancelled():
                raise  # who asked leaves
            raise FleetError("lost its scheduler", remedy="See `workbench fleet status`") from None
        except Exception as error:  # noqa: BLE001 - whatever the host's code raised
            what = f"{method} of {table.target} was not scored"
            raise FleetError(f"{what}: {type(error).__name__}: {error}") from None
        done += 1
        tell(f"{table.target}, {table.kpi}: {method} ({done} of {len(jobs)})")
        return found

    tell(f"{counted(len(jobs), 'score')} by {counted(len(addresses), 'host')}")
    all_rows = asyncio.ensure_future(together(row(job) for job in jobs))
    looking = asyncio.ensure_future(_until_none_is_left(client, addresses))
    try:
        await asyncio.wait((all_rows, looking), return_when=asyncio.FIRST_COMPLETED)
        if not all_rows.done():
            await looking
        return await all_rows
    finally:
        for task in (all_rows, looking):
            task.cancel()
        await asyncio.gather(all_rows, looking, return_exceptions=True)


async def _until_none_is_left(client: Client, addresses: Collection[str]) -> None:
    """Raises `FleetError` once all of these hosts are gone: a scheduler would wait for ever."""
    missed, hearing = 0, Hearing()
    while missed < MOST_MISSED:
        await asyncio.sleep(LOOKING_S)
        there: set[str] = set()
        with suppress(OSError):
            there.update((await workers_of(client, hearing)).values())
        missed = 0 if there & set(addresses) else missed + 1
    raise FleetError("lost all its hosts", remedy="See `workbench fleet status`")


def scored_alone(table: Table, method: str, by: By) -> Row:
    """On a host: one row, and nothing of it sent on to other hosts by a model that uses joblib."""
    from joblib import parallel_config

    with parallel_config(backend="sequential"):
        return row_of(table, method, by, None)
