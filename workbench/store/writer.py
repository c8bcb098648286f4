"""The one thread that writes a session file, in grouped commits.

Whoever appends waits for the commit that holds its rows, and for no other: while one commit runs,
what arrives meanwhile gathers in the queue and becomes the next. No timer delays a lone event, and
a burst costs one commit instead of many.
"""

from __future__ import annotations

import os
import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import duckdb

from workbench.domain.errors import SessionError
from workbench.domain.events import Event, Fact
from workbench.domain.samples import Measurement
from workbench.store.database import Cursor, Database, sentence
from workbench.store.rows import COLUMNS, Rows

LARGEST_COMMIT = 500
"""Events; keeps one commit under 20 ms or so when thousands are queued."""

_VALUE_REFUSED = (
    duckdb.DataError,
    duckdb.IntegrityError,
    duckdb.NotSupportedError,
    duckdb.ProgrammingError,
)
"""DuckDB refused a value and rolled back; everything else may have broken the instance."""


@dataclass(frozen=True)
class Append:
    """A fact to be numbered and stored; its JSON is made by who asks, off this thread's time."""

    fact: Fact
    payload: bytes
    at: float
    measurement: Measurement | None
    done: Future[Event]


@dataclass(frozen=True)
class Checkpoint:
    done: Future[None]


Job = Append | Checkpoint | None
"""None ends the thread."""


class Acknowledged:
    """The number of the last event that anyone was told is stored, in a file beside the session.

    DuckDB drops the damaged tail of a write-ahead log without a word; this number tells that
    events are missing then. It is written after each commit, removed by a clean close, and never
    synced: it may be behind after a power cut, never ahead.
    """

    def __init__(self, path: Path) -> None:
        self.path = acknowledged_path(path)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)

    def write(self, seq: int) -> None:
        os.pwrite(self._file, b"%020d\n" % seq, 0)

    def close(self, *, remove: bool) -> None:
        os.close(self._file)
        if remove:
            self.path.unlink(missing_ok=True)

    @staticmethod
    def read(path: Path) -> int:
        """The number; 0 where the session was closed cleanly or is a bundle."""
        try:
            return int(acknowledged_path(path).read_text())
        except (FileNotFoundError, ValueError):
            return 0


def acknowledged_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.acknowledged")


class Writer:
    """Owns the writing cursor of one session file.

    `configurations` and `samples` are what the file holds (`Rows`); they are kept up to date.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        last_seq: int,
        configurations: dict[str, int],
        samples: set[str],
    ) -> None:
        assert database.path is not None
        self.last_seq = last_seq
        self._database = database
        self._name = name
        self._configurations, self._samples = configurations, samples
        self._jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._failure: SessionError | None = None
        self._acknowledged = Acknowledged(database.path)
        self._acknowledged.write(last_seq)
        self._thread = threading.Thread(target=self._work, name=f"store {name}", daemon=True)
        self._thread.start()

    @property
    def broken(self) -> bool:
        """A write failed, and nothing more is written."""
        return self._failure is not None

    def put(self, job: Append | Checkpoint) -> None:
        """Queue a job; its future tells how it went."""
        if not self._thread.is_alive():
            raise SessionError("is closed", where=self._name, remedy="Open it again")
        self._jobs.put(job)

    def stop(self) -> None:
        """Finish what is queued, then end the thread. Blocks."""
        self._jobs.put(None)
        self._thread.join()
        self._acknowledged.close(remove=self._failure is None)

    def _work(self) -> None:
        cursor = self._database.cursor()
        ended = False
        while not ended:
            jobs = [self._jobs.get()]
            while len(jobs) < LARGEST_COMMIT and not self._jobs.empty():
                jobs.append(self._jobs.get())
            ended = None in jobs
            self._commit(cursor, [job for job in jobs if isinstance(job, Append)])
            for job in jobs:
                if isinstance(job, Checkpoint):
                    self._checkpoint(cursor, job)
        cursor.close()

    def _commit(self, cursor: Cursor, jobs: list[Append]) -> None:
        waiting = [job for job in jobs if job.done.set_running_or_notify_cancel()]
        try:
            stored = self._store(cursor, waiting)
        except Exception as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
            failure = sentence(error, self._database.path)
            if not isinstance(error, _VALUE_REFUSED):
                # After a failed write only the file is to be trusted, not what DuckDB holds.
                self._failure = failure
            for job in waiting:
                if not job.done.done():
                    job.done.set_exception(failure)
            return
        for job, event in stored:
            job.done.set_result(event)

    def _store(self, cursor: Cursor, jobs: list[Append]) -> list[tuple[Append, Event]]:
        if self._failure is not None:
            raise self._failure
        rows = Rows(self._configurations, self._samples)
        stored: list[tuple[Append, Event]] = []
        for job in jobs:
            event = Event(self.last_seq + len(stored) + 1, job.at, self._name, job.fact)
            try:
                rows.add(event, job.payload, job.measurement)
            except SessionError as error:
                job.done.set_exception(error)
                continue
            stored.append((job, event))
        if stored:
            write(cursor, rows)
            self.last_seq += len(stored)
            self._acknowledged.write(self.last_seq)
            self._configurations |= rows.new_configurations
            self._samples |= rows.new_samples
        return stored

    def _checkpoint(self, cursor: Cursor, job: Checkpoint) -> None:
        if not job.done.set_running_or_notify_cancel():
            return
        try:
            cursor.execute("CHECKPOINT")
        except duckdb.Error as error:
            job.done.set_exception(sentence(error, self._database.path))
        else:
            job.done.set_result(None)


def write(cursor: Cursor, rows: Rows) -> None:
    """Put rows into their tables in one transaction."""
    cursor.execute("BEGIN")
    try:
        for table, values in rows.tables.items():
            if values:
                with cursor.appender(table, columns=list(COLUMNS[table])) as appender:
                    appender.append_rows(values)
        cursor.execute("COMMIT")
    except BaseException:
        _roll_back(cursor)
        raise


def _roll_back(cursor: Cursor) -> None:
    try:
        cursor.execute("ROLLBACK")
    except duckdb.Error:
        # The transaction is gone with the write that failed, which is the error to report.
        return
