"""What a screen shows line by line: events that say something, and what functions wrote."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.domain.events import LogWritten

LOG_LINES = 500
"""Events that the view keeps as text, and as many lines of logs; the session file keeps all."""

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
    component: str = ""
    """Who wrote it; empty: it is an event."""
    place: int = 0
    """Among the lines of one event."""


def lines_written(seq: int, at: float, fact: LogWritten) -> list[LogLine]:
    """A component's log line by line, after a word on what is missing of it."""
    log = fact.log
    lines = [(line.at or at, line.level, line.whole) for line in log.lines]
    if log.gap:
        lines.insert(0, (lines[0][0] if lines else at, "info", log.gap))
    return [
        LogLine(seq, when, level, text, fact.sample, log.component, place)
        for place, (when, level, text) in enumerate(lines)
    ]


def by_whom(who: str) -> str:
    """Who did it, to be put behind what was done; nothing where nobody is named."""
    return f" by {who}" if who else ""


def because(why: str) -> str:
    """The reason, to be put behind what was done; nothing where none is given."""
    return f": {why}" if why else ""
