"""The flat table of samples, one row each, as CSV or Parquet."""

from __future__ import annotations

import asyncio
from pathlib import Path

from workbench.exports.base import ExportSource, file_in


async def export_csv(source: ExportSource, destination: Path) -> tuple[Path, ...]:
    """CSV: a row for each sample.

    Writes `NAME.csv` into the folder `destination`, or the file of that name.
    """
    path = await asyncio.to_thread(file_in, destination, source.name, ".csv")
    await source.write_samples(path, "csv")
    return (path,)


async def export_parquet(source: ExportSource, destination: Path) -> tuple[Path, ...]:
    """Parquet: a row for each sample, with types.

    Writes `NAME.parquet` into the folder `destination`, or the file of that name.
    """
    path = await asyncio.to_thread(file_in, destination, source.name, ".parquet")
    await source.write_samples(path, "parquet")
    return (path,)
