"""The event log that a screen shows: one line for every event that says something."""

from __future__ import annotations

from dataclasses import dataclass

LOG_LINES = 500
"""Events that the view keeps as text; the session file keeps all of them."""

Line = tuple[str, str, str]
"""Level and text of a line of the event log, and the sample that it leads to."""


@dataclass(frozen=True)
class LogLine:
    """One line of the event log; `seq` leads back to the event, `sample` to its sample."""

    seq: int
    at: float
    level: str
    text: str
    sample: str = ""


def by_whom(who: str) -> str:
    """Who did it, to be put behind what was done; nothing where nobody is named."""
    return f" by {who}" if who else ""


def because(why: str) -> str:
    """The reason, to be put behind what was done; nothing where none is given."""
    return f": {why}" if why else ""
