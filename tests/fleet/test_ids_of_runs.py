"""What hosts measured for a run they hand over to that run, and to no other of the same name."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_changed_hosts import CAMPAIGN, LabClient, fleet_of

from workbench.descriptors.loading import load_campaign
from workbench.domain import codec
from workbench.domain.errors import Stopped, UsageError
from workbench.domain.fleets import FleetRun, FleetSeen, HostSeen
from workbench.domain.messages import ViewSession
from workbench.engine.core import Engine
from workbench.fleet import fleet_runs
from workbench.fleet.begun_runs import keep_begun
from workbench.fleet.cuts import CutOrders, cut_orders
from workbench.fleet.fleet_runs import FleetWork
from workbench.fleet.fleet_standing import FleetFolder
from workbench.fleet.host_engine import HostEngine
from workbench.link.local import LocalClient
from workbench.paths import Workspace
from workbench.sampling.shards import anchor, split
from workbench.store.catalogue import session_path

FLEET = fleet_of("alpha", "beta")


def workspace_of(folder: Path, method: str = "uniform") -> Workspace:
    """Of one campaign of two shards."""
    folder.mkdir(exist_ok=True)
    two = CAMPAIGN.replace("30%, 40%, 50%, 60%, 70%, 80%", "30%")
    (folder / "c.yaml").write_text(two.replace("METHOD", method).replace("MOST", "2"))
    return Workspace(folder)


@pytest.mark.parametrize("method", ["uniform", "pooled"])
def test_shards_of_another_run_have_other_keys_and_the_same_seeds(
    tmp_path: Path, method: str
) -> None:
    workspace = workspace_of(tmp_path, method)
    loaded = load_campaign(str(tmp_path / "c.yaml"), workspace=workspace)
    if method == "pooled":
        sampling = replace(loaded.campaign.sampling, max_samples=8)
        loaded = replace(loaded, campaign=replace(loaded.campaign, sampling=sampling))

    def cut(id: str) -> CutOrders:
        asked = FleetRun("c.yaml", lab="sim", id=id)
        return cut_orders(loaded, asked, FLEET, "s", tmp_path / "run")

    def keys(orders: CutOrders) -> set[str]:
        every = (*orders.shards, *orders.own.values(), *orders.whole.values())
        return {order.shard.key for order in every}

    before, one, other = cut(""), cut("1"), cut("2")
    assert one == cut("1")
    assert not keys(before) & keys(one)
    assert not keys(one) & keys(other)
    assert len(keys(one)) == len(keys(before)) == 2 + 2 + 2 * (method == "pooled")
    assert one.whole.keys() == {order.shard.key for order in one.shards if method == "pooled"}
    seeds = [[order.shard.seed for order in orders.shards] for orders in (before, one, other)]
    assert seeds[0] == seeds[1] == seeds[2]
    # A run that was begun before goes on with the keys that its hosts know.
    whose = {"run": "s", "lab": "sim", "seed": 1}
    if method == "uniform":
        first = split(loaded.campaign, 2, **whose)  # type: ignore[arg-type]
        assert [order.shard for order in before.shards] == list(first)
    mine = anchor(loaded.campaign, host="beta", **whose)  # type: ignore[arg-type]
    assert before.own["beta"].shard == mine


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HostEngine]:
    engine = Engine(Workspace(tmp_path / "host"))
    await engine.start()
    yield HostEngine(engine, fleet_of("alpha").hosts[0])
    await engine.close()


@pytest.mark.slow
async def test_another_run_of_the_same_name_measures_again(
    host: HostEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a second workspace, or of one whose session was removed; hosts never forget."""
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.01)
    client = LabClient({"alpha": host}, 1000)

    async def dispatched(_: Any, made: Callable[[Any], Any], __: Any) -> Any:
        dispatch = made(client)
        await dispatch.run()
        return dispatch

    monkeypatch.setattr(fleet_runs, "_dispatched", dispatched)

    async def taken(folder: str) -> int:
        client.taken.clear()
        workspace = workspace_of(tmp_path / folder)
        asked = FleetRun(str(workspace.root / "c.yaml"), lab="sim")
        outcome = await fleet_runs.run_over_fleet(asked, fleet_of("alpha"), workspace, print)
        assert (outcome.session, outcome.is_whole, outcome.samples) == ("c-1", True, 4)
        return sum(client.taken.values())

    assert await taken("one") == 4
    assert await taken("two") == 4
    session_path(Workspace(tmp_path / "one"), "c-1").unlink()
    assert await taken("one") == 4


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    made = Engine(workspace_of(tmp_path / "w"))
    await made.start()
    yield made
    await made.close()


async def stopped(engine: Engine, monkeypatch: pytest.MonkeyPatch, seed: int = 7) -> FleetWork:
    """What the campaign was to measure when it was stopped at once."""
    found: list[FleetWork] = []

    async def measured(work: FleetWork, *_: object) -> None:
        found.append(work)
        raise Stopped("was stopped", where=work.name)

    async def connect() -> Any:
        return LocalClient(engine, "tester")

    monkeypatch.setattr(fleet_runs, "_measured", measured)
    campaign = str(engine.workspace.root / "c.yaml")
    asked = FleetRun(campaign, "s", lab="sim", seed=seed)
    with pytest.raises(Stopped):
        await fleet_runs.run_over_fleet(asked, FLEET, engine.workspace, print, connect)
    return found[0]


async def test_the_same_run_finds_its_shards_also_where_its_folder_is_lost(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await stopped(engine, monkeypatch)
    kept = FleetFolder.of(engine.workspace, FLEET.name).run("s")
    assert len(first.asked.id) == 16
    assert codec.loads((kept / "begun.json").read_bytes())["id"] == first.asked.id
    assert (await stopped(engine, monkeypatch)).shards == first.shards
    shutil.rmtree(kept)
    with pytest.raises(
        UsageError, match=r"another campaign or seed than these.*`workbench show s`"
    ):
        await stopped(engine, monkeypatch, seed=1)
    again = await stopped(engine, monkeypatch)
    assert (again.shards, again.own) == (first.shards, first.own)
    assert codec.loads((kept / "begun.json").read_bytes())["id"] == first.asked.id

    # What says how hosts stand later does not say it again.
    client = LocalClient(engine, "tester")
    view = (await client.ask(ViewSession("s"))).view
    view._take_fleet(FleetSeen((HostSeen("alpha", "idle"),), 4, 1))
    assert view.fleet is not None
    assert view.fleet.run == first.asked.id

    # One that was begun before there were any has none.
    keep_begun(kept, replace(first.asked, id=""))
    before = await stopped(engine, monkeypatch)
    assert before.asked.id == ""
    assert not {o.shard.key for o in before.shards} & {o.shard.key for o in first.shards}


async def test_a_run_whose_session_is_gone_is_a_new_one(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = FleetFolder.of(engine.workspace, FLEET.name).run("s")
    keep_begun(kept, FleetRun("c.yaml", "s", seed=7, id="before"))
    (kept / "ledger.jsonl").write_text("{}")
    work = await asyncio.wait_for(stopped(engine, monkeypatch), 60.0)
    assert work.asked.id != "before"
    assert not (kept / "ledger.jsonl").exists()
