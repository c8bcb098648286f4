"""Hosts that fail whatever they are given, among others that measure."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from test_dispatch_shares import HOSTS, FakeClient, manifest_of

from workbench.descriptors.loading import load_campaign
from workbench.domain import codec
from workbench.domain.fleets import LabHost, ShardOrder, ShardResult
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.host_doubts import REST_S, HostDoubts
from workbench.fleet.ledger import Ledger
from workbench.paths import Workspace
from workbench.sampling.shards import split
from workbench.store.bundle import MANIFEST, digest_of


class SomeAreBroken(FakeClient):
    """Hosts of which some fail at once, and the others take their time and measure."""

    def __init__(self, place: Path, broken: set[str]) -> None:
        super().__init__("")
        self.place, self.broken = place, broken
        self.looks, self.late = 0, 0
        place.mkdir()
        (place / MANIFEST).write_bytes(manifest_of())

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await super().identity(n_workers)
        self.looks += 1
        if self.looks < self.late:  # the first one is there alone
            for name in HOSTS[1:]:
                del found["workers"][f"tls://{name}"]
        return found

    async def _answer(self, work: str, argument: bytes, address: str) -> Any:
        host = address.removeprefix("tls://")
        if work != "measure_shard" or host in self.broken:
            return await super()._answer(work, argument, address)
        order = codec.from_plain(codec.loads(argument), ShardOrder)
        await asyncio.sleep(0.3)
        found = ShardResult(
            order.shard.key, host, order.session, str(self.place), digest_of(self.place), 3, 3, 9.0
        )
        return codec.dumps(codec.to_plain(found))


def run(tmp_path: Path, client: SomeAreBroken, said: list[str], most: int = 99) -> Dispatch:
    campaign = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    shards = split(campaign, 4, run="r", lab="sim", seed=1)[:most]
    orders = [ShardOrder("r", shard, (), "sim") for shard in shards]
    ledger = Ledger(tmp_path / "kept", dict.fromkeys(HOSTS, tmp_path))
    asked: Any = client
    dispatch = Dispatch(asked, orders, {}, ledger, said.append)
    dispatch.hosts = {name: LabHost(name, "simulated") for name in HOSTS}
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert len(dispatch.gathered) + len(dispatch.set_aside) == len(orders)
    return dispatch


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)


def test_three_broken_hosts_set_nothing_aside_that_a_good_one_can_measure(tmp_path: Path) -> None:
    client, said = SomeAreBroken(tmp_path / "it", {"alpha", "beta", "gamma"}), list[str]()
    dispatch = run(tmp_path, client, said)
    assert not dispatch.set_aside
    assert {found.result.host for found in dispatch.gathered.values()} == {"delta"}
    for host in client.broken:
        assert client.measured.count(f"tls://{host}") <= 2
        assert f"{host} gets no work for 60 s: 2 shards failed there in a row" in said


def test_what_fails_on_the_only_host_that_is_there_is_left_for_those_that_come(
    tmp_path: Path,
) -> None:
    client, said = SomeAreBroken(tmp_path / "it", {"alpha"}), list[str]()
    client.late = 30
    dispatch = run(tmp_path, client, said, most=1)
    assert client.measured == ["tls://alpha"]
    assert not dispatch.set_aside


def test_a_host_rests_after_two_failures_in_a_row_and_a_measured_shard_clears_it() -> None:
    doubts, hosts = HostDoubts(), ("a", "b", "c")
    doubts.failed("a", 0.0)
    assert doubts.of(hosts) == {"a"}  # it has not measured anything yet
    assert doubts.resting(hosts, 0.0) == set()
    doubts.measured("a")
    doubts.failed("a", 0.0)
    assert doubts.of(hosts) == set()  # it can: the shard is to blame
    doubts.failed("a", 5.0)
    assert doubts.of(hosts) == {"a"}
    assert doubts.resting(hosts, 5.0 + 0.9 * REST_S) == {"a"}
    assert doubts.resting(hosts, 5.0 + 1.1 * REST_S) == set()
    assert doubts.of(("a",)) == set()  # nobody else could tell
    assert doubts.resting(("a",), 5.0) == set()
    doubts.measured("a")
    assert doubts.row("a") == 0
