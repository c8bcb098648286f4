"""Who is given shards: no more hosts at once than a campaign's share, none that cannot measure."""

from __future__ import annotations

import asyncio
import hashlib
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from workbench import __version__
from workbench.descriptors.loading import load_campaign
from workbench.domain import codec
from workbench.domain.fleets import LabHost, Shard, ShardOrder, ShardResult
from workbench.engine.sessions.clock import now
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.ledger import Ledger
from workbench.paths import Workspace
from workbench.sampling.shards import split
from workbench.store.bundle import FORMAT

HOSTS = ("alpha", "beta", "gamma", "delta")


def manifest_of(**tables: bytes) -> bytes:
    """Of a bundle of these tables, which nobody opens."""
    digests = {table: hashlib.sha256(content).hexdigest() for table, content in tables.items()}
    return codec.dumps({"format": FORMAT, "schema_version": 1, "tables": {}, "sha256": digests})


class FakeFuture(asyncio.Future[Any]):
    def release(self) -> None:
        pass


class FakeClient:
    """A scheduler with four workers, each of which fails what it is to measure, after a moment."""

    def __init__(self, version: str) -> None:
        self.version, self.measuring, self.most = version, 0, 0
        self.measured: list[str] = []
        self.lacks = ""
        self.scheduler = SimpleNamespace(identity=self.identity)

    async def identity(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        worker = {"resources": {"lab": 1}, "last_seen": time.time()}
        known: dict[str, Any] = {f"tls://{name}": {**worker, "name": name} for name in HOSTS}
        known["tls://a"] = {**worker, "name": "another"}  # of somebody else
        known["tls://b"] = {**worker, "name": "bare", "resources": {}}
        return {"workers": known}

    def submit(self, work: Any, argument: Any, *, workers: list[str], **_: Any) -> FakeFuture:
        future = FakeFuture()
        task = asyncio.create_task(self._answer(work.__name__, argument, workers[0]))

        def answered(done: asyncio.Task[Any]) -> None:
            if (error := done.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(done.result())

        task.add_done_callback(answered)
        return future

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        if work != "measure_shard":
            told = {"be_posted": self.version, "see_lab": self.lacks, "find_shards": b"[]"}
            return now() if work == "tell_time" else told[work]
        order = codec.from_plain(codec.loads(argument), ShardOrder)
        self.measured.append(address)
        self.measuring += 1
        self.most = max(self.most, self.measuring)
        await asyncio.sleep(0.02)
        self.measuring -= 1
        failed = ShardResult(order.shard.key, address, order.session, failure="is broken")
        return codec.dumps(codec.to_plain(failed))


def dispatched(
    tmp_path: Path, client: FakeClient, share: int | None, kind: Any, said: list[str] | None = None
) -> Dispatch:
    campaign = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    shards = split(campaign, 4, run="r", lab="sim", seed=1)
    orders = [ShardOrder("r", shard, (), "sim") for shard in shards]
    tell = (said if said is not None else []).append
    dispatch = Dispatch(client, orders, {}, Ledger(tmp_path / "kept", {}), tell)  # type: ignore[arg-type]
    dispatch.hosts = {name: LabHost(name, kind) for name in HOSTS}
    dispatch.share = share
    asyncio.run(dispatch.run())
    assert len(dispatch.set_aside) == len(orders)
    return dispatch


@pytest.mark.parametrize(("share", "most"), [(1, 1), (2, 2), (None, 4)])
def test_a_campaign_has_no_more_hosts_at_once_than_its_share(
    tmp_path: Path, share: int | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    client = FakeClient("")
    dispatched(tmp_path, client, share, "simulated")
    assert client.most == most
    assert set(client.measured) <= {f"tls://{name}" for name in HOSTS}


class Remembers(FakeClient):
    """A scheduler that several campaigns ask."""

    def __init__(self) -> None:
        super().__init__("")
        self.keys: list[str] = []

    def submit(self, work: Any, argument: Any, *, workers: list[str], **more: Any) -> FakeFuture:
        self.keys.append(more["key"])
        return super().submit(work, argument, workers=workers)


def test_no_two_campaigns_have_tasks_of_the_same_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask would give both what one of them came to."""
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    client = Remembers()
    for name in ("one", "other"):
        dispatched(tmp_path / name, client, 1, "simulated")
    assert len(set(client.keys)) == len(client.keys) > 10


def test_workers_of_another_version_are_given_nothing(tmp_path: Path) -> None:
    client = FakeClient("0.0.1")
    dispatch = dispatched(tmp_path, client, None, "dask")
    assert not client.measured
    (why, *_) = {why for shard in dispatch.set_aside.values() for why in shard.failures.values()}
    assert "has workbench 0.0.1, this is" in why


def test_hosts_on_which_the_campaign_s_lab_cannot_measure_are_given_nothing(tmp_path: Path) -> None:
    client, said = FakeClient(__version__), list[str]()
    client.lacks = "the lab docker cannot measure there: docker engine: not found"
    dispatch = dispatched(tmp_path, client, None, "ssh", said)
    assert not client.measured
    for name in HOSTS:
        assert f"{name} gets no work: {client.lacks}" in said
    for shard in dispatch.set_aside.values():
        assert shard.failures == dict.fromkeys(HOSTS, client.lacks)


def test_what_fails_is_told_by_target_and_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    said: list[str] = []
    dispatch = dispatched(tmp_path, FakeClient(""), None, "simulated", said)
    for key, shard in dispatch.set_aside.items():
        assert shard.named.startswith(shard.order.shard.target)
        told = [line for line in said if line.startswith(shard.named)]
        assert any("another host tries: is broken" in line for line in told)
        assert any("is set aside: is broken" in line for line in told)
        assert not any(key in line for line in said)


def first_shard(tmp_path: Path) -> Shard:
    campaign = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    return split(campaign, 1, run="r", lab="sim", seed=1)[0]


class OneLeaves(FakeClient):
    """beta is there at the first looks alone."""

    looks = 0

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await super().identity(n_workers)
        self.looks += 1
        if self.looks > 3:
            del found["workers"]["tls://beta"]
        return found


def test_a_host_that_measures_nothing_is_gone_and_nothing_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    monkeypatch.setattr("workbench.fleet.patience.RETURN_S", 0.2)
    said: list[str] = []
    order = ShardOrder("r", first_shard(tmp_path), (), "sim")
    client: Any = OneLeaves("")
    dispatch = Dispatch(client, [order], {}, Ledger(tmp_path / "kept", {}), said.append)
    dispatch.hosts = {name: LabHost(name, "simulated") for name in ("alpha", "beta")}
    dispatch.held = lambda: {"beta": "held by ann"}
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert "beta is gone" in said
    assert list(dispatch.set_aside) == [order.shard.key]


class OneComes(FakeClient):
    """alpha answers what nobody can read; beta comes after some looks."""

    looks = 0

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await super().identity(n_workers)
        self.looks += 1
        if self.looks < 6:
            del found["workers"]["tls://beta"]
        return found

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        if (work, address) == ("find_shards", "tls://alpha"):
            return b"7"
        return await super()._answer(work, argument, address)


def test_a_host_that_may_come_is_waited_for_where_no_other_can_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    order = ShardOrder("r", first_shard(tmp_path), (), "sim")
    client: Any = OneComes("")
    dispatch = Dispatch(client, [order], {}, Ledger(tmp_path / "kept", {}), lambda _: None)
    dispatch.hosts = {name: LabHost(name, "simulated") for name in ("alpha", "beta")}
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert client.measured == ["tls://beta"]
    assert dispatch.set_aside[order.shard.key].failures["beta"] == "is broken"
