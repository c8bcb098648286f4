"""Spikes and bursts of requests, a chain that splits and one of a policy, on the real lab."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import ignore, left_of

from workbench.descriptors.loading import load_campaign
from workbench.domain import load_shapes
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Measurement
from workbench.labs.base import LabSettings
from workbench.labs.docker import DockerLab
from workbench.measuring.judging import Terms, first_drive_s, judge
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]


async def measured(
    campaign: Campaign, session: str, plan: TargetPlan, configuration: Configuration, wl: float
) -> Measurement:
    """One drive at a point, judged, whatever else the host does."""
    campaign = replace(campaign, targets=(plan,))
    lab = DockerLab(campaign, LabSettings(session))
    at = OperatingPoint(plan.target.name, configuration, wl)
    terms = Terms(load=campaign.load, windows=campaign.windows, sla=None, kpi=campaign.kpi)
    try:
        await lab.open()
        await lab.deploy(plan.target, configuration)
        await lab.allocate(configuration)
        seconds = first_drive_s(at, terms)
        drive = await lab.drive(at, seconds, ignore)
    finally:
        await lab.close()
    return judge([drive], at, terms, started_at=0.0, lab_s=seconds).measurement


@pytest.mark.long
async def test_a_spike_that_asks_for_more_than_there_is_takes_a_while(
    tmp_path: Path, session: str
) -> None:
    """933/s for half a second, at an eighth of a core, which carries some 400/s."""
    campaign = load_campaign("spikes", workspace=Workspace(tmp_path)).campaign
    shape = load_shapes.spikes(5.0, 0.5, 4.0)
    campaign = replace(campaign, load=replace(campaign.load, shape=shape))
    (plan,) = campaign.targets
    given = campaign.configurations(plan)[0]
    eighth = replace(given, resources={"tinyproxy.vcpu": 0.125})
    found = await measured(campaign, session, plan, eighth, 280.0)
    assert found.sample.load_model == "open-spikes-x5-0.5s-4s"
    due = [o.value for o in found.observations if o.name == "due_in_second" and o.value]
    assert max(due) > 2 * min(due), "a second with half of a spike, and one without"
    recovery = found.sample.kpis["recovery_s"]
    assert recovery.low <= recovery.value <= recovery.high
    assert recovery.value > 0.2
    assert left_of(session) == ([], [])


@pytest.mark.long  # spikes stand for the shapes of requests, and bursts are sent by D-ITG
async def test_bursts_keep_their_seconds(tmp_path: Path, session: str) -> None:
    campaign = load_campaign("bursts", workspace=Workspace(tmp_path)).campaign
    plan = campaign.targets[0]
    narrow = campaign.configurations(plan)[0]
    found = await measured(campaign, session, plan, narrow, 100.0)
    assert found.sample.load_model == "open-bursts"
    due = [o.value for o in found.observations if o.name == "due_in_second"]
    assert due
    assert set(due) == {100.0}
    assert left_of(session) == ([], [])


async def test_each_branch_gets_the_share_that_was_asked_for(tmp_path: Path, session: str) -> None:
    campaign = load_campaign("split", workspace=Workspace(tmp_path)).campaign
    plan = next(plan for plan in campaign.targets if plan.target.splits)
    most = campaign.configurations(plan)[-1]
    found = await measured(campaign, session, plan, most, 150.0)
    shares = {o.component: o for o in found.observations if o.name == "branch_share"}
    assert {name: one.detail for name, one in shares.items()} == {
        "tinyproxy": "asked 60 %",
        "back": "asked 40 %",
    }
    assert shares["tinyproxy"].value == pytest.approx(60.0, abs=2.0)
    assert sum(one.value for one in shares.values()) == pytest.approx(100.0)
    assert left_of(session) == ([], [])


async def test_a_chain_that_a_policy_makes_answers(tmp_path: Path, session: str) -> None:
    campaign = load_campaign("policy", workspace=Workspace(tmp_path)).campaign
    made = [plan for plan in campaign.targets if len(plan.target.vnfs) == 3]
    assert len(made) == 2, "nginx before either order of the others"
    plan = made[-1]
    found = await measured(campaign, session, plan, campaign.configurations(plan)[-1], 60.0)
    assert found.sample.kpis["throughput_rps"].value == pytest.approx(60.0, rel=0.2)
    assert found.sample.errors == 0
    assert set(found.sample.usage) >= {vnf.name for vnf in plan.target.vnfs}
    assert left_of(session) == ([], [])
