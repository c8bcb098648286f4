"""A curve in one line of characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEVELS = "▁▂▃▄▅▆▇█"
ASCII_LEVELS = ".:-=+*%#"


def sparkline(
    values: list[float | None], scale: tuple[float, float] | None, ascii_only: bool
) -> str:
    """A character for each value; a blank where there is none."""
    levels = ASCII_LEVELS if ascii_only else LEVELS
    if scale is None:
        return " " * len(values)
    low, high = map(math.log, scale)
    drawn = ""
    for value in values:
        if value is None:
            drawn += " "
            continue
        share = (math.log(max(value, scale[0])) - low) / (high - low) if high > low else 0.0
        drawn += levels[min(len(levels) - 1, max(0, int(share * len(levels))))]
    return drawn


def bars(values: Sequence[float | None], most: float, ascii_only: bool) -> str:
    """The same from nothing up to ``most``, evenly: twice as high is twice as much."""
    levels = ASCII_LEVELS if ascii_only else LEVELS
    drawn = ""
    for value in values:
        if value is None:
            drawn += " "
            continue
        share = value / most if most > 0 else 0.0
        drawn += levels[min(len(levels) - 1, max(0, int(share * len(levels))))]
    return drawn


def over(
    curve: Sequence[tuple[float, float]], low: float, high: float, columns: int
) -> list[float | None]:
    """A curve at so many places from ``low`` to ``high``, spread by factors: the last point of each
    place, None where there is none."""
    found: list[float | None] = [None] * columns
    for x, value in curve:
        if low <= x <= high:
            found[column_of(x, low, high, columns)] = value
    return found


def column_of(x: float, low: float, high: float, columns: int) -> int:
    """The place of a positive ``x`` among them."""
    share = math.log(x / low) / math.log(high / low) if high > low > 0 else 0.0
    return min(columns - 1, max(0, round(share * (columns - 1))))
