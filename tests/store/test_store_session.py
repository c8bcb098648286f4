"""A session file in normal use: what is appended is numbered, durable and read back equal."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from session_making import (
    EPOCH,
    campaign,
    closed_session,
    created,
    facts,
    make_session,
    measurement,
)

from workbench.domain.errors import SessionBusy, SessionError, SessionTaken
from workbench.domain.events import Noted, RunPaused, SampleTaken
from workbench.domain.projection import SessionView
from workbench.store.database import Database
from workbench.store.session_file import SessionFile


async def test_what_was_appended_is_read_back_after_reopening(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "demo-1.duckdb")
    assert session.last_seq == len(facts()) + 1
    await session.close()

    session = await SessionFile.open(tmp_path / "demo-1.duckdb")
    assert session.warnings == ()
    assert (session.name, session.last_seq) == ("demo-1", len(facts()) + 1)
    events = await session.events()
    assert [event.seq for event in events] == list(range(1, len(facts()) + 2))
    assert [event.fact for event in events] == [created(), *(fact for fact, _ in facts())]
    assert {event.session for event in events} == {"demo-1"}
    taken = tuple(measured for _, measured in facts() if measured is not None)
    assert await session.measurements() == taken
    assert await session.samples() == tuple(m.sample for m in taken)
    assert await session.sample_counts() == (12, 1)
    assert await session.descriptors() == created().descriptors
    await session.close()


async def test_pages_join_up(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "s.duckdb")
    every = await session.samples()
    assert await session.samples(0, 5) + await session.samples(5, 5) == every[:10]
    assert await session.samples(11, 5) == every[11:]
    assert await session.samples(12) == ()
    assert [m.sample for m in await session.measurements(3, 2)] == list(every[3:5])
    assert [event.seq for event in await session.events(after=7, limit=3)] == [8, 9, 10]
    assert await session.events(after=session.last_seq) == ()
    await session.close()


async def test_the_view_is_the_fold_of_the_events_at_every_number(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "s.duckdb")
    folded = SessionView("s")
    for event in await session.events():
        folded.apply(event)
        assert await session.view(event.seq) == folded
    assert await session.view() == folded
    assert folded.state == "finished"
    assert folded.samples_taken == 12
    await session.close()


async def test_a_burst_is_numbered_in_the_order_it_was_appended(tmp_path: Path) -> None:
    session = await SessionFile.create(tmp_path / "s.duckdb", created(), at=EPOCH)
    notes = [Noted("info", f"note {n}") for n in range(1200)]
    events = await asyncio.gather(*(session.append(note, at=EPOCH) for note in notes))
    assert [event.seq for event in events] == list(range(2, 1202))
    assert [event.fact for event in events] == notes
    assert await session.events(1, 2000) == tuple(events)
    await session.close()


async def test_readers_see_whole_commits_while_others_append(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "s.duckdb", until=2)
    configuration = campaign().configurations(campaign().targets[0])[0]

    async def append() -> None:
        for number in range(40):
            taken = measurement("haproxy", configuration, 100.0 + number)
            await session.append(SampleTaken(taken.sample), at=EPOCH, measurement=taken)

    writing = asyncio.create_task(append())
    while not writing.done():
        for one in await session.measurements():
            assert len(one.windows) == one.sample.windows
            assert one.sample.kpis
    await writing
    assert await session.sample_counts() == (40, 0)
    await session.close()


async def test_a_name_that_is_taken_is_refused_with_the_way_to_resume_it(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.duckdb"
    await closed_session(path)
    before = path.read_bytes()
    with pytest.raises(SessionTaken, match="workbench resume demo-1"):
        await SessionFile.create(path, created(), at=EPOCH)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


async def test_a_stored_sample_is_not_stored_twice_and_the_session_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    session = await make_session(path)
    again = SampleTaken((await session.samples())[0])
    last = session.last_seq
    with pytest.raises(SessionError, match="stored already"):
        await session.append(again, at=EPOCH)
    await session.close()
    session = await SessionFile.open(path)
    with pytest.raises(SessionError, match="stored already"):
        await session.append(again, at=EPOCH)
    assert (await session.append(RunPaused("me"), at=EPOCH)).seq == last + 1
    await session.close()


async def test_a_value_that_cannot_be_stored_does_not_break_the_session(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "s.duckdb")
    taken = measurement("haproxy", (await session.samples())[0].point.configuration, 123.0)
    huge = replace(taken, sample=replace(taken.sample, windows=2**40))
    with pytest.raises(SessionError, match="out of range"):
        await session.append(SampleTaken(huge.sample), at=EPOCH, measurement=huge)
    event = await session.append(SampleTaken(taken.sample), at=EPOCH, measurement=taken)
    assert (await session.measurements(12))[0] == taken
    assert event.seq == session.last_seq == len(await session.events())
    await session.close()


async def test_reading_only_refuses_to_append(tmp_path: Path) -> None:
    await closed_session(tmp_path / "s.duckdb")
    session = await SessionFile.open(tmp_path / "s.duckdb", read_only=True)
    with pytest.raises(SessionError, match="not open for writing"):
        await session.append(RunPaused("me"), at=EPOCH)
    with pytest.raises(SessionError, match="not open for writing"):
        await session.checkpoint()
    assert (await session.view()).samples_taken == 12
    await session.close()
    await session.close()


async def test_this_process_reads_a_file_that_it_writes_but_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    writer = await make_session(path, until=1)
    reader = await SessionFile.open(path, read_only=True)
    await writer.append(RunPaused("me"), at=EPOCH)
    assert len(await reader.events()) == writer.last_seq
    assert (await reader.summary()).state == "paused"
    with pytest.raises(SessionError, match="written by this process"):
        await SessionFile.open(path)
    await writer.close()
    assert len(await reader.events()) == 3
    await reader.close()


async def test_another_process_is_named_as_the_one_that_has_the_session(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    await closed_session(path)
    holding = (
        "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holding, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        for read_only in (True, False):
            with pytest.raises(SessionBusy, match=f"PID {other.pid}"):
                await SessionFile.open(path, read_only=read_only)
        other.communicate()
    session = await SessionFile.open(path)
    assert session.warnings == ()
    await session.close()


async def test_the_summary_follows_the_run(tmp_path: Path) -> None:
    path = tmp_path / "demo-3.duckdb"
    session = await make_session(path, until=6)
    live = await session.summary()
    assert (live.state, live.samples, live.invalid) == ("running", 1, 0)
    assert (live.campaign, live.lab, live.targets) == ("small", "sim", ("haproxy", "tiny-ha"))
    await session.close()
    session = await SessionFile.open(path, read_only=True)
    assert (await session.summary()).state == "interrupted"
    await session.close()


async def test_a_clean_close_leaves_one_file(tmp_path: Path) -> None:
    session = await make_session(tmp_path / "s.duckdb")
    await session.checkpoint()
    await session.close()
    assert [path.name for path in tmp_path.iterdir()] == ["s.duckdb"]


async def test_nothing_is_left_where_a_session_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SessionError):
        await SessionFile.create(tmp_path / "file" / "s.duckdb", created(), at=EPOCH)
    endless = replace(campaign(), kpi_max=float("inf"))  # JSON cannot say that
    bad = replace(created(), campaign=endless)
    with pytest.raises(ValueError, match="inf"):
        await SessionFile.create(tmp_path / "s.duckdb", bad, at=EPOCH)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


async def test_a_reader_that_is_cancelled_is_done_before_the_file_is_closed(
    tmp_path: Path,
) -> None:
    session = await make_session(tmp_path / "s.duckdb")
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(_: object) -> None:
        begun.set()
        go_on.wait(60)
        ended.set()

    reading = asyncio.create_task(session._read(slow))
    await asyncio.to_thread(begun.wait, 60)
    reading.cancel()
    done, _ = await asyncio.wait([reading], timeout=0.05)
    assert not done, "its thread has the file still"
    go_on.set()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert ended.is_set()
    await session.close()


def test_who_closes_waits_for_who_reads(tmp_path: Path) -> None:
    database = Database(tmp_path / "s.duckdb", read_only=False)
    closer = threading.Thread(target=database.close)
    with database.reading() as cursor:
        closer.start()
        closer.join(0.05)
        assert closer.is_alive()
        assert cursor.execute("SELECT 1").fetchone() == (1,)
    closer.join()
    database.close()  # once more does nothing
