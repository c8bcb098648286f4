"""How many requests were due, in flight and ended, over time: sums over one drive's records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.measuring.records import Drive, Floats

PERIOD_S = 0.1
"""A CFS quota period, and the bin in which load is watched (METHOD.md 5 and 6)."""


@dataclass(frozen=True)
class Flow:
    """Instants of one drive, each sorted: due, sent and ended (answered or failed)."""

    drive: Drive

    @cached_property
    def planned(self) -> Floats:
        return np.sort(self.drive.records.planned_s)

    @cached_property
    def started(self) -> Floats:
        return _sorted_finite(self.drive.records.start_s)

    @cached_property
    def ended(self) -> Floats:
        return _sorted_finite(self.drive.records.end_s)

    def due_in(self, begin_s: float, end_s: float) -> int:
        """Requests due between two instants."""
        return int(np.diff(np.searchsorted(self.planned, (begin_s, end_s)))[0])

    def ended_in(self, edges: Floats) -> Floats:
        """Requests ended per bin; `edges` has one more entry than there are bins."""
        return np.diff(np.searchsorted(self.ended, edges)).astype(float)

    def in_flight(self, edges: Floats) -> Floats:
        """Mean number of requests in flight per bin, at most the generator's connections.

        A generator that writes down the planned instant as the start would otherwise count what
        still waits at the source.
        """
        area = _area(self.started, edges) - _area(self.ended, edges)
        mean: Floats = np.diff(area) / np.diff(edges)
        mean[mean > self.drive.connections] = self.drive.connections
        return mean

    def in_system(self, edges: Floats) -> Floats:
        """Mean number of requests due but not ended, per bin: in flight or waiting to be sent."""
        area = _area(self.planned, edges) - _area(self.ended, edges)
        mean: Floats = np.diff(area) / np.diff(edges)
        return mean


def period_edges(start_s: float, end_s: float) -> Floats:
    """Edges of the whole periods that fit between two instants, counted from the first."""
    periods = max(0, int((end_s - start_s) / PERIOD_S + 1e-6))
    return (start_s + PERIOD_S * np.arange(periods + 1)).astype(np.float64)


def _sorted_finite(instants: Floats) -> Floats:
    return np.sort(instants[np.isfinite(instants)])


def _area(instants: Floats, at: Floats) -> Floats:
    """Integral up to `at` of the number of instants passed, in seconds."""
    since = instants - at[0]
    passed = np.searchsorted(instants, at)
    sums = np.concatenate(([0.0], np.cumsum(since)))
    area: Floats = passed * (at - at[0]) - sums[passed]
    return area
