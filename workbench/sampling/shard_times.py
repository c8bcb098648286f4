"""How long a fleet still takes: what is left, given to whichever host is done with it first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median


def time_left_s(
    waiting: Sequence[float],
    busy: Mapping[str, tuple[float, float]],
    rates: Mapping[str, float | None],
) -> float | None:
    """Seconds until the last host is done.

    Parameters
    ----------
    waiting : points of each shard that nobody measures yet.
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
    for points in sorted(waiting, reverse=True):
        ends = {host: free_s[host] + points / rate_of[host] for host in free_s}
        first = min(ends, key=ends.__getitem__)
        free_s[first] = ends[first]
    return max(free_s.values())
