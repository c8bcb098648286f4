"""How long a fleet still takes: what is left, given to whichever host is free first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace
from statistics import median


def time_left_s(
    waiting: Sequence[float],
    busy: Mapping[str, tuple[float, float]],
    rates: Mapping[str, float | None],
) -> float | None:
    """Seconds until the last host is done.

    Parameters
    ----------
    waiting : points of each shard that nobody measures yet, in the order in which they are given.
    busy : by host, the points of the shard that it measures and for how many seconds already.
    rates : of the hosts that are there, points a second; None where one has finished nothing yet:
        it is taken for the median of the others.

    Returns
    -------
    None where no host has finished anything, or none is there.
    """
    known = [rate for rate in rates.values() if rate]
    if not known:
        return None
    usual = median(known)
    rate_of = {host: rate or usual for host, rate in rates.items()}
    free_s = dict.fromkeys(rate_of, 0.0)
    for host, (points, spent_s) in busy.items():
        if host in free_s:
            free_s[host] = max(0.0, points / rate_of[host] - spent_s)
    free = [(at, host) for host, at in free_s.items()]
    heapify(free)
    for points in waiting:
        at, host = free[0]
        free_s[host] = at + points / rate_of[host]
        heapreplace(free, (free_s[host], host))
    return max(free_s.values())
