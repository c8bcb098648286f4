"""What people type into a field, with its unit; each raises `ValueError` with a sentence."""

from __future__ import annotations

import math
import re

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(typed: str) -> float:
    """`90`, `90 s`, `5m`, `2 h`, `1d`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h|d|)\s*", typed)
    if match is None:
        raise ValueError(f"{typed!r} is not a duration; write it like 90s, 5m or 2h")
    return float(match[1]) * _SECONDS[match[2]]


def share(typed: str) -> float:
    """`50 %` or `0.5`, above 0 and at most all of it."""
    bare = typed.strip()
    percent = bare.endswith("%")
    try:
        value = float(bare.removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        value = math.nan
    if not 0.0 < value <= 1.0:
        hint = f"; did you mean {bare} %?" if not percent and 1.0 < value <= 100.0 else ""
        raise ValueError(f"{typed!r} is no share; write it like 50 % or 0.5{hint}")
    return value


def count(typed: str) -> int:
    """A whole number, not below 0."""
    if not typed.strip().isdecimal():
        raise ValueError(f"{typed!r} is not a whole number")
    return int(typed)
