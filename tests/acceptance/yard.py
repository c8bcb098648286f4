"""Engines and commands that are killed, in a workspace of their own; forked, to start quickly."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from driving import COMMAND, Workbench
from engine_watching import stored_events
from forked_commands import Started, forker

from workbench.domain.errors import EngineError, WorkbenchError
from workbench.domain.events import Event
from workbench.domain.messages import EngineStatus, GetStatus
from workbench.link.socket import SocketClient
from workbench.paths import Workspace

LONGEST_S = 120.0
"""After which something hangs, on a host as busy as can be."""
NICEST = 19
"""Of Linux. A worker is told by being nicer than what started it."""


@dataclass
class Yard:
    """A workspace, the engine that runs there if one does, and a client of it."""

    workbench: Workbench
    workspace: Workspace
    engine: Started | None = None
    client: SocketClient | None = None
    told: list[str] = field(default_factory=list)
    """What ended commands wrote to their errors."""

    def start(self, *arguments: str) -> Started:
        """A command that can be killed."""
        return forker.start([COMMAND, *arguments], self.workbench.environment, self.workbench.root)

    async def engine_up(self) -> SocketClient:
        """A client of the engine, which is started where none runs."""
        if self.client is not None:
            return self.client
        self.engine = self.start("engine", "serve")
        async with asyncio.timeout(LONGEST_S):
            while self.client is None:
                try:
                    self.client = await SocketClient.connect(self.workspace.socket, "tester")
                except (OSError, EngineError):
                    await asyncio.sleep(0.01)
        return self.client

    async def kill_engine(self) -> None:
        """`kill -9`; no trace may be found in what it said."""
        assert self.engine is not None
        assert self.client is not None
        self.engine.kill()
        await self.client.close()
        self.client = None
        await self.ended(self.engine)

    async def ended(self, started: Started) -> tuple[int, str]:
        """Exit code and output of a command, which ends by itself or was killed."""
        output, said = await asyncio.to_thread(started.communicate, LONGEST_S)
        assert "Traceback" not in said, said
        assert "nexpected" not in said, said
        self.told.append(said)
        return started.wait(), output

    def no_trace(self) -> None:
        """Nothing in the log of the workspace that nobody expected."""
        log = self.workspace.log
        logged = log.read_text(encoding="utf-8") if log.exists() else ""
        assert "Traceback" not in logged, logged[-4000:]
        assert "nexpected" not in logged, logged[-4000:]

    async def idle(self) -> None:
        """Wait until nothing is measured or computed."""
        await self.until(lambda s: not (s.running or s.queued or s.scoring or s.host_measuring))

    async def until(self, holds: Callable[[EngineStatus], bool]) -> None:
        """Wait until that holds of the engine's status."""
        client = await self.engine_up()
        async with asyncio.timeout(LONGEST_S):
            while True:
                status = await client.ask(GetStatus())
                assert isinstance(status, EngineStatus)
                if holds(status):
                    return
                await asyncio.sleep(0.02)

    async def whole(self, session: str, announced: list[Event]) -> list[Event]:
        """Its events, which have no gap and hold everything that was announced, as it was."""
        events = await stored_events(await self.engine_up(), session)
        assert [event.seq for event in events] == list(range(1, len(events) + 1)), session
        lost = [e for e in announced if e.seq > len(events) or events[e.seq - 1] != e]
        assert not lost, f"{session}: {len(lost)} of {len(announced)} announced events are lost"
        times = [event.at for event in events]
        assert times == sorted(times), f"{session}: an event before the one that it follows"
        return events

    @asynccontextmanager
    async def following(self, session: str) -> AsyncIterator[list[Event]]:
        """Events of a session as they are announced while the body runs."""
        client, announced = await self.engine_up(), list[Event]()

        async def read() -> None:
            with suppress(WorkbenchError):
                async with client.follow(session) as feed:
                    async for change in feed.changes:
                        if isinstance(change, Event):
                            announced.append(change)

        reading = asyncio.create_task(read())
        try:
            yield announced
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def workers(self) -> list[int]:
        """Processes that compute for engines of this yard: nothing else of it is nicer than it."""
        assert os.nice(0) < NICEST, "run it less nicely: nothing can be nicer than this"
        return [pid for pid in below(forker.pid or 0) if _nice(pid) > os.nice(0)]

    async def next_workers(self, session: str) -> list[int]:
        """Workers, as soon as there are any; none where the run ends before."""
        client = await self.engine_up()
        async with asyncio.timeout(LONGEST_S):
            while not (found := self.workers()):
                status = await client.ask(GetStatus())
                assert isinstance(status, EngineStatus)
                if status.running != session and not status.queued:
                    break
                await asyncio.sleep(0.01)
        return found


@asynccontextmanager
async def a_yard(workbench: Workbench) -> AsyncIterator[Yard]:
    os.environ["XDG_RUNTIME_DIR"] = str(workbench.runtime)
    yard = Yard(workbench, Workspace(workbench.root))
    try:
        yield yard
    finally:
        if yard.client is not None:
            await yard.kill_engine()
    yard.no_trace()


def below(pid: int) -> Iterator[int]:
    """Processes that it has started, and theirs."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it ended
            for child in map(int, task.read_text().split()):
                yield child
                yield from below(child)


def _nice(pid: int) -> int:
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[16])
    return 0
