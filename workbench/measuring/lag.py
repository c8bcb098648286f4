"""Who kept planned requests waiting: the source, or the function behind busy connections?

An open-loop generator has a bounded number of connections. When the function falls behind, all of
them are in flight and what is due waits at the source: that wait is the function's backlog, a
legitimate observation of overload. When a request is late *although* a connection was free, the
source is to blame. So each late request is charged to whoever held it for most of its lag.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.measuring.records import Drive, Floats

TOLERANCE_S = 0.01
"""Lag that is nobody's fault: timers and scheduling."""
TOLERANCE_SHARE = 0.1
"""The same, as a share of the mean response time."""


@dataclass(frozen=True)
class SendLag:
    """Requests planned in a window, and those of them that were late by more than tolerated."""

    planned: int
    unsent_by_source: int
    """Not sent before the load stopped, a connection being free for most of that time."""
    late_by_source: int
    """The same and those that were sent, but late."""
    waited_for_connection: int
    """Late because all connections were busy."""


def send_lag(drive: Drive, start_s: float, end_s: float, response_s: float) -> SendLag:
    """Lag of the requests planned in [start_s, end_s), charged to source or connections."""
    records = drive.records
    held = (records.planned_s >= start_s) & (records.planned_s < end_s)
    planned, start = records.planned_s[held], records.start_s[held]
    unsent = np.isnan(start)
    sent = np.where(unsent, drive.stop_s, start)
    late = sent - planned > max(TOLERANCE_S, TOLERANCE_SHARE * response_s)
    if not late.any():
        return SendLag(int(planned.size), 0, 0, 0)
    free = _time_free(drive, planned[late], sent[late])
    by_source = free > (sent - planned)[late] / 2
    return SendLag(
        int(planned.size),
        int(np.count_nonzero(by_source & unsent[late])),
        int(np.count_nonzero(by_source)),
        int(np.count_nonzero(~by_source)),
    )


def _time_free(drive: Drive, since: Floats, until: Floats) -> Floats:
    """Seconds between two instants in which fewer requests were in flight than connections."""
    started = drive.records.start_s[np.isfinite(drive.records.start_s)]
    ended = drive.records.end_s[np.isfinite(drive.records.end_s)]
    instants = np.concatenate(([drive.begin_s], started, ended))
    change = np.concatenate(([0], np.ones(started.size), -np.ones(ended.size)))
    order = np.argsort(instants, kind="stable")
    instants, in_flight = instants[order], np.cumsum(change[order])
    free = in_flight < drive.connections
    total = np.concatenate(([0.0], np.cumsum(np.diff(instants) * free[:-1])))

    def free_until(at: Floats) -> Floats:
        step = np.clip(np.searchsorted(instants, at, side="right") - 1, 0, None)
        so_far: Floats = total[step] + np.where(free[step], at - instants[step], 0.0)
        return so_far

    return free_until(until) - free_until(since)
