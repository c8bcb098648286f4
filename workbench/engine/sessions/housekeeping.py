"""Session files of a workspace are renamed, copied, thrown away and brought back."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench import files
from workbench.domain.errors import SessionError, SessionUnknown
from workbench.domain.housekeeping import Trashed
from workbench.domain.messages import RunAccepted
from workbench.engine.sessions.library import Library
from workbench.paths import Workspace
from workbench.store import catalogue

BESIDE = (".wal", ".acknowledged")
"""What lies beside a session that was not closed cleanly."""


async def rename(library: Library, session: str, name: str) -> RunAccepted:
    """Give a session another name. This and the others raise `WorkbenchError`."""
    new = library.file_of(await library.new_name(name, ""))
    async with library.closed(session) as path:
        await _in_thread(_move, path, new)
    return RunAccepted(name)


async def delete(library: Library, session: str) -> Trashed:
    ticket = f"{session}@{time.time_ns()}"
    async with library.closed(session) as path:
        await _in_thread(_move, path, _trashed(library.workspace, ticket))
    return Trashed(session, ticket)


async def rescue(library: Library, session: str, folder: str | None) -> RunAccepted:
    path = await library.rescue(session, Path(folder) if folder else None)
    return RunAccepted(path.stem)


async def duplicate(library: Library, session: str, name: str | None) -> RunAccepted:
    path = await library.path_of(session)
    name = await library.new_name(name, path.stem)
    new = library.file_of(name)
    if path.is_dir():
        from workbench.store.session_file import import_bundle

        await (await import_bundle(path, new)).close()
        return RunAccepted(name)
    async with library.at_rest(session):
        await _in_thread(_copy, path, new)
    return RunAccepted(name)


async def restore(library: Library, ticket: str) -> RunAccepted:
    path = _trashed(library.workspace, ticket)
    name = ticket.rpartition("@")[0]
    if not path.is_file():
        raise SessionUnknown(f"the trash holds no {ticket!a}", where=str(path.parent))
    if library.file_of(name).exists() or library.names_recording(name):
        name = await library.new_name(None, name)
    await _in_thread(_move, path, library.file_of(name))
    return RunAccepted(name)


def _trashed(workspace: Workspace, ticket: str) -> Path:
    """Where a deleted session lies. Raises `UsageError` for a ticket that names no session."""
    name, _, at = ticket.rpartition("@")
    catalogue.check_name(name)
    number = int(at) if at.isascii() and at.isdigit() else 0
    return workspace.trash / f"{name}@{number}{catalogue.SUFFIX}"


async def _in_thread(work: Callable[[Path, Path], None], path: Path, new: Path) -> None:
    try:
        await asyncio.to_thread(work, path, new)
    except OSError as error:
        raise SessionError(f"cannot be written: {error.strerror}", where=str(new)) from None


def _move(path: Path, new: Path) -> None:
    """The logs first: without them the file would lose its last events, alone it is harmless."""
    files.make_folder(new.parent)
    with _taken(new):
        for suffix in BESIDE:
            with suppress(FileNotFoundError):
                Path(f"{path}{suffix}").replace(f"{new}{suffix}")
        path.replace(new)


def _copy(path: Path, new: Path) -> None:
    """The copy appears whole or not at all."""
    partial = files.partial(new)
    try:
        shutil.copy(path, partial)
        with _taken(new):
            try:
                for suffix in BESIDE:
                    with suppress(FileNotFoundError):
                        shutil.copy(f"{path}{suffix}", f"{new}{suffix}")
                partial.replace(new)
            except OSError:  # nothing is left for another session of that name to take for its own
                for suffix in BESIDE:
                    Path(f"{new}{suffix}").unlink(missing_ok=True)
                raise
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _taken(new: Path) -> Iterator[None]:
    """The name is this session's from here on: a file that came meanwhile is never replaced."""
    new.touch(exist_ok=False)
    try:
        yield
    except BaseException:
        new.unlink()
        raise
