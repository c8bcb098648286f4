"""A campaign whose engine starts again: the next one is told of it, though nothing changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.domain.errors import EngineError, UsageError
from workbench.domain.events import Event, StopRequested
from workbench.domain.fleet_requests import BeginFleetSession, ReportFleet
from workbench.domain.fleets import FleetSeen, HostSeen
from workbench.fleet import fleet_reports
from workbench.fleet.fleet_reports import FleetReports

SEEN = FleetSeen((HostSeen("a", "measuring"), HostSeen("b", "idle")), 4, 1)


class FakeEngine:
    """One that a campaign is told of, and that ends when `ended` is set."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.ended = asyncio.Event()
        self.changes: asyncio.Queue[Event] = asyncio.Queue()

    async def ask(self, request: Any) -> None:
        if self.ended.is_set():
            raise EngineError("the engine hung up")
        self.asked.append(request)

    @asynccontextmanager
    async def follow(self, _: str) -> AsyncIterator[Any]:
        yield SimpleNamespace(changes=self._changes())

    async def _changes(self) -> AsyncIterator[Event]:
        ended = asyncio.create_task(self.ended.wait())
        while True:
            change = asyncio.create_task(self.changes.get())
            await asyncio.wait((ended, change), return_when=asyncio.FIRST_COMPLETED)
            if not change.done():
                change.cancel()
                return
            yield change.result()

    async def close(self) -> None:
        pass


def told(engine: FakeEngine) -> list[str]:
    """Hosts that it was told of."""
    reports = [each for each in engine.asked if isinstance(each, ReportFleet)]
    return [host.name for each in reports if each.seen for host in each.seen.hosts]


async def test_an_engine_that_starts_again_is_told_and_may_stop_the_campaign(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet_reports, "LOOK_S", 0.01)
    engines: list[FakeEngine] = []

    async def connect() -> Any:
        engines.append(FakeEngine())
        return engines[-1]

    async def look() -> FleetSeen:
        return SEEN

    begin: Any = BeginFleetSession("f", None, None, SEEN, 1)  # type: ignore[arg-type]
    reports = FleetReports(connect, begin)
    await reports.begin(look)
    async with asyncio.timeout(10.0):
        while len(told(engines[0])) < 2:  # noqa: ASYNC110 - nothing rings a bell
            await asyncio.sleep(0.01)
        engines[0].ended.set()
        while len(engines) < 2 or len(told(engines[1])) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert isinstance(engines[1].asked[0], BeginFleetSession)
        assert told(engines[1]) == ["a", "b"]
        engines[1].changes.put_nowait(Event(9, 1.0, "f", StopRequested("ann", False)))
        await reports.stop.asked.wait()
    assert reports.stop.by == "ann"
    await reports.close()
    assert len(engines) == 2


async def test_what_cannot_be_reported_is_logged_once_for_each_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet_reports, "LOOK_S", 0.005)
    why, tries, logged = ["gone"], list[str](), list[str]()
    log = SimpleNamespace(warning=lambda _, **known: logged.append(known["why"]))
    monkeypatch.setattr(fleet_reports, "log", log)

    class Refusing(FakeEngine):
        async def ask(self, request: Any) -> None:
            if isinstance(request, ReportFleet):
                tries.append(why[0])
                raise UsageError(why[0])

    async def connect() -> Any:
        return Refusing()

    async def look() -> FleetSeen:
        return SEEN

    begin: Any = BeginFleetSession("f", None, None, SEEN, 1)  # type: ignore[arg-type]
    reports = FleetReports(connect, begin)
    await reports.begin(look)
    async with asyncio.timeout(10.0):
        for why[0] in ("gone", "full"):
            while tries.count(why[0]) < 5:  # noqa: ASYNC110 - nothing rings a bell
                await asyncio.sleep(0.005)
    await reports.close()
    assert logged == ["gone.", "full."]
