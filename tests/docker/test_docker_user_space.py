"""Numbered packets through a translator in user space: nearly all are accounted for."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker_targets import left_of
from exact_packets import driven

from workbench.descriptors.loading import load_campaign
from workbench.domain.parameters import OperatingPoint
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.long]

SECONDS = 3.0
FEW, MANY = 2_000.0, 20_000.0
"""Packets/s that it carries with a quarter of a core, and that it does not."""

LOST_UNSEEN = 0.001
"""Not exact yet: 1 of 60,000 and 2 of 6,000 packets had no address (docs/packets.md)."""


@pytest.mark.parametrize("function", ["nat64"])
async def test_each_packet_came_through_or_was_dropped_by_the_function_that_counted_it(
    tmp_path: Path, session: str, function: str
) -> None:
    campaign = load_campaign(function, workspace=Workspace(tmp_path)).campaign
    fed = campaign.configurations(campaign.targets[0])[-1]
    points = [OperatingPoint(function, fed, rate) for rate in (FEW, MANY)]
    calm, hungry = await driven(campaign, session, points, SECONDS)
    for drive, rate in ((calm, FEW), (hungry, MANY)):
        seen = drive.packets
        assert seen is not None
        assert seen.exact is not None
        assert seen.exact[0] == rate * SECONDS
        assert seen.unaccounted <= LOST_UNSEEN * seen.exact[0], (seen.exact, seen.dropped_at)
        assert seen.duplicates == 0
    assert calm.packets is not None
    assert hungry.packets is not None
    assert calm.packets.exact is not None
    assert hungry.packets.exact is not None
    assert calm.packets.exact[1] >= 0.99 * calm.packets.exact[0]
    assert hungry.packets.dropped_at[f"{function}: dropped_queue_full"] > 0
    assert hungry.packets.exact[1] < 0.9 * hungry.packets.exact[0]
    assert left_of(session) == ([], [])
