"""Points that are planned in one place for all hosts, where a sampler learns across them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from driving import Workbench
from test_dispatch_shares import FakeClient, first_shard, manifest_of
from test_fleet_whole_way import LONGEST_S, standing

from workbench.descriptors.loading import load_campaign
from workbench.domain import codec
from workbench.domain.campaign import Campaign
from workbench.domain.fleets import LabHost, PlannedPoint, ShardFolded, ShardOrder, ShardResult
from workbench.domain.parameters import Configuration
from workbench.engine.core import Engine
from workbench.fleet.central_planning import CentralPlanning, FleetRound
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.dispatched import Gathered
from workbench.fleet.folding import read_piece
from workbench.fleet.host_engine import HostEngine
from workbench.fleet.ledger import Ledger
from workbench.fleet.open_shards import OpenShard
from workbench.fleet.patience import OWN_TRIES
from workbench.paths import Workspace
from workbench.sampling.shards import anchor, beginning, going_on, split, whole
from workbench.store.bundle import MANIFEST, digest_of
from workbench.store.session_file import open_session

CAMPAIGN = """
kind: campaign
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {vnf: tinyproxy, name: vcpu, values: [20%, 30%, 40%, 60%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [50/s, 2000/s], scale: log}
load: {kind: open, arrivals: constant, connections: 32}
kpi: p95
sampling: {method: pooled, max_samples: 8}
windows: {warmup: 1 s, window: 2 s}
lab: sim
"""
MOST = 8
FEW, MOST_OF_FEW = CAMPAIGN.replace("20%, 30%, 40%, 60%", "25%, 50%").replace("8}", "5}"), 5
"""For the hosts in this process: one configuration each."""
HOSTS = (LabHost("one", "simulated"), LabHost("other", "simulated", speed=0.6))
RUN: dict[str, Any] = {"run": "s", "lab": "sim", "seed": 1}
CONFIGURATION = Configuration({"tinyproxy.vcpu": 0.2}, {"filesize_bytes": 10_000.0})


class Lab:
    """Two hosts in this process, and what they were given, round by round."""

    def __init__(self, engine: Engine, campaign: Campaign) -> None:
        self.campaign, self.engine = campaign, engine
        self.hosts = {host.name: HostEngine(engine, host) for host in HOSTS}
        shards = split(beginning(campaign), len(HOSTS), size=1, **RUN)
        self.orders = tuple(ShardOrder("s", shard, ()) for shard in shards)
        self.whole = {s.key: ShardOrder("s", whole(campaign, s, **RUN), ()) for s in shards}
        self.own = {
            host.name: ShardOrder("s", anchor(campaign, host=host.name, **RUN), ())
            for host in HOSTS
        }
        self.rounds: list[Sequence[ShardOrder]] = []
        self.meant: dict[str, str] = {}
        self.said: list[str] = []
        self.only_one = False
        """Whether nobody measures what the other host has lost."""
        self.lost_in = 0
        """The number of the round in which the other host is lost; 0: in none."""
        self.late_in: frozenset[int] = frozenset()
        """Numbers of the rounds in which the other host waits for its turn; 0: the first."""

    async def measure(self, asked: FleetRound) -> Dispatch:
        ledger = Ledger(self.engine.workspace.state / "kept", {})
        nobody: Any = None
        dispatch = Dispatch(nobody, asked.orders, asked.own, ledger, self.said.append)
        if asked.before is not None:
            dispatch.carry_on(asked.before)
        if asked.goes_on and asked.before is not None:
            self.rounds.append(asked.orders)
        given = [*asked.own.items()]
        for number, order in enumerate(asked.orders):
            meant = self.meant.setdefault(order.shard.key, HOSTS[number % 2].name)
            given.append((asked.bound.get(order.shard.key, meant), order))
        for host, order in given:
            if self.only_one and order in self.whole.values():
                gone = OpenShard(order, failures={"one": "has no room"})
                dispatch.set_aside[order.shard.key] = gone
                continue
            if host == "other" and self.lost_in and len(self.rounds) >= self.lost_in:
                if order.points:
                    gone = OpenShard(order, failures={host: "is gone"})
                    dispatch.set_aside[order.shard.key] = gone
                    continue
                host = "one"
            waits = host == "other" and len(self.rounds) in self.late_in
            if waits and order not in self.own.values():
                dispatch.passed[order.shard.key] = host
                continue
            result = await self.hosts[host].measure(order)
            assert not result.failure, result.failure
            dispatch.gathered[order.shard.key] = Gathered(order, result, Path(result.place))
        return dispatch

    async def planned(self) -> Dispatch:
        plan = CentralPlanning(self.campaign, 1, self.orders, self.whole, self.said.append)
        return await plan.run(self.own, self.measure)


def of_one_host(lab: Lab, dispatch: Dispatch) -> None:
    """Every configuration whole, on one host; every figure counted once."""
    assert dispatch.gathered.keys() == {
        order.shard.key for order in (*lab.orders, *lab.own.values())
    }
    counts: Counter[str] = Counter()
    for order in lab.orders:
        gathered = dispatch.gathered[order.shard.key]
        piece = read_piece(gathered)
        own = Counter(sample.point.configuration.key for sample in piece.samples)
        assert own.keys() == set(order.shard.configurations)
        assert gathered.result.samples == len(piece.samples)
        assert gathered.result.lab_s == pytest.approx(piece.finished.measured_s, rel=0.2)
        assert not counts.keys() & own.keys()
        counts += own
    assert len(counts) == 2
    assert 3 <= min(counts.values()) <= max(counts.values()) <= MOST_OF_FEW


async def planned_for_both(lab: Lab) -> None:
    dispatch = await lab.planned()

    of_one_host(lab, dispatch)
    assert {dispatch.gathered[o.shard.key].result.host for o in lab.orders} == {"one", "other"}
    assert all(1 <= len(order.points) <= 2 for orders in lab.rounds for order in orders)
    assert len(lab.rounds[0]) == len(HOSTS)  # both have something to do at the same time
    assert any("planned for all hosts" in line for line in lab.said)

    # A command that goes on plans the same, and nothing is measured again.
    taken = [len(orders) for orders in lab.rounds]
    lab.rounds.clear()
    again = await lab.planned()
    assert [len(orders) for orders in lab.rounds] == taken
    assert all(again.gathered[order.shard.key].result.taken == 0 for order in lab.orders)


async def planned_with_a_loss(lab: Lab) -> None:
    lab.lost_in, lab.only_one = 2, True
    dispatch = await lab.planned()

    # What nobody else can measure stays as it is, and is told to be less.
    hosts = {o.shard.key: dispatch.gathered[o.shard.key].result.host for o in lab.orders}
    assert set(hosts.values()) == {"one", "other"}
    (key,) = (key for key, host in hosts.items() if host == "other")
    piece = read_piece(dispatch.gathered[key])
    assert dispatch.gathered[key].result.samples == len(piece.samples) >= 3
    (missing,) = dispatch.missing(lab.orders)
    assert f"{len(piece.samples)} samples by other alone, no other host measured" in missing
    assert "has no room" in missing
    assert any("no more points by other: is gone; another host" in line for line in lab.said)

    # The same command goes on, and another host measures it whole.
    lab.only_one = False
    lab.rounds.clear()
    dispatch = await lab.planned()
    of_one_host(lab, dispatch)
    assert not dispatch.missing(lab.orders)
    assert {dispatch.gathered[o.shard.key].result.host for o in lab.orders} == {"one"}
    assert any("1 shard of lost hosts" in line for line in lab.said)


async def planned_while_one_waits(lab: Lab) -> None:
    """For its turn: twice before it has begun, and twice before it goes on."""
    lab.late_in = frozenset({0, 1, 3, 4})
    dispatch = await lab.planned()

    of_one_host(lab, dispatch)
    assert not dispatch.missing(lab.orders)
    assert {dispatch.gathered[o.shard.key].result.host for o in lab.orders} == {"one", "other"}
    assert not any("lost hosts" in line for line in lab.said)
    (key,) = (
        order.shard.key
        for order in lab.orders
        if dispatch.gathered[order.shard.key].result.host == "other"
    )
    assert key in {order.shard.key for order in lab.rounds[0]}  # it has not begun
    planned = [[order for order in orders if order.goes_on == key] for orders in lab.rounds]
    assert all(len(orders) <= 1 for orders in planned)
    assert planned[2] == planned[3] == planned[4] != []


@pytest.mark.slow
@pytest.mark.parametrize(
    "way",
    [
        pytest.param(planned_for_both, marks=pytest.mark.long),
        planned_with_a_loss,
        pytest.param(planned_while_one_waits, marks=pytest.mark.long),
    ],
)
def test_points_are_planned_for_all_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    monkeypatch.setattr("workbench.fleet.central_planning.EACH", 2)
    (tmp_path / "c.yaml").write_text(FEW)
    campaign = load_campaign(str(tmp_path / "c.yaml"), workspace=Workspace(tmp_path)).campaign

    async def there() -> None:
        engine = Engine(Workspace(tmp_path))
        await engine.start()
        try:
            await way(Lab(engine, campaign))
        finally:
            await engine.close()

    asyncio.run(there())


class WithoutAlpha(FakeClient):
    """Alpha is not there at the first looks."""

    def __init__(self, looks: int) -> None:
        super().__init__("")
        self.looks = looks

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await super().identity(n_workers)
        self.looks -= 1
        if self.looks >= 0:
            del found["workers"]["tls://alpha"]
        return found


@pytest.mark.parametrize(
    ("away", "held", "why"),
    [(10**6, 0, "is gone"), (0, 100, "is broken"), (100, 100, "is broken")],
    ids=["away", "held", "held and away"],
)
def test_what_is_bound_to_a_host_goes_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, away: int, held: int, why: str
) -> None:
    """And waits for one that is held, for longer than for one that is gone."""
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    monkeypatch.setattr("workbench.fleet.patience.RETURN_S", 0.2)
    monkeypatch.setattr("workbench.fleet.patience.OWN_PAUSE_S", 0.01)
    monkeypatch.setattr("workbench.fleet.host_doubts.REST_S", 0.01)
    orders = planned_points(tmp_path)
    assert len({order.shard.key for order in orders}) == 2
    assert len({order.session for order in orders}) == 1
    client = WithoutAlpha(away)
    asked: Any = client
    dispatch = Dispatch(asked, orders, {}, Ledger(tmp_path / "kept", {}), lambda _: None)
    dispatch.hosts = {name: LabHost(name, "simulated") for name in ("alpha", "beta")}
    dispatch.bind({orders[0].shard.key: "alpha", orders[1].shard.key: "beta"})
    looks = iter(range(held))
    dispatch.held = lambda: {} if next(looks, None) is None else {"alpha": "held by ann"}
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    by = {"tls://beta": OWN_TRIES, **({"tls://alpha": OWN_TRIES} if held else {})}
    assert Counter(client.measured) == by
    assert dispatch.set_aside[orders[0].shard.key].failures == {"alpha": why}
    # It failed there each time, and no other host is asked.
    assert dispatch.set_aside[orders[1].shard.key].failures == {"beta": "is broken"}


def planned_points(tmp_path: Path) -> list[ShardOrder]:
    """Of one shard, in two orders."""
    shard, orders = first_shard(tmp_path), []
    for wl in (100.0, 200.0):
        points = (PlannedPoint(CONFIGURATION, wl),)
        own = going_on(shard, points)
        orders.append(ShardOrder("r", own, (), "sim", points=points, goes_on=shard.key))
    return orders


class FailsAtFirst(FakeClient):
    """Whatever it is given first."""

    def __init__(self, place: Path) -> None:
        super().__init__("")
        self.place = place
        place.mkdir()
        (place / MANIFEST).write_bytes(manifest_of())

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        answer = await super()._answer(work, argument, address)
        if work != "measure_shard" or len(self.measured) == 1:
            return answer
        result = codec.from_plain(codec.loads(answer), ShardResult)
        digest = digest_of(self.place)
        done = replace(result, host="beta", place=str(self.place), digest=digest, failure="")
        return codec.dumps(codec.to_plain(done))


def test_planned_points_that_fail_once_cost_no_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set aside, another host would measure all of it again, whole."""
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    monkeypatch.setattr("workbench.fleet.patience.OWN_PAUSE_S", 0.1)
    orders, said = planned_points(tmp_path), list[str]()
    client: Any = FailsAtFirst(tmp_path / "it")
    ledger = Ledger(tmp_path / "kept", {"beta": tmp_path})
    dispatch = Dispatch(client, orders, {}, ledger, said.append)
    dispatch.hosts = {name: LabHost(name, "simulated") for name in ("alpha", "beta")}
    dispatch.bind({order.shard.key: "beta" for order in orders})
    asyncio.run(asyncio.wait_for(dispatch.run(), 10.0))
    assert not dispatch.missing(orders)
    assert client.measured == ["tls://beta"] * 3
    assert any("failed on beta, which tries again after 0.1 s: is broken" in line for line in said)
    # The other points were measured in the pause.
    assert list(dispatch.gathered) == [orders[1].shard.key, orders[0].shard.key]


@pytest.mark.long
def test_two_hosts_measure_what_is_planned_for_both(workbench: Workbench) -> None:
    """Two worker processes, of which one is killed in the second round."""
    hosts = "{alpha: {kind: simulated}, beta: {kind: simulated, speed: 0.8}}"
    (workbench.root / "hosts.yaml").write_text(f"kind: hosts\nhosts: {hosts}\n")
    (workbench.root / "planned.yaml").write_text(CAMPAIGN)
    words = "run ./planned.yaml --fleet hosts.yaml --session s --seed 7 --pace 40".split()
    running = workbench.start(*words)
    assert running.stderr is not None
    said = []
    for line in running.stderr:
        said.append(line)
        if "round 2:" in line:
            break
    (beta,) = (host for host in standing(workbench)["hosts"] if host["name"] == "beta")
    os.kill(beta["pid"], signal.SIGKILL)
    _, err = running.communicate(timeout=LONGEST_S)
    err = "".join(said) + err
    assert running.returncode == 0, err
    assert "learns across configurations: points are planned here for all hosts" in err
    assert "beta is gone" in err
    assert "of lost hosts" not in err

    rows = workbench.samples("s")
    points = Counter((row["tinyproxy.vcpu"], row["wl"]) for row in rows)
    assert set(points.values()) == {1}
    counts = Counter(row["tinyproxy.vcpu"] for row in rows)
    assert len(counts) == 4
    assert max(counts.values()) <= MOST
    stored = open_session(workbench.root / "sessions/s.duckdb", read_only=True)
    folded = [e.fact for e in stored.everything()[0] if isinstance(e.fact, ShardFolded)]
    stored.shut()
    assert {fact.host for fact in folded} == {"alpha", "beta"}
    assert sum(len(fact.configurations) for fact in folded) == 4
    assert len({c for fact in folded for c in fact.configurations}) == 4
    assert not standing(workbench)["hosts"]
