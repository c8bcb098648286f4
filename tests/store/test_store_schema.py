"""Schemas: the released ones open, old ones are migrated with a copy, newer ones are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
from session_making import EPOCH, closed_session, facts, make_session

from workbench.domain.errors import SessionError
from workbench.domain.events import RunPaused
from workbench.store import schema
from workbench.store.database import Database
from workbench.store.rows import COLUMNS
from workbench.store.session_file import SessionFile, open_session

FIXTURES = Path(__file__).parents[1] / "fixtures" / "schemas"
"""`schema-N.session`: a session as release N of the schema wrote it (scripts in its README)."""

ADDITION = "ALTER TABLE samples ADD COLUMN weather VARCHAR DEFAULT 'fair';"


NOW = schema.newest(schema.migrations())


def newer(sql: str = ADDITION) -> tuple[schema.Migration, ...]:
    """The steps of a release to come."""
    steps = schema.migrations()
    return (*steps, schema.Migration(schema.newest(steps) + 1, sql))


def test_there_is_a_fixture_of_every_released_schema() -> None:
    names = {path.name for path in FIXTURES.glob("*.session")}
    assert names == {f"schema-{step.version}.session" for step in schema.migrations()}


@pytest.mark.parametrize("version", [step.version for step in schema.migrations()])
@pytest.mark.parametrize("read_only", [True, False])
async def test_a_session_of_every_released_schema_opens(
    tmp_path: Path, version: int, read_only: bool
) -> None:
    path = tmp_path / "old.duckdb"
    shutil.copy(FIXTURES / f"schema-{version}.session", path)
    session = await SessionFile.open(path, read_only=read_only)
    view = await session.view()
    assert (view.state, view.samples_taken) == ("finished", 12)
    measurements = await session.measurements()
    assert len(measurements) == 12
    assert {m.sample.purpose for m in measurements} == {"profile"}
    assert not any(m.observations for m in measurements), "none are made up"
    kept = {(m.sample.remarks, m.sample.bypass, m.sample.block) for m in measurements}
    assert (kept == {((), None, 0)}) is (version == 1), "what schema 1 did not know is defaulted"
    await session.close()


def test_rows_name_every_column_of_the_schema() -> None:
    database = Database(None, read_only=True)
    with database.reading() as cursor:
        schema.migrate(cursor, 0, schema.newest(schema.migrations()), schema.migrations())
        assert set(schema.tables_of(cursor)) == set(COLUMNS)
        for table, columns in COLUMNS.items():
            found = cursor.execute(f"SELECT column_name FROM (DESCRIBE {table})").fetchall()
            assert {name for (name,) in found} == set(columns), table
        units = cursor.execute(
            "SELECT count(*) FROM duckdb_columns() WHERE comment IS NOT NULL"
        ).fetchone()
        assert units is not None
        assert units[0] > 30
    database.close()


async def test_files_stay_readable_for_duckdb_1_5(tmp_path: Path) -> None:
    await closed_session(tmp_path / "s.duckdb")
    with duckdb.connect(tmp_path / "s.duckdb", read_only=True) as connection:
        options = connection.execute(
            "SELECT tags FROM duckdb_databases() WHERE database_name = 's'"
        ).fetchone()
    assert options == ({"storage_version": "v1.5.0+"},)


async def test_an_old_file_is_copied_then_migrated(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    await closed_session(path)
    session = open_session(path, steps=newer())
    backup = tmp_path / f"s.duckdb.schema-{NOW}"
    assert session.warnings == (
        f"migrated from schema {NOW} to {NOW + 1}; the file as it was is {backup.name}",
    )
    assert (await session.append(RunPaused("me"), at=EPOCH)).seq == len(facts()) + 2
    await session.close()

    with duckdb.connect(path) as connection:
        assert connection.execute("SELECT DISTINCT weather FROM samples").fetchall() == [("fair",)]
        applied = connection.execute("SELECT version FROM schema_migrations").fetchall()
    assert applied == [(version,) for version in range(1, NOW + 2)]
    old = await SessionFile.open(backup, read_only=True)
    assert old.last_seq == len(facts()) + 1
    await old.close()


async def test_reading_an_old_file_leaves_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    await closed_session(path)
    before = path.read_bytes()
    session = open_session(path, read_only=True, steps=newer())
    assert f"shown as schema {NOW + 1}" in session.warnings[0]
    assert (await session.view()).samples_taken == 12
    assert len(await session.measurements()) == 12
    await session.close()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


async def test_a_bundle_of_an_old_schema_is_migrated_in_memory(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "s.duckdb")
    await session.write_tables(tmp_path / "s.bundle")
    await session.close()
    bundle = open_session(tmp_path / "s.bundle", steps=newer())
    assert len(await bundle.measurements()) == 12
    await bundle.close()


async def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    await closed_session(path)
    with pytest.raises(SessionError, match="no_such_table"):
        open_session(path, steps=newer(f"{ADDITION} DROP TABLE no_such_table;"))
    session = await SessionFile.open(path)
    assert session.warnings == ()
    assert (await session.view()).samples_taken == 12
    await session.close()


@pytest.mark.parametrize("read_only", [True, False])
async def test_a_newer_file_is_refused_with_the_version_that_reads_it(
    tmp_path: Path, read_only: bool
) -> None:
    path = tmp_path / "s.duckdb"
    await closed_session(path)
    with duckdb.connect(path) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (7, 0, '3.2.0', '4.0')")
    before = path.read_bytes()
    with pytest.raises(SessionError) as refused:
        await SessionFile.open(path, read_only=read_only)
    assert "schema 7, written by workbench 3.2.0" in str(refused.value)
    assert "Upgrade to vnf-workbench 3.2.0 or later" in str(refused.value)
    assert path.read_bytes() == before
