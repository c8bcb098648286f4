"""Load whose rate varies in cycles: when its requests are due, and how many cycles a window holds.

Warm-up, windows and batches are whole cycles of the shape: then each batch saw the same load, and
what is left of a difference between them is the function's and not the hour's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from workbench.domain.load_shapes import LoadShape
from workbench.domain.observations import Observation
from workbench.domain.parameters import LoadModel, OperatingPoint
from workbench.measuring.evidence import Cut
from workbench.measuring.records import Drive, Floats

_ROUNDING = 1e-9


def cycle_of(load: LoadModel, point: OperatingPoint) -> float:
    """Length of a cycle of the load at a point; 0 where its rate is constant."""
    shape = load.shaped(point.configuration)
    return shape.cycle_s if shape is not None else 0.0


def planned_times(shape: LoadShape, wl: float, seconds: float) -> Floats:
    """When requests are due: the k-th where the integral of the rate reaches k, the first at once.

    What falls on the end of a stretch without load is due when load comes back. The generator
    `steady` counts by the same sums in the same order, so that both agree to rounding.

    Returns
    -------
    array of shape (n,), rising, seconds since the load began, all before `seconds`.
    """
    lengths = np.array([s for s, _ in shape.segments])
    factors = np.array([f for _, f in shape.segments])
    ends, passed = np.cumsum(lengths), np.cumsum(lengths * factors)
    cycle_s, in_cycle = float(ends[-1]), float(passed[-1])
    count = math.ceil(wl * in_cycle * (seconds / cycle_s + 1))
    asked = np.arange(count) / wl
    cycle = np.floor((asked + _ROUNDING) / in_cycle)
    rest = np.maximum(asked - cycle * in_cycle, 0.0)
    place = np.minimum(np.searchsorted(passed, rest + _ROUNDING, side="right"), passed.size - 1)
    since = rest - np.concatenate(([0.0], passed))[place]
    begin = np.concatenate(([0.0], ends))[place]
    due: Floats = cycle * cycle_s + begin + since / np.where(factors > 0, factors, 1.0)[place]
    due = np.maximum.accumulate(due)
    return due[due < seconds * (1 - 1e-12)]


def batch_edges(start_s: float, stop_s: float, cycle_s: float, least_s: float) -> Floats:
    """Edges of batches of whole cycles from `start_s` on, of `least_s` and more, at most ten or so.

    Cycles that fill no batch are left out at the start. Empty where not one cycle fits.
    """
    cycles = int((stop_s - start_s) / cycle_s + 1e-6)
    if cycles < 1:
        return np.zeros(0)
    size = max(math.ceil(least_s / cycle_s - 1e-6), cycles // 10, 1)
    size = min(size, cycles)
    first = cycles % size
    return np.asarray(start_s + cycle_s * np.arange(first, cycles + 1, size), dtype=np.float64)


def seconds_of(windows: Sequence[Cut]) -> tuple[Observation, ...]:
    """What each second of each window saw, in the order of the windows: due, answered, its p95."""
    return tuple(
        seen
        for number, window in enumerate(windows)
        for seen in _seconds(number, window.drive, window.start_s, window.end_s)
    )


def _seconds(number: int, drive: Drive, start_s: float, end_s: float) -> Iterator[Observation]:
    records = drive.records
    edges = start_s + np.arange(int(end_s - start_s + 1e-6) + 1)
    if edges.size < 2:
        return
    origin = records.planned_s if drive.kpi_definition == "planned" else records.start_s
    due = np.diff(np.searchsorted(np.sort(records.planned_s), edges))
    answered = np.diff(np.searchsorted(np.sort(records.end_s[records.succeeded]), edges))
    place = np.searchsorted(edges, records.planned_s, side="right") - 1
    took_ms = 1e3 * (np.where(records.finished, records.end_s, drive.stop_s) - origin)
    for second in range(edges.size - 1):
        detail = f"second {round(edges[second] - drive.begin_s)}"
        yield Observation(number, "source", "due_in_second", float(due[second]), detail)
        yield Observation(number, "source", "answered_in_second", float(answered[second]), detail)
        own = took_ms[(place == second) & np.isfinite(took_ms)]
        if own.size:
            p95 = float(np.quantile(own, 0.95))
            yield Observation(number, "source", "p95_in_second", p95, detail)
