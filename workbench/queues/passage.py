"""Requests through a network: feed-forward or event by event.

What limits the requests in flight (clients, connections) couples every request to an earlier
answer. Where that limit never binds, each station can serve all requests before the next station
sees any, vectorised: some milliseconds for a stretch of load at any rate. Else a calendar of
events follows every request, at about 4 µs each. Both are exact and agree where both apply.
"""

from __future__ import annotations

from heapq import heappop, heappush, heappushpop

import numpy as np
from numpy.typing import NDArray

from workbench.queues.network import Network, Offered, Passage, Works
from workbench.queues.quota import throttled_ends
from workbench.queues.stations import REFUSED, Consumption, open_server

Floats = NDArray[np.float64]

NEVER = (float("inf"), -1, 0)
"""The event after the last one."""


def pass_through(network: Network, works: Works, offered: Offered) -> Passage:
    """Send the offered load through the network by the faster way that is exact."""
    return feed_forward(network, works, offered) or by_events(network, works, offered)


def _keeps_order(network: Network, offered: Offered) -> bool:
    return len(network.routes) == 1 and all(
        station.threads == 1 and (station.places is None or station.places >= offered.connections)
        for station in network.stations
    )


def feed_forward(network: Network, works: Works, offered: Offered) -> Passage | None:
    """All requests station by station; None where requests overtake or wait for answers."""
    due = offered.due_s
    if due is None or works.route.size < due.size:
        return None
    if not _keeps_order(network, offered) or _overloaded(network, works, due):
        return None
    (route,) = network.routes
    consumption: dict[int, Consumption] = {}
    at, start, release = due, due, np.full(due.size, -np.inf)
    for index, hold in zip(route.stations, route.holds_s, strict=True):
        if index:
            at = at + network.hop_s
        at, consumption[index] = throttled_ends(network.stations[index], at, works.seconds[index])
        if not index:
            start = np.maximum(due, np.concatenate(([-np.inf], at[:-1])))
        if hold:
            release = np.maximum(release, np.where(works.held, at + hold, -np.inf))
    end = np.maximum(at, release)
    freed = np.sort(end)[: max(due.size - offered.connections, 0)]
    coupled = np.any(freed > due[offered.connections :])
    if coupled or np.any(end - start > offered.timeout_s):
        return None
    used = tuple(consumption[index] for index in range(len(network.stations)))
    return _passage(start, end, np.zeros(due.size, bool), used, offered)


def _overloaded(network: Network, works: Works, due: Floats) -> bool:
    """More work is offered than some station may do, so requests will pile up."""
    span = float(due[-1]) + 1.0 if due.size else np.inf
    return any(
        float(seconds.sum()) > station.cores * span
        for station, seconds in zip(network.stations, works.seconds, strict=True)
    )


def by_events(network: Network, works: Works, offered: Offered) -> Passage:
    """Every arrival at a station is an event in a calendar.

    An event is (when, request, position on its route); the position after the last station is
    the answer at the source, which frees the connection for the next request.
    """
    servers = [open_server(station) for station in network.stations]
    routes = [
        tuple(
            (servers[index].serve, works.seconds[index].tolist(), hold)
            for index, hold in zip(route.stations, route.holds_s, strict=True)
        )
        for route in network.routes
    ]
    rows, held, route_of = works.route.size, works.held.tolist(), works.route.tolist()
    due = None if offered.due_s is None else [*offered.due_s.tolist(), np.inf]
    stop, hop, think, timeout = offered.stop_s, network.hop_s, offered.think_s, offered.timeout_s
    source_free = servers[0].free_s
    starts: list[float] = []
    ends: list[float] = []
    releases: list[float] = []
    failed: set[int] = set()
    calendar: list[tuple[float, int, int]] = []

    def next_sending(free_at: float) -> tuple[float, int, int]:
        """The first event of the next request; one at infinity when there is none."""
        request = len(starts)
        at = free_at if due is None else max(free_at, due[request])
        if at >= stop:
            return NEVER
        starts.append(at)
        ends.append(at)
        releases.append(0.0)
        return at, request, 0

    for _ in range(offered.connections):
        heappush(calendar, next_sending(0.0))
    at, request, position = heappop(calendar)
    while request >= 0:
        row = request % rows
        route = routes[route_of[row]]
        if position == len(route):
            ends[request] = at
            at, request, position = heappushpop(calendar, next_sending(at + think))
            continue
        serve, seconds, hold = route[position]
        if position == 0 and due is not None and at == due[request] and source_free[0] > at:
            starts[request] = source_free[0]
        done = serve(at, seconds[row])
        position += 1
        if done == REFUSED:
            failed.add(request)
            done, position = at, len(route)
        else:
            if hold and held[row]:
                releases[request] = max(releases[request], done + hold)
            if position < len(route):
                done += hop
            else:
                done = max(done, releases[request])
                if done - starts[request] > timeout:
                    failed.add(request)
                    done = starts[request] + timeout
        at, request, position = heappushpop(calendar, (done, request, position))
    fell = np.zeros(len(starts), bool)
    fell[list(failed)] = True
    used = tuple(server.consumption() for server in servers)
    return _passage(np.array(starts), np.array(ends), fell, used, offered)


def _passage(
    start: Floats,
    end: Floats,
    failed: NDArray[np.bool_],
    used: tuple[Consumption, ...],
    offered: Offered,
) -> Passage:
    """The requests whose turn at the source came before the stop."""
    sent = start < offered.stop_s
    return Passage(start[sent], end[sent], failed[sent], used)
