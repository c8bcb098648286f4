"""What to measure to tell: points of the campaign that would decide between a cause and its rival.

A cause that moves with one thing is told from its rivals by changing that thing alone (Gregg,
Systems Performance, "scientific method"); paper E, 6.3, wants three stand-alone samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from workbench.diagnosis.gathering import beside
from workbench.domain.campaign import TargetPlan
from workbench.domain.diagnoses import Diagnosis, Experiment
from workbench.domain.parameters import Configuration
from workbench.domain.projection import SessionView

SHORT_OF_CPU = ("quota", "cpu", "cpu wait")
"""Limits that more vCPU would lift."""
REPETITIONS = 3
"""Stand-alone samples that 3 sigma takes."""
SAME_LOAD = 1.05
"""Factor up to which a load counts as measured already."""


def experiments(found: Diagnosis, view: SessionView) -> tuple[Experiment, ...]:
    """At most one of each kind: the same again where evidence is missing, the functions in another
    order, a function alone, more vCPU. What was measured already is not proposed.
    """
    campaign = view.campaign
    plan = _plan(view, found.target)
    if campaign is None or plan is None:
        return ()
    lacking = found.missing and not found.answered and not view.lab.startswith("sim")
    again = _again(found) if lacking else ()
    others = (*_other_order(found, view), *_alone(found, view, plan))
    more_vcpu = tuple(_more_vcpu(found, view, plan))
    short = _limiting(found) is not None
    return (*again, *(more_vcpu + others if short else others + more_vcpu))


def _plan(view: SessionView, target: str) -> TargetPlan | None:
    plans = view.campaign.targets if view.campaign is not None else ()
    return next((plan for plan in plans if plan.target.name == target), None)


def _again(found: Diagnosis) -> tuple[Experiment, ...]:
    tells = "whether it repeats, with the evidence that is missing here"
    return (
        Experiment(found.target, found.configuration, found.wl, f"{found.target} once more", tells),
    )


def _other_order(found: Diagnosis, view: SessionView) -> Iterator[Experiment]:
    """The same functions in another order: what is of the pair goes, what is of one stays."""
    own = _plan(view, found.target)
    assert own is not None
    names = [vnf.name for vnf in own.target.vnfs]
    for plan in view.campaign.targets if view.campaign is not None else ():
        others = [vnf.name for vnf in plan.target.vnfs]
        if others == names or sorted(others) != sorted(names):
            continue
        if _measured(view, plan, found.configuration, found.wl) == 0:
            what = f"{plan.target.name}, the other order"
            tells = "whether the order of the functions is the cause"
            yield Experiment(plan.target.name, found.configuration, found.wl, what, tells)
            return


def _alone(found: Diagnosis, view: SessionView, plan: TargetPlan) -> Iterator[Experiment]:
    """A function on its own at this load and allocation, where it has too few such samples."""
    campaign = view.campaign
    if campaign is None or len(plan.target.vnfs) < 2:
        return
    for function, target in beside(campaign, plan.target).items():
        alone = _plan(view, target.name)
        assert alone is not None
        if alone.primary.name != plan.primary.name:
            continue
        name = target.vnfs[0].name
        wanted = {
            f"{name}.{key.partition('.')[2]}": value
            for key, value in found.configuration.resources.items()
            if key.partition(".")[0] == function
        }
        for one in campaign.configurations(alone):
            if one.workload != found.configuration.workload or one.resources != wanted:
                continue
            taken = _measured(view, alone, one, found.wl)
            if 0 <= taken < REPETITIONS:
                tells = (
                    f"how it behaves by itself: {REPETITIONS} samples are needed, there are {taken}"
                )
                yield Experiment(target.name, one, found.wl, f"{function} alone", tells)
                return


def _limiting(found: Diagnosis) -> str | None:
    """The function that is short of CPU; None where none is."""
    short = [bound for bound in found.bounds if bound.by in SHORT_OF_CPU]
    return max(short, key=lambda bound: bound.share).component if short else None


def _more_vcpu(found: Diagnosis, view: SessionView, plan: TargetPlan) -> Iterator[Experiment]:
    """The function that limits, or where the first cause acts, with its next larger share."""
    names = [vnf.name for vnf in plan.target.vnfs]
    acting = next((v.component for v in found.verdicts if v.component in names), None)
    function = _limiting(found) or acting
    key = f"{function}.vcpu"
    here = found.configuration.resources.get(key)
    if view.campaign is None or not isinstance(here, int | float):
        return
    larger = [
        one
        for one in view.campaign.configurations(plan)
        if one.workload == found.configuration.workload
        and one.resource(key) > here
        and {**one.resources, key: here} == found.configuration.resources
    ]
    for one in sorted(larger, key=lambda each: each.resource(key))[:1]:
        if _measured(view, plan, one, found.wl) == 0:
            what = f"{function} with {one.resource(key):g} vCPU instead of {here:g}"
            tells = "whether it is short of CPU"
            yield Experiment(found.target, one, found.wl, what, tells)


def _measured(view: SessionView, plan: TargetPlan, configuration: Configuration, wl: float) -> int:
    """Valid samples at about this load; -1 where the campaign has no such point."""
    campaign = view.campaign
    if campaign is None or not plan.primary.low <= wl <= plan.primary.high:
        return -1
    if configuration not in campaign.configurations(plan):
        return -1
    item = view.configuration(f"{plan.target.name}/{configuration.key}")
    samples = item.samples if item is not None else ()
    return sum(
        one.valid and one.wl > 0 and wl > 0 and abs(math.log(one.wl / wl)) <= math.log(SAME_LOAD)
        for one in samples
    )
