"""What models and recommendations make of a session that unequal hosts measured."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path

import pytest

from workbench import __version__
from workbench.descriptors.loading import load_campaign
from workbench.domain import codec
from workbench.domain.errors import DataError
from workbench.domain.events import Event, Noted, RunFinished, SessionCreated
from workbench.domain.fleets import (
    Fleet,
    FleetRun,
    HostsCompared,
    LabHost,
    Shard,
    ShardOrder,
    ShardResult,
)
from workbench.domain.questions import Recommend
from workbench.engine.core import Engine
from workbench.engine.learning.scoring import material
from workbench.fleet import fleet_runs, tasks
from workbench.fleet.cuts import cut_orders, measure_anchors_again
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.dispatched import Gathered
from workbench.fleet.fleet_looks import FleetLooks
from workbench.fleet.fleet_runs import FleetWork, folded_session
from workbench.fleet.fleet_standing import FleetFolder
from workbench.fleet.folding import FoldedAs, ShardSession, fold, put_in_place, read_piece
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.ledger import Ledger
from workbench.fleet.open_shards import OpenShard
from workbench.link.local import LocalClient
from workbench.models.host_factors import compare_hosts
from workbench.paths import Workspace
from workbench.sampling.shards import anchor, split
from workbench.store.catalogue import session_path
from workbench.store.session_file import open_session

CAMPAIGN = """
kind: campaign
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {vnf: tinyproxy, name: vcpu, values: [25%, 50%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [50/s, 2000/s], scale: log}
load: {kind: open, arrivals: constant, connections: 32}
kpi: p95
sampling: {method: uniform, max_samples: 4, repetitions: 1}
windows: {warmup: 1 s, window: 2 s}
lab: sim
"""
HOSTS = (LabHost("one", "simulated"), LabHost("other", "simulated", speed=0.5))


async def measured(engine: Engine, host: LabHost, shard: Shard) -> ShardSession:
    order = ShardOrder("s", shard, ())
    result = await HostEngine(engine, host).measure(order)
    assert not result.failure, result.failure
    return await asyncio.to_thread(read_piece, Gathered(order, result, Path(result.place)))


async def put(
    engine: Engine, name: str, pieces: list[ShardSession], compared: HostsCompared | None
) -> None:
    campaign = load_campaign(
        str(engine.workspace.root / "c.yaml"), workspace=engine.workspace
    ).campaign
    between = engine.workspace.state / f"{name}.duckdb"
    await fold(pieces, FoldedAs(campaign, (), "sim", 1, 1.0), compared, between)
    put_in_place(between, session_path(engine.workspace, name))


async def the_way(engine: Engine) -> None:
    path = engine.workspace.root / "c.yaml"
    path.write_text(CAMPAIGN)
    campaign = load_campaign(str(path), workspace=engine.workspace).campaign
    anchors = {
        host.name: await measured(
            engine, host, anchor(campaign, host=host.name, run="s", lab="sim", seed=1)
        )
        for host in HOSTS
    }
    shards = split(campaign, 2, run="s", lab="sim", seed=1, size=1)
    pieces = [
        await measured(engine, host, shard) for host, shard in zip(HOSTS, shards, strict=True)
    ]
    compared = compare_hosts({host: piece.samples for host, piece in anchors.items()}, campaign.kpi)
    assert compared is not None
    await put(engine, "folded", pieces, compared)
    await put(engine, "bare", pieces, None)

    given = await material(engine.library, "folded", None)
    reference = {sample.point.wl for sample in pieces[0].samples}
    own = {sample.point.wl for sample in pieces[1].samples}
    loads = {sample.point.wl for sample in given.samples}
    assert reference < loads
    # Half as fast: what it carried at a load, the first host carries at about twice as much.
    assert max(loads) / max(own) == pytest.approx(2.0, rel=0.2)

    client = LocalClient(engine, "test")
    answer = await client.ask(Recommend("folded", ("p95<=400ms @ rate=60/s",)))
    assert "figures hold on one: those of other are by the factor between hosts" in answer.notes
    with pytest.raises(DataError, match="no anchor points tell how one, other compare"):
        await client.ask(Recommend("bare", ("p95<=400ms @ rate=60/s",)))
    await folded_by_the_hosts_file(engine, anchors, pieces)
    await measured_again_where_anchors_told_nothing(engine, anchors, pieces)
    await asked_beside_a_damaged_session(engine, pieces)


def work_of(
    engine: Engine, anchors: dict[str, ShardSession], pieces: list[ShardSession]
) -> tuple[FleetWork, Dispatch]:
    """All of it measured."""
    fleet = Fleet("hosts", tuple(reversed(HOSTS)))
    folder = FleetFolder.of(engine.workspace, fleet.name)
    loaded = load_campaign(str(engine.workspace.root / "c.yaml"), workspace=engine.workspace)
    orders = tuple(piece.gathered.order for piece in pieces)
    own = {host: piece.gathered.order for host, piece in anchors.items()}
    looks = FleetLooks(fleet, folder, own, len(orders) + len(own))
    work = FleetWork(
        loaded, FleetRun("c.yaml"), fleet, engine.workspace, "s", orders, own, looks
    )  # fmt: skip
    dispatch = Dispatch(None, orders, own, Ledger(folder.run("s"), {}), print)  # type: ignore[arg-type]
    dispatch.gathered = {
        piece.gathered.result.key: piece.gathered for piece in (*pieces, *anchors.values())
    }
    return work, dispatch


async def measured_again_where_anchors_told_nothing(
    engine: Engine, anchors: dict[str, ShardSession], pieces: list[ShardSession]
) -> None:
    """A session that no model takes is not done; the same command measures them, each time anew."""
    work, dispatch = work_of(engine, anchors, pieces)
    mine = anchors["one"].gathered.result.key

    def read(gathered: Gathered) -> ShardSession:
        """As if one start alone of the host's anchor points were of any use."""
        piece = read_piece(gathered)
        if gathered.result.key != mine:
            return piece
        return replace(
            piece,
            measurements=tuple(
                replace(m, sample=replace(m.sample, valid=m.sample.block == 0))
                for m in piece.measurements
            ),
        )

    def next_own() -> dict[str, ShardOrder]:
        kept = FleetFolder.of(engine.workspace, work.fleet.name).run("s")
        asked = FleetRun("c.yaml", lab="sim", seed=1)
        return cut_orders(work.loaded, asked, work.fleet, "s", kept).own

    before = {host: order.shard.key for host, order in work.own.items()}
    assert {host: order.shard.key for host, order in next_own().items()} == before
    frames: list[FoldedAs] = []

    async def folded(_: object, frame: FoldedAs, *__: object) -> None:
        frames.append(frame)  # what is made of it the test above has read

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet_runs, "fold", folded)
        with patch.context() as few:
            few.setattr(fleet_runs, "read_piece", read)
            outcome, _ = await folded_session(work, dispatch, 1.0)
        assert (frames[0].whole, frames[0].note) == (outcome.is_whole, outcome.note)
        assert not outcome.is_whole
        assert "too few samples at anchor points of one (2 of 8 samples valid)" in outcome.note
        assert "the same command measures its anchor points again" in outcome.note

        own, found = next_own(), anchors["one"].gathered
        assert own["other"].shard.key == before["other"], "which told enough"
        key = own["one"].shard.key
        assert key != before["one"], "else its host would say what it had measured"
        again = replace(found, order=own["one"], result=replace(found.result, key=key))
        dispatch.gathered[key] = again
        outcome, _ = await folded_session(replace(work, own=own), dispatch, 1.0)
        assert (outcome.note, outcome.is_whole, outcome.compared is None) == ("", True, False)

    kept = FleetFolder.of(engine.workspace, work.fleet.name).run("s")
    assert measure_anchors_again(kept, ["one"]) == {"one": 2}
    assert next_own()["one"].shard.key not in (key, before["one"])
    # Valid, and they tell nothing all the same: to measure them again would be in vain for ever.
    note = fleet_runs._note(work, dispatch, pieces, None, {})
    assert "measured again they would tell no more: measure the campaign under another" in note
    assert "the same command" not in note


async def folded_by_the_hosts_file(
    engine: Engine, anchors: dict[str, ShardSession], pieces: list[ShardSession]
) -> None:
    """The first host of the file is what the others are compared with, whatever it is called."""
    work, dispatch = work_of(engine, anchors, pieces)
    loaded, orders, own = work.loaded, work.shards, dict(work.own)
    folder = FleetFolder.of(engine.workspace, work.fleet.name)
    outcome, between = await folded_session(work, dispatch, 1.0)
    assert outcome.compared is not None
    assert outcome.compared.reference == "other"
    assert {factor.host for factor in outcome.compared.factors} == {"one"}
    assert (outcome.note, outcome.is_whole) == ("", True)
    # Whoever doubts a factor can make it again of what is kept: the session is all that is left.
    stored = open_session(between, read_only=True)
    (kept,) = (e.fact for e in stored.everything()[0] if isinstance(e.fact, HostsCompared))
    stored.shut()
    assert len(kept.anchors) == sum(len(piece.samples) for piece in anchors.values())
    made = {host: [a for a in kept.anchors if a.host == host] for host in ("other", "one")}
    low = min(anchor.point.wl for anchor in kept.anchors)
    logs = {
        host: [math.log(a.kpis["p95_ms"].value) for a in own if a.valid and a.point.wl == low]
        for host, own in made.items()
    }
    (factor,) = (each for each in kept.factors if each.figure == "p95_ms")
    mean = {host: sum(own) / len(own) for host, own in logs.items()}
    assert math.exp(mean["one"] - mean["other"]) == pytest.approx(factor.value)
    assert all("throughput_rps" in a.kpis for a in kept.anchors)

    # Where anchor points failed the session is not whole: the command that goes on measures them.
    order = own["one"]
    found = dispatch.gathered.pop(order.shard.key)
    dispatch.set_aside[order.shard.key] = OpenShard(order, failures={"one": "tinyproxy ended"})
    outcome, between = await folded_session(work, dispatch, 1.0)
    assert outcome.compared is None
    assert "not measured: anchor points of one, tinyproxy" in outcome.note
    assert "tinyproxy ended" in outcome.note
    assert "no anchor points tell how one, other compare" in outcome.note
    stored = open_session(between, read_only=True)
    finished = stored.everything()[0][-1].fact
    stored.shut()
    assert isinstance(finished, RunFinished)
    assert not outcome.is_whole
    assert (finished.outcome, finished.note) == ("stopped", outcome.note)
    anew = Dispatch(None, orders, own, Ledger(folder.run("s"), {}), print)  # type: ignore[arg-type]
    anew.gathered = {**dispatch.gathered, order.shard.key: found}
    outcome, between = await folded_session(work, anew, 1.0)
    assert (outcome.note, outcome.is_whole, outcome.compared is None) == ("", True, False)

    # What a session that lacks a shard had told is told once when it is completed.
    noted = [Noted("info", text) for text in ("one: from its shard", "from the fleet")]
    told = tuple(Event(n, 2.0, "s", fact) for n, fact in enumerate(noted, 1))
    piece = replace(
        pieces[0],
        events=(*pieces[0].events, Event(10**6, 3.0, "s", Noted("info", "from its shard"))),
    )
    await fold([piece], FoldedAs(loaded.campaign, (), "sim", 1, 1.0, told=told), None, between)
    stored = open_session(between, read_only=True)
    texts = [e.fact.text for e in stored.everything()[0] if isinstance(e.fact, Noted)]
    stored.shut()
    assert [texts.count(note.text) for note in noted] == [1, 1]

    # A shard that was measured before an update was measured by what there was then.
    older = replace(pieces[1], created=replace(pieces[1].created, tool_version="0.1"))
    await fold([older, pieces[0]], FoldedAs(loaded.campaign, (), "sim", 1, 1.0), None, between)
    stored = open_session(between, read_only=True)
    (made,) = (e.fact for e in stored.everything()[0] if isinstance(e.fact, SessionCreated))
    stored.shut()
    assert made.tool_version == f"0.1 / {__version__}"

    # By the commanding host's clock, where a host's is an hour ahead.
    piece = replace(pieces[0], gathered=replace(pieces[0].gathered, ahead_s=3600.0))
    await fold([piece], FoldedAs(loaded.campaign, (), "sim", 1, 1.0), None, between)
    stored = open_session(between, read_only=True)
    samples = [measurement.sample for measurement in stored.everything()[1]]
    stored.shut()
    assert [sample.started_at for sample in samples] == pytest.approx(
        [sample.started_at - 3600.0 for sample in piece.samples], abs=0.01
    )

    # A host that measured nothing of the campaign has nothing that would have to be compared.
    alone = replace(work, shards=orders[:1])
    del dispatch.set_aside[order.shard.key]
    outcome, _ = await folded_session(alone, dispatch, 1.0)
    assert (outcome.note, outcome.is_whole) == ("", True)


async def asked_beside_a_damaged_session(engine: Engine, pieces: list[ShardSession]) -> None:
    """What a host has finished it tells, whatever another of its sessions is like."""
    session_path(engine.workspace, "s.damaged").write_bytes(b"no session" * 1000)
    wanted = {"s.damaged": "damaged", "s.none": "none"}
    wanted |= {piece.gathered.order.session: piece.gathered.result.key for piece in pieces}
    tasks.be(HostEngine(engine, HOSTS[0]))
    try:
        answer = codec.loads(await tasks.find_shards(codec.dumps(wanted)))
    finally:
        tasks.be(None)
    found = [codec.from_plain(each, ShardResult) for each in answer]
    assert [(one.key, one.digest) for one in found] == [
        (piece.gathered.result.key, piece.gathered.result.digest) for piece in pieces
    ]


@pytest.mark.slow
def test_hosts_are_one_by_their_factor_or_not_at_all(tmp_path: Path) -> None:
    async def whole() -> None:
        (tmp_path / "sessions").mkdir()
        engine = Engine(Workspace(tmp_path))
        await engine.start()
        try:
            await the_way(engine)
        finally:
            await engine.close()

    asyncio.run(whole())
