"""Sessions of release 0.1, killed in mid-run and as a bundle, opened by this one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from session_making import EPOCH, created, facts

from workbench.domain.events import RunPaused
from workbench.store.session_file import SessionFile, import_bundle

RELEASED = Path(__file__).parents[1] / "fixtures" / "release-0.1"
LAST = 21
"""Its last event; all but the first were in the write-ahead log when it was killed."""

FACTS = [created(), *(fact for fact, _ in facts()[: LAST - 1])]
TAKEN = [measured for _, measured in facts()[: LAST - 1] if measured is not None]


def killed(folder: Path) -> Path:
    for suffix in ("", ".wal", ".acknowledged"):
        shutil.copy(RELEASED / f"killed.session{suffix}", folder / f"old.duckdb{suffix}")
    return folder / "old.duckdb"


@pytest.mark.parametrize("read_only", [True, False])
async def test_a_killed_session_of_0_1_is_whole(tmp_path: Path, read_only: bool) -> None:
    path = killed(tmp_path)
    session = await SessionFile.open(path, read_only=read_only)
    assert session.damage == ()
    how = "read as schema 3" if read_only else "migrated from schema 3"
    assert [warning.startswith(how) for warning in session.warnings] == [True]
    assert [event.fact for event in await session.events()] == FACTS
    assert list(await session.measurements()) == TAKEN
    if not read_only:
        assert (await session.append(RunPaused("me"), at=EPOCH)).seq == LAST + 1
    await session.close()
    assert len(list(tmp_path.iterdir())) == (3 if read_only else 2), "the file as it was is kept"


async def test_a_log_of_0_1_that_is_cut_is_said_though_it_has_no_second_copy(
    tmp_path: Path,
) -> None:
    path = killed(tmp_path)
    log = tmp_path / "old.duckdb.wal"
    log.write_bytes(log.read_bytes()[:-7])
    for read_only in (True, False):
        session = await SessionFile.open(path, read_only=read_only)
        assert f"events {LAST} to {LAST} are lost" in session.damage[0]
        await session.close()


async def test_a_bundle_of_0_1_opens_and_comes_in(tmp_path: Path) -> None:
    opened = await SessionFile.open(RELEASED / "killed.bundle")
    assert [event.fact for event in await opened.events()] == FACTS
    await opened.close()
    session = await import_bundle(RELEASED / "killed.bundle", tmp_path / "new.duckdb")
    assert list(await session.measurements()) == TAKEN
    assert (await session.append(RunPaused("me"), at=EPOCH)).seq == LAST + 1
    await session.close()
