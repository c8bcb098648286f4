"""Numbered packets through the inspector: what it let through and what it dropped add up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docker_targets import left_of
from exact_packets import driven

from workbench.descriptors.loading import load_campaign
from workbench.domain.parameters import OperatingPoint
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]

BLOCK = 256
"""Of the packets of a file so many hold what is sought, where `refused_block` is 1."""


async def test_each_packet_was_let_through_or_dropped_by_the_inspector_that_counted_it(
    tmp_path: Path, session: str, full_length: bool
) -> None:
    campaign = load_campaign("inspect", workspace=Workspace(tmp_path)).campaign
    few, *_, many = campaign.configurations(campaign.targets[0])
    refusing = replace(few, workload={**few.workload, "inspect.refused_block": 1.0})
    # With many patterns it cannot keep up, so that its queue overflows.
    runs = 20 if full_length else 2
    rate, seconds = 2_000.0, 3.0
    chosen = [(refusing, many)[run % 2] for run in range(runs)]
    points = [OperatingPoint("inspect", one, rate) for one in chosen]
    for configuration, drive in zip(
        chosen, await driven(campaign, session, points, seconds), strict=True
    ):
        seen = drive.packets
        assert seen is not None
        assert seen.exact is not None
        assert seen.exact[0] == rate * seconds
        assert seen.unaccounted == 0, (seen.exact, seen.dropped_at)
        assert seen.duplicates == 0
        found = seen.dropped_at.get("inspect: dropped_found", 0)
        if configuration is refusing:
            # On a busy host some of them find the queue full.
            assert 0 < found <= BLOCK
        else:
            assert found == 0
            assert seen.dropped_at["inspect: dropped_queue_full"] > 0
    assert left_of(session) == ([], [])
