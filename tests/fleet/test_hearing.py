"""When a host counts as gone that did not hang up: within the 30 s that a fleet is to take."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import pytest
from test_dispatch_shares import HOSTS, FakeClient, FakeFuture, first_shard

from workbench.domain.fleets import Fleet, LabHost, ShardOrder
from workbench.fleet import fleet_scores, hearing
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.fleet_standing import FleetFolder
from workbench.fleet.hearing import VANISHED_S, Hearing
from workbench.fleet.keeper import AWAY_S, Keeper, _scheduling
from workbench.fleet.ledger import Ledger
from workbench.fleet.named_scheduler import LOOKING_S
from workbench.fleet.patience import TICK_S
from workbench.fleet.security import configure, made

NOTICED_S = 30.0
"""What a vanished host is to be noticed in."""
SLOW_LOOK_S = 4.0
"""What a look at the scheduler may take on a busy host, and it still is."""


@pytest.mark.parametrize("clock_off_s", [-3600.0, 0.0, 3600.0])
def test_a_host_is_silent_by_the_clock_of_whoever_listens(clock_off_s: float) -> None:
    now = [100.0]
    listener = Hearing(lambda: now[0])
    for _ in range(100):
        assert not listener.is_silent("tls://a", now[0] + clock_off_s)
        now[0] += 1.0
    last = now[0] - 1.0 + clock_off_s
    for _ in range(int(VANISHED_S) - 1):
        assert not listener.is_silent("tls://a", last)
        now[0] += 1.0
    now[0] += 1.0
    assert listener.is_silent("tls://a", last)
    assert not listener.is_silent("tls://a", last + VANISHED_S)  # it is back
    listener.keep(("tls://b",))
    assert not listener.is_silent("tls://a", last + VANISHED_S)  # nobody knows it any more


def test_what_the_listener_itself_missed_is_no_silence_of_a_host() -> None:
    now = [100.0]
    listener = Hearing(lambda: now[0])
    for _ in range(3):  # it stands still again and again, and the host speaks in between
        for _ in range(3):
            assert not listener.is_silent("tls://a", now[0] - now[0] % 1000.0)
            now[0] += 1.0
        now[0] += 1000.0
    assert not listener.is_silent("tls://a", 3000.0)
    now[0] += 10 * VANISHED_S
    assert not listener.is_silent("tls://a", 3000.0)
    looks = 0
    while not listener.is_silent("tls://a", 3000.0):
        now[0] += 1.0
        looks += 1
    assert VANISHED_S - hearing.LONGEST_GAP_S <= looks <= VANISHED_S


async def test_a_keeper_that_stood_still_looks_before_it_ends_a_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while it imports, on a busy host, what somebody has the hosts do."""
    monkeypatch.setattr("workbench.fleet.keeper.AWAY_S", 0.15)
    there = {"alpha"}
    fleet = Fleet("hosts", (LabHost("alpha", "simulated"),))
    keeper = Keeper(fleet, FleetFolder(tmp_path), made(), "tls://[::1]:1", lambda: there)
    vanished = asyncio.create_task(keeper._vanished("alpha"))
    for _ in range(3):
        await asyncio.sleep(0.06)
        time.sleep(0.3)
    await asyncio.sleep(0.1)
    assert not vanished.done()
    there.clear()
    time.sleep(0.3)
    await asyncio.sleep(0.06)
    assert not vanished.done()
    await asyncio.wait_for(vanished, 5.0)


def test_what_notices_a_vanished_host_adds_up_to_less_than_30_s() -> None:
    by_campaign = TICK_S + VANISHED_S + TICK_S + 2 * SLOW_LOOK_S
    by_keeper = LOOKING_S + VANISHED_S + LOOKING_S + AWAY_S + AWAY_S / 3
    assert by_campaign < NOTICED_S
    assert TICK_S + SLOW_LOOK_S <= hearing.LONGEST_GAP_S  # else they would not count whole
    assert fleet_scores.LOOKING_S <= hearing.LONGEST_GAP_S
    assert by_keeper < NOTICED_S


class FakeScheduler:
    """With a worker that is heard of and one that is not, by a clock that was set."""

    def __init__(self, **_: object) -> None:
        self.address = "tls://[::1]:1"
        names = ("alpha", "beta")
        self.workers = {
            f"tls://{name}": SimpleNamespace(name=name, address=f"tls://{name}", last_seen=1e9)
            for name in names
        }

    async def __aenter__(self) -> FakeScheduler:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def remove_worker(self, address: str, *, stimulus_id: str) -> None:
        assert stimulus_id
        del self.workers[address]


def test_only_who_is_silent_is_removed_whatever_the_clock_here_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dask itself would compare with the time of day: set ahead, all would be gone at once."""
    scheduler = FakeScheduler()
    monkeypatch.setattr("distributed.Scheduler", lambda **_: scheduler)
    monkeypatch.setattr(hearing, "VANISHED_S", 0.2)
    monkeypatch.setattr("workbench.fleet.keeper.AWAY_S", 0.03)
    configure()
    assert dask.config.get("distributed.scheduler.worker-ttl") is None

    async def whole() -> None:
        async with _scheduling(Fleet("hosts", ()), made()) as (_, present):
            assert present() == {"alpha", "beta"}
            for _ in range(20):
                await asyncio.sleep(0.03)
                if "tls://alpha" in scheduler.workers:
                    scheduler.workers["tls://alpha"].last_seen += 1.0
            assert set(scheduler.workers) == {"tls://alpha"}
            assert present() == {"alpha"}

    asyncio.run(whole())


class OneVanishes(FakeClient):
    """One host hangs in what it measures; nobody hangs up."""

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await super().identity(n_workers)
        found["workers"]["tls://alpha"]["last_seen"] = 1.0
        return found

    def submit(self, work: Any, argument: Any, *, workers: list[str], **more: Any) -> FakeFuture:
        if work.__name__ == "measure_shard" and workers == ["tls://alpha"]:
            return FakeFuture()
        return super().submit(work, argument, workers=workers, **more)


def test_a_campaign_notices_and_says_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "VANISHED_S", 0.3)
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.01)
    monkeypatch.setattr("workbench.fleet.patience.RETURN_S", 0.1)
    said: list[str] = []
    orders = [ShardOrder("r", first_shard(tmp_path), (), "sim")]
    client: Any = OneVanishes("")
    dispatch = Dispatch(client, orders, {}, Ledger(tmp_path / "kept", {}), said.append)
    dispatch.hosts = {name: LabHost(name, "simulated") for name in HOSTS}
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    (gone,) = [line for line in said if line.startswith("alpha is gone")]
    assert "waits 0.1 s for it" in gone
