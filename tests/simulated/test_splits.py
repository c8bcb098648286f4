"""A target that splits: what each branch got, beside what it was to get."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.parameters import OperatingPoint
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab
from workbench.measuring.judging import Terms, judge
from workbench.paths import Workspace


async def test_shares_are_measured_beside_what_was_asked(tmp_path: Path) -> None:
    campaign = load_campaign("split", workspace=Workspace(tmp_path)).campaign
    plan = campaign.target_plan("split")
    configuration = campaign.configurations(plan)[0]
    lab = SimulatedLab(campaign, LabSettings("split"))
    await lab.open()
    await lab.deploy(plan.target, configuration)
    at = OperatingPoint(plan.target.name, configuration, 400.0)
    driven = await lab.drive(at, 5.0, lambda usage: None)
    past = await lab.drive_bypass(at, 2.0, lambda usage: None)
    terms = Terms(load=campaign.load, windows=campaign.windows, sla=None, kpi=campaign.kpi)
    judged = judge([driven], at, terms, started_at=0.0, lab_s=5.0).measurement
    shares = {o.component: o for o in judged.observations if o.name == "branch_share"}
    assert shares.keys() == {"tinyproxy", "back"}
    assert shares["tinyproxy"].detail == "asked 60 %"
    assert shares["tinyproxy"].value == pytest.approx(60.0, abs=4.0)  # 1,200 requests at random
    assert sum(o.value or 0.0 for o in shares.values()) == pytest.approx(100.0)
    assert "split_off" not in judged.sample.labels
    assert past is not None
    assert not past.splits


async def test_a_branch_that_gets_another_share_is_told(tmp_path: Path) -> None:
    campaign = load_campaign("split", workspace=Workspace(tmp_path)).campaign
    plan = campaign.target_plan("split")
    configuration = campaign.configurations(plan)[0]
    lab = SimulatedLab(campaign, LabSettings("split"))
    await lab.open()
    await lab.deploy(plan.target, configuration)
    at = OperatingPoint(plan.target.name, configuration, 400.0)
    driven = await lab.drive(at, 5.0, lambda usage: None)
    terms = Terms(load=campaign.load, windows=campaign.windows, sla=None, kpi=campaign.kpi)
    asked = replace(driven, splits=({"tinyproxy": 0.5, "back": 0.5},))
    judged = judge([asked], at, terms, started_at=0.0, lab_s=5.0).measurement.sample
    (told,) = (one for one in judged.remarks if one.label == "split_off")
    assert told.evidence.startswith(("tinyproxy got ", "back got "))
    assert told.evidence.endswith("and was to get 50.0%")
    assert abs(told.figure) == pytest.approx(0.1, abs=0.04)
    assert judged.valid
