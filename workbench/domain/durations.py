"""Lab time as people say it."""

from __future__ import annotations

_UNITS = ((7 * 86400.0, "weeks"), (86400.0, "days"), (3600.0, "h"), (60.0, "min"))


def duration(seconds: float) -> str:
    """`45 s`, `7.4 min`, `3.1 days`, `5.6 weeks`: the largest unit that is there twice."""
    for length, unit in _UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
