"""Spike and recover: how long after a spike of load response times are back where they were.

Response times are watched in bins of a tenth of a second or more, by when requests were due. The
slowest of the last `QUIET` bins before each spike, over all cycles, and `SLACK`, is the limit:
earlier ones may hold the tail of the spike before. A function is back at the first of `HOLD` bins
in a row that are no slower, which may lie in the cycle after. Where it is not before the next
spike, or is overloaded on the whole, the time is only known from below.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.domain.load_shapes import LoadShape
from workbench.domain.samples import Estimate
from workbench.measuring.flow import PERIOD_S
from workbench.measuring.intervals import t_quantile
from workbench.measuring.pool import WindowPool
from workbench.measuring.records import Floats
from workbench.measuring.stretches import Stretch

REQUESTS_IN_BIN = 10
SLACK = 1.1
"""How much slower than the slowest quiet bin still counts as back."""
QUIET = 5
"""Bins before a spike that stand for quiet load."""
HOLD = 3
"""Bins in a row that must be within the limit: one may be luck."""


def recovery(pool: WindowPool) -> tuple[Estimate, bool] | None:
    """Seconds from the end of a spike, over all cycles of a visit, and whether that is a bound.

    None where the load has no spikes, or no request was answered before one. The interval is
    Student's over cycles, wider by the bin that an instant is known to; of a bound, twice itself.
    """
    shape = pool.load.shaped(pool.point.configuration)
    if shape is None or shape.spike is None:
        return None
    begin_s, end_s = shape.spike
    if pool.overloaded:
        never = shape.cycle_s - end_s + begin_s
        return Estimate(never, never, 2 * never), True
    bin_s = _bin_s(shape, pool.point.wl)
    windows = [_levels(s, shape.cycle_s, bin_s) for s in pool.stretches]
    spike = int(begin_s / bin_s + 1e-6)  # the bin that it begins in
    before = np.concatenate([w[:, max(0, spike - QUIET) : spike].ravel() for w in windows])
    if not np.isfinite(before).any():
        return None
    limit = SLACK * float(np.nanmax(before))
    first = int(np.ceil(end_s / bin_s - 1e-6))
    ends = [end for levels in windows for end in _ends(levels, first, spike, limit)]
    took = [place * bin_s - end_s for place, _ in ends]
    all_back = all(is_back for _, is_back in ends)
    value = float(np.mean(took))
    if not all_back:
        return Estimate(value, value, 2 * value), True
    half = shape.cycle_s
    if len(took) > 1:
        error = float(np.std(took, ddof=1) / np.sqrt(len(took)))
        half = t_quantile(len(took) - 1) * error + bin_s
    return Estimate(value, max(0.0, value - half), value + half), False


def _bin_s(shape: LoadShape, wl: float) -> float:
    """A whole share of the cycle in which quiet load has ten requests, or a tenth of a second."""
    quiet_rps = wl * shape.segments[0][1]
    return shape.cycle_s / max(1, int(shape.cycle_s / max(PERIOD_S, REQUESTS_IN_BIN / quiet_rps)))


def _ends(levels: Floats, first: int, spike: int, limit: float) -> Iterator[tuple[int, bool]]:
    """Of each cycle of a window, as `_back` has it; without the last one where that is not back by
    the end of the window, which is less than others are watched for."""
    for number in range(len(levels)):
        place, is_back = _back(levels[number:], first, spike, limit)
        if is_back or number == 0 or number + 1 < len(levels):
            yield place, is_back


def _back(cycles: Floats, first: int, spike: int, limit: float) -> tuple[int, bool]:
    """The bin at which a function is back after the spike of the first of these cycles, counted
    from that cycle's begin, and whether it is; else up to where it was watched."""
    watched = np.concatenate([cycles[0, first:], *(following[:spike] for following in cycles[1:2])])
    within = watched <= limit
    for i in range(within.size - HOLD + 1):
        if within[i : i + HOLD].all():
            return first + i, True
    return first + watched.size, False


def _levels(stretch: Stretch, cycle_s: float, bin_s: float) -> Floats:
    """Mean response time of each bin of each cycle of a window, of shape (cycles, bins); NaN where
    nothing was due."""
    records = stretch.drive.records
    until = np.where(records.finished, records.end_s, stretch.drive.stop_s)
    took = until - records.planned_s
    bins, cycles = round(cycle_s / bin_s), round(stretch.duration_s / cycle_s)
    place = np.floor((records.planned_s - stretch.start_s) / bin_s + 1e-9).astype(np.int64)
    held = (place >= 0) & (place < bins * cycles)
    sums = np.bincount(place[held], weights=took[held], minlength=bins * cycles)
    counts = np.bincount(place[held], minlength=bins * cycles)
    with np.errstate(invalid="ignore"):
        levels: Floats = sums / np.where(counts > 0, counts, np.nan)
    return levels.reshape(cycles, bins)
