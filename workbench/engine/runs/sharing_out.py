"""What several hosts of a fleet would take for a campaign, by its plan; nothing is measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from heapq import heapify, heapreplace

from workbench.domain.campaign import Campaign
from workbench.domain.sessions import HostsPlan
from workbench.engine.runs.planning import bypasses_s, make_plan
from workbench.labs.base import LabCosts
from workbench.sampling.shards import anchor, split

WORTH = 0.9
"""More hosts that take more than that share of the time are not worth while."""


def over_hosts(
    campaign: Campaign, lab: str, costs: LabCosts, seed: int, most: int
) -> tuple[tuple[HostsPlan, ...], HostsPlan]:
    """One host, two, four ... up to `most`, each a fleet of equal hosts; and how many are enough,
    which may be more than `most`: looked for up to a host for each configuration.

    The time is that of the host that ends last, with its anchor points and with what each shard
    measures anew, such as deployments and the path past the functions.
    """
    one_s = make_plan(campaign, lab, costs).lab_s
    first_s = _shard_s(
        anchor(campaign, host="h", run="plan", lab=lab, seed=seed).campaign, lab, costs
    )
    found = {1: HostsPlan(1, 1, one_s, one_s)}
    asked = {1, *_counts(most)}
    some = sum(len(campaign.configurations(plan)) for plan in campaign.targets)
    for hosts in sorted({*asked, *_counts(some)} - {1}):
        shards = split(campaign, hosts, run="plan", lab=lab, seed=seed)
        spent = [first_s] * hosts
        heapify(spent)
        for shard in shards:  # who is free first takes the next
            heapreplace(spent, spent[0] + _shard_s(shard.campaign, lab, costs))
        found[hosts] = HostsPlan(hosts, len(shards), max(spent), one_s / hosts)
    return tuple(found[hosts] for hosts in sorted(asked)), enough(tuple(found.values()))


def enough(plans: Sequence[HostsPlan]) -> HostsPlan:
    """The fewest hosts of which no more save a tenth; `plans` by the number of hosts."""
    return next(
        plan
        for place, plan in enumerate(plans)
        if all(more.lab_s > WORTH * plan.lab_s for more in plans[place + 1 :])
    )


def _counts(most: int) -> Iterator[int]:
    count = 2
    while count < most:
        yield count
        count *= 2
    if most > 1:
        yield most


def _shard_s(campaign: Campaign, lab: str, costs: LabCosts) -> float:
    """Of a shard, whose configurations share one workload and so one curve past the functions."""
    whole_s, past_s = make_plan(campaign, lab, costs).lab_s, bypasses_s(campaign, lab, costs)
    kinds = max(1, math.prod(len(parameter.values) for parameter in campaign.workload))
    return whole_s - past_s + past_s / kinds
