"""Names, paths and the list of sessions, without opening their files.

The list is kept in a small JSON file beside the sessions, with size and time of each session file
as they were when its line was made. A line is made anew where they differ, so the catalogue may be
missing, old or broken at any time: it is a memory, not a record.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from workbench import files
from workbench.domain import codec
from workbench.domain.errors import SessionBusy, SessionUnknown, UsageError, WorkbenchError
from workbench.domain.naming import nearest
from workbench.domain.sessions import UNDER_WAY, UNREAD, SessionSummary
from workbench.paths import Workspace

SUFFIX = ".duckdb"
CATALOGUE = ".catalogue.json"
LONGEST_NAME = 64
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")
_guard = threading.Lock()

_Line = dict[str, Any]


def check_name(name: str) -> None:
    """Raise `UsageError` unless a session may be called so: ASCII, no path, nothing hidden."""
    if _NAME.fullmatch(name) is None or ".." in name or name.endswith((SUFFIX, ".bundle", ".")):
        raise UsageError(
            f"{_short(name)!a} cannot be the name of a session",
            remedy=f"Use up to {LONGEST_NAME} letters, digits, '-', '_' and '.', "
            "beginning with a letter or digit",
        )


def fresh_name(workspace: Workspace, campaign: str, *, beside: str = "") -> str:
    """The campaign's name and the counter after the highest one in use: `demo-3`; `beside`: a name
    that somebody is about to use."""
    counter = re.compile(rf"{re.escape(campaign)}-(\d+)")
    used = [
        int(match[1])
        for stem in (beside, *(path.stem for path in _entries(workspace)))
        if (match := counter.fullmatch(stem))
    ]
    return f"{campaign}-{max(used, default=0) + 1}"


def session_path(workspace: Workspace, name: str) -> Path:
    """Where a session of that name lies, or would."""
    check_name(name)
    return workspace.sessions / f"{name}{SUFFIX}"


def resolve(workspace: Workspace, name: str, recordings: Path) -> Path:
    """The session file, bundle or CSV that a user means.

    A name is looked up in the workspace, then among the shipped recordings; anything with a slash
    or a suffix may also be a path. Raises `SessionUnknown` with what there is.
    """
    with suppress(UsageError):
        check_name(name)
        for path in (
            session_path(workspace, name),
            workspace.sessions / name,
            workspace.sessions / f"{name}.bundle",
            recordings / name,
        ):
            if is_there(path):
                return path
    path = Path(name)
    with suppress(RuntimeError):  # nobody is called so
        path = path.expanduser()
    if is_there(path):
        return path.resolve()
    known = [path.stem for path in _entries(workspace)]
    known += [path.name for path in _bundles(recordings)]
    near = nearest(name, known)
    shown = ", ".join(sorted(set(known))[:20]) or "none yet"
    raise SessionUnknown(
        f"there is no session, bundle or recording {_short(name)!a}",
        where=str(workspace.sessions),
        remedy=(f"Did you mean {near}? " if near else "")
        + f"Choose one of: {shown}"
        + (" ... (workbench ls)" if len(known) > 20 else ""),
    )


def is_there(path: Path) -> bool:
    """Whether a session or bundle lies there; False for what cannot be a path at all."""
    try:
        return path.is_file() or _is_bundle(path)
    except (OSError, ValueError):
        return False


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}..."


def list_sessions(workspace: Workspace, recordings: Path) -> tuple[SessionSummary, ...]:
    """Sessions of the workspace, the one changed last first, then the shipped recordings.

    A name stands once, for what `resolve` opens by it: a session hides a recording of its name.
    Opens no session file that is as the catalogue remembers it, unless that was in a run.
    """
    with _guard:
        remembered = _load(workspace)
        lines: dict[str, _Line] = {}
        for path in _entries(workspace):
            signature = _signature(path)
            line = remembered.get(path.name)
            if line is None or line["signature"] != signature or _may_have_ended(line):
                line = {"signature": signature, "summary": codec.to_plain(_summary(path, line))}
            lines[path.name] = line
        if lines != remembered:
            _save(workspace, lines)
    own = [_restored(workspace.sessions / name, line) for name, line in lines.items()]
    own.sort(key=lambda summary: (-summary.changed_at, summary.name))
    shipped = [_summary(path, None) for path in _bundles(recordings)]
    by_rank = sorted(own, key=lambda summary: summary.kind == "bundle")  # files before bundles
    opened = {summary.name: summary for summary in reversed([*by_rank, *shipped])}
    return tuple(s for s in (*own, *shipped) if opened[s.name] is s)


def record(workspace: Workspace, summary: SessionSummary) -> None:
    """Remember a session as its engine knows it, at the begin and the end of a run."""
    path = Path(summary.path)
    summary = replace(summary, warnings=())  # its engine has mended what it found
    with _guard:
        lines = _load(workspace)
        lines[path.name] = {"signature": _signature(path), "summary": codec.to_plain(summary)}
        _save(workspace, lines)


def _entries(workspace: Workspace) -> list[Path]:
    """Session files and bundles of the workspace."""
    found = workspace.sessions.glob(f"*{SUFFIX}")
    files = [path for path in found if _is_file(path) and not path.name.startswith(".")]
    return sorted(files) + _bundles(workspace.sessions)


def _bundles(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _is_bundle(path))


def _is_bundle(path: Path) -> bool:
    return _is_file(path / "manifest.json") and not path.name.startswith(".")


def _is_file(path: Path) -> bool:
    """Unlike `Path.is_file` it says no to what may not be looked at."""
    return os.path.isfile(path)  # noqa: PTH113


def _signature(path: Path) -> list[int]:
    """Size and time of what a session consists of; for a bundle, of its manifest."""
    parts = (path / "manifest.json",) if path.is_dir() else (path, Path(f"{path}.wal"))
    return list(_sizes_and_times(parts))


def _sizes_and_times(parts: tuple[Path, ...]) -> Iterator[int]:
    for part in parts:
        try:
            stat = part.stat()
        except FileNotFoundError:
            yield from (0, 0)
        else:
            yield from (stat.st_size, stat.st_mtime_ns)


def _may_have_ended(line: _Line) -> bool:
    """Whether a run was going on: its engine may have died since without touching the file."""
    return line["summary"]["state"] in UNDER_WAY


def _summary(path: Path, line: _Line | None) -> SessionSummary:
    """One line, from the file itself; from memory where another process holds it."""
    from workbench.store import bundle  # DuckDB is imported only where a file has changed

    try:
        return bundle.summary_of(path) if path.is_dir() else _opened(path)
    except WorkbenchError as error:
        busy = isinstance(error, SessionBusy)
        if busy and line is not None:
            return _restored(path, line)
        size, changed_ns, *_ = _signature(path)
        return SessionSummary(
            name=path.stem,
            state="running" if busy else "failed",
            campaign="" if busy else f"{UNREAD}: {error.what}",
            lab="",
            targets=(),
            samples=0,
            invalid=0,
            created_at=changed_ns / 1e9,
            changed_at=changed_ns / 1e9,
            size_bytes=size,
            path=str(path),
        )


def _opened(path: Path) -> SessionSummary:
    from workbench.store.session_file import open_session

    session = open_session(path, read_only=True)
    try:
        return session.summarise()
    finally:
        session.shut()


def _restored(path: Path, line: _Line) -> SessionSummary:
    summary = codec.from_plain(line["summary"], SessionSummary)
    return replace(summary, path=str(path))  # a workspace may have moved


def _load(workspace: Workspace) -> dict[str, _Line]:
    """What is remembered; nothing where the catalogue is missing or cannot be understood."""
    try:
        lines = json.loads((workspace.sessions / CATALOGUE).read_bytes())["sessions"]
        return {
            name: line
            for name, line in lines.items()
            if isinstance(line["signature"], list)
            and codec.from_plain(line["summary"], SessionSummary)
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, WorkbenchError):
        return {}


def _save(workspace: Workspace, lines: dict[str, _Line]) -> None:
    """Replace the catalogue whole. A workspace that cannot be written is listed without one."""
    path = workspace.sessions / CATALOGUE
    content = json.dumps({"sessions": lines}).encode()
    with suppress(OSError):
        files.write_own(path, content, str(threading.get_ident()), synced=True)
