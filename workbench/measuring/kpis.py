"""KPIs of a sample, each with its interval; what cannot be stated is absent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from workbench.domain import kpis as registry
from workbench.domain.campaign import WindowPlan
from workbench.domain.parameters import Sla
from workbench.domain.samples import Estimate
from workbench.measuring.censoring import Distribution
from workbench.measuring.correlation import DeviationSeries, Worth, independent
from workbench.measuring.floor import VarianceFloor
from workbench.measuring.histograms import centres_s
from workbench.measuring.intervals import (
    Tail,
    count_interval,
    log_error,
    log_half,
    log_interval,
    share_interval,
)
from workbench.measuring.pool import WindowPool
from workbench.measuring.records import Floats
from workbench.measuring.recovery import recovery
from workbench.measuring.stretches import MIN_BATCHES, Parts, backlog_margin_rps

_MEGABIT = 1e6 / 8
_TAILS = (0.1, 0.03)
"""Largest shares of the requests that are asked for the tail's index; the lighter answer counts:
a tenth may hold both sides of a quota gap, which is a jump and no tail."""
_TAIL_REQUESTS = 6
"""Requests that tell an index at least."""


@dataclass(frozen=True)
class Statement:
    """KPIs by name.

    Attributes
    ----------
    bounded : those that are only lower bounds.
    correlated : independent batches of those that have not enough (`correlation.Worth`) and whose
        interval rests on them, not on the floor.
    """

    kpis: dict[str, Estimate]
    bounded: frozenset[str]
    correlated: dict[str, float]


def state(
    pool: WindowPool,
    plan: WindowPlan,
    floor: VarianceFloor,
    factor: float = 1.0,
    asked: Iterable[str] = (),
) -> Statement:
    """All KPIs of a sample.

    A response time that is only known from below, since its percentile lies among requests that
    never ended or since the point is overloaded and its backlog grows for as long as one watches,
    is stated as that lower bound: `value` and `low` are the bound, `high` is the request time-out
    (beyond which a request is not answered at all), or twice the bound if that is more.
    `factor` widens what the batches say (`narrowing`). Percentiles that are `asked` for are stated
    beside those that always are.
    """
    kpis: dict[str, Estimate] = {}
    bounded: set[str] = set()
    worths: dict[str, Worth] = {}
    times = (name for name in registry.names("response_time") if not registry.of(name).measure)
    wanted = dict.fromkeys((*times, *(name for name in asked if registry.of(name).quantile)))
    for name in wanted if pool.stretches[0].drive.kpi_definition != "none" else ():
        latency, is_bound = _latency(name, pool, plan, floor, factor, worths)
        if latency is not None:
            kpis[name] = latency
            if is_bound:
                bounded.add(name)
    if (recovered := recovery(pool)) is not None:
        kpis[registry.RECOVERY], is_bound = recovered
        if is_bound:
            bounded.add(registry.RECOVERY)
    least = floor.half(registry.THROUGHPUT, len(pool.stretches))
    answered = _independent(pool.rates("succeeded"), pool, [p.succeeded for p in _parts(pool)])
    kpis[registry.THROUGHPUT] = _rate(pool, "succeeded", 1.0, least, factor, answered)
    kpis["goodput_mbps"] = _rate(pool, "body_bytes", _MEGABIT, least, factor, answered)
    worths[registry.THROUGHPUT] = answered
    if pool.load.kind == "open" and pool.planned:
        kpis[registry.LOSS] = _loss(pool)
    answers = pool.completed + pool.errors
    if answers:
        errors, succeeded = pool.batches("errors"), pool.batches("succeeded")
        share = share_interval(pool.errors / answers, answers, _ratio(errors, errors + succeeded))
        kpis[registry.ERRORS] = _per_cent(share)
    few = {
        name: worth.batches
        for name, worth in worths.items()
        if name in kpis
        and not worth.enough
        and log_half(kpis[name]) > floor.half(name, len(pool.stretches))
    }
    return Statement(kpis | measured_by_plugins(pool, "requests"), frozenset(bounded), few)


def measured_by_plugins(pool: object, of: registry.Passage) -> dict[str, Estimate]:
    """What KPIs of plug-ins say of the windows of a visit.

    One that raises, or whose interval does not hold its value, states nothing: the sample is worth
    more than it, and `workbench conformance` tells its author why.
    """
    stated: dict[str, Estimate] = {}
    for name, kpi in registry.known().items():
        if kpi.measure is None or of not in kpi.of:
            continue
        with suppress(Exception):
            found = kpi.measure(pool)
            if isinstance(found, Estimate) and found.low <= found.value <= found.high < math.inf:
                stated[name] = found
    return stated


def probability_within(pool: WindowPool, sla: Sla | None) -> Estimate | None:
    """P(R <= the SLA's limit) of a planned request, errors counting as beyond it.

    None if the SLA is not an upper limit on a response time, or nothing was planned.
    """
    if sla is None or registry.of(sla.kpi).kind != "response_time" or sla.direction != "<=":
        return None
    requests = np.array([d.requests for d in pool.responses], dtype=float)
    total = requests + pool.batches("errors_of_planned")
    within = np.array([d.share_within(sla.limit / 1e3) or 0.0 for d in pool.responses])
    if not total.sum():
        return None
    share = pool.response.share_within(sla.limit / 1e3) or 0.0  # nothing but errors: none within
    answered = float(requests.sum() / total.sum())
    return share_interval(share * answered, int(total.sum()), within * _ratio(requests, total))


def _latency(
    name: str,
    pool: WindowPool,
    plan: WindowPlan,
    floor: VarianceFloor,
    factor: float,
    worths: dict[str, Worth],
) -> tuple[Estimate | None, bool]:
    """The figure, and whether it is only a lower bound; `worths` learns its batches' worth."""
    value = None if pool.overloaded else _figure(name, pool.response)
    if value is None:
        bound = _figure_floor(name, pool.response)
        if bound is None or bound <= 0:
            return None, False
        high = max(plan.request_timeout_s, 2 * bound)
        return Estimate(bound * 1e3, bound * 1e3, high * 1e3), True
    batches = np.array([_figure(name, d) or np.nan for d in pool.responses])
    least = floor.half(name, len(pool.stretches))
    worths[name] = _independent(batches, pool, _slowness(pool))
    tail = _tail(pool)
    upper = None if tail is None else tail.upper(registry.of(name).quantile)
    worth = worths[name].batches
    return log_interval(value * 1e3, batches * 1e3, least, factor, worth, upper), False


def _independent(batches: Floats, pool: WindowPool, parts: Sequence[Floats]) -> Worth:
    """How many independent batches a figure of each batch is worth (`correlation`)."""
    if pool.load.shape is not None:
        # Parts of a cycle differ by its load; batches, which are whole ones, do not.
        return Worth(float(np.isfinite(batches).sum()), True)
    positive = np.where(batches > 0, batches, np.nan)
    return independent(DeviationSeries(pool.by_window(np.log(positive))), DeviationSeries(parts))


def _slowness(pool: WindowPool) -> list[Floats]:
    """Mean log latency of each part of each window; NaN where a part has no requests.

    In logs, as what is alike in neighbours would be hidden by a few large values.
    """
    means = []
    for parts in _parts(pool):
        logs, requests = np.log(centres_s(parts.counts.shape[1])), parts.counts.sum(axis=1)
        means.append(_ratio(parts.counts @ logs, requests))
    return means


def _parts(pool: WindowPool) -> list[Parts]:
    return [stretch.parts for stretch in pool.stretches]


def _figure(name: str, latencies: Distribution) -> float | None:
    quantile = registry.of(name).quantile
    return latencies.mean() if quantile is None else latencies.quantile(quantile)


def _figure_floor(name: str, latencies: Distribution) -> float | None:
    quantile = registry.of(name).quantile
    return latencies.mean_floor() if quantile is None else latencies.quantile_floor(quantile)


def _tail(pool: WindowPool) -> Tail | None:
    """Of the pooled requests; None where there are too few to tell."""
    mean_s, means = pool.response.mean(), np.array([d.mean() or np.nan for d in pool.responses])
    stated = means[np.isfinite(means) & (means > 0)]
    if mean_s is None or stated.size < 2:
        return None
    worth = _independent(means, pool, _slowness(pool))
    error = mean_s * log_error(mean_s, stated, worth.batches)
    centres = centres_s(pool.response.finished.size)
    counts = pool.response.finished + pool.response.censored
    variance = float(counts @ (centres - mean_s) ** 2) / float(counts.sum())
    return tail_of(pool.response, variance / error**2 if error else math.inf)


def tail_of(latencies: Distribution, alone: float) -> Tail | None:
    """The upper tail of response times that count as so many independent ones, at most as what
    they are; None where there are too few to tell."""
    counts, mean_s = latencies.finished + latencies.censored, latencies.mean()
    total = float(counts.sum())
    if mean_s is None or total < _TAIL_REQUESTS / _TAILS[0]:
        return None
    centres, from_above = centres_s(counts.size), np.cumsum(counts[::-1])
    indices = []
    for share in _TAILS:
        many = share * total
        if many >= _TAIL_REQUESTS:
            first = counts.size - 1 - int(np.searchsorted(from_above, many))
            logs = np.log(centres[first:] / centres[first])
            indices.append((float(counts[first:] @ logs) / many, share))
    largest = float(centres[np.flatnonzero(counts)[-1]]) / mean_s
    return Tail(*min(indices), largest, max(1.0, min(total, alone)))


def _rate(
    pool: WindowPool, field: str, unit: float, least: float, factor: float, worth: Worth
) -> Estimate:
    """Throughput or goodput; the floor applies where the function sets it, not the plan."""
    total, batches = float(pool.batches(field).sum()) / unit, pool.rates(field) / unit
    rate = total / pool.duration_s
    free = pool.load.kind == "closed" or pool.overloaded
    if rate > 0 and pool.k >= MIN_BATCHES and (batches > 0).all():
        interval = log_interval(rate, batches, least if free else 0.0, factor, worth.batches)
        if interval is not None:
            return interval
    per_event = total / pool.completed if pool.completed else 1.0
    few = count_interval(pool.completed, pool.rates("succeeded"), pool.duration_s)
    return Estimate(rate, few.low * per_event, few.high * per_event)


def _loss(pool: WindowPool) -> Estimate:
    """Share of the planned requests that the long run would leave unanswered (METHOD.md 2).

    That is the growth of the backlog over the planned rate, plus the share that failed. What is
    naturally in flight when the load stops is no loss: only growth counts.
    """
    planned_rps = pool.planned / pool.duration_s
    growth, error = pool.backlog_rps
    half = backlog_margin_rps(error, pool.duration_s, pool.stretches[0].watched_s)
    lost = pool.batches("errors") + pool.batches("timed_out")
    failed = share_interval(
        min(1.0, float(lost.sum()) / pool.planned),
        pool.planned,
        _ratio(lost, pool.batches("planned")),
    )
    return _per_cent(
        Estimate(
            min(1.0, max(0.0, growth) / planned_rps + failed.value),
            min(1.0, max(0.0, growth - half) / planned_rps + failed.low),
            min(1.0, max(0.0, growth + half) / planned_rps + failed.high),
        )
    )


def _ratio(part: Floats, whole: Floats) -> Floats:
    ratio: Floats = np.divide(part, whole, out=np.full(whole.size, np.nan), where=whole > 0)
    return ratio


def _per_cent(share: Estimate) -> Estimate:
    return Estimate(100 * share.value, 100 * share.low, 100 * share.high)
