"""A switch that starts again takes all hosts away: a run that had one waits for them."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
from test_fetched_bundles import GOOD
from test_late_hosts import HOSTS, AlphaComesLate, dispatch_of, orders_of

from workbench.cli import lab_fleet
from workbench.domain.fleets import ShardOrder
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.fleet_standing import FleetError, FleetFolder
from workbench.fleet.host_absence import HostAbsence
from workbench.fleet.leases import Leases
from workbench.paths import Workspace
from workbench.store.bundle import MANIFEST

LOOK_S = 100.0
"""That the patched clock goes on with each look at an absence."""


class AllVanish(AlphaComesLate):
    """Once a shard was given, nobody is there for some looks."""

    now = 0.0
    away = 0

    async def identity(self, n_workers: int) -> dict[str, Any]:
        found = await super().identity(n_workers)
        if not self.given or self.away <= 0:
            return found
        self.away -= 1
        self.now += LOOK_S
        return {"workers": {}}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)


def waiting(
    tmp_path: Path, away: int, said: list[str]
) -> tuple[AllVanish, Dispatch, list[ShardOrder]]:
    client = AllVanish(GOOD, hashlib.sha256(GOOD[MANIFEST]).hexdigest())
    client.away, orders = away, orders_of(tmp_path)
    dispatch = dispatch_of(tmp_path, client, orders, {})
    dispatch.share = 1  # so that something is left
    dispatch.absence = HostAbsence(said.append, clock=lambda: client.now)
    return client, dispatch, orders


def test_a_run_that_had_a_host_waits_for_the_next_and_says_so_now_and_then(tmp_path: Path) -> None:
    said: list[str] = []
    client, dispatch, orders = waiting(tmp_path, 30, said)
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert not dispatch.missing(orders)
    assert client.away == 0
    ends = "the run goes on when one is back; Ctrl-C, or `s` on its screens, ends it"
    assert said == [
        f"no host has been there for 3.3 min: {ends}",
        f"no host has been there for 35.0 min: {ends}",
        "a host is there again: the run goes on",
    ]


def test_it_waits_for_a_night_and_no_longer(tmp_path: Path) -> None:
    said: list[str] = []
    client, dispatch, _ = waiting(tmp_path, 10**6, said)
    with pytest.raises(FleetError, match=r"no host was there for 12\.\d h"):
        asyncio.run(asyncio.wait_for(dispatch.run(), 60.0))
    assert client.now == pytest.approx(12 * 3600.0, abs=5 * LOOK_S)
    assert 20 < len(said) < 26


def test_hosts_that_are_all_there_and_say_nothing_are_not_waited_for_for_a_night() -> None:
    """Nobody starts them again: their workers are there."""
    now, said = [0.0], list[str]()
    absence = HostAbsence(said.append, clock=lambda: now[0], had_one=True)
    assert not absence.is_due()
    now[0] = 200.0
    assert absence.is_due()
    absence.say(silent=True)
    assert "been there, or said what it has finished, for 3.3 min" in said[0]
    with pytest.raises(FleetError, match=r"or said what it has finished, for 3\.3 min"):
        absence.say(silent=True, all_there=True)


async def test_who_ends_it_meanwhile_waits_for_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    _, dispatch, _ = waiting(tmp_path, 10**6, said)
    running = asyncio.create_task(dispatch.run())
    while not said:  # noqa: ASYNC110 - nothing rings a bell
        await asyncio.sleep(0.005)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 5.0)


def test_an_absence_of_all_hosts_makes_none_of_them_lose_what_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.RETURN_S", 0.1)
    client, dispatch, orders = waiting(tmp_path, 60, [])
    dispatch.bind({order.shard.key: host for order, host in zip(orders, HOSTS, strict=True)})
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert not dispatch.set_aside
    assert client.by == {order.shard.key: host for order, host in zip(orders, HOSTS, strict=True)}


def test_status_says_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("workbench.cli.context.current_workspace", lambda: Workspace(tmp_path))
    with Leases(FleetFolder.of(Workspace(tmp_path), "hosts").leases).contending("night"):
        lab_fleet._tell_who_waits("hosts")
    said = capsys.readouterr()
    assert "night (process" in said.err + said.out
    assert "waits until a host is up" in said.err + said.out
