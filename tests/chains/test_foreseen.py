"""Chains that need not be measured: what must be known, and how sure it must be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from workbench.chains.foreseen import foreseen
from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Estimate, Sample
from workbench.paths import Workspace

LOADS = (100.0, 200.0, 300.0, 400.0, 450.0, 500.0, 550.0, 600.0, 800.0, 1200.0)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return load_campaign("policy", workspace=Workspace(tmp_path)).campaign


def sampled(target: str, configuration: Configuration, carries: float) -> list[Sample]:
    """Samples of what carries so much and loses the rest."""
    samples = []
    for wl in LOADS:
        over = wl > carries
        lost = max(0.0, 100 * (1 - carries / wl))
        rate = min(wl, carries)
        kpis = {
            "throughput_rps": Estimate(rate, 0.99 * rate, 1.01 * rate),
            "loss_pct": Estimate(lost, max(0.0, 0.98 * lost), 1.02 * lost),
            "p95_ms": Estimate(5.0, 4.9, 5.1),
        }
        samples.append(
            Sample(
                id=f"{target}/{configuration.key}/{wl:g}/0",
                point=OperatingPoint(target, configuration, wl),
                kpis=kpis, usage={}, valid=True, findings=(),
                labels=("overloaded",) if over else (), load_model="open-constant",
                kpi_definition="planned", generator="made", planned=int(3 * wl),
                completed=int(3 * rate), errors=0, unfinished=0, windows=1, batches=6,
                throttled_share=0.0, straddle_share=0.0, started_at=0.0, measured_s=3.0, lab_s=4.0,
            )
        )  # fmt: skip
    return samples


def of_all(campaign: Campaign, carries: dict[str, float]) -> list[Sample]:
    return [
        sample
        for plan in campaign.targets
        if plan.target.name in carries
        for configuration in campaign.configurations(plan)
        for sample in sampled(plan.target.name, configuration, carries[plan.target.name])
    ]


ALONE = {"haproxy": 1000.0, "tinyproxy": 500.0, "nginx": 1100.0}


def pair(carries: float) -> dict[str, float]:
    """Either order of two functions was measured, and carries so much."""
    return {"haproxy-tinyproxy": carries, "tinyproxy-haproxy": carries}


def test_what_was_measured_so_far_says_how_sure_a_forecast_is(campaign: Campaign) -> None:
    plan = campaign.target_plan("nginx-haproxy-tinyproxy")
    sure = foreseen(campaign, plan, of_all(campaign, {**ALONE, **pair(500.0)}))
    off = foreseen(campaign, plan, of_all(campaign, {**ALONE, **pair(400.0)}))
    assert sure.keys() == off.keys() == set(campaign.configurations(plan))
    for configuration, forecast in sure.items():
        assert forecast.value == pytest.approx(500.0, rel=0.1)
        assert forecast.measured == 2
        assert forecast.low < forecast.value < forecast.high
        assert off[configuration].off_by > 0.15 > forecast.off_by
        assert off[configuration].within > forecast.within
        assert "2 configurations of chains that were measured" in forecast.note(0.15)


def test_nothing_is_left_out_where_nothing_tells(campaign: Campaign) -> None:
    plan = campaign.target_plan("nginx-haproxy-tinyproxy")
    assert not foreseen(campaign, plan, of_all(campaign, ALONE))  # no chain was measured
    without = {"haproxy": 1000.0, "tinyproxy": 500.0, **pair(500.0)}
    assert not foreseen(campaign, plan, of_all(campaign, without))  # nothing is known of nginx
    samples = of_all(campaign, {**ALONE, **pair(500.0)})
    closed = replace(campaign, load=replace(campaign.load, kind="closed"))
    assert not foreseen(closed, plan, samples)
    assert not foreseen(campaign, campaign.target_plan("nginx"), samples)
