"""Rule `capacity`: the largest load that is carried (METHOD.md 2 and 7.1)."""

from __future__ import annotations

import math

import numpy as np

from workbench.domain.profiles import Breakpoint
from workbench.domain.samples import Sample
from workbench.models.breakpoints.case import RuleInputs
from workbench.models.breakpoints.overload import PLAIN
from workbench.models.breakpoints.scatter import CapacityReading, centre, saturated
from workbench.models.scales import NORMAL_95, figure
from workbench.models.selection import rate_kpi

_STILL_RISING = 0.7
"""In a closed loop, the share of n / (Z + R(1)) that throughput must stay under to be saturated."""
_PLATEAU = 2.0
"""Clients over N* from which on throughput counts as saturated."""
_QUANTILES = (0.025, 0.5, 0.975)


def capacity(case: RuleInputs) -> Breakpoint:
    """Capacity of an open loop as a rate, of a closed loop as N* = (Z + R(1))·X_max."""
    return _closed(case) if case.load.kind == "closed" else _open(case)


def _open(case: RuleInputs) -> Breakpoint:
    """The largest rate whose long-run loss stays within the goal.

    An oversaturated function carries C whatever is offered, so its throughput measures C. At C
    the long-run loss is 0 and it grows as 1 - C/λ, so the goal g is reached at C/(1 - g); one
    that keeps within the goal at λ says that C lies above λ(1 - g).
    """
    samples = [s for s in case.valid if rate_kpi(s)]
    if len(samples) < 2:
        return case.answer("capacity", "unresolved", "fewer than two valid samples", case.rate)
    broken = [s for s in samples if saturated(s, case.loss_goal, case.rate)]
    if not broken or case.log_capacity is None:
        return case.none_in_range("capacity", "saturation", case.rate)
    low, middle, high = (float(q) for q in case.log_capacity.quantiles(_QUANTILES))
    rate = math.exp(middle)
    if rate < case.primary.low or (len(broken) == len(samples) and case.bottom <= case.primary.low):
        return case.answer(
            "capacity",
            "below_range",
            f"saturated from {figure(case.bottom)}{case.unit} on; carries about {figure(rate)}/s",
            case.rate,
        )
    if rate > case.primary.high:
        note = f"saturates at about {figure(rate)}/s, above the range"
        return case.answer("capacity", "none_in_range", note, case.rate)
    note = f"{len(broken)} saturated samples carried {_spread(broken, case.rate)}/s"
    if len(broken) == len(samples):
        note += "; nothing valid below saturation"
    return case.found("capacity", middle, low, high, note, case.rate)


def _spread(samples: list[Sample], rate: str) -> str:
    rates = [s.kpis[rate].value for s in samples]
    ends = dict.fromkeys((figure(min(rates)), figure(max(rates))))
    return "-".join(ends)


def _closed(case: RuleInputs) -> Breakpoint:
    """N* = (Z + R(1))·X_max, where the two asymptotes of throughput meet (Denning & Buzen 1978).

    Z + R(1) is n / X at the smallest n (Little's law), which the note names where it is not 1;
    X_max is centred on the samples beyond twice N*, found by iterating. Z itself does not
    scatter, R(1) and X_max do as samples do.
    """
    samples = [s for s in case.valid if rate_kpi(s)]
    loads = sorted({s.point.wl for s in samples})
    if len(loads) < 2:
        return case.answer("capacity", "unresolved", "fewer than two valid loads", case.rate)
    n = np.array([s.point.wl for s in samples])
    log_rate = np.log([s.kpis[case.rate].value for s in samples])
    alone = n == loads[0]
    log_cycle = float(np.mean(np.log(n[alone]) - log_rate[alone]))
    best = float(np.max(log_rate))
    if best > math.log(loads[-1]) - log_cycle + math.log(_STILL_RISING):
        return case.none_in_range("capacity", "saturation", case.rate)
    log_max = best
    for _ in range(2):
        plateau = n >= min(_PLATEAU * math.exp(log_cycle + log_max), loads[-1])
        log_max = float(np.mean(log_rate[plateau]))
    readings = [
        CapacityReading(case.configuration, s.block, float(value), float(value))
        for s, value, on in zip(samples, log_rate, plateau, strict=True)
        if on
    ]
    posterior = centre(readings, case.noise, case.rate, shapes=PLAIN)[case.configuration]
    low, log_max, high = (float(q) for q in posterior.quantiles(_QUANTILES))
    scattering = max(1.0 - case.load.think_time_s / math.exp(log_cycle), 0.0)
    own = NORMAL_95 * posterior.sd * scattering / math.sqrt(int(alone.sum()))
    log_star = log_cycle + log_max
    below, above = math.hypot(log_max - low, own), math.hypot(high - log_max, own)
    note = f"N* at X_max {figure(math.exp(log_max))}/s"
    if loads[0] > 1.0:
        note += f", Z + R(1) read at n = {figure(loads[0])}"
    lowest = math.log(case.primary.low)
    if log_star + above < lowest or (loads[0] <= case.primary.low and log_star - below < lowest):
        return case.answer(
            "capacity",
            "below_range",
            f"saturated from {figure(loads[0])}{case.unit} on; {note}",
            case.rate,
        )
    return case.found("capacity", log_star, log_star - below, log_star + above, note, case.rate)
