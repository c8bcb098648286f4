"""Rule `capacity`: the largest load that is carried (METHOD.md 2 and 7.1)."""

from __future__ import annotations

import math

import numpy as np

from workbench.domain.profiles import Breakpoint
from workbench.domain.samples import Sample
from workbench.models.breakpoints.case import SAMPLE_LOG_SD, SHARED_LOG_SD, Case
from workbench.models.breakpoints.threshold import Evidence, locate
from workbench.models.scales import NORMAL_95, figure, log_sd

_RATE = "throughput_rps"
_EDGE = 0.02
"""Shortfall of throughput that requests in flight at a window's edge explain: a quota gap of
0.1 s against windows of several seconds."""
_STILL_RISING = 0.7
"""In a closed loop, the share of n / (Z + R(1)) that throughput must stay under to be saturated."""
_PLATEAU = 2.0
"""Clients over N* from which on throughput counts as saturated."""


def capacity(case: Case) -> Breakpoint:
    """Capacity of an open loop as a rate, of a closed loop as N* = (Z + R(1))·X_max."""
    return _closed(case) if case.load.kind == "closed" else _open(case)


def _open(case: Case) -> Breakpoint:
    """The largest rate whose long-run loss stays within the goal.

    An oversaturated function carries C whatever is offered, so its throughput measures C. At C
    the long-run loss is 0 and it grows as 1 - C/λ, so the goal g is reached at C/(1 - g); one
    that keeps within the goal at λ says that C lies above λ(1 - g).
    """
    samples = [s for s in case.valid if s.kpi(_RATE)]
    if len(samples) < 2:
        return case.answer("capacity", "unresolved", "fewer than two valid samples", _RATE)
    saturated = [s for s in samples if _loses(s, case.loss_goal)]
    carried = [s for s in samples if not _loses(s, case.loss_goal)]
    if not saturated:
        return case.none_in_range("capacity", "saturation", _RATE)
    tolerated = -math.log1p(-case.loss_goal)
    located = locate(
        Evidence(
            above=[math.log(s.point.wl) - tolerated for s in carried],
            exact=[
                (math.log(s.point.wl), math.log(s.kpis[_RATE].value), _own_sd(s), 1.0)
                for s in saturated
            ],
        )
    )
    rate = math.exp(located.centre + tolerated)
    if not carried and (rate < case.primary.low or case.bottom <= case.primary.low):
        return case.answer(
            "capacity",
            "below_range",
            f"saturated from {figure(case.bottom)}{case.unit} on; carries about {figure(rate)}/s",
            _RATE,
        )
    note = f"{len(saturated)} saturated samples carried {_spread(saturated)}/s"
    if not carried:
        note += "; nothing valid below saturation"
    return case.found(
        "capacity",
        located.centre + tolerated,
        located.low + tolerated,
        located.high + tolerated,
        note,
        _RATE,
    )


def _loses(sample: Sample, goal: float) -> bool:
    """Whether a sample was saturated: it lost more than the goal and its throughput fell short."""
    shortfall = 1.0 - sample.kpis[_RATE].value / sample.point.wl
    loss = (sample.kpi("loss_pct") or 0.0) / 100.0 if "loss_pct" in sample.kpis else shortfall
    return loss > goal and shortfall > max(goal, _EDGE)


def _own_sd(sample: Sample) -> float:
    """What the sample's own interval adds to the scatter between samples, in logs."""
    return math.sqrt(max(log_sd(_RATE, sample.kpis[_RATE]) ** 2 - SAMPLE_LOG_SD**2, 0.0))


def _spread(samples: list[Sample]) -> str:
    rates = [s.kpis[_RATE].value for s in samples]
    ends = dict.fromkeys((figure(min(rates)), figure(max(rates))))
    return "-".join(ends)


def _closed(case: Case) -> Breakpoint:
    """N* = (Z + R(1))·X_max, where the two asymptotes of throughput meet (Denning & Buzen 1978).

    Z + R(1) is read as n / X at the smallest n (Little's law), X_max from the samples beyond
    twice N*, found by iterating.
    """
    from scipy.stats import t

    samples = [s for s in case.valid if s.kpi(_RATE)]
    loads = sorted({s.point.wl for s in samples})
    if len(loads) < 2:
        return case.answer("capacity", "unresolved", "fewer than two valid loads", _RATE)
    n = np.array([s.point.wl for s in samples])
    log_rate = np.log([s.kpis[_RATE].value for s in samples])
    alone = n == loads[0]
    log_cycle = float(np.mean(np.log(n[alone]) - log_rate[alone]))
    best = float(np.max(log_rate))
    if best > math.log(loads[-1]) - log_cycle + math.log(_STILL_RISING):
        return case.none_in_range("capacity", "saturation", _RATE)
    plateau = n >= min(_PLATEAU * math.exp(log_cycle + best), loads[-1])
    log_max = float(np.mean(log_rate[plateau]))
    plateau = n >= min(_PLATEAU * math.exp(log_cycle + log_max), loads[-1])
    on_plateau = log_rate[plateau]
    log_max = float(np.mean(on_plateau))

    count = on_plateau.size
    scatter = max(float(np.std(on_plateau, ddof=1)) if count > 1 else 0.0, SAMPLE_LOG_SD)
    own = scatter * math.sqrt(1.0 / count + 1.0 / int(alone.sum()))
    half = math.hypot(float(t.ppf(0.975, count + 1)) * own, NORMAL_95 * SHARED_LOG_SD)
    log_star = log_cycle + log_max
    carried = f"X_max {figure(math.exp(log_max))}/s"
    if log_star + half < math.log(case.primary.low) or (
        loads[0] <= case.primary.low and log_star - half < math.log(case.primary.low)
    ):
        return case.answer(
            "capacity",
            "below_range",
            f"saturated from {figure(loads[0])}{case.unit} on; {carried}",
            _RATE,
        )
    return case.found(
        "capacity", log_star, log_star - half, log_star + half, f"N* at {carried}", _RATE
    )
