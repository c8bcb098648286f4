"""What anyone was told is stored: the last event's number, and a second copy of what is only in
DuckDB's write-ahead log so far.

The copy lies beside the session while it is open for writing, and goes with a clean close. DuckDB
drops the damaged tail of its log without a word; the number tells that events are missing then, and
the copy brings them back. Each commit adds one line before it is acknowledged; a checkpoint empties
it. It is never synced: it is there for damaged files and killed processes. After a power cut it may
be behind, never ahead.

The first line is the number, the second names the session and its schema, each further one is a
commit: the CRC-32 of its JSON, a space, the rows of its tables as JSON.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from workbench.store.rows import COLUMNS, Row

Tables = dict[str, list[Row]]

NUMBER = 21
"""Bytes of the first line."""


class Head(msgspec.Struct, frozen=True):
    """Whose commits these are."""

    session: str
    """`identity` of the file."""
    schema: int


class Commit(msgspec.Struct, frozen=True):
    """The rows of one transaction."""

    first: int
    last: int
    tables: Tables


_commit = msgspec.json.Decoder(Commit)
_head = msgspec.json.Decoder(Head)


@dataclass(frozen=True)
class Copy:
    """What a file of this kind holds."""

    last: int
    head: Head | None
    commits: Sequence[Commit]
    whole: int
    """Bytes up to the end of the last commit that is whole."""

    def after(self, last: int, head: Head) -> Sequence[Commit]:
        """The commits behind event `last` without a gap; none where they are another session's."""
        if self.head != head:
            return ()
        following: list[Commit] = []
        for commit in self.commits:
            if commit.first == last + 1:
                following.append(commit)
                last = commit.last
        return following


class Acknowledged:
    """The file beside a session that is open for writing."""

    def __init__(self, path: Path, head: Head) -> None:
        self.path = beside(path)
        self._head = head
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        self._end = 0
        self._copies = False
        """False once a commit could not be copied: what follows would have a gap before it."""

    def go_on(self, seq: int, copy: Copy) -> None:
        """The log of an earlier writer holds what is not in the session file yet, up to event
        `seq`; `copy` is what this file holds of it."""
        if copy.head != self._head or not copy.commits or copy.commits[-1].last != seq:
            self.restart(seq)
            return
        os.ftruncate(self._file, copy.whole)
        os.pwrite(self._file, b"%020d\n" % seq, 0)
        self._end, self._copies = copy.whole, True

    def restart(self, seq: int) -> None:
        """Everything up to event `seq` is in the session file itself."""
        os.pwrite(self._file, b"%020d\n" % seq, 0)
        self._end = NUMBER
        with suppress(OSError):  # without room for a copy the number has to do
            os.ftruncate(self._file, NUMBER)
            self._copies = True
            self._put(msgspec.json.encode(self._head) + b"\n")

    def add(self, first: int, last: int, tables: Mapping[str, list[Row]]) -> None:
        """A commit is in the write-ahead log."""
        if self._copies:
            text = msgspec.json.encode(Commit(first, last, dict(tables)))
            self._put(b"%08x %s\n" % (zlib.crc32(text), text))
        os.pwrite(self._file, b"%020d\n" % last, 0)

    def _put(self, line: bytes) -> None:
        try:
            self._copies = os.pwrite(self._file, line, self._end) == len(line)
        except OSError:
            self._copies = False
        self._end += len(line)

    def close(self, *, remove: bool) -> None:
        os.close(self._file)
        if remove:
            self.path.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.acknowledged")


def number(path: Path) -> int:
    """Of the last event acknowledged; 0 where the session was closed cleanly or is a bundle."""
    try:
        with beside(path).open("rb") as file:
            return int(file.read(NUMBER))
    except (OSError, ValueError):
        return 0


def read(path: Path) -> Copy:
    """All of it, up to the first line that is not whole; releases before 0.2 wrote the number."""
    try:
        _, *lines = beside(path).read_bytes().splitlines()
    except (OSError, ValueError):
        lines = []
    head, commits, whole = None, [], NUMBER
    with suppress(msgspec.DecodeError, ValueError, RecursionError):
        head = _head.decode(lines[0] if lines else b"")
        whole += len(lines[0]) + 1
        for line in lines[1:]:
            check, _, text = line.partition(b" ")
            if int(check, 16) != zlib.crc32(text):
                break
            commit = _commit.decode(text)
            if not commit.tables.keys() <= COLUMNS.keys():
                break
            commits.append(commit)
            whole += len(line) + 1
    return Copy(number(path), head, commits, whole)
