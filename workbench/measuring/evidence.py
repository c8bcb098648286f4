"""From what was read once a second to what stands as evidence of each window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from workbench.domain.observations import OBSERVABLES, Observation
from workbench.measuring.records import Drive, Floats, ObservedKey

BUSIEST_THREADS = 4
"""Threads of a component that are told one by one; a function may have hundreds."""
MANY = frozenset({"thread_cpu_s"})
"""Names of which only the largest are kept."""


class Cut(Protocol):
    """A window of a drive, on the lab's clock."""

    @property
    def drive(self) -> Drive: ...
    @property
    def start_s(self) -> float: ...
    @property
    def end_s(self) -> float: ...


def observations(windows: Sequence[Cut]) -> tuple[Observation, ...]:
    """Every observation of every window, in the order in which it was read.

    Counters are read about once a second; between readings they are taken to grow evenly. One that
    went backwards, or that was lost in mid-drive, stands there without a value and with the reason.
    """
    found: list[Observation] = []
    for number, window in enumerate(windows):
        drive = window.drive
        rows = [*_read(window)]
        rows += [(key, value, "") for key, value in drive.standing.items()]
        for (component, name, detail), value, why in _largest(rows):
            found.append(Observation(number, component, name, value, why or detail))
        told = {(component, name) for (component, name, _), _, _ in rows}
        found += [
            Observation(number, component, name, None, why)
            for (component, name), why in drive.absent.items()
            if (component, name) not in told
        ]
    return tuple(found)


_Row = tuple[ObservedKey, float | None, str]


def _read(window: Cut) -> Iterator[_Row]:
    counters = [c for c in window.drive.counters if c.observed]
    if len(counters) < 2:
        return
    at_s = np.array([c.at_s for c in counters])
    keys = dict.fromkeys(key for c in counters for key in c.observed)
    for key in keys:
        there = np.array([key in c.observed for c in counters])
        if not there[there.argmax() :].all():
            yield key, None, "it could not be read to the end"
            continue
        # What began in mid-drive, such as a thread, had counted nothing before.
        column = np.array([c.observed.get(key, 0.0) for c in counters])
        yield key, *_value(key[1], column, at_s, window.start_s, window.end_s)


def _value(
    name: str, column: Floats, at_s: Floats, start_s: float, end_s: float
) -> tuple[float | None, str]:
    known = OBSERVABLES.get(name)
    if known is not None and known.kind == "level":
        within = (at_s >= start_s) & (at_s <= end_s)
        chosen = column[within] if within.any() else column[-1:]
        return float(chosen.mean()), ""
    falls = np.flatnonzero(np.diff(column) < -1e-6)
    if falls.size:
        i = int(falls[0])
        return None, f"it went back from {column[i]:g} to {column[i + 1]:g}"
    return float(np.diff(np.interp((start_s, end_s), at_s, column))[0]), ""


def _largest(rows: Iterable[_Row]) -> list[_Row]:
    """All rows, but of `MANY` only the largest of each component."""
    kept: list[_Row] = []
    many: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    for row in rows:
        (component, name, _), value, _ = row
        if name in MANY and value is not None:
            many[component, name].append(row)
        else:
            kept.append(row)
    for group in many.values():
        kept += sorted(group, key=lambda row: -(row[1] or 0.0))[:BUSIEST_THREADS]
    return kept
