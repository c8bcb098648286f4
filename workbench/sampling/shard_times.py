"""How long a fleet still takes: what is left, given to whichever host is free first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heapify, heapreplace
from statistics import median


def time_left_s(
    waiting: Sequence[float],
    busy: Mapping[str, tuple[float, float]],
    rates: Mapping[str, float | None],
    ending: Collection[str] = (),
) -> float | None:
    """Seconds until the last host is done.

    Parameters
    ----------
    waiting : points of each shard that nobody measures yet, in the order in which they are given.
    busy : by host, the points of the shard that it measures and for how many seconds already.
    rates : of the hosts that are there, points a second; None where one has finished nothing yet:
        it is taken for the median of the others.
    ending : those of them that are given nothing after what they measure.

    Returns
    -------
    None where no host has finished anything, or none is there for what waits.
    """
    known = [rate for rate in rates.values() if rate]
    given = [host for host in rates if host not in ending]
    if not known or (waiting and not given):
        return None
    usual = median(known)
    rate_of = {host: rate or usual for host, rate in rates.items()}
    free_s = dict.fromkeys(rate_of, 0.0)
    for host, (points, spent_s) in busy.items():
        if host in free_s:
            free_s[host] = max(0.0, points / rate_of[host] - spent_s)
    free = [(free_s[host], host) for host in given]
    heapify(free)
    for points in waiting if free else ():
        at, host = free[0]
        free_s[host] = at + points / rate_of[host]
        heapreplace(free, (free_s[host], host))
    return max(free_s.values())
