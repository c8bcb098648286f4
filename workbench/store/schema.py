"""The schema of a session: numbered migrations, applied in order, never edited once released."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import duckdb

from workbench import __version__
from workbench.domain.errors import SessionError
from workbench.store.database import Cursor


@dataclass(frozen=True)
class Migration:
    """One step from schema `version - 1` to `version`."""

    version: int
    sql: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Every step that this release knows: `migrations/0001_session.sql` and so on."""
    folder = files("workbench.store") / "migrations"
    steps = (
        Migration(int(file.name.split("_")[0]), file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    )
    return tuple(sorted(steps, key=lambda step: step.version))


def newest(steps: Sequence[Migration]) -> int:
    return steps[-1].version


def refuse_strangers(cursor: Cursor, where: str) -> None:
    """Raises `SessionError` if an open file is no session, or holds what could run."""
    # A macro in the file could stand in for any function of ours, and a view for a table: either
    # would run its author's query. `system.main` is the one place that a file cannot stand in for.
    executable = _names(cursor, "function_name", "duckdb_functions")
    executable |= _names(cursor, "view_name", "duckdb_views")
    tables = _names(cursor, "table_name", "duckdb_tables")
    if executable or not {"schema_migrations", "events", "meta"} <= tables:
        raise SessionError(
            "is a DuckDB file, but not a session", where=where, remedy="See workbench ls"
        )


def version_of(cursor: Cursor, where: str, steps: Sequence[Migration]) -> int:
    """The schema version of an open session.

    Raises `SessionError` if it is newer than `steps`.
    """
    row = cursor.execute(
        "SELECT version, app_version FROM schema_migrations ORDER BY version DESC LIMIT 1"
    ).fetchone()
    if row is None:
        raise SessionError("has no schema version", where=where, remedy="Restore it from a bundle")
    version, app_version = int(row[0]), str(row[1])
    refuse_newer(version, app_version, where, steps)
    return version


def _names(cursor: Cursor, column: str, function: str) -> set[str]:
    query = f"SELECT {column} FROM system.main.{function}() WHERE NOT internal"  # noqa: S608 - own
    return {str(name) for (name,) in cursor.execute(query).fetchall()}


def refuse_newer(version: int, app_version: str, where: str, steps: Sequence[Migration]) -> None:
    """Raise `SessionError` with the release that is needed, if `version` is beyond `steps`."""
    if version > newest(steps):
        raise SessionError(
            f"has schema {version}, written by workbench {app_version}; this is workbench "
            f"{__version__}, which reads schemas up to {newest(steps)}",
            where=where,
            remedy=f"Upgrade to vnf-workbench {app_version} or later",
        )


def migrate(cursor: Cursor, after: int, upto: int, steps: Sequence[Migration]) -> None:
    """Apply the steps `after + 1` to `upto`: each in its transaction, then a checkpoint; all at
    once in an empty file.

    DDL that lies in the write-ahead log is what DuckDB most often fails to replay.
    """
    wanted = [step for step in steps if after < step.version <= upto]
    for together in [wanted] if after == 0 else [[step] for step in wanted]:
        cursor.execute("BEGIN")
        try:
            for step in together:
                cursor.execute(step.sql)
                cursor.execute(
                    "INSERT INTO schema_migrations VALUES (?, ?, ?, ?)",
                    [step.version, time.time(), __version__, duckdb.__version__],
                )
            cursor.execute("COMMIT")
        except duckdb.Error:
            cursor.execute("ROLLBACK")
            raise
        cursor.execute("CHECKPOINT")


def tables_of(cursor: Cursor) -> tuple[str, ...]:
    """The tables with a session's content: all but the schema's own history."""
    rows = cursor.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database()"
        " AND schema_name = 'main' AND table_name <> 'schema_migrations' ORDER BY table_name"
    ).fetchall()
    return tuple(str(name) for (name,) in rows)


def fill(
    cursor: Cursor, version: int, source: Callable[[str], str], steps: Sequence[Migration]
) -> None:
    """Make an empty database a session whose rows come from elsewhere, in schema `version`.

    `source` gives the query that reads a table there. The rows then take the same migrations as
    an old file would.
    """
    migrate(cursor, 0, version, steps)
    cursor.execute("BEGIN")
    for table in tables_of(cursor):
        cursor.execute(f"INSERT INTO {table} BY NAME {source(table)}")
    cursor.execute("COMMIT")
    cursor.execute("CHECKPOINT")
    migrate(cursor, version, newest(steps), steps)
