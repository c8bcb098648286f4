"""Files and folders of a user's own: their modes, and what they are called until they are whole.

What is being written has a hidden name that ends in the process that writes it, so that what a
killed one left can be told from what is under way, and goes.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
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


def write_whole(path: Path, text: str) -> None:
    """Write a text file whole or not at all; what was there before stays until it is. Raises
    `OSError`, such as of a full disk."""
    unfinished = partial(path)
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


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
