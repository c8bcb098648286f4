"""Rule `knee`: the change point of a two-piece line of log KPI on log `wl` (METHOD.md 7.2)."""

from __future__ import annotations

import math

import numpy as np

from workbench.domain.profiles import Breakpoint
from workbench.models.base import Floats
from workbench.models.breakpoints.case import LOAD_LOG_SD, Case
from workbench.models.scales import NORMAL_95, figure

_FEWEST = 5
"""Samples for the four parameters of a two-piece line."""
_CANDIDATES = 200
_NOISE_FLOOR = 0.05
"""Smallest residual log standard deviation that is believed (METHOD.md 6)."""
_SIGNIFICANCE = 0.10
"""Of the F test; with the four or five degrees of freedom of a short profile, 0.05 misses breaks
that anyone sees."""


def knee(case: Case) -> Breakpoint:
    """Where the KPI's trend breaks upwards, with its profile-likelihood interval.

    Overload enters once: the lowest load at the KPI's ceiling, which ends the steep piece. Loads
    above it lie on the ceiling and would bend the line back.
    """
    below = [s for s in case.valid if case.capped_log_kpi(s) < case.log_ceiling()]
    over = [s for s in case.valid if case.capped_log_kpi(s) >= case.log_ceiling()]
    if not below and over:
        return case.answer(
            "knee", "below_range", f"at its ceiling from {figure(case.bottom)}{case.unit} on"
        )
    highest = max((s.point.wl for s in below), default=0.0)
    beyond = [s for s in over if s.point.wl > highest][:1]
    used = [*below, *beyond]
    x = np.log([s.point.wl for s in used])
    y = np.array([case.capped_log_kpi(s) for s in used])
    if len(used) < _FEWEST or np.unique(x).size < _FEWEST - 1:
        return case.answer("knee", "unresolved", f"fewer than {_FEWEST} valid samples")

    from scipy.stats import f as fisher

    one_line = _residual(x, y, np.empty((0, 1)))[0]
    candidates = np.linspace(x.min(), x.max(), _CANDIDATES + 2)[1:-1]
    two_pieces, bend = _fits(x, y, candidates)
    if not np.isfinite(two_pieces).any():
        return case.none_in_range("knee", "steeper second piece")
    best = int(np.argmin(two_pieces))
    freedom = max(x.size - 4, 1)
    floor = _NOISE_FLOOR**2 * freedom
    # Two parameters more: the place of the change and the second slope.
    ratio = (one_line - two_pieces[best]) / 2.0 / (max(two_pieces[best], floor) / freedom)
    p_value = float(fisher.sf(max(ratio, 0.0), 2, freedom))
    if p_value > _SIGNIFICANCE:
        return case.none_in_range("knee", f"change of slope (F test: p = {p_value:.2g})")
    variance = max(two_pieces[best], floor) / freedom
    rise = (two_pieces - two_pieces[best]) / variance
    inside = candidates[rise <= float(fisher.ppf(0.95, 1, freedom))]
    noise = NORMAL_95 * LOAD_LOG_SD
    at = float(candidates[best])
    return case.found(
        "knee",
        at,
        at - math.hypot(at - float(inside.min()), noise),
        at + math.hypot(float(inside.max()) - at, noise),
        f"slope grows by {bend[best]:.2g} (F test: p = {p_value:.2g})",
    )


def _fits(x: Floats, y: Floats, candidates: Floats) -> tuple[Floats, Floats]:
    """Residual sums of squares and bends for every change point; infinite where it bends down."""
    squares = np.full(candidates.size, np.inf)
    bends = np.zeros(candidates.size)
    for i, place in enumerate(candidates):
        residual, bend = _residual(x, y, np.maximum(x - place, 0.0)[None, :])
        if bend > 0.0:
            squares[i], bends[i] = residual, bend
    return squares, bends


def _residual(x: Floats, y: Floats, hinge: Floats) -> tuple[float, float]:
    """Residual sum of squares of y on [1, x, hinge], and the last coefficient."""
    design = np.vstack([np.ones_like(x), x, *hinge]).T
    coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
    return float(np.sum((y - design @ coefficients) ** 2)), float(coefficients[-1])
