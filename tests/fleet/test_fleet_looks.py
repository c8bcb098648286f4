"""What is told of the hosts of a campaign: what each does, and when the whole ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_late_hosts import dispatch_of, orders_of

from workbench.domain.fleets import Fleet, FleetSeen, LabHost
from workbench.fleet.fleet_looks import FleetLooks, left_s, points
from workbench.fleet.fleet_standing import FleetFolder, FleetStanding, HostStanding
from workbench.fleet.host_doubts import IN_A_ROW
from workbench.fleet.open_shards import Hand, OpenShard
from workbench.fleet.security import Secrets
from workbench.paths import Workspace

NAMES = ("a", "b", "c", "d")


def campaign(tmp_path: Path, **more: Any) -> Any:
    """Of four hosts that take a second for each point; nobody measures, eight shards are left."""
    order = orders_of(tmp_path)[0]
    found = SimpleNamespace(result=SimpleNamespace(host="a"), order=order, wall_s=points(order))
    known: dict[str, Any] = {
        "hands": [Hand(name, f"tls://{name}") for name in NAMES], "gathered": {"one": found},
        "unbegun": [order] * 8, "given": set(NAMES), "share": None,
    }  # fmt: skip
    return SimpleNamespace(**(known | more))


def test_the_time_to_go_is_of_the_hosts_that_are_given_something(tmp_path: Path) -> None:
    each = points(orders_of(tmp_path)[0])
    assert left_s(campaign(tmp_path), 0.0) == pytest.approx(2 * each)
    assert left_s(campaign(tmp_path, given={"b", "c"}), 0.0) == pytest.approx(4 * each)
    assert left_s(campaign(tmp_path, share=1), 0.0) == pytest.approx(8 * each)
    assert left_s(campaign(tmp_path, given=set()), 0.0) is None


@pytest.mark.parametrize(("waits_for", "whole"), [("", 0.5), ("ann", 1.0)])
def test_a_host_that_waits_for_its_turn_has_all_of_its_shard_before_it(
    tmp_path: Path, waits_for: str, whole: float
) -> None:
    order = orders_of(tmp_path)[0]
    hand = Hand("a", "tls://a", OpenShard(order), waits_for=waits_for)
    known = campaign(tmp_path, hands=[hand], unbegun=[], given={"a"})
    assert left_s(known, points(order) / 2) == pytest.approx(whole * points(order))


def looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_rounds: bool) -> FleetSeen:
    monkeypatch.setattr("workbench.fleet.fleet_standing.is_keeper", lambda _: True)
    names = ("held", "unfit", "rests", "idle", "asked", "begun", "behind", "waits")
    fleet = Fleet("hosts", tuple(LabHost(name, "simulated") for name in names))
    folder = FleetFolder.of(Workspace(tmp_path), "hosts")
    queued = HostStanding("waits", "queued", "its job 7 waits in the queue of Slurm")
    folder.write(FleetStanding(fleet, 1, "tls://[::1]:1", Secrets("", ""), (queued,)))
    looks = FleetLooks(fleet, folder, {}, 2, in_rounds=in_rounds)

    async def look() -> FleetSeen:
        early = await looks.look()
        assert [host.does for host in early.hosts] == [*["starting"] * 7, "queued"]
        dispatch = dispatch_of(tmp_path, None, orders_of(tmp_path), {})
        dispatch._hands = {name: Hand(name, f"tls://{name}") for name in names[:7]}
        for name in ("held", "unfit", "asked"):
            dispatch._hands[name].waits_for = "s of ann"
        dispatch._hands["begun"].waiting = dispatch._waiting.pop()
        dispatch._hands["begun"].waits_for = "ann"
        first = "two goes first (priority 5)"
        dispatch.told_held = {"held": "held by ann", "behind": first, "waits": first}
        dispatch._unfit["unfit"] = "disagrees with itself"
        for _ in range(IN_A_ROW):
            dispatch._doubts.failed("rests", asyncio.get_running_loop().time())
        looks.dispatch = dispatch
        return await looks.look()

    return asyncio.run(look())


@pytest.mark.parametrize("in_rounds", [False, True])
def test_a_host_that_is_given_nothing_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_rounds: bool
) -> None:
    seen = looked(tmp_path, monkeypatch, in_rounds=in_rounds)
    assert [(host.does, host.note) for host in seen.hosts] == [
        ("held", "held by ann"),
        ("out", "disagrees with itself"),
        ("out", "rests: 2 shards failed there in a row"),
        ("idle", ""),
        ("waiting", "waits for its turn there: s of ann measures first"),
        ("waiting", "waits for its turn there: ann measures first"),
        ("waiting", "two goes first (priority 5)"),
        ("queued", "its job 7 waits in the queue of Slurm"),
    ]
    assert [host.name for host in seen.hosts if host.shard] == ["begun"]
    assert seen.in_rounds == in_rounds


def test_nobody_knows_when_a_campaign_ends_that_is_planned_in_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.fleet_looks.left_s", lambda *_: 60.0)
    assert looked(tmp_path, monkeypatch, in_rounds=False).eta_s == 60.0
    assert looked(tmp_path, monkeypatch, in_rounds=True).eta_s is None
