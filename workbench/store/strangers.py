"""What a bundle may bring: it may come from anybody.

Digests say that a file is what was written, not who wrote it. So what it would take up is looked at
before it is read, and what it says before anybody else reads it.
"""

from __future__ import annotations

import math
import stat
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from workbench.domain import codec
from workbench.domain.errors import SessionError, WorkbenchError
from workbench.domain.events import SampleTaken, SessionCreated
from workbench.store import reading
from workbench.store.database import Cursor, quoted, sentence
from workbench.store.rows import COLUMNS

MOST_ROWS = 50_000_000
"""Of one table; a session of a million samples has a tenth of that."""
MOST_BYTES = 16 * 2**30
ANY_RATIO_BYTES = 256 * 2**20
"""That much may come out of any bundle, however small."""
MOST_RATIO = 100
"""Bytes that come out for one that lies there; of recordings that ship it is 2 to 6."""
LONGEST_TEXT = 16 * 2**20
"""Bytes of one value; the longest fact of a campaign has some ten thousand."""
LONGEST_MANIFEST = 16 * 2**20
PAGE = 500


def damaged(folder: Path, how: str) -> SessionError:
    return SessionError(
        f"is a damaged bundle: {how}", where=str(folder), remedy="Copy or export it again"
    )


def refuse_irregular(path: Path, most_bytes: int | None = None) -> int:
    """Size of a file of a bundle. Raises `SessionError` for what is none: a pipe is never read."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise damaged(path.parent, f"{path.name} is missing") from None
    except OSError as error:
        raise sentence(error, path.parent) from None
    if not stat.S_ISREG(found.st_mode):
        raise damaged(path.parent, f"{path.name} is not a regular file")
    if most_bytes is not None and found.st_size > most_bytes:
        raise damaged(path.parent, f"{path.name} has {found.st_size} bytes, not under {most_bytes}")
    return found.st_size


def refuse_bombs(cursor: Cursor, folder: Path) -> None:
    """Raise `SessionError` where much more would come out of the files than lies in them."""
    files = [path for table in COLUMNS if (path := folder / f"{table}.parquet").exists()]
    allowed = sum(map(refuse_irregular, files)) * MOST_RATIO
    allowed = min(MOST_BYTES, max(ANY_RATIO_BYTES, allowed))
    if files:
        _refuse_declared(cursor, files, allowed)
    total = 0
    for path in files:  # equal values lie in a file but once
        lengths = reading.one(
            cursor,
            "SELECT sum(strlen(COLUMNS(*)::VARCHAR)), max(strlen(COLUMNS(*)::VARCHAR))"  # noqa: S608
            f" FROM {_parquet(path)}",
        )
        columns = len(lengths) // 2
        total += sum(length or 0 for length in lengths[:columns])
        longest = max((length or 0 for length in lengths[columns:]), default=0)
        if longest > LONGEST_TEXT:
            raise damaged(folder, f"{path.stem} has a value of {longest} bytes")
        if total > allowed:
            raise damaged(folder, f"with {path.stem} it takes up more than {allowed} bytes")


def _refuse_declared(cursor: Cursor, files: Sequence[Path], allowed: int) -> None:
    """By what the files say of themselves; that costs nothing."""
    folder, names = files[0].parent, list(map(str, files))
    for name, rows in cursor.execute(
        "SELECT file_name, num_rows FROM parquet_file_metadata($1)", [names]
    ).fetchall():
        if not 0 <= rows <= MOST_ROWS:
            raise damaged(folder, f"{Path(name).stem} has {rows} rows, not under {MOST_ROWS}")
    for name, size in cursor.execute(
        "SELECT file_name, sum(total_uncompressed_size) FROM parquet_metadata($1) GROUP BY ALL",
        [names],
    ).fetchall():
        if not 0 <= (size or 0) <= allowed:
            raise damaged(folder, f"{Path(name).stem} says that it takes up {size} bytes")


def _parquet(path: Path) -> str:
    return f"read_parquet({quoted(path)})"


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def refuse_nonsense(cursor: Cursor, folder: Path) -> None:
    """Raise `SessionError` with table and row where rows say what no session says."""
    wrong = next(_wrong(cursor), None)
    if wrong is not None:
        raise damaged(folder, wrong)


_NUMBER = "lambda x: x.number"
"""Of a parameter's value (`rows._values`)."""
_NEITHER = "x.number IS NULL AND x.text IS NULL"
_NO_VALUE = {
    ("configurations", "resources"): _NEITHER,
    ("configurations", "workload"): _NEITHER,
    ("models", "parameters"): "x IS NULL",  # a parameter of a model may be None, which is neither
}
"""By table and column: which values in a map no session has."""


def _wrong(cursor: Cursor) -> Iterator[str]:
    yield from _wrong_events(cursor)
    yield from _wrong_numbers(cursor)
    yield from _infinite(cursor)
    for (table, column), condition in _NO_VALUE.items():
        for (row,) in cursor.execute(
            f"SELECT rowid FROM {table} WHERE len(list_filter(map_values({column}),"  # noqa: S608
            f" lambda x: {condition})) > 0 ORDER BY rowid LIMIT 1"
        ).fetchall():
            yield f"{table}, row {row + 1}: {column} has a name without a value"


def _wrong_events(cursor: Cursor) -> Iterator[str]:
    """Events count from 1 without gaps, the first of them makes the session, all can be read."""
    cursor.execute("SELECT rowid, seq, happened_at, type, payload FROM events ORDER BY seq, rowid")
    expected = 0
    while rows := cursor.fetchmany(PAGE):
        for row, seq, at, kind, payload in rows:
            expected += 1
            where = f"events, row {row + 1}"
            if seq != expected:
                yield f"{where}: event {seq} stands where event {expected} belongs"
            if not math.isfinite(at):
                yield f"{where}: event {seq} happened at {at}"
            if (kind == SessionCreated.__name__) is not (seq == 1):
                yield f"{where}: event {seq} is {kind[:40]!a}; only the first makes the session"
            try:
                codec.fact_of(kind, payload)
            except WorkbenchError as error:
                yield f"{where}: event {seq} cannot be read: {error.what[:200]}"
    if not expected:
        yield "events: there is none"


def _wrong_numbers(cursor: Cursor) -> Iterator[str]:
    """Rows belong to events that bring such rows, and no sample is there twice."""
    taken = SampleTaken.__name__
    parents = {"samples": f"SELECT seq FROM events WHERE type = '{taken}'"}  # noqa: S608 - own name
    for table, columns in COLUMNS.items():
        if table == "events" or "seq" not in columns:
            continue
        of_samples = table not in ("samples", "models", "breakpoints")
        parent = "SELECT seq FROM samples" if of_samples else "SELECT seq FROM events"
        strays = cursor.execute(
            f"SELECT rowid, seq FROM {table}"  # noqa: S608 - own names
            f" WHERE seq NOT IN ({parents.get(table, parent)}) ORDER BY rowid LIMIT 1"
        ).fetchall()
        for row, seq in strays:
            yield f"{table}, row {row + 1}: event {seq} brought no such row"
    for column in ("seq", "id"):
        for row, value in cursor.execute(
            f"SELECT max(rowid), {column} FROM samples"  # noqa: S608 - own names
            f" GROUP BY {column} HAVING count(*) > 1 LIMIT 1"
        ).fetchall():
            yield f"samples, row {row + 1}: {column} {str(value)[:80]!a} is there twice"
    for row, wl in cursor.execute(
        "SELECT rowid, wl FROM samples WHERE wl < 0 ORDER BY rowid LIMIT 1"
    ).fetchall():
        yield f"samples, row {row + 1}: the load is {wl}"


def _infinite(cursor: Cursor) -> Iterator[str]:
    """JSON cannot say NaN or infinity, so that nobody could be told such a row."""
    columns = cursor.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns()"
        " WHERE NOT internal AND contains(data_type, 'DOUBLE') ORDER BY ALL"
    ).fetchall()
    checks: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for table, column, kind in columns:
        name = _quoted_name(column)
        inside = name if kind == "DOUBLE[]" else f"list_transform(map_values({name}), {_NUMBER})"
        lists = f"len(list_filter({inside}, lambda x: NOT isfinite(x))) > 0"
        checks[table].append((column, f"NOT isfinite({name})" if kind == "DOUBLE" else lists))
    for table, conditions in checks.items():
        first = ", ".join(f"min(rowid) FILTER (WHERE {condition})" for _, condition in conditions)
        rows = reading.one(cursor, f"SELECT {first} FROM {table}")  # noqa: S608 - own names
        for (column, _), row in zip(conditions, rows, strict=True):
            if row is not None:
                yield f"{table}, row {row + 1}: {column} is not a finite number"
