"""A lab that takes its time to open: what it is about is told, and who asks twice is refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from engine_watching import LONGEST_S, SLOW, Watched, start

from workbench.domain.errors import Stopped
from workbench.domain.events import SampleTaken
from workbench.domain.lab import HostFacts
from workbench.domain.messages import EngineStatus, GetStatus, ResumeSession, StopRun
from workbench.engine.learning.pool import Pool
from workbench.engine.runs.planning import make_plan
from workbench.labs.simulated import SimulatedLab
from workbench.link.socket import SocketClient

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_what_a_run_waits_for_while_its_lab_opens_is_told(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, whole_open = asyncio.Event(), SimulatedLab.open

    async def building(self: SimulatedLab) -> HostFacts:
        self._settings.say(f"haproxy: Step 2/5{' x' * 500}")
        await opening.wait()
        return await whole_open(self)

    async def preparing() -> str:
        status = await client.ask(GetStatus())
        assert isinstance(status, EngineStatus)
        return status.preparing

    monkeypatch.setattr(SimulatedLab, "open", building)
    starting = asyncio.create_task(start(client, "built"))
    async with asyncio.timeout(LONGEST_S):
        said = ""
        while "Step" not in said:
            said = await preparing()
    assert said.startswith("built: haproxy: Step 2/5 x")
    assert len(said) < 250
    opening.set()
    await starting
    assert await preparing() == ""
    async with client.follow("built") as feed:
        assert (await Watched(feed).finish()).outcome == "done"


async def test_a_run_is_given_up_while_its_lab_opens(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, never = asyncio.Event(), asyncio.Event()

    async def building(self: SimulatedLab) -> HostFacts:
        opening.set()
        await never.wait()
        raise AssertionError

    monkeypatch.setattr(SimulatedLab, "open", building)
    starting = asyncio.create_task(start(client, "given-up"))
    async with asyncio.timeout(LONGEST_S):
        await opening.wait()
        await client.ask(StopRun("given-up", abort=True))
        with pytest.raises(Stopped, match="given up before anything was measured"):
            await starting
    status = await client.ask(GetStatus())
    assert isinstance(status, EngineStatus)
    assert (status.preparing, status.running) == ("", "")


async def test_planning_is_told_and_the_worker_warms_up_before_the_lab_opens(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, told, order = asyncio.Event(), list[str](), list[str]()
    run, warm, whole_open = Pool.run, Pool.warm, SimulatedLab.open

    async def slowly(self: Pool, work: Any, *args: Any, **kwargs: Any) -> Any:
        if work is make_plan:
            await plan.wait()
        return await run(self, work, *args, **kwargs)

    def warming(self: Pool) -> None:
        order.append("worker")
        warm(self)

    async def opening(self: SimulatedLab) -> HostFacts:
        order.append("lab")
        return await whole_open(self)

    monkeypatch.setattr(Pool, "run", slowly)
    monkeypatch.setattr(Pool, "warm", warming)
    monkeypatch.setattr(SimulatedLab, "open", opening)
    starting = asyncio.create_task(start(client, "planned"))
    async with asyncio.timeout(LONGEST_S):
        while "planned: planning" not in told:
            status = await client.ask(GetStatus())
            assert isinstance(status, EngineStatus)
            told.append(status.preparing)
    assert order[:2] == ["worker", "lab"]
    plan.set()
    await starting
    await client.ask(StopRun("planned", abort=True))


async def test_of_two_who_resume_a_session_at_once_one_is_refused_and_its_lab_closed(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start(client, "twice", pace=SLOW)
    async with client.follow("twice") as feed:
        watched = Watched(feed)
        await watched.fact(SampleTaken)
        await client.ask(StopRun("twice", abort=True))
        await watched.finish()
    both, left = asyncio.Barrier(2), []
    opened, closed = SimulatedLab.open, SimulatedLab.close

    async def together(self: SimulatedLab) -> HostFacts:
        await both.wait()
        return await opened(self)

    async def leaving(self: SimulatedLab) -> None:
        left.append(self)
        await closed(self)

    monkeypatch.setattr(SimulatedLab, "open", together)
    monkeypatch.setattr(SimulatedLab, "close", leaving)
    resuming = [client.ask(ResumeSession("twice", pace=SLOW)) for _ in range(2)]
    async with asyncio.timeout(LONGEST_S):
        replies = await asyncio.gather(*resuming, return_exceptions=True)
    (refused,) = (reply for reply in replies if isinstance(reply, Exception))
    assert "is being measured already" in str(refused)
    assert len(left) == 1
    async with client.follow("twice") as feed:
        await client.ask(StopRun("twice", abort=True))
        await Watched(feed).finish()
