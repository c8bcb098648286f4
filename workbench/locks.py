"""Locks between processes: who measures on a host, who owns a workspace, who makes an image."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from workbench import files

POLL_S = 0.25
"""How often one that waits looks again. flock has no queue that could be awaited."""


@dataclass(frozen=True)
class Holder:
    """Who holds a lock, as the lock file says."""

    pid: int
    workspace: str
    session: str = ""


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
        files.make_folder(self.path.parent)
        file = open(self.path, "a+", opener=files.opener)  # noqa: SIM115
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        if self._file is None and not _is_locked(self.path):
            return None
        try:
            return Holder(**json.loads(self.path.read_text()))
        except (OSError, ValueError, TypeError):  # taken this instant: not written yet
            return Holder(0, "")

    def free(self) -> None:
        """Give it back; idempotent. The file stays, since others may be waiting on it."""
        if self._file is not None:
            self._file.truncate(0)
            self._file.close()
            self._file = None

    @asynccontextmanager
    async def queue(self, holder: Holder) -> AsyncIterator[None]:
        """Wait until it is free and hold it for the body."""
        while not self.take(holder):  # noqa: ASYNC110 - the kernel rings no bell for us
            await asyncio.sleep(POLL_S)
        try:
            yield
        finally:
            self.free()


def own(workspace: Path, session: str = "") -> Holder:
    """This process as a holder."""
    return Holder(os.getpid(), str(workspace), session)


def _is_locked(path: Path) -> bool:
    try:
        with path.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
