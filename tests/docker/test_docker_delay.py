"""D-ITG through a firewall: every packet stamped, none held for a pause between bursts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import left_of
from exact_packets import driven, point

from workbench.descriptors.loading import load_campaign
from workbench.domain.load_shapes import LoadShape
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]


async def test_bursts_of_stamped_packets_through_a_firewall(tmp_path: Path, session: str) -> None:
    loaded = load_campaign("delay", workspace=Workspace(tmp_path)).campaign
    load = replace(loaded.load, arrivals="constant", shape=LoadShape("bursts"))
    campaign = replace(loaded, load=load)
    at = point(campaign, 300.0, 0.5, 100)
    given = {k: v for k, v in at.configuration.workload.items() if k not in ("flows",)}
    given |= {"duty": 0.5, "period_s": 0.4, "firewall.refused_below": 0.0}
    at = replace(at, configuration=replace(at.configuration, workload=given))
    (seen,) = await driven(campaign, session, [at], 3.0)
    counts = seen.packets
    assert counts is not None
    assert counts.delays is not None
    assert seen.kpi_definition == "one-way"
    assert counts.received.sum() > 100
    sent_s, delay_s = counts.delays
    assert sent_s[0] >= seen.begin_s
    # A packet of each burst of 120 would have been held for the pause of 0.2 s.
    assert (delay_s > 0.19).mean() < 0.005
    assert left_of(session) == ([], [])
