"""Rule `cpu`: where usage stops following the load (METHOD.md 7.3)."""

from __future__ import annotations

import math

import numpy as np

from workbench.domain.profiles import Breakpoint
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.breakpoints.case import COMPONENTS, LOAD_LOG_SD, Case
from workbench.models.scales import NORMAL_95

_PLATEAU_SHARE = 0.95
_GAIN_SHARE = 0.10
_STRIDE = 1.25
"""Loads compared lie at least this factor apart: between closer ones noise hides the gain."""
_LOOK_AHEAD = 3
"""Samples that the gain is taken to: the noise of one alone is a slope of 0.3 over a stride."""
_NEAR_PLATEAU = 0.9
_NOT_CPU_LIMITED = 0.9
_RATE = "throughput_rps"


def cpu(case: Case) -> Breakpoint:
    """The first load with usage at its plateau whose throughput gains under a tenth of the load's.

    The function with the highest share of its allocation answers for a chain. Its plateau is the
    median of the shares within a tenth of the highest; gain is taken to the mean of the three
    nearest loads at least 25 % up, both in logs. The breakpoint is the middle, in logs, between
    the last load at which the rule does not hold and the first at which it does.
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
    gain = _gains(x, np.log([s.kpis[_RATE].value for s in samples]))
    holds = (share >= _PLATEAU_SHARE * plateau) & (gain < _GAIN_SHARE)
    if plateau <= 0.0 or not holds.any():
        nothing = case.none_in_range("cpu", "plateau of usage", "usage")
        return case.answer("cpu", nothing.state, f"{nothing.note}; {note}", "usage")
    first = int(np.argmax(holds))
    if first == 0:
        return case.answer("cpu", "below_range", f"holds at the lowest load; {note}", "usage")
    # Equal loads are one place: the step lies below the first of them.
    before = float(x[x < x[first]].max(initial=x[0]))
    after = float(x[first])
    noise = NORMAL_95 * LOAD_LOG_SD
    # Noise makes the rule flicker: the interval goes on to where it holds for good.
    last = int(np.max(np.flatnonzero(~holds), initial=first))
    settled = float(x[min(last + 1, x.size - 1)])
    return case.found(
        "cpu",
        0.5 * (before + after),
        before - noise,
        max(after, settled) + noise,
        note,
        "usage",
    )


def _functions(sample: Sample) -> list[str]:
    return sorted(name for name in sample.usage if name not in COMPONENTS)


def _share(sample: Sample, name: str) -> float:
    usage = sample.usage.get(name)
    return usage.cpu_share if usage else 0.0


def _gains(x: Floats, log_rate: Floats) -> Floats:
    """Slope of log throughput on log load from each sample to the mean of the next ones up.

    From the last stride of the range there is nothing to look up to; the stride down is taken.
    """
    stride = math.log(_STRIDE)
    gains = np.ones_like(x)
    for i in range(x.size):
        others = np.flatnonzero(x >= x[i] + stride)[:_LOOK_AHEAD]
        if not others.size:
            others = np.flatnonzero(x <= x[i] - stride)[-1:]
        if others.size:
            gains[i] = (log_rate[others].mean() - log_rate[i]) / (x[others].mean() - x[i])
    return gains
