"""Deployments as the lab knows them, and what is made of their samples: pure steps."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workbench.domain.campaign import TargetPlan
from workbench.domain.parameters import Configuration, Parameter, Sla
from workbench.domain.recommendations import Deployment, GreedyRun, Verification
from workbench.domain.samples import Estimate, Reason, Sample
from workbench.domain.topology import Target
from workbench.domain.trials import REPEATS
from workbench.engine.answers.recommend_request import (
    Order,
    balancers_in,
    functions_of,
    resources_of,
)
from workbench.engine.answers.recommend_worker import scaling_of

if TYPE_CHECKING:  # its imports take time, and the engine only hands these values on
    from workbench.sla.greedy import Ladder
    from workbench.sla.sla_query import Question
    from workbench.sla.updated_by_trials import Tried

ATTEMPTS = 3
"""Samples of one deployment, of which the first that says something counts."""
UNDECIDED_REPEATS = 13
"""Samples at most of one deployment that is tried, where `REPEATS` do not say on which side of a
limit it is. One window in twenty is an outlier: of thirteen the interval leaves out three
at either end, of nine one, so that two outliers of nine would leave a side undecided; of five
none."""
MEDIAN = 1.25
"""A median is less sure than a mean by a quarter."""
_OUTSIDE = 0.1
TOO_MUCH: frozenset[Reason] = frozenset({"errors", "timeout", "too_few", "unsteady"})
"""Why a sample is not valid where a deployment does not carry its load."""


@dataclass(frozen=True)
class Stand:
    """What is deployed, and loaded with the question's load.

    `plan` is what the trials are opened with.
    """

    plan: TargetPlan
    configuration: Configuration
    wl: float


@dataclass(frozen=True)
class Climb:
    """Where greedy scaling stands; `stand` is None when it has ended."""

    stand: Stand | None
    run: GreedyRun


def stand_of(
    order: Order,
    question: Question,
    deployment: Deployment,
    rungs: Mapping[str, Ladder] | None = None,
) -> Stand:
    """A deployment of the chain; in its target every instance is a function of its own.

    `rungs` are allotments that single instances may be given later, without a new deployment.
    """
    from workbench.sla.replicas import instances, spread, spread_allocation

    known = resources_of(order, functions_of(order))
    target = order.chain
    several = {vnf: count for vnf, count in sorted(deployment.replicas.items()) if count > 1}
    if several:
        balancers = balancers_in(order)
        known += tuple(p for vnf in several for p in balancers[vnf].resources)
        target = Target(
            "-".join((target.name, *(f"{count}-{vnf}" for vnf, count in several.items()))),
            spread(target.graph, several, balancers),
            target.source,
            target.sink,
        )
    primary = order.plans[0].primary
    primary = replace(
        primary, low=min(primary.low, question.wl), high=max(primary.high, question.wl)
    )
    resources: list[Parameter] = []
    for parameter in known:
        vnf, _, name = parameter.key.rpartition(".")
        values = [deployment.allocation[parameter.key]]
        if rungs is not None and vnf not in several:
            values = list(dict.fromkeys(rung[parameter.key] for rung in rungs[vnf]))
        resources += (
            replace(parameter, key=f"{copy}.{name}", values=tuple(values))
            for copy in instances(vnf, deployment.instances(vnf))
        )
    configuration = Configuration(spread_allocation(deployment), question.workload)
    return Stand(TargetPlan(target, tuple(resources), primary), configuration, question.wl)


# ------------------------------------------------------------------- what is recommended


def verdict(sample: Sample, limits: Sequence[Sla], lab_s: float) -> Verification:
    """Whether every limit holds in the window; a sample that is not valid proves nothing."""
    if not sample.valid:
        return Verification(sample.id, {}, False, lab_s, f"No valid sample: {evidence(sample)}.")
    kpis = {sla.kpi: sample.kpis[sla.kpi] for sla in limits if sla.kpi in sample.kpis}
    told = [_held(sample, sla) for sla in limits]
    notes = dict.fromkeys(note for _, note in told if note)
    return Verification(sample.id, kpis, all(met for met, _ in told), lab_s, " ".join(notes))


def worth_repeating(samples: Sequence[Sample], limits: Sequence[Sla], deploying_s: float) -> bool:
    """Whether another sample of a deployment says enough for what it costs; all are valid.

    One window in twenty is an outlier, by a factor of two (METHOD.md 11): of several the median is
    none, if their number is odd. Up to `REPEATS` are taken while they cost less than deploying has,
    then as many as decide on which side of a limit it is. More do not make a bound a figure.
    """
    if len(samples) % 2 == 0:
        return True
    if len(samples) < REPEATS:
        return sum(sample.lab_s for sample in samples) < deploying_s
    if len(samples) >= UNDECIDED_REPEATS or len(_stating(samples, limits)) < len(samples):
        return False
    told = typical(samples, limits)
    return any(_close(told.kpis[sla.kpi], sla) for sla in limits)


def typical(samples: Sequence[Sample], limits: Sequence[Sla]) -> Sample:
    """The middle one of valid samples by the first limited KPI, with the medians of all of them."""
    first, told = limits[0].kpi, _stating(samples, limits)
    if len(told) < len(samples) or len(samples) == 1:
        # Bounds have no median, and what only bounds is the worst.
        return next((s for s in samples if s not in told), samples[0])
    middle = sorted(told, key=lambda s: s.kpis[first].value)[len(told) // 2]
    limited = dict.fromkeys(sla.kpi for sla in limits)
    pooled = {kpi: median_of(kpi, [s.kpis[kpi] for s in told]) for kpi in limited}
    return replace(middle, kpis={**middle.kpis, **pooled})


def median_of(kpi: str, seen: Sequence[Estimate]) -> Estimate:
    """The median of several figures of one deployment, and its 95 % interval.

    Of n figures fewer than k lie on one side of what they scatter around with a probability that
    no law of theirs changes (the sign test: P(Binomial(n, 1/2) < k)), so that the kth from either
    end is as many standard errors away as a normal law has for that. The outermost that together
    leave out at most `_OUTSIDE` are taken. They say how steady this deployment is at this load: on
    a plateau of p95 that is a few per cent, and where it jumps (METHOD.md 5) a factor, which no
    scatter pooled over a campaign tells. Fewer than `REPEATS` do not say it: their own intervals,
    which know that pool, are narrowed as a median of them is.
    """
    from scipy.special import bdtr, ndtri

    from workbench.measuring.intervals import RESOLUTION
    from workbench.models.scales import NORMAL_95, log_sd

    ordered, n = sorted(one.value for one in seen), len(seen)
    middle = statistics.median(ordered)
    if n < REPEATS:
        sd = statistics.median(log_sd(kpi, one) for one in seen)
        half = math.exp(NORMAL_95 * MEDIAN * sd / math.sqrt(n))
        return Estimate(middle, middle / half, middle * half)
    if middle <= 0.0:
        return Estimate(middle, ordered[0], ordered[-1])
    k = max(k for k in range(1, n // 2 + 1) if k == 1 or 2.0 * bdtr(k - 1, n, 0.5) <= _OUTSIDE)
    reach = NORMAL_95 / -float(ndtri(bdtr(k - 1, n, 0.5)))
    low, high = (middle * (end / middle) ** reach for end in (ordered[k - 1], ordered[n - k]))
    finest = math.exp(RESOLUTION)
    return Estimate(middle, min(low, middle / finest), max(high, middle * finest))


def _stating(samples: Sequence[Sample], limits: Sequence[Sla]) -> list[Sample]:
    """Those that state every limited KPI, and do not only bound it."""
    from workbench.models.selection import stated

    return [s for s in samples if all(stated(s, sla.kpi) is not None for sla in limits)]


def tried_of(
    deployment: Deployment, target: Target, sample: Sample, limits: Sequence[Sla]
) -> Tried | None:
    """What a sample teaches of the limited KPIs; None where it says nothing."""
    from workbench.models.selection import stated
    from workbench.sla.updated_by_trials import Tried

    if overloaded(sample, target):
        drowned = {sla.kpi: sla.limit for sla in limits if sla.direction == "<="}
        kpis = {kpi: Estimate(limit, limit, limit) for kpi, limit in drowned.items()}
        return Tried(deployment, kpis, frozenset(kpis)) if kpis else None
    if not sample.valid:
        return None
    limited = dict.fromkeys(sla.kpi for sla in limits)
    kpis = {kpi: sample.kpis[kpi] for kpi in limited if kpi in sample.kpis}
    bounds = frozenset(kpi for kpi in kpis if stated(sample, kpi) is None)
    return Tried(deployment, kpis, bounds) if kpis else None


def overloaded(sample: Sample, target: Target) -> bool:
    """Whether a sample is not valid because a busy function does not carry the load.

    It misses every limit, and would do so again.
    """
    from workbench.sla.greedy import BUSY

    used = [sample.usage[v.name].cpu_share for v in target.vnfs if v.name in sample.usage]
    reasons = {finding.reason for finding in sample.findings}
    return not sample.valid and reasons <= TOO_MUCH and max(used, default=0.0) >= BUSY


def evidence(sample: Sample) -> str:
    """Why a sample is not valid."""
    return "; ".join(finding.evidence for finding in sample.findings) or "it does not say why"


def _held(sample: Sample, sla: Sla) -> tuple[bool, str]:
    """Whether a limit holds, and what is to be known of that."""
    from workbench.models.selection import stated

    bound, estimate = sample.kpis.get(sla.kpi), stated(sample, sla.kpi)
    if bound is None:
        return False, f"The sample does not state {sla.kpi}."
    if estimate is None:
        known = f"Of {sla.kpi} it is known only that it is above {bound.value:.4g}."
        return sla.direction == ">=" and sla.holds(bound.value), known
    note = f"The limit of {sla.kpi} lies within the interval of what was measured."
    return sla.holds(estimate.value), note if _close(estimate, sla) else ""


def _close(estimate: Estimate, sla: Sla) -> bool:
    return estimate.low <= sla.limit <= estimate.high


# ------------------------------------------------------------------- greedy scaling


def climbed(order: Order, question: Question, samples: tuple[Sample, ...]) -> Climb:
    """Greedy scaling after these samples, one for each allocation that it asked for."""
    from workbench.sla.greedy import ladders

    scaling = scaling_of(order, question)
    for sample in samples:
        asked = scaling.ask()
        assert asked is not None, "nobody measures more than it asks for"
        limited = [sla.kpi for sla in question.limits if sample.valid and sla.kpi in sample.kpis]
        kpis = {kpi: sample.kpis[kpi].value for kpi in limited}
        scaling.tell(kpis, dict(_usage(asked[0], sample)))
    asked = scaling.ask()
    run = scaling.result(on_lab=True)
    if asked is None:
        return Climb(None, run)
    functions = (*functions_of(order), *(vnf.name for vnf in order.balancers.values()))
    rungs = ladders(resources_of(order, dict.fromkeys(functions)))
    return Climb(stand_of(order, question, asked[0], rungs), run)


def _usage(deployment: Deployment, sample: Sample) -> Iterator[tuple[str, float]]:
    """CPU by function as a share; of several instances their mean."""
    from workbench.sla.replicas import instances

    for vnf in deployment.functions:
        copies = instances(vnf, deployment.instances(vnf))
        told = [sample.usage[copy].cpu_share for copy in copies if copy in sample.usage]
        if told:
            yield vnf, statistics.fmean(told)
