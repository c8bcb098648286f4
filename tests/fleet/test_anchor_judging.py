"""A host that disagrees with itself is taken out of service while a campaign is measured."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_fetched_bundles import GOOD, Sends
from test_hosts_and_shards import anchors

from workbench.descriptors.loading import load_campaign
from workbench.domain import codec
from workbench.domain.campaign import Campaign
from workbench.domain.errors import SessionError
from workbench.domain.fleets import LabHost, ShardOrder, ShardResult
from workbench.domain.lab import HostFacts
from workbench.fleet.anchor_judging import AnchorJudge
from workbench.fleet.dispatch import Dispatch
from workbench.fleet.ledger import Ledger
from workbench.fleet.patience import OWN_TRIES
from workbench.paths import Workspace
from workbench.sampling.shards import anchor, split
from workbench.store.bundle import MANIFEST

HOSTS = ("alpha", "beta", "gamma")
FACTS = HostFacts("docker", 4, 2**30, "6.1", "A", "v2", "none", {}, {})


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return load_campaign("demo", workspace=Workspace(tmp_path)).campaign


def own(campaign: Campaign) -> dict[str, ShardOrder]:
    return {
        host: ShardOrder("r", anchor(campaign, host=host, run="r", lab="sim", seed=1), ())
        for host in HOSTS
    }


class Measures(Sends):
    """Hosts that measure whatever they are asked for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.given: list[str] = []

    async def _answer(self, work: str, argument: Any, address: str) -> Any:
        if work == "measure_shard":
            self.given.append(address.removeprefix("tls://"))
        return await super()._answer(work, argument, address)


def test_a_host_is_given_nothing_once_it_disagrees_with_itself(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    anchored = own(campaign)
    keys = {order.shard.key for order in anchored.values()}
    shards = split(campaign, 4, run="r", lab="sim", seed=1)
    client: Any = Measures(GOOD, hashlib.sha256(GOOD[MANIFEST]).hexdigest())
    verdicts: list[str] = []

    def unsteady(gathered: Mapping[str, object]) -> dict[str, str]:
        if not keys <= gathered.keys():
            return {}
        verdicts.append("gamma")
        return {"gamma": "p95_ms scatters"}

    said: list[str] = []
    orders = [ShardOrder("r", shard, ()) for shard in shards]
    dispatch = Dispatch(client, orders, anchored, Ledger(tmp_path / "kept", {}), said.append)
    dispatch.hosts = {host: LabHost(host, "simulated") for host in HOSTS}
    dispatch.unsteady = unsteady
    # Nothing is on its way to gamma while it is judged, but its anchor points.
    dispatch.held = lambda: (
        {"gamma": "is judged"} if "gamma" in client.given and not verdicts else {}
    )
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))
    assert said.count("gamma gets no work: disagrees with itself: p95_ms scatters") == 1
    assert client.given.count("gamma") == 1  # its anchor points
    assert len(dispatch.gathered) == len(shards) + len(HOSTS)
    assert not dispatch.set_aside


class FailsAnchors(Measures):
    """Beta cannot measure its anchor points at first."""

    keys: frozenset[str] = frozenset()
    failures = 0

    async def _answer(self, work: str, argument: Any, address: str) -> Any:
        if work == "measure_shard" and address == "tls://beta":
            order = codec.from_plain(codec.loads(argument), ShardOrder)
            self.given.append(order.shard.key)
            if self.failures and order.shard.key in self.keys:
                self.failures -= 1
                failed = ShardResult(order.shard.key, "beta", order.session, failure="no room")
                return codec.dumps(codec.to_plain(failed))
        return await super()._answer(work, argument, address)


@pytest.mark.parametrize("failures", [OWN_TRIES - 1, OWN_TRIES])
def test_anchor_points_that_fail_are_tried_again_before_anything_else(
    campaign: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    monkeypatch.setattr("workbench.fleet.patience.TICK_S", 0.005)
    monkeypatch.setattr("workbench.fleet.patience.OWN_PAUSE_S", 0.1)
    monkeypatch.setattr("workbench.fleet.host_doubts.REST_S", 0.1)
    anchored = own(campaign)
    orders = [ShardOrder("r", s, ()) for s in split(campaign, 4, run="r", lab="sim", seed=1)]
    client: Any = FailsAnchors(GOOD, hashlib.sha256(GOOD[MANIFEST]).hexdigest())
    client.keys = frozenset(order.shard.key for order in anchored.values())
    client.failures = failures
    said: list[str] = []
    dispatch = Dispatch(client, orders, anchored, Ledger(tmp_path / "kept", {}), said.append)
    dispatch.hosts = {host: LabHost(host, "simulated") for host in HOSTS}
    asyncio.run(asyncio.wait_for(dispatch.run(), 30.0))

    assert not dispatch.missing(orders)
    assert sum("tries again after" in text for text in said) == OWN_TRIES - 1
    mine = anchored["beta"].shard.key
    keys = [key for key in client.given if key not in HOSTS]
    assert keys[:OWN_TRIES] == [mine] * OWN_TRIES, "and nothing else before"
    without = [text for text in said if text.startswith("warning: beta has no anchor points")]
    if failures < OWN_TRIES:
        assert mine in dispatch.gathered
        assert not dispatch.set_aside
        assert not without
    else:
        assert dispatch.set_aside[mine].failures == {"beta": "no room"}
        (text,) = without
        assert "no factor says how it compares" in text
        assert "no model learns from a session with it" in text
        assert "the same command with the session's name measures the anchor points" in text

        # Which is so: another command on the same ledger gives that host them, and nobody else.
        client.given.clear()
        again = Dispatch(client, orders, anchored, Ledger(tmp_path / "kept", {}), said.append)
        again.hosts = dispatch.hosts
        asyncio.run(asyncio.wait_for(again.run(), 30.0))
        assert [key for key in client.given if key not in HOSTS] == [mine]
        assert not again.missing((*orders, *anchored.values()))


def test_hosts_are_judged_by_three_and_read_once(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, read = np.random.default_rng(3), list[str]()
    samples = {"alpha": anchors(rng, 1.0, 0.01), "beta": anchors(rng, 0.7, 0.6),
               "gamma": anchors(rng, 1.3, 0.01)}  # fmt: skip

    def piece(host: str) -> SimpleNamespace:
        read.append(host)
        return SimpleNamespace(samples=samples[host], created=SimpleNamespace(host=FACTS))

    monkeypatch.setattr("workbench.fleet.anchor_judging.read_piece", piece)
    keys = {host: order.shard.key for host, order in own(campaign).items()}
    judge, gathered = AnchorJudge(own(campaign), "p95_ms"), dict[str, Any]()
    for host in HOSTS:
        assert judge.unsteady(gathered) == {}
        gathered[keys[host]] = host
    assert judge.unsteady(gathered).keys() == {"beta"}
    gathered["of another shard"] = "none"
    assert judge.unsteady(gathered).keys() == {"beta"}
    assert read == list(HOSTS)


def test_a_host_that_is_another_machine_is_named_once(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {"alpha": FACTS, "beta": replace(FACTS, kernel="6.12", cpu_model="B", cores=8),
             "gamma": FACTS}  # fmt: skip

    def piece(host: str) -> SimpleNamespace:
        return SimpleNamespace(samples=(), created=SimpleNamespace(host=facts[host]))

    monkeypatch.setattr("workbench.fleet.anchor_judging.read_piece", piece)
    said: list[str] = []
    judge = AnchorJudge(own(campaign), "p95_ms", said.append)
    gathered: Any = {order.shard.key: host for host, order in own(campaign).items()}
    for _ in range(2):
        assert judge.unsteady(gathered) == {}
    assert said == [
        "beta has another CPU (8 cores, B) than alpha (4 cores, A) and another kernel (6.12) than "
        "alpha (6.1): only the factor between them says what that does"
    ]


def test_anchor_points_that_cannot_be_read_judge_nobody(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(_: object) -> None:
        raise SessionError("is damaged")

    monkeypatch.setattr("workbench.fleet.anchor_judging.read_piece", damaged)
    gathered: Any = {
        order.shard.key: SimpleNamespace(bundle="there") for order in own(campaign).values()
    }
    assert AnchorJudge(own(campaign), "p95_ms").unsteady(gathered) == {}
