"""A session file that is removed or replaced while it is measured: the run waits, holds what it has
in memory, and goes on with what it has written again."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from engine_watching import SLOW, SMALL, Watched, stored_samples
from session_making import make_session

from workbench.domain.errors import SessionError, UsageError
from workbench.domain.events import Event, Noted, Progress, RunFinished, SampleTaken, Tick
from workbench.domain.housekeeping import RescueSession
from workbench.domain.messages import RunCampaign, StopRun
from workbench.engine.core import Engine
from workbench.link.socket import SocketClient
from workbench.store.session_file import SessionFile

pytestmark = pytest.mark.asyncio(loop_scope="module")


def waits(change: Event | Tick) -> bool:
    return isinstance(change, Progress) and change.phase == "waiting" and "rescue" in change.note


async def displaced(client: SocketClient, watched: Watched, path: Path) -> str:
    """Remove the file after a sample; what the run says when it waits."""
    await watched.fact(SampleTaken)
    path.unlink()
    path.with_name(f"{path.name}.wal").unlink(missing_ok=True)
    tick = await watched.until(waits)
    assert isinstance(tick, Progress)
    return tick.note


async def let_go(engine: Engine) -> None:
    """Wait until runs that have announced their end have let go of their sessions."""
    if tasks := list(engine.queue._tasks.values()):
        await asyncio.wait(tasks)


def ids(watched: Watched) -> list[str]:
    return [e.fact.sample.id for e in watched.events if isinstance(e.fact, SampleTaken)]


async def test_a_session_that_is_removed_is_written_again_and_its_run_goes_on(
    engine: Engine, client: SocketClient
) -> None:
    path = engine.workspace.sessions / "removed.duckdb"
    await client.ask(RunCampaign(SMALL, session="removed", lab="sim", pace=SLOW))
    async with client.follow("removed") as feed:
        watched = Watched(feed)
        note = await displaced(client, watched, path)
        assert "was replaced or removed" in note
        assert "nothing is lost. Write it again with `workbench rescue removed`" in note
        await client.ask(RescueSession("removed"))
        assert path.is_file()
        assert (await watched.finish()).outcome == "done"
    notes = [e.fact.text for e in watched.events if isinstance(e.fact, Noted)]
    assert any("was replaced or removed" in note and "waited" in note for note in notes)
    stored = [sample.id for sample in await stored_samples(client, "removed")]
    assert stored == ids(watched)
    with pytest.raises(UsageError, match="lies where it belongs"):
        await client.ask(RescueSession("removed"))


async def test_a_session_that_is_replaced_goes_elsewhere_and_spares_the_other(
    engine: Engine, client: SocketClient, tmp_path: Path
) -> None:
    path = engine.workspace.sessions / "replaced.duckdb"
    other = await make_session(tmp_path / "other.duckdb")
    await client.ask(RunCampaign(SMALL, session="replaced", lab="sim", pace=SLOW))
    async with client.follow("replaced") as feed:
        watched = Watched(feed)
        await watched.fact(SampleTaken)
        foreign = {}
        for suffix in ("", ".wal"):
            source, place = Path(f"{other.path}{suffix}"), Path(f"{path}{suffix}")
            foreign[place] = source.read_bytes()
            new = place.with_suffix(".new")
            new.write_bytes(foreign[place])
            new.replace(place)
        await watched.until(waits)
        with pytest.raises(SessionError, match="another file lies there"):
            await client.ask(RescueSession("replaced"))
        folder = tmp_path / "elsewhere"
        await client.ask(RescueSession("replaced", str(folder)))
        assert (await watched.finish()).outcome == "done"
    await other.close()
    assert {place: place.read_bytes() for place in foreign} == foreign
    await let_go(engine)
    assert "replaced" not in engine.library._channels, "who resumes the other meets no open file"
    session = await SessionFile.open(folder / "replaced.duckdb")
    assert [sample.id for sample in await session.samples()] == ids(watched)
    assert isinstance((await session.events(session.last_seq - 1))[0].fact, RunFinished)
    await session.close()


async def test_a_run_that_is_stopped_without_a_rescue_is_written_again_by_itself(
    engine: Engine, client: SocketClient
) -> None:
    folder = engine.workspace.sessions
    await client.ask(RunCampaign(SMALL, session="stopped", lab="sim", pace=SLOW))
    async with client.follow("stopped") as feed:
        watched = Watched(feed)
        await watched.fact(SampleTaken)
        shutil.rmtree(folder)
        await watched.until(waits)
        with pytest.raises(SessionError, match="was replaced or removed"):
            await client.ask(StopRun("stopped"))
    await let_go(engine)
    stored = [sample.id for sample in await stored_samples(client, "stopped")]
    assert stored == ids(watched) != []
    assert (folder / "stopped.duckdb").is_file()
