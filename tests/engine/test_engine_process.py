"""The engine as a process of its own: killed, terminated, scraped."""

from __future__ import annotations

import asyncio
import random
import resource
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from driving import Workbench
from engine_watching import SLOW, SMALL, Watched, kinds, same, stored_events, stored_samples
from forked_commands import Started

from workbench.cli.context import settings
from workbench.cli.host import _stop
from workbench.domain.errors import EngineError, SessionError
from workbench.domain.events import Event, Noted, PointAsked, Progress, SampleTaken, Tick
from workbench.domain.messages import (
    ListSessions,
    ResumeSession,
    RunCampaign,
    SessionList,
    StopRun,
)
from workbench.engine import core
from workbench.engine.core import Engine
from workbench.engine.process import serving
from workbench.engine.sessions.library import Library
from workbench.link.socket import SocketClient
from workbench.paths import Workspace

SERVE = ("engine", "serve")
Process = subprocess.Popen[str] | Started


@pytest.fixture
def workspace(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(workbench.runtime))
    return Workspace(workbench.root)


@asynccontextmanager
async def engine_process(
    started: Process, workspace: Workspace
) -> AsyncIterator[tuple[Process, SocketClient]]:
    """An engine's process and a client of it; the process is gone afterwards."""
    with started as process:
        try:
            async with asyncio.timeout(60):
                while True:
                    try:
                        client = await SocketClient.connect(workspace.socket, "tester")
                        break
                    except OSError:
                        assert process.poll() is None, "the engine ended as it started"
                        await asyncio.sleep(0.02)
            try:
                yield process, client
            finally:
                await client.close()
        finally:
            process.kill()
            process.wait()


@asynccontextmanager
async def engine_here(workspace: Workspace) -> AsyncIterator[SocketClient]:
    """A client of an engine in this process, which is not killed: it is spared the imports."""
    async with serving(workspace):
        client = await SocketClient.connect(workspace.socket, "tester")
        try:
            yield client
        finally:
            await client.close()


@pytest.mark.slow
async def test_killed_at_any_moment_it_loses_nothing_and_measures_nothing_twice(
    workbench: Workbench, workspace: Workspace, full_length: bool
) -> None:
    generator = random.Random(2)
    async with engine_here(workspace) as client:
        await client.ask(RunCampaign(SMALL, session="whole", lab="sim", seed=7))
        async with client.follow("whole") as feed:
            await Watched(feed).finish()
        whole = await stored_samples(client, "whole")
        length = len(await stored_events(client, "whole"))

    for number in range(5 if full_length else 1):  # in mid-sample, then anywhere
        session = f"killed-{number}"
        async with engine_process(workbench.begin(*SERVE), workspace) as (process, client):
            await client.ask(RunCampaign(SMALL, session=session, lab="sim", seed=7, pace=4 * SLOW))
            async with client.follow(session) as feed:
                watched = Watched(feed)
                latest = length // 2 if number == 0 else length - 1
                last = generator.randint(feed.view.seq + 1, latest)
                await watched.until(lambda c: isinstance(c, Event) and c.seq >= last)  # noqa: B023
                if number == 0:
                    await watched.fact(PointAsked)
                    await watched.phase("measuring")  # in mid-sample
                process.send_signal(signal.SIGKILL)
                with pytest.raises(EngineError, match="the engine is gone"):
                    await watched.finish()
        announced = {e.fact.sample.id for e in watched.events if isinstance(e.fact, SampleTaken)}

        async with engine_here(workspace) as client:
            listed = await client.ask(ListSessions())
            assert isinstance(listed, SessionList)
            assert {s.name: s.state for s in listed.sessions}[session] == "interrupted"
            async with client.follow(session) as feed:
                assert feed.view.state == "interrupted"
                assert announced <= {s.id for c in feed.view.configurations for s in c.samples}
                await client.ask(ResumeSession(session))
                assert (await Watched(feed).finish()).outcome == "done"
            assert same(await stored_samples(client, session), whole)
            fitted = kinds(await stored_events(client, session)).count("ModelFitted")
            assert fitted >= len(whole)


def _waits(change: Event | Tick) -> bool:
    return isinstance(change, Progress) and change.phase == "waiting"


@pytest.mark.slow
async def test_on_a_full_disk_a_run_waits_and_goes_on_when_there_is_room(
    workbench: Workbench, workspace: Workspace
) -> None:
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    async with engine_process(workbench.begin(*SERVE), workspace) as (process, client):

        def fill(session: str) -> None:
            """No file of the engine may grow beyond what this session's log holds now."""
            log = workspace.sessions / f"{session}.duckdb.wal"
            limit = (log.stat().st_size, resource.RLIM_INFINITY)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, limit)

        await client.ask(RunCampaign(SMALL, session="whole", lab="sim", seed=7))
        async with client.follow("whole") as feed:
            await Watched(feed).finish()
        whole = await stored_samples(client, "whole")

        await client.ask(RunCampaign(SMALL, session="full", lab="sim", seed=7, pace=SLOW))
        async with client.follow("full") as feed:
            watched = Watched(feed)
            await watched.fact(SampleTaken, 2)
            fill("full")
            for _ in range(2):  # it tries again, and still there is no room
                tick = await watched.until(_waits)
                assert isinstance(tick, Progress)
                assert "the disk is full" in tick.note
                assert "nothing is lost" in tick.note
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
            assert (await watched.finish()).outcome == "done"
        notes = [e.fact.text for e in watched.events if isinstance(e.fact, Noted)]
        assert any("the disk is full" in note and "the run waited" in note for note in notes)
        events = await stored_events(client, "full")
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert events[-len(watched.events) :] == watched.events
        assert same(await stored_samples(client, "full"), whole)

        await client.ask(RunCampaign(SMALL, session="given-up", lab="sim", seed=7, pace=SLOW))
        async with client.follow("given-up") as feed:
            watched = Watched(feed)
            await watched.fact(SampleTaken)
            fill("given-up")
            await watched.until(_waits)
            with pytest.raises(SessionError, match="the disk is full"):
                await client.ask(StopRun("given-up"))
            with pytest.raises(SessionError, match="the disk is full"):
                await watched.finish()
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
        await client.ask(ResumeSession("given-up"))
        async with client.follow("given-up") as feed:
            assert (await Watched(feed).finish()).outcome == "done"
        assert same(await stored_samples(client, "given-up"), whole)


@pytest.mark.slow
async def test_terminated_it_closes_its_sessions_and_says_so(
    workbench: Workbench, workspace: Workspace
) -> None:
    installed = workbench.start(*SERVE)
    async with engine_process(installed, workspace) as (process, client):
        await client.ask(RunCampaign(SMALL, session="ended", lab="sim", pace=SLOW))
        async with client.follow("ended") as feed:
            watched = Watched(feed)
            await watched.fact(SampleTaken)
            process.send_signal(signal.SIGTERM)
            with pytest.raises(AssertionError, match="the feed ended"):
                await watched.finish()
        assert process.wait(60) == 0
    assert isinstance(watched.events[-1].fact, Noted)
    assert "workbench resume" in watched.events[-1].fact.text
    assert not workspace.socket.exists()
    assert not list(workspace.sessions.glob("*.wal"))


@asynccontextmanager
async def leaving(workspace: Workspace) -> AsyncIterator[tuple[Engine, SocketClient]]:
    """An engine in this process that is about to end, and a client that has come."""
    async with serving(workspace) as engine:
        client = await SocketClient.connect(workspace.socket, "tester")
        await client.ask(ListSessions())
        yield engine, client
        await client.close()


async def test_before_it_ends_it_waits_for_who_has_not_hung_up(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "LEAVING_S", 600.0)
    async with leaving(workspace) as (engine, client):
        left = asyncio.create_task(engine.until_left())
        await asyncio.sleep(0.2)
        assert not left.done()
        await client.close()
        async with asyncio.timeout(60):
            await left


async def test_it_waits_no_longer_once_something_is_submitted(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "LEAVING_S", 600.0)
    async with leaving(workspace) as (engine, client):
        left = asyncio.create_task(engine.until_left())
        await client.ask(RunCampaign(SMALL, session="late", lab="sim", pace=SLOW))
        async with asyncio.timeout(60):
            await left
        assert engine.queue.unfinished == ("late",)


async def test_it_does_not_wait_for_a_screen_that_stays(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "LEAVING_S", 0.2)
    async with leaving(workspace) as (engine, _):
        async with asyncio.timeout(60):
            await engine.until_left()
        assert engine.clients == 1


async def test_who_stops_an_engine_waits_until_its_sessions_are_closed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "workspace", workspace.root)
    close = Library.close
    has_ended: list[bool] = []

    async def slowly(library: Library) -> None:
        assert not workspace.socket.exists()
        await asyncio.wait([stopping], timeout=0.5)
        has_ended.append(stopping.done())
        await close(library)

    monkeypatch.setattr(Library, "close", slowly)
    async with serving(workspace) as engine:
        stopping = asyncio.create_task(_stop())
        await engine.stopping.wait()
    assert await stopping
    assert has_ended == [False]
