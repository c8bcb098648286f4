"""A session file that was hurt: killed writers, damaged logs, full disks, strange files."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from session_making import EPOCH, closed_session, created, facts, make_session

from workbench.domain.errors import SessionError
from workbench.domain.events import Noted, RunPaused
from workbench.store.acknowledged import Acknowledged, beside
from workbench.store.session_file import SessionFile

LONG = pytest.mark.long
Left = tuple[Path, int]
"""A session's file, and the number of its last event."""
Killed = Callable[[Path], int]
"""Leaves a session as a killed process would."""
APPENDER = """
import asyncio, sys
from pathlib import Path
from session_making import EPOCH, created, facts
from workbench.domain.errors import SessionError
from workbench.domain.events import Noted
from workbench.store.session_file import SessionFile

async def main():
    session = await SessionFile.create(Path(sys.argv[1]), created(), at=EPOCH)
    if len(sys.argv) > 2:  # bytes that a file may grow to: the disk is full at some point
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
    print(session.last_seq, flush=True)
    try:
        for fact, measured in facts():
            event = await session.append(fact, at=EPOCH, measurement=measured)
            print(event.seq, flush=True)
        while True:
            event = await session.append(Noted("info", "x" * 500), at=EPOCH)
            print(event.seq, flush=True)
    except SessionError as error:
        print(error, flush=True)
        try:
            await session.append(Noted("info", "more"), at=EPOCH)
        except SessionError as error:
            print(error, flush=True)
    await session.close()

asyncio.run(main())
"""


def appender(path: Path, *arguments: str) -> subprocess.Popen[str]:
    tests = str(Path(__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", APPENDER, str(path), *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    "acknowledged", [1, pytest.param(7, marks=LONG), 40, pytest.param(150, marks=LONG)]
)
async def test_kill_9_costs_nothing_that_was_acknowledged(
    tmp_path: Path, acknowledged: int
) -> None:
    path = tmp_path / "s.duckdb"
    with appender(path) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= acknowledged:
                break
        writer.send_signal(signal.SIGKILL)
        told = [acknowledged, *(int(line) for line in writer.stdout if line.strip().isdigit())][-1]
    session = await SessionFile.open(path)
    assert session.warnings == ()
    assert session.last_seq >= told
    stored = [event.fact for event in await session.events(limit=10_000)]
    expected = [created(), *(fact for fact, _ in facts())]
    assert stored[: len(expected)] == expected[: len(stored)]
    taken = [m for n, (_, m) in enumerate(facts(), 2) if m is not None and n <= session.last_seq]
    assert list(await session.measurements()) == taken
    assert (await session.append(RunPaused("me"), at=EPOCH)).seq == len(stored) + 1
    await session.close()


async def test_a_full_disk_is_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with appender(path, "400000") as writer:
        assert writer.stdout is not None
        *numbers, error, again = writer.stdout.read().splitlines()
    assert writer.returncode == 0
    for sentence in (error, again):
        assert "the disk is full or a quota is reached" in sentence
        assert "workbench resume" in sentence
    session = await SessionFile.open(path)
    assert session.warnings == ()
    assert session.last_seq == int(numbers[-1])
    assert await session.sample_counts() == (12, 1)
    assert (await session.append(RunPaused("me"), at=EPOCH)).seq == int(numbers[-1]) + 1
    await session.close()


PARTS = ("", ".wal", ".acknowledged")


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Left:
    """A session as a killed process would leave it: with all events in its log."""
    path = tmp_path_factory.mktemp("killed") / "s.duckdb"

    async def made() -> int:
        session = await SessionFile.create(path, created(), at=EPOCH)
        for fact, measured in facts():  # a commit each
            await session.append(fact, at=EPOCH, measurement=measured)
        last = session.last_seq
        for suffix in PARTS:
            shutil.copy(f"{path}{suffix}", f"{path}{suffix}.copy")
        await session.close()
        for suffix in PARTS:
            Path(f"{path}{suffix}.copy").rename(f"{path}{suffix}")
        return last

    return path, asyncio.run(made())


@pytest.fixture
def killed(left_behind: Left) -> Killed:
    """Leaves it at a path; the number of its last event."""
    left, last = left_behind

    def copied(path: Path) -> int:
        for suffix in PARTS:
            shutil.copy(f"{left}{suffix}", f"{path}{suffix}")
        return last

    return copied


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


def without_copy(path: Path) -> None:
    """As releases before 0.2 left it, or a full disk: the number alone."""
    beside = path.with_name(f"{path.name}.acknowledged")
    beside.write_bytes(beside.read_bytes()[:21])


def cut_in_half(log: Path) -> None:
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])


def flipped(log: Path) -> None:
    flip(log, log.stat().st_size // 2)


def short_of_a_tail(log: Path) -> None:
    """DuckDB itself says nothing of it."""
    log.write_bytes(log.read_bytes()[:-7])


def garbage(log: Path) -> None:
    log.write_bytes(b"garbage")


def gone(log: Path) -> None:
    log.unlink()


HURT = (cut_in_half, flipped, short_of_a_tail, garbage, gone)


@pytest.mark.parametrize("hurt", HURT)
async def test_a_damaged_log_costs_nothing_since_there_is_a_second_copy(
    tmp_path: Path, killed: Killed, hurt: Callable[[Path], None]
) -> None:
    path, log = tmp_path / "s.duckdb", tmp_path / "s.duckdb.wal"
    last = killed(path)
    hurt(log)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    whole = [created(), *(fact for fact, _ in facts())]
    taken = [measured for _, measured in facts() if measured is not None]

    reader = await SessionFile.open(path, read_only=True)
    assert re.search(rf"damaged; events \d+ to {last} come from the second", reader.warnings[0])
    assert "no event is lost" in reader.warnings[0]
    assert [event.fact for event in await reader.events()] == whole
    assert list(await reader.measurements()) == taken
    await reader.close()
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == before, (
        "a reader changes nothing"
    )

    session = await SessionFile.open(path)
    assert "no event is lost" in session.warnings[0]
    for aside in tmp_path.glob("s.duckdb.wal.corrupt-*"):
        assert aside.name in session.warnings[0]
        assert aside.read_bytes() == before[log.name]
    assert [event.fact for event in await session.events()] == whole
    assert list(await session.measurements()) == taken
    assert (await session.append(RunPaused("me"), at=EPOCH)).seq == last + 1
    await session.close()
    session = await SessionFile.open(path)
    assert (session.warnings, session.last_seq) == ((), last + 1)
    await session.close()


@pytest.mark.parametrize("hurt", HURT)
async def test_what_no_copy_brings_back_is_said_by_readers_and_writers(
    tmp_path: Path, killed: Killed, hurt: Callable[[Path], None]
) -> None:
    path, log = tmp_path / "s.duckdb", tmp_path / "s.duckdb.wal"
    last = killed(path)
    without_copy(path)
    hurt(log)
    files = set(tmp_path.iterdir())
    reader = await SessionFile.open(path, read_only=True)
    kept = reader.last_seq
    assert kept < last
    assert f"events {kept + 1} to {last} are lost" in reader.warnings[0]
    await reader.close()
    assert set(tmp_path.iterdir()) == files
    session = await SessionFile.open(path)
    assert f"events {kept + 1} to {last} are lost" in session.warnings[0]
    assert (await session.append(RunPaused("me"), at=EPOCH)).seq == kept + 1
    await session.close()
    session = await SessionFile.open(path)
    assert session.warnings == ()
    await session.close()


async def test_a_second_kill_finds_the_copy_of_both_writers(tmp_path: Path, killed: Killed) -> None:
    path, log = tmp_path / "s.duckdb", tmp_path / "s.duckdb.wal"
    last = killed(path)
    session = await SessionFile.open(path)
    await session.append(RunPaused("me"), at=EPOCH)
    again = tmp_path / "again"
    again.mkdir()
    for suffix in ("", ".wal", ".acknowledged"):
        shutil.copy(f"{path}{suffix}", again)
    await session.close()
    flipped(again / log.name)
    session = await SessionFile.open(again / path.name)
    assert "no event is lost" in session.damage[0]
    assert session.last_seq == last + 1
    await session.close()


async def test_the_copy_of_another_session_is_not_taken(tmp_path: Path, killed: Killed) -> None:
    path, other = tmp_path / "s.duckdb", tmp_path / "o.duckdb"
    last = killed(path)
    session = await SessionFile.create(other, created(), at=EPOCH + 1)
    await session.close()
    beside = tmp_path / "s.duckdb.acknowledged"
    beside.rename(tmp_path / "o.duckdb.acknowledged")
    session = await SessionFile.open(other)
    assert f"events 2 to {last} are lost" in session.warnings[0]
    await session.close()


async def test_a_copy_that_is_torn_is_taken_up_to_there(tmp_path: Path, killed: Killed) -> None:
    path = tmp_path / "s.duckdb"
    last = killed(path)
    gone(tmp_path / "s.duckdb.wal")
    beside = tmp_path / "s.duckdb.acknowledged"
    lines = beside.read_bytes().splitlines(keepends=True)
    beside.write_bytes(b"".join(lines[:12]) + lines[12][:40])
    session = await SessionFile.open(path, read_only=True)
    assert "events 2 to 11 come from the second copy" in session.warnings[0]
    assert f"events 12 to {last} are lost" in session.warnings[0]
    await session.close()


async def test_a_log_is_merged_before_it_is_three_times_the_session(tmp_path: Path) -> None:
    path, log = tmp_path / "s.duckdb", tmp_path / "s.duckdb.wal"
    beside = tmp_path / "s.duckdb.acknowledged"
    session = await make_session(path)
    merged, before = 0, 0
    for _ in range(60):
        await session.append(Noted("info", "x" * 40_000), at=EPOCH)
        await session.samples(0, 1)  # the writer has done what follows a commit
        longest = log.stat().st_size if log.exists() else 0
        assert longest < 3 * path.stat().st_size
        assert beside.stat().st_size < 3 * path.stat().st_size + 50_000
        merged, before = merged + (longest < before), longest
    assert merged >= 2
    await session.close()


async def test_a_log_that_somebody_removes_is_merged_at_once(tmp_path: Path) -> None:
    path, log = tmp_path / "s.duckdb", tmp_path / "s.duckdb.wal"
    session = await make_session(path)
    last = session.last_seq
    log.unlink()
    await session.append(Noted("info", "more"), at=EPOCH)
    await session.append(Noted("info", "and more"), at=EPOCH)  # behind what follows the first
    for suffix in ("", ".wal"):
        if (file := Path(f"{path}{suffix}")).exists():
            shutil.copy(file, tmp_path / f"copy.duckdb{suffix}")
    copy = await SessionFile.open(tmp_path / "copy.duckdb")
    assert copy.last_seq >= last + 1
    await copy.close()
    await session.close()


async def test_a_log_that_is_not_to_blame_stays_where_it_is(tmp_path: Path, killed: Killed) -> None:
    path, log = tmp_path / "s.duckdb", tmp_path / "s.duckdb.wal"
    killed(path)
    other = tmp_path / "other.duckdb"
    killed(other)
    flip(log, log.stat().st_size // 2)
    flip(path, 9000)  # both headers of the database itself
    flip(path, 5000)
    with pytest.raises(SessionError):
        await SessionFile.open(path)
    assert log.exists()
    assert not list(tmp_path.glob("*.corrupt-*"))


async def test_missing_events_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    await closed_session(path)
    with duckdb.connect(path) as connection:
        connection.execute("DELETE FROM events WHERE seq IN (5, 9)")
    session = await SessionFile.open(path)
    assert session.warnings == (f"2 of {len(facts()) + 1} events are missing from s.duckdb",)
    await session.close()


def not_duckdb(path: Path) -> None:
    path.write_bytes(b"this is a text\n" * 1000)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def another_database(path: Path) -> None:
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE mine (a INTEGER)")


def view_in_place_of_a_table(path: Path) -> None:
    """Reading it would run its author's query."""
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE schema_migrations (version INTEGER, app_version TEXT)")
        connection.execute("CREATE TABLE meta (key TEXT, value TEXT)")
        connection.execute("CREATE VIEW events AS SELECT * FROM read_text('/etc/hostname')")


async def test_a_macro_in_a_session_is_not_run(tmp_path: Path) -> None:
    """DuckDB lets a file's macro stand in for a function that we call."""
    path = tmp_path / "s.duckdb"
    await closed_session(path)
    with duckdb.connect(path) as connection:
        connection.execute("CREATE MACRO max(x) AS (SELECT content FROM read_text('/etc/hosts'))")
        connection.execute("CREATE MACRO duckdb_functions() AS TABLE SELECT 1 WHERE false")
    for read_only in (True, False):
        with pytest.raises(SessionError, match="not a session"):
            await SessionFile.open(path, read_only=read_only)


def cut_short(path: Path) -> None:
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE mine AS SELECT range AS a FROM range(100000)")
    path.write_bytes(path.read_bytes()[:20000])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (not_duckdb, "is not a session file"),
        (empty, "is not a session file"),
        (another_database, "not a session"),
        (view_in_place_of_a_table, "not a session"),
        (cut_short, "is damaged"),
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
async def test_what_is_no_session_is_refused_in_a_sentence(
    tmp_path: Path, make: object, says: str, read_only: bool
) -> None:
    path = tmp_path / "s.duckdb"
    assert callable(make)
    make(path)
    before = path.read_bytes()
    with pytest.raises(SessionError, match=says) as refused:
        await SessionFile.open(path, read_only=read_only)
    assert refused.value.where == str(path)
    assert refused.value.remedy
    assert path.read_bytes() == before


async def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="is not there"):
        await SessionFile.open(tmp_path / "s.duckdb")
    with pytest.raises(SessionError, match="no manifest"):
        await SessionFile.open(tmp_path)


async def test_a_folder_that_cannot_be_written_is_said() -> None:
    # /sys refuses new files to everyone; permission bits would not stop the root of a container.
    with pytest.raises(SessionError, match="permission denied") as refused:
        await SessionFile.create(Path("/sys/s.duckdb"), created(), at=EPOCH)
    assert "/sys/s.duckdb" in str(refused.value)
    assert "--workspace" in str(refused.value)


async def test_waiting_appends_hear_of_a_closed_session(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "s.duckdb", until=1)
    await session.close()
    with pytest.raises(SessionError, match="not open for writing"):
        await session.append(Noted("info", "late"), at=time.time())


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_no_room_for_the_second_copy_is_a_sentence_and_nobody_waits_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.duckdb"
    session = await make_session(path)
    monkeypatch.setattr(Acknowledged, "restart", no_room)
    with pytest.raises(SessionError, match="the disk is full"):
        await asyncio.wait_for(session.checkpoint(), 10)
    last = (await session.append(RunPaused("me"), at=EPOCH)).seq
    await session.close()
    with pytest.raises(SessionError, match="the disk is full"):
        await SessionFile.open(path)
    opened = {each.resolve() for each in Path("/proc/self/fd").iterdir()}
    assert not opened & {path, beside(path)}
    monkeypatch.undo()
    session = await SessionFile.open(path)
    assert (session.warnings, session.last_seq) == ((), last)
    await session.close()
