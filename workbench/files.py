"""Files and folders of a user's own: their modes, and what they are called until they are whole.

What is being written has a hidden name that ends in the process that writes it, so that what a
killed one left can be told from what is under way, and goes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER, FILE = 0o700, 0o600
"""Modes of what belongs to a workspace, whatever the umask allows."""

_PARTIAL = re.compile(r"\.(?P<name>.+)\.(?P<pid>\d+)\.partial(?P<more>\.\w+)?")
_OF_0_1 = re.compile(
    r"\.(?P<name>.+\.(?:duckdb|bundle|csv|parquet))\.(?P<pid>\d+)(?P<more>\.wal|\.old)?"
)
"""What release 0.1 called them."""


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for its owner alone.

    One that is there stays as open as its owner made it.
    """
    for folder in reversed([path, *path.parents]):
        if not folder.exists():
            folder.mkdir(mode=FOLDER, exist_ok=True)
    path.mkdir(exist_ok=True)  # raises where it is a file


def opener(path: str, flags: int) -> int:
    """For `open`: a file that it creates is its owner's alone."""
    return os.open(path, flags, FILE)


def partial(path: Path, kind: str = "") -> Path:
    """Where this process writes what `path` is to be; `kind` tells several for one path apart."""
    return path.with_name(f".{path.name}{kind and '.'}{kind}.{os.getpid()}.partial")


@contextmanager
def whole(path: Path, kind: str = "") -> Iterator[Path]:
    """Where the block writes a file that takes the place of `path` when it ends well: whole or not
    at all, and what was there before stays until then. Raises `OSError`, such as of a full disk.
    """
    unfinished = partial(path, kind)
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file as a whole, as open as the umask allows. Raises `OSError`."""
    with whole(path) as unfinished:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)


def write_own(path: Path, content: bytes, kind: str = "", *, synced: bool = False) -> None:
    """Write a file as a whole that is its owner's alone; `synced`, it is on disk when this
    returns. Raises `OSError`."""
    with whole(path, kind) as unfinished, open(unfinished, "wb", opener=opener) as stream:
        stream.write(content)
        stream.flush()
        if synced:
            os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Make what was made, renamed or removed in `folder` survive a power cut. Raises `OSError`."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sweep(folder: Path, of: str = "") -> tuple[Path, ...]:
    """Remove what dead processes left half written; what cannot be removed stays.

    In a folder that is not a workspace's, `of` names the only file that may be meant: whatever
    else has such a name there is somebody else's.
    """
    removed = []
    with suppress(OSError):
        for path in folder.iterdir():
            match = _PARTIAL.fullmatch(path.name)
            if match is None and not of:
                match = _OF_0_1.fullmatch(path.name)
            if match is None or _lives(int(match["pid"])):
                continue
            if of and match["name"] != of and not match["name"].startswith(f"{of}."):
                continue
            with suppress(OSError):
                if match["more"] == ".old" and not (folder / match["name"]).exists():
                    path.rename(folder / match["name"])  # killed before the new one had its name
                    continue
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                removed.append(path)
    return tuple(removed)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
