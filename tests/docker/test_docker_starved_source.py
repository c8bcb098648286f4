"""A packet generator at a fifth of a core, asked for more than it can send, is blamed itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import left_of
from exact_packets import driven, point

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import WindowPlan
from workbench.measuring.judging import Terms, judge
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

SECONDS = 4.0
PLAN = WindowPlan(warmup_s=1.0, window_s=3.0, timeout_s=SECONDS)
SOURCE_CORES = 0.2


@pytest.mark.parametrize(
    ("name", "rate_pps", "has_flows"),
    [("firewall-flows", 80_000.0, True), ("delay", 25_000.0, False)],
)
async def test_it_is_blamed(
    name: str, rate_pps: float, has_flows: bool, tmp_path: Path, session: str
) -> None:
    campaign = load_campaign(name, workspace=Workspace(tmp_path)).campaign
    at = point(campaign, rate_pps, 0.5, 100)
    given = {**at.configuration.workload, "firewall.refused_below": 0.0}
    if not has_flows:
        del given["flows"]
    resources = {**at.configuration.resources, "source.vcpu": SOURCE_CORES}
    at = replace(at, configuration=replace(at.configuration, resources=resources, workload=given))
    seen = await driven(campaign, session, [at], SECONDS)
    terms = Terms(load=campaign.load, windows=PLAN, sla=None, kpi=campaign.kpi)
    sample = judge(seen, at, terms, started_at=0.0, lab_s=SECONDS).measurement.sample
    assert sample.reason == "source_saturated", sample.findings
    assert left_of(session) == ([], [])
