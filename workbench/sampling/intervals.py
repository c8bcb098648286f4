"""Algorithm 2 of paper B: which interval of `wl` to bisect next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from workbench.domain.errors import DataError
from workbench.domain.parameters import PrimaryWorkload

SMALLEST_GAP = 0.005
"""Loads closer than this share of the lower one count as the same."""
SMALLEST_RISE = 0.02
"""Share of the KPI's range that a flat interval counts for, so that wide ones get their turn."""
_DIGITS = 4
"""Significant digits of a load between the ends: what a person reads and a generator keeps."""


@dataclass(frozen=True)
class Node:
    """A load that was visited; `y` is its log KPI, None where no valid sample could be taken."""

    wl: float
    y: float | None


@dataclass(frozen=True)
class Interval:
    """A gap between two visited loads; `width` and `rise` are shares of the whole ranges."""

    low: float
    high: float
    middle: float
    width: float
    rise: float
    score: float

    @property
    def ratio(self) -> float:
        """How many times the lower load the upper one is."""
        return self.high / self.low


def ends(primary: PrimaryWorkload, recorded: Sequence[float] = ()) -> tuple[float, ...]:
    """The two boundary loads, of the range or of what was recorded; one where they coincide.

    Raises
    ------
    DataError
        If the range starts at or below zero, or holds no whole number where it must.
    """
    low, high = (recorded[0], recorded[-1]) if recorded else (primary.low, primary.high)
    if primary.integer and not recorded:
        low, high = float(math.ceil(low)), float(math.floor(high))
    if not 0.0 < low <= high:
        raise DataError(
            f"no load lies between {primary.low:g} and {primary.high:g}"
            + (" as a whole number above zero" if primary.integer else " above zero"),
            where=primary.name,
            remedy="Widen its range",
        )
    return (low, high) if low < high else (low,)


def intervals(
    nodes: Sequence[Node],
    primary: PrimaryWorkload,
    ceiling: float,
    recorded: Sequence[float] = (),
) -> list[Interval]:
    """Gaps that may be bisected, the largest dx·dy first.

    Parameters
    ----------
    nodes : sequence of Node
        Distinct loads by rising `wl`.
    ceiling : float
        Log of KPI_max; every y is at most that.
    recorded : sequence of float
        The loads that there are, where only some can be measured.

    Returns
    -------
    list of Interval
        Those whose lower KPI is under KPI_max and that hold a load not visited yet. dx is taken
        on the scale of the primary workload, dy in logs, both over their ranges; equal ones are
        taken from below.

    Notes
    -----
    A load without a valid sample is given a KPI for the choice alone: the ceiling above all valid
    loads, so that the sampler retreats into the gap under it; what the lowest valid load has (or
    a floor, if that is at the ceiling already) below them; the line between its neighbours else.
    """
    levels = _levels(nodes, ceiling)
    span = axis(nodes[-1].wl, primary) - axis(nodes[0].wl, primary) if nodes else 0.0
    full = max(ceiling - min(levels, default=ceiling), math.log(2.0))
    found = []
    for i, (low, high) in enumerate(pairwise(nodes)):
        middle = middle_of(low.wl, high.wl, primary, recorded)
        if middle is None or levels[i] >= ceiling:
            continue
        width = (axis(high.wl, primary) - axis(low.wl, primary)) / span
        rise = abs(levels[i + 1] - levels[i]) / full
        score = width * max(rise, SMALLEST_RISE)
        found.append(Interval(low.wl, high.wl, middle, width, rise, score))
    return sorted(found, key=lambda interval: -interval.score)


def _levels(nodes: Sequence[Node], ceiling: float) -> list[float]:
    """Log KPI of every node, with a stand-in where none could be measured."""
    known = [(i, node.y) for i, node in enumerate(nodes) if node.y is not None]
    floor = ceiling - math.log(2.0)
    if not known:
        # Overload is the usual culprit: go for the lower half first.
        return [floor if i == 0 else ceiling for i in range(len(nodes))]
    (first, lowest), (last, _) = known[0], known[-1]
    levels = []
    for i, node in enumerate(nodes):
        if node.y is not None:
            levels.append(node.y)
        elif i > last:
            levels.append(ceiling)
        elif i < first:
            levels.append(min(lowest, floor))
        else:
            left = max((k for k in known if k[0] < i), key=lambda k: k[0])
            right = min((k for k in known if k[0] > i), key=lambda k: k[0])
            share = (math.log(node.wl) - math.log(nodes[left[0]].wl)) / (
                math.log(nodes[right[0]].wl) - math.log(nodes[left[0]].wl)
            )
            levels.append(left[1] + share * (right[1] - left[1]))
    return levels


def axis(wl: float, primary: PrimaryWorkload) -> float:
    """A load on the scale of its range."""
    return math.log(wl) if primary.scale == "log" else wl


def middle_of(
    low: float, high: float, primary: PrimaryWorkload, recorded: Sequence[float] = ()
) -> float | None:
    """The load half-way between two, None where there is none strictly between them."""
    if recorded:
        between = [wl for wl in recorded if low < wl < high]
        half = 0.5 * (axis(low, primary) + axis(high, primary))
        return min(between, key=lambda wl: abs(axis(wl, primary) - half), default=None)
    centre = math.sqrt(low * high) if primary.scale == "log" else 0.5 * (low + high)
    if primary.integer:
        whole = min(max(round(centre), math.floor(low) + 1), math.ceil(high) - 1)
        return float(whole) if low < whole < high else None
    if high < low * (1.0 + SMALLEST_GAP):
        return None
    centre = rounded(centre, low, high, primary)
    return centre if low < centre < high else None


def rounded(wl: float, low: float, high: float, primary: PrimaryWorkload) -> float:
    """A load as a person reads it and a generator keeps it, not beyond `low`-`high`."""
    read = float(round(wl)) if primary.integer else float(f"{wl:.{_DIGITS}g}")
    return min(max(read, low), high)
