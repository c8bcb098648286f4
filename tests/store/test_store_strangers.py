"""Bundles from strangers, whose digests fit whatever they hold: refused with table and row, or by
their size, before anything is written."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from session_making import make_session

from workbench.domain.errors import SessionError
from workbench.store import strangers
from workbench.store.session_file import SessionFile, import_bundle

LAST = 40
"""Events of the session."""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")

    async def export() -> None:
        session = await make_session(folder / "demo-1.duckdb")
        await session.write_tables(folder / "demo-1.bundle")
        await session.close()

    asyncio.run(export())
    return folder / "demo-1.bundle"


@pytest.fixture
def bundle(exported: Path, tmp_path: Path) -> Path:
    return shutil.copytree(exported, tmp_path / exported.name)


def alter(bundle: Path, table: str, query: str) -> None:
    """Write a table anew by a query over `old`, and a manifest that fits."""
    file = bundle / f"{table}.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE old AS SELECT * FROM '{file}'")
        connection.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet, COMPRESSION zstd)")
        count = connection.execute(f"SELECT count(*) FROM '{file}'").fetchone()
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["sha256"][table] = hashlib.sha256(file.read_bytes()).hexdigest()
    assert count is not None
    manifest["tables"][table] = count[0]
    (bundle / "manifest.json").write_text(json.dumps(manifest))


async def refused(bundle: Path, says: str) -> None:
    new = bundle.parent / "new.duckdb"
    for way in (SessionFile.open(bundle), import_bundle(bundle, new)):
        with pytest.raises(SessionError, match=says) as error:
            await way
        assert error.value.where == str(bundle)
    assert not new.exists()
    assert not [path for path in bundle.parent.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("table", "query", "says"),
    [
        ("events", "FROM old WHERE seq <> 5", "events, row 5: event 6 stands where event 5"),
        ("events", "SELECT * REPLACE (least(seq, 7) AS seq) FROM old", "events, row 8: event 7"),
        ("events", "SELECT * REPLACE (seq - 3 AS seq) FROM old", "events, row 1: event -2 stands"),
        ("events", "FROM old WHERE false", "events: there is none"),
        (
            "events",
            "SELECT * REPLACE ('nan'::DOUBLE AS happened_at) FROM old",
            "events, row 1: event 1 happened at nan",
        ),
        (
            "events",
            "SELECT * REPLACE (CASE seq WHEN 9 THEN '{\"a\":1}' ELSE payload END AS payload)"
            " FROM old",
            "events, row 9: event 9 cannot be read: not a SampleTaken",
        ),
        (
            "events",
            "SELECT * REPLACE (CASE seq WHEN 4 THEN 'Junk' ELSE type END AS type) FROM old",
            "events, row 4: event 4 cannot be read: no event is called 'Junk'",
        ),
        (
            "events",
            "SELECT * REPLACE (CASE seq WHEN 1 THEN 'RunPaused' ELSE type END AS type) FROM old",
            "events, row 1: event 1 is 'RunPaused'",
        ),
        (
            "samples",
            "SELECT * REPLACE (CASE wl WHEN 200 THEN 'inf'::DOUBLE ELSE wl END AS wl) FROM old",
            r"samples, row 2: wl is not a finite number",
        ),
        ("samples", "SELECT * REPLACE (-wl AS wl) FROM old", "samples, row 1: the load is -100"),
        (
            "samples",
            "SELECT * REPLACE (seq + 1 AS seq) FROM old",
            "samples, row 1: event 8 brought no such row",
        ),
        ("samples", "SELECT * REPLACE ('a' AS id) FROM old", "id 'a' is there twice"),
        (
            "sample_kpis",
            "SELECT * REPLACE ('nan'::DOUBLE AS high) FROM old",
            "sample_kpis, row 1: high is not a finite number",
        ),
        (
            "configurations",
            "SELECT * REPLACE (map(['haproxy.vcpu'], [{'number': 'nan'::DOUBLE,"
            " 'text': NULL::VARCHAR}]) AS resources) FROM old",
            "configurations, row 1: resources is not a finite number",
        ),
        (
            "configurations",
            "SELECT * REPLACE (map(['haproxy.vcpu'], [{'number': NULL::DOUBLE,"
            " 'text': NULL::VARCHAR}]) AS resources) FROM old",
            "configurations, row 1: resources has a name without a value",
        ),
        (
            "configurations",
            "SELECT * REPLACE (map(['filesize'], [NULL::STRUCT(number DOUBLE, text VARCHAR)])"
            " AS workload) FROM old",
            "configurations, row 1: workload has a name without a value",
        ),
        (
            "models",
            "SELECT * REPLACE (map(['a'], [NULL::STRUCT(number DOUBLE, text VARCHAR)])"
            " AS parameters) FROM old",
            "models, row 1: parameters has a name without a value",
        ),
        (
            "models",
            "SELECT * REPLACE (['inf'::DOUBLE] AS coefficients) FROM old",
            "models, row 1: coefficients is not a finite number",
        ),
        (
            "windows",
            "SELECT * REPLACE (seq + 100 AS seq) FROM old",
            "windows, row 1: event 107 brought no such row",
        ),
    ],
)
async def test_tables_that_no_session_has_are_refused_with_table_and_row(
    bundle: Path, table: str, query: str, says: str
) -> None:
    alter(bundle, table, query)
    await refused(bundle, says)


async def test_equal_events_by_the_million_are_refused_unread(bundle: Path) -> None:
    alter(
        bundle,
        "events",
        "FROM old UNION ALL SELECT range + 41, 0, 'Noted',"
        ' \'{"level":"info","text":"\' || repeat(\'x\', 900) || \'"}\' FROM range(400000)',
    )
    assert (bundle / "events.parquet").stat().st_size < 1_000_000
    await refused(bundle, r"with events it takes up more than 268435456 bytes")


async def test_a_text_of_many_megabytes_is_refused(bundle: Path) -> None:
    alter(bundle, "meta", "FROM old UNION ALL SELECT 'k', repeat('x', 20_000_000)")
    await refused(bundle, "meta has a value of 20000000 bytes")


async def test_rows_without_end_are_refused(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "MOST_ROWS", LAST - 1)
    await refused(bundle, "events has 40 rows, not under 39")


def as_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def as_a_link(path: Path) -> None:
    path.rename(path.with_suffix(".real"))
    path.symlink_to(path.with_suffix(".real"))


def as_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("made", [as_a_pipe, as_a_link, as_a_folder])
@pytest.mark.parametrize("name", ["events.parquet", "manifest.json"])
async def test_only_regular_files_are_read(
    bundle: Path, made: Callable[[Path], None], name: str
) -> None:
    made(bundle / name)
    await refused(bundle, f"{name} is not a regular file")


async def test_a_manifest_that_is_no_text_is_refused(bundle: Path) -> None:
    manifest = bundle / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"vnf", b"\xffnf", 1))
    await refused_manifest(bundle, "not JSON: 'utf-8' codec can't decode byte 0xff")


async def refused_manifest(bundle: Path, says: str) -> None:
    with pytest.raises(SessionError, match=says) as error:
        await SessionFile.open(bundle)
    assert error.value.where == str(bundle / "manifest.json")


async def test_a_manifest_of_many_megabytes_is_not_read(bundle: Path) -> None:
    with (bundle / "manifest.json").open("ab") as file:
        file.truncate(strangers.LONGEST_MANIFEST + 1)
    await refused(bundle, "manifest.json has 16777217 bytes")
