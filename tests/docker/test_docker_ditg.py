"""D-ITG through a firewall: several UDP flows, and echo requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from docker_targets import left_of
from exact_packets import driven

from workbench.descriptors.loading import load_campaign
from workbench.domain.parameters import OperatingPoint
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.long]

RATE, SECONDS = 400.0, 2.0


@pytest.mark.parametrize(("generator", "flows"), [("d-itg", 4.0), ("d-itg-icmp", 1.0)])
async def test_packets_of_several_flows_and_of_icmp_are_stamped_and_counted(
    tmp_path: Path, session: str, generator: str, flows: float
) -> None:
    campaign = load_campaign("delay", workspace=Workspace(tmp_path)).campaign
    (plan,) = campaign.targets
    campaign = replace(campaign, generator=generator)
    given = campaign.configurations(plan)[0]
    given = replace(given, workload={**given.workload, "flows": flows}) if flows > 1 else given
    (drive,) = await driven(campaign, session, [OperatingPoint("firewall", given, RATE)], SECONDS)
    assert drive.packets is not None
    assert drive.packets.delays is not None
    sent, lost = drive.packets.numbered.sum(), drive.packets.lost.sum()
    assert 0.4 * RATE * SECONDS < sent < 1.3 * RATE * SECONDS
    assert lost <= 0.02 * sent
    assert 0.0 < np.median(drive.packets.delays[1]) < 0.05
    assert left_of(session) == ([], [])
