"""Numbered packets through a firewall: sent, arrived and dropped add up to the packet."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker_targets import left_of
from exact_packets import campaign_of, counted, meant_to_be_refused, point

from workbench.descriptors.loading import load_campaign
from workbench.paths import Workspace

pytestmark = [pytest.mark.docker, pytest.mark.unhurried]


async def test_what_was_sent_arrived_or_was_dropped_by_somebody_who_counted_it(
    tmp_path: Path, session: str, full_length: bool
) -> None:
    campaign = campaign_of(load_campaign("firewall-flows", workspace=Workspace(tmp_path)).campaign)
    # Few rules and many, in turn: with many the firewall loses in its queue, too.
    rate, runs = (10_000.0, 20) if full_length else (5_000.0, 2)
    seconds = 10.0 if full_length else 2.0
    points = [point(campaign, rate, 0.25, (100, 5_000)[run % 2]) for run in range(runs)]
    for seen in await counted(campaign, session, points, seconds):
        assert seen.exact is not None
        assert seen.exact[0] == rate * seconds
        # On a busy host some of those that the rules would have refused find its queue full.
        assert 0 < seen.dropped_at["firewall: dropped"] <= meant_to_be_refused(seen.exact[0])
        assert seen.unaccounted == 0, (seen.exact, seen.dropped_at)
        assert seen.duplicates == 0
    assert left_of(session) == ([], [])
