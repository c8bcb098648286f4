"""A host that has finished a shard and comes back: it is asked before any other measures that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from test_dispatch_shares import FakeClient, first_shard, manifest_of

from workbench.domain import codec
from workbench.domain.fleets import LabHost, ShardOrder, ShardResult
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.fleet_standing import FleetError
from workbench.fleet.ledger import Ledger, LedgerLine
from workbench.fleet.patience import TRIES
from workbench.store.bundle import MANIFEST, digest_of

RETURN_S = 0.2


class AlphaHasIt(FakeClient):
    """Alpha has finished whatever it is asked for; beta measures until it is told to stop."""

    def __init__(self, place: Path, away: int = 0, answers_after_s: float = 0.0) -> None:
        super().__init__("")
        self.place, self.away, self.answers_after_s = place, away, answers_after_s
        self.busy_with = ""
        self.stopped: list[str] = []
        self.told = asyncio.Event()
        place.mkdir()
        (place / MANIFEST).write_bytes(manifest_of())

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await super().identity(n_workers)
        if self.away and not self.measured:  # until beta has begun it
            del found["workers"]["tls://alpha"]
        return found

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        if work == "find_shards" and address == "tls://alpha":
            await asyncio.sleep(self.answers_after_s)
            found = [
                ShardResult(key, "alpha", s, str(self.place), digest_of(self.place), 3, 0, 9.0)
                for s, key in codec.loads(argument).items()
            ]
            return codec.dumps([codec.to_plain(each) for each in found])
        if work != "measure_shard":
            return await super()._answer(work, argument, address)
        order = codec.from_plain(codec.loads(argument), ShardOrder)
        self.measured.append(address)
        await self.told.wait()
        stopped = ShardResult(order.shard.key, "beta", order.session, failure="is stopped")
        return codec.dumps(codec.to_plain(stopped))

    async def run(self, work: Any, sessions: bytes, *, workers: list[str], **_: Any) -> Any:
        if work.__name__ == "whom_it_waits_for":
            return dict.fromkeys(workers, self.busy_with)
        assert (work.__name__, workers) == ("stop_shard", ["tls://beta"])
        self.stopped += codec.loads(sessions)
        self.told.set()
        return None


def run(
    tmp_path: Path, client: AlphaHasIt, said: list[str] | None = None, **held: str
) -> tuple[Dispatch, ShardOrder]:
    """One shard, which alpha had begun when an earlier command ended, to the end."""
    order = ShardOrder("r", first_shard(tmp_path), (), "sim")
    Ledger(tmp_path / "kept", {}).write(LedgerLine(order.shard.key, "alpha"))
    ledger = Ledger(tmp_path / "kept", {"alpha": tmp_path, "beta": tmp_path})
    asked: Any = client
    tell = (said if said is not None else []).append
    dispatch = Dispatch(asked, [order], {}, ledger, tell)
    dispatch.hosts = {name: LabHost(name, "simulated") for name in ("beta", "alpha")}
    dispatch.held = lambda: held
    asyncio.run(asyncio.wait_for(dispatch.run(), 10.0))
    assert dispatch.gathered[order.shard.key].result.host == "alpha"
    assert not dispatch.set_aside
    return dispatch, order


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    monkeypatch.setattr("workbench.fleet.patience.RETURN_S", RETURN_S)
    monkeypatch.setattr("workbench.fleet.host_waits.FIRST_S", 0.01)


class LosesAll(FakeClient):
    """Its workers stay, and lose whatever they are to measure."""

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        if work != "measure_shard":
            return await super()._answer(work, argument, address)
        self.measured.append(address)
        raise type("KilledWorker", (Exception,), {"__module__": "distributed.scheduler"})


def test_a_worker_that_stays_and_loses_what_it_measures_is_not_given_it_for_ever(
    tmp_path: Path,
) -> None:
    client: Any = LosesAll("")
    order = ShardOrder("r", first_shard(tmp_path), (), "sim")
    dispatch = Dispatch(client, [order], {}, Ledger(tmp_path / "kept", {}), lambda _: None)
    dispatch.hosts = {name: LabHost(name, "simulated") for name in ("beta", "alpha")}
    asyncio.run(asyncio.wait_for(dispatch.run(), 10.0))
    assert len(client.measured) == 2 * TRIES
    failures = dispatch.set_aside[order.shard.key].failures
    assert failures == dict.fromkeys(("alpha", "beta"), f"its worker lost it {TRIES} times")


def test_no_other_host_measures_what_one_that_is_there_was_not_asked_for(tmp_path: Path) -> None:
    client = AlphaHasIt(tmp_path / "it", answers_after_s=3 * RETURN_S)
    client.busy_with = "s of ann"
    run(tmp_path, client)
    assert client.measured == []


def test_a_host_that_is_there_and_says_nothing_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    """Nor is what it has finished lost, where it says so before another has measured it."""
    client = AlphaHasIt(tmp_path / "it", answers_after_s=3 * RETURN_S)
    said: list[str] = []
    _, order = run(tmp_path, client, said)
    assert client.measured == ["tls://beta"]
    assert client.stopped == [order.session]
    assert any(text.startswith(f"alpha has not said for {RETURN_S:g} s what it") for text in said)


@pytest.mark.parametrize("bound", ["", "alpha"])
def test_a_fleet_of_hosts_that_say_nothing_is_told_to_be_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.ABSENT_S", RETURN_S)
    client: Any = AlphaHasIt(tmp_path / "it", answers_after_s=100.0)
    order = ShardOrder("r", first_shard(tmp_path), (), "sim")
    dispatch = Dispatch(client, [order], {}, Ledger(tmp_path / "kept", {}), lambda _: None)
    dispatch.hosts = {"alpha": LabHost("alpha", "simulated")}
    dispatch.bind({order.shard.key: bound})
    running = asyncio.wait_for(dispatch.run(), 10.0)
    if bound:  # another host measures it, with all that it goes on with
        asyncio.run(running)
        (aside,) = dispatch.set_aside.values()
        assert aside.failures == {"alpha": "does not say what it has finished"}
        return
    with pytest.raises(FleetError, match="or said what it has finished, for"):
        asyncio.run(running)


def test_a_host_that_is_held_is_asked_what_it_has_finished(tmp_path: Path) -> None:
    client = AlphaHasIt(tmp_path / "it")
    run(tmp_path, client, alpha="held by ann")
    assert client.measured == []


def test_a_host_that_is_held_and_gone_is_waited_for_no_longer_than_another(tmp_path: Path) -> None:
    client = AlphaHasIt(tmp_path / "it", away=1)
    run(tmp_path, client, alpha="held by ann")
    assert client.measured == ["tls://beta"]


def test_a_host_out_of_service_is_asked_what_it_has_finished(tmp_path: Path) -> None:
    client: Any = AlphaHasIt(tmp_path / "it", answers_after_s=RETURN_S / 4)
    order = ShardOrder("r", first_shard(tmp_path), (), "sim")
    Ledger(tmp_path / "kept", {}).write(LedgerLine(order.shard.key, "alpha"))
    ledger = Ledger(tmp_path / "kept", {"alpha": tmp_path, "beta": tmp_path})
    dispatch = Dispatch(client, [order], {}, ledger, lambda _: None)
    dispatch.hosts = {name: LabHost(name, "simulated") for name in ("beta", "alpha")}
    dispatch.unsteady, dispatch._judged = lambda _: {"alpha": "p95 scatters"}, -1
    asyncio.run(asyncio.wait_for(dispatch.run(), 10.0))
    assert dispatch.gathered[order.shard.key].result.host == "alpha"
    assert client.measured == []


def test_what_another_host_has_begun_ends_where_the_first_comes_back_with_it(
    tmp_path: Path,
) -> None:
    client = AlphaHasIt(tmp_path / "it", away=1)
    _, order = run(tmp_path, client)
    assert client.measured == ["tls://beta"]
    assert client.stopped == [order.session]
