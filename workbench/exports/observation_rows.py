"""What was seen beside every sample, as a table: each counter of each component and window."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from workbench.domain.observations import OBSERVABLES
from workbench.domain.samples import Measurement
from workbench.domain.tables import CAUTION
from workbench.exports.base import ExportSource, csv_table, file_in, measurement_pages

COLUMNS: Final = (
    CAUTION, "sample", "target", "configuration", "wl", "window", "component", "name", "detail",
    "value", "unit", "missing",
)  # fmt: skip
"""`wl` is the load, in the unit of the target's primary workload; `window` counts from 0; `detail`
is which core, kind or process. Where the host had no such figure `value` is empty, and `missing`
says why.
"""


async def export_evidence(source: ExportSource, destination: Path) -> tuple[Path, ...]:
    """CSV: what was counted beside each sample.

    Writes `NAME.evidence.csv` into the folder `destination`, or the file of that name.
    It has the headings alone where a session was recorded before evidence was collected.
    """
    path = await asyncio.to_thread(file_in, destination, source.name, ".evidence.csv")
    view = await source.view()
    units = {name: one.unit for name, one in OBSERVABLES.items()}
    site = view.campaign.site_metrics if view.campaign is not None else ()
    units |= {metric.name.rpartition(":")[2]: metric.unit for metric in site}
    with csv_table(path, COLUMNS) as write:
        async for page in measurement_pages(source):
            rows = (row for measurement in page for row in _rows(measurement, view.caution, units))
            await asyncio.to_thread(write, rows)
    return (path,)


def _rows(
    measurement: Measurement, caution: str, units: Mapping[str, str]
) -> Iterable[tuple[object, ...]]:
    sample = measurement.sample
    point = sample.point
    of = (caution, sample.id, point.target, point.configuration.key, point.wl)
    for seen in measurement.observations:
        unit = units.get(seen.name, "")
        detail, missing = (seen.detail, "") if seen.value is not None else ("", seen.detail)
        yield (*of, seen.window, seen.component, seen.name, detail, seen.value, unit, missing)
