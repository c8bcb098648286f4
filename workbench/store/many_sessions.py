"""Questions to all sessions of a workspace at once: how a KPI spreads, by host, version, ...

DuckDB reads Parquet files that are made of each session once, and again when it has changed. They
are a memory, not a record: whoever removes them loses nothing but the time to make them again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from threading import Timer
from typing import Any

import duckdb

from workbench import files
from workbench.domain.errors import SessionBusy, UsageError, WorkbenchError
from workbench.locks import FileLock
from workbench.paths import Workspace
from workbench.store.catalogue import SUFFIX
from workbench.store.database import SETTINGS, Cursor
from workbench.store.session_file import open_session

GROUPS = ("host", "session", "version", "campaign", "lab", "target", "configuration", "load")
"""What figures may be grouped by."""
MEMORY = "768MB"
FOLDER = "kpis"
KEPT = f".workbench/{FOLDER}"
PATIENCE_S = 600.0
"""Of a question: files may lie behind a network that does not answer."""
_FAR = re.compile(r"[a-z][a-z0-9+]*://", re.IGNORECASE)
_COLUMN = {"load": "wl"}
_MADE = re.compile(r"(?P<session>.+)\.(?P<size>\d+)-(?P<time>\d+)\.parquet")


@dataclass(frozen=True)
class Spread:
    """How a KPI spreads in one group: valid samples only, in the KPI's unit.

    Attributes
    ----------
    group : a value for each of what was grouped by.
    median, low, high : 50 %, 5 % and 95 % quantile of the samples; no interval of a mean.
    """

    group: tuple[str, ...]
    sessions: int
    samples: int
    median: float
    low: float
    high: float


def remembered(
    workspace: Workspace, tell: Callable[[str], None] = lambda _: None
) -> tuple[Path, tuple[str, ...]]:
    """The folder with a Parquet file of every session, and what could not be read, as sentences."""
    folder = workspace.state / FOLDER
    files.make_folder(folder)
    there = {
        match["session"]: path for path in folder.iterdir() if (match := _MADE.fullmatch(path.name))
    }
    problems: list[str] = []
    sessions = {path.stem: path for path in sorted(workspace.sessions.glob(f"*{SUFFIX}"))}
    stale = []
    for name, path in list(sessions.items()):
        try:
            stat = path.stat()
        except FileNotFoundError:  # removed since the folder was listed
            del sessions[name]
            continue
        wanted = folder / f"{name}.{stat.st_size}-{stat.st_mtime_ns}.parquet"
        if there.get(name) != wanted:
            stale.append((name, path, wanted))
    if len(stale) > 20:
        tell(f"reading {len(stale)} sessions that are new or have changed")
    for name, path, wanted in stale:
        try:
            _make(path, wanted)
        except WorkbenchError as error:
            how = "is as it was before" if name in there else "is left out"
            problems.append(f"{name} {how}: {_why(error, workspace)}")
            continue
        if name in there:
            there[name].unlink(missing_ok=True)
    for name in there.keys() - sessions.keys():
        there[name].unlink(missing_ok=True)
    return folder, tuple(problems)


def _why(error: WorkbenchError, workspace: Workspace) -> str:
    """Our own engine keeps a session open for a while after its run, and says nothing of that."""
    holder = FileLock(workspace.engine_lock).holder()
    if not isinstance(error, SessionBusy) or holder is None:
        return error.what
    return (
        f"this workspace's engine (PID {holder.pid}) has it open; ask again later, or end the "
        "engine with `workbench engine stop` where nothing is measured"
    )


def _make(path: Path, wanted: Path) -> None:
    stored = open_session(path, read_only=True)
    try:
        with suppress(FileNotFoundError), files.whole(wanted) as partial:
            stored.write_kpis(partial)
    finally:
        stored.shut()


def written(folder: Path) -> tuple[str, ...]:
    """The files of a folder, as DuckDB finds them. Raises `UsageError` where it holds none."""
    if not any(folder.glob("*.parquet")):
        raise UsageError("there is no session yet", remedy="Measure one with `workbench run`")
    return (f"{escape(str(folder))}/*.parquet",)


def elsewhere(given: Sequence[str]) -> tuple[str, ...]:
    """Files that lie elsewhere, as `remembered` makes them: folders, globs, `s3://`, `https://`."""
    return tuple(place if is_far(place) else _here(place) for place in given)


def _here(place: str) -> str:
    # Unlike those of `Path` these say no to whatever is no path, such as a name that is too long.
    if os.path.isdir(place):  # noqa: PTH112
        return f"{escape(place)}/*.parquet"
    return escape(place) if os.path.isfile(place) else place  # noqa: PTH113


def is_far(place: str) -> bool:
    return bool(_FAR.match(place))


def spread(
    places: Sequence[str], kpi: str, by: Sequence[str], target: str | None = None
) -> tuple[Spread, ...]:
    """How a KPI spreads over all sessions, group by group, in their order.

    Parameters
    ----------
    places : Parquet files, globs of them, or URLs; see `written` and `elsewhere`.

    Raises
    ------
    UsageError
        For what cannot be grouped by or read, and where there is no such figure.
    """
    for name in by:
        if name not in GROUPS:
            raise UsageError(
                f"{name!r} is nothing to group by",
                where="--by",
                remedy=f"Choose from: {', '.join(GROUPS)}",
            )
    with _reading(places) as database:
        rows = _rows(database, places, kpi, [_COLUMN.get(name, name) for name in by], target)
        found = tuple(
            Spread(tuple(_shown(v) for v in group), sessions, samples, *quantiles)
            for *group, sessions, samples, quantiles in rows
            if samples
        )
        if found:
            return found
        known = database.execute(
            "SELECT DISTINCT target FROM read_parquet(?) WHERE kpi = ? ORDER BY 1",
            [list(places), kpi],
        ).fetchall()
    names = ", ".join(str(name) for (name,) in known[:20])
    raise UsageError(
        f"no session has a valid {kpi}" + (f" of {target}" if target else ""),
        remedy=f"Targets that have it: {names}" if names else "Choose another --kpi",
    )


def _rows(
    database: Cursor, places: Sequence[str], kpi: str, columns: Sequence[str], target: str | None
) -> list[tuple[Any, ...]]:
    """The columns, then how many sessions and samples, then the quantiles; by group."""
    keys = "".join(f"{column}, " for column in columns)
    # All quantiles at once: each by itself would gather and order every figure again.
    query = (
        f"SELECT {keys}count(DISTINCT session), count(*),"  # noqa: S608 - own names
        " quantile_cont(value, [0.5, 0.05, 0.95])"
        " FROM read_parquet(?) WHERE kpi = ? AND valid AND value IS NOT NULL"
        + (" AND target = ?" if target else "")
        + (f" GROUP BY {', '.join(columns)} ORDER BY {', '.join(columns)}" if columns else "")
    )
    given: list[object] = [list(places), kpi, *([target] if target else [])]
    return database.execute(query, given).fetchall()


@contextmanager
def _reading(places: Sequence[str]) -> Iterator[Cursor]:
    """A connection that spills nothing, and for at most `PATIENCE_S`; its errors as sentences."""
    shown = ", ".join(places[:3])
    with duckdb.connect(
        ":memory:", config={**SETTINGS, "memory_limit": MEMORY, "temp_directory": ""}
    ) as database:
        if any(map(is_far, places)):
            _reach_far(database, shown)
        timer = Timer(PATIENCE_S, database.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield database
        except duckdb.InterruptException:
            raise UsageError(f"is not read within {PATIENCE_S:g} s", where=shown) from None
        except duckdb.BinderException:
            raise UsageError(
                "holds other columns than `query` writes",
                where=shown,
                remedy=f"Name files of {KEPT}",
            ) from None
        except duckdb.Error as error:
            text = str(error).partition("\n")[0]
            raise UsageError(f"cannot be read: {text}", where=shown) from None
        finally:
            timer.cancel()


def _reach_far(database: Cursor, shown: str) -> None:
    """By DuckDB's httpfs, which is loaded where somebody has installed it, and never installed."""
    try:
        database.execute("LOAD httpfs")
    except duckdb.Error:
        raise UsageError(
            "is read by DuckDB's extension httpfs, which is not installed",
            where=shown,
            remedy="Install it yourself, on a network that has it: "
            "python -c \"import duckdb; duckdb.sql('INSTALL httpfs')\"",
        ) from None


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
