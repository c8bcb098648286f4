"""What of a campaign fits a host and a budget: `--fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from workbench.descriptors.capacity import TRAFFIC_CORES
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.counts import counted
from workbench.domain.durations import duration
from workbench.domain.errors import UsageError
from workbench.domain.parameters import Parameter
from workbench.engine.runs.planning import make_plan
from workbench.labs.base import LabCosts

FEWEST_LOADS = 6
"""Loads of a configuration below which a trend is not seen any more."""


def fit_to(
    campaign: Campaign, cores: float, budget_s: float | None, lab: str, costs: LabCosts
) -> Fitted:
    """As `fit`, at the costs of a lab. Runs in the worker process: it plans again and again."""
    return fit(campaign, cores, budget_s, lambda c: make_plan(c, lab, costs).lab_s)


@dataclass(frozen=True)
class Fitted:
    """The part of a campaign that fits, and what was left out, as sentences."""

    campaign: Campaign
    notes: tuple[str, ...]


def fit(
    campaign: Campaign, cores: float, budget_s: float | None, cost_s: Callable[[Campaign], float]
) -> Fitted:
    """Keep the allocations that a host can give; thin repetitions, loads and sizes for a budget.

    Parameters
    ----------
    cores : of the host; source and sink get `TRAFFIC_CORES` each of them.
    budget_s : lab time in seconds; None keeps everything else as it is.
    cost_s : what a campaign is planned to cost, in lab seconds.

    Raises
    ------
    UsageError
        If no configuration of any target fits the host.
    """
    notes: list[str] = []
    targets = []
    for plan in campaign.targets:
        kept, dropped = _affordable(plan, cores - 2 * TRAFFIC_CORES)
        if kept is not None:
            targets.append(kept)
        if dropped:
            left = "keeps" if kept is not None else "has nothing left, it keeps"
            rest = ", ".join(_values(p) for p in kept.resources) if kept else "no allocation"
            notes.append(
                f"{plan.target.name} {left} {rest}: this host has {cores:g} cores, "
                f"too few for {counted(len(dropped), 'larger allocation')}"
            )
    if not targets:
        raise UsageError(
            f"none of its configurations fits a host of {cores:g} cores",
            where=f"campaign {campaign.name}",
            remedy="Lower the resource parameters, or oversubscribe the host (--oversubscribe)",
        )
    fitted = replace(campaign, targets=tuple(targets))
    if budget_s is not None:
        fitted = _thin(fitted, budget_s, cost_s, notes)
    return Fitted(fitted, tuple(notes))


def _affordable(plan: TargetPlan, cores: float) -> tuple[TargetPlan | None, list[str]]:
    """A target with the values that fit together, None if none does; and the others as text.

    A grid has every combination of its values, so the largest value goes until the hungriest
    combination fits; values combined by their places go together.
    """
    if plan.combine == "places":
        return _affordable_places(plan, cores)
    resources = list(plan.resources)
    dropped: list[str] = []
    while True:
        hungriest = [max((p.cores(v) for v in p.values), default=0.0) for p in resources]
        if sum(hungriest) <= cores or not any(hungriest):
            break
        index = hungriest.index(max(hungriest))
        parameter = resources[index]
        largest = max(parameter.values, key=parameter.cores)
        dropped.append(f"{parameter.key}={largest}")
        left = tuple(value for value in parameter.values if value != largest)
        if not left:
            return None, dropped
        resources[index] = replace(parameter, values=left)
    return replace(plan, resources=tuple(resources)), dropped


def _affordable_places(plan: TargetPlan, cores: float) -> tuple[TargetPlan | None, list[str]]:
    many = max((len(p.values) for p in plan.resources), default=1)
    everywhere = [p.values * many if len(p.values) == 1 else p.values for p in plan.resources]
    kept, dropped = [], []
    for place, values in enumerate(zip(*everywhere, strict=True)):
        asked = sum(p.cores(v) for p, v in zip(plan.resources, values, strict=True))
        if asked <= cores or asked == 0:
            kept.append(place)
        else:
            pairs = zip(plan.resources, values, strict=True)
            dropped.append(",".join(f"{p.key}={v}" for p, v in pairs))
    if not kept:
        return None, dropped
    resources = tuple(
        replace(p, values=tuple(values[place] for place in kept))
        for p, values in zip(plan.resources, everywhere, strict=True)
    )
    return replace(plan, resources=resources), dropped


def _values(parameter: Parameter) -> str:
    return f"{parameter.key} {'/'.join(str(value) for value in parameter.values)}"


def _thin(
    campaign: Campaign, budget_s: float, cost_s: Callable[[Campaign], float], notes: list[str]
) -> Campaign:
    """Repetitions go first, then loads, then the largest workload values."""
    cost = cost_s(campaign)
    while cost > budget_s:
        thinner = _fewer_samples(campaign) or _fewer_workloads(campaign)
        if thinner is None:
            notes.append(
                f"the budget of {duration(budget_s)} ends it early: the smallest useful part "
                f"takes about {duration(cost)}"
            )
            return campaign
        campaign, cost = thinner, cost_s(thinner)
        if cost <= budget_s:
            plan = campaign.sampling
            sizes = "; ".join(_values(p) for p in campaign.workload)
            notes.append(
                f"for a budget of {duration(budget_s)}: "
                f"{counted(plan.max_samples // plan.repetitions, 'load')}, "
                f"{counted(plan.repetitions, 'repetition')}" + (f", {sizes}" if sizes else "")
            )
    return campaign


def _fewer_samples(campaign: Campaign) -> Campaign | None:
    plan = campaign.sampling
    loads = plan.max_samples // plan.repetitions
    if plan.repetitions > 1:
        fewer = plan.repetitions - 1
        sampling = replace(plan, repetitions=fewer, max_samples=loads * fewer)
    elif loads > FEWEST_LOADS:
        sampling = replace(plan, max_samples=max(FEWEST_LOADS, loads * 2 // 3))
    else:
        return None
    return replace(campaign, sampling=sampling)


def _fewer_workloads(campaign: Campaign) -> Campaign | None:
    longest = max(campaign.workload, key=lambda p: len(p.values), default=None)
    if longest is None or len(longest.values) < 2:
        return None
    fewer = replace(longest, values=longest.values[:-1])
    return replace(
        campaign, workload=tuple(fewer if p is longest else p for p in campaign.workload)
    )
