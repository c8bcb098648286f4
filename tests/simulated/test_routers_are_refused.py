"""Packets that nobody answers are not what the simulated lab simulates, and it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import LabError
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab
from workbench.paths import Workspace


async def test_a_campaign_of_packets_is_refused_with_a_sentence(tmp_path: Path) -> None:
    campaign = load_campaign("udp-loss", workspace=Workspace(tmp_path)).campaign
    with pytest.raises(LabError, match="the simulated lab has no packets"):
        await SimulatedLab(campaign, LabSettings("refused")).open()
