"""Rows to domain values. Every function takes a cursor of the calling thread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from workbench.domain import codec
from workbench.domain.events import Event
from workbench.domain.parameters import Configuration, OperatingPoint, ParameterValue
from workbench.domain.projection import SessionView
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

_Record = tuple[Any, ...]
_ESTIMATED = ("p_sla", "p_sla_low", "p_sla_high")


def last_seq(cursor: Cursor) -> tuple[int, int]:
    """The last event's number, and how many events there are: equal unless some are missing."""
    last, count = one(cursor, "SELECT coalesce(max(seq), 0), count(*) FROM events")
    return int(last), int(count)


def events(cursor: Cursor, session: str, after: int, limit: int) -> tuple[Event, ...]:
    """Events with a number above `after`, in order."""
    rows = cursor.execute(
        "SELECT seq, type, happened_at, payload FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
        [after, limit],
    ).fetchall()
    return tuple(_event(session, *row) for row in rows)


def view(cursor: Cursor, session: str, until: int | None) -> SessionView:
    """The fold of the events, up to number `until`."""
    folded = SessionView(session)
    cursor.execute(
        "SELECT seq, type, happened_at, payload FROM events WHERE seq <= ? ORDER BY seq",
        [ALL if until is None else until],
    )
    while rows := cursor.fetchmany(500):
        for row in rows:
            folded.apply(_event(session, *row))
    return folded


def _event(session: str, seq: int, kind: str, at: float, payload: str) -> Event:
    head = {"seq": seq, "event": kind, "at": at, "session": session}
    return codec.event_from_plain(codec.loads(payload) | head)


def descriptors(cursor: Cursor) -> tuple[DescriptorText, ...]:
    rows = cursor.execute("SELECT path, text FROM descriptors ORDER BY position").fetchall()
    return tuple(DescriptorText(*row) for row in rows)


def sample_counts(cursor: Cursor) -> tuple[int, int]:
    """All samples, and those that are not valid."""
    taken, invalid = one(cursor, "SELECT count(*), count(*) FILTER (NOT valid) FROM samples")
    return int(taken), int(invalid)


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
        size_bytes=sum(f.stat().st_size for f in path.iterdir()) if bundle else path.stat().st_size,
        path=str(path),
        kind="bundle" if bundle else "session",
    )


def _state(cursor: Cursor, live: bool) -> SessionState:
    """The state that the last event of a run left; without an engine it cannot be running."""
    # Trials pause, too, and that says nothing of the campaign.
    rows = cursor.execute(
        "SELECT seq, type, happened_at, payload FROM events WHERE type IN ('RunStarted',"
        " 'RunPaused', 'RunContinued', 'RunFinished', 'TrialsStarted', 'TrialsFinished')"
        " ORDER BY seq"
    ).fetchall()
    if not rows:
        return "planned"
    folded = SessionView("")
    for row in rows:
        folded.apply(_event("", *row))
    return folded.state if live or folded.finished else "interrupted"


def sample_ids(cursor: Cursor) -> list[str]:
    return [str(id) for (id,) in cursor.execute("SELECT id FROM samples").fetchall()]


def configurations(cursor: Cursor) -> dict[str, int]:
    """Numbers of the stored configurations by what makes them the same (`rows.identity`)."""
    rows = cursor.execute("SELECT configuration, resources, workload FROM configurations")
    return {
        identity(Configuration(_values(resources), _values(workload))): int(number)
        for number, resources, workload in rows.fetchall()
    }


def samples(cursor: Cursor, offset: int, limit: int) -> tuple[Sample, ...]:
    """A page of samples in the order they were taken."""
    return tuple(sample for _, sample in _numbered_samples(cursor, offset, limit))


def measurements(cursor: Cursor, offset: int, limit: int) -> tuple[Measurement, ...]:
    """A page of samples with their windows and usage seconds."""
    page = _numbered_samples(cursor, offset, limit)
    span = _span(page)
    windows = _children(cursor, "windows", span)
    series = _children(cursor, "series", span)
    return tuple(
        Measurement(
            sample,
            tuple(_window(row) for row in windows[seq]),
            tuple(UsageSecond(*row) for row in series[seq]),
        )
        for seq, sample in page
    )


def _numbered_samples(cursor: Cursor, offset: int, limit: int) -> list[tuple[int, Sample]]:
    columns = ", ".join(f"s.{name}" for name in (*_ESTIMATED, *BYPASS, *SAMPLE_SCALARS))
    rows = cursor.execute(
        f"SELECT s.seq, s.id, s.target, c.resources, c.workload, s.wl, s.repetition, s.labels,"  # noqa: S608 - own names
        f" {columns}"
        " FROM samples s JOIN configurations c USING (configuration)"
        " ORDER BY s.seq LIMIT ? OFFSET ?",
        [limit, offset],
    ).fetchall()
    span = _span(rows)
    kpis = _children(cursor, "sample_kpis", span)
    usage = _children(cursor, "sample_usage", span)
    findings = _children(cursor, "findings", span)
    remarks = _children(cursor, "remarks", span)
    return [
        (seq, _sample(row, kpis[seq], usage[seq], findings[seq], remarks[seq]))
        for seq, *row in rows
    ]


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
    configuration = Configuration(_values(resources), _values(workload))
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


def _children(cursor: Cursor, table: str, span: tuple[int, int]) -> dict[int, list[_Record]]:
    """Rows of a sample's table by the sample's number, without number and position."""
    columns = ", ".join(f'"{name}"' for name in COLUMNS[table])
    rows = cursor.execute(
        f"SELECT {columns} FROM {table} WHERE seq BETWEEN ? AND ? ORDER BY seq, position",  # noqa: S608 - own names
        list(span),
    ).fetchall()
    found: dict[int, list[_Record]] = defaultdict(list)
    for seq, _, *values in rows:
        found[seq].append(tuple(values))
    return found


def _span(rows: Sequence[_Record]) -> tuple[int, int]:
    return (rows[0][0], rows[-1][0]) if rows else (0, 0)


def _values(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, ParameterValue]:
    return {
        key: value["number"] if value["text"] is None else value["text"]
        for key, value in stored.items()
    }


def one(cursor: Cursor, query: str) -> _Record:
    """The only row of a query that always has one."""
    row = cursor.execute(query).fetchone()
    assert row is not None
    return row
