"""wrk: throughput and nothing else, at the least cost for the source.

wrk adds invented samples to its latencies (METHOD.md 3), so that none of its own figures is read.
A script of ours (`templates/vnfs/source/wrk.lua`) notes when each answer was complete and with
which status; wrk does not tell it on which connection. So the start of a request is taken to be
the n-th answer before its own, which is right for the number in flight and for nothing else: its
`kpi_definition` is `none`, and no response time is ever stated from these records.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from math import ceil

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.domain.kpis import of
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import KpiDefinition
from workbench.measuring.records import NO_STATUS, Floats, RequestRecords
from workbench.traffic.base import Offer, PathFacts
from workbench.traffic.rebuild import RequestRows, records

SCRIPT = "/usr/local/share/workbench/wrk.lua"
"""Beside the source; it takes the file that it writes to as its argument."""
ROW_BYTES = 16
"""Two doubles: an instant in seconds and a status, `NO_STATUS` for the begin of a thread."""

_TOTAL = re.compile(r"(\d+) requests in ")
_ERRORS = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")


class Wrk:
    """Speaks to wrk 4.1."""

    name = "wrk"
    kpi_definition: KpiDefinition = "none"
    packages: tuple[str, ...] = ("wrk",)

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        del most
        if load.kind == "open":
            return "wrk sends as fast as it is answered, which is not an open loop"
        if load.think_time_s:
            return "wrk's clients do not think between requests"
        latencies = [name for name in kpis if of(name).kind == "response_time"]
        if latencies:
            return (
                "wrk measures throughput alone, since part of its response times is invented, "
                f"and {' and '.join(sorted(latencies))} is asked for"
            )
        return None

    def unfit(self, path: PathFacts) -> str | None:
        if not path.keep_alive:
            return (
                "the path closes its connections, and wrk counts a close as a read error "
                "like any other"
            )
        if path.redirects:
            return "the path redirects, and wrk would measure the redirection"
        return None

    def version_argv(self) -> tuple[str, ...]:
        # wrk's own option for its version ends as if it had failed.
        return ("dpkg-query", "--show", "--showformat=${Version}", "wrk")

    def parse_version(self, output: str) -> str:
        return output.strip().split("-")[0] or "unknown"

    def argv(self, offer: Offer) -> tuple[str, ...]:
        clients = round(offer.wl)
        return (
            *("wrk", "-t", str(min(offer.threads, clients)), "-c", str(clients)),
            # It knows whole seconds only.
            *("-d", f"{ceil(offer.seconds)}s", "--timeout", f"{ceil(offer.request_timeout_s)}s"),
            *("-s", SCRIPT, offer.url, "--", offer.result_path),
        )

    def parse(
        self, offer: Offer, result: bytes, output: str, begin_s: float, stop_s: float
    ) -> RequestRecords:
        failures = _failures(output)
        ends, status = _answers(result)
        seconds = stop_s - begin_s
        held = ends <= seconds
        ends, status = ends[held], status[held]
        clients = round(offer.wl)
        starts = np.concatenate([np.zeros(clients), ends])
        size = np.where(status < 400, offer.expected_bytes, 0)
        begun = starts[: ends.size]
        answered = RequestRows(begun, begun, np.full(ends.size, np.nan), ends, status, size)
        since = starts[ends.size :]
        # When they failed is not written down: refusals come at any time.
        failed = (np.arange(failures) + 0.5) / max(1, failures) * seconds
        return records(
            [
                answered,
                RequestRows.unanswered(since, since, np.full(since.size, np.nan)),
                RequestRows.unanswered(failed, failed, failed),
            ],
            begin_s,
        )


def _answers(result: bytes) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Seconds since the load began at which answers were complete, sorted, and their statuses."""
    if not result:
        raise TrafficError("wrk left no records", remedy="See its message in the log")
    if len(result) % ROW_BYTES:
        raise TrafficError(f"wrk's records are cut off: {len(result)} bytes are no whole rows")
    table = np.frombuffer(result, dtype="<f8").reshape(-1, 2)
    at, status = table[:, 0], table[:, 1]
    begun = status == NO_STATUS
    if not np.isfinite(table).all() or not begun.any() or (status != np.round(status)).any():
        raise TrafficError("wrk's records cannot be read: they hold no begin, or no statuses")
    order = np.argsort(at[~begun], kind="stable")
    since = at[~begun][order] - at[begun].min()
    return since.astype(np.float64), status[~begun][order].astype(np.int64)


def _failures(output: str) -> int:
    """Requests that were refused or cut off. Raises `TrafficError` without wrk's summary."""
    if not _TOTAL.search(output):
        raise TrafficError(
            f"wrk's summary cannot be read: {output[-200:]!r}",
            remedy="Check that the source's wrk is 4.1",
        )
    found = _ERRORS.search(output)
    # A time-out is only counted: the request goes on, and its answer is a row of its own.
    return sum(int(found[i]) for i in (1, 2, 3)) if found else 0
