"""Where a configuration's curve crosses the limit of an SLA, and how well a model knows it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from workbench.models.base import Floats
from workbench.models.pooled import Pooled
from workbench.models.scales import figure, log_kpi
from workbench.sampling.base import Space

BAND = 24
"""Loads at which the band of log KPI is looked up to find where it meets the limit, twice."""


@dataclass(frozen=True)
class Wanted:
    """What is asked of a crossing: its relative half width, and how sure that is to be."""

    accuracy: float
    confidence: float


@dataclass(frozen=True)
class Crossing:
    """Whether it is known as was asked for where a curve crosses the limit, and what is known."""

    is_known: bool
    at: float
    """Log load at which it is expected, infinite beyond the range."""
    note: str


def limit_of(space: Space, ceiling: float) -> tuple[float | None, str]:
    """Log of the limit that curves cross below `ceiling` (a log); None, and why, where there is
    none to aim at."""
    sla, kpi = space.sla, space.kpi
    if sla is None:
        return None, ""
    if sla.kpi != kpi:
        return None, f"; the limit on {sla.kpi} was not aimed at: {kpi} is what is sampled"
    limit = log_kpi(kpi, sla.limit)
    if not log_kpi(kpi, 0.0) < limit < ceiling:
        return None, f"; {kpi} is not told apart at the limit of {sla.limit:g}: not aimed at"
    return limit, ""


def crossing_of(
    model: Pooled, place: int, grid: Floats, limit: float, wanted: Wanted, crosses: str
) -> Crossing:
    """What a model knows of the crossing of the configuration at `place`.

    Parameters
    ----------
    grid : loads that may be asked for, rising.
    limit : log KPI.
    crosses : what crosses what, for the note.
    """
    low, middle, high = _band_crossing(model, place, grid, limit, wanted)
    sure = f"at {100 * wanted.confidence:g} % confidence"
    if low > math.log(grid[-1]):
        return Crossing(True, middle, f"; {crosses} above the range {sure}")
    if high < math.log(grid[0]):
        return Crossing(True, middle, f"; {crosses} below the range {sure}")
    half = math.expm1(min(max(high - middle, middle - low), 20.0))
    if half <= wanted.accuracy:
        at = f"at {figure(math.exp(middle))}, known to {100 * half:.2g} %"
        return Crossing(True, middle, f"; {crosses} {at} {sure}")
    begin = figure(math.exp(low)) if math.isfinite(low) else "below the range"
    end = figure(math.exp(high)) if math.isfinite(high) else "above the range"
    return Crossing(False, middle, f"; {crosses} somewhere from {begin} to {end} {sure}")


def _band_crossing(
    model: Pooled, place: int, grid: Floats, limit: float, wanted: Wanted
) -> tuple[float, float, float]:
    """Log loads between which a configuration first crosses the limit with the confidence, and in
    the middle the one at which it is expected to; infinite beyond the surroundings of its range.

    They are where both ends of the band of log KPI rise above the limit: the truth crosses it
    outside of them only where it is outside of the band.
    """
    sigmas = NormalDist().inv_cdf(0.5 + 0.5 * wanted.confidence)
    # A crossing just beyond the range is as good to know as one in it.
    beyond = 2.0 * math.log1p(max(wanted.accuracy, 0.01))
    low, high = (math.log(grid[i]) for i in (0, -1))
    x = np.linspace(low - beyond, high + beyond, BAND)
    for _ in range(2):
        mean, sd = model.own_moments(np.full(BAND, place), x)
        z = (mean - limit) / sd
        low, middle, high = (_rises(x, z, at) for at in (-sigmas, 0.0, sigmas))
        x = np.linspace(*_around(x, low, high), BAND)
    return low, middle, high


def _rises(x: Floats, z: Floats, at: float) -> float:
    """Where z (n,) first rises above `at` along x (n,): -inf before it begins, inf if nowhere."""
    first = int(np.argmax(z > at))
    if not z[first] > at:
        return math.inf
    if first == 0:
        return -math.inf
    share = (at - z[first - 1]) / (z[first] - z[first - 1])
    return float(x[first - 1] + share * (x[first] - x[first - 1]))


def _around(x: Floats, low: float, high: float) -> tuple[float, float]:
    """The two of x (n,), rising, next to `low` and `high` on their outer sides."""
    begin, end = int(np.searchsorted(x, low)), int(np.searchsorted(x, high, side="right"))
    return float(x[max(begin - 1, 0)]), float(x[min(end, len(x) - 1)])
