"""Windows until the interval is narrow enough: a minimum count, a factor, and an end.

Who looks after every window and stops when the interval happens to be narrow stops too often on a
lucky one: such intervals cover less than they say (Chow & Robbins, Ann. Math. Stat. 36, 1965;
Asmussen & Glynn, Stochastic Simulation, 2007, III.7). A minimum count takes away the worst of it;
what is left is paid for by a factor on the batches' part of the interval.
"""

from __future__ import annotations

import math

from workbench.domain.kpis import of
from workbench.domain.samples import Estimate
from workbench.measuring.floor import VarianceFloor

FACTOR = 1.2
"""Calibrated on the simulated lab by `benchmarks/narrowing.py`; docs/validity.md has its table."""
MIN_WINDOWS = 3
"""Windows before an interval is believed to be narrow."""


def half_width(estimate: Estimate) -> float:
    """Half of an interval, relative to the value; infinite for a value of zero."""
    if estimate.value <= 0:
        return math.inf
    return (estimate.high - estimate.low) / 2 / estimate.value


def more_helps(
    kpi: str,
    estimate: Estimate,
    interval: float,
    windows: int,
    affordable: int,
    floor: VarianceFloor,
) -> bool:
    """Whether another window is to be driven for the sake of the interval.

    Parameters
    ----------
    interval : float, the half width that is asked for, relative to the value.
    windows, affordable : int, steady windows so far, and how many more the time-out allows.
    floor : VarianceFloor
        What one visit scatters by is not averaged out in it: where that alone is wider than
        `interval`, only further visits would help.
    """
    if not of(kpi).narrows or affordable < 1 or estimate.value <= 0:
        return False
    if windows < MIN_WINDOWS:
        return True
    if half_width(estimate) <= interval:
        return False
    return math.sinh(floor.half(kpi, windows + affordable)) <= interval
