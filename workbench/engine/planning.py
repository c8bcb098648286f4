"""What a campaign will cost, before it starts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from workbench.domain.campaign import Campaign
from workbench.domain.parameters import OperatingPoint, PrimaryWorkload
from workbench.domain.sessions import Plan, PlannedConfiguration
from workbench.engine.advice import terms
from workbench.labs.base import LabCosts


def make_plan(
    campaign: Campaign, lab: str, costs: LabCosts, warnings: tuple[str, ...] = ()
) -> Plan:
    """Blocks, configurations, samples and lab seconds (METHOD.md 1).

    A block is one deployment of one target. In it the sampler is free to interleave
    configurations, since in-place changes cost less than a window. Runs in the worker process.
    """
    planned: list[PlannedConfiguration] = []
    for block, target_plan in enumerate(campaign.targets):
        target = target_plan.target.name
        for configuration in campaign.configurations(target_plan):
            points = [
                OperatingPoint(target, configuration, wl)
                for wl in ladder(target_plan.primary, campaign.sampling.max_samples)
            ]
            seconds = sum(_visit_s(campaign, point, costs) for point in points)
            planned.append(PlannedConfiguration(block, target, configuration, len(points), seconds))
    return Plan(
        campaign=campaign.name,
        lab=lab,
        configurations=tuple(planned),
        samples=sum(p.samples for p in planned),
        lab_s=len(campaign.targets) * costs.deploy_s + sum(p.lab_s for p in planned),
        warnings=warnings,
    )


def ladder(primary: PrimaryWorkload, count: int) -> Iterator[float]:
    """Where a sampler may be expected to ask: spread over the range, on its scale."""
    if count < 2:
        yield primary.high
        return
    for i in range(count):
        share = i / (count - 1)
        if primary.scale == "log":
            wl = math.exp(
                math.log(primary.low) + share * (math.log(primary.high) - math.log(primary.low))
            )
        else:
            wl = primary.low + share * (primary.high - primary.low)
        yield float(round(wl)) if primary.integer else wl


def _visit_s(campaign: Campaign, point: OperatingPoint, costs: LabCosts) -> float:
    from workbench.measuring.judging import first_drive_s

    return costs.drive_overhead_s + first_drive_s(point, terms(campaign))
