"""A host that others use: the run waits, says who burns it, and goes on or ends by itself."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
from engine_fakes import FaultyLab
from engine_watching import Watched, start

from workbench.domain.events import Noted, Progress
from workbench.domain.messages import ResumeSession
from workbench.domain.samples import Finding
from workbench.engine.runs import busy_host, sample_runner
from workbench.engine.runs.busy_host import BusyHost, Instant
from workbench.engine.runs.control import Control
from workbench.link.socket import SocketClient
from workbench.probes.burners import Burning

SPOILED = Finding("host_saturated", 0.97, 0.85, "the host was busy with 1.94 cores")


class Host:
    """Two cores of which others keep so many busy, look by look; the last for ever."""

    def __init__(self, *cores: float) -> None:
        self.cores, self.at, self.busy_s, self.reads = list(cores), 0.0, 0.0, 0

    async def read(self) -> Instant:
        self.reads += 1
        if self.reads % 2 == 0:  # the end of a look
            cores = self.cores.pop(0) if len(self.cores) > 1 else self.cores[0]
            self.at, self.busy_s = self.at + 2.0, self.busy_s + 2.0 * cores
        burned = {(4711, 1): Burning("rustc", "container 251558979b23", self.busy_s)}
        return Instant(self.at, self.busy_s, burned)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy_host, "LOOK_S", 0.0)


def waiting(host: Host) -> tuple[BusyHost, list[str], list[str]]:
    shown, noted = list[str](), list[str]()

    async def note(text: str) -> None:
        noted.append(text)

    return BusyHost(Control(), shown.append, note, host.read, cores=2), shown, noted


def no_end() -> None:
    """No budget."""


def taken(busy: BusyHost, *findings: Finding, count: int = 3) -> None:
    for _ in range(count):
        busy.taken(SimpleNamespace(findings=findings))  # type: ignore[arg-type]


async def test_three_spoiled_samples_in_a_row_make_it_wait_until_others_are_done() -> None:
    busy, shown, noted = waiting(Host(1.8, 1.8, 0.2, 1.7, 0.3, 0.1))
    taken(busy, SPOILED, count=2)
    taken(busy, count=1)
    taken(busy, SPOILED, count=2)
    assert await busy.until_quiet(no_end)
    assert not noted, "two in a row, twice"
    taken(busy, SPOILED, count=1)
    assert await busy.until_quiet(no_end)
    assert len(shown) == 5, "one quiet look among busy ones does not count"
    assert "90% of this host is busy with others: container 251558979b23 (rustc) 1.8" in shown[0]
    assert noted[0].startswith("3 samples in a row were spoiled by a busy host; the run waits")
    assert "container 251558979b23 (rustc) 1.8 cores" in noted[0]
    assert noted[1].startswith("the host is quiet again: the run goes on after")
    assert await busy.until_quiet(no_end)
    assert len(noted) == 2, "the count begins anew"


async def test_a_load_that_is_itself_too_much_for_the_host_waits_for_nobody() -> None:
    host = Host(0.1)
    busy, shown, noted = waiting(host)
    taken(busy, SPOILED)
    assert await busy.until_quiet(no_end)
    taken(busy, SPOILED)
    assert await busy.until_quiet(no_end)
    assert (shown, noted, host.reads) == ([], [], 2), "it looks less often from then on"


async def test_the_budget_ends_the_waiting() -> None:
    busy, _, noted = waiting(Host(1.8))
    taken(busy, SPOILED)
    assert not await busy.until_quiet(lambda: 0.0)
    assert len(noted) == 1
    assert "rustc" in busy.seen


async def test_a_budget_that_is_extended_meanwhile_prolongs_the_waiting() -> None:
    busy, shown, _ = waiting(Host(1.8))
    taken(busy, SPOILED)
    left = [1.0, 5.0, 4.0, 0.0]
    assert not await busy.until_quiet(lambda: left.pop(0))
    assert (len(shown), left) == (3, [])


async def test_what_the_engine_itself_burns_is_not_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy_host.burners, "read", lambda: ({}, 3.0))
    monkeypatch.setattr(busy_host.host, "read_busy_s", lambda: 10.0)
    assert (await busy_host.read_host()).busy_s == 7.0


async def test_who_pauses_or_stops_the_run_need_not_wait() -> None:
    busy, _, noted = waiting(Host(1.8))
    busy._control.paused_by = "ann"
    taken(busy, SPOILED)
    assert await busy.until_quiet(no_end)
    assert len(noted) == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_a_run_waits_and_goes_on_by_itself(
    client: SocketClient, faulty: type[FaultyLab], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(1.8)
    monkeypatch.setattr(sample_runner, "BusyHost", partial(BusyHost, read=host.read, cores=2))
    faulty.busy_host = True
    await start(client, "busy", lab="faulty")
    async with client.follow("busy") as feed:
        watched = Watched(feed)
        await watched.phase("waiting")
        tick = watched.ticks[-1]
        assert isinstance(tick, Progress)
        assert "container 251558979b23 (rustc) 1.8 cores" in tick.note
        faulty.busy_host, host.cores = False, [0.1]
        finished = await watched.finish()
    assert finished.outcome == "done"
    assert finished.invalid == 3
    said = [e.fact.text for e in watched.events if isinstance(e.fact, Noted)]
    assert any(text.startswith("the host is quiet again") for text in said)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_host_that_stays_busy_ends_the_run_with_what_to_do(
    client: SocketClient, faulty: type[FaultyLab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_runner, "BusyHost", partial(BusyHost, read=Host(1.8).read, cores=2))
    monkeypatch.setattr(busy_host, "MOST_WAIT_S", 0.0)
    faulty.busy_host = True
    await start(client, "busy-for-good", lab="faulty")
    async with client.follow("busy-for-good") as feed:
        finished = await Watched(feed).finish()
    assert finished.outcome == "budget"
    assert finished.samples == finished.invalid == 3
    assert "container 251558979b23 (rustc) 1.8 cores" in finished.note
    assert finished.note.endswith("`workbench resume busy-for-good` goes on")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_run_that_waited_its_budget_away_keeps_it_when_it_is_resumed(
    client: SocketClient, faulty: type[FaultyLab], monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(1.8)
    monkeypatch.setattr(sample_runner, "BusyHost", partial(BusyHost, read=host.read, cores=2))
    monkeypatch.setattr(sample_runner, "_left_after", lambda *_: -1.0)
    faulty.busy_host = True
    await start(client, "busy-then-quiet", lab="faulty", budget_s=3600.0)
    async with client.follow("busy-then-quiet") as feed:
        watched = Watched(feed)
        finished = await watched.finish()
        assert finished.outcome == "budget"
        assert finished.waited_s > 0.0
        faulty.busy_host, host.cores = False, [0.1]
        await client.ask(ResumeSession("busy-then-quiet"))
        assert (await watched.finish()).outcome == "done"
        assert watched.view.budget_s == 3600.0, "not without end"
