"""h2load: a light closed loop over connections that stay open, a record per request.

What its log means was read in its source (nghttp2 1.52, `h2load.cc`) and checked against a real
server: one line per request that ended, with the microsecond of the epoch at which it was sent,
its status (-1 where the stream failed) and the microseconds until its answer was complete. What
was in flight when the time was up is not written down.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import KpiDefinition
from workbench.measuring.records import NO_STATUS, Floats, RequestRecords
from workbench.traffic.base import Offer, PathFacts
from workbench.traffic.rebuild import RequestRows, free_since, records

MICROSECOND = 1e-6
COLUMNS = 3


class H2load:
    """Speaks to h2load of nghttp2 1.52."""

    name = "h2load"
    kpi_definition: KpiDefinition = "request"
    packages: tuple[str, ...] = ("nghttp2-client",)

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        del kpis, most
        if load.kind == "open":
            return (
                "h2load limits the rate of each client and stamps a request when it is sent, "
                "so what waited for a busy client is not seen, which is not an open loop"
            )
        if load.think_time_s:
            return "h2load's clients do not think between requests"
        return None

    def unfit(self, path: PathFacts) -> str | None:
        if not path.keep_alive:
            return (
                "the path closes its connections, and h2load does not connect again: "
                "one request per client, then silence"
            )
        if path.redirects:
            return "the path redirects, and h2load would measure the redirection"
        return None

    def version_argv(self) -> tuple[str, ...]:
        return ("h2load", "--version")

    def parse_version(self, output: str) -> str:
        return output.strip().rpartition("/")[2] or "unknown"

    def argv(self, offer: Offer) -> tuple[str, ...]:
        """Raises `TrafficError` for a host name that h2load does not accept."""
        host = urlsplit(offer.url).hostname or ""
        if "_" in host:
            raise TrafficError(
                f"h2load refuses the host name {host!r} for its underscore",
                remedy="Give the address instead of the name",
            )
        clients = round(offer.wl)
        return (
            *("h2load", "--h1", "-m", "1", "-c", str(clients)),
            *("-t", str(min(offer.threads, clients)), "-D", f"{round(offer.seconds * 1000)}ms"),
            *("-N", f"{round(offer.request_timeout_s * 1000)}ms"),
            *("-H", "accept-encoding: identity"),
            *(f"--log-file={offer.result_path}", offer.url),
        )

    def parse(
        self, offer: Offer, result: bytes, output: str, begin_s: float, stop_s: float
    ) -> RequestRecords:
        table = _table(result, output)
        seconds = stop_s - begin_s
        start = (table[:, 0] - (table[:, 0].min() if table.size else 0.0)) * MICROSECOND
        end = start + table[:, 2] * MICROSECOND
        held = end <= seconds
        start, end = start[held], end[held]
        status = np.where(table[held, 1] < 0, NO_STATUS, table[held, 1]).astype(np.int64)
        # It does not tell how much it read; an answer without an error had the body of the path.
        size = np.where((status > NO_STATUS) & (status < 400), offer.expected_bytes, 0)
        answered = RequestRows(start, start, np.full(start.size, np.nan), end, status, size)
        since = free_since(start, end, round(offer.wl))
        unfinished = RequestRows.unanswered(since, since, np.full(since.size, np.nan))
        return records([answered, unfinished], begin_s)


def _table(result: bytes, output: str) -> Floats:
    """Start in microseconds of the epoch, status and microseconds taken; shape (n, 3)."""
    if not result and "finished in" not in output:
        raise TrafficError(f"h2load left no records: {output[-200:]!r}")
    if result and not result.endswith(b"\n"):
        raise TrafficError("h2load's records end in the middle of a line")
    try:
        # Later versions may add columns.
        rows = [[int(cell) for cell in line.split(b"\t")[:COLUMNS]] for line in result.splitlines()]
        table: Floats = np.array(rows, dtype=np.float64).reshape(-1, COLUMNS)
    except ValueError as error:
        raise TrafficError(
            f"h2load's records cannot be read: {error}",
            remedy="Check that the source's h2load is 1.52 or later",
        ) from error
    return table
