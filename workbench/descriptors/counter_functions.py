"""Published tables, taken apart by function: `FUNCTION_EVENT` becomes `EVENT` of one function.

Files of several functions need not have the same columns: those with the same are read together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from workbench.descriptors.counter_tables import events_of, headings_of, read_counters
from workbench.domain.errors import UsageError
from workbench.models.counter_rows import CounterRows


def files_with(files: Sequence[Path], kpi: str, function: str) -> list[Path]:
    """Those that have counters of a function. Raises `UsageError` where none has."""
    found = [file for file in files if _events(events_of(headings_of(file, kpi), kpi), function)]
    if found:
        return found
    named = sorted(
        {
            name.rpartition("_")[0]
            for file in files
            for name in events_of(headings_of(file, kpi), kpi)
            if "_" in name
        }
    )
    raise UsageError(
        f"no file has columns {function}_EVENT; they begin with {', '.join(named) or 'nothing'}",
        where="--unseen",
        remedy="Name the function as the columns do",
    )


def read_by_function(files: Sequence[Path], kpi: str, unseen: str) -> dict[str, CounterRows]:
    """Rows of every function that counts an event of `unseen`; experiments keep their numbers
    across functions, and are different ones in files with other columns.

    Raises `UsageError` where no file has columns of `unseen`, or one cannot be used.
    """
    events: set[str] = set()
    for file in files_with(files, kpi, unseen):
        events |= _events(events_of(headings_of(file, kpi), kpi), unseen)
    alike: dict[tuple[str, ...], list[Path]] = {}
    for file in files:
        alike.setdefault(tuple(headings_of(file, kpi)), []).append(file)
    parts: dict[str, list[CounterRows]] = {}
    first = 0
    for some in alike.values():
        read = read_counters(some, kpi)
        rows = replace(read.rows, groups=read.rows.groups + first)
        first += len(read.experiments)
        for function, own in _split(rows, events).items():
            parts.setdefault(function, []).append(own)
    return {function: _joined(own) for function, own in parts.items()}


def _events(columns: Sequence[str], function: str) -> set[str]:
    prefix = f"{function}_"
    return {name.removeprefix(prefix) for name in columns if name.startswith(prefix)}


def _split(rows: CounterRows, events: set[str]) -> dict[str, CounterRows]:
    """Columns of each function that count one of these events, named by the event alone."""
    columns: dict[str, dict[str, str]] = {}
    taken: set[str] = set()
    # An event may end as another does: `stalls-mem` before `mem`.
    for event in sorted(events, key=len, reverse=True):
        for name in rows.features:
            function = name.removesuffix(f"_{event}")
            if function != name and function and name not in taken:
                taken.add(name)
                columns.setdefault(function, {})[event] = name
    return {
        function: replace(rows.only(tuple(own.values())), features=tuple(own))
        for function, own in columns.items()
    }


def _joined(parts: list[CounterRows]) -> CounterRows:
    common = tuple(
        name for name in parts[0].features if all(name in part.features for part in parts)
    )
    kept = [part.only(common) for part in parts]
    return CounterRows(
        common,
        np.concatenate([part.x for part in kept]),
        np.concatenate([part.y for part in kept]),
        np.concatenate([part.groups for part in kept]),
    )
