"""Packets in the simulated lab: queue, service and drops of each hop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.load_shapes import LoadShape
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Sample
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab
from workbench.measuring.judging import Terms, judge
from workbench.measuring.records import PacketCounts
from workbench.paths import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def configured(campaign: Campaign, target: int, **given: float) -> Configuration:
    """The first configuration of a target, with other settings."""
    plan = campaign.targets[target]
    first = campaign.configurations(plan)[0]
    settings = {key.replace("__", "."): value for key, value in given.items()}
    assert settings.keys() <= first.workload.keys()
    return replace(first, workload={**first.workload, **settings})


async def driven(
    campaign: Campaign, target: int, configuration: Configuration, rate: float
) -> tuple[Sample, PacketCounts]:
    lab = SimulatedLab(campaign, LabSettings("packets", argument="noise=0"))
    await lab.open()
    plan = campaign.targets[target]
    await lab.deploy(plan.target, configuration)
    at = OperatingPoint(plan.target.name, configuration, rate)
    seen = await lab.drive(at, 3.0, lambda usage: None)
    assert await lab.drive_bypass(at, 1.0, lambda usage: None) is None
    terms = Terms(load=campaign.load, windows=campaign.windows, sla=None, kpi=campaign.kpi)
    judged = judge([seen], at, terms, started_at=0.0, lab_s=3.0)
    assert seen.packets is not None
    return judged.measurement.sample, seen.packets


async def test_more_rules_cost_more_and_overflow_the_queue_earlier(workspace: Workspace) -> None:
    campaign = load_campaign("firewall", workspace=workspace).campaign
    rates = {}
    for rules in (100.0, 10_000.0):
        chosen = configured(campaign, 0, firewall__rules=rules)
        sample, counts = await driven(campaign, 0, chosen, 15_000.0)
        assert sample.valid, sample.findings
        assert counts.unaccounted == 0
        rates[rules] = sample
        used = sample.usage["firewall"].cpu_cores
        assert used == pytest.approx(15_000 * 12.7e-6 if rules == 100 else 0.5, rel=0.1)
    few, many = rates[100.0].kpis["loss_pct"], rates[10_000.0].kpis["loss_pct"]
    assert few.value == 0.0 < few.high < 0.05, "none lost of 30,000 is not known to be none"
    # Half a core carries 0.5 / (12 + 0.5 * 0.512 + 0.0055 * 10,000) us = 7,430 packets/s.
    assert many.value == pytest.approx(100 * (1 - 7_430 / 15_000), abs=3.0)
    remark = next(r for r in rates[10_000.0].remarks if r.label == "overloaded")
    assert "at firewall: queue" in remark.evidence


async def test_a_chain_loses_where_its_slowest_hop_is(workspace: Workspace) -> None:
    campaign = load_campaign("nat", workspace=workspace).campaign
    chain = next(i for i, p in enumerate(campaign.targets) if len(p.target.vnfs) == 2)
    sample, counts = await driven(campaign, chain, configured(campaign, chain), 40_000.0)
    assert counts.unaccounted == 0
    assert set(counts.dropped_at) == {"firewall: queue"}, "NAT is quicker than 1,000 rules"
    assert counts.exact is not None
    assert counts.exact[0] - counts.exact[1] == counts.dropped_at["firewall: queue"]
    received = np.sum(counts.received)
    assert received == pytest.approx(counts.exact[1], rel=0.01)
    assert sample.usage["nat"].rx_mbps < 0.9 * sample.usage["firewall"].rx_mbps


async def test_the_source_sends_no_more_than_it_can(workspace: Workspace) -> None:
    campaign = load_campaign("firewall", workspace=workspace).campaign
    sample, counts = await driven(campaign, 0, configured(campaign, 0), 200_000.0)
    assert sample.reason == "source_saturated"
    assert counts.sent.sum() < counts.planned.sum()


async def test_rules_cost_delay_and_bursts_queue(workspace: Workspace) -> None:
    campaign = load_campaign("delay", workspace=workspace).campaign
    few, _ = await driven(campaign, 0, configured(campaign, 0, firewall__rules=100.0), 500.0)
    many, counts = await driven(campaign, 0, configured(campaign, 0, firewall__rules=2e4), 500.0)
    assert few.kpi_definition == many.kpi_definition == "one-way"
    assert few.valid, few.findings
    assert many.load_model == "packets-poisson-exponential-sizes"
    assert many.kpis["p50_ms"].low > few.kpis["p50_ms"].high
    assert counts.delays is not None
    load = replace(campaign.load, arrivals="constant", shape=LoadShape("bursts"))
    bursty = replace(campaign, load=load)
    chosen = configured(campaign, 0, firewall__rules=2e4)
    on = replace(chosen, workload={**chosen.workload, "duty": 0.1, "period_s": 0.2})
    queued, _ = await driven(bursty, 0, on, 1000.0)  # 10,000/s for 20 ms, each of 0.12 ms
    assert queued.kpis["p95_ms"].low > many.kpis["p95_ms"].high


async def test_two_translations_carry_what_a_quarter_of_a_core_did(workspace: Workspace) -> None:
    campaign = load_campaign("nat64", workspace=workspace).campaign
    few, counts = await driven(campaign, 0, configured(campaign, 0), 4_000.0)
    assert counts.unaccounted == 0
    assert few.kpis["loss_pct"].value == 0.0
    over, counts = await driven(campaign, 0, configured(campaign, 0), 20_000.0)
    assert set(counts.dropped_at) == {"nat64: queue"}
    # Measured: 5,350 and 6,300 packets/s at a quarter of a core (docs/packets.md).
    assert over.kpis["loss_pct"].value == pytest.approx(100 * (1 - 6_500 / 20_000), abs=3.0)


async def test_a_virtual_switch_pays_for_packets_and_not_for_rules(workspace: Workspace) -> None:
    campaign = load_campaign("vswitch", workspace=workspace).campaign
    lost = []
    for rules in (10.0, 10_000.0):
        chosen = configured(campaign, 0, vswitch__rules=rules)
        over, counts = await driven(campaign, 0, chosen, 40_000.0)
        assert set(counts.dropped_at) == {"vswitch: queue"}
        assert counts.unaccounted == 0
        lost.append(over.kpis["loss_pct"].value)
    # Measured: 59,000 and 57,000 of 120,000 packets came through (docs/packets.md).
    assert lost == pytest.approx([51.0, 53.0], abs=4.0)


async def test_each_pattern_costs_and_the_quota_holds(workspace: Workspace) -> None:
    campaign = load_campaign("inspect", workspace=workspace).campaign
    few, *_, many = campaign.configurations(campaign.targets[0])
    (patterns,) = (
        p for p in campaign.template("inspect").function_parameters if p.name == "patterns"
    )
    assert patterns.simulated_us > 0
    light, counts = await driven(campaign, 0, few, 1_000.0)
    assert counts.unaccounted == 0
    assert light.kpis["loss_pct"].value == 0.0
    sought = (many.parameter("inspect.patterns", 0) - few.parameter("inspect.patterns", 0)) * 1e-6
    heavy, counts = await driven(campaign, 0, many, 200.0)
    assert counts.unaccounted == 0
    each = [s.usage["inspect"].cpu_cores / rate for s, rate in ((light, 1e3), (heavy, 200.0))]
    assert each[1] - each[0] == pytest.approx(patterns.simulated_us * sought, rel=0.1)
    over, counts = await driven(campaign, 0, many, 10_000.0)
    assert set(counts.dropped_at) == {"inspect: queue"}
    assert over.usage["inspect"].cpu_cores == pytest.approx(0.25, rel=0.1)
    assert over.valid, over.findings
