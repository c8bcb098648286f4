"""Labs that are gone for a while, such as a Docker engine that restarts: the run waits."""

from __future__ import annotations

import pytest
from engine_fakes import FaultyLab
from engine_watching import SMALL, Watched, kinds, stored_samples

from workbench.domain.errors import LabError, LabGone
from workbench.domain.events import Noted, RunFinished
from workbench.domain.messages import ResumeSession, RunCampaign, StopRun
from workbench.domain.parameters import Configuration
from workbench.engine.runs import lab_away
from workbench.link.socket import SocketClient

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("faulty")]

GONE = LabGone("the engine is gone", where="target tinyproxy", remedy="Start it, then resume")


async def run(client: SocketClient, session: str) -> tuple[Watched, RunFinished]:
    await client.ask(RunCampaign(SMALL, session=session, lab="faulty"))
    async with client.follow(session) as feed:
        watched = Watched(feed)
        return watched, await watched.finish()


def away(
    monkeypatch: pytest.MonkeyPatch, at: str, drive: int, tries: int, trouble: str | LabError = GONE
) -> None:
    """Let the lab go at a drive or bypass of that number, and stay away for so many tries."""
    count, left = 0, 0

    def fails(attempted: str, _: Configuration | None) -> str | LabError | None:
        nonlocal count, left
        if left and attempted in ("deploy", "undeploy"):
            left -= 1
            return GONE
        count += attempted == at
        if attempted != at or count != drive:
            return None
        left = tries
        return trouble

    monkeypatch.setattr(lab_away, "RETRY_S", 0.001)
    monkeypatch.setattr(FaultyLab, "failing", staticmethod(fails))


@pytest.mark.parametrize(
    ("at", "tries", "trouble"),
    [("drive", 2, "its container was killed"), ("bypass", 1, GONE)],
)
async def test_a_lab_that_is_gone_for_a_while_is_waited_for(
    client: SocketClient,
    monkeypatch: pytest.MonkeyPatch,
    at: str,
    tries: int,
    trouble: str | LabError,
) -> None:
    """Two configurations, and it goes in the first: neither is given up for that."""
    session = f"away-{at}"
    away(monkeypatch, at, 3, tries, trouble)
    watched, finished = await run(client, session)
    assert finished.outcome == "done"
    notes = [e.fact.text for e in watched.events if isinstance(e.fact, Noted)]
    (waits,) = (note for note in notes if "the engine is gone" in note)
    assert "the run waits until it answers, and nothing is lost" in waits
    assert len([note for note in notes if "the lab answers again after" in note]) == 1
    samples = await stored_samples(client, session)
    assert len({s.id for s in samples}) == len(samples) == finished.samples
    assert all(s.bypass for s in samples)
    assert {c.state for c in watched.view.configurations} <= {"converged", "max_samples"}


async def test_a_lab_that_stays_away_ends_the_run_with_a_sentence(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_away, "MOST_AWAY_S", 0.01)
    away(monkeypatch, "drive", 3, 10**6)
    watched, finished = await run(client, "stays-away")
    assert finished.outcome == "failed"
    assert finished.note == f"{GONE}"
    taken = len(await stored_samples(client, "stays-away"))
    assert taken == kinds(watched.events).count("SampleTaken") > 0

    monkeypatch.setattr(FaultyLab, "failing", staticmethod(lambda attempted, _: None))
    await client.ask(ResumeSession("stays-away"))
    async with client.follow("stays-away") as feed:
        assert (await Watched(feed).finish()).outcome == "done"


async def test_who_waits_for_a_lab_can_be_stopped(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    away(monkeypatch, "drive", 3, 10**6)
    monkeypatch.setattr(lab_away, "RETRY_S", 30.0)
    await client.ask(RunCampaign(SMALL, session="away-stopped", lab="faulty"))
    async with client.follow("away-stopped") as feed:
        watched = Watched(feed)
        await watched.phase("waiting")
        await client.ask(StopRun("away-stopped"))
        assert (await watched.finish()).outcome == "stopped"


async def test_a_lab_that_goes_each_time_is_to_blame_in_the_end(
    client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(attempted: str, _: Configuration | None) -> LabError | None:
        return GONE if attempted == "drive" else None

    monkeypatch.setattr(lab_away, "RETRY_S", 0.001)
    monkeypatch.setattr(FaultyLab, "failing", staticmethod(fails))
    watched, finished = await run(client, "flaps")
    assert finished.outcome == "failed"
    assert "the engine is gone" in finished.note
    assert kinds(watched.events).count("PointAsked") < 20
