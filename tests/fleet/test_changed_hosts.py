"""A command that goes on with another hosts file: what is finished is not measured again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from test_dispatch_shares import FakeClient

from workbench.descriptors.loading import LoadedCampaign, load_campaign
from workbench.domain import codec
from workbench.domain.fleets import Fleet, FleetRun, LabHost, ShardOrder, ShardResult
from workbench.engine.core import Engine
from workbench.fleet import fleet_runs
from workbench.fleet.cuts import cut_orders, keep_cut
from workbench.fleet.fleet_runs import FleetOutcome
from workbench.fleet.fleet_standing import FleetFolder
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.ledger import Ledger, LedgerLine
from workbench.fleet.scheduler_clients import SchedulerLost
from workbench.paths import Workspace
from workbench.store.session_file import open_session

CAMPAIGN = """
kind: campaign
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {vnf: tinyproxy, name: vcpu, values: [20%, 30%, 40%, 50%, 60%, 70%, 80%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [100/s, 600/s], scale: log}
load: {kind: open, arrivals: constant, connections: 32}
kpi: p95
sampling: {method: METHOD, max_samples: MOST}
windows: {warmup: 1 s, window: 2 s}
lab: sim
"""
CONFIGURATIONS, LOADS = 7, 2


def loaded(folder: Path, method: str = "uniform", most: int = LOADS) -> LoadedCampaign:
    path = folder / "c.yaml"
    path.write_text(CAMPAIGN.replace("METHOD", method).replace("MOST", str(most)))
    return load_campaign(str(path), workspace=Workspace(folder))


def fleet_of(*names: str) -> Fleet:
    return Fleet("hosts", tuple(LabHost(name, "simulated") for name in names))


@pytest.mark.parametrize(("method", "most"), [("uniform", 2), ("pooled", 8)])
def test_the_cut_stays_whatever_hosts_there_are(tmp_path: Path, method: str, most: int) -> None:
    campaign, kept = loaded(tmp_path, method, most), tmp_path / "run"
    asked = FleetRun("c.yaml", lab="sim")
    first = cut_orders(campaign, asked, fleet_of("a", "b"), "s", kept)
    keep_cut(kept, first.cut)
    result = ShardResult(first.shards[0].shard.key, "b", "s.1")
    Ledger(kept, {}).write(LedgerLine(result.key, "b", result))

    for names in (("a", "c", "d"), ("c",), ("a", "b", "c", "d", "e")):
        later = cut_orders(campaign, asked, fleet_of(*names), "s", kept)
        assert (later.cut, later.shards, later.whole) == (first.cut, first.shards, first.whole)
        # Who has measured is still compared with the others, after those that are there.
        assert [*later.own] == [*names, *(["b"] if "b" not in names else [])]
        assert later.own["b"] == first.own["b"]
    other = cut_orders(campaign, FleetRun("c.yaml", lab="sim", seed=2), fleet_of("c"), "s", kept)
    assert not {o.shard.key for o in other.shards} & {o.shard.key for o in first.shards}
    assert not other.whole, "one host plans for its shards alone"
    (kept / "cut.json").write_bytes(b'{"of": 1}')
    again = cut_orders(campaign, asked, fleet_of("a", "b"), "s", kept)
    assert again.shards == first.shards, "what cannot be read is cut once more"


class LabClient(FakeClient):
    """A scheduler whose workers are hosts in this process; it is gone after some answers."""

    def __init__(self, hosts: dict[str, HostEngine], most: int) -> None:
        super().__init__("")
        self.hosts, self.left = hosts, most
        self.taken: Counter[str] = Counter()

    async def identity(self, n_workers: int) -> dict[str, Any]:
        del n_workers
        if self.left <= 0:
            raise OSError("it was killed")
        worker = {"resources": {"lab": 1}, "last_seen": time.time()}
        return {"workers": {f"tls://{name}": {**worker, "name": name} for name in self.hosts}}

    async def run(self, *_: Any, **__: Any) -> None:
        """Nobody is asked to end: what is measured then is waited for."""

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        host = self.hosts[address.removeprefix("tls://")]
        if work == "find_shards":
            keys = codec.from_plain(codec.loads(argument), dict[str, str])
            found = [await host.found(key, session) for session, key in keys.items()]
            return codec.dumps([codec.to_plain(each) for each in found if each is not None])
        if work == "measure_shard":
            result = await host.measure(codec.from_plain(codec.loads(argument), ShardOrder))
            self.taken[result.session] += result.taken
            self.left -= 1
            return codec.dumps(codec.to_plain(result))
        return await super()._answer(work, argument, address)


async def given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hosts: tuple[str, ...], most: int
) -> tuple[FleetOutcome | None, LabClient]:
    """What the command came to with these hosts, until so many shards were measured."""
    workspace, fleet = Workspace(tmp_path), fleet_of(*hosts)
    folder = FleetFolder.of(workspace, fleet.name)
    async with AsyncExitStack() as stack:
        engines = {}
        for host in fleet.hosts:
            engine = Engine(Workspace(folder.host(host.name)))
            await engine.start()
            stack.push_async_callback(engine.close)
            engines[host.name] = HostEngine(engine, host)
        client = LabClient(engines, most)

        async def dispatched(_: Any, made: Any, __: Any) -> Any:
            dispatch = made(client)
            await dispatch.run()
            return dispatch

        monkeypatch.setattr(fleet_runs, "_dispatched", dispatched)
        asked = FleetRun(str(tmp_path / "c.yaml"), session="s", lab="sim", seed=7)
        try:
            outcome = await fleet_runs.run_over_fleet(asked, fleet, workspace, lambda _: None)
        except SchedulerLost:
            return None, client
        return outcome, client


@pytest.mark.slow
def test_hosts_come_and_go_and_no_finished_shard_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first host is taken off the hosts file, and a third one added, in the middle."""
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.01)
    loaded(tmp_path)

    async def twice() -> tuple[LabClient, FleetOutcome | None, LabClient]:
        none, first = await given(tmp_path, monkeypatch, ("alpha", "beta"), 4)
        assert none is None
        return first, *await given(tmp_path, monkeypatch, ("beta", "gamma", "delta"), 1000)

    first, outcome, then = asyncio.run(twice())
    finished = {session for session, taken in first.taken.items() if taken}
    assert len(finished) >= 4  # anchor points of both hosts, and a shard of each at least
    assert not finished & {session for session, taken in then.taken.items() if taken}
    assert outcome is not None
    assert outcome.is_whole, outcome.note
    assert outcome.samples == CONFIGURATIONS * LOADS
    assert outcome.note == ""
    assert outcome.compared is not None
    assert outcome.compared.reference == "beta"
    assert "alpha" in {factor.host for factor in outcome.compared.factors}
    stored = open_session(tmp_path / "sessions" / "s.duckdb", read_only=True)
    points = Counter(m.sample.point for m in stored.everything()[1])
    stored.shut()
    assert set(points.values()) == {1}
    assert len(points) == CONFIGURATIONS * LOADS
    assert not FleetFolder.of(Workspace(tmp_path), "hosts").run("s").exists()
