"""Commands of templates and campaigns that never end, or whose children hold their output open."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from answering_components import AnsweringComponent, of_components

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign, InitializationCommand
from workbench.domain.errors import LabError, TrafficError
from workbench.domain.parameters import Configuration
from workbench.domain.topology import Readiness, VnfTemplate
from workbench.labs.components import packets, target
from workbench.labs.components.component import Outcome
from workbench.paths import Workspace

ENDLESS = ("sleep", "infinity")
TEMPLATE = VnfTemplate("filter", readiness=Readiness("command", command=ENDLESS, timeout_s=0.1))


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return load_campaign("udp-loss", workspace=Workspace(tmp_path)).campaign


def hangs(argv: Sequence[str]) -> Outcome | None:
    return None


async def test_a_readiness_that_never_ends_is_not_ready_in_time(campaign: Campaign) -> None:
    function = AnsweringComponent("filter", TEMPLATE, answers=hangs)
    deployed = of_components(campaign, function)
    async with asyncio.timeout(10):
        with pytest.raises(LabError, match=r"not ready in 0\.1 s: sleep has not ended") as caught:
            await deployed._ready(function)
    assert caught.value.where == "container filter (filter)"


async def test_what_a_readiness_said_before_it_hung_is_told(campaign: Campaign) -> None:
    answers = iter([Outcome(1, "", "still loading rules\n")])
    function = AnsweringComponent("filter", TEMPLATE, answers=lambda argv: next(answers, None))
    deployed = of_components(campaign, function)
    async with asyncio.timeout(10):
        with pytest.raises(LabError, match=r"not ready in 0\.1 s: still loading rules"):
            await deployed._ready(function)


async def test_a_reload_that_never_ends_is_an_error_of_its_template(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "RELOAD_S", 0.05)
    function = AnsweringComponent("filter", replace(TEMPLATE, reload=ENDLESS), answers=hangs)
    function.settings = {"rules": 100}
    deployed = of_components(campaign, function)
    async with asyncio.timeout(10):
        with pytest.raises(LabError, match=r"`reload` has not ended in 0\.05 s, for rules=100"):
            await deployed._reload(function)


async def test_an_initialization_that_never_ends_is_an_error_of_its_campaign(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target, "INITIALIZATION_S", 0.05)
    function = AnsweringComponent("filter", TEMPLATE, answers=hangs)
    asked = replace(campaign, initialization=(InitializationCommand("filter", ENDLESS),))
    async with asyncio.timeout(10):
        with pytest.raises(LabError, match=r"'sleep infinity' has not ended in 0\.05 s"):
            await of_components(asked, function)._initialize()


async def test_first_packets_that_are_never_sent_are_an_error(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packets, "PROBE_S", 0.05)

    def only_its_version(argv: Sequence[str]) -> Outcome | None:
        return Outcome(0, "iperf 3.12 (cJSON 1.7.15)\n", "") if "--version" in argv else None

    source, router, sink = (
        AnsweringComponent(name, campaign.template(template), answers=only_its_version)
        for name, template in (
            ("source", "packet-source"),
            ("router", "router"),
            ("sink", "packet-sink"),
        )
    )
    chosen = Configuration({"router.vcpu": 0.25}, {"packetsize_bytes": 512.0})
    async with asyncio.timeout(10):
        with pytest.raises(TrafficError, match=r"iperf3 .* has not ended in 0\.05 s"):
            await packets.prepare(of_components(campaign, sink, router, source), chosen)
