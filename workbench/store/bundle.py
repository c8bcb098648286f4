"""A session as a folder: one Parquet file per table and `manifest.json`.

A bundle is what is shipped, mailed and archived. It opens like a session, in memory, and comes
back as a session file with everything in it; one of an older schema takes the same migrations as
an old session file.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from workbench import __version__, files
from workbench.domain import codec
from workbench.domain.errors import SessionError, WorkbenchError
from workbench.domain.sessions import SessionSummary
from workbench.store import reading, schema
from workbench.store.database import Cursor, Database, new_file, quoted, sentence
from workbench.store.rows import COLUMNS
from workbench.store.strangers import (
    LONGEST_MANIFEST,
    damaged,
    refuse_bombs,
    refuse_irregular,
    refuse_nonsense,
)

MANIFEST = "manifest.json"
FORMAT = "vnf-workbench bundle"


def is_bundle(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def digest_of(folder: Path) -> str:
    """SHA-256 of a bundle's manifest, which has those of its tables."""
    return _digest(folder / MANIFEST)


def is_whole(folder: Path, digest: str = "") -> bool:
    """Whether a bundle lies there, with that digest of its manifest (empty: any), every table of
    which is what was written; it reads all of them, for a thread."""
    try:
        if digest and digest_of(folder) != digest:
            return False
        check_every_digest(read_manifest(folder), folder)
    except (WorkbenchError, OSError):
        return False
    return True


def name_of(path: Path) -> str:
    """A session's name: of the file without its suffix, or of the bundle's folder."""
    return path.name.removesuffix(".bundle") if path.is_dir() else path.stem


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a bundle. Raises `SessionError` if the folder is none."""
    where = str(folder / MANIFEST)
    if (folder / MANIFEST).exists():
        refuse_irregular(folder / MANIFEST, LONGEST_MANIFEST)
    try:
        manifest = codec.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise SessionError(
            "is not a bundle: it has no manifest.json", where=str(folder), remedy="See workbench ls"
        ) from None
    except OSError as error:
        raise sentence(error, folder) from None
    except WorkbenchError as error:
        raise SessionError(error.what, where=where, remedy="Export the bundle again") from None
    known = isinstance(manifest, dict) and manifest.get("format") == FORMAT
    version = manifest.get("schema_version") if known else None
    if not (isinstance(version, int) and version > 0):
        raise SessionError(
            "is not the manifest of a bundle", where=where, remedy="Export the bundle again"
        )
    if not isinstance(manifest.get("tables"), dict):
        raise SessionError("lists no tables", where=where, remedy="Export the bundle again")
    return dict(manifest)


def summary_of(folder: Path) -> SessionSummary:
    """A bundle as one line, from its manifest alone."""
    summary = codec.from_plain(read_manifest(folder).get("summary"), SessionSummary)
    size = sum(_size(file) for file in folder.iterdir())
    return replace(summary, name=name_of(folder), path=str(folder), size_bytes=size, kind="bundle")


def _size(file: Path) -> int:
    """Nothing for a link that leads nowhere."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def write_bundle(
    cursor: Cursor, folder: Path, summary: SessionSummary, caution: str = ""
) -> tuple[Path, ...]:
    """Write every table of an open session into `folder`, which appears whole or not at all.

    `caution` is what nobody may overlook who reads its manifest: that it is a simulation.
    A bundle that lies there already is replaced; any other folder with content is refused.
    """
    if folder.exists() and not is_bundle(folder) and (folder.is_file() or any(folder.iterdir())):
        raise SessionError(
            "exists and is not a bundle", where=str(folder), remedy="Choose another destination"
        )
    partial = files.partial(folder)
    files.sweep(folder.parent, folder.name)
    try:
        partial.mkdir(parents=True)
        cursor.execute("BEGIN")  # one snapshot for all tables, whatever is appended meanwhile
        for table in COLUMNS:
            file = quoted(partial / f"{table}.parquet")
            cursor.execute(
                f"COPY (SELECT * FROM {table} ORDER BY ALL) TO {file}"  # noqa: S608 - quoted
                " (FORMAT parquet, COMPRESSION zstd)"
            )
        manifest = _manifest(cursor, summary, caution) | {"sha256": _digests(partial)}
        cursor.execute("COMMIT")
        (partial / MANIFEST).write_bytes(json.dumps(manifest, indent=1).encode())
        _put_in_place(partial, folder)
    except (duckdb.Error, OSError) as error:
        raise sentence(error, folder) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return tuple(folder / name for name in (MANIFEST, *(f"{table}.parquet" for table in COLUMNS)))


def _manifest(cursor: Cursor, summary: SessionSummary, caution: str) -> dict[str, object]:
    counts = {
        table: int(reading.one(cursor, f"SELECT count(*) FROM {table}")[0])  # noqa: S608 - own names
        for table in COLUMNS
    }
    units = cursor.execute(
        "SELECT table_name, column_name, comment FROM duckdb_columns()"
        " WHERE database_name = current_database() AND comment IS NOT NULL ORDER BY ALL"
    ).fetchall()
    return {
        **({"caution": caution} if caution else {}),
        "format": FORMAT,
        "schema_version": schema.newest(schema.migrations()),
        "app_version": __version__,
        "duckdb_version": duckdb.__version__,
        "session": summary.name,
        "summary": codec.to_plain(
            replace(summary, path="", size_bytes=0, kind="bundle", warnings=())
        ),
        "tables": counts,
        "units": {f"{table}.{column}": comment for table, column, comment in units},
    }


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every table's file, by table: Parquet notices no bit that has flipped."""
    return {table: _digest(folder / f"{table}.parquet") for table in COLUMNS}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _put_in_place(partial: Path, folder: Path) -> None:
    if folder.exists():
        old = partial.with_name(f"{partial.name}.old")
        folder.rename(old)
        partial.rename(folder)
        shutil.rmtree(old)
    else:
        partial.rename(folder)


def load_bundle(
    folder: Path, into: Database, steps: Sequence[schema.Migration] | None = None
) -> None:
    """Fill an empty database from a bundle. Raises `SessionError` where the bundle is damaged."""
    steps = steps or schema.migrations()
    manifest = read_manifest(folder)
    version, tables = int(manifest["schema_version"]), manifest["tables"]
    schema.refuse_newer(version, str(manifest.get("app_version")), str(folder), steps)
    _check_digests(manifest.get("sha256"), folder)
    with into.reading() as cursor:
        try:
            refuse_bombs(cursor, folder)
            schema.fill(cursor, version, lambda table: _parquet(folder, table), steps)
            _check_counts(cursor, tables, folder)
            refuse_nonsense(cursor, folder)
        except duckdb.Error as error:
            # What follows is our own statement, or the whole value that it stumbled over.
            text = re.split(r" LINE \d+: | Input: ", " ".join(str(error).split()))[0]
            raise damaged(folder, text) from error
        except UnicodeDecodeError as error:  # that value, where it is no text
            raise damaged(folder, "it holds bytes that are no text") from error


def check_every_digest(manifest: Mapping[str, Any], folder: Path) -> None:
    """Raises `SessionError` unless the manifest vouches for every table that lies in the folder."""
    digests = manifest.get("sha256")
    there = {file.stem for file in folder.glob("*.parquet")}
    if not isinstance(digests, dict) or there - digests.keys():
        raise SessionError(
            "its manifest does not have the digest of every table",
            where=str(folder),
            remedy="Export the bundle again, with this version",
        )
    _check_digests(digests, folder)


def _check_digests(digests: object, folder: Path) -> None:
    """Older bundles, such as recordings that ship, have none."""
    if not isinstance(digests, dict):
        return
    for table in sorted(COLUMNS.keys() & digests.keys()):
        file = folder / f"{table}.parquet"
        refuse_irregular(file)
        try:
            is_same = _digest(file) == digests[table]
        except OSError as error:
            raise sentence(error, folder) from None
        if not is_same:
            raise damaged(folder, f"{table}.parquet is not what was written")


def _parquet(folder: Path, table: str) -> str:
    return f"SELECT * FROM read_parquet({quoted(folder / f'{table}.parquet')})"  # noqa: S608 - quoted


def _check_counts(cursor: Cursor, tables: Mapping[str, int], folder: Path) -> None:
    for table in COLUMNS.keys() & tables.keys():
        count = int(reading.one(cursor, f"SELECT count(*) FROM {table}")[0])  # noqa: S608 - own names
        if count != tables[table]:
            raise damaged(folder, f"{table} has {count} rows instead of {tables[table]}")


def make_session(folder: Path, path: Path) -> None:
    """What `session_file.import_bundle` does, for a thread; the file is left closed."""
    with new_file(path) as database:
        load_bundle(folder, database)
