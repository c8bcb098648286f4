"""steady: an open loop at planned times, and where oha is not built yet; Debian's LuaJIT runs it.

No generator that Debian packages offers an open loop with a record per request (docs/generators.md
has the figures). So a script of ours (`templates/vnfs/source/steady`) does: it sends at `k / rate`
whoever has answered by then, over a bounded number of connections, and writes down every request
that was due, those that were never sent or not answered included. Nothing is rebuilt here.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.domain.load_shapes import LoadShape
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import KpiDefinition
from workbench.measuring.cycles import planned_times
from workbench.measuring.records import Floats, RequestRecords
from workbench.traffic.base import Offer, PathFacts
from workbench.traffic.rebuild import RequestRows, due_times, records, table_of

PROGRAM = "/usr/local/bin/steady"
COLUMNS = 6
"""Due, sent, first byte, end, status, bytes."""


class Steady:
    """Speaks to `steady` 1."""

    name = "steady"
    kpi_definition: KpiDefinition = "request"
    packages: tuple[str, ...] = ("luajit",)
    plans_times = True

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        del kpis, most  # its records answer every question about requests, at any rate it can send
        if load.unit != "requests":
            return f"steady sends requests, not {load.unit}"
        if load.kind != "open":
            return "steady sends whether it is answered or not, which is not a closed loop"
        if load.arrivals != "constant":
            return f"steady sends at a constant rate, not with {load.arrivals} arrivals"
        return None

    def unfit(self, path: PathFacts) -> str | None:
        if path.redirects:
            return "the path redirects, and steady would measure the redirection"
        return None

    def version_argv(self) -> tuple[str, ...]:
        return (PROGRAM, "--version")

    def parse_version(self, output: str) -> str:
        return (output.split()[1:] or ["unknown"])[0]

    def argv(self, offer: Offer) -> tuple[str, ...]:
        return (
            *(PROGRAM, "--rate", repr(float(offer.wl)), "--seconds", repr(offer.seconds)),
            *(("--shape", written(offer.shape)) if offer.shape else ()),
            *("--connections", str(offer.load.connections)),
            *("--timeout", repr(offer.request_timeout_s)),
            *("--connection", "keep-alive" if offer.keep_alive else "close"),
            *("--records", offer.result_path, offer.url),
        )

    def parse(
        self, offer: Offer, result: bytes, output: str, begin_s: float, stop_s: float
    ) -> RequestRecords:
        table = table_of("steady", COLUMNS, result, output)
        planned, start = table.T[:2]
        due = (
            planned_times(offer.shape, offer.wl, offer.seconds)
            if offer.shape
            else due_times(offer.wl, offer.seconds)
        )
        as_planned = planned.size == due.size and np.allclose(planned, due, atol=1e-6)
        if not as_planned or not _are_requests(table):
            raise TrafficError("steady's records cannot be read: they are not the requests due")
        rows = RequestRows(*table.T).until(stop_s - begin_s)
        in_flight = np.count_nonzero(np.isnan(rows.end) & np.isfinite(start))
        if in_flight > offer.load.connections:
            raise TrafficError(
                f"steady's records cannot be read: {in_flight} requests are in flight on "
                f"{offer.load.connections} connections"
            )
        return records([rows], begin_s)


def written(shape: LoadShape) -> str:
    """A shape as steady reads it: seconds and factor of each stretch of a cycle."""
    return ",".join(f"{seconds!r}:{factor!r}" for seconds, factor in shape.segments)


def _are_requests(table: Floats) -> bool:
    """Whether each was sent no sooner than it was due, and ended no sooner than it was sent."""
    planned, start, first_byte, end, status, size = table.T
    known = np.isfinite(table[:, [0, 4, 5]]).all() and bool((status == np.round(status)).all())
    early = (start < planned - 1e-6).any() or (end < start).any() or (first_byte < start).any()
    unsent = np.isnan(start) & (np.isfinite(end) | (status != 0))
    return bool(known and not early and not unsent.any() and (size >= 0).all())
