"""Rebuilds the requests that a generator leaves no record of (METHOD.md 3 and 4).

Generators write down what was answered. What was due but never sent, what was in flight when the
load stopped and what failed must be put back, or every figure of an overloaded function is
computed from its lucky requests. All times here are seconds since the load began.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.measuring.records import NO_STATUS, Floats, Integers, RequestRecords


@dataclass(frozen=True)
class RequestRows:
    """Requests in columns of shape (n,), as in `RequestRecords` but since the load began."""

    planned: Floats
    start: Floats
    first_byte: Floats
    end: Floats
    status: Integers
    bytes: Integers

    @classmethod
    def unanswered(cls, planned: Floats, start: Floats, end: Floats) -> RequestRows:
        """Requests without an answer: failed where `end` is finite, else still waiting."""
        nothing = np.zeros(planned.size, dtype=np.int64)
        return cls(planned, start, np.full(planned.size, np.nan), end, nothing + NO_STATUS, nothing)

    def until(self, seconds: float) -> RequestRows:
        """As they were when the load stopped: what was answered after that was in flight."""
        unfinished = ~(self.end <= seconds)
        return RequestRows(
            self.planned,
            self.start,
            np.where(self.first_byte <= seconds, self.first_byte, np.nan),
            np.where(unfinished, np.nan, self.end),
            np.where(unfinished, NO_STATUS, self.status).astype(np.int64),
            np.where(unfinished, 0, self.bytes).astype(np.int64),
        )

    def __len__(self) -> int:
        return int(self.planned.size)


def records(parts: list[RequestRows], begin_s: float) -> RequestRecords:
    """All parts together, on the lab's clock, in the order in which they were due."""
    planned = np.concatenate([part.planned for part in parts])
    order = np.argsort(planned, kind="stable")
    return RequestRecords(
        planned[order] + begin_s,
        np.concatenate([part.start for part in parts])[order] + begin_s,
        np.concatenate([part.first_byte for part in parts])[order] + begin_s,
        np.concatenate([part.end for part in parts])[order] + begin_s,
        np.concatenate([part.status for part in parts])[order],
        np.concatenate([part.bytes for part in parts])[order],
    )


def due_times(rate: float, seconds: float) -> Floats:
    """When the requests of a constant rate are due: the first at once, none after the end."""
    # A product such as 0.1 * 30 lies a rounding error above 3 and must not add a request.
    count = int(np.ceil(rate * seconds * (1 - 1e-12)))
    return np.arange(count) / rate


def assign_ticks(released: Floats, rate: float) -> Integers:
    """Which due time each request answers to, from the instants at which they were released.

    Parameters
    ----------
    released : (n,) sorted instants; never before the due time, in bursts after a stall.
    rate : requests due per second.

    Returns
    -------
    (n,) strictly increasing indices of due times: for each the latest that is possible.

    Notes
    -----
    Counting ``k`` up would misplace everything after the first request without a record, rounding
    ``released * rate`` would give a burst one index. The latest feasible assignment is
    ``i_k = k + min over j >= k of (floor(released_j * rate) - j)``.
    """
    places = np.arange(released.size)
    latest = np.floor(released * rate + 1e-6).astype(np.int64) - places
    feasible = np.minimum.accumulate(latest[::-1])[::-1]
    return np.maximum(feasible, 0) + places


def free_since(starts: Floats, ends: Floats, clients: int) -> Floats:
    """Since when each client is free that has begun nothing we know of since; sorted.

    A client without think time, and a connection with work waiting for it, begins its next request
    as soon as the one before has ended. So each start is taken to follow the latest end before it
    that no other start has followed; ends that are left over belong to requests without a record.
    """
    free = [0.0] * clients
    events = np.concatenate([ends, starts])
    is_end = np.arange(events.size) < ends.size
    # At equal instants the end comes first: it is what made the start possible.
    for place in np.lexsort((~is_end, events)):
        if is_end[place]:
            free.append(float(events[place]))
        elif free:
            free.pop()
    return np.array(free)


def table_of(name: str, columns: int, result: bytes, output: str) -> Floats:
    """What a script of ours wrote of each request, of shape (requests, columns): little-endian
    float64, row by row. Raises `TrafficError` where there is nothing, or no whole rows."""
    if not result:
        raise TrafficError(
            f"{name} left no records: {output[-200:]!r}", remedy="See its message in the log"
        )
    if len(result) % (8 * columns):
        raise TrafficError(f"{name}'s records are cut off: {len(result)} bytes are no whole rows")
    return np.frombuffer(result, dtype="<f8").reshape(-1, columns).astype(np.float64)
