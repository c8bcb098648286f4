"""What is told of the hosts of a campaign: what each does, and when the whole ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_late_hosts import dispatch_of, orders_of

from workbench.cli.lab_fleet import _tell
from workbench.domain.counts import counted
from workbench.domain.events import RunFinished
from workbench.domain.fleets import Fleet, FleetSeen, HostsCompared, LabHost, ShardResult
from workbench.domain.projection import SessionView
from workbench.domain.session_tables import about
from workbench.fleet.dispatched import Gathered
from workbench.fleet.fleet_looks import FleetLooks, left_s, points
from workbench.fleet.fleet_runs import FleetOutcome
from workbench.fleet.fleet_standing import FleetFolder, FleetStanding, HostStanding
from workbench.fleet.host_doubts import IN_A_ROW
from workbench.fleet.open_shards import Hand, OpenShard
from workbench.fleet.security import Secrets
from workbench.fleet.shard_board import ShardBoard
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


@pytest.mark.parametrize(
    ("taken", "how"),
    [(20, "20 samples"), (1, "20 samples, 1 of them now"), (0, "20 samples, measured before")],
)
def test_a_measured_shard_is_counted_among_its_like_and_by_all_its_samples(
    tmp_path: Path, taken: int, how: str
) -> None:
    said: list[str] = []
    *orders, own = orders_of(tmp_path)
    before = ShardBoard(orders, {"a": own}, said.append)
    board = ShardBoard((), {}, said.append)
    for order in (orders[0], own):
        result = ShardResult(order.shard.key, "a", "s", samples=20, taken=taken)
        before._count(OpenShard(order), Gathered(order, result, tmp_path))
        before, board = board, before  # the next round counts on
        before.carry_on(board)
    what = (
        f"{orders[0].shard.target}, {counted(len(orders[0].shard.configurations), 'configuration')}"
    )
    shards = counted(len(orders), "shard")
    assert said[0] == f"a: {what}, {how} (1 of {shards})"
    assert said[1].startswith("a: anchor points of ")
    assert said[1].endswith(f", {how} (1 of 1 shard of anchor points)")


def test_lab_time_at_the_end_of_a_run_is_what_show_says(capsys: pytest.CaptureFixture[str]) -> None:
    _tell(FleetOutcome("s", None, "", 840.0, {"a": 720.0, "b": 702.0}, 80, 16, True, 312.0))
    told = " ".join(capsys.readouterr().out.split())
    assert "18.5 min of lab time and 5.2 min at anchor points over 2 hosts" in told
    view = SessionView("s")
    view.lab_s, view.hosts_compared = 1110.0, HostsCompared("a", ())
    *_, running = about(view)
    assert running == "Lab time 18.5 min so far, without that at anchor points"
    view.finished = RunFinished("done", 80, 0, 840.0, 1110.0, ())
    *_, ended = about(view)
    assert ended == "Lab time 18.5 min, without that at anchor points"
