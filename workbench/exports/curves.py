"""The curves that the screens draw, as a table: each fitted KPI over its loads, with its band."""

from __future__ import annotations

import asyncio
from pathlib import Path

from workbench.domain.errors import DataError
from workbench.domain.projection import SessionView
from workbench.domain.tables import CAUTION
from workbench.exports.base import ExportSource, csv_table, file_in

COLUMNS = (CAUTION, "target", "configuration", "kpi", "model", "wl", "mean", "low", "high")
"""`wl` is the load, in the unit of the target's primary workload; `low` and `high` are the band;
`caution` is what the session rests on that nobody measured: a simulation, assumed intervals."""


async def export_curves(source: ExportSource, destination: Path) -> tuple[Path, ...]:
    """CSV: the fitted curves, with their bands.

    Writes `NAME.curves.csv` into the folder `destination`, or the file of that name.

    Raises
    ------
    DataError
        If nothing is fitted yet: an empty table would be taken for an answer.
    """
    view = await source.view()
    if all(shown.curve is None for shown in view.configurations):
        raise DataError(
            f"no curve can be written: of its {view.samples_taken} samples too few are valid",
            where=source.name,
            remedy=f"See which are not, and why: workbench samples {source.name}",
        )
    path = await asyncio.to_thread(file_in, destination, source.name, ".curves.csv")
    await asyncio.to_thread(_write, path, view)
    return (path,)


def _write(path: Path, view: SessionView) -> None:
    with csv_table(path, COLUMNS) as write:
        for shown in view.configurations:
            curve = shown.curve
            if curve is None:
                continue
            of = (view.caution, shown.target, shown.configuration.key, curve.kpi, curve.model)
            # Stored loads of earlier releases went through a logarithm: 49.99999999999999.
            loads = (float(f"{wl:.12g}") for wl in curve.wl)
            figures = zip(loads, curve.mean, curve.low, curve.high, strict=True)
            write((*of, *row) for row in figures)
