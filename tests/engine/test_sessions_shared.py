"""A session's file and those who want it at once: readers, followers, writers, its own run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from modelling_session import LARGE, SESSION, TARGET, InlinePool, first, make_workspace
from session_making import measurement

from workbench.domain.errors import SessionBusy, SessionError
from workbench.domain.events import Event, Noted, SampleTaken
from workbench.engine.learning.modelling import model_of
from workbench.engine.sessions.channel import Channel
from workbench.engine.sessions.library import Library
from workbench.paths import Workspace
from workbench.store.acknowledged import beside
from workbench.store.session_file import SessionFile

pytestmark = pytest.mark.usefixtures("few_candidates")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("made"), first())


async def test_who_writes_waits_for_those_who_read_and_keeps_those_who_follow(
    library: Library,
) -> None:
    done = []

    async def write() -> None:
        async with library.writing(SESSION) as channel:
            await channel.record(Noted("info", "written"))
            done.append("written")

    async with library.borrow(SESSION) as channel:
        following = channel.follow()
        async with library.borrow(SESSION) as same:
            writing = asyncio.create_task(write())
            for _ in range(3):
                assert len(await same.file.samples()) == 12
            done.append("read")
        await writing
        event = await anext(following)
        channel.unfollow(following)
    assert done == ["read", "written"]
    assert isinstance(event, Event)
    assert event.fact == Noted("info", "written")


async def test_a_session_that_is_measured_is_shared_with_its_run(
    library: Library, pool: InlinePool
) -> None:
    await model_of(library, pool, SESSION, TARGET)
    run = await library.revive(SESSION)
    taken = measurement(TARGET, LARGE, 600.0)
    await run.record(SampleTaken(taken.sample), taken)
    second = await model_of(library, pool, SESSION, TARGET)
    assert (second.model.version, second.unstored) == (2, "")
    assert run.live, "its run goes on"
    await run.record(Noted("info", "the run's next event"))
    assert run.view == await run.file.view()
    await library.release(run)


async def test_a_file_that_cannot_be_written_is_read_on(
    library: Library, pool: InlinePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = SessionFile.open

    async def refuse(path: Path, *, read_only: bool = False) -> SessionFile:
        if not read_only:
            raise SessionBusy("is open in another process, PID 1", where=str(path))
        return await opened(path, read_only=True)

    monkeypatch.setattr(SessionFile, "open", refuse)
    found = await model_of(library, pool, SESSION, TARGET)
    assert found.model.version == 0
    assert "is open in another process, PID 1" in found.unstored
    async with library.borrow(SESSION) as channel:
        assert len(await channel.file.samples()) == 12


async def test_nothing_is_kept_of_names_that_were_asked_for(library: Library) -> None:
    """Who asks may make names up."""
    async with library.borrow(SESSION), library.borrow(SESSION):
        pass
    for number in range(20):
        with pytest.raises(SessionError):
            async with library.borrow(f"made-up-{number}"):
                pass
    kept = (library._users, library._opening, library._returned, library.modelling)
    assert [len(each) for each in kept] == [0, 0, 0, 0]


async def test_a_session_is_read_on_where_its_second_copy_cannot_be_written(
    library: Library,
) -> None:
    async with library.borrow(SESSION) as channel:
        assert len(await channel.file.samples()) == 12
    in_the_way = beside(library.file_of(SESSION))
    in_the_way.mkdir()
    with pytest.raises(SessionError, match="Is a directory"):
        async with library.writing(SESSION):
            pass
    async with library.borrow(SESSION) as channel:
        assert len(await channel.file.samples()) == 12
    in_the_way.rmdir()
    async with library.writing(SESSION) as channel:
        await channel.record(Noted("info", "written"))


async def test_who_resumes_waits_for_those_who_read_and_keeps_those_who_follow(
    library: Library,
) -> None:
    async with library.borrow(SESSION) as channel:
        following = channel.follow()
        async with library.borrow(SESSION) as same:
            first_page = await same.file.samples(0, 6)
            reviving = asyncio.create_task(library.revive(SESSION))
            done, _ = await asyncio.wait([reviving], timeout=0.2)
            assert not done, "somebody reads still"
            ids = {sample.id for sample in (*first_page, *await same.file.samples(6, 6))}
            assert len(ids) == 12
        async with asyncio.timeout(30):
            run = await reviving
        await run.record(Noted("info", "resumed"))
        event = await anext(following)
        channel.unfollow(following)
    await library.release(run)
    assert isinstance(event, Event)
    assert event.fact == Noted("info", "resumed")


async def test_who_resumes_while_a_run_is_summed_up_waits_for_no_longer_than_that(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody told who waited that the run had let go of it."""
    run = await library.revive(SESSION)
    reviving: list[asyncio.Task[Channel]] = []
    note = library.note

    async def slow(channel: Channel) -> None:
        reviving.append(asyncio.create_task(library.revive(SESSION)))
        done, _ = await asyncio.wait(reviving, timeout=0.2)
        assert not done, "the run still has it"
        await note(channel)

    monkeypatch.setattr(library, "note", slow)
    await library.release(run)
    monkeypatch.undo()
    async with asyncio.timeout(30):
        again = await reviving[0]
    assert again.live
    await library.release(again)
