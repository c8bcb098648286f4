"""The flat table of samples as a file, CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import duckdb

from workbench import files
from workbench.domain.samples import Sample
from workbench.domain.tables import CAUTION, flat_columns_and_rows
from workbench.store.database import SETTINGS, quoted, sentence


def write(
    samples: Sequence[Sample], path: Path, format: Literal["csv", "parquet"], caution: str = ""
) -> None:
    """Write one row per sample; the file appears whole or not at all.

    `caution` is what nobody may overlook who reads them: a first column, where there is any.
    """
    columns, rows = flat_columns_and_rows(samples)
    if caution:
        columns, rows = [CAUTION, *columns], [[caution, *row] for row in rows]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.sweep(path.parent, path.name)
        with files.whole(path) as partial:
            (_write_csv if format == "csv" else _write_parquet)(columns, rows, partial)
    except (duckdb.Error, OSError) as error:
        raise sentence(error, path) from error


def _write_csv(columns: list[str], rows: list[list[object]], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


def _write_parquet(columns: list[str], rows: list[list[object]], path: Path) -> None:
    types = [_column_type([row[place] for row in rows]) for place in range(len(columns))]
    names = ['"' + name.replace('"', '""') + '"' for name in columns]
    declared = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
    with duckdb.connect(":memory:", config=SETTINGS) as memory:
        memory.execute(f"CREATE TABLE flat ({declared})")
        with memory.appender("flat") as appender:
            appender.append_rows(rows)
        memory.execute(f"COPY flat TO {quoted(path)} (FORMAT parquet, COMPRESSION zstd)")


def _column_type(values: list[object]) -> str:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {bool} and kinds:
        return "BOOLEAN"
    if kinds <= {int} and kinds:
        return "BIGINT"
    return "DOUBLE" if kinds <= {int, float} else "VARCHAR"
