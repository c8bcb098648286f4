"""The one thread that writes a session file, in grouped commits.

Whoever appends waits for the commit that holds its rows, and for no other: while one commit runs,
what arrives meanwhile gathers in the queue and becomes the next. No timer delays a lone event, and
a burst costs one commit instead of many.
"""

from __future__ import annotations

import queue
import stat
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

import duckdb

from workbench.domain.errors import SessionError
from workbench.domain.events import Event, Fact
from workbench.domain.samples import Measurement
from workbench.store.acknowledged import Acknowledged, Head, read
from workbench.store.database import Cursor, Database, sentence, write_ahead_log
from workbench.store.rows import COLUMNS, Row, TransactionRows

LONGEST_LOG = 2
"""Times the session file. A log that is longer costs more room than what it protects, and all who
open the session after a kill wait for it to be replayed."""
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


class Writer:
    """Owns the writing cursor of one session file.

    `configurations` and `samples` are what the file holds (`TransactionRows`); they are kept up to
    date.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        last_seq: int,
        head: Head,
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
        self._log = write_ahead_log(database.path)
        self._log_bytes = 0
        self._acknowledged = Acknowledged(database.path, head)
        try:
            if self._log.exists():
                self._acknowledged.go_on(last_seq, read(database.path))
            else:
                self._acknowledged.restart(last_seq)
        except OSError:
            self._acknowledged.close(remove=False)
            raise
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

    def forget(self) -> None:
        """The database is closed: what was acknowledged is in the file, unless a log is left."""
        clean = self._failure is None and not self._database.displaced and not self._log.exists()
        self._acknowledged.close(remove=clean)

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
        if stored:
            self._keep_log_short(cursor)

    def _store(self, cursor: Cursor, jobs: list[Append]) -> list[tuple[Append, Event]]:
        if self._failure is not None:
            raise self._failure
        rows = TransactionRows(self._configurations, self._samples)
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
            self._database.refuse_displaced()
            write(cursor, rows.tables)
            self._database.refuse_displaced()  # while it was written
            self._acknowledged.add(self.last_seq + 1, self.last_seq + len(stored), rows.tables)
            self.last_seq += len(stored)
            self._configurations |= rows.new_configurations
            self._samples |= rows.new_samples
        return stored

    def _checkpoint(self, cursor: Cursor, job: Checkpoint) -> None:
        if not job.done.set_running_or_notify_cancel():
            return
        try:
            self._merge(cursor)
        except (duckdb.Error, SessionError, OSError) as error:
            job.done.set_exception(sentence(error, self._database.path))
        else:
            job.done.set_result(None)

    def _merge(self, cursor: Cursor) -> None:
        """Put what is in the log into the file; there it needs no second copy."""
        if self._failure is not None:
            raise self._failure
        self._database.refuse_displaced()  # DuckDB would remove another file's log
        cursor.execute("CHECKPOINT")
        self._acknowledged.restart(self.last_seq)
        self._log_bytes = 0

    def _keep_log_short(self, cursor: Cursor) -> None:
        """After a commit: merge a log that is much longer than the file, that somebody removed, or
        that DuckDB has merged already; a new one may be read by those who may read the file."""
        assert self._database.path is not None
        before, self._log_bytes = self._log_bytes, 0
        with suppress(OSError):
            file, log = self._database.path.stat(), self._log.stat()
            self._log_bytes = log.st_size
            if stat.S_IMODE(log.st_mode) != stat.S_IMODE(file.st_mode):
                self._log.chmod(stat.S_IMODE(file.st_mode))
            if before <= self._log_bytes <= LONGEST_LOG * file.st_size:
                return
        with suppress(duckdb.Error, SessionError, OSError):  # the next commit tells what is wrong
            self._merge(cursor)


def write(cursor: Cursor, tables: Mapping[str, list[Row]]) -> None:
    """Put rows into their tables in one transaction."""
    cursor.execute("BEGIN")
    try:
        for table, values in tables.items():
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
