"""Numbered packets through Open vSwitch: each came through or was dropped by whoever counted it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import left_of
from exact_packets import FLOWS, REFUSED_FLOWS, driven

from workbench.descriptors.loading import load_campaign
from workbench.domain.parameters import OperatingPoint
from workbench.paths import Workspace
from workbench.traffic.pcap import FIRST_PORT

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

SECONDS = 2.0
FEW, MANY = 2_000.0, 40_000.0
"""Packets/s that it carries, and that it does not with a tenth of a core."""
WAITING = 0.01
"""Share of packets that may wait in the sockets of the starved switch as counters are read: some
235 fit into one, and a switch that is throttled has not looked at them by then."""


async def test_each_packet_came_through_or_was_dropped_by_the_switch_that_counted_it(
    tmp_path: Path, session: str, full_length: bool
) -> None:
    campaign = load_campaign("vswitch", workspace=Workspace(tmp_path)).campaign
    (plan,) = campaign.targets
    configuration = campaign.configurations(plan)[0]
    refusing = {
        "vswitch.refused_below": float(FIRST_PORT + REFUSED_FLOWS),
        "vswitch.rules": 1_000.0,
    }
    fed = replace(
        configuration,
        resources={"vswitch.vcpu": 0.5},
        workload={**configuration.workload, **refusing, "flows": float(FLOWS)},
    )
    starved = replace(fed, resources={"vswitch.vcpu": 0.1})
    runs, seconds = (20, 5.0) if full_length else (1, SECONDS)
    points = [OperatingPoint("vswitch", fed, FEW)] * runs
    points.append(OperatingPoint("vswitch", starved, MANY))
    *calm, hungry = await driven(campaign, session, points, seconds)
    for drive, rate in (*((drive, FEW) for drive in calm), (hungry, MANY)):
        seen = drive.packets
        assert seen is not None
        assert seen.exact is not None
        assert seen.exact[0] == rate * seconds
        most = 0 if rate == FEW else WAITING * rate * seconds
        assert 0 <= seen.unaccounted <= most, (seen.exact, seen.dropped_at)
        assert seen.duplicates == 0
    for drive in calm:
        assert drive.packets is not None
        assert drive.packets.dropped_at["vswitch: dropped_refused"] == (
            FEW * seconds * REFUSED_FLOWS / FLOWS
        )
    assert hungry.packets is not None
    assert hungry.packets.dropped_at["vswitch: dropped_socket_full"] > 0
    assert left_of(session) == ([], [])
