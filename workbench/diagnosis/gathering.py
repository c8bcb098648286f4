"""From a campaign and the readings of its session to what a diagnosis holds a sample against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.diagnosis.explaining import Known
from workbench.diagnosis.readings import Reading
from workbench.domain.campaign import Campaign
from workbench.domain.topology import Target

MOST_SAMPLES = 2000
"""Of each target, the first of a session; the evidence of more would say nothing else."""


def beside(campaign: Campaign, target: Target) -> dict[str, Target]:
    """By function of a target, the stand-alone target that speaks for it, where there is one.

    That is the one of its template's name, else the only one of its template.
    """
    single = [p.target for p in campaign.targets if len(p.target.vnfs) == 1]
    found = {}
    for vnf in target.vnfs:
        alone = [one for one in single if one.vnfs[0].template == vnf.template]
        own = next((one for one in alone if one.name == one.vnfs[0].template), None)
        if own is None and len(alone) == 1 and alone[0] != target:
            (own,) = alone
        if own is not None:
            found[vnf.name] = own
    return found


def known_of(
    campaign: Campaign, target: Target, readings: Mapping[str, Sequence[Reading]]
) -> Known:
    """`readings` are by the name of their target, and hold those of `beside` at least."""
    alone = beside(campaign, target)
    return Known(
        target,
        readings.get(target.name, ()),
        {function: readings.get(one.name, ()) for function, one in alone.items()},
        {function: one.vnfs[0].name for function, one in alone.items()},
    )
