"""Rule `cpu`: where usage stops following the load (METHOD.md 7.3)."""

from __future__ import annotations

import math

import numpy as np

from workbench.domain.profiles import Breakpoint
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.breakpoints.case import COMPONENTS, LOAD_LOG_SD, SAMPLE_LOG_SD, Case
from workbench.models.scales import NORMAL_95

_PLATEAU_SHARE = 0.95
_GAIN_SHARE = 0.10
_NEAREST, _FARTHEST = math.log(1.1), math.log(2.0)
"""How far up the gain is taken, in log load: nearer, noise hides it; farther, it is another's."""
_NEAR_PLATEAU = 0.9
_NOT_CPU_LIMITED = 0.9
_RATE = "throughput_rps"


def cpu(case: Case) -> Breakpoint:
    """The first load with usage at its plateau whose throughput gains under a tenth of the load's.

    The function with the highest share of its allocation answers for a chain. Its plateau is the
    median of the shares within a tenth of the highest. Gain is a slope in logs (`_gains`) and may
    exceed the tenth by its own standard deviation: a few windows show no more. The breakpoint is
    the middle, in logs, between the last load at which the rule does not hold and the first at
    which it does.
    """
    samples = [s for s in case.valid if s.kpi(_RATE) and _functions(s)]
    if len({s.point.wl for s in samples}) < 3:
        return case.answer("cpu", "unresolved", "fewer than three valid loads with usage", "usage")
    name = max(_functions(samples[-1]), key=lambda v: max(_share(s, v) for s in samples))
    share = np.array([_share(s, name) for s in samples])
    plateau = float(np.median(share[share >= _NEAR_PLATEAU * share.max()]))
    note = f"{name} at {100 * plateau:.0f} % of its allocation"
    if plateau < _NOT_CPU_LIMITED:
        note += ", not_cpu_limited"
    x = np.log([s.point.wl for s in samples])
    gain, noise = _gains(x, np.log([s.kpis[_RATE].value for s in samples]))
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
    spread = NORMAL_95 * LOAD_LOG_SD
    # Noise makes the rule flicker: the interval goes on to where it holds for good.
    last = int(np.max(np.flatnonzero(~holds), initial=first))
    settled = float(x[min(last + 1, x.size - 1)])
    return case.found(
        "cpu",
        0.5 * (before + after),
        before - spread,
        max(after, settled) + spread,
        note,
        "usage",
    )


def _functions(sample: Sample) -> list[str]:
    return sorted(name for name in sample.usage if name not in COMPONENTS)


def _share(sample: Sample, name: str) -> float:
    usage = sample.usage.get(name)
    return usage.cpu_share if usage else 0.0


def _gains(x: Floats, log_rate: Floats) -> tuple[Floats, Floats]:
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
            noise[i] = SAMPLE_LOG_SD * math.sqrt(1.0 + 1.0 / others.size) / abs(step)
    return gains, noise
