"""What an export reads from, and where its files go."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, Protocol

from workbench import files
from workbench.domain.projection import SessionView
from workbench.domain.samples import Measurement, Sample

CsvRows = Callable[[Iterable[Iterable[object]]], None]
"""Writes rows, one after the other."""
PAGE: Final = 100
"""Samples that are in memory with their windows at once."""


class ExportSource(Protocol):
    """An open session, as far as exports need one; an open `SessionFile` is one."""

    name: str

    async def view(self, until: int | None = None) -> SessionView:
        """The session as a screen shows it."""
        ...

    async def samples(self, offset: int = 0, limit: int = 1000) -> tuple[Sample, ...]:
        """A page of samples in the order they were taken."""
        ...

    async def measurements(self, offset: int = 0, limit: int = 100) -> tuple[Measurement, ...]:
        """The same with windows and usage seconds."""
        ...

    async def write_tables(self, folder: Path) -> tuple[Path, ...]:
        """Write one Parquet file per table and a manifest: a bundle."""
        ...

    async def write_samples(self, path: Path, format: Literal["csv", "parquet"]) -> None:
        """Write the flat table, one row per sample."""
        ...


async def measurement_pages(source: ExportSource) -> AsyncIterator[tuple[Measurement, ...]]:
    """All that was measured, in the order it was taken; a page is in memory at once."""
    offset = 0
    while page := await source.measurements(offset, PAGE):
        yield page
        offset += len(page)


class Export(Protocol):
    """Registered under `workbench.exports`. Raises `WorkbenchError`s; replaces its own output."""

    async def __call__(self, source: ExportSource, destination: Path) -> tuple[Path, ...]: ...


@contextmanager
def csv_table(path: Path, columns: Sequence[str]) -> Iterator[CsvRows]:
    """Writes the rows of a CSV file under these headings, whole or not at all.

    Makes its folder. Raises `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.whole(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        yield table.writerows


def file_in(destination: Path, name: str, suffix: str) -> Path:
    """The file to write: `destination`, or a file in it where it is, or looks like, a folder."""
    if destination.is_dir() or not destination.suffix:
        return destination / f"{name}{suffix}"
    return destination
