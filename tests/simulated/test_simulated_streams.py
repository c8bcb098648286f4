"""Players of live movies in the simulated lab, in time and behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.parameters import OperatingPoint
from workbench.domain.samples import Sample
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab
from workbench.measuring.judging import Terms, first_drive_s, judge
from workbench.paths import Workspace


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    workspace = Workspace(tmp_path_factory.mktemp("streams"))
    return load_campaign("streaming", workspace=workspace).campaign


async def driven(campaign: Campaign, players: float, quality: float = 2.0) -> Sample:
    lab = SimulatedLab(campaign, LabSettings("streams", argument="noise=0"))
    await lab.open()
    plan = campaign.targets[0]
    first = campaign.configurations(plan)[0]
    chosen = replace(first, workload={**first.workload, "quality_mbps": quality})
    await lab.deploy(plan.target, chosen)
    at = OperatingPoint(plan.target.name, chosen, players)
    terms = Terms(load=campaign.load, windows=campaign.windows, sla=None, kpi=campaign.kpi)
    seen = await lab.drive(at, first_drive_s(at, terms), lambda usage: None)
    assert await lab.drive_bypass(at, 1.0, lambda usage: None) is None
    judged = judge([seen], at, terms, started_at=0.0, lab_s=26.5)
    assert judged.settled
    return judged.measurement.sample


async def test_few_players_are_in_time_and_many_are_not(campaign: Campaign) -> None:
    # A segment of 2 Mbit/s is 250 kB; the stand-in says what it costs at its quota.
    template = campaign.template("streaming").simulated
    each_s = (template["service_us"] + template["per_kb_us"] * 250) * 1e-6
    first = campaign.configurations(campaign.targets[0])[0]
    carries = first.vcpu("streaming") / each_s
    few, many = await driven(campaign, 0.5 * carries // 1), await driven(campaign, 2 * carries // 1)
    assert few.valid, few.findings
    assert many.valid, many.findings
    in_time, late = few.kpis["lag_ratio_pct"], many.kpis["lag_ratio_pct"]
    assert in_time.value == 0.0 < in_time.high < 30.0, "none late of some players is not none"
    assert late.value > 90.0
    assert few.load_model == "closed-streams"
    assert few.kpis["goodput_mbps"].value == pytest.approx(2.0 * few.point.wl, rel=0.05)
    assert many.kpis["goodput_mbps"].value == pytest.approx(2.0 * carries, rel=0.1)
    assert few.kpis["startup_ms"].value < many.kpis["startup_ms"].value


async def test_a_coarser_movie_is_for_more_players(campaign: Campaign) -> None:
    fine, coarse = await driven(campaign, 150.0), await driven(campaign, 150.0, 0.5)
    assert fine.kpis["lag_ratio_pct"].value > 90.0
    assert coarse.kpis["lag_ratio_pct"].value == 0.0
