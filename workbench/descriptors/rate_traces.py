"""A recorded trace of rates: a CSV of `time_s,rate`, each rate held until the next row's time."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from workbench.descriptors.document import is_file, printable
from workbench.descriptors.units import shown
from workbench.domain.errors import DescriptorError, Mistake
from workbench.domain.load_shapes import LONGEST_S, MOST_SEGMENTS, SHORTEST_S

HEADER = ("time_s", "rate")
LARGEST_TRACE = 256 * 1024
"""Bytes: `MOST_SEGMENTS` rows of 70 characters."""
UNEVEN = 0.01
"""Share of a step by which times may be off: they were written with few digits."""

_Row = tuple[int, float, float]
"""Line, time, rate."""


@dataclass(frozen=True)
class RateTrace:
    """Rates in whatever unit: only how they compare counts, as `wl` is their mean."""

    rates: tuple[float, ...]
    each_s: float


def read_trace(path: Path) -> RateTrace:
    """The trace of a file. Raises `DescriptorError` with what is wrong, by line and column."""
    file = printable(path)
    try:
        lines = _lines(path)
        mistakes = [Mistake(file, *where) for where in _wrong_cells(lines)]
        rows = [] if mistakes else [_row(line, cells) for line, cells in lines]
        mistakes += [Mistake(file, *where) for where in _wrong_times(rows)]
    except ValueError as error:
        mistakes = [Mistake(file, 1, 1, "file", str(error))]
    if mistakes:
        raise DescriptorError(mistakes)
    return RateTrace(tuple(rate for _, _, rate in rows), rows[1][1] - rows[0][1])


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """Cells of every line that has any, header left out. Raises `ValueError` with a sentence."""
    if not is_file(path):
        raise ValueError("does not exist; give the name of a CSV beside the campaign")
    try:
        with path.open("rb") as stream:
            raw = stream.read(LARGEST_TRACE + 1)
        if len(raw) > LARGEST_TRACE:
            raise ValueError(f"is larger than {LARGEST_TRACE // 1024} KiB; thin the trace out")
        lines = [
            [c.strip() for c in row] for row in csv.reader(raw.decode("utf-8-sig").split("\n"))
        ]
    except OSError as error:
        raise ValueError(f"cannot be read ({(error.strerror or 'unknown').lower()})") from None
    except (UnicodeDecodeError, csv.Error):
        raise ValueError("is no CSV in UTF-8") from None
    if tuple(lines[0]) != HEADER:
        first = shown(",".join(lines[0]))
        raise ValueError(f"begins with {first}, must begin with {','.join(HEADER)}")
    rows = [(line, cells) for line, cells in enumerate(lines[1:], start=2) if any(cells)]
    if not 2 <= len(rows) <= MOST_SEGMENTS:
        raise ValueError(f"has {len(rows)} rows of rates, must have 2 to {MOST_SEGMENTS}")
    return rows


def _row(line: int, cells: list[str]) -> _Row:
    return line, float(cells[0]), float(cells[1])


def _wrong_cells(lines: list[tuple[int, list[str]]]) -> Iterator[tuple[int, int, str, str]]:
    """Line, column, field and sentence of every cell that is no amount."""
    for line, cells in lines:
        if len(cells) != len(HEADER):
            yield line, 1, "file", f"has {len(cells)} cells, must have a time and a rate"
            continue
        for name, cell, column in zip(HEADER, cells, (1, len(cells[0]) + 2), strict=True):
            try:
                right = 0 <= float(cell) < math.inf
            except ValueError:
                right = False
            if not right:
                yield line, column, name, f"is {shown(cell)}, must be a number of at least 0"


def _wrong_times(rows: list[_Row]) -> Iterator[tuple[int, int, str, str]]:
    """The same of times that do not rise by even steps, and of a trace without load."""
    if not rows:
        return
    each_s = rows[1][1] - rows[0][1]
    for (before, early, _), (line, late, _) in pairwise(rows):
        step = late - early
        if step <= 0:
            yield line, 1, "time_s", f"is {late:g}, not after the {early:g} of line {before}"
        elif each_s > 0 and abs(step - each_s) > UNEVEN * each_s:
            yield (
                *(line, 1, "time_s"),
                f"is {step:g} s after line {before}, and the first two are {each_s:g} s apart; "
                "fill the gap, with 0 where nothing was asked",
            )
    whole_s = each_s * len(rows)
    if each_s > 0 and not SHORTEST_S <= whole_s <= LONGEST_S:
        yield (
            *(1, 1, "file"),
            f"lasts {whole_s:g} s, must last {SHORTEST_S:g} to {LONGEST_S:g} s: "
            "a point plays it several times",
        )
    if not any(rate for _, _, rate in rows):
        yield 1, 1, "file", "has no rate above 0"
