"""How a long session stood at any of its events, without folding all events before.

What happens with every sample (asked, taken, fitted) is counted and looked up in the tables, logs
are left out; all else is folded, as are the last events, sample by sample. So the view at event N
of a million costs about as much as that of the first thousand. Every function takes a cursor of
the calling thread.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.curation import SampleDecided
from workbench.domain.events import Event, ModelFitted, PointAsked, RunFinished, SampleTaken
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Breakpoint
from workbench.domain.projection import SessionView
from workbench.domain.timeline import (
    MARKED_EVENTS,
    FindMoment,
    Moment,
    TimeLine,
    TimeMark,
    mark_of,
)
from workbench.store import reading
from workbench.store.database import Cursor
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
OFTEN = "('PointAsked', 'SampleTaken', 'ModelFitted', 'LogWritten')"


Places = dict[tuple[str, int], ConfigurationView]
"""By target and the number that the file has for the configuration."""


def view(cursor: Cursor, session: str, until: int, focus: str = "") -> SessionView:
    """The view as of event `until`, as the fold would have it but for samples left out.

    The log begins with the tail, and what is asked is known of the tail only. `focus` is the key of
    the configuration that is looked at; empty: the one that is measured.
    """
    head = until - TAIL
    folded = SessionView(session)
    with ThreadPoolExecutor(1) as beside, cursor.cursor() as its_own:
        last_events = beside.submit(reading.events, its_own, session, head, TAIL)
        _fold_rare(cursor, folded, head)
        places = _count(cursor, folded, head)
        tail = last_events.result()
    measured = _asked_last(tail) or _measured(cursor, until)
    _look_up(cursor, folded, places, head, focus or measured)
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


def _fold_rare(cursor: Cursor, folded: SessionView, head: int) -> None:
    """Apply what is not said of every sample; trials are rare as well, their samples included."""
    spent_before = 0
    for event in _rare(cursor, folded.session, head):
        if isinstance(event.fact, RunFinished):
            folded.lab_s += _lab_s(cursor, spent_before, event.seq)
            spent_before = event.seq
        folded.apply(event)
    folded.lab_s += _lab_s(cursor, spent_before, head)


def _rare(cursor: Cursor, session: str, until: int) -> tuple[Event, ...]:
    """Looked for without their payloads: DuckDB would read those of all events."""
    rows = cursor.execute(
        f"SELECT seq FROM events WHERE seq <= $1 AND type NOT IN {OFTEN} UNION ALL"  # noqa: S608
        " SELECT seq FROM samples WHERE purpose <> 'profile' AND seq <= $1",
        [until],
    ).fetchall()
    return reading.events_of(cursor, session, [int(seq) for (seq,) in rows])


def _lab_s(cursor: Cursor, after: int, until: int) -> float:
    """What the campaign's samples between two events cost."""
    row = reading.one(
        cursor,
        f"SELECT coalesce(sum(lab_s), 0) FROM samples WHERE seq > {after} AND seq <= {until}"  # noqa: S608
        " AND purpose = 'profile'",
    )
    return float(row[0])


def _count(cursor: Cursor, folded: SessionView, head: int) -> Places:
    """The samples of every configuration as of event `head`, all of them left out so far."""
    numbers = {number: c for c, number in _configurations(cursor)}
    places: Places = {}
    counted = cursor.execute(
        "SELECT target, configuration, count(*) FROM samples"
        " WHERE seq <= ? AND purpose = 'profile' GROUP BY ALL",
        [head],
    ).fetchall()
    for target, number, count in counted:
        place = places[target, number] = folded.place(target, numbers[number])
        place.left_out = count
    for target, number, reason, count in cursor.execute(
        "SELECT target, configuration, coalesce(reason, ''), count(*) FROM"
        " (SELECT seq, target, configuration FROM samples"
        "  WHERE NOT valid AND seq <= $1 AND purpose = 'profile')"
        " LEFT JOIN (SELECT seq, reason FROM findings WHERE position = 0 AND seq <= $1) USING (seq)"
        " GROUP BY ALL",
        [head],
    ).fetchall():
        place = places[target, number]
        place.left_out_reasons = {**place.left_out_reasons, reason: count}
    _count_rejected(cursor, places, folded, head)
    return places


def _look_up(cursor: Cursor, folded: SessionView, places: Places, head: int, focus: str) -> None:
    """Those samples that are not left out, curves and breakpoints."""
    everything = sum(place.left_out for place in places.values()) <= POINTS
    for where, place in places.items():
        if everything or place.key == focus:
            most = POINTS if everything else FOCUS_POINTS
            place.samples += _latest(cursor, where, head, most, folded.decisions)
            place.left_out -= len(place.samples)
            folded.points += len(place.samples)
            left = Counter(place.left_out_reasons)
            left.subtract(sample.reason for sample in place.samples if not sample.valid)
            place.left_out_reasons = {reason: count for reason, count in left.items() if count}
    _look_up_fits(cursor, folded, places, head, everything, focus)


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
    cursor: Cursor,
    where: tuple[str, int],
    head: int,
    most: int,
    decided: Mapping[str, SampleDecided],
) -> tuple[SamplePoint, ...]:
    """The latest samples of one configuration, in order."""
    rows = cursor.execute(
        "SELECT seq FROM samples WHERE target = ? AND configuration = ? AND seq <= ?"
        " AND purpose = 'profile' ORDER BY seq DESC LIMIT ?",
        [*where, head, most],
    ).fetchall()
    return reading.points_of(cursor, [int(seq) for (seq,) in reversed(rows)], decided)


def _configurations(cursor: Cursor) -> Iterator[tuple[Configuration, int]]:
    rows = cursor.execute("SELECT configuration, resources, workload FROM configurations")
    for number, resources, workload in rows.fetchall():
        yield Configuration(reading.values(resources), reading.values(workload)), int(number)


def _look_up_fits(
    cursor: Cursor,
    folded: SessionView,
    places: Places,
    head: int,
    everything: bool,
    focus: str,
) -> None:
    """The last fit of each configuration; of those that are not looked at, its breakpoints."""
    rows = cursor.execute(
        "SELECT target, configuration, max(seq) FROM (SELECT seq, target, configuration FROM models"
        " UNION ALL SELECT seq, target, configuration FROM breakpoints)"
        " WHERE seq <= ? GROUP BY ALL",
        [head],
    ).fetchall()
    last = {(target, number): int(seq) for target, number, seq in rows}
    shown = {p for p in last if everything or (p in places and places[p].key == focus)}
    for event in reading.events_of(cursor, folded.session, [last[p] for p in shown]):
        if isinstance(fitted := event.fact, ModelFitted):
            place = folded.place(fitted.target, fitted.configuration)
            place.curve, place.breakpoints = fitted.curve, fitted.breakpoints
    others = [seq for place, seq in last.items() if place not in shown]
    found: dict[tuple[str, int], list[Breakpoint]] = defaultdict(list)
    for target, number, *figures in cursor.execute(
        "SELECT target, configuration, rule, kpi, state, wl, low, high, note FROM breakpoints"  # noqa: S608
        f" WHERE seq IN ({reading.listed(others)})"
    ).fetchall():
        if (view := places.get((target, number))) is not None:
            found[target, number].append(Breakpoint(target, view.configuration, *figures))
    for key, breakpoints in found.items():
        places[key].breakpoints = tuple(breakpoints)


def time_line(cursor: Cursor, session: str) -> TimeLine:
    """From when to when it lasted, and what was decided."""
    first, last, seq = reading.one(
        cursor,
        "SELECT coalesce(min(happened_at), 0), coalesce(max(happened_at), 0),"
        " coalesce(max(seq), 0) FROM events",
    )
    taken, _ = reading.sample_counts(cursor)
    names = ",".join(f"'{name}'" for name in MARKED_EVENTS)
    rows = cursor.execute(f"SELECT seq FROM events WHERE type IN ({names})").fetchall()  # noqa: S608
    marks = []
    told = SessionView(session)
    for event in reading.events_of(cursor, session, [int(seq) for (seq,) in rows]):
        told.apply(event)
        kind = mark_of(event.fact)
        line = told.log[-1] if told.log and told.log[-1].seq == event.seq else None
        if kind is not None and line is not None:
            marks.append(TimeMark(event.seq, event.at, kind, line.text))
    return TimeLine(float(first), float(last), int(seq), taken, tuple(marks))


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
    (at,) = reading.one(cursor, f"SELECT happened_at FROM events WHERE seq = {int(row[0])}")  # noqa: S608
    return Moment(int(row[0]), float(at))
