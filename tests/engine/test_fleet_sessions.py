"""Sessions that a fleet measures, as the command that runs it reports them over the link."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from engine_watching import Watched

from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import SessionReplaced, SessionTaken, UsageError
from workbench.domain.events import (
    CampaignPlanned,
    Event,
    Fact,
    Noted,
    Progress,
    RunFinished,
    RunStarted,
    SessionCreated,
    StopRequested,
)
from workbench.domain.fleet_requests import BeginFleetSession, EndFleetSession, ReportFleet
from workbench.domain.fleets import FleetSeen, HostSeen, ShardFolded
from workbench.domain.lab import HostFacts
from workbench.domain.messages import ListSessions, PauseRun, ResumeSession, StopRun, ViewSession
from workbench.domain.sample_review import RequestPoint
from workbench.domain.sessions import Plan
from workbench.engine.core import Engine
from workbench.engine.sessions import fleet_sessions
from workbench.engine.sessions.fleet_sessions import FleetRunHere
from workbench.link.client import Feed
from workbench.link.local import LocalClient
from workbench.paths import Workspace
from workbench.probes.process import started
from workbench.store.session_file import SessionFile

FACTS = HostFacts("sim", 0, 0, "unknown", "unknown", "none", "unknown", {}, {})
SEEN = FleetSeen((HostSeen("a", "starting"), HostSeen("b", "starting")), 4, 0)


def begin(workspace: Workspace, pid: int | None = None) -> BeginFleetSession:
    loaded = load_campaign("demo", workspace=workspace)
    created = SessionCreated(loaded.campaign, (), "sim", 1, FACTS, "0", None)
    plan = Plan("demo", "sim", (), 8, 80.0)
    return BeginFleetSession("f", created, plan, SEEN, pid or os.getpid())


@pytest.fixture
async def engine(tmp_path: Path) -> Engine:
    made = Engine(Workspace(tmp_path))
    await made.start()
    yield made  # type: ignore[misc]
    await made.close()


async def test_hosts_are_followed_as_they_are_reported(engine: Engine) -> None:
    client = LocalClient(engine, "tester")
    await client.ask(begin(engine.workspace))
    async with client.follow("f") as feed:
        watched = Watched(feed)
        assert feed.view.state == "running"
        now_b = HostSeen("b", "measuring", "tinyproxy, 1 configuration", 5.0)
        await client.ask(ReportFleet("f", FleetSeen((now_b,), 4, 1, 0, 60.0), ("b began",)))
        await watched.fact(FleetSeen)
        assert watched.view.fleet is not None
        assert [h.does for h in watched.view.fleet.hosts] == ["starting", "measuring"]
        assert any("b began" in line.text for line in watched.view.log)
        await client.ask(StopRun("f", by="ann"))
        stop = await watched.fact(StopRequested)
        assert isinstance(stop.fact, StopRequested)
        assert stop.fact.by == "ann"
    with pytest.raises(UsageError, match="does not pause"):
        await client.ask(PauseRun("f"))
    with pytest.raises(SessionTaken, match="is being measured by process"):
        await client.ask(begin(engine.workspace, pid=1))
    await client.ask(EndFleetSession("f", RunFinished("stopped", 0, 0, 0.0, 0.0, ())))
    with pytest.raises(UsageError, match="--fleet HOSTS --session f"):
        await client.ask(ResumeSession("f"))


async def test_the_hint_for_going_on_is_the_whole_command(engine: Engine) -> None:
    client = LocalClient(engine, "tester")
    command = "workbench run ./mine.yaml --fleet h.yaml --session f --seed 7"
    asked = begin(engine.workspace)
    await client.ask(replace(asked, seen=replace(asked.seen, command=command)))
    await client.ask(ReportFleet("f", FleetSeen((), 4, 1)))  # which does not say it again
    await client.ask(EndFleetSession("f"))
    with pytest.raises(UsageError, match=f"Go on with `{command}`"):
        await client.ask(ResumeSession("f"))


async def test_samples_at_anchor_points_are_none_of_the_planned(engine: Engine) -> None:
    client = LocalClient(engine, "tester")
    await client.ask(begin(engine.workspace))
    host = HostSeen("a", "idle", shards=2, samples=10, lab_s=90.0)
    host = replace(host, anchors=1, anchor_samples=4, anchor_lab_s=30.0)
    async with client.follow("f") as feed:
        seen = FleetSeen((host,), 4, 2, anchors=2, anchors_measured=1)
        await client.ask(ReportFleet("f", seen))
        tick = await asyncio.wait_for(_tick(feed), 10.0)
    assert (tick.samples, tick.samples_planned, tick.lab_s) == (6, 8, 60.0)


async def _tick(feed: Feed) -> Progress:
    return await anext(change async for change in feed.changes if isinstance(change, Progress))


async def test_it_is_gone_on_with_and_other_sessions_are_not(engine: Engine) -> None:
    client = LocalClient(engine, "tester")
    await client.ask(begin(engine.workspace))
    await client.ask(EndFleetSession("f"))
    await client.ask(begin(engine.workspace))
    view = (await client.ask(ViewSession("f"))).view
    assert view.state == "running"
    assert sum("run resumed" in line.text for line in view.log) == 1
    await client.ask(EndFleetSession("f"))
    other = begin(engine.workspace).created
    file = await SessionFile.create(engine.library.file_of("g"), other, at=1.0)
    await file.close()
    with pytest.raises(SessionTaken, match="exists already"):
        await client.ask(replace(begin(engine.workspace), session="g"))


async def test_what_was_folded_takes_its_place(engine: Engine) -> None:
    client = LocalClient(engine, "tester")
    await client.ask(begin(engine.workspace))
    folded = engine.workspace.root / "kept" / "f.duckdb"
    folded.parent.mkdir()
    created = begin(engine.workspace).created
    file = await SessionFile.create(folded, created, at=1.0)
    for fact in (CampaignPlanned(Plan("demo", "sim", (), 8, 80.0)), RunStarted(False, None),
                 Noted("info", "folded"), RunFinished("done", 0, 0, 1.0, 1.0, ())):  # fmt: skip
        await file.append(fact, at=2.0)
    await file.close()
    async with client.follow("f") as feed:
        watched = Watched(feed)
        ending = asyncio.create_task(client.ask(EndFleetSession("f", None, str(folded))))
        with pytest.raises(SessionReplaced):
            await watched.until(lambda change: isinstance(change, Event) and change.seq > 10**6)
    await ending
    view = (await client.ask(ViewSession("f"))).view
    assert view.state == "finished"
    assert any(line.text == "folded" for line in view.log)
    assert not folded.exists()


async def folded(engine: Engine, *facts: Fact) -> None:
    """The session `f` as a fleet leaves it, with what came of it in the end."""
    file = await SessionFile.create(
        engine.library.file_of("f"), begin(engine.workspace).created, at=1.0
    )
    shard = ShardFolded("a", FACTS, "0123", "tinyproxy", (), 0, 0, 3, 9.0, "")
    plan = CampaignPlanned(Plan("demo", "sim", (), 8, 80.0))
    for fact in (plan, RunStarted(False, None), shard, *facts):
        await file.append(fact, at=2.0)
    await file.close()


async def test_this_host_measures_nothing_into_what_a_fleet_measured(engine: Engine) -> None:
    client = LocalClient(engine, "tester")
    await folded(engine, RunFinished("done", 3, 0, 1.0, 1.0, ()))
    campaign = begin(engine.workspace).created.campaign
    plan = campaign.targets[0]
    point = RequestPoint("f", plan.target.name, campaign.configurations(plan)[0], plan.primary.low)
    for request in (ResumeSession("f"), point):
        with pytest.raises(UsageError, match="no factor says how this host compares"):
            await client.ask(request)
    view = (await client.ask(ViewSession("f"))).view
    assert (view.state, view.requested) == ("finished", [])


async def test_a_session_that_lacks_shards_is_completed_and_others_are_not(engine: Engine) -> None:
    client = LocalClient(engine, "tester")
    lacking = RunFinished("stopped", 3, 1, 5.0, 4.0, (), "not measured: b")
    await folded(engine, lacking)
    with pytest.raises(UsageError, match="--fleet HOSTS --session f"):
        await client.ask(ResumeSession("f"))
    await client.ask(begin(engine.workspace))
    assert (await client.ask(ViewSession("f"))).view.state == "running"
    await client.ask(EndFleetSession("f", RunFinished("failed", 0, 0, 0.0, 0.0, (), "no host")))
    view = (await client.ask(ViewSession("f"))).view
    # Not completed: what it holds is as it was.
    assert view.finished == replace(lacking, outcome="failed", note="no host")
    await client.ask(begin(engine.workspace))
    await client.ask(EndFleetSession("f", RunFinished("done", 0, 0, 0.0, 0.0, ())))
    with pytest.raises(SessionTaken, match="exists already"):
        await client.ask(begin(engine.workspace))


@pytest.mark.parametrize("fails", [0, 3])
async def test_a_session_whose_command_is_gone_is_interrupted(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, fails: int
) -> None:
    """Also after looks that nobody expected to fail."""
    monkeypatch.setattr(fleet_sessions, "LOOK_S", 0.01)
    left = [fails]

    def there(here: FleetRunHere) -> bool:
        if left[0]:
            left[0] -= 1
            raise ValueError("a bug")
        return started(here.pid) == here.began is not None

    monkeypatch.setattr(FleetRunHere, "is_there", property(there))
    client = LocalClient(engine, "tester")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        await client.ask(begin(engine.workspace, pid=process.pid))
        process.kill()
    async with asyncio.timeout(60):
        while True:
            (one,) = (s for s in (await client.ask(ListSessions())).sessions if s.name == "f")
            if one.state == "interrupted":
                break
            await asyncio.sleep(0.01)
    assert left == [0], "every look was taken"
    await client.ask(begin(engine.workspace))
    await client.ask(EndFleetSession("f"))
