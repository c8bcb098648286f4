"""Archives that a Linux kernel unpacks into its first file system: cpio, format `newc`.

Format: Linux, Documentation/driver-api/early-userspace/buffer-format.rst. Numbers are eight
hexadecimal digits, names and contents are padded to four bytes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from workbench.domain.errors import LabError

LARGEST_FILE = 0xFFFFFFFF
"""Bytes; the format has 32 bits for it."""
PIECE = 1 << 20
_END = "TRAILER!!!"


class CpioWriter:
    """Writes entries as they are named; all belong to root and carry no time, so that the same
    entries make the same bytes.

    Parameters
    ----------
    out : open for writing; stays open.
    """

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._entries = 0

    def __enter__(self) -> CpioWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._head(_END, 0, 0)

    def folder(self, name: str, mode: int = 0o755) -> None:
        self._head(name, stat.S_IFDIR | mode, 0)

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self._head(name, stat.S_IFREG | mode, len(content))
        self._pad(self._out.write(content))

    def link(self, name: str, to: str) -> None:
        data = os.fsencode(to)
        self._head(name, stat.S_IFLNK | 0o777, len(data))
        self._pad(self._out.write(data))

    def device(self, name: str, major: int, minor: int, mode: int = 0o600) -> None:
        """A character device."""
        self._head(name, stat.S_IFCHR | mode, 0, (major, minor))

    def tree(self, top: Path, leave_out: frozenset[str] = frozenset()) -> None:
        """All below `top`: folders, files and links, by name; what is something else is left out.

        Parameters
        ----------
        leave_out : paths relative to `top`; nothing below them is taken either.

        Raises
        ------
        LabError
            For a file that is too large for the format, or that changes while it is read.
        """
        for path in sorted(top.iterdir()):
            self._below(top, path, leave_out)

    def _below(self, top: Path, path: Path, leave_out: frozenset[str]) -> None:
        name = str(path.relative_to(top))
        if name in leave_out:
            return
        found = path.lstat()
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISLNK(found.st_mode):
            self.link(name, str(path.readlink()))
        elif stat.S_ISDIR(found.st_mode):
            self.folder(name, mode)
            for below in sorted(path.iterdir()):
                self._below(top, below, leave_out)
        elif stat.S_ISREG(found.st_mode):
            self._copy(path, name, mode, found.st_size)

    def _copy(self, path: Path, name: str, mode: int, size: int) -> None:
        if size > LARGEST_FILE:
            raise LabError("is too large for a guest's file system", where=str(path))
        self._head(name, stat.S_IFREG | mode, size)
        left = size
        with path.open("rb") as file:
            while left and (piece := file.read(min(left, PIECE))):
                left -= self._out.write(piece)
        if left:
            raise LabError("became shorter while it was read", where=str(path))
        self._pad(size)

    def _head(self, name: str, mode: int, size: int, device: tuple[int, int] = (0, 0)) -> None:
        self._entries += 1
        data = os.fsencode(name) + b"\0"
        inode = 0 if name == _END else self._entries
        numbers = (inode, mode, 0, 0, 1, 0, size, 0, 0, *device, len(data), 0)
        head = b"070701" + b"".join(b"%08X" % number for number in numbers)
        self._pad(self._out.write(head + data))

    def _pad(self, written: int) -> None:
        self._out.write(bytes(-written % 4))
