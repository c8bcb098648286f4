"""oha: the default generator for HTTP, closed loop and open loop at a constant rate.

What its records mean was read in its source (1.16, `client.rs`, `db.rs`) and checked against a
real server:

- Each answered request is a row of a SQLite table, with any status; failed ones are only counted,
  by message, in the JSON that it prints.
- In open loop one task releases requests at ``i / rate`` into a queue without bound, from which
  the connections take them in order; `start_latency_correction` is the instant of release. Its
  timer wakes on whole milliseconds and one later, so a release comes 0.7-1.9 ms after its due
  time even on an idle host.
- When the time is up, closed-loop clients report one aborted request each; open-loop connections
  report one each whether they were waiting for an answer or for work, so that count says nothing.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import KpiDefinition
from workbench.measuring.records import Floats, RequestRecords
from workbench.traffic.base import Offer, PathFacts
from workbench.traffic.rebuild import (
    RequestRows,
    assign_ticks,
    due_times,
    free_since,
    records,
)

TIMER_S = 0.002
"""How late oha's timer may release a request: up to here the plan is what the timer can keep;
whatever is beyond is the source's own delay and counts."""

ABORTED = "aborted due to deadline"
TIMED_OUT = "timeout"
MOST_FAILURES = 10_000_000
"""Of one kind in one drive; each becomes a row."""

COLUMNS = "coalesce(start_latency_correction, start), start, end, status, len_bytes"


class Oha:
    """Speaks to oha 1.16 and later."""

    name = "oha"
    kpi_definition: KpiDefinition = "request"
    packages: tuple[str, ...] = ()

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        del kpis, most  # its records answer every question about requests, at any rate it can send
        if load.unit != "requests":
            return f"oha sends requests, not {load.unit}"
        if load.kind == "open" and load.arrivals != "constant":
            return f"oha sends at a constant rate, not with {load.arrivals} arrivals"
        if load.think_time_s:
            return "oha's clients do not think between requests"
        return None

    def unfit(self, path: PathFacts) -> str | None:
        if path.redirects:
            return "the path redirects, and oha would measure the redirection"
        return None

    def version_argv(self) -> tuple[str, ...]:
        return ("oha", "--version")

    def parse_version(self, output: str) -> str:
        return output.split()[-1] if output.split() else "unknown"

    def argv(self, offer: Offer) -> tuple[str, ...]:
        timeout = f"{round(offer.request_timeout_s * 1000)}ms"
        fixed = (
            *("oha", "--no-tui", "--output-format", "json", "--disable-compression"),
            *("-z", f"{round(offer.seconds * 1000)}ms", "-t", timeout),
            *("--connect-timeout", timeout, "--db-url", offer.result_path),
            *("--worker-threads", str(offer.threads)),
            *(() if offer.keep_alive else ("--disable-keepalive",)),
        )
        if offer.load.kind == "open":
            rate = ("-q", repr(float(offer.wl)), "--latency-correction")
            return (*fixed, *rate, "-c", str(offer.load.connections), offer.url)
        return (*fixed, "-c", str(round(offer.wl)), offer.url)

    def parse(
        self, offer: Offer, result: bytes, output: str, begin_s: float, stop_s: float
    ) -> RequestRecords:
        released, answered = _answered(result)
        errors = _errors(output)
        seconds = stop_s - begin_s
        if offer.load.kind == "open":
            return records(_open(offer, released, answered, errors, seconds), begin_s)
        return records(_closed(offer, answered, errors, seconds), begin_s)


def _answered(result: bytes) -> tuple[Floats, RequestRows]:
    """Instants of release, sorted, and the rows of the table in that order."""
    if not result:
        raise TrafficError("oha left no records", remedy="See its message in the log")
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(result)
        found = connection.execute(f"SELECT {COLUMNS} FROM oha ORDER BY 1").fetchall()  # noqa: S608 - our own constant
    except sqlite3.Error as error:
        raise TrafficError(f"oha's records cannot be read: {error}") from error
    finally:
        connection.close()
    table = np.array(found, dtype=float).reshape(-1, 5)
    released, start, end = table[:, 0], table[:, 1], table[:, 2]
    status, size = table[:, 3].astype(np.int64), table[:, 4].astype(np.int64)
    return released, RequestRows(start, start, np.full(start.size, np.nan), end, status, size)


def _errors(output: str) -> dict[str, int]:
    """Failed requests by message."""
    try:
        counts = {str(k): int(n) for k, n in json.loads(output)["errorDistribution"].items()}
        if not all(0 <= n <= MOST_FAILURES for n in counts.values()):
            raise ValueError
        return counts
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise TrafficError(
            f"oha's summary cannot be read: {output[-200:]!r}",
            remedy="Check that the source's oha is 1.16 or later",
        ) from None


def _open(
    offer: Offer, released: Floats, answered: RequestRows, errors: dict[str, int], seconds: float
) -> list[RequestRows]:
    due = due_times(offer.wl, seconds)
    ticks = np.minimum(assign_ticks(released, offer.wl), due.size - 1)
    planned = np.minimum(released, due[ticks] + TIMER_S)
    rows = RequestRows(
        planned, answered.start, answered.first_byte, answered.end, answered.status, answered.bytes
    )
    without = np.ones(due.size, dtype=bool)
    without[ticks] = False
    # What is due within the timer's last tick is released after the end, by any generator's doing.
    without &= due <= seconds - TIMER_S
    # The releases of requests without a record were as late as those of their neighbours.
    lateness = float(np.median(planned - due[ticks])) if released.size else 0.0
    missing = due[without] + lateness

    timeouts = errors.get(TIMED_OUT, 0)
    failures = sum(n for message, n in errors.items() if message not in (ABORTED, TIMED_OUT))
    # Requests leave the queue in order, so what was never sent is due last; and had any been
    # waiting, every connection would have been busy.
    failed, waiting = np.split(missing, [min(timeouts + failures, missing.size)])
    in_flight, unsent = np.split(waiting, [min(offer.load.connections, waiting.size)])
    begun = in_flight
    if unsent.size:
        free = free_since(answered.start, answered.end, offer.load.connections)
        begun = np.maximum(in_flight, free[-in_flight.size :])
    gave_up = np.where(np.arange(failed.size) < timeouts, offer.request_timeout_s, 0.0)
    return [
        rows,
        RequestRows.unanswered(failed, failed, failed + gave_up),
        RequestRows.unanswered(in_flight, begun, np.full(in_flight.size, np.nan)),
        RequestRows.unanswered(unsent, np.full(unsent.size, np.nan), np.full(unsent.size, np.nan)),
    ]


def _closed(
    offer: Offer, answered: RequestRows, errors: dict[str, int], seconds: float
) -> list[RequestRows]:
    clients = round(offer.wl)
    timeouts = errors.get(TIMED_OUT, 0)
    failures = sum(n for message, n in errors.items() if message not in (ABORTED, TIMED_OUT))
    # When they failed is not written down: time-outs follow each other from the beginning on, on
    # as few clients as can be; refusals come at any time.
    rounds = max(1, int(seconds / offer.request_timeout_s))
    hung = (np.arange(timeouts) % rounds).astype(float) * offer.request_timeout_s
    refused = (np.arange(failures) + 0.5) / max(1, failures) * seconds
    parts = [
        answered,
        RequestRows.unanswered(hung, hung, hung + offer.request_timeout_s),
        RequestRows.unanswered(refused, refused, refused),
    ]
    starts = np.concatenate([part.start for part in parts])
    ends = np.concatenate([part.end for part in parts])
    since = np.minimum(free_since(starts, ends, clients), seconds)
    return [*parts, RequestRows.unanswered(since, since, np.full(since.size, np.nan))]
