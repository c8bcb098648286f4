"""Locust: a closed loop whose clients think between their requests.

A script of ours (`templates/vnfs/source/think`) runs Locust's `FastHttpUser` as a library and
notes every request itself, those in flight at the end included, since Locust tells only what
ended. Think times are exponential with the stated mean, and each client begins by thinking:
with a constant pause clients that began together would ask together for ever.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import KpiDefinition
from workbench.measuring.records import RequestRecords
from workbench.traffic.base import Offer, PathFacts
from workbench.traffic.rebuild import RequestRows, records, table_of

PROGRAM = "/usr/local/bin/think"
MOST_RPS = 2000.0
"""Up to here p95 past an idle path is at most twice that at 500 requests/s (docs/generators.md)."""
COST_US = 200.0
"""CPU per request near that rate, on the one thread that it has."""
COLUMNS = 4


class Locust:
    """Speaks to `think` over Locust 2.12."""

    name = "locust"
    kpi_definition: KpiDefinition = "request"
    packages: tuple[str, ...] = ("python3-locust",)

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        del kpis
        if load.kind == "open":
            return "Locust's clients wait for their answers, which is not an open loop"
        if not load.think_time_s:
            return (
                "without think time Locust would measure its own Python: "
                f"it spends {COST_US:g} µs of CPU on a request"
            )
        rate = most / load.think_time_s
        if rate > MOST_RPS:
            return (
                f"{most:g} clients that think {load.think_time_s:g} s ask for up to {rate:g} "
                f"requests/s, and above {MOST_RPS:g} Locust's own CPU ({COST_US:g} µs each, on "
                "one thread) would spoil the response times"
            )
        return None

    def unfit(self, path: PathFacts) -> str | None:
        if path.redirects:
            return "the path redirects, and Locust would measure the redirection"
        return None

    def version_argv(self) -> tuple[str, ...]:
        # Debian's Locust does not know its own version.
        return ("dpkg-query", "--show", "--showformat=${Version}", "python3-locust")

    def parse_version(self, output: str) -> str:
        return output.strip().split("-")[0] or "unknown"

    def argv(self, offer: Offer) -> tuple[str, ...]:
        return (
            *(PROGRAM, "--clients", str(round(offer.wl)), "--seconds", repr(offer.seconds)),
            *("--think", repr(offer.load.think_time_s)),
            *("--timeout", repr(offer.request_timeout_s)),
            *("--connection", "keep-alive" if offer.keep_alive else "close"),
            *("--records", offer.result_path, offer.url),
        )

    def parse(
        self, offer: Offer, result: bytes, output: str, begin_s: float, stop_s: float
    ) -> RequestRecords:
        table = table_of("Locust", COLUMNS, result, output)
        start, end, status, size = table.T
        if (
            not np.isfinite(table[:, [0, 2, 3]]).all()
            or (start < 0).any()
            or (end < start).any()
            or (status != np.round(status)).any()
        ):
            raise TrafficError("Locust's records cannot be read: they are no requests")
        seconds = stop_s - begin_s
        held = start < seconds
        start, end, status, size = (column[held] for column in (start, end, status, size))
        unseen = np.full(start.size, np.nan)
        rows = RequestRows(start, start, unseen, end, status, size).until(seconds)
        in_flight = np.count_nonzero(np.isnan(rows.end))
        if in_flight > round(offer.wl):
            raise TrafficError(
                f"Locust's records cannot be read: {in_flight} requests are in flight of "
                f"{offer.wl:g} clients"
            )
        return records([rows], begin_s)
