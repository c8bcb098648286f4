"""Copies for a passive function: what was mirrored, what arrived and what it processed, counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import left_of
from exact_packets import driven

from workbench.descriptors.loading import load_campaign
from workbench.domain.parameters import OperatingPoint
from workbench.measuring import copies
from workbench.paths import Workspace

pytestmark = pytest.mark.docker

RATE, SECONDS = 4_000.0, 2.0


async def test_a_copy_is_exact_and_what_a_capture_misses_is_counted(
    tmp_path: Path, session: str, full_length: bool
) -> None:
    campaign = load_campaign("mirror", workspace=Workspace(tmp_path)).campaign
    tapped = next(plan for plan in campaign.targets if plan.target.copies)
    campaign = replace(campaign, targets=(tapped,))
    configurations = campaign.configurations(tapped)
    # With whole packets, a small buffer and a fraction of its CPU a capture must miss some.
    starved = replace(
        configurations[0],
        resources={**configurations[0].resources, "tcpdump.vcpu": 0.01},
        workload={**configurations[0].workload, "tcpdump.buffer_kib": 64.0},
    )
    rate, seconds, runs = (20_000.0, 5.0, 20) if full_length else (RATE, SECONDS, 2)
    points = [OperatingPoint("tapped-firewall", configurations[1], rate, 0)] * runs
    points.append(OperatingPoint("tapped-firewall", starved, rate * 2, 0))
    *fed, hungry = await driven(campaign, session, points, seconds)
    for drive in fed:
        (seen,) = drive.copies.values()
        assert drive.packets is not None
        assert drive.packets.exact is not None
        sent, _ = drive.packets.exact
        assert sent == rate * seconds
        assert sent <= seen.mirrored <= sent + 20, "the firewall also asks for addresses"
        assert (seen.arrived, seen.captured) == (seen.mirrored, seen.mirrored)
    (missed,) = hungry.copies.values()
    assert missed.arrived == missed.mirrored
    assert missed.captured is not None
    assert missed.captured < missed.mirrored
    kpi = copies.state([hungry])[copies.CAPTURE_LOSS]
    assert 0 < kpi.low < kpi.value <= kpi.high
    assert hungry.packets is not None
    assert not any(place.startswith("tcpdump") for place in hungry.packets.dropped_at)
    assert left_of(session) == ([], [])
