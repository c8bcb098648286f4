"""`SessionFile`: one lab sitting, as a DuckDB file or as a bundle read into memory."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

from workbench import files
from workbench.domain.errors import SessionError
from workbench.domain.events import Event, Fact, SessionCreated
from workbench.domain.projection import SessionView
from workbench.domain.sample_review import SampleDetail
from workbench.domain.samples import Measurement, Sample
from workbench.domain.sessions import DescriptorText, SessionSummary
from workbench.domain.timeline import FindMoment, Moment, TimeLine
from workbench.store import acknowledged, bundle, flat, kpi_rows, reading, schema, view_at_event
from workbench.store.acknowledged import Commit, Head
from workbench.store.database import (
    Cursor,
    Database,
    new_file,
    quoted,
    sentence,
    write_ahead_log,
)
from workbench.store.earlier_events import EarlierEvents
from workbench.store.rows import TransactionRows, payload_of
from workbench.store.writer import Append, Checkpoint, Writer, write

PAGE = 500
"""Samples that are read at once where all are wanted."""

T = TypeVar("T")


class SessionFile:
    """An open session. Reads run in threads, each with its own cursor; one thread writes.

    Attributes
    ----------
    path : the file, or the folder of a bundle.
    name : of the session, from the path.
    damage : a write-ahead log that could not be replayed, events that are missing; as sentences.
    warnings : the damage, and that it was migrated.
    """

    def __init__(
        self, path: Path, database: Database, damage: Sequence[str], migrated: Sequence[str] = ()
    ) -> None:
        self.path = path
        self.name = bundle.name_of(path)
        self.damage = tuple(damage)
        self.warnings = (*damage, *migrated)
        self._database = database
        self._writer: Writer | None = None
        self._past = EarlierEvents()
        with database.reading() as cursor:
            self._last_seq, _ = reading.last_seq(cursor)
            if not database.read_only:
                held = reading.configurations(cursor), set(reading.sample_ids(cursor))
                head = _head(cursor)
                self._writer = Writer(database, self.name, self._last_seq, head, *held)

    @classmethod
    async def create(cls, path: Path, created: SessionCreated, *, at: float) -> SessionFile:
        """A new session file whose first event is committed.

        Raises `SessionTaken` if there is one at `path`, `SessionError` if it cannot be written.
        """
        return await asyncio.to_thread(_create, path, created, at)

    @classmethod
    async def open(cls, path: Path, *, read_only: bool = False) -> SessionFile:
        """Open a session file, or a bundle's folder (always read-only, in memory).

        Nothing in it is executed. Raises `SessionError` if it is no session, is damaged, is open
        in another process or was written by a newer workbench.
        """
        return await asyncio.to_thread(open_session, path, read_only=read_only)

    @property
    def last_seq(self) -> int:
        """Number of the last committed event."""
        return self._writer.last_seq if self._writer else self._last_seq

    @property
    def broken(self) -> bool:
        """A write failed, or it was closed: only opening it anew helps."""
        return self._writer is None or self._writer.broken

    @property
    def displaced(self) -> bool:
        """It was written here, and another file, or none, lies in its place now."""
        return self._database.displaced

    def refuse_displaced(self) -> None:
        """Raise `SessionDisplaced` if it is."""
        self._database.refuse_displaced()

    async def write_again(self, path: Path) -> None:
        """Write everything that it holds as the session file `path`; of a displaced one, too.

        Raises `SessionError` if something lies there, or it cannot be written.
        """
        between = files.partial(path, "bundle")
        try:
            await asyncio.to_thread(_refuse_taken, path)
            await self.write_tables(between)
            await asyncio.to_thread(bundle.make_session, between, path)
        finally:
            await asyncio.to_thread(shutil.rmtree, between, ignore_errors=True)

    async def append(
        self, fact: Fact, *, at: float, measurement: Measurement | None = None
    ) -> Event:
        """Number a fact and store it, with what was measured; it is durable on return.

        Raises `SessionError` if the session is read-only or cannot be written (any more), or if
        the sample of that id is stored already.
        """
        done: Future[Event] = Future()
        self._writing().put(Append(fact, payload_of(fact), at, measurement, done))
        return await asyncio.wrap_future(done)

    async def view(self, until: int | None = None, focus: str = "") -> SessionView:
        """The session as a screen shows it, now or as of event `until`.

        Of a long session some samples are left out (`store.view_at_event`).
        """
        last = self.last_seq if until is None else min(until, self.last_seq)
        if last > view_at_event.LONG:
            return await self._read(
                lambda cursor: view_at_event.view(cursor, self.name, last, focus, self._past)
            )
        return await self._read(lambda cursor: reading.view(cursor, self.name, last))

    async def time_line(self) -> TimeLine:
        """From when to when it lasted, and what was decided."""
        return await self._read(
            lambda cursor: view_at_event.time_line(cursor, self.name, self._past)
        )

    async def moment(self, wanted: FindMoment) -> Moment | None:
        """The event that is asked for; None where there is none."""
        return await self._read(lambda cursor: view_at_event.moment(cursor, wanted))

    async def events(
        self, after: int = 0, limit: int = 1000, kinds: Sequence[str] = ()
    ) -> tuple[Event, ...]:
        """Events with a number above `after`, in order; of these kinds, or of all."""
        if kinds:
            return await self._read(
                lambda cursor: reading.events_of_kinds(cursor, self.name, after, limit, kinds)
            )
        return await self._read(lambda cursor: reading.events(cursor, self.name, after, limit))

    async def samples(self, offset: int = 0, limit: int = 1000) -> tuple[Sample, ...]:
        """Samples in the order they were taken."""
        return await self._read(lambda cursor: reading.samples(cursor, offset, limit))

    async def all_samples(self) -> tuple[Sample, ...]:
        """Every sample; read a page at a time, so that others read meanwhile."""
        samples: list[Sample] = []
        while page := await self.samples(len(samples), PAGE):
            samples += page
        return tuple(samples)

    async def detail(self, id: str) -> SampleDetail | None:
        """A sample by its id, with its windows and the decision on it."""
        return await self._read(lambda cursor: reading.detail(cursor, self.name, id))

    async def sample_counts(self) -> tuple[int, int]:
        """All samples, and those that are not valid."""
        return await self._read(reading.sample_counts)

    async def measurements(self, offset: int = 0, limit: int = 100) -> tuple[Measurement, ...]:
        """Samples with their windows and usage seconds, in the order they were taken."""
        return await self._read(lambda cursor: reading.measurements(cursor, offset, limit))

    async def descriptors(self) -> tuple[DescriptorText, ...]:
        """The descriptors as they were given."""
        return await self._read(reading.descriptors)

    async def summary(self) -> SessionSummary:
        """The session as one line of a list."""
        return await asyncio.to_thread(self.summarise)

    def summarise(self) -> SessionSummary:
        """What `summary` does, for a thread."""
        with self._database.reading() as cursor:
            found = reading.summary(cursor, self.name, self.path, live=self._database.live)
        return replace(found, warnings=self.damage)

    async def write_tables(self, folder: Path) -> tuple[Path, ...]:
        """Write the session as a bundle; the folder appears whole or not at all."""
        summary, caution = await self.summary(), (await self.view()).caution
        return await self._read(
            lambda cursor: bundle.write_bundle(cursor, folder, summary, caution)
        )

    async def write_samples(self, path: Path, format: Literal["csv", "parquet"]) -> None:
        """Write one row per sample (`workbench.domain.tables`)."""
        caution = (await self.view()).caution

        def work(cursor: Cursor) -> None:
            flat.write(reading.samples(cursor, 0, reading.ALL), path, format, caution)

        await self._read(work)

    def write_kpis(self, path: Path) -> None:
        """Write every KPI of every sample as Parquet (`store.kpi_rows`), for a thread."""
        with self._database.reading() as cursor:
            kpi_rows.write_rows(cursor, self.name, path)

    def everything(self) -> tuple[tuple[Event, ...], tuple[Measurement, ...]]:
        """All events and all measurements, for a thread."""
        with self._database.reading() as cursor:
            events = reading.events(cursor, self.name, 0, reading.ALL)
            return events, reading.measurements(cursor, 0, reading.ALL)

    async def checkpoint(self) -> None:
        """Merge the write-ahead log into the file."""
        done: Future[None] = Future()
        self._writing().put(Checkpoint(done))
        await asyncio.wrap_future(done)

    async def close(self) -> None:
        """Write what is queued and close the file. Idempotent."""
        await asyncio.to_thread(self.shut)

    def shut(self) -> None:
        """What `close` does, for a thread."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.stop()
            self._last_seq = writer.last_seq
        self._database.close()
        if writer is not None:
            writer.forget()

    def _writing(self) -> Writer:
        if self._writer is None:
            raise SessionError("is not open for writing", where=str(self.path))
        return self._writer

    async def _read(self, work: Callable[[Cursor], T]) -> T:
        def run() -> T:
            with self._database.reading() as cursor:
                return work(cursor)

        # Who is cancelled waits for the thread: a file that is read cannot be closed.
        reading = asyncio.ensure_future(asyncio.to_thread(run))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            await asyncio.wait([reading])
            if not reading.cancelled():
                reading.exception()  # nobody else asks for it
            raise


def _refuse_taken(path: Path) -> None:
    if path.exists():
        raise SessionError(
            "is taken: another file lies there",
            where=str(path),
            remedy="Move that one away, or choose another folder (--to FOLDER)",
        )


def _create(path: Path, created: SessionCreated, at: float) -> SessionFile:
    payload = payload_of(created)
    event = Event(1, at, bundle.name_of(path), created)
    with new_file(path) as database, database.reading() as cursor:
        steps = schema.migrations()
        schema.migrate(cursor, 0, schema.newest(steps), steps)
        rows = TransactionRows({}, frozenset())
        rows.add(event, payload, None)
        write(cursor, rows.tables)
    return _open_file(path, False, steps, made_here=True)


async def import_bundle(folder: Path, path: Path) -> SessionFile:
    """Make a session file of a bundle: all events, samples, windows and series.

    Raises `SessionTaken` if there is a file at `path`.
    """
    await asyncio.to_thread(bundle.make_session, folder, path)
    return await SessionFile.open(path)


def open_session(
    path: Path, *, read_only: bool = False, steps: Sequence[schema.Migration] | None = None
) -> SessionFile:
    """What `SessionFile.open` does, for a thread."""
    steps = steps or schema.migrations()
    if path.is_dir():
        return _open_bundle(path, steps)
    if path.is_file():
        return _open_file(path, read_only, steps)
    raise SessionError("is not there", where=str(path), remedy="See workbench ls")


def _open_bundle(path: Path, steps: Sequence[schema.Migration]) -> SessionFile:
    database = Database(None, read_only=True)
    try:
        bundle.load_bundle(path, database, steps)
        return SessionFile(path, database, ())
    except BaseException:
        database.close()
        raise


def _open_file(
    path: Path, read_only: bool, steps: Sequence[schema.Migration], *, made_here: bool = False
) -> SessionFile:
    """What is in a file that is `made_here`, just now, is known: listing its catalogue is half of
    what opening costs."""
    told = acknowledged.number(path)  # before the file: whoever writes it writes the number last
    database = Database(path, read_only=read_only)
    try:
        with database.reading() as cursor:
            if not made_here:
                schema.refuse_strangers(cursor, str(path))
            version = schema.version_of(cursor, str(path), steps)
            last, count = reading.last_seq(cursor)
            head = _head(cursor)
        old = version < schema.newest(steps)
        missing = acknowledged.read(path).after(last, head) if told > last and not old else ()
        damage = _bring_back(database, last, told, missing)
        if count != last:
            damage.insert(0, f"{last - count} of {last} events are missing from {path.name}")
        migrated = (_migrated(path, version, read_only, steps),) if old else ()
        if old and not read_only:
            database = _migrated_in_place(database, path, version, steps)
        elif old or (missing and read_only):
            database = _copied(database, path, version, missing, steps)
        return SessionFile(path, database, damage, migrated)
    except OSError as error:  # such as no room for the second copy
        database.close()
        raise sentence(error, path) from error
    except BaseException:
        database.close()
        raise


def _head(cursor: Cursor) -> Head:
    """The session by its first event, which no other has, and the schema of its rows."""
    first = cursor.execute("SELECT happened_at, payload FROM events WHERE seq = 1").fetchone()
    (version,) = reading.one(cursor, "SELECT max(version) FROM schema_migrations")
    return Head(hashlib.sha256(repr(first).encode()).hexdigest(), int(version))


def _bring_back(database: Database, last: int, told: int, missing: Sequence[Commit]) -> list[str]:
    """Store the commits that a damaged write-ahead log has lost, where the file is written.

    Returns sentences about what the log had lost, and what stays lost.
    """
    assert database.path is not None
    log, aside = write_ahead_log(database.path), database.set_aside
    damaged = told > last or aside is not None or database.bare is not None
    if not damaged:
        return []
    if told > last and aside is None and not database.read_only and log.exists():
        # DuckDB replayed a part and would cut off the rest with the next commit.
        aside = log.with_name(f"{log.name}.corrupt-{time.strftime('%Y%m%dT%H%M%S')}")
        with suppress(OSError):  # the copy serves a post-mortem; the session opens without it
            shutil.copy2(log, aside)
    if missing and not database.read_only:
        with database.reading() as cursor:
            for commit in missing:
                write(cursor, commit.tables)
    back = missing[-1].last if missing else last
    said = [f"the write-ahead log of {database.path.name} is damaged"]
    if back > last:
        said.append(f"events {last + 1} to {back} come from the second copy")
    if told > back:
        said.append(f"events {back + 1} to {told} are lost")
    elif not told:
        said.append(f"what was stored after event {last} is lost")
    else:
        said.append("no event is lost")
    if aside is not None:
        said.append(f"it lies in {aside.name}")
    return ["; ".join(said)]


def _migrated_in_place(
    database: Database, path: Path, version: int, steps: Sequence[schema.Migration]
) -> Database:
    """Migrate a file after copying it, closed and whole."""
    database.close()
    try:
        shutil.copy2(path, _backup(path, version))
    except OSError as error:
        raise sentence(error, _backup(path, version)) from error
    database = Database(path, read_only=False)
    try:
        with database.reading() as cursor:
            schema.migrate(cursor, version, schema.newest(steps), steps)
    except BaseException:
        database.close()
        raise
    return database


def _backup(path: Path, version: int) -> Path:
    return path.with_name(f"{path.name}.schema-{version}")


def _migrated(path: Path, version: int, read_only: bool, steps: Sequence[schema.Migration]) -> str:
    newest = schema.newest(steps)
    if read_only:
        return f"read as schema {version}, shown as schema {newest}"
    return (
        f"migrated from schema {version} to {newest}; "
        f"the file as it was is {_backup(path, version).name}"
    )


def _copied(
    database: Database,
    path: Path,
    version: int,
    missing: Sequence[Commit],
    steps: Sequence[schema.Migration],
) -> Database:
    """Read a file into memory, with the commits that its log has lost, and migrate it there."""
    copy = Database(None, read_only=True, shown=path)
    try:
        with copy.reading() as cursor:
            cursor.execute(f"ATTACH {quoted(database.bare or path)} AS old (READ_ONLY)")
            schema.fill(cursor, version, "SELECT * FROM old.{}".format, steps)
            cursor.execute("DETACH old")
            for commit in missing:
                write(cursor, commit.tables)
    except BaseException:
        copy.close()
        raise
    finally:
        database.close()
    return copy
