"""A FIFO station with worker threads under a CFS quota, request by request.

A control group with quota q may run q·T seconds of CPU in each period of T = 100 ms; then all its
threads stand still until the next period, k threads burn the quota k times as fast, and what a
period leaves unused is lost (Linux, Documentation/scheduler/sched-bwc.rst; METHOD.md 5). With
several threads a request draws its share of the quota when it starts or when a period begins, as
the kernel hands out slices ahead of their use; with one thread this is exact.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PERIOD_S = 0.1
"""Default of `cpu.cfs_period_us`."""
ROUNDING_S = 1e-12
"""Work that is left by rounding only is done."""
REFUSED = -1.0
"""What `Server.serve` returns for a request that finds the buffer full."""


@dataclass(frozen=True)
class Station:
    """What serves requests in order of arrival.

    Attributes
    ----------
    name : VNF instance name, `source` or `sink`.
    cores : CPU allotment; at or above `threads` it never binds.
    threads : worker threads, each serving one request at a time.
    phase_s : when period 0 began, in (-T, 0].
    places : most requests in the station, those in service included; None for no limit.
    blocks : what finds it full waits and keeps its place in the station before (back-pressure,
        "blocking after service": Perros 1994, section 1.2) instead of being refused. That station
        works on meanwhile, as a proxy does, if it has places left.
    """

    name: str
    cores: float = 1.0
    threads: int = 1
    phase_s: float = 0.0
    places: int | None = None
    blocks: bool = False

    @property
    def quota_s(self) -> float:
        """CPU seconds per period; infinite where the threads cannot use up the allotment."""
        return self.cores * PERIOD_S if self.cores < self.threads else float("inf")


@dataclass(frozen=True)
class Consumption:
    """CPU time and throttling of one station by quota period.

    Attributes
    ----------
    phase_s : when period 0 began.
    used_s : CPU seconds used in each period, shape (periods,).
    throttled_s : seconds of each period spent throttled, shape (periods,).
    """

    phase_s: float
    used_s: Floats
    throttled_s: Floats

    def _until(self, per_period: Floats, at_s: Floats) -> Floats:
        edges = self.phase_s + PERIOD_S * np.arange(per_period.size + 1)
        total = np.concatenate(([0.0], np.cumsum(per_period)))
        return np.asarray(np.interp(at_s, edges, total))

    def cpu_until(self, at_s: Floats) -> Floats:
        """CPU seconds used up to each instant; within a period taken as even."""
        return self._until(self.used_s, at_s)

    def throttled_until(self, at_s: Floats) -> Floats:
        """Throttled seconds up to each instant."""
        return self._until(self.throttled_s, at_s)

    def periods_until(self, at_s: Floats) -> tuple[Floats, Floats]:
        """Periods that ended with any use, and those of them that were throttled, up to each."""
        active = self._until((self.used_s > 0.0).astype(float), at_s)
        throttled = self._until((self.throttled_s > 0.0).astype(float), at_s)
        return np.floor(active + 1e-6), np.floor(throttled + 1e-6)


def _no_place(until_s: float) -> None:
    """Places without a limit need not be kept."""


@dataclass(frozen=True)
class BusyStation:
    """A station at work.

    Attributes
    ----------
    serve : (arrival, work) to the end of service; arrivals must not decrease.
    free_s : heap of the instants at which each thread is free.
    consumption : what was used so far.
    keep : hold one of its places until that instant.
    """

    serve: Callable[[float, float], float]
    free_s: list[float]
    consumption: Callable[[], Consumption]
    keep: Callable[[float], None] = _no_place


def behind(
    server: BusyStation, station: Station, before: BusyStation
) -> Callable[[float, float], float]:
    """`server.serve` of a station that blocks: who waits for a place keeps one in `before`."""
    assert station.places is not None
    places, serve, keep = station.places, server.serve, before.keep
    inside: list[float] = []

    def serve_or_hold(at: float, work: float) -> float:
        del inside[: bisect_right(inside, at)]
        if len(inside) >= places:
            keep(inside[len(inside) - places])
        end = serve(at, work)
        insort(inside, end)
        return end

    return serve_or_hold


def open_server(station: Station) -> BusyStation:
    """An idle server for `station`; time 0 lies in its period 0."""
    quota, phase = station.quota_s, station.phase_s
    used, throttled = [0.0], [0.0]
    free = [float("-inf")] * station.threads
    period, begin, boundary = 0, phase, phase + PERIOD_S

    def enter(at: float) -> None:
        nonlocal period, begin, boundary
        period = int((at - phase) // PERIOD_S)
        # Division rounds; the boundaries are the ones that count.
        if at >= phase + (period + 1) * PERIOD_S:
            period += 1
        begin, boundary = phase + period * PERIOD_S, phase + (period + 1) * PERIOD_S
        while len(used) <= period:
            used.append(0.0)
            throttled.append(0.0)

    def across(at: float, work: float) -> float:
        """Run until the work is done, standing still whenever the quota is used up."""
        while True:
            run = min(work, max(quota - used[period], 0.0), boundary - at)
            used[period] += run
            at += run
            work -= run
            if work <= ROUNDING_S:
                return at
            if at < boundary:
                throttled[period] = max(throttled[period], boundary - at)
            enter(boundary)
            at = begin

    def serve(at: float, work: float) -> float:
        if free[0] > at:
            at = free[0]
        if not begin <= at < boundary:
            enter(at)
        end = at + work
        total = used[period] + work
        if end <= boundary and total <= quota:
            used[period] = total
        else:
            end = across(at, work)
        heapreplace(free, end)
        return end

    def consumption() -> Consumption:
        return Consumption(phase, np.array(used), np.array(throttled))

    if station.places is None or station.blocks:
        return BusyStation(serve, free, consumption)
    places = station.places
    inside: list[float] = []

    def serve_or_refuse(at: float, work: float) -> float:
        while inside and inside[0] <= at:
            heappop(inside)
        if len(inside) >= places:
            return REFUSED
        end = serve(at, work)
        heappush(inside, end)
        return end

    return BusyStation(serve_or_refuse, free, consumption, lambda until: heappush(inside, until))
