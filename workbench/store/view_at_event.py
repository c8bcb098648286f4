"""How a long session stood at any of its events, without folding all events before.

What happens with every sample (asked, taken, fitted) is counted and looked up in the tables, logs
are left out; all else is folded, as are the last events, sample by sample. So the view at event N
of a million costs about as much as that of the first thousand. Every function takes a cursor of
the calling thread.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.events import Event, ModelFitted, PointAsked, RunFinished, SampleTaken
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Breakpoint
from workbench.domain.projection import SessionView
from workbench.domain.sample_review import PointRequested, SampleDecided
from workbench.domain.timeline import (
    LONGEST_GAP_S,
    MARKED_EVENTS,
    FindMoment,
    Moment,
    TimeLine,
    TimeMark,
    mark_of,
)
from workbench.store import reading
from workbench.store.database import Cursor
from workbench.store.earlier_events import EarlierEvents, Place, Sums
from workbench.store.rows import identity

LONG = 3000
"""Events beyond which a session is not folded from its start."""
TAIL = 100
"""Events that are folded one by one all the same: the log's last lines, and what is asked now."""
POINTS = 1500
"""Samples up to which a view holds all of them. Beyond that it holds those of the configuration
that is looked at, and of the others what the tail brings: they are spread over the whole file."""
FOCUS_POINTS = 60
"""Of the one that is looked at, its latest."""
KNOTS = 400
"""Places of a time line at which it is known how long a replay takes; a screen has fewer cells."""

Places = dict[Place, ConfigurationView]


def view(
    cursor: Cursor, session: str, until: int, focus: str = "", past: EarlierEvents | None = None
) -> SessionView:
    """The view as of event `until`, as the fold would have it but for samples left out.

    The log begins with the tail, and what is asked is known of the tail only. `focus` is the key of
    the configuration that is looked at; empty: the one that is measured. `past` is what was found
    out for views before.
    """
    past = past or EarlierEvents()
    head = until - TAIL
    folded = SessionView(session)
    with ThreadPoolExecutor(1) as beside, cursor.cursor() as its_own:
        last_events = beside.submit(reading.events, its_own, session, head, TAIL)
        _fold_rare(cursor, folded, head, past)
        sums = past.sums(cursor, head)
        places = _count(cursor, folded, head, sums, past)
        tail = last_events.result()
    measured = _asked_last(tail) or _measured(cursor, until)
    everything, focus = sums.taken.total() <= POINTS, focus or measured
    if everything:
        _take_in(folded, places, _all(cursor, head, folded.decisions))
    else:
        _take_in(folded, places, _focused(cursor, folded, places, head, focus, past))
    _look_up_fits(cursor, folded, places, sums.fitted, everything, focus)
    folded.current = measured
    folded.log.clear()  # without its samples' lines it would have gaps
    folded.written_since = max(1, head + 1)
    for event in tail:
        folded.apply(event)
    return folded


def _asked_last(tail: Sequence[Event]) -> str:
    """Key of the configuration that is measured after these events; empty where none says."""
    for event in reversed(tail):
        match event.fact:
            case PointAsked(target=target, configuration=configuration):
                return f"{target}/{configuration.key}"
            case SampleTaken(sample=sample) if sample.purpose == "profile":
                return f"{sample.point.target}/{sample.point.configuration.key}"
    return ""


def _measured(cursor: Cursor, until: int) -> str:
    """Key of the configuration of the last sample; empty where there is none."""
    row = cursor.execute(
        "SELECT target, resources, workload FROM samples JOIN configurations USING (configuration)"
        " WHERE seq = (SELECT max(seq) FROM samples WHERE seq <= ? AND purpose = 'profile')",
        [until],
    ).fetchone()
    if row is None:
        return ""
    target, resources, workload = row
    return f"{target}/{Configuration(reading.values(resources), reading.values(workload)).key}"


def _fold_rare(cursor: Cursor, folded: SessionView, head: int, past: EarlierEvents) -> None:
    """Apply what is not said of every sample; trials are rare as well, their samples included."""
    spent_before = 0.0
    for event in reading.events_of(cursor, folded.session, past.rare(cursor, head)):
        if isinstance(event.fact, RunFinished):
            spent = past.lab_s(cursor, event.seq)
            folded.lab_s += spent - spent_before
            spent_before = spent
        folded.apply(event)
        wanted = event.fact
        if isinstance(wanted, PointRequested) and _is_measured(cursor, wanted, event.seq, head):
            folded.requested.pop()
    folded.lab_s += past.lab_s(cursor, head) - spent_before


def _is_measured(cursor: Cursor, wanted: PointRequested, since: int, head: int) -> bool:
    """Whether a point that event `since` requested has a sample as of event `head`."""
    rows = cursor.execute(
        "SELECT DISTINCT resources, workload FROM samples JOIN configurations USING"
        " (configuration) WHERE target = ? AND wl = ? AND repetition = ? AND purpose = 'profile'"
        " AND seq > ? AND seq <= ?",
        [wanted.target, wanted.wl, wanted.repetition, since, head],
    ).fetchall()
    return any(
        Configuration(reading.values(resources), reading.values(workload)) == wanted.configuration
        for resources, workload in rows
    )


def _count(
    cursor: Cursor, folded: SessionView, head: int, sums: Sums, past: EarlierEvents
) -> Places:
    """The samples of every configuration as of event `head`, all of them left out so far."""
    configuration = past.configurations(cursor, sums.taken)
    places: Places = {}
    for where, count in sums.taken.items():
        place = places[where] = folded.place(where[0], configuration(where[1]))
        place.left_out = count
    for (where, reason), count in sums.invalid.items():
        place = places[where]
        place.left_out_reasons = {**place.left_out_reasons, reason: count}
    _count_rejected(cursor, places, folded, head)
    return places


def _take_in(
    folded: SessionView, places: Places, found: Iterable[tuple[Place, tuple[SamplePoint, ...]]]
) -> None:
    """Those samples that are not left out."""
    for where, samples in found:
        place = places[where]
        place.samples += samples
        place.left_out -= len(place.samples)
        folded.points += len(place.samples)
        left = Counter(place.left_out_reasons)
        left.subtract(sample.reason for sample in place.samples if not sample.valid)
        place.left_out_reasons = {reason: count for reason, count in left.items() if count}


def _focused(
    cursor: Cursor, folded: SessionView, places: Places, head: int, focus: str, past: EarlierEvents
) -> Iterator[tuple[Place, tuple[SamplePoint, ...]]]:
    """The samples of the configuration that is looked at."""
    for where, place in places.items():
        if place.key == focus:
            after = past.begin_of_last(cursor, where, head, FOCUS_POINTS)
            yield where, _latest(cursor, where, after, head, folded.decisions)


def _count_rejected(cursor: Cursor, places: Places, folded: SessionView, head: int) -> None:
    """Samples that somebody rejected have that for a reason, whatever was measured."""
    ids = [id for id, decided in folded.decisions.items() if decided.verdict == "rejected"]
    if not ids:
        return
    for target, number, valid, reason in cursor.execute(
        "SELECT target, configuration, valid, coalesce(reason, '') FROM samples LEFT JOIN"
        " (SELECT seq, reason FROM findings WHERE position = 0) USING (seq)"
        " WHERE seq <= ? AND purpose = 'profile' AND id IN (SELECT unnest(?::VARCHAR[]))",
        [head, ids],
    ).fetchall():
        reasons = Counter(places[target, number].left_out_reasons)
        reasons["rejected"] += 1
        if not valid:
            reasons[reason] -= 1
        places[target, number].left_out_reasons = dict(+reasons)


def _latest(
    cursor: Cursor, where: Place, after: int, head: int, decided: Mapping[str, SampleDecided]
) -> tuple[SamplePoint, ...]:
    """The latest samples of one configuration after an event that is far enough back, in order."""
    rows = cursor.execute(
        "SELECT seq FROM samples WHERE target = ? AND configuration = ?"
        " AND seq > ? AND seq <= ? AND purpose = 'profile' ORDER BY seq DESC LIMIT ?",
        [*where, after, head, FOCUS_POINTS],
    ).fetchall()
    return reading.points_of(cursor, [int(seq) for (seq,) in reversed(rows)], decided)


def _all(
    cursor: Cursor, head: int, decided: Mapping[str, SampleDecided]
) -> Iterator[tuple[Place, tuple[SamplePoint, ...]]]:
    """The campaign's samples until an event by where they were taken, in order."""
    rows = cursor.execute(
        "SELECT seq, target, configuration FROM samples"
        " WHERE seq <= ? AND purpose = 'profile' ORDER BY seq",
        [head],
    ).fetchall()
    points = reading.points_of(cursor, [int(seq) for seq, _, _ in rows], decided)
    found: dict[Place, list[SamplePoint]] = defaultdict(list)
    for (_, target, number), point in zip(rows, points, strict=True):
        found[target, number].append(point)
    for where, samples in found.items():
        yield where, tuple(samples)


def _look_up_fits(
    cursor: Cursor,
    folded: SessionView,
    places: Places,
    last: Mapping[Place, int],
    everything: bool,
    focus: str,
) -> None:
    """The last fit of each configuration; of those that are not looked at, its breakpoints."""
    shown = {p for p in last if everything or (p in places and places[p].key == focus)}
    for event in reading.events_of(cursor, folded.session, [last[p] for p in shown]):
        if isinstance(fitted := event.fact, ModelFitted):
            place = folded.place(fitted.target, fitted.configuration)
            place.curve, place.breakpoints = fitted.curve, fitted.breakpoints
    others = [seq for place, seq in last.items() if place not in shown]
    found: dict[tuple[str, int], list[Breakpoint]] = defaultdict(list)
    for target, number, *figures in cursor.execute(
        "SELECT target, configuration, rule, kpi, state, wl, low, high, note FROM breakpoints"  # noqa: S608
        f" WHERE seq {reading.among(others)}"
    ).fetchall():
        if (view := places.get((target, number))) is not None:
            found[target, number].append(Breakpoint(target, view.configuration, *figures))
    for key, breakpoints in found.items():
        places[key].breakpoints = tuple(breakpoints)


def time_line(cursor: Cursor, session: str, past: EarlierEvents | None = None) -> TimeLine:
    """From when to when it lasted, and what was decided.

    Who asks for it goes to all places of the session next: `past` is made ready for that.
    """
    first, last, seq = reading.one(
        cursor,
        "SELECT coalesce(min(happened_at), 0), coalesce(max(happened_at), 0),"
        " coalesce(max(seq), 0) FROM events",
    )
    with ThreadPoolExecutor(1) as beside, cursor.cursor() as its_own:
        playing = beside.submit(_played, its_own)
        if past is not None and seq > LONG:
            past.learn(cursor, int(seq))
        played = playing.result()
    taken, _ = reading.sample_counts(cursor)
    rows = cursor.execute(
        "SELECT seq FROM events WHERE type IN (SELECT unnest(?::VARCHAR[]))", [list(MARKED_EVENTS)]
    ).fetchall()
    marks = []
    told = SessionView(session)
    for event in reading.events_of(cursor, session, [int(seq) for (seq,) in rows]):
        told.apply(event)
        kind = mark_of(event.fact)
        line = told.log[-1] if told.log and told.log[-1].seq == event.seq else None
        if kind is not None and line is not None:
            marks.append(TimeMark(event.seq, event.at, kind, line.text))
    return TimeLine(float(first), float(last), int(seq), taken, tuple(marks), played)


def _played(cursor: Cursor) -> tuple[tuple[float, float], ...]:
    """When the session came to at most `KNOTS` places, and after how long its replay does."""
    import numpy as np  # of all that reads sessions only this needs it

    times = cursor.execute("SELECT happened_at FROM events ORDER BY seq").fetchnumpy()
    at = np.asarray(times["happened_at"], dtype=float)
    if not len(at):
        return ()
    played_s = np.cumsum(np.clip(np.diff(at, prepend=at[0]), 0.0, LONGEST_GAP_S))
    knots = np.searchsorted(played_s, np.linspace(0.0, played_s[-1], KNOTS))
    chosen = np.unique(np.append(knots, len(at) - 1))
    return tuple(zip(at[chosen].tolist(), played_s[chosen].tolist(), strict=True))


def moment(cursor: Cursor, wanted: FindMoment) -> Moment | None:
    """The event that is asked for; None where there is none."""
    given: list[object]
    match wanted:
        case FindMoment(at=float(at)):
            query, given = "SELECT max(seq) FROM events WHERE happened_at <= ?", [at]
        case FindMoment(sample_after=int(seq)):
            query, given = "SELECT min(seq) FROM samples WHERE seq > ?", [seq]
        case FindMoment(sample_before=int(seq)):
            query, given = "SELECT max(seq) FROM samples WHERE seq < ?", [seq]
        case FindMoment(sample=int(number)):
            query = "SELECT seq FROM samples ORDER BY seq LIMIT 1 OFFSET ?"
            given = [max(0, number - 1)]
        case FindMoment(target=str(target), configuration=Configuration() as configuration):
            query = "SELECT min(seq) FROM samples WHERE target = ? AND configuration = ?"
            number = reading.configurations(cursor).get(identity(configuration), -1)
            given = [target, number]
        case _:
            return None
    row = cursor.execute(query, given).fetchone()
    if row is None or row[0] is None:
        return None
    (at,) = reading.one(cursor, "SELECT happened_at FROM events WHERE seq = ?", [row[0]])
    return Moment(int(row[0]), float(at))
