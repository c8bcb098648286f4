"""What a campaign will cost, before it starts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from workbench import plugins
from workbench.domain.campaign import Campaign, SamplingPlan
from workbench.domain.kpis import of
from workbench.domain.parameters import OperatingPoint, PrimaryWorkload
from workbench.domain.sessions import Plan, PlannedConfiguration
from workbench.engine.learning.sampler_worker import visit_s
from workbench.engine.runs import bypass
from workbench.labs.base import LabCosts
from workbench.sampling.base import planned_blocks

RECORDED = "recorded"
"""The lab that offers no load: its samples were judged where they were measured."""


def make_plan(
    campaign: Campaign, lab: str, costs: LabCosts, warnings: tuple[str, ...] = ()
) -> Plan:
    """Blocks, configurations, samples and lab seconds (METHOD.md 1).

    A plan lists configurations by target; the sampler is free to interleave them, since in-place
    changes cost less than a window, and to deploy a target anew for every block of samples. Each
    target also costs the bypass curves of its kinds of load. Runs in the worker process.
    """
    planned: list[PlannedConfiguration] = []
    for block, target_plan in enumerate(campaign.targets):
        target = target_plan.target.name
        # How long a visit takes depends on the load alone, and thousands of configurations share
        # theirs.
        each: tuple[int, float] | None = None
        for configuration in campaign.configurations(target_plan):
            if each is None:
                points = [
                    OperatingPoint(target, configuration, wl)
                    for wl in ladder(target_plan.primary, campaign.sampling.max_samples)
                ]
                each = len(points), sum(visit_s(campaign, point, costs) for point in points)
            planned.append(PlannedConfiguration(block, target, configuration, *each))
    samples = sum(p.samples for p in planned)
    deployments_s = len(campaign.targets) * blocks(campaign.sampling) * costs.deploy_s
    bypasses = len(campaign.targets) * bypasses_s(campaign, lab, costs)
    most_s = costs.allocate_s + costs.drive_overhead_s + campaign.windows.timeout_s
    return Plan(
        campaign=campaign.name,
        lab=lab,
        configurations=tuple(planned),
        samples=samples,
        lab_s=deployments_s + bypasses + sum(p.lab_s for p in planned),
        most_lab_s=deployments_s + bypasses + samples * most_s,
        warnings=(*warnings, *_too_little(campaign), *_above_ceiling(campaign)),
    )


def _too_little(campaign: Campaign) -> Iterator[str]:
    """Where its sampler leaves out what its SLA is asked of."""
    method = campaign.sampling.method
    said = getattr(plugins.load("samplers", method), "teaches_little", "")
    if said and campaign.sla is not None:
        yield f"{method}: {said}"


def _above_ceiling(campaign: Campaign) -> Iterator[str]:
    """Where its SLA allows what no model of it can tell from anything slower."""
    sla = campaign.sla
    if sla is not None and sla.direction == "<=" and sla.limit > campaign.ceiling(sla.kpi):
        yield (
            f"the SLA allows {sla.text.partition('@')[0].strip()}, above the ceiling (kpi_max) of "
            f"{campaign.kpi_max:g} {of(sla.kpi).unit}, where nothing is modelled: raise it, or "
            "lower the limit"
        )


def blocks(sampling: SamplingPlan) -> int:
    """Deployments of each target: as many as its sampler says, else one for each repetition."""
    return planned_blocks(plugins.load("samplers", sampling.method), sampling)


def bypasses_s(campaign: Campaign, lab: str, costs: LabCosts) -> float:
    """Bypass curves of a target, at most: those with the same generator and load share them."""
    if lab.partition(":")[0] == RECORDED:
        return 0.0
    kinds = math.prod(len(parameter.values) for parameter in campaign.workload)
    points = len(tuple(bypass.loads(campaign)))
    return kinds * points * (costs.drive_overhead_s + bypass.DRIVE_S)


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
