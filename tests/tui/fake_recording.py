"""What an engine tells of stored events: time line, moments, the view as of an event."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from workbench.domain.errors import UsageError
from workbench.domain.events import Event, SampleTaken
from workbench.domain.messages import Viewed, ViewSession
from workbench.domain.projection import SessionView
from workbench.domain.timeline import (
    LONGEST_GAP_S,
    FindMoment,
    GetTimeLine,
    Moment,
    TimeLine,
    TimeMark,
    mark_of,
)


def told(events: Sequence[Event], request: GetTimeLine | FindMoment | ViewSession) -> Any:
    taken = [event for event in events if isinstance(event.fact, SampleTaken)]
    match request:
        case GetTimeLine():
            marks = tuple(
                TimeMark(event.seq, event.at, kind, f"{kind} at {event.seq}")
                for event in events
                if (kind := mark_of(event.fact)) is not None
            )
            first, last = events[0], events[-1]
            return TimeLine(first.at, last.at, last.seq, len(taken), marks, _played(events))
        case ViewSession(session=session, until=until):
            view = SessionView(session)
            for event in events:
                if until is None or event.seq <= until:
                    view.apply(event)
            return Viewed(view)
        case FindMoment(at=float(at)):
            found = [event for event in events if event.at <= at][-1:]
        case FindMoment(sample_before=int(seq)):
            found = [event for event in taken if event.seq < seq][-1:]
        case FindMoment(sample_after=int(seq)):
            found = [event for event in taken if event.seq > seq][:1]
        case FindMoment(sample=int(number)):
            found = taken[number - 1 : number]
        case FindMoment(target=target, configuration=configuration):
            points = ((event, event.fact.sample.point) for event in taken)
            found = [e for e, p in points if (p.target, p.configuration) == (target, configuration)]
    if not found:
        raise UsageError("there is nothing at that place", where=request.session)
    return Moment(found[0].seq, found[0].at)


def _played(events: Sequence[Event]) -> tuple[tuple[float, float], ...]:
    times = [event.at for event in events]
    waits = [min(LONGEST_GAP_S, after - before) for before, after in pairwise(times)]
    return tuple(zip(times, accumulate(waits, initial=0.0), strict=True))
