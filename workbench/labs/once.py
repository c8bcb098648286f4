"""What is made once for all sessions: where it is kept, and that one process makes it at a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import platformdirs

from workbench.domain.errors import LabError
from workbench.labs.programs import Listener
from workbench.locks import POLL_S, FileLock, Holder
from workbench.paths import APPLICATION


def cache() -> Path:
    """The user's folder for what was made once."""
    return Path(platformdirs.user_cache_dir(APPLICATION))


@asynccontextmanager
async def alone(name: str, what: str, listener: Listener) -> AsyncIterator[None]:
    """One process makes it, any other waits for that and says so; then look again what is there.

    `name` is that of the lock, `what` is for the sentence, such as "oha 1.16.0".
    """
    lock = FileLock(cache() / f"{name}.lock")
    holder = Holder(os.getpid(), "")
    try:
        if not lock.take(holder):
            other = lock.holder()
            by = f"process {other.pid}" if other and other.pid else "another process"
            listener.step(f"{by} is making {what}: waiting for it")
            while not lock.take(holder):  # noqa: ASYNC110 - the kernel rings no bell for us
                await asyncio.sleep(POLL_S)
    except OSError as error:
        raise LabError(
            f"the lock for making {what} cannot be written: {error.strerror}",
            where=str(lock.path),
            remedy="Make the folder writable, or set XDG_CACHE_HOME to one that is",
        ) from error
    try:
        yield
    finally:
        lock.free()
