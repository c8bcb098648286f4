"""Rule `covariance`: paper B's own, kept as a baseline (section 5.1, Fig. 4; METHOD.md 7.5)."""

from __future__ import annotations

import math

import numpy as np

from workbench.domain.profiles import Breakpoint
from workbench.models.base import Floats
from workbench.models.breakpoints.case import RuleInputs
from workbench.models.breakpoints.scatter import COMPONENTS

WINDOW = 3
"""Neighbouring samples over which covariances are taken."""


def covariance(case: RuleInputs) -> Breakpoint:
    """The first window in which the load covaries more with the KPI than with usage.

    KPI (at most its ceiling) and usage (the highest share of any function) are each divided by
    their range over all samples, which the paper does not do: without it the unit decides. The
    load is linear, as in the paper. The breakpoint is the window's middle sample, the window its
    interval.
    """
    samples = [s for s in case.valid if any(name not in COMPONENTS for name in s.usage)]
    if len({s.point.wl for s in samples}) < WINDOW + 1:
        return case.answer(
            "covariance", "unresolved", f"fewer than {WINDOW + 1} valid loads with usage"
        )
    load = np.array([s.point.wl for s in samples])
    kpi = _by_range(np.exp([case.capped_log_kpi(s) for s in samples]))
    usage = _by_range(
        np.array(
            [
                max(u.cpu_share for name, u in s.usage.items() if name not in COMPONENTS)
                for s in samples
            ]
        )
    )
    note = f"over windows of {WINDOW} samples, KPI and usage each divided by its range"
    for i in range(load.size - WINDOW + 1):
        window = slice(i, i + WINDOW)
        if _covariance(load[window], kpi[window]) > _covariance(load[window], usage[window]):
            if i == 0:
                return case.answer("covariance", "below_range", f"from the first window on; {note}")
            low, middle, high = (
                math.log(w) for w in (load[i], load[i + WINDOW // 2], load[i + WINDOW - 1])
            )
            return case.found("covariance", middle, low, high, note)
    nothing = case.none_in_range("covariance", "window with more covariance of the KPI")
    return case.answer("covariance", nothing.state, f"{nothing.note}; {note}")


def _by_range(values: Floats) -> Floats:
    scaled: Floats = values / (float(np.ptp(values)) or 1.0)
    return scaled


def _covariance(a: Floats, b: Floats) -> float:
    return float(np.mean((a - a.mean()) * (b - b.mean())))
