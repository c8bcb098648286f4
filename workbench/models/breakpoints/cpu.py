"""Rule `cpu`: where usage stops following the load (METHOD.md 7.3)."""

from __future__ import annotations

import math

import numpy as np

from workbench.domain.profiles import Breakpoint
from workbench.models.base import Floats
from workbench.models.breakpoints.case import RuleInputs
from workbench.models.breakpoints.overload import Shape
from workbench.models.breakpoints.scatter import FAR, evenly
from workbench.models.scales import NORMAL_95
from workbench.models.selection import rate_kpi

_PLATEAU_SHARE = 0.95
_GAIN_SHARE = 0.10
_NEAREST, _FARTHEST = math.log(1.1), math.log(2.0)
"""How far up the gain is taken, in log load: nearer, noise hides it; farther, it is another's."""
_NOT_CPU_LIMITED = 0.9


def cpu(case: RuleInputs) -> Breakpoint:
    """The first load with usage at its plateau whose throughput gains under a tenth of the load's.

    The function with the highest share of its allocation answers for a chain. In an open loop
    throughput gains as the load does up to capacity and nothing beyond, so the breakpoint is
    capacity, or the overload above it from which on usage is at 95 % of its plateau; its interval
    is that of capacity, widened by the gap in which usage gets there. In a closed loop, or where
    capacity was never read, it is the step between two loads (`_stepwise`).
    """
    samples = [s for s in case.valid if rate_kpi(s) and case.functions(s)]
    name = case.busiest()
    few = len({s.point.wl for s in samples}) < 3
    if name is None or (few and case.log_capacity is None):
        return case.answer("cpu", "unresolved", "fewer than three valid loads with usage", "usage")
    plateau = case.plateau(name)
    note = f"{name} at {100 * plateau:.0f} % of its allocation"
    if plateau < _NOT_CPU_LIMITED:
        note += ", not_cpu_limited"
    if case.log_capacity is None:
        return _stepwise(case, name, plateau, note)
    posterior = case.log_capacity
    gaps = [evenly(*_late(case, name, plateau, shape)) for shape in posterior.shapes]
    low, middle, high = (float(q) for q in posterior.moved(gaps).quantiles((0.025, 0.5, 0.975)))
    if math.exp(middle) < case.primary.low or case.bottom >= math.exp(high):
        return case.answer("cpu", "below_range", f"holds at the lowest load; {note}", "usage")
    if math.exp(middle) > case.primary.high:
        return case.answer("cpu", "none_in_range", f"above the range; {note}", "usage")
    return case.found("cpu", middle, low, high, note, "usage")


def _late(case: RuleInputs, name: str, plateau: float, shape: Shape) -> tuple[float, float]:
    """Between which places the rule comes to hold, were overload of that shape."""
    gain_ends = shape.gain_ends() - shape.goal(case.loss_goal)
    beyond = sorted(
        (place, s.usage[name].cpu_share >= _PLATEAU_SHARE * plateau)
        for s, place, broken in zip(case.valid, case.overloads(shape), case.broken, strict=True)
        if broken and place is not None and place <= FAR and name in s.usage
    )
    wrong = [
        sum(full for _, full in beyond[:k]) + sum(not full for _, full in beyond[k:])
        for k in range(len(beyond) + 1)
    ]
    late = wrong.index(min(wrong))
    if not late:
        return gain_ends, gain_ends
    last, first = beyond[late - 1][0], beyond[min(late, len(beyond) - 1)][0]
    return max(last, gain_ends), max(first, gain_ends)


def _stepwise(case: RuleInputs, name: str, plateau: float, note: str) -> Breakpoint:
    """The middle, in logs, between the last load at which the rule does not hold and the first at
    which it does. Gain is a slope in logs (`_gains`) and may exceed the tenth by its own standard
    deviation: a few windows show no more."""
    samples = [s for s in case.valid if rate_kpi(s) and case.functions(s)]
    share = np.array([s.usage[name].cpu_share if name in s.usage else 0.0 for s in samples])
    x = np.log([s.point.wl for s in samples])
    gain, noise = _gains(x, np.log([s.kpis[case.rate].value for s in samples]), case.sample_sd)
    holds = (share >= _PLATEAU_SHARE * plateau) & (gain < _GAIN_SHARE + noise)
    if plateau <= 0.0 or not holds.any():
        nothing = case.none_in_range("cpu", "plateau of usage", "usage")
        return case.answer("cpu", nothing.state, f"{nothing.note}; {note}", "usage")
    first = int(np.argmax(holds))
    if first == 0:
        return case.answer("cpu", "below_range", f"holds at the lowest load; {note}", "usage")
    # Equal loads are one place: the step lies below the first of them.
    before = float(x[x < x[first]].max(initial=x[0]))
    after = float(x[first])
    spread = NORMAL_95 * math.hypot(case.sample_sd, case.shared_sd)
    return case.found(
        "cpu",
        0.5 * (before + after),
        before - spread,
        after + spread,
        note,
        "usage",
    )


def _gains(x: Floats, log_rate: Floats, sd: float) -> tuple[Floats, Floats]:
    """Slope of log throughput on log load from each sample up, and its standard deviation.

    It is taken to the mean of the samples between 1.1 and 2 times the load, else to the next one
    above; at the top of the range, where there is none, from the next one below.
    """
    gains, noise = np.ones_like(x), np.zeros_like(x)
    for i in range(x.size):
        ahead = x - x[i]
        others = np.flatnonzero((ahead >= _NEAREST) & (ahead <= _FARTHEST))
        if not others.size:
            others = np.flatnonzero(ahead > _FARTHEST)[:1]
        if not others.size:
            others = np.flatnonzero(ahead <= -_NEAREST)[-1:]
        if others.size:
            step = x[others].mean() - x[i]
            gains[i] = (log_rate[others].mean() - log_rate[i]) / step
            noise[i] = sd * math.sqrt(1.0 + 1.0 / others.size) / abs(step)
    return gains, noise
