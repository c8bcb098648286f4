"""What a screen shows line by line: events that say something, and what functions wrote."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

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


class Repeated(NamedTuple):
    """A line that was said so many `times`; it is the last of them, the first was at `since`."""

    line: LogLine
    times: int
    since: float


def in_a_row(lines: Iterable[LogLine]) -> list[Repeated]:
    """Lines that follow each other and say the same of the same sample, once each."""
    found: list[Repeated] = []
    for line in lines:
        if found and _says_again(line, found[-1].line):
            _, times, since = found.pop()
            found.append(Repeated(line, times + 1, since))
        else:
            found.append(Repeated(line, 1, line.at))
    return found


def said_once(lines: Iterable[LogLine]) -> list[Repeated]:
    """Every text once, in the order in which they were said last."""
    found: dict[tuple[str, str, str], Repeated] = {}
    for line in lines:
        said = line.component, line.level, line.text
        before = found.pop(said, Repeated(line, 0, line.at))
        found[said] = Repeated(line, before.times + 1, before.since)
    return list(found.values())


def _says_again(line: LogLine, before: LogLine) -> bool:
    same = line.text == before.text and line.sample == before.sample
    return same and line.component == before.component and line.level == before.level


def by_whom(who: str) -> str:
    """Who did it, to be put behind what was done; nothing where nobody is named."""
    return f" by {who}" if who else ""


def because(why: str) -> str:
    """The reason, to be put behind what was done; nothing where none is given."""
    return f": {why}" if why else ""
