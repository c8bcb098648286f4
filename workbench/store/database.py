"""DuckDB connections with care: limits, locks, and a write-ahead log that may be damaged.

DuckDB lets one process write a file and then no other even read it. Inside one process the
connections to a file must agree in their settings and share one instance, so a reader of a file
that this process writes joins the writer's instance.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from workbench import files
from workbench.domain.errors import SessionBusy, SessionDisplaced, SessionError, SessionTaken
from workbench.domain.housekeeping import RESCUE

Cursor = duckdb.DuckDBPyConnection

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    # Left alone, DuckDB takes every core and 80 % of the memory: it would disturb the measurement.
    "threads": 2,
    "memory_limit": "512MB",
    # Readable by DuckDB 1.5, the last line before 2.0, until 2.x has settled.
    "storage_compatibility_version": "v1.5.0",
    # A session is small: most of its column segments are far under the default of 256 KiB.
    "default_block_size": 16384,
    # Opening a session fetches and loads nothing.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}

READING_S = 30.0
"""How long who closes waits for those who read."""
_written_here: set[Path] = set()
"""Files that this process has open for writing."""
_opening = threading.Lock()


class Database:
    """A session's DuckDB instance; a cursor is taken for every thread that reads or writes.

    Attributes
    ----------
    shown : the path that sentences name.
    live : this process has the file open for writing, through this object or another.
    set_aside : where the write-ahead log went, if it could not be replayed.
    bare : a copy of the file without its log, where a reader found a log that cannot be replayed:
        who only reads renames nothing, and DuckDB takes a log that lies there, by any link.
    """

    def __init__(self, path: Path | None, *, read_only: bool, shown: Path | None = None) -> None:
        self.path = path.resolve() if path else None
        self.shown = shown or path
        self.read_only = read_only
        self.set_aside: Path | None = None
        self.bare: Path | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._place: tuple[int, int] | None = None
        self._lock = threading.Lock()
        self._readers, self._unread = 0, threading.Condition(self._lock)
        if self.path is None:
            # Without a file to spill beside, DuckDB would litter the current folder.
            self.live = False
            self._root = duckdb.connect(":memory:", config={**SETTINGS, "temp_directory": ""})
            return
        with _opening:
            self.live = self.path in _written_here
            if self.live and not read_only:
                raise SessionError(
                    "is being written by this process already",
                    where=str(path),
                    remedy="Wait until its run ends",
                )
            self._root = self._connect(self.path, read_only and not self.live)
            if not read_only:
                _written_here.add(self.path)
                self.live = True
                self._place = place_of(self.path)

    @property
    def displaced(self) -> bool:
        """Another file, or none, lies where the one lay that is being written.

        What was stored can still be read, for as long as it stays open.
        """
        return self._place is not None and place_of(self.path) != self._place

    def refuse_displaced(self) -> None:
        """Raise `SessionDisplaced` if it is."""
        if self.displaced:
            assert self.path is not None
            raise SessionDisplaced(
                "was replaced or removed while it was written",
                where=str(self.path),
                remedy=f"Write it again with `{RESCUE} {self.path.stem}`, "
                "elsewhere with --to FOLDER",
            )

    def _connect(self, path: Path, read_only: bool) -> Cursor:
        try:
            return duckdb.connect(path, read_only=read_only, config=SETTINGS)
        except duckdb.Error as error:
            if "replaying WAL" not in str(error):
                raise sentence(error, self.shown) from error
            if read_only:
                return self._connect_bare(path, error)
            log = write_ahead_log(path)
            aside = log.with_name(f"{log.name}.corrupt-{time.strftime('%Y%m%dT%H%M%S')}")
            try:
                log.rename(aside)
            except OSError:
                raise sentence(error, self.shown) from error
            try:
                connection = duckdb.connect(path, read_only=read_only, config=SETTINGS)
            except duckdb.Error:
                aside.rename(log)  # the log was not to blame: leave everything as it was found
                raise sentence(error, self.shown) from error
            self.set_aside = aside
            return connection

    def _connect_bare(self, path: Path, error: duckdb.Error) -> Cursor:
        """Read the file without its log."""
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="workbench-")
            bare = Path(self._folder.name) / path.name
            shutil.copyfile(path, bare)
            connection = duckdb.connect(bare, read_only=True, config=SETTINGS)
        except (duckdb.Error, OSError):
            self._remove_copy()  # the log was not to blame, or there is no room for a copy
            raise sentence(error, self.shown) from error
        self.bare = bare
        return connection

    def _remove_copy(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.cleanup()

    def cursor(self) -> Cursor:
        """A connection for one thread; the caller closes it."""
        with self._lock:
            return self._root.cursor()

    @contextmanager
    def reading(self) -> Iterator[Cursor]:
        """A cursor for the calling thread; DuckDB's errors become sentences."""
        cursor = None
        with self._lock:
            self._readers += 1
        try:
            cursor = self.cursor()
            yield cursor
        except duckdb.Error as error:
            raise sentence(error, self.shown) from error
        finally:
            if cursor is not None:
                cursor.close()
            with self._unread:
                self._readers -= 1
                self._unread.notify_all()

    def close(self) -> None:
        """Close; DuckDB merges the write-ahead log into the file. Idempotent.

        Whoever reads is waited for: whose answer nobody awaits any more still has a thread that
        reads, and DuckDB closes nothing that is read.
        """
        with self._unread:
            self._unread.wait_for(lambda: not self._readers, READING_S)
            if self.displaced:  # DuckDB would remove the log of the file that lies there now
                with suppress(duckdb.Error):  # it is closed already
                    self._root.execute("PRAGMA disable_checkpoint_on_shutdown")
            self._root.close()
            self._remove_copy()
            if not self.read_only and self.path is not None:
                _written_here.discard(self.path)


@contextmanager
def new_file(path: Path) -> Iterator[Database]:
    """An empty database that becomes the file `path` when the block ends well, and only then.

    Raises `SessionTaken` if there is such a file.
    """
    refuse_taken(path)
    partial = files.partial(path)
    try:
        files.make_folder(path.parent)
        database = Database(partial, read_only=False, shown=path)
        partial.chmod(files.FILE)  # and its log gets the same mode
    except (duckdb.Error, OSError) as error:
        raise sentence(error, path) from error
    try:
        yield database
        database.close()
        refuse_taken(path)
        partial.rename(path)
        files.sync_folder(path.parent)
    except (duckdb.Error, OSError) as error:
        raise sentence(error, path) from error
    finally:
        database.close()
        partial.unlink(missing_ok=True)
        write_ahead_log(partial).unlink(missing_ok=True)


def refuse_taken(path: Path) -> None:
    if path.exists():
        raise SessionTaken(
            f"there is a session {path.stem} already",
            where=str(path),
            remedy=f"Resume it (workbench resume {path.stem})",
        )


def place_of(path: Path | None) -> tuple[int, int] | None:
    """Device and inode of what lies there; None where nothing does."""
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found else None


def write_ahead_log(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")


def quoted(text: str | Path) -> str:
    """A text as an SQL literal, for the statements that take no parameters (COPY, ATTACH)."""
    return "'" + str(text).replace("'", "''") + "'"


def sentence(error: Exception, path: Path | None) -> SessionError:
    """What DuckDB or the system said about a session file, in our words."""
    if isinstance(error, SessionError):
        return error
    text = " ".join(str(error).split())
    where = str(path) if path else None
    if "Could not set lock" in text or "Conflicting lock" in text:
        holder = re.search(r"PID (\d+)", text)
        return SessionBusy(
            "is open in another process" + (f", PID {holder[1]}" if holder else ""),
            where=where,
            remedy="Ask the engine that has it, or stop that engine: workbench engine stop",
        )
    if "different configuration" in text:
        return SessionError(
            "is being read by this process", where=where, remedy="Try again in a moment"
        )
    if "not a valid DuckDB database" in text:
        return SessionError("is not a session file", where=where, remedy="See workbench ls")
    if re.search(r"newer version|storage version|version number", text):
        return SessionError(
            f"was written by a newer DuckDB than {duckdb.__version__}",
            where=where,
            remedy="Upgrade duckdb",
        )
    if re.search(r"No space left|File too large|Disk quota|Could not write", text, re.IGNORECASE):
        return SessionError(
            "cannot be written: the disk is full or a quota is reached",
            where=where,
            remedy="Free some space, then: workbench resume NAME",
        )
    if re.search(r"Permission denied|Read-only file system|not permitted", text):
        return SessionError(
            "cannot be opened or written: permission denied",
            where=where,
            remedy="Make folder and file writable, or choose another workspace (--workspace)",
        )
    if re.search(r"No such file|database does not exist", text):
        return SessionError("is not there", where=where, remedy="See workbench ls")
    if "invalidated" in text:
        return SessionError(
            "was closed by DuckDB after a failed write",
            where=where,
            remedy="See the error before this one, then: workbench resume NAME",
        )
    if re.search(r"checksum|[Cc]orrupt|read enough bytes|replaying WAL", text):
        return SessionError(
            f"is damaged ({text})", where=where, remedy="Restore it from a copy or a bundle"
        )
    says = error.strerror if isinstance(error, OSError) and error.strerror else text
    return SessionError(f"cannot be used: {says}", where=where)
