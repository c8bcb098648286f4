"""sftp: the exports folder of the workspace, to read, and nothing else of the host."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NoReturn, Protocol

import asyncssh

MOST_BYTES = 1 << 18
"""Of one read; a client may ask for any number."""
READ_ONLY = 0x01
"""SSH_FXF_READ, the only flag that a file may be opened with."""


class Reader(Protocol):
    """Who is at the other end."""

    def note(self, what: str, **facts: str) -> None:
        """Write to the audit log."""
        ...

    def touch(self) -> None:
        """It is not idle."""
        ...

    async def flowing(self) -> None:
        """Wait until what was sent is read; raises `TimeoutError` where nothing is."""
        ...

    def close_channel(self) -> None:
        """It has one channel less."""
        ...


class ExportFiles(asyncssh.SFTPServer):
    """Confined twice: `..` ends at the folder, and what a link inside it names must lie inside."""

    def __init__(self, channel: asyncssh.SSHServerChannel[bytes], root: Path, reader: Reader):
        super().__init__(channel, os.fsencode(root.resolve()))
        self._root = root.resolve()
        self._reader = reader

    def map_path(self, path: bytes) -> bytes:
        """Where a client's path lies. Raises `SFTPPermissionDenied` where that is outside."""
        self._reader.touch()
        depth = 0
        for part in path.split(b"/"):
            depth += -1 if part == b".." else int(part not in (b"", b"."))
            if depth < 0:
                self._refuse(path)
        real = Path(os.fsdecode(super().map_path(path))).resolve()
        if not real.is_relative_to(self._root):
            self._refuse(path)
        return os.fsencode(real)

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> Any:
        """Open a regular file for reading."""
        del attrs
        if pflags & ~READ_ONLY:
            self._refuse(path)
        file = os.open(self.map_path(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            self._refuse(path)
        self._reader.note("file_read", path=_shown(path))
        return os.fdopen(file, "rb", buffering=0)

    async def read(self, file_obj: Any, offset: int, size: int) -> bytes:
        """A block, once the client has read the ones before."""
        self._reader.touch()
        await self._reader.flowing()
        file_obj.seek(offset)
        data: bytes = file_obj.read(min(size, MOST_BYTES))
        return data

    async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
        """What lies in a folder, links as links."""
        with os.scandir(self.map_path(path)) as entries:
            for entry in entries:
                attrs = asyncssh.SFTPAttrs.from_local(entry.stat(follow_symlinks=False))
                yield asyncssh.SFTPName(entry.name, attrs=attrs)

    def _refuse(self, path: object = b"", *_: object, **__: object) -> NoReturn:
        self._reader.note("file_refused", path=_shown(path))
        raise asyncssh.SFTPPermissionDenied("exports can be read, and nothing else")

    _refused: Any = _refuse
    open56 = write = setstat = lsetstat = fsetstat = remove = mkdir = rmdir = _refused
    rename = posix_rename = readlink = symlink = link = _refused
    lock = unlock = statvfs = fstatvfs = fsync = _refused

    def exit(self) -> None:
        """The transfer is over."""
        self._reader.close_channel()


def _shown(path: object) -> str:
    return path.decode(errors="replace") if isinstance(path, bytes) else ""
