"""What campaigns of packets, splits and policies are planned to cost on the Docker lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.engine.runs.planning import make_plan
from workbench.labs.docker.lab import COSTS
from workbench.paths import Workspace

MOST_S = 8 * 60.0


@pytest.mark.parametrize("name", ["firewall", "nat", "streaming", "inspect", "split", "policy"])
def test_a_first_run_is_planned_to_end_within_eight_minutes(tmp_path: Path, name: str) -> None:
    """Of lab time, with every chain of the policy measured and none left out by a forecast."""
    campaign = load_campaign(name, workspace=Workspace(tmp_path)).campaign
    assert make_plan(campaign, "docker", COSTS).lab_s <= MOST_S
