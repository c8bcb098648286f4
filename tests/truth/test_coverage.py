"""Seeds of every rule and trap family, held against what `make bench-truth` published."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest
from bench_truth.families import FAMILIES, SCORED, Family
from bench_truth.playing import play
from bench_truth.scoring import PUBLISHED, Counts, Outcome, agree, counts, outcomes, pooled
from bench_truth.stored import Seed
from bench_truth.truths import Known

from workbench.domain.profiles import BreakpointRule

Published = Mapping[str, Mapping[BreakpointRule, Counts]]


def outcomes_of(family: Family, seeds: int) -> list[Outcome]:
    """Of one configuration, so that a seed takes a third of a second."""
    alone = replace(family, vcpu=family.vcpu[-1:])
    campaign = alone.campaign()
    played = [
        Seed(s, *asyncio.run(play(campaign, campaign.targets[0], s, alone.lab_options(s))))
        for s in range(1, seeds + 1)
    ]
    assert all(len(one.samples) <= 12 for one in played)
    return outcomes(alone, played, Known())


def agrees(here: Counts, there: Counts) -> bool:
    shares = (
        (here.stated, here.existing, there.stated, there.existing),
        (here.covered, here.stated, there.covered, there.stated),
        (here.right, here.absent, there.right, there.absent),
    )
    return all(agree(*share) for share in shares if share[1] and share[3])


@pytest.mark.slow
def test_seeds_agree_with_the_published_table(full_length: bool) -> None:
    """Twenty seeds of a family in `make accept`, else one, which tells of all families together.
    A rule, sampler or judge that became better or worse fails here until the table says so too."""
    published: Published = msgspec.json.decode(
        PUBLISHED.read_bytes(), type=dict[str, dict[BreakpointRule, Counts]]
    )
    seen = counts([o for f in FAMILIES for o in outcomes_of(f, 20 if full_length else 1)])
    for family, by_rule in seen.items():
        for rule, here in by_rule.items():
            assert agrees(here, published[family][rule]), (family, rule, here)
    for rule in SCORED:
        here, there = pooled(seen, rule), pooled(published, rule)
        assert agrees(here, there), (rule, here, there)
