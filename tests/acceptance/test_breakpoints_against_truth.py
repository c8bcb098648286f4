"""The demo on the simulated lab against its truth: 50 seeds in `make accept`; one here, of a
function alone and of the chain that waits."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace

import breakpoints
import pytest
from bench_truth.playing import conclude, play

SOURCE_CAP = 0.7


@pytest.mark.slow
def test_capacity_and_sla_are_near_the_truth_and_their_intervals_hold_it(full_length: bool) -> None:
    seeds = 50 if full_length else 1
    campaign = breakpoints.campaign_of("demo")
    if not full_length:
        campaign = replace(campaign, targets=campaign.targets[1::2])
    rows, _, _ = breakpoints.run(campaign, seeds, "", workers=(os.cpu_count() or 1))
    assert len(rows) == (8 if full_length else 4) * 2
    for row in rows:
        assert row.truth is not None, row
        assert row.found >= 0.9 * seeds, row
        assert row.median_error <= (0.10 if full_length else 0.15), row
        assert row.covered >= 0.9 * seeds - (not full_length), row
    assert sum(row.covered for row in rows) >= 0.8 * seeds * len(rows)


def test_a_capped_generator_is_blamed_on_the_source_every_time(full_length: bool) -> None:
    options = f"source_cap={SOURCE_CAP}"
    campaign = breakpoints.campaign_of("demo")
    if not full_length:
        campaign = replace(campaign, targets=campaign.targets[1:2])
    true = breakpoints.truths(campaign, "")
    for plan in campaign.targets:
        for seed in range(1, 21 if full_length else 4):
            samples, _ = asyncio.run(play(campaign, plan, seed, options))
            starved = 0
            for sample in samples:
                configuration = sample.point.configuration
                capacity = true[plan.target.name, configuration.key, "capacity"]
                assert capacity is not None
                if sample.point.wl > 1.1 * SOURCE_CAP * capacity:
                    starved += 1
                    assert sample.reason == "source_saturated", sample
                elif sample.point.wl < 0.85 * SOURCE_CAP * capacity:
                    # From 90 % of its allotment on a source counts as saturated.
                    assert sample.valid, sample
            assert starved >= 2
            for rules in conclude(campaign, plan, samples).values():
                assert {b.state for b in rules if b.rule == "capacity"} == {"unresolved"}
