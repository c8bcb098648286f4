"""What `workbench watch` has reported of running functions: the last minutes, in memory alone."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from workbench.domain.function_watches import (
    FunctionLook,
    FunctionWatch,
    FunctionWatches,
    ReportLook,
    WatchedFunction,
    WatchNote,
)

LOOKS = 600
"""Of a watch: ten minutes."""
ENDED_S = 600.0
NOTES = 50
MOST_WATCHES = 64
"""Of all sessions; beyond, the one that was silent for longest goes."""
LONGEST_TEXT = 400
"""Of words that another process reports, in characters."""


@dataclass
class _Reported:
    heard_at: float
    ended: bool = False
    looks: deque[FunctionLook] = field(default_factory=lambda: deque(maxlen=LOOKS))
    notes: deque[WatchNote] = field(default_factory=lambda: deque(maxlen=NOTES))


class ReportedWatches:
    """Of all sessions of a workspace."""

    def __init__(self) -> None:
        self._known: dict[WatchedFunction, _Reported] = {}

    def take(self, report: ReportLook, now: float) -> None:
        """`now` in seconds since the epoch. What ended is forgotten after `ENDED_S`."""
        for old in [k for k, w in self._known.items() if w.ended and w.heard_at < now - ENDED_S]:
            del self._known[old]
        watched = _bounded(report.watched)
        if watched not in self._known and len(self._known) >= MOST_WATCHES:
            del self._known[min(self._known, key=lambda each: self._known[each].heard_at)]
        here = self._known.setdefault(watched, _Reported(now))
        here.heard_at, here.ended = now, report.ended
        if report.look is not None:
            look = report.look
            if here.looks and look.at < here.looks[-1].at:  # a clock was set back
                here.looks.clear()
            here.looks.append(replace(look, why=_short(look.why), sign=_short(look.sign)))
        here.notes.extend(replace(note, text=_short(note.text)) for note in report.notes[-NOTES:])

    def latest(self, since: float) -> list[tuple[WatchedFunction, FunctionLook]]:
        """Of every watch that has not ended and was heard of since then, its last look; the one
        that was heard of last comes last."""
        known = sorted(self._known.items(), key=lambda each: each[1].heard_at)
        return [
            (watched, here.looks[-1])
            for watched, here in known
            if here.looks and not here.ended and here.heard_at >= since
        ]

    def of(self, session: str, since: float, now: float) -> FunctionWatches:
        """Those of a session with looks after `since`; all of them if that is yet to come."""
        since = since if since <= now else 0.0
        found = [
            FunctionWatch(
                watched,
                tuple(look for look in here.looks if look.at > since),
                tuple(here.notes),
                here.heard_at,
                here.ended,
            )
            for watched, here in sorted(self._known.items(), key=lambda each: each[1].ended)
            if watched.session == session
        ]
        return FunctionWatches(now, tuple(found))


def _bounded(watched: WatchedFunction) -> WatchedFunction:
    return replace(
        watched,
        session=_short(watched.session),
        function=_short(watched.function),
        kpi=_short(watched.kpi),
        place=_short(watched.place),
        sla=_short(watched.sla),
        accuracy=tuple(_short(each) for each in watched.accuracy[:8]),
    )


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
