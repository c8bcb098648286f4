"""One thread under a CFS quota, vectorised over the requests of each period.

Within a period the waiting times follow Lindley's recursion (Lindley 1952), which unrolls into a
cumulative sum and a running maximum; the quota cuts the period where the work served in it
reaches q·T. So a stretch of load costs a few array operations per 100 ms whatever its rate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workbench.queues.stations import PERIOD_S, ROUNDING_S, Consumption, Station

Floats = NDArray[np.float64]


def fifo_ends(arrivals_s: Floats, works_s: Floats) -> Floats:
    """End of service at a FIFO server without quota: e_i = max(a_i, e_{i-1}) + w_i.

    Parameters
    ----------
    arrivals_s : non-decreasing, shape (n,).
    works_s : service times, shape (n,).
    """
    done = works_s.cumsum()
    return np.asarray(done + np.maximum.accumulate(arrivals_s - (done - works_s)))


def throttled_ends(
    station: Station, arrivals_s: Floats, works_s: Floats
) -> tuple[Floats, Consumption]:
    """End of service at a station with one thread and a quota; exact.

    Parameters
    ----------
    station : its `threads` is 1 and its `places` do not bind.
    arrivals_s : non-decreasing, not negative, shape (n,).
    works_s : CPU seconds of each request, shape (n,).

    Returns
    -------
    ends_s : shape (n,).
    consumption : what each period used.
    """
    quota, phase = station.quota_s, station.phase_s
    if quota == np.inf:
        ends = fifo_ends(arrivals_s, works_s)
        return ends, _unlimited(phase, ends, works_s)
    count = arrivals_s.size
    ends = np.empty(count)
    total = np.concatenate(([0.0], np.cumsum(works_s)))
    used: dict[int, float] = {}
    throttled: dict[int, float] = {}
    first, done_of_first, period = 0, 0.0, 0
    while first < count:
        if done_of_first == 0.0 and arrivals_s[first] >= phase + (period + 1) * PERIOD_S:
            period = max(period + 1, int((arrivals_s[first] - phase) // PERIOD_S))
        begin, boundary = phase + period * PERIOD_S, phase + (period + 1) * PERIOD_S
        # No more can be served in this period than has arrived and than a whole period carries.
        most = total[first] + done_of_first + min(quota, PERIOD_S)
        last = min(int(arrivals_s.searchsorted(boundary)), int(total.searchsorted(most)) + 1)
        works = works_s[first:last].copy()
        if works.size == 0:
            period += 1
            continue
        works[0] -= done_of_first
        served = works.cumsum()
        finish = fifo_ends(np.maximum(arrivals_s[first:last], begin), works)
        complete = min(
            int(served.searchsorted(quota + ROUNDING_S, side="right")),
            int(finish.searchsorted(boundary + ROUNDING_S, side="right")),
        )
        ends[first : first + complete] = finish[:complete]
        consumed = float(served[complete - 1]) if complete else 0.0
        part = 0.0
        if complete < works.size:
            start = float(finish[complete] - works[complete])
            left = max(quota - consumed, 0.0)
            part = max(min(left, boundary - start), 0.0)
            if start + left < boundary:
                throttled[period] = boundary - start - left
        used[period] = consumed + part
        done_of_first = part + (done_of_first if complete == 0 else 0.0)
        first += complete
        period += 1
    return ends, _consumption(phase, used, throttled)


def _unlimited(phase_s: float, ends_s: Floats, works_s: Floats) -> Consumption:
    """What each period used without a quota: CPU time grows along each request's service."""
    periods = int((ends_s[-1] - phase_s) // PERIOD_S) + 1 if ends_s.size else 1
    edges = phase_s + PERIOD_S * np.arange(periods + 1)
    done = np.cumsum(works_s)
    instants = np.stack((ends_s - works_s, ends_s), axis=1).ravel()
    spent = np.stack((done - works_s, done), axis=1).ravel()
    used = np.diff(np.interp(edges, instants, spent)) if ends_s.size else np.zeros(1)
    return Consumption(phase_s, used, np.zeros(periods))


def _consumption(
    phase_s: float, used: dict[int, float], throttled: dict[int, float]
) -> Consumption:
    periods = max(used, default=0) + 1
    columns = np.zeros((2, periods))
    for row, by_period in enumerate((used, throttled)):
        columns[row, list(by_period)] = list(by_period.values())
    return Consumption(phase_s, columns[0], columns[1])
