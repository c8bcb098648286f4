"""Locks between processes: who measures on a host, who owns a workspace, who makes an image."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import stat
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from workbench import files
from workbench.domain.errors import UsageError

POLL_S = 0.25
"""How often one that waits looks again. flock has no queue that could be awaited."""
MOST_TEXT, LONGEST_WORD = 4096, 200
"""Characters of a lock's file that are read, and of each word in it."""
EVERYBODYS = 0o666
NO_WRITING = (errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, as the lock file says."""

    pid: int
    workspace: str
    session: str = ""


UNKNOWN = Holder(0, "")
"""Somebody who has not said who it is."""


class FileLock:
    """An flock on a file that says who holds it; the kernel frees it when the process dies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[str] | None = None

    @property
    def held(self) -> bool:
        return self._file is not None

    def take(self, holder: Holder) -> bool:
        """Take the lock if it is free. Raises `OSError` if its file cannot be written."""
        file = self._made()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if file.writable():
                file.truncate(0)
                json.dump(vars(holder), file)
                file.flush()
        except BlockingIOError:
            file.close()
            return False
        except OSError:
            with suppress(OSError):  # closing tries to write once more
                file.close()
            raise
        self._file = file
        return True

    def holder(self) -> Holder | None:
        """Who holds it now, this process included; None if it is free."""
        if self._file is None and not self._is_locked():
            return None
        try:
            with self._there() as file:
                return _read(file.read(MOST_TEXT))
        except OSError:
            return UNKNOWN

    def told(self) -> str:
        """Who holds it now, as words; empty if it is free."""
        if (holder := self.holder()) is None:
            return ""
        if not holder.session:
            return f"somebody who does not say who (see `fuser {self.path}` as root)"
        return f"{holder.session} ({holder.workspace}, process {holder.pid})"

    def free(self) -> None:
        """Give it back; idempotent. The file stays, since others may be waiting on it."""
        if self._file is not None:
            if self._file.writable():
                self._file.truncate(0)
            self._file.close()
            self._file = None

    def _made(self) -> IO[str]:
        """Its file, made where it is missing. Raises `OSError`."""
        files.make_folder(self.path.parent)
        return open(self.path, "a+", opener=files.opener)

    def _there(self) -> IO[str]:
        """Its file, to be read, whatever bytes are in it. Raises `OSError`."""
        return self.path.open("r", errors="replace")

    def _is_locked(self) -> bool:
        try:
            with self._there() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @asynccontextmanager
    async def queue(self, holder: Holder) -> AsyncIterator[None]:
        """Wait until it is free and hold it for the body."""
        while not self.take(holder):  # noqa: ASYNC110 - the kernel rings no bell for us
            await asyncio.sleep(POLL_S)
        try:
            yield
        finally:
            self.free()


class HostLock(FileLock):
    """A lock between all users of a host, whose file lies where everybody may write (mode 1777).

    The file is everybody's, so that whoever holds it can say so. It is neither followed elsewhere
    nor waited for where it is no plain file, and made whole at once: kernels refuse to make a file
    of a name that another user's file has there. Its folder is not made, since it would be its
    maker's alone.
    """

    def must_open(self) -> None:
        """Raises `UsageError` where nobody here could hold it; its file is made if missing."""
        self._made().close()

    def _made(self) -> IO[str]:
        """Raises `UsageError` where nobody here could hold it."""
        try:
            return self._opened()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._unusable(error) from error
        try:
            number, made = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
            try:
                os.fchmod(number, EVERYBODYS)
                with suppress(FileExistsError):  # somebody else was faster
                    os.link(made, self.path)
            finally:
                os.close(number)
                Path(made).unlink()
            return self._opened()
        except OSError as error:
            raise self._unusable(error) from error

    def _there(self) -> IO[str]:
        return self._opened()

    def _opened(self) -> IO[str]:
        flags = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            number = os.open(self.path, os.O_RDWR | os.O_APPEND | flags)
        except OSError as error:
            if error.errno not in NO_WRITING:
                raise
            # It can be held all the same, without a word.
            number = os.open(self.path, os.O_RDONLY | flags)
            mode = "r"
        else:
            mode = "a+"
        if not stat.S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise OSError(errno.EINVAL, "is no file", str(self.path))
        file: IO[str] = os.fdopen(number, mode, errors="replace")
        file.seek(0)
        return file

    def _unusable(self, error: OSError) -> UsageError:
        remedy = "Remove what lies there"
        if not os.path.lexists(self.path):
            remedy = f"Make {self.path.parent} a folder in which all who measure on this host write"
        return UsageError(
            f"the lock of this host cannot be taken: {error.strerror or error}",
            where=str(self.path),
            remedy=f"{remedy}, or have WORKBENCH_MEASURING_LOCK name a file that all who measure "
            "on this host can write",
        )


def own(workspace: Path, session: str = "") -> Holder:
    """This process as a holder."""
    return Holder(os.getpid(), str(workspace), session)


def _read(text: str) -> Holder:
    """Who holds a lock by what its file says, which anybody may have written: bounded, and without
    what a terminal would obey."""
    try:
        said = Holder(**json.loads(text))
        pid, words = said.pid, (said.workspace, said.session)
        if not (isinstance(pid, int) and all(isinstance(word, str) for word in words)):
            return UNKNOWN
    except (ValueError, TypeError, RecursionError):  # taken this instant: not written yet
        return UNKNOWN
    return Holder(pid, *(_plain(word) for word in words))


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "·" for c in text[:LONGEST_WORD])
