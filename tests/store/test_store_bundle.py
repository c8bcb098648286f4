"""Bundles: everything comes back, whole or not at all, and damage is said."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from session_making import EPOCH, make_session

from workbench.domain.errors import SessionError, SessionTaken
from workbench.domain.events import RunPaused
from workbench.store.bundle import summary_of
from workbench.store.rows import COLUMNS
from workbench.store.session_file import SessionFile, import_bundle


@pytest.fixture
async def bundle(tmp_path: Path) -> Path:
    session = await make_session(tmp_path / "demo-1.duckdb")
    folder = tmp_path / "out" / "demo-1.bundle"
    files = await session.write_tables(folder)
    assert set(files) == set(folder.iterdir())
    assert {file.name for file in files} == {
        "manifest.json",
        *(f"{table}.parquet" for table in COLUMNS),
    }
    await session.close()
    return folder


async def test_a_bundle_opens_like_the_session(bundle: Path, tmp_path: Path) -> None:
    session = await SessionFile.open(tmp_path / "demo-1.duckdb", read_only=True)
    opened = await SessionFile.open(bundle)
    assert opened.name == "demo-1"
    assert await opened.events() == await session.events()
    assert await opened.measurements() == await session.measurements()
    assert await opened.descriptors() == await session.descriptors()
    assert await opened.view() == await session.view()
    summary = await opened.summary()
    assert (summary.kind, summary.state, summary.samples) == ("bundle", "finished", 12)
    assert summary_of(bundle) == summary
    with pytest.raises(SessionError, match="not open for writing"):
        await opened.append(RunPaused("me"), at=EPOCH)
    await opened.close()
    await session.close()


async def test_an_imported_bundle_is_a_session_again(bundle: Path, tmp_path: Path) -> None:
    opened = await SessionFile.open(bundle)
    path = tmp_path / "copy.duckdb"
    session = await import_bundle(bundle, path)
    assert session.name == "copy"
    assert await session.measurements() == await opened.measurements()
    assert [e.fact for e in await session.events()] == [e.fact for e in await opened.events()]
    event = await session.append(RunPaused("me"), at=EPOCH)
    assert event.seq == opened.last_seq + 1
    sample = (await session.samples())[0]
    assert sample.point.configuration.resources  # known again by its number, not stored anew
    await session.write_tables(tmp_path / "again.bundle")
    await session.close()
    await opened.close()
    with pytest.raises(SessionTaken, match="workbench resume copy"):
        await import_bundle(bundle, path)
    again = json.loads((tmp_path / "again.bundle" / "manifest.json").read_text())
    first = json.loads((bundle / "manifest.json").read_text())
    assert again["tables"] == {**first["tables"], "events": first["tables"]["events"] + 1}
    assert first["units"]["samples.started_at"] == "seconds since the epoch"


async def test_writing_again_replaces_a_bundle_and_nothing_else(
    bundle: Path, tmp_path: Path
) -> None:
    opened = await SessionFile.open(bundle)
    (bundle / "stale.txt").write_text("from an older release")
    await opened.write_tables(bundle)
    assert not (bundle / "stale.txt").exists()
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    with pytest.raises(SessionError, match="not a bundle"):
        await opened.write_tables(other)
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]
    assert [path.name for path in bundle.parent.iterdir()] == ["demo-1.bundle"]
    await opened.close()


async def test_parquet_is_typed_for_whoever_reads_it(bundle: Path) -> None:
    with duckdb.connect() as connection:
        shares = connection.execute(
            f"""SELECT k.value / c.resources['haproxy.vcpu'].number
            FROM '{bundle}/samples.parquet' s JOIN '{bundle}/sample_kpis.parquet' k USING (seq)
            JOIN '{bundle}/configurations.parquet' c USING (configuration)
            WHERE k.kpi = 'throughput_rps' AND target = 'haproxy' ORDER BY s.seq"""
        ).fetchall()
    assert [share for (share,) in shares] == [
        wl / vcpu for vcpu in (0.125, 0.25) for wl in (100, 200, 400, 800)
    ]


async def test_a_damaged_bundle_is_refused_and_leaves_no_session(
    bundle: Path, tmp_path: Path
) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())

    async def refused(says: str) -> None:
        for way in (SessionFile.open(bundle), import_bundle(bundle, tmp_path / "new.duckdb")):
            with pytest.raises(SessionError, match=says) as error:
                await way
            assert error.value.where
            assert str(bundle) in error.value.where
        assert not (tmp_path / "new.duckdb").exists()
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]

    def rewrite(**changes: object) -> None:
        (bundle / "manifest.json").write_text(json.dumps({**manifest, **changes}))

    rewrite(schema_version=9, app_version="3.2.0")
    await refused("Upgrade to vnf-workbench 3.2.0")
    rewrite(format="something else")
    await refused("not the manifest of a bundle")
    rewrite(tables={**manifest["tables"], "samples": 13})
    await refused("samples has 12 rows instead of 13")
    (bundle / "manifest.json").write_text("{not json")
    await refused("not JSON")
    rewrite()
    rewrite(schema_version=-1)
    await refused("not the manifest of a bundle")
    rewrite()
    series = (bundle / "series.parquet").read_bytes()
    flipped = bytearray(series)
    flipped[len(series) // 2] ^= 1
    (bundle / "series.parquet").write_bytes(flipped)
    await refused("series.parquet is not what was written")
    rewrite(sha256=None)  # as older bundles
    (bundle / "series.parquet").write_bytes(series[:200])
    await refused("No magic bytes found at end of file '[^ ]*series.parquet'. Copy")
    (bundle / "series.parquet").unlink()
    await refused("damaged bundle")
    rewrite()
    await refused("series.parquet is missing")
