"""Rows to domain values. Every function takes a cursor of the calling thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from workbench.domain import codec
from workbench.domain.configurations import SamplePoint
from workbench.domain.events import Event
from workbench.domain.observations import Observation
from workbench.domain.parameters import Configuration, OperatingPoint, ParameterValue
from workbench.domain.projection import SessionView
from workbench.domain.sample_review import SampleDecided, SampleDetail, in_force
from workbench.domain.samples import (
    Bypass,
    Estimate,
    Finding,
    LatencyHistogram,
    Measurement,
    Remark,
    Sample,
    Usage,
    UsageSecond,
    Window,
)
from workbench.domain.sessions import DescriptorText, SessionState, SessionSummary
from workbench.store.database import Cursor
from workbench.store.rows import BYPASS, COLUMNS, SAMPLE_SCALARS, WINDOW_SCALARS, identity

ALL = 2**62
"""A limit that limits nothing."""
NEAR = 4096
"""Events apart that are fetched by one query: two of the pieces that DuckDB reads at once."""

_Record = tuple[Any, ...]
_ESTIMATED = ("p_sla", "p_sla_low", "p_sla_high")


def last_seq(cursor: Cursor) -> tuple[int, int]:
    """The last event's number, and how many events there are: equal unless some are missing."""
    last, count = one(cursor, "SELECT coalesce(max(seq), 0), count(*) FROM events")
    return int(last), int(count)


def events(cursor: Cursor, session: str, after: int, limit: int) -> tuple[Event, ...]:
    """Events with a number above `after`, in order."""
    query = "SELECT seq, type, happened_at, payload FROM events WHERE seq > ?"
    # Numbers have no gaps, so that a page is a range: DuckDB looks at nothing else. Only where
    # events were lost the next ones have to be searched for.
    rows = cursor.execute(f"{query} AND seq <= ? ORDER BY seq", [after, after + limit]).fetchall()
    if not rows:
        rows = cursor.execute(f"{query} ORDER BY seq LIMIT ?", [after, limit]).fetchall()
    return tuple(event(session, *row) for row in rows)


def events_of_kinds(
    cursor: Cursor, session: str, after: int, limit: int, kinds: Sequence[str]
) -> tuple[Event, ...]:
    """Events of these kinds with a number above `after`, in order."""
    # Looked for without their payloads: DuckDB would read those of all events.
    seqs = cursor.execute(
        "SELECT seq FROM events WHERE seq > ? AND type IN (SELECT unnest(?::VARCHAR[]))"
        " ORDER BY seq LIMIT ?",
        [after, list(kinds), limit],
    ).fetchall()
    return events_of(cursor, session, [int(seq) for (seq,) in seqs])


def events_of(cursor: Cursor, session: str, seqs: Sequence[int]) -> tuple[Event, ...]:
    """The events of these numbers, in order."""
    rows: list[_Record] = []
    for near in _neighbours(seqs):  # of what lies between far ones, DuckDB would read the payloads
        rows += cursor.execute(
            "SELECT seq, type, happened_at, payload FROM events"  # noqa: S608 - numbers
            f" WHERE seq {among(near)} ORDER BY seq"
        ).fetchall()
    return tuple(event(session, *row) for row in rows)


def view(cursor: Cursor, session: str, until: int | None) -> SessionView:
    """The fold of the events, up to number `until`."""
    folded = SessionView(session)
    cursor.execute(
        "SELECT seq, type, happened_at, payload FROM events WHERE seq <= ? ORDER BY seq",
        [ALL if until is None else until],
    )
    while rows := cursor.fetchmany(500):
        for row in rows:
            folded.apply(event(session, *row))
    return folded


def event(session: str, seq: int, kind: str, at: float, payload: str) -> Event:
    """A row of the events table as what it was made of."""
    return Event(seq, at, session, codec.fact_of(kind, payload))


def descriptors(cursor: Cursor) -> tuple[DescriptorText, ...]:
    rows = cursor.execute("SELECT path, text FROM descriptors ORDER BY position").fetchall()
    return tuple(DescriptorText(*row) for row in rows)


def sample_counts(cursor: Cursor) -> tuple[int, int]:
    """All samples, and those that are not valid."""
    taken, invalid = one(cursor, "SELECT count(*), count(*) FILTER (NOT valid) FROM samples")
    rejected = [id for id, d in decisions(cursor).items() if d.verdict == "rejected"]
    if rejected:
        (more,) = cursor.execute(
            "SELECT count(*) FROM samples WHERE valid AND id IN (SELECT unnest(?::VARCHAR[]))",
            [rejected],
        ).fetchone() or (0,)
        invalid += more
    return int(taken), int(invalid)


def _size(path: Path) -> int:
    """Bytes of a session file, or of a bundle's; 0 where it was removed while it is open."""
    files = list(path.iterdir()) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.exists())


def summary(cursor: Cursor, name: str, path: Path, *, live: bool) -> SessionSummary:
    """A session as one line; `live` tells whether a run may still be going on."""
    created, changed = one(
        cursor, "SELECT coalesce(min(happened_at), 0), coalesce(max(happened_at), 0) FROM events"
    )
    meta = dict(cursor.execute("SELECT key, value FROM meta").fetchall())
    targets = cursor.execute("SELECT target FROM targets ORDER BY position").fetchall()
    taken, invalid = sample_counts(cursor)
    bundle = path.is_dir()
    return SessionSummary(
        name=name,
        state=_state(cursor, live),
        campaign=str(meta.get("campaign", "")),
        lab=str(meta.get("lab", "")),
        targets=tuple(str(target) for (target,) in targets),
        samples=taken,
        invalid=invalid,
        created_at=float(created),
        changed_at=float(changed),
        size_bytes=_size(path),
        path=str(path),
        kind="bundle" if bundle else "session",
    )


def _state(cursor: Cursor, live: bool) -> SessionState:
    """The state that the last event of a run left; without an engine it cannot be running."""
    # Trials pause, too, and that says nothing of the campaign.
    rows = cursor.execute(
        "SELECT seq, type, happened_at, payload FROM events WHERE type IN ('RunStarted',"
        " 'PauseRequested', 'RunPaused', 'RunContinued', 'RunFinished',"
        " 'TrialsStarted', 'TrialsFinished') ORDER BY seq"
    ).fetchall()
    if not rows:
        return "planned"
    folded = SessionView("")
    for row in rows:
        folded.apply(event("", *row))
    return folded.state if live or folded.finished else "interrupted"


def sample_ids(cursor: Cursor) -> list[str]:
    return [str(id) for (id,) in cursor.execute("SELECT id FROM samples").fetchall()]


def configurations(cursor: Cursor) -> dict[str, int]:
    """Numbers of the stored configurations by what makes them the same (`rows.identity`)."""
    rows = cursor.execute("SELECT configuration, resources, workload FROM configurations")
    return {
        identity(Configuration(values(resources), values(workload))): int(number)
        for number, resources, workload in rows.fetchall()
    }


def samples(cursor: Cursor, offset: int, limit: int) -> tuple[Sample, ...]:
    """A page of samples in the order they were taken."""
    return tuple(sample for _, sample in _numbered_samples(cursor, offset, limit))


def measurements(cursor: Cursor, offset: int, limit: int) -> tuple[Measurement, ...]:
    """A page of samples with their windows and usage seconds."""
    page = _numbered_samples(cursor, offset, limit)
    which = f"BETWEEN {page[0][0]} AND {page[-1][0]}" if page else "IS NULL"
    windows = _children(cursor, "windows", which)
    series = _children(cursor, "series", which)
    observed = _children(cursor, "observations", which)
    return tuple(
        Measurement(
            sample,
            tuple(_window(row) for row in windows[seq]),
            tuple(UsageSecond(*row) for row in series[seq]),
            tuple(Observation(*row) for row in observed[seq]),
        )
        for seq, sample in page
    )


def detail(cursor: Cursor, session: str, id: str) -> SampleDetail | None:
    """A sample by its id, with its windows and the decision on it; None where there is none."""
    row = cursor.execute("SELECT seq FROM samples WHERE id = ?", [id]).fetchone()
    if row is None:
        return None
    which = f"= {int(row[0])}"
    ((seq, sample),) = _read_samples(cursor, which)
    windows = tuple(_window(window) for window in _children(cursor, "windows", which)[seq])
    observed = tuple(Observation(*row) for row in _children(cursor, "observations", which)[seq])
    series = tuple(UsageSecond(*row) for row in _children(cursor, "series", which)[seq])
    for event in reversed(_decided(cursor, session, ALL)):
        if isinstance(event.fact, SampleDecided) and event.fact.sample == id:
            return SampleDetail(sample, windows, event.fact, event.at, observed, series)
    return SampleDetail(sample, windows, None, None, observed, series)


def decisions(cursor: Cursor, until: int = ALL) -> dict[str, SampleDecided]:
    """The last decision on each sample, by its id, as of event `until`."""
    facts = (event.fact for event in _decided(cursor, "", until))
    return {fact.sample: fact for fact in facts if isinstance(fact, SampleDecided)}


def _decided(cursor: Cursor, session: str, until: int) -> tuple[Event, ...]:
    seqs = cursor.execute(
        "SELECT seq FROM events WHERE type = 'SampleDecided' AND seq <= ?", [until]
    ).fetchall()
    return events_of(cursor, session, [int(seq) for (seq,) in seqs])


def points_of(
    cursor: Cursor, seqs: Sequence[int], decided: Mapping[str, SampleDecided]
) -> tuple[SamplePoint, ...]:
    """What plots need of the samples that these events brought, in order."""
    which = among(seqs)
    kpis = _children(cursor, "sample_kpis", which)
    usage = _children(cursor, "sample_usage", which)
    findings = _children(cursor, "findings", which)
    rows = cursor.execute(
        "SELECT seq, id, wl, repetition, valid, labels, throttled_share FROM samples"  # noqa: S608 - numbers
        f" WHERE seq {which} ORDER BY seq"
    ).fetchall()
    points = (
        SamplePoint(
            id=id,
            wl=wl,
            repetition=repetition,
            kpis={name: Estimate(*figures) for name, *figures in kpis[seq]},
            usage={component: Usage(*figures) for component, *figures in usage[seq]},
            valid=valid,
            reason=findings[seq][0][0] if findings[seq] else "",
            labels=tuple(labels),
            throttled_share=throttled_share,
            measured=(findings[seq][0][0] if findings[seq] else "") or ("" if valid else "unknown"),
        )
        for seq, id, wl, repetition, valid, labels, throttled_share in rows
    )
    return tuple(
        point.decided(decided[point.id].verdict) if point.id in decided else point
        for point in points
    )


def _numbered_samples(cursor: Cursor, offset: int, limit: int) -> list[tuple[int, Sample]]:
    page = cursor.execute(
        "SELECT min(seq), max(seq) FROM (SELECT seq FROM samples ORDER BY seq LIMIT ? OFFSET ?)",
        [limit, offset],
    ).fetchone()
    if page is None or page[0] is None:
        return []
    return _read_samples(cursor, f"BETWEEN {page[0]} AND {page[1]}")


def _read_samples(cursor: Cursor, which: str) -> list[tuple[int, Sample]]:
    """Samples whose `seq` is `which` (an SQL predicate without its left side), in order."""
    columns = ", ".join(f"s.{name}" for name in (*_ESTIMATED, *BYPASS, *SAMPLE_SCALARS))
    rows = cursor.execute(
        f"SELECT s.seq, s.id, s.target, c.resources, c.workload, s.wl, s.repetition, s.labels,"  # noqa: S608 - own names
        f" {columns}"
        " FROM samples s JOIN configurations c USING (configuration)"
        f" WHERE s.seq {which} ORDER BY s.seq"
    ).fetchall()
    kpis = _children(cursor, "sample_kpis", which)
    usage = _children(cursor, "sample_usage", which)
    findings = _children(cursor, "findings", which)
    remarks = _children(cursor, "remarks", which)
    samples = (
        (seq, _sample(row, kpis[seq], usage[seq], findings[seq], remarks[seq]))
        for seq, *row in rows
    )
    decided = decisions(cursor)
    return [(seq, in_force(sample, decided)) for seq, sample in samples]


def _sample(
    row: Sequence[Any],
    kpis: list[_Record],
    usage: list[_Record],
    findings: list[_Record],
    remarks: list[_Record],
) -> Sample:
    id, target, resources, workload, wl, repetition, labels, *rest = row
    p_sla, rest = rest[: len(_ESTIMATED)], rest[len(_ESTIMATED) :]
    bypass, scalars = rest[: len(BYPASS)], rest[len(BYPASS) :]
    configuration = Configuration(values(resources), values(workload))
    return Sample(
        id=id,
        point=OperatingPoint(target, configuration, wl, repetition),
        kpis={name: Estimate(*figures) for name, *figures in kpis},
        usage={component: Usage(*figures) for component, *figures in usage},
        findings=tuple(Finding(*finding) for finding in findings),
        labels=tuple(labels),
        p_sla=None if p_sla[0] is None else Estimate(*p_sla),
        remarks=tuple(Remark(*remark) for remark in remarks),
        bypass=None if bypass[0] is None else Bypass(*bypass),
        **dict(zip(SAMPLE_SCALARS, scalars, strict=True)),
    )


def _window(row: _Record) -> Window:
    width = len(fields(LatencyHistogram))
    scalars = dict(zip(WINDOW_SCALARS, row, strict=False))
    service, response = row[-2 * width : -width], row[-width:]
    return Window(service=_histogram(service), response=_histogram(response), **scalars)


def _histogram(row: _Record) -> LatencyHistogram:
    growth, *lists = row
    return LatencyHistogram(growth, *map(tuple, lists))


def _children(cursor: Cursor, table: str, which: str) -> dict[int, list[_Record]]:
    """Rows of a sample's table by the sample's number, without number and position."""
    columns = ", ".join(f'"{name}"' for name in COLUMNS[table])
    rows = cursor.execute(
        f"SELECT {columns} FROM {table} WHERE seq {which} ORDER BY seq, position"  # noqa: S608 - own names
    ).fetchall()
    found: dict[int, list[_Record]] = defaultdict(list)
    for seq, _, *row in rows:
        found[seq].append(tuple(row))
    return found


def among(seqs: Sequence[int]) -> str:
    """The predicate that `seq` is one of these; with its range, by which DuckDB skips the rest."""
    if not seqs:
        return "IS NULL"
    return f"BETWEEN {min(seqs)} AND {max(seqs)} AND seq IN ({listed(seqs)})"


def _neighbours(seqs: Sequence[int]) -> list[list[int]]:
    """The numbers in order, those together that are less than `NEAR` apart."""
    groups: list[list[int]] = []
    for seq in sorted(seqs):
        if groups and seq - groups[-1][-1] < NEAR:
            groups[-1].append(seq)
        else:
            groups.append([seq])
    return groups


def listed(numbers: Sequence[int]) -> str:
    """Numbers as they stand in an `IN (...)`."""
    return ",".join(map(str, numbers)) or "NULL"


def values(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, ParameterValue]:
    """Parameter values as a configuration has them."""
    return {
        key: value["number"] if value["text"] is None else value["text"]
        for key, value in stored.items()
    }


def one(cursor: Cursor, query: str, given: Sequence[object] = ()) -> _Record:
    """The only row of a query that always has one."""
    row = cursor.execute(query, given).fetchone()
    assert row is not None
    return row
