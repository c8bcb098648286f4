"""Hosts that come late, or are given nothing more, where all are planned for in one place."""

from __future__ import annotations

import asyncio
import hashlib
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_anchor_judging import Measures
from test_central_planning import CONFIGURATION
from test_fetched_bundles import GOOD

from workbench.descriptors.loading import load_campaign
from workbench.domain import codec
from workbench.domain.fleets import HostSeen, LabHost, PlannedPoint, ShardOrder, ShardResult
from workbench.fleet.central_planning import CentralPlanning, FleetRound
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.fetched_bundles import NotFetched
from workbench.fleet.fleet_looks import _seen
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.ledger import Ledger
from workbench.fleet.open_shards import Hand, OpenShard
from workbench.fleet.patience import KEPT_S, RETURN_S
from workbench.paths import Workspace
from workbench.sampling.shards import anchor, split
from workbench.store.bundle import MANIFEST

HOSTS = ("alpha", "beta")


class AlphaComesLate(Measures):
    """It is not there at the first looks; who was given which shard, by its key."""

    looks = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.by: dict[str, str] = {}

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await super().identity(n_workers)
        self.looks -= 1
        if self.looks >= 0:
            found["workers"].pop("tls://alpha", None)
        return found

    async def _answer(self, work: str, argument: Any, address: str) -> Any:
        if work == "measure_shard":
            order = codec.from_plain(codec.loads(argument), ShardOrder)
            self.by[order.shard.key] = address.removeprefix("tls://")
        return await super()._answer(work, argument, address)


def orders_of(tmp_path: Path, run: str = "r") -> list[ShardOrder]:
    campaign = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    return [ShardOrder("r", s, ()) for s in split(campaign, 1, run=run, lab="sim", seed=1)[:2]]


def dispatch_of(
    tmp_path: Path, client: Any, orders: list[ShardOrder], own: dict[str, ShardOrder]
) -> Dispatch:
    dispatch = Dispatch(client, orders, own, Ledger(tmp_path / "kept", {}), lambda _: None)
    dispatch.hosts = {host: LabHost(host, "simulated") for host in HOSTS}
    return dispatch


def made(looks: int) -> AlphaComesLate:
    client = AlphaComesLate(GOOD, hashlib.sha256(GOOD[MANIFEST]).hexdigest())
    client.looks = looks
    return client


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)


@pytest.mark.parametrize(("looks", "alone"), [(40, False), (10**6, True)])
def test_what_is_meant_for_a_host_waits_for_it_as_long_as_it_may_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int, alone: bool
) -> None:
    """Else one that comes late would have no configuration, and nothing to do in any round."""
    monkeypatch.setattr("workbench.fleet.patience.RETURN_S", 0.1 if alone else 30.0)
    client, orders = made(looks), orders_of(tmp_path)
    dispatch = dispatch_of(tmp_path, client, orders, {})
    keys = [order.shard.key for order in orders]
    dispatch.mean_for(dict(zip(keys, HOSTS, strict=True)))
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert not dispatch.missing(orders)
    assert client.by == dict(zip(keys, ("beta" if alone else "alpha", "beta"), strict=True))


@pytest.mark.parametrize(("looks", "has_shards"), [(40, True), (10**6, True), (10**6, False)])
def test_anchor_points_of_a_host_that_comes_late_are_waited_for_where_it_has_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int, has_shards: bool
) -> None:
    """All else is measured, and without them no model learns from it."""
    monkeypatch.setattr("workbench.fleet.patience.RETURN_S", 30.0 if looks == 40 else 0.1)
    client, orders = made(0), orders_of(tmp_path)
    first = dispatch_of(tmp_path, client, orders, {})
    if not has_shards:
        first.hosts = {"beta": LabHost("beta", "simulated")}
    asyncio.run(asyncio.wait_for(first.run(), 30.0))
    assert ("alpha" in client.by.values()) == has_shards

    campaign = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    anchors = {
        host: ShardOrder("r", anchor(campaign, host=host, run="r", lab="sim", seed=1), ())
        for host in HOSTS
    }
    client.looks = looks
    dispatch = dispatch_of(tmp_path, client, orders, anchors)
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert not dispatch.missing((*orders, anchors["beta"]))
    assert bool(dispatch.missing([anchors["alpha"]])) == (looks != 40)


class NobodyYet(AlphaComesLate):
    """All of them wait in the queue of Slurm at the first looks."""

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await super().identity(n_workers)
        return {"workers": {}} if self.looks >= 0 else found


def test_a_campaign_goes_on_once_its_hosts_leave_the_queue_of_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.ABSENT_S", 0.02)
    client = NobodyYet(GOOD, hashlib.sha256(GOOD[MANIFEST]).hexdigest())
    client.looks, orders = 30, orders_of(tmp_path)
    dispatch = dispatch_of(tmp_path, client, orders, {})
    with pytest.raises(FleetError, match="no host was there for"):
        asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    dispatch = dispatch_of(tmp_path, client, orders, {})
    dispatch.queued = lambda: client.looks >= 0
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert not dispatch.missing(orders)


class AlphaIsSilent(AlphaComesLate):
    """Beta waits in the queue of Slurm at the first looks; alpha is there, and never answers."""

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await Measures.identity(self, n_workers)
        self.looks -= 1
        if self.looks >= 0:
            del found["workers"]["tls://beta"]
        return found

    async def _answer(self, work: str, argument: Any, address: str) -> Any:
        if (work, address) == ("find_shards", "tls://alpha"):
            await asyncio.sleep(100.0)
        return await super()._answer(work, argument, address)


def test_a_host_in_the_queue_of_slurm_is_waited_for_where_those_that_are_there_are_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("ABSENT_S", "RETURN_S"):
        monkeypatch.setattr(f"workbench.fleet.patience.{limit}", 0.02)
    client = AlphaIsSilent(GOOD, hashlib.sha256(GOOD[MANIFEST]).hexdigest())
    client.looks, orders = 40, orders_of(tmp_path)
    dispatch = dispatch_of(tmp_path, client, orders, {})
    dispatch.queued = lambda: client.looks >= 0
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert not dispatch.missing(orders)
    assert set(client.by.values()) == {"beta"}


def test_who_is_given_nothing_in_a_round_is_given_nothing_in_the_next_and_told_so_once(
    tmp_path: Path,
) -> None:
    client, said = made(0), list[str]()
    first, then = (dispatch_of(tmp_path, client, orders_of(tmp_path, r), {}) for r in ("1", "2"))
    for dispatch in (first, then):
        dispatch._tell = said.append
        dispatch.held = lambda: {"gamma": "held by ann"}
        dispatch.unsteady = lambda found: {"alpha": "p95 scatters"} if found else {}
    asyncio.run(asyncio.wait_for(first.run(), 30.0))
    then.carry_on(first)
    bound = orders_of(tmp_path, "2")[0]
    then.bind({bound.shard.key: "alpha"})
    asyncio.run(asyncio.wait_for(then.run(), 30.0))
    assert said.count("gamma gets no work: held by ann") == 1
    assert said.count("alpha gets no work: disagrees with itself: p95 scatters") == 1
    assert then.set_aside[bound.shard.key].failures == {
        "alpha": "disagrees with itself: p95 scatters"
    }
    assert then.total == 4


def test_no_round_waits_for_the_anchor_points_of_a_host_that_has_no_part_in_it(
    tmp_path: Path,
) -> None:
    """They come with the last, in which such a host may measure what others have lost."""
    campaign = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    own = anchors(tmp_path)
    order = orders_of(tmp_path)[0]
    plan = CentralPlanning(campaign, 1, (), {"lost": order}, lambda _: None)
    plan._lost["lost"] = None
    asked: list[FleetRound] = []
    client: Any = made(0)

    async def measure(given: FleetRound) -> Dispatch:
        asked.append(given)
        dispatch = dispatch_of(tmp_path, client, [], {})
        dispatch.gathered[own["beta"].shard.key] = None  # type: ignore[assignment]
        return dispatch

    async def rounds() -> None:
        dispatch = await plan.run(own, measure)
        plan._orders = {"begun": order}
        for host in HOSTS:
            plan._pieces["begun"] = SimpleNamespace(host=host)  # type: ignore[assignment]
            await plan._round({"begun": [PlannedPoint(CONFIGURATION, 100.0)]}, dispatch, measure)

    asyncio.run(rounds())
    first, last, with_alpha, without = (set(given.own) for given in asked)
    assert (first, last) == (set(HOSTS), {"alpha"})
    assert (with_alpha, without) == ({"alpha"}, set())


def anchors(tmp_path: Path) -> dict[str, ShardOrder]:
    campaign = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    return {
        host: ShardOrder("r", anchor(campaign, host=host, run="r", lab="sim", seed=1), ())
        for host in HOSTS
    }


class AlphaWaitsForAnn(AlphaComesLate):
    """It is there, and somebody else measures on it until it is told to stop."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.stopped = asyncio.Event()
        self.ann = "ann"

    async def run(self, work: Any, argument: Any, *, workers: list[str], **_: Any) -> Any:
        del argument
        if work.__name__ == "stop_shard":
            self.stopped.set()
        return {address: self.ann if address == "tls://alpha" else "" for address in workers}

    async def _answer(self, work: str, argument: Any, address: str) -> Any:
        answer = await super()._answer(work, argument, address)
        if work != "measure_shard":
            return answer
        result = codec.from_plain(codec.loads(answer), ShardResult)
        result = replace(result, host=address.removeprefix("tls://"))
        if address == "tls://alpha" and self.ann:
            await self.stopped.wait()
            result = replace(result, failure="is stopped" if self.ann else "")
        return codec.dumps(codec.to_plain(result))


def test_nobody_waits_for_long_for_a_host_that_waits_for_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others begin what is meant for it, and its anchor points are of no use without."""
    monkeypatch.setattr("workbench.fleet.patience.RETURN_S", 0.2)
    monkeypatch.setattr("workbench.fleet.host_waits.FIRST_S", 0.01)
    said: list[str] = []
    client = AlphaWaitsForAnn(GOOD, hashlib.sha256(GOOD[MANIFEST]).hexdigest())
    orders, own = orders_of(tmp_path), anchors(tmp_path)
    dispatch = dispatch_of(tmp_path, client, orders, own)
    seen: list[HostSeen] = []

    def tell(text: str) -> None:
        said.append(text)
        if text.endswith("measures first"):
            seen.append(_seen("alpha", dispatch._hands["alpha"], None))

    dispatch._tell = tell
    keys = [order.shard.key for order in orders]
    dispatch.mean_for(dict(zip(keys, HOSTS, strict=True)))
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert not dispatch.missing([*orders, own["beta"]])
    assert [client.by[key] for key in keys] == ["beta", "beta"]
    assert "alpha waits for its turn there: ann measures first" in said
    assert (seen[0].does, seen[0].note) == (
        "waiting", "waits for its turn there: ann measures first"
    )  # fmt: skip
    assert any(text.startswith("alpha still waits for its turn there") for text in said)
    assert dispatch.missing([own["alpha"]])  # and no failure of its own
    assert not dispatch.set_aside


def test_no_round_waits_for_long_for_a_host_that_waits_for_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given the same in every further one, and waited for where nothing else is left."""
    monkeypatch.setattr("workbench.fleet.host_waits.FIRST_S", 0.01)
    monkeypatch.setattr("workbench.fleet.host_waits.AGAIN_S", 0.02)
    said: list[str] = []
    client = AlphaWaitsForAnn(GOOD, hashlib.sha256(GOOD[MANIFEST]).hexdigest())
    first, then = orders_of(tmp_path), orders_of(tmp_path, "then")
    alphas, betas = first[0].shard.key, (first[1].shard.key, then[1].shard.key)

    async def given(orders: list[ShardOrder], before: Dispatch | None, wait_s: float) -> Dispatch:
        monkeypatch.setattr("workbench.fleet.patience.RETURN_S", wait_s)
        dispatch = dispatch_of(tmp_path, client, orders, {})
        dispatch._tell = said.append
        dispatch.bind({alphas: "alpha", **dict.fromkeys(betas, "beta")})
        dispatch.in_rounds = True
        if before is not None:
            dispatch.carry_on(before)
        client.stopped = asyncio.Event()
        await asyncio.wait_for(dispatch.run(), 20.0)
        assert not dispatch.set_aside
        return dispatch

    async def rounds() -> None:
        dispatch = await given(first, None, 0.3)
        assert dispatch.passed == {alphas: "alpha"}
        assert dispatch.gathered.keys() == {betas[0]}
        dispatch = await given([first[0], then[1]], dispatch, 60.0)
        assert dispatch.passed == {alphas: "alpha"}
        assert dispatch.gathered.keys() == set(betas)
        alone = asyncio.create_task(given(first[:1], dispatch, 0.1))
        await asyncio.sleep(0.5)
        assert not alone.done()
        client.ann = ""
        await asyncio.sleep(0.2)
        client.stopped.set()
        assert alphas in (await alone).gathered

    asyncio.run(rounds())
    assert said.count("alpha still waits for its turn there: the rounds go on without it") == 1
    assert "alpha has its turn" in said


def test_a_host_that_has_a_part_in_a_campaign_is_waited_for(tmp_path: Path) -> None:
    dispatch = dispatch_of(tmp_path, made(0), [], anchors(tmp_path))
    hand = dispatch._hands["alpha"] = Hand("alpha", "tls://alpha", waits_since=0.0)
    assert dispatch._needless(RETURN_S - 1.0) == []
    assert dispatch._needless(RETURN_S) == [hand]
    dispatch.gathered["one"] = SimpleNamespace(  # type: ignore[assignment]
        result=SimpleNamespace(host="alpha")
    )
    assert dispatch._needless(RETURN_S) == []


def test_a_shard_has_begun_once_it_is_its_host_s_turn(tmp_path: Path) -> None:
    """Its pace, and the time to go, count from then."""

    async def whole() -> None:
        dispatch = dispatch_of(tmp_path, made(0), [], {})
        hand = Hand("alpha", "tls://alpha", began=1.0)
        dispatch._hear_wait(hand, "ann")
        assert hand.began == 1.0
        before = time.time()
        dispatch._hear_wait(hand, "")
        assert hand.began >= before

    asyncio.run(whole())


def with_kept(tmp_path: Path, own: dict[str, ShardOrder]) -> tuple[Dispatch, OpenShard]:
    """Both hosts are there, and beta has measured the first shard, which cannot be had."""
    dispatch = dispatch_of(tmp_path, made(0), orders_of(tmp_path), own)
    dispatch._hands = {host: Hand(host, f"tls://{host}", asked=True) for host in HOSTS}
    kept = dispatch._waiting.pop(0)
    kept.host, kept.kept = "beta", NotFetched("its disk is full")
    return dispatch, kept


def test_what_is_asked_for_again_keeps_nothing_open_that_failed_on_all_that_are_there(
    tmp_path: Path,
) -> None:
    async def whole() -> list[str]:
        dispatch, kept = with_kept(tmp_path, {})
        dispatch.hosts = {**dispatch.hosts, "gamma": LabHost("gamma", "simulated")}
        (failed,) = dispatch._waiting
        failed.failures = dict.fromkeys(HOSTS, "is broken")
        dispatch._hands["beta"].waiting = kept
        dispatch._give_up(RETURN_S)
        return list(dispatch.set_aside)

    assert asyncio.run(whole()) == [orders_of(tmp_path)[1].shard.key]


@pytest.mark.parametrize("begun", [False, True])
def test_what_cannot_be_had_waits_for_no_host_that_is_not_waited_for(
    tmp_path: Path, begun: bool
) -> None:
    """Alpha waits for its turn to measure its anchor points."""

    async def whole() -> list[str]:
        dispatch, kept = with_kept(tmp_path, {"alpha": anchors(tmp_path)["alpha"]})
        dispatch._waiting = [kept]
        alpha = dispatch._hands["alpha"]
        alpha.waits_since = 0.0
        alpha.waiting = dispatch._own["alpha"] if begun else None
        dispatch._give_up_kept(RETURN_S - 1.0)
        assert not dispatch.set_aside
        dispatch._give_up_kept(RETURN_S + KEPT_S)
        return list(dispatch.set_aside)

    assert asyncio.run(whole()) == [orders_of(tmp_path)[0].shard.key]


@pytest.mark.parametrize(("waited_s", "given"), [(RETURN_S - 1.0, False), (RETURN_S + 1.0, True)])
def test_a_host_that_waits_for_long_for_its_turn_takes_no_share(
    tmp_path: Path, waited_s: float, given: bool
) -> None:
    async def whole() -> bool:
        dispatch = dispatch_of(tmp_path, made(0), orders_of(tmp_path), {})
        dispatch.share, now = 1, asyncio.get_running_loop().time()
        dispatch._hands = {host: Hand(host, f"tls://{host}", asked=True) for host in HOSTS}
        alpha, beta = dispatch.hands
        alpha.waiting, alpha.waits_since = dispatch._waiting.pop(0), now - waited_s
        dispatch._employ(beta, now)
        return beta.waiting is not None

    assert asyncio.run(whole()) == given
