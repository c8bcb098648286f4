"""What the figures of a request may be: one rule for the command line, screens and the link."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from workbench.domain.errors import UsageError

LARGEST_SEED = 2**63 - 1
"""No larger number crosses the link."""
MOST_LOADS = 1000
"""Loads of one canary, all of which are planned before the first."""
MOST_HOSTS = 1000
"""Of a fleet that is planned with."""
CENTURY_S = 100 * 365.25 * 86400
SLOWEST_PACE = 0.01
LONGEST_NAME = 4095
"""Bytes of a path, the longest that a name may stand for."""


def confidence_of(written: str) -> float:
    """A share from `0.99`, `99 %` or `99`. Raises `ValueError` for what is no finite number."""
    percent = written.strip().removesuffix("%")
    number = float(percent.strip().replace(",", "."))
    if not math.isfinite(number):  # JSON has neither, and the engine is to name the field
        raise ValueError(written)
    return number / 100 if number > 1.0 or percent != written.strip() else number


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, both allowed; what a figure is and how to write it, for sentences."""

    low: float
    high: float
    what: str
    remedy: str
    typed: str = ""
    """The option that a user gave, where the field is called otherwise."""


_DURATION = Range(
    math.nextafter(0.0, 1.0),
    CENTURY_S,
    "a time",
    "Write it like 90s, 30m or 2h, or leave it out",
    "--budget",
)
_COUNT = "Give a whole number from 1"
RANGES: Mapping[str, Range] = {
    "seed": Range(0, LARGEST_SEED, "a seed", f"Give a whole number from 0 to {LARGEST_SEED}"),
    "pace": Range(SLOWEST_PACE, 1e9, "a pace", f"Give {SLOWEST_PACE:g} or more, or leave it out"),
    "budget_s": _DURATION,
    "more_s": _DURATION,
    "limit": Range(1, LARGEST_SEED, "a limit", _COUNT),
    "offset": Range(0, LARGEST_SEED, "an offset", "Give a whole number from 0"),
    "after": Range(0, LARGEST_SEED, "an event's number", "Give a whole number from 0"),
    "most_hosts": Range(
        0, MOST_HOSTS, "a number of hosts", f"Give a whole number from 0 to {MOST_HOSTS}", "--hosts"
    ),
    "steps": Range(
        0, MOST_LOADS, "a number of steps", f"Give a whole number from 0 to {MOST_LOADS}", "--steps"
    ),
}
"""By the field of a request, which is also the option of a command."""
PAGES = ("limit", "offset", "after")
"""Of a request itself: what it tells of may have a `limit` that is an SLA's, in a KPI's unit."""
NAMES = ("session", "campaign", "name", "first", "second", "lab", "chain", "path", "folder")
"""Fields that are names or paths."""


def check(field: str, value: float, where: str = "") -> None:
    """Raise `UsageError` where a figure of that name cannot be that; `where`: as it was asked."""
    allowed = RANGES[field]
    where = where or allowed.typed or field
    if allowed is _DURATION and value == 0:
        raise UsageError("is no time at all", where=where, remedy=allowed.remedy)
    if allowed is _DURATION and value > allowed.high:
        raise UsageError("is more than a century", where=where, remedy=allowed.remedy)
    if not allowed.low <= value <= allowed.high:  # so that NaN is refused, too
        raise UsageError(f"{value:g} is not {allowed.what}", where=where, remedy=allowed.remedy)


def check_request(request: Any) -> None:
    """Raise `UsageError` naming the first field of a request that cannot be what it is."""
    _check_fields(request, set(RANGES))


def _check_fields(told: Any, ranged: Set[str]) -> None:
    for field in fields(told):
        value = getattr(told, field.name)
        if field.name in ranged and isinstance(value, int | float):
            check(field.name, value)
        if field.name in NAMES:
            check_name(field.name, value)
        if is_dataclass(value):
            _check_fields(value, ranged - set(PAGES))


def check_name(field: str, value: object) -> None:
    """Raise `UsageError` for a text that neither a name nor a path can be."""
    if isinstance(value, str) and len(value.encode(errors="replace")) > LONGEST_NAME:
        raise UsageError(
            f"'{value[:40]}...' has {len(value)} letters, and no name or path has so many",
            where=field,
        )
