"""Figures as the tables of docs/science.md."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown; the first column to the left, the others to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def number(value: float) -> str:
    if math.isinf(value):
        return "never"
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile as order statistics: what never happened counts
    as infinite and is not averaged with what did."""
    if not values:
        return math.nan, math.nan, math.nan
    found = np.quantile(np.asarray(values, dtype=float), (0.25, 0.5, 0.75), method="inverted_cdf")
    return float(found[0]), float(found[1]), float(found[2])


def spread(values: Sequence[float]) -> str:
    """Median (quartiles)."""
    if not values:
        return "-"
    low, middle, high = quartiles(values)
    if math.isinf(middle) and math.isinf(low):
        return "never"
    return f"{number(middle)} ({number(low)}-{number(high)})"


def ratio(value: float, other: float) -> str:
    """As a share; a bound where one side was never reached."""
    if math.isnan(value) or math.isnan(other) or (math.isinf(value) and math.isinf(other)):
        return "-"
    if math.isinf(value):
        return "never"
    return "(reached)" if math.isinf(other) else f"{value / other:.3f}"
