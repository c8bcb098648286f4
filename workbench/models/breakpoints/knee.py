"""Rule `knee`: the change point of a two-piece line of log KPI on log `wl` (METHOD.md 7.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.domain.profiles import Breakpoint
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.breakpoints.case import RuleInputs
from workbench.models.breakpoints.overload import Shape
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD, figure, log_kpi, log_sd
from workbench.models.selection import stated

DENSE = 49
"""Loads of the dense curve that the rule is defined on, log-spaced over the range: where the KPI
jumps, the line's foot depends on how far apart they are."""
NO_BEND = 0.15
"""A drawn curve is one line where that departs from it by less, as log-sd: what a window's luck and
its draw make of a line, 0.12 each, less what the isotonic regression smooths (METHOD.md 6)."""
_FEWEST = 5
"""Samples for the four parameters of a two-piece line."""
_CANDIDATES = 100
_DRAWS = 60
"""Curves that the samples may have come from: a standard deviation is known to a tenth then."""
_MOSTLY = 0.5
"""Share of the draws that must have a knee."""


def knee(case: RuleInputs) -> Breakpoint:
    """Where the KPI's trend breaks upwards.

    The rule is defined on the dense curve, so that curve is drawn: through the samples at the
    overload that they met (`Case.overloads`), rising with it (isotonic regression, Barlow et al.
    1972), and read at the dense loads for a capacity. Samples' KPIs, the capacity and the shape
    of overload are drawn as far as they are uncertain; the knees of all draws make the interval.
    Overload enters a curve once, as the lowest load at the KPI's ceiling. Where capacity was not
    read, the curve lies over the load itself. Unresolved where clients go in step
    (`Case.in_step`).
    """
    if note := case.in_step(case.kpi):
        return case.answer("knee", "unresolved", note)
    ceiling = case.log_ceiling()
    level = np.array([_level(case, s) for s in case.valid])
    if level.size and level.min() >= ceiling:
        return case.answer(
            "knee", "below_range", f"at its ceiling from {figure(case.bottom)}{case.unit} on"
        )
    x = np.log([s.point.wl for s in case.valid])
    if level.size < _FEWEST or np.unique(x).size < _FEWEST - 1:
        return case.answer("knee", "unresolved", f"fewer than {_FEWEST} valid samples")
    rng = np.random.default_rng(0)
    noise = np.array([_noise(case, s) for s in case.valid]) * rng.standard_normal((_DRAWS, x.size))
    dense = np.geomspace(case.primary.low, case.primary.high, DENSE)
    grid = np.log(np.unique(np.round(dense)) if case.primary.integer else dense)
    grid = grid[grid <= max(x.max(), grid[0]) + 1e-9]
    places: dict[Shape | None, Floats] = {}
    knees = []
    for (shape, at), wobble in zip(_capacities(case), noise, strict=True):
        if shape not in places:
            places[shape] = _places(case, x, shape)
        curve = _curve(grid - at, places[shape], level + wobble, rng)
        knees.append(_change(grid, np.minimum(curve, ceiling), ceiling))
    found = np.array([one for one in knees if one is not None])
    share = found.size / _DRAWS
    if share < _MOSTLY:
        return case.none_in_range(
            "knee", f"change of slope (in {100 * (1 - share):.0f} % of draws)"
        )
    middle = float(np.median(found))
    away = found - middle
    below, above = (
        NORMAL_95 * math.sqrt(2.0 * float(np.mean(side * side)))
        for side in (np.minimum(away, 0.0), np.maximum(away, 0.0))
    )
    note = f"in {100 * share:.0f} % of the curves that the samples may have come from"
    return case.found("knee", middle, middle - below, middle + above, note)


def _capacities(case: RuleInputs) -> Sequence[tuple[Shape | None, float]]:
    """Shapes of overload and log capacities, as far as they are uncertain."""
    if case.log_capacity is None:
        return [(None, 0.0)] * _DRAWS
    return case.log_capacity.draws(_DRAWS)


def _places(case: RuleInputs, x: Floats, shape: Shape | None) -> Floats:
    """Log load of every valid sample, over capacity where that was read; where nobody can say how
    far over a sample was, by the median capacity."""
    if case.log_capacity is None or shape is None:
        return x
    middle = float(case.log_capacity.quantiles((0.5,))[0])
    return np.array(
        [
            load - middle if place is None else place
            for load, place in zip(x, case.overloads(shape), strict=True)
        ]
    )


def _level(case: RuleInputs, sample: Sample) -> float:
    """Log KPI of a sample, at least the ceiling where overload left only a bound."""
    estimate = stated(sample, case.kpi)
    if estimate is not None:
        return log_kpi(case.kpi, estimate.value)
    return max(case.log_ceiling(), log_kpi(case.kpi, sample.kpi(case.kpi) or 0.0))


def _noise(case: RuleInputs, sample: Sample) -> float:
    """Log standard deviation of a sample's KPI; none where it is a bound."""
    estimate = stated(sample, case.kpi)
    return max(log_sd(case.kpi, estimate), UNKNOWN_LOG_SD) if estimate else 0.0


def _curve(grid: Floats, place: Floats, level: Floats, rng: np.random.Generator) -> Floats:
    """Log KPI at these places: the samples' isotonic regression; between two of them it goes
    through any point, as all that is known is that it rises."""
    order = np.argsort(place, kind="stable")
    blocks: list[tuple[float, int]] = []
    for value in level[order]:
        mean, count = float(value), 1
        while blocks and blocks[-1][0] > mean:
            other, more = blocks.pop()
            mean = (mean * count + other * more) / (count + more)
            count += more
        blocks.append((mean, count))
    means, counts = zip(*blocks, strict=True)
    x, y = place[order], np.repeat(means, counts)
    between = rng.random((2, x.size - 1))
    line = np.empty((2, 2 * x.size - 1))
    for row, ends, share in zip(line, (x, y), between, strict=True):
        row[::2], row[1::2] = ends, ends[:-1] + share * np.diff(ends)
    found: Floats = np.interp(grid, *line)
    return found


def _change(x: Floats, y: Floats, ceiling: float) -> float | None:
    """The change point of the two-piece line; None where one line does, or the second piece is
    not the steeper one."""
    over = np.flatnonzero(y >= ceiling - 1e-9)
    end = int(over[0]) + 1 if over.size else x.size
    if end < _FEWEST - 1:
        return None
    x, y = x[:end], y[:end]
    line, explained, place = _hinges(x, y)
    if math.sqrt(line / x.size) < NO_BEND or explained is None:
        return None
    return place


def _hinges(x: Floats, y: Floats) -> tuple[float, float | None, float]:
    """Squared residuals of one line, by how much the best second piece that is steeper lowers
    them (None: no steeper one), and where that begins."""
    places = np.linspace(x[0], x[-1], _CANDIDATES + 2)[1:-1]
    hinge = np.maximum(x - places[:, None], 0.0)
    basis = np.linalg.qr(np.stack([np.ones_like(x), x], axis=1))[0]
    rest = y - basis @ (basis.T @ y)
    # What the hinge adds beyond the line: regression on its residual (Frisch & Waugh 1933).
    beyond = hinge - hinge @ basis @ basis.T
    length = np.sum(beyond * beyond, axis=1)
    usable = length > 1e-9
    bend = np.where(usable, beyond @ rest, 0.0) / np.where(usable, length, 1.0)
    explained = np.where(bend > 0.0, bend * bend * length, 0.0)
    best = int(np.argmax(explained))
    found = float(explained[best])
    return float(rest @ rest), found if found > 0.0 else None, float(places[best])
