"""hey: the fallback where oha cannot be had. Closed loop only, times in steps of 0.1 ms.

It prints one line per answered request and nothing of failed ones. When the time is up its
clients finish the request they are at, so those lines end after the load stopped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import KpiDefinition
from workbench.measuring.records import RequestRecords
from workbench.traffic.base import Offer, PathFacts
from workbench.traffic.rebuild import RequestRows, free_since, records

HEADER = [
    *("response-time", "DNS+dialup", "DNS", "Request-write", "Response-delay"),
    *("Response-read", "status-code", "offset"),
]
MOST_ANSWERS = 1_000_000
"""That hey keeps (maxRes in its report.go); it counts later ones and prints no line of them."""


class Hey:
    """Speaks to hey 0.1.4."""

    name = "hey"
    kpi_definition: KpiDefinition = "request"
    packages: tuple[str, ...] = ("hey",)

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        del kpis, most  # its records answer every question about requests, at any rate it can send
        if load.kind == "open":
            return (
                "hey limits the rate of each client and skips what a busy client misses, "
                "which is not an open loop"
            )
        if load.think_time_s:
            return "hey's clients do not think between requests"
        return None

    def unfit(self, path: PathFacts) -> str | None:
        if path.redirects:
            return "the path redirects, and hey would measure the redirection"
        return None

    def version_argv(self) -> tuple[str, ...]:
        # hey knows no option for its version; the package that it came from does.
        return ("dpkg-query", "--show", "--showformat=${Version}", "hey")

    def parse_version(self, output: str) -> str:
        return output.strip().split("-")[0] or "unknown"

    def argv(self, offer: Offer) -> tuple[str, ...]:
        return (
            *("hey", "-o", "csv", "-disable-compression", "-disable-redirects"),
            *("-z", f"{round(offer.seconds * 1000)}ms"),
            *("-t", str(max(1, round(offer.request_timeout_s)))),
            *("-c", str(round(offer.wl)), "-cpus", str(offer.threads)),
            *(() if offer.keep_alive else ("-disable-keepalive",)),
            offer.url,
        )

    def parse(
        self, offer: Offer, result: bytes, output: str, begin_s: float, stop_s: float
    ) -> RequestRecords:
        if result:
            raise TrafficError(f"hey writes to its output, but {offer.result_path} has content")
        seconds = stop_s - begin_s
        clients = round(offer.wl)
        rows = _rows(output, offer.expected_bytes, seconds)
        ended = rows.end[np.isfinite(rows.end)]
        # Clients without a line that runs past the end had failed or were hanging.
        since = free_since(rows.start, ended, clients)
        return records(
            [rows, RequestRows.unanswered(since, since, np.full(since.size, np.nan))], begin_s
        )


def _rows(output: str, expected_bytes: int, seconds: float) -> RequestRows:
    lines = csv.reader(io.StringIO(output))
    if next(lines, None) != HEADER:
        raise TrafficError(
            f"hey's output cannot be read: {output[:200]!r}",
            remedy="Check that the source's hey is 0.1.4",
        )
    try:
        table = np.array([[float(value) for value in line] for line in lines if line])
        table = table.reshape(-1, len(HEADER))
    except ValueError as error:
        raise TrafficError(f"hey's output cannot be read: {error}") from error
    if len(table) >= MOST_ANSWERS:  # clients of later ones would read as hanging
        raise TrafficError(
            f"hey tells of its first {MOST_ANSWERS:,} answers only",
            where="source",
            remedy="Shorten the window, or use oha",
        )
    table = table[table[:, 7] < seconds]
    start = table[:, 7]
    end = start + table[:, 0]
    first_byte = start + table[:, 1] + table[:, 3] + table[:, 4]
    unfinished = end > seconds
    status = np.where(unfinished, 0, table[:, 6]).astype(np.int64)
    # hey does not tell how much it read; an answer without an error had the body of the path.
    size = np.where((status > 0) & (status < 400), expected_bytes, 0)
    return RequestRows(
        start,
        start,
        np.where(unfinished & (first_byte > seconds), np.nan, first_byte),
        np.where(unfinished, np.nan, end),
        status,
        size,
    )
