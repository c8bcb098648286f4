"""The file that `watch --textfile` writes: no file of others, and one watch alone in it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.domain.errors import UsageError
from workbench.locks import FileLock, own

OURS = b"workbench_watch_"
"""In every file that a watch has written."""
_READ_BYTES = 1 << 16


@contextmanager
def kept_alone(path: Path) -> Iterator[None]:
    """Nobody else watches into that file meanwhile; it is gone at the end, so that nobody takes its
    last figure for a living one.

    Raises `UsageError` where something else is there, another watch writes it, or nothing can be.
    """
    lock = FileLock(path.with_name(f".{path.name}.lock"))
    try:
        path.parent.stat()  # a lock would make the folder
        _must_be_free_or_ours(path)
        taken = lock.take(own(path.parent))
    except OSError as error:
        raise UsageError(
            f"cannot be written: {error.strerror}", where=str(path), remedy="Choose another"
        ) from None
    if not taken:
        raise UsageError(
            "another watch writes it: each needs a file of its own",
            where=str(path),
            remedy="Choose another name, or end that watch",
        )
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # a watch that begins now is refused once, or makes it anew
            lock.path.unlink(missing_ok=True)
        lock.free()


def _must_be_free_or_ours(path: Path) -> None:
    try:
        there = path.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(there.st_mode):
        raise UsageError("is no regular file", where=str(path), remedy="Name a file, NAME.prom")
    if not there.st_size:
        return
    with path.open("rb") as file:
        if OURS in file.read(_READ_BYTES):
            return
    raise UsageError(
        "is there, and no watch has written it: it would be overwritten",
        where=str(path),
        remedy="Choose another name",
    )
