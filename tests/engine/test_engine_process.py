"""The engine as a process of its own: killed, terminated, scraped."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from driving import COMMAND, Workbench
from engine_watching import SLOW, SMALL, Watched, kinds, same, stored_events, stored_samples

from workbench.domain.errors import EngineError
from workbench.domain.events import Event, Noted, SampleTaken
from workbench.domain.messages import ListSessions, ResumeSession, RunCampaign, SessionList
from workbench.link.socket import SocketClient
from workbench.paths import Workspace


@pytest.fixture
def workspace(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(workbench.runtime))
    return Workspace(workbench.root)


@asynccontextmanager
async def engine_process(
    workbench: Workbench, workspace: Workspace
) -> AsyncIterator[tuple[subprocess.Popen[bytes], SocketClient]]:
    """An engine's process and a client of it; the process is gone afterwards."""
    process = subprocess.Popen(
        [COMMAND, "engine", "serve"], env=workbench.environment, cwd=workbench.root
    )
    try:
        async with asyncio.timeout(60):
            while True:
                try:
                    client = await SocketClient.connect(workspace.socket, "tester")
                    break
                except OSError:
                    assert process.poll() is None, "the engine ended as it started"
                    await asyncio.sleep(0.02)
        yield process, client
        await client.close()
    finally:
        process.kill()
        process.wait()


async def test_killed_at_any_moment_it_loses_nothing_and_measures_nothing_twice(
    workbench: Workbench, workspace: Workspace
) -> None:
    generator = random.Random(2)
    async with engine_process(workbench, workspace) as (_, client):
        await client.ask(RunCampaign(SMALL, session="whole", lab="sim", seed=7))
        async with client.follow("whole") as feed:
            await Watched(feed).finish()
        whole = await stored_samples(client, "whole")
        length = len(await stored_events(client, "whole"))

    for number in range(3):
        session = f"killed-{number}"
        async with engine_process(workbench, workspace) as (process, client):
            await client.ask(RunCampaign(SMALL, session=session, lab="sim", seed=7, pace=4 * SLOW))
            async with client.follow(session) as feed:
                watched = Watched(feed)
                last = generator.randint(feed.view.seq + 1, length - 1)
                await watched.until(lambda c: isinstance(c, Event) and c.seq >= last)  # noqa: B023
                process.send_signal(signal.SIGKILL)
                with pytest.raises(EngineError, match="the engine is gone"):
                    await watched.finish()
        announced = {e.fact.sample.id for e in watched.events if isinstance(e.fact, SampleTaken)}

        async with engine_process(workbench, workspace) as (_, client):
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


async def test_terminated_it_closes_its_sessions_and_says_so(
    workbench: Workbench, workspace: Workspace
) -> None:
    async with engine_process(workbench, workspace) as (process, client):
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
