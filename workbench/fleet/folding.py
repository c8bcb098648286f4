"""Bundles of many hosts into one session; every sample keeps the host that took it."""

from __future__ import annotations

import asyncio
import heapq
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench import files
from workbench.domain.campaign import Campaign
from workbench.domain.counts import counted
from workbench.domain.errors import SessionTaken
from workbench.domain.events import (
    BypassMeasured,
    CampaignPlanned,
    ConfigurationFinished,
    ConfigurationStarted,
    Event,
    LogWritten,
    ModelFitted,
    Noted,
    PointAsked,
    RunFinished,
    RunStarted,
    SampleTaken,
    SessionCreated,
    TargetDeployed,
)
from workbench.domain.fleets import HostsCompared, ShardFolded
from workbench.domain.lab import HostFacts
from workbench.domain.samples import Measurement, Sample
from workbench.domain.sessions import DescriptorText, Plan
from workbench.fleet.dispatched import Gathered
from workbench.fleet.fleet_standing import FleetError
from workbench.store.session_file import SessionFile, open_session

AT_ONCE = 500
"""Events that are stored in one commit."""
_KEPT = (
    TargetDeployed
    | BypassMeasured
    | ConfigurationStarted
    | PointAsked
    | SampleTaken
    | ModelFitted
    | ConfigurationFinished
    | Noted
    | LogWritten
)


@dataclass(frozen=True)
class ShardSession:
    """A shard's session, read whole."""

    gathered: Gathered
    created: SessionCreated
    plan: Plan
    finished: RunFinished
    events: tuple[Event, ...]
    measurements: tuple[Measurement, ...]

    @property
    def samples(self) -> tuple[Sample, ...]:
        return tuple(measurement.sample for measurement in self.measurements)

    @property
    def host(self) -> str:
        return self.gathered.result.host

    @property
    def target(self) -> str:
        return self.gathered.order.shard.target


@dataclass(frozen=True)
class FoldedAs:
    """What the folded session says of itself."""

    campaign: Campaign
    descriptors: tuple[DescriptorText, ...]
    lab: str
    seed: int
    began: float
    note: str = ""
    """What is missing, of the campaign or beside it, as a sentence; empty where nothing is."""
    whole: bool = True
    """Whether all of the campaign was measured."""
    told: tuple[Event, ...] = ()
    """What was said of the hosts while they measured, in its order."""


def read_piece(gathered: Gathered) -> ShardSession:
    """A shard's bundle, for a thread. Raises `SessionError` where it is damaged."""
    stored = open_session(gathered.bundle, read_only=True)
    try:
        events, measurements = stored.everything()
    finally:
        stored.shut()
    created, planned, finished = (
        next(event.fact for event in events if isinstance(event.fact, kind))
        for kind in (SessionCreated, CampaignPlanned, RunFinished)
    )
    assert isinstance(created, SessionCreated)
    assert isinstance(planned, CampaignPlanned)
    last = [event.fact for event in events if isinstance(event.fact, RunFinished)][-1]
    assert isinstance(finished, RunFinished)
    return ShardSession(gathered, created, planned.plan, last, events, measurements)


async def fold(
    pieces: Sequence[ShardSession], frame: FoldedAs, compared: HostsCompared | None, between: Path
) -> None:
    """Write one session of them as the file `between`, over what lies there."""
    await asyncio.to_thread(_make_room, between)
    created = SessionCreated(
        frame.campaign,
        frame.descriptors,
        frame.lab,
        frame.seed,
        _facts(pieces),
        _once([piece.created.tool_version for piece in pieces]),
        pieces[0].created.noise,
    )
    session = await SessionFile.create(between, created, at=frame.began)
    try:
        planned = _plan(pieces, frame.campaign)
        await session.append(CampaignPlanned(planned), at=frame.began)
        await session.append(RunStarted(False, frame.campaign.budget_s), at=frame.began)
        ended = frame.began
        waiting = []
        for event, measurement in _merged(pieces, frame.told):
            ended = max(ended, event.at)
            waiting.append(session.append(event.fact, at=event.at, measurement=measurement))
            if len(waiting) >= AT_ONCE:
                await asyncio.gather(*waiting)
                waiting = []
        await asyncio.gather(*waiting)
        if compared is not None:
            await session.append(compared, at=ended)
        await session.append(_finished(pieces, frame, ended), at=ended)
    except BaseException:
        await session.close()
        raise
    await session.close()


def lab_kind(shards: Iterable[tuple[str, str, bool]], run: str) -> str:
    """The kind of lab that measured all shards of a run, each given as its host, its lab, and
    whether that emulates its CPU.

    Raises `FleetError` where there were several: hosts have a factor between them, labs have none.
    """
    kinds: dict[tuple[str, bool], str] = {}
    for host, lab, is_emulated in shards:
        kinds.setdefault((lab.partition(":")[0], is_emulated), host)
    if len(kinds) > 1:
        raise FleetError(
            "its shards were measured with labs of different kinds: "
            + ", ".join(f"{lab}{' (emulated)' * e} on {host}" for (lab, e), host in kinds.items()),
            where=run,
            remedy="Measure the campaign again under another --session, with one kind of lab",
        )
    return next(iter(kinds))[0]


def _make_room(between: Path) -> None:
    files.make_folder(between.parent)
    between.unlink(missing_ok=True)


def put_in_place(between: Path, path: Path) -> None:
    """Under its name. Raises `SessionTaken` where another session has that by now."""
    files.make_folder(path.parent)
    try:
        os.link(between, path)
    except FileExistsError:
        raise SessionTaken(
            "exists already", where=path.stem, remedy="Choose another name with --session"
        ) from None
    finally:
        between.unlink(missing_ok=True)


def _merged(
    pieces: Sequence[ShardSession], told: Sequence[Event]
) -> Iterator[tuple[Event, Measurement | None]]:
    """Facts of all shards, and of what was said of the hosts, in the order of their clocks; each
    one's own order kept."""
    blocks: dict[str, int] = {}
    # A session of shards that is completed had told what its shards noted.
    own = {_noted(p, e.fact) for p in pieces for e in p.events if isinstance(e.fact, Noted)}
    streams: list[Iterator[tuple[Event, Measurement | None]]] = [
        ((event, None) for event in told if event.fact not in own)
    ]
    for piece in pieces:
        first = blocks.get(piece.target, 0)
        count = 1 + max((sample.block for sample in piece.samples), default=0)
        blocks[piece.target] = first + count
        streams.append(_shifted(piece, first, first + count - 1))
    yield from heapq.merge(*streams, key=lambda pair: pair[0].at)


def _shifted(
    piece: ShardSession, first: int, last: int
) -> Iterator[tuple[Event, Measurement | None]]:
    """A shard's facts with blocks that no other shard has, by the clock of the commanding host;
    clocks that go back stand still."""
    result, shard = piece.gathered.result, piece.gathered.order.shard
    folded = ShardFolded(
        piece.host,
        piece.created.host,
        shard.key,
        shard.target,
        shard.configurations,
        first,
        last,
        len(piece.measurements),
        result.lab_s,
        result.digest,
    )
    ahead_s = piece.gathered.ahead_s
    at = piece.events[0].at - ahead_s
    yield replace(piece.events[0], at=at, fact=folded), None
    measured = {m.sample.id: m for m in piece.measurements}
    for event in piece.events:
        fact = event.fact
        if not isinstance(fact, _KEPT):
            continue
        at = max(at, event.at - ahead_s)
        measurement = None
        match fact:
            case SampleTaken(sample=sample):
                moved = replace(
                    sample, block=sample.block + first, started_at=sample.started_at - ahead_s
                )
                measurement = replace(measured[sample.id], sample=moved)
                fact = SampleTaken(moved)
            case TargetDeployed():
                fact = replace(fact, block=fact.block + first)
            case Noted():
                fact = _noted(piece, fact)
        yield replace(event, at=at, fact=fact), measurement


def _noted(piece: ShardSession, note: Noted) -> Noted:
    return Noted(note.level, f"{piece.host}: {note.text}")


def _plan(pieces: Sequence[ShardSession], campaign: Campaign) -> Plan:
    places = {plan.target.name: index for index, plan in enumerate(campaign.targets)}
    planned = [
        replace(configuration, block=places[configuration.target])
        for piece in pieces
        for configuration in piece.plan.configurations
    ]
    order = {
        (plan.target.name, c): index
        for plan in campaign.targets
        for index, c in enumerate(campaign.configurations(plan))
    }
    planned.sort(key=lambda p: (p.block, order[p.target, p.configuration]))
    return Plan(
        campaign.name,
        pieces[0].plan.lab,
        tuple(planned),
        sum(piece.plan.samples for piece in pieces),
        sum(piece.plan.lab_s for piece in pieces),
        sum(piece.plan.most_lab_s for piece in pieces),
    )


def _finished(pieces: Sequence[ShardSession], frame: FoldedAs, ended: float) -> RunFinished:
    return RunFinished(
        "done" if frame.whole else "stopped",
        sum(piece.finished.samples for piece in pieces),
        sum(piece.finished.invalid for piece in pieces),
        max(0.0, ended - frame.began),
        sum(piece.finished.measured_s for piece in pieces),
        tuple(b for piece in pieces for b in piece.finished.breakpoints),
        frame.note,
    )


def _once(values: Sequence[str]) -> str:
    """Each of them once, in words."""
    return " / ".join(dict.fromkeys(values))


def _facts(pieces: Sequence[ShardSession]) -> HostFacts:
    """What the hosts are, where they are alike; where not, each of them once. `ShardFolded` has
    every host's own."""
    hosts = {piece.host: piece.created.host for piece in pieces}
    every = list(hosts.values())
    names = ", ".join(sorted(hosts))
    return replace(
        every[0],
        cores=min(facts.cores for facts in every),
        memory_bytes=min(facts.memory_bytes for facts in every),
        kernel=_once([facts.kernel for facts in every]),
        cpu_model=_once([facts.cpu_model for facts in every]),
        details={**every[0].details, "fleet": f"{counted(len(hosts), 'host')}: {names}"},
    )
