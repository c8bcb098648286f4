"""Stations composed to routes, the load offered to them, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.queues.stations import Consumption, Station

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class Route:
    """One way through the network, by indices into its stations.

    Attributes
    ----------
    stations : from the source (always 0) to the sink.
    holds_s : for each of `stations`, 0 or the Δ of a delayed acknowledgement: an answer that is
        held passes no earlier than Δ after that station handed its request over (METHOD.md 9).
    share : of all requests; the shares of a network's routes sum to 1.
    """

    stations: tuple[int, ...]
    holds_s: tuple[float, ...]
    share: float = 1.0


@dataclass(frozen=True)
class Network:
    """A source, functions, a sink, and the ways between them.

    `hop_s` is the pure delay of each hop, there and back; a request and its answer are one piece
    of work at every station. What a response takes beyond `usual_s` counts `stretch` times, and
    the whole of it then `lengthen` times: delay that nobody works in.
    """

    stations: tuple[Station, ...]
    routes: tuple[Route, ...]
    hop_s: float = 0.0
    usual_s: float = 0.0
    stretch: float = 1.0
    lengthen: float = 1.0


@dataclass(frozen=True)
class Works:
    """What each request brings along; request i takes row i, in order of sending.

    Attributes
    ----------
    seconds : CPU seconds at each station, shape (stations, requests). A load that sends more
        requests than that begins again at the first.
    route : index of each request's route, shape (requests,).
    held : whether its route's holds apply to it, shape (requests,).
    delay_s : pure delay of its answer, shape (requests,).
    kept : how many requests get an answer; the ones after them are lost on their way.
    """

    seconds: Floats
    route: Integers
    held: Booleans
    delay_s: Floats
    kept: float = float("inf")


@dataclass(frozen=True)
class Offered:
    """Load, from time 0 until `stop_s`.

    Attributes
    ----------
    due_s : planned times, ascending, shape (requests,); None for a closed loop.
    connections : most requests in flight; the clients of a closed loop.
    stop_s : nothing is sent at or after this.
    think_s : pause of each client between an answer and its next request (closed loop).
    timeout_s : an attempt without an answer after this has failed.
    """

    due_s: Floats | None
    connections: int
    stop_s: float
    think_s: float = 0.0
    timeout_s: float = float("inf")


@dataclass(frozen=True)
class Passage:
    """What happened to the requests that were sent, in order of sending.

    Attributes
    ----------
    start_s : when each was sent, shape (sent,). A connection that becomes free while requests
        wait sends the next one at once, which then waits for the source's CPU as part of its
        response time; so does every client of a closed loop. A request that falls due while a
        connection is free is sent when the source's CPU gets to it, which may be late.
    end_s : when it was answered or had failed, which may be after the stop, shape (sent,).
    failed : refused by a full buffer, lost or timed out, shape (sent,).
    refused_by : index of the station that refused it, -1 for none, shape (sent,).
    consumption : by station.
    """

    start_s: Floats
    end_s: Floats
    failed: Booleans
    refused_by: Integers
    consumption: tuple[Consumption, ...]
