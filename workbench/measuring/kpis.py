"""KPIs of a sample, each with its interval; what cannot be stated is absent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.domain.campaign import WindowPlan
from workbench.domain.parameters import Sla
from workbench.domain.samples import Estimate
from workbench.measuring.censoring import Distribution
from workbench.measuring.floor import VarianceFloor
from workbench.measuring.intervals import (
    count_interval,
    log_interval,
    share_interval,
)
from workbench.measuring.pool import Pool
from workbench.measuring.records import Floats
from workbench.measuring.stretches import MIN_BATCHES, backlog_margin_rps

QUANTILES = {"p50_ms": 0.50, "p95_ms": 0.95, "p99_ms": 0.99}
LATENCIES = (*QUANTILES, "mean_ms")
_MEGABIT = 1e6 / 8


@dataclass(frozen=True)
class Statement:
    """KPIs by name; `bounded` names those that are only lower bounds."""

    kpis: dict[str, Estimate]
    bounded: frozenset[str]


def state(pool: Pool, plan: WindowPlan, floor: VarianceFloor, factor: float = 1.0) -> Statement:
    """All KPIs of a sample.

    A response time that is only known from below, since its percentile lies among requests that
    never ended or since the point is overloaded and its backlog grows for as long as one watches,
    is stated as that lower bound: `value` and `low` are the bound, `high` is the request time-out
    (beyond which a request is not answered at all), or twice the bound if that is more.
    `factor` widens what the batches say (`narrowing`).
    """
    kpis: dict[str, Estimate] = {}
    bounded: set[str] = set()
    for name in LATENCIES if pool.stretches[0].drive.kpi_definition != "none" else ():
        latency, is_bound = _latency(name, pool, plan, floor, factor)
        if latency is not None:
            kpis[name] = latency
            if is_bound:
                bounded.add(name)
    least = floor.half("throughput_rps", len(pool.stretches))
    kpis["throughput_rps"] = _rate(pool, "succeeded", 1.0, least, factor)
    kpis["goodput_mbps"] = _rate(pool, "body_bytes", _MEGABIT, least, factor)
    if pool.load.kind == "open" and pool.planned:
        kpis["loss_pct"] = _loss(pool)
    answers = pool.completed + pool.errors
    if answers:
        errors, succeeded = pool.batches("errors"), pool.batches("succeeded")
        share = share_interval(pool.errors / answers, answers, _ratio(errors, errors + succeeded))
        kpis["error_pct"] = _per_cent(share)
    return Statement(kpis, frozenset(bounded))


def probability_within(pool: Pool, sla: Sla | None) -> Estimate | None:
    """P(R <= the SLA's limit) of a planned request, errors counting as beyond it.

    None if the SLA is not an upper limit on a response time, or nothing was planned.
    """
    if sla is None or sla.kpi not in LATENCIES or sla.direction != "<=":
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
    name: str, pool: Pool, plan: WindowPlan, floor: VarianceFloor, factor: float
) -> tuple[Estimate | None, bool]:
    value = None if pool.overloaded else _figure(name, pool.response)
    if value is None:
        bound = _figure_floor(name, pool.response)
        if bound is None or bound <= 0:
            return None, False
        high = max(plan.request_timeout_s, 2 * bound)
        return Estimate(bound * 1e3, bound * 1e3, high * 1e3), True
    batches = np.array([_figure(name, d) or np.nan for d in pool.responses])
    least = floor.half(name, len(pool.stretches))
    return log_interval(value * 1e3, batches * 1e3, least, factor), False


def _figure(name: str, latencies: Distribution) -> float | None:
    return latencies.mean() if name == "mean_ms" else latencies.quantile(QUANTILES[name])


def _figure_floor(name: str, latencies: Distribution) -> float | None:
    if name == "mean_ms":
        return latencies.mean_floor()
    return latencies.quantile_floor(QUANTILES[name])


def _rate(pool: Pool, field: str, unit: float, least: float, factor: float) -> Estimate:
    """Throughput or goodput; the floor applies where the function sets it, not the plan."""
    total, batches = float(pool.batches(field).sum()) / unit, pool.rates(field) / unit
    rate = total / pool.duration_s
    free = pool.load.kind == "closed" or pool.overloaded
    if rate > 0 and pool.k >= MIN_BATCHES and (batches > 0).all():
        interval = log_interval(rate, batches, least if free else 0.0, factor)
        if interval is not None:
            return interval
    per_event = total / pool.completed if pool.completed else 1.0
    few = count_interval(pool.completed, pool.rates("succeeded"), pool.duration_s)
    return Estimate(rate, few.low * per_event, few.high * per_event)


def _loss(pool: Pool) -> Estimate:
    """Share of the planned requests that the long run would leave unanswered (METHOD.md 2).

    That is the growth of the backlog over the planned rate, plus the share that failed. What is
    naturally in flight when the load stops is no loss: only growth counts.
    """
    planned_rps = pool.planned / pool.duration_s
    growth, error = pool.backlog_rps
    half = backlog_margin_rps(error, pool.duration_s)
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
