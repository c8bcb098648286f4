"""A host that a person holds: it hands over what it has measured, and keeps nothing else back."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest
from test_anchor_judging import Measures
from test_fetched_bundles import GOOD, Sends
from test_late_hosts import HOSTS, anchors, dispatch_of, orders_of, with_kept

from workbench.fleet.open_shards import Hand
from workbench.store.bundle import MANIFEST

DIGEST = hashlib.sha256(GOOD[MANIFEST]).hexdigest()
HELD = {"alpha": "held by ann until it is given back"}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit_s in (("TICK_S", 0.005), ("KEPT_PAUSE_S", 0.02), ("KEPT_S", 0.2)):
        monkeypatch.setattr(f"workbench.fleet.patience.{name}", limit_s)


@pytest.mark.parametrize("room", [True, False])
def test_what_a_held_host_has_measured_is_asked_for_again_and_does_not_wait_for_its_release(
    tmp_path: Path, room: bool
) -> None:
    """It had finished both shards when it was asked first, and could not send them then."""
    client: Any = Sends(ValueError("its disk is full"), DIGEST, None)
    dispatch, said = dispatch_of(tmp_path, client, orders_of(tmp_path), {}), list[str]()

    def tell(text: str) -> None:
        said.append(text)
        if room and "and not here yet: " in text:
            client.sent = GOOD

    dispatch._tell = tell
    dispatch.hosts = {"alpha": dispatch.hosts["alpha"]}
    dispatch.held = lambda: HELD
    asyncio.run(asyncio.wait_for(dispatch.run(), 10.0))
    assert len(dispatch.gathered if room else dispatch.set_aside) == 2
    assert client.asked.count("send_piece") > 2
    assert "measure_shard" not in client.asked


@pytest.mark.parametrize("kept", [True, False])
def test_of_what_only_a_host_measures_one_that_is_held_is_asked_for_what_it_has(
    tmp_path: Path, kept: bool
) -> None:
    async def given() -> bool:
        dispatch, shard = with_kept(tmp_path, {"beta": anchors(tmp_path)["beta"]})
        dispatch.told_held = {"beta": "held by ann"}
        own, beta = dispatch._own["beta"], dispatch._hands["beta"]
        own.kept = shard.kept if kept else None
        assert (own in dispatch._to_come(0.0)) == kept
        dispatch._employ(beta, 1.0)
        if beta.task is not None:
            beta.task.cancel()
        return beta.waiting is own

    assert asyncio.run(given()) == kept


def test_who_is_held_is_told_to_be_waited_for_once_nothing_else_is_left(tmp_path: Path) -> None:
    """Points were planned for it, which no other measures while it may come back."""
    client: Any = Measures(GOOD, DIGEST)
    orders, said = orders_of(tmp_path), list[str]()
    dispatch = dispatch_of(tmp_path, client, orders, {})
    keys = [order.shard.key for order in orders]
    dispatch.bind(dict(zip(keys, HOSTS, strict=True)))
    dispatch._tell = said.append
    held = dict(HELD)
    dispatch.held = lambda: dict(held)

    async def until_released() -> None:
        running = asyncio.create_task(dispatch.run())
        await asyncio.sleep(0.3)
        assert not running.done()
        assert dispatch.gathered.keys() == {keys[1]}
        held.clear()
        await asyncio.wait_for(running, 10.0)

    asyncio.run(until_released())
    assert not dispatch.missing(orders)
    (place,) = (i for i, text in enumerate(said) if text.startswith("nothing else is left: "))
    assert said[place].startswith(f"nothing else is left: 1 shard of alpha, {HELD['alpha']}; ")
    assert any("(1 of 2 shards)" in text for text in said[:place])
    assert said[place + 1] == "alpha is free again"


def test_a_host_that_is_held_is_not_said_to_be_waited_for_while_others_measure(
    tmp_path: Path,
) -> None:
    async def said() -> list[str]:
        dispatch = dispatch_of(tmp_path, None, orders_of(tmp_path), {})
        told = list[str]()
        dispatch._tell, dispatch.told_held = told.append, HELD
        dispatch._hands = {host: Hand(host, f"tls://{host}", asked=True) for host in HOSTS}
        first, other = dispatch._waiting
        first.bound = "alpha"
        dispatch._tell_who_is_waited_for(0.0)  # beta is to be given the other
        dispatch._waiting.remove(other)
        dispatch._hands["beta"].waiting = other
        dispatch._tell_who_is_waited_for(0.0)
        assert told == []
        dispatch._hands["beta"].waiting = None
        for _ in range(2):
            dispatch._tell_who_is_waited_for(0.0)
        return told

    assert len(asyncio.run(said())) == 1


def test_to_send_what_was_measured_takes_no_share_of_a_fleet(tmp_path: Path) -> None:
    """Its disk may hang for minutes, and what others have is had meanwhile."""

    async def given() -> tuple[bool, bool]:
        dispatch, kept = with_kept(tmp_path, {})
        dispatch.share = 1
        sending, other = dispatch._hands.values()
        sending.waiting = kept
        (free,) = (w for w in dispatch._waiting if w is not kept)
        dispatch._employ(other, 1.0)
        measures = other.waiting is free
        dispatch._waiting.append(kept)
        sending.waiting, kept.host = None, sending.name
        dispatch._employ(sending, 1.0)
        for hand in (sending, other):
            if hand.task is not None:
                hand.task.cancel()
        return measures, sending.waiting is kept

    assert asyncio.run(given()) == (True, True)


def test_anchor_points_that_are_measured_are_asked_of_a_host_whose_lab_fails_since(
    tmp_path: Path,
) -> None:
    """They were set aside, and without them no model learns from what it measured."""

    async def left() -> tuple[bool, bool]:
        dispatch, shard = with_kept(tmp_path, {"beta": anchors(tmp_path)["beta"]})
        own = dispatch._own["beta"]
        own.kept = shard.kept
        dispatch._unusable("beta", "its Docker engine does not answer")
        own.again = 30.0  # it was just asked, in vain
        dispatch._give_up_bound(1.0)
        own.again = 0.0
        dispatch._only_asked.add("beta")
        dispatch._employ(dispatch._hands["beta"], 1.0)
        if (task := dispatch._hands["beta"].task) is not None:
            task.cancel()
        return dispatch._hands["beta"].waiting is own, bool(dispatch.set_aside)

    assert asyncio.run(left()) == (True, False)
