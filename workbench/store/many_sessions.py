"""Questions to all sessions of a workspace at once: how a KPI spreads, by host, version, ...

DuckDB reads Parquet files that are made of each session once, and again when it has changed. They
are a memory, not a record: whoever removes them loses nothing but the time to make them again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from workbench import files
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.paths import Workspace
from workbench.store.catalogue import SUFFIX
from workbench.store.database import SETTINGS
from workbench.store.session_file import open_session

GROUPS = ("host", "session", "version", "campaign", "lab", "target", "configuration", "load")
"""What figures may be grouped by."""
MEMORY = "768MB"
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
    folder = workspace.state / "kpis"
    files.make_folder(folder)
    there = {
        match["session"]: path for path in folder.iterdir() if (match := _MADE.fullmatch(path.name))
    }
    problems: list[str] = []
    sessions = {path.stem: path for path in sorted(workspace.sessions.glob(f"*{SUFFIX}"))}
    stale = []
    for name, path in sessions.items():
        stat = path.stat()
        wanted = folder / f"{name}.{stat.st_size}-{stat.st_mtime_ns}.parquet"
        if there.get(name) != wanted:
            stale.append((name, path, wanted))
    if len(stale) > 20:
        tell(f"reading {len(stale)} sessions that are new or have changed")
    for name, path, wanted in stale:
        try:
            _make(path, wanted)
        except WorkbenchError as error:
            problems.append(f"{name} is left out: {error.what}" if name not in there else
                            f"{name} is as it was before: {error.what}")  # fmt: skip
            continue
        if name in there:
            there[name].unlink(missing_ok=True)
    for name in there.keys() - sessions.keys():
        there[name].unlink(missing_ok=True)
    return folder, tuple(problems)


def _make(path: Path, wanted: Path) -> None:
    partial = files.partial(wanted)
    stored = open_session(path, read_only=True)
    try:
        stored.write_kpis(partial)
    finally:
        stored.shut()
    with suppress(FileNotFoundError):
        partial.replace(wanted)


def spread(
    folder: Path, kpi: str, by: Sequence[str], target: str | None = None
) -> tuple[Spread, ...]:
    """How a KPI spreads over all sessions, group by group, in their order.

    Raises `UsageError` for what cannot be grouped by, and where there is no such figure.
    """
    for name in by:
        if name not in GROUPS:
            raise UsageError(
                f"{name!r} is nothing to group by",
                where="--by",
                remedy=f"Choose from: {', '.join(GROUPS)}",
            )
    if not any(folder.glob("*.parquet")):
        raise UsageError("there is no session yet", remedy="Measure one with `workbench run`")
    columns = [_COLUMN.get(name, name) for name in by]
    keys = "".join(f"{column}, " for column in columns)
    query = (
        f"SELECT {keys}count(DISTINCT session), count(*), quantile_cont(value, 0.5),"  # noqa: S608 - own
        " quantile_cont(value, 0.05), quantile_cont(value, 0.95)"
        " FROM read_parquet(?) WHERE kpi = ? AND valid"
        + (" AND target = ?" if target else "")
        + (f" GROUP BY {', '.join(columns)} ORDER BY {', '.join(columns)}" if columns else "")
    )
    given: list[object] = [str(folder / "*.parquet"), kpi, *([target] if target else [])]
    with duckdb.connect(
        ":memory:", config={**SETTINGS, "memory_limit": MEMORY, "temp_directory": ""}
    ) as database:
        rows = database.execute(query, given).fetchall()
        found = tuple(
            Spread(tuple(_shown(v) for v in row[: len(by)]), *row[len(by) :])
            for row in rows
            if row[len(by) + 1]
        )
        if found:
            return found
        known = database.execute(
            "SELECT DISTINCT target FROM read_parquet(?) WHERE kpi = ? ORDER BY 1", given[:2]
        ).fetchall()
    names = ", ".join(str(name) for (name,) in known[:20])
    raise UsageError(
        f"no session has a valid {kpi}" + (f" of {target}" if target else ""),
        remedy=f"Targets that have it: {names}" if names else "Choose another --kpi",
    )


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
