"""Disk of a function on the Docker lab: what it writes is held to the rate that it is allotted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import left_of
from exact_packets import driven

from workbench.descriptors.loading import load_campaign
from workbench.domain.parameters import OperatingPoint
from workbench.labs.components import disks
from workbench.measuring.records import Drive
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

RATE, SECONDS = 8_000.0, 3.0
"""Of 570 bytes each in the file of a capture: 4.6 MB/s."""
SLOW, FAST = 1.0, 200.0


def written_mbps(drive: Drive) -> float:
    """What the capture's group wrote and read, by the kernel's counters."""
    first, last = drive.counters[0], drive.counters[-1]
    amounts = [c.observed["tcpdump", "disk_bytes", ""] for c in (first, last)]
    return (amounts[1] - amounts[0]) / 1e6 / (last.at_s - first.at_s)


async def test_a_capture_on_a_slow_disk_misses_what_its_disk_does_not_take(
    tmp_path: Path, session: str
) -> None:
    if why := disks.unlimitable(Path("/var/lib/docker"), local=True):
        pytest.skip(f"disk cannot be allotted here: {why}")
    campaign = load_campaign("capture-disk", workspace=Workspace(tmp_path)).campaign
    (plan,) = campaign.targets
    given = campaign.configurations(plan)[0]
    slow, fast = (
        replace(given, resources={**given.resources, "tcpdump.disk_mbps": rate})
        for rate in (SLOW, FAST)
    )
    points = [OperatingPoint("tapped-firewall", one, RATE) for one in (fast, slow)]
    quick, held = await driven(replace(campaign, targets=(plan,)), session, points, SECONDS)
    assert 0.2 * SLOW < written_mbps(held) < 1.3 * SLOW
    assert written_mbps(quick) > 1.3 * written_mbps(held)
    (kept,), (missed,) = quick.copies.values(), held.copies.values()
    assert missed.arrived == missed.mirrored
    assert missed.captured is not None
    assert kept.captured is not None
    assert kept.captured > 1.5 * missed.captured
    assert left_of(session) == ([], [])
