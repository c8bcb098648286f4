"""Requests through a network: feed-forward or event by event.

What limits the requests in flight (clients, connections) couples every request to an earlier
answer. Feed-forward, each station serves all requests, vectorised, before the next station sees
any; where connections run out it is repeated with the instants at which they were freed, until
those no longer change. What is sent then is exact, for the fixed point of a causal system is
unique. A saturated target takes three rounds: its answers do not depend on when the queue before
it was filled. Where that does not settle, requests overtake each other or are refused, a calendar
of events follows every request, at about 4 µs each. Both agree where both apply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush, heappushpop

import numpy as np
from numpy.typing import NDArray

from workbench.queues.network import Network, Offered, Passage, Works
from workbench.queues.quota import throttled_ends
from workbench.queues.stations import REFUSED, BusyStation, Consumption, behind, open_server

Floats = NDArray[np.float64]

NEVER = (float("inf"), -1, 0)
"""The event after the last one."""
ROUNDS = 8
"""Of feed-forward, at most."""
SETTLED_S = 1e-11
"""Sums in another order differ by rounding only."""


def simulate(network: Network, works: Works, offered: Offered) -> Passage:
    """Send the offered load through the network by the faster way that is exact."""
    return feed_forward(network, works, offered) or by_events(network, works, offered)


def _keeps_order(network: Network, works: Works, offered: Offered) -> bool:
    """One FIFO route without refusals; blocking matters only behind a station that refuses."""
    return (
        len(network.routes) == 1
        and works.kept >= works.route.size
        and all(
            station.threads == 1
            and (station.places is None or station.blocks or station.places >= offered.connections)
            for station in network.stations
        )
    )


def feed_forward(network: Network, works: Works, offered: Offered) -> Passage | None:
    """All requests station by station; None where that does not settle or does not apply."""
    if not _keeps_order(network, works, offered):
        return None
    rows = works.route.size
    due = np.zeros(rows) if offered.due_s is None else offered.due_s[:rows]
    rows = due.size
    at, settled = due, 0
    for attempt in range(ROUNDS):
        start, end, used = _one_round(network, works, offered, at)
        freed = np.full(rows, -np.inf)
        freed[offered.connections :] = np.sort(end)[: max(rows - offered.connections, 0)]
        after = np.maximum(due, freed + offered.think_s)
        moved = np.flatnonzero(np.abs(after - at) > SETTLED_S)
        if not moved.size or at[moved[0]] >= offered.stop_s:
            break
        # Every round settles a cycle of the connections; where it is no more than that, and not
        # all, events are faster.
        if attempt > 1 and moved[0] - settled < (rows - moved[0]) / ROUNDS:
            return None
        at, settled = after, int(moved[0])
    else:
        return None
    complete = offered.due_s is not None and rows == offered.due_s.size
    if not complete and (not rows or at[-1] < offered.stop_s):
        return None  # there is more to be sent than there is work for
    sent = int(at.searchsorted(offered.stop_s))
    if sent < rows:
        start, end, used = _one_round(network, works, offered, at[:sent])
    if np.any(end - start > offered.timeout_s):
        return None
    return _passage(start, end, np.zeros(sent, bool), np.full(sent, -1), used, offered)


def _one_round(
    network: Network, works: Works, offered: Offered, at: Floats
) -> tuple[Floats, Floats, tuple[Consumption, ...]]:
    """Start and end of requests that come to the source at these instants."""
    (route,) = network.routes
    count = at.size
    consumption: dict[int, Consumption] = {}
    begin = at
    start, release = at, np.full(count, -np.inf)
    for index, hold in zip(route.stations, route.holds_s, strict=True):
        if index:
            at = at + network.hop_s
        at, consumption[index] = throttled_ends(
            network.stations[index], at, works.seconds[index, :count]
        )
        if not index and offered.due_s is not None:
            # What falls due while a connection is free is sent when the source gets to it.
            free = np.concatenate(([-np.inf], at[:-1]))[:count]
            start = np.where(begin <= offered.due_s[:count], np.maximum(begin, free), begin)
        if hold:
            release = np.maximum(release, np.where(works.held[:count], at + hold, -np.inf))
    taken = np.maximum(at, release) + works.delay_s[:count] - start
    beyond = np.maximum(taken - network.usual_s, 0.0)
    end = start + (taken + beyond * (network.stretch - 1.0)) * network.lengthen
    return start, end, tuple(consumption[index] for index in range(len(network.stations)))


def _routes(
    network: Network, works: Works, servers: Sequence[BusyStation]
) -> list[tuple[tuple[Callable[[float, float], float], list[float], float, int], ...]]:
    """By route, station by station: what serves, seconds by request, hold, and which it is."""

    def service(way: tuple[int, ...], position: int) -> Callable[[float, float], float]:
        station, server = network.stations[way[position]], servers[way[position]]
        if station.blocks and station.places is not None and position:
            return behind(server, station, servers[way[position - 1]])
        return server.serve

    return [
        tuple(
            (service(route.stations, position), works.seconds[index].tolist(), hold, index)
            for position, (index, hold) in enumerate(
                zip(route.stations, route.holds_s, strict=True)
            )
        )
        for route in network.routes
    ]


def by_events(network: Network, works: Works, offered: Offered) -> Passage:
    """Every arrival at a station is an event in a calendar.

    An event is (when, request, position on its route); the position after the last station is
    the answer at the source, which frees the connection for the next request.
    """
    servers = [open_server(station) for station in network.stations]

    routes = _routes(network, works, servers)
    rows, held, route_of = works.route.size, works.held.tolist(), works.route.tolist()
    delay, kept = works.delay_s.tolist(), works.kept
    usual, stretch, lengthen = network.usual_s, network.stretch - 1.0, network.lengthen
    due = None if offered.due_s is None else [*offered.due_s.tolist(), np.inf]
    stop, hop, think, timeout = offered.stop_s, network.hop_s, offered.think_s, offered.timeout_s
    source_free = servers[0].free_s
    starts: list[float] = []
    ends: list[float] = []
    releases: list[float] = []
    failed: set[int] = set()
    refused: dict[int, int] = {}
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
        serve, seconds, hold, index = route[position]
        if position == 0 and due is not None and at == due[request] and source_free[0] > at:
            starts[request] = source_free[0]
        done = serve(at, seconds[row])
        position += 1
        if done == REFUSED:
            failed.add(request)
            refused[request] = index
            done, position = at, len(route)
        elif request >= kept:
            failed.add(request)
            done, position = starts[request] + timeout, len(route)
        else:
            if hold and held[row]:
                releases[request] = max(releases[request], done + hold)
            if position < len(route):
                done += hop
            else:
                started = starts[request]
                taken = max(done, releases[request]) + delay[row] - started
                if taken > usual:
                    taken += (taken - usual) * stretch
                taken *= lengthen
                if taken > timeout:
                    failed.add(request)
                    taken = timeout
                done = started + taken
        at, request, position = heappushpop(calendar, (done, request, position))
    fell = np.zeros(len(starts), bool)
    fell[list(failed)] = True
    by = np.full(len(starts), -1)
    by[list(refused)] = list(refused.values())
    used = tuple(server.consumption() for server in servers)
    return _passage(np.array(starts), np.array(ends), fell, by, used, offered)


def _passage(
    start: Floats,
    end: Floats,
    failed: NDArray[np.bool_],
    refused_by: NDArray[np.int64],
    used: tuple[Consumption, ...],
    offered: Offered,
) -> Passage:
    """The requests whose turn at the source came before the stop."""
    sent = start < offered.stop_s
    return Passage(start[sent], end[sent], failed[sent], refused_by[sent], used)
