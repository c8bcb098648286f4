"""Whole campaigns on the simulated lab, through the real socket, store and worker."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from engine_watching import (
    LONGEST_S,
    SLOW,
    SMALL,
    Watched,
    by_default_models,
    kinds,
    same,
    start,
    stored_events,
    stored_samples,
)

from workbench.domain.campaign import WindowPlan
from workbench.domain.errors import (
    EngineError,
    SessionError,
    SessionTaken,
    SessionUnknown,
    UsageError,
)
from workbench.domain.events import (
    ConfigurationFinished,
    Event,
    Fact,
    ModelFitted,
    Noted,
    PauseRequested,
    PointAsked,
    RunContinued,
    RunFinished,
    RunPaused,
    SampleTaken,
    SessionCreated,
    StopRequested,
    TargetDeployed,
    UsageTick,
)
from workbench.domain.messages import (
    ContinueRun,
    EngineStatus,
    Exported,
    ExportSession,
    GetStatus,
    ImportBundle,
    ListSessions,
    PauseRun,
    PlanCampaign,
    Planned,
    ResumeSession,
    RunAccepted,
    RunCampaign,
    SessionList,
    SkipConfiguration,
    StopRun,
    Viewed,
    ViewSession,
)
from workbench.domain.profiles import Breakpoint
from workbench.domain.projection import SessionView
from workbench.domain.samples import Sample
from workbench.domain.sessions import Plan
from workbench.engine.core import Engine
from workbench.engine.learning.pool import Pool, WorkerLost
from workbench.engine.runs.progress import besides_s
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab
from workbench.link.local import LocalClient
from workbench.link.socket import SocketClient
from workbench.store.session_file import SessionFile

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Run:
    """A run and everything that was seen of it."""

    plan: Plan
    watched: Watched
    finished: RunFinished
    samples: list[Sample]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(client: SocketClient) -> Run:
    """A campaign that ran from plan to breakpoints undisturbed; the session is called `whole`."""
    return await ran(client, SMALL, "whole")


async def ran(client: SocketClient, campaign: str, session: str) -> Run:
    planned = await client.ask(PlanCampaign(campaign, lab="sim"))
    assert isinstance(planned, Planned)
    await client.ask(RunCampaign(campaign, session=session, lab="sim", seed=7))
    async with client.follow(session) as feed:
        watched = Watched(feed)
        finished = await watched.finish()
    return Run(planned.plan, watched, finished, await stored_samples(client, session))


async def view_of(client: SocketClient, session: str) -> SessionView:
    reply = await client.ask(ViewSession(session))
    assert isinstance(reply, Viewed)
    return reply.view


async def state_of(client: SocketClient, session: str) -> str:
    reply = await client.ask(ListSessions())
    assert isinstance(reply, SessionList)
    return next(s.state for s in reply.sessions if s.name == session)


async def test_a_campaign_from_plan_to_breakpoints(client: SocketClient, tmp_path: Path) -> None:
    campaign = tmp_path / "modelled.yaml"
    campaign.write_text(by_default_models(Path(SMALL).read_text()))
    run = await ran(client, str(campaign), "modelled")
    watched, finished = run.watched, run.finished
    curves = [view.curve for view in watched.view.configurations]
    assert {curve and curve.model for curve in curves} == {"gaussian-process"}
    assert finished.outcome == "done"
    assert finished.samples == watched.view.samples_taken > 6
    assert finished.measured_s == pytest.approx(run.plan.lab_s, rel=0.25)
    places = {(c.target, c.configuration) for c in watched.view.configurations}
    assert {(b.target, b.configuration) for b in finished.breakpoints} == places
    assert any(isinstance(tick, UsageTick) for tick in watched.ticks)

    events = await stored_events(client, "modelled")
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    names = kinds(events)
    assert names[:3] == ["SessionCreated", "CampaignPlanned", "RunStarted"]
    assert names.count("RunFinished") == 1
    assert names[-1] == "RunFinished"
    assert names.count("SampleTaken") == names.count("ModelFitted") == finished.samples
    assert names.count("ConfigurationFinished") == len(places)
    assert [e.fact.sample for e in events if isinstance(e.fact, SampleTaken)] == run.samples
    assert await state_of(client, "modelled") == "finished"


async def test_two_clients_see_every_event_once_and_in_order(
    engine: Engine, client: SocketClient
) -> None:
    await start(client, "watched")
    local = LocalClient(engine, "neighbour")
    async with client.follow("watched") as far, local.follow("watched") as near:
        first, second = Watched(far), Watched(near)
        begun = far.view.seq, near.view.seq
        await first.finish()
        await second.finish()
    stored = await stored_events(client, "watched")
    assert first.events == stored[begun[0] :]
    assert second.events == stored[begun[1] :]


async def test_whoever_comes_late_sees_the_fold_of_all_events(client: SocketClient) -> None:
    await start(client, "late", pace=SLOW)
    async with client.follow("late") as feed:
        watched = Watched(feed)
        await watched.fact(SampleTaken, 2)
        async with client.follow("late") as latecomer:
            late = Watched(latecomer)
            folded = SessionView("late")
            for event in (await stored_events(client, "late"))[: late.view.seq]:
                folded.apply(event)
            assert late.view == folded
            await client.ask(StopRun("late", abort=True))
            await watched.finish()
            await late.finish()
            assert late.view == watched.view
    assert await view_of(client, "late") == watched.view


async def test_pause_holds_between_samples_and_continue_goes_on(client: SocketClient) -> None:
    await start(client, "paused", pace=SLOW)
    async with client.follow("paused") as feed:
        watched = Watched(feed)
        await watched.fact(PointAsked)
        await client.ask(PauseRun("paused", by="ann"))
        assert (await watched.fact(PauseRequested)).fact == PauseRequested("ann")
        assert watched.view.state == "pausing", "while the sample is still measured"
        paused = await watched.fact(RunPaused)
        assert paused.fact == RunPaused("ann")
        assert watched.view.state == "paused"
        await watched.phase("paused")
        seq = watched.view.seq
        await watched.phase("paused")
        assert watched.view.seq == seq
        assert await state_of(client, "paused") == "paused"
        await client.ask(ContinueRun("paused", by="bob"))
        assert (await watched.fact(RunContinued)).fact == RunContinued("bob")
        await watched.fact(SampleTaken)
        await client.ask(StopRun("paused", abort=True))
        await watched.finish()


async def test_a_pause_is_taken_back_before_it_begins(client: SocketClient) -> None:
    await start(client, "pausing", pace=1.0)
    async with client.follow("pausing") as feed:
        watched = Watched(feed)
        await watched.fact(PointAsked)
        await client.ask(PauseRun("pausing", by="ann"))
        await watched.fact(PauseRequested)
        assert await state_of(client, "pausing") == "pausing", "who lists the sessions sees it"
        await client.ask(ContinueRun("pausing", by="bob"))
        assert (await watched.fact(RunContinued)).fact == RunContinued("bob")
        assert watched.view.state == "running"
        await client.ask(StopRun("pausing", abort=True))
        await watched.finish()


@pytest.mark.slow
async def test_stop_ends_after_the_sample_and_resume_takes_the_rest(
    client: SocketClient, whole: Run
) -> None:
    await start(client, "stopped", seed=7, pace=SLOW)
    async with client.follow("stopped") as feed:
        watched = Watched(feed)
        await watched.fact(PointAsked, 2)
        await client.ask(StopRun("stopped"))
        assert (await watched.finish()).outcome == "stopped"
        names = kinds(watched.events)
        after = names[names.index("StopRequested") :]
        assert after.count("SampleTaken") == 1
        assert {c.state for c in watched.view.configurations} == {"stopped"}

        # The feed is the same one before and after.
        await client.ask(ResumeSession("stopped"))
        assert (await watched.finish()).outcome == "done"
    assert same(await stored_samples(client, "stopped"), whole.samples)
    names = kinds(await stored_events(client, "stopped"))
    assert names.count("RunFinished") == names.count("RunStarted") == 2
    with pytest.raises(UsageError, match="nothing is left"):
        await client.ask(ResumeSession("stopped"))


async def test_abort_loses_the_sample_being_measured_and_nothing_else(
    client: SocketClient,
) -> None:
    await start(client, "aborted", pace=SLOW)
    async with client.follow("aborted") as feed:
        watched = Watched(feed)
        await watched.fact(SampleTaken)
        await watched.phase("measuring")
        await client.ask(StopRun("aborted", abort=True, by="ann"))
        finished = await watched.finish()
    assert finished.outcome == "aborted"
    assert finished.samples == len(await stored_samples(client, "aborted")) >= 1
    assert StopRequested("ann", abort=True) in [event.fact for event in watched.events]
    assert await state_of(client, "aborted") == "stopped"


async def test_a_skipped_configuration_gets_no_more_samples_even_when_resumed(
    client: SocketClient,
) -> None:
    await start(client, "skipped", pace=SLOW)
    async with client.follow("skipped") as feed:
        watched = Watched(feed)
        asked = (await watched.fact(PointAsked)).fact
        assert isinstance(asked, PointAsked)
        await client.ask(SkipConfiguration("skipped"))
        ended = (await watched.fact(ConfigurationFinished)).fact
        assert isinstance(ended, ConfigurationFinished)
        assert (ended.outcome, ended.configuration) == ("skipped", asked.configuration)
        await client.ask(StopRun("skipped", abort=True))
        await watched.finish()
        await client.ask(ResumeSession("skipped"))
        await watched.finish()
    taken = await stored_samples(client, "skipped")
    assert sum(s.point.configuration == asked.configuration for s in taken) == ended.samples
    with pytest.raises(EngineError, match="not running"):
        await client.ask(SkipConfiguration("skipped"))


async def test_a_budget_of_lab_time_is_kept_and_resume_goes_on(client: SocketClient) -> None:
    await start(client, "budget", budget_s=60.0)
    async with client.follow("budget") as feed:
        watched = Watched(feed)
        finished = await watched.finish()
        assert finished.outcome == "budget"
        assert {c.state for c in watched.view.configurations} == {"budget"}
        assert 0 < finished.samples < 12
        assert 30.0 <= finished.measured_s < 60.0 + WindowPlan().timeout_s
        assert "spent of 60 s; the next sample would take about" in finished.note
        await client.ask(ResumeSession("budget", budget_s=20.0))
        again = await watched.finish()
        assert (again.outcome, again.samples > finished.samples) == ("budget", True)
        await client.ask(ResumeSession("budget"))
        assert (await watched.finish()).outcome == "done"


async def test_a_budget_that_reaches_for_no_sample_spends_nothing(client: SocketClient) -> None:
    """It once took a deployment, a bypass and a sample before it looked."""
    await start(client, "too-little", budget_s=5.0)
    async with client.follow("too-little") as feed:
        finished = await Watched(feed).finish()
    assert (finished.outcome, finished.samples, finished.measured_s) == ("budget", 0, 0.0)
    assert finished.note.startswith("0 s spent of 5 s; the next sample would take about ")


async def test_a_session_deleted_while_its_engine_lives_gives_its_name_free(
    engine: Engine, client: SocketClient
) -> None:
    file, began = engine.library.file_of("deleted"), []
    for seed in (1, 2):
        accepted = await start(client, "deleted", seed=seed, budget_s=0.001)
        assert accepted.session == "deleted", "no other name is taken for it"
        async with client.follow("deleted") as feed:
            assert (await Watched(feed).finish()).outcome == "budget"
        await asyncio.gather(*(t for t in asyncio.all_tasks() if t.get_name() == "session deleted"))
        created = (await stored_events(client, "deleted"))[0].fact
        assert isinstance(created, SessionCreated)
        began.append(created.seed)
        file.unlink()
    assert began == [1, 2], "the second is a session of its own, from its first event on"


async def test_campaigns_queue_and_a_queued_one_can_be_stopped(client: SocketClient) -> None:
    await start(client, "first", pace=SLOW)
    async with client.follow("first") as feed:
        first = Watched(feed)
        await first.fact(PointAsked)
        second = await start(client, "second")
        assert second.queued_behind == "first"
        await start(client, "third")
        async with client.follow("second") as other:
            watched = Watched(other)
            await watched.phase("queued")
            status = await client.ask(GetStatus())
            assert isinstance(status, EngineStatus)
            assert (status.running, status.queued) == ("first", ("second", "third"))
            await client.ask(StopRun("second"))
            assert (await watched.finish()).outcome == "stopped"
        await client.ask(StopRun("first", abort=True))
        await first.finish()
    async with client.follow("third") as feed:
        assert (await Watched(feed).finish()).outcome == "done"


async def test_a_killed_worker_costs_nothing(
    engine: Engine, client: SocketClient, whole: Run
) -> None:
    await start(client, "bereft", seed=7, pace=SLOW)
    async with client.follow("bereft") as feed:
        watched = Watched(feed)
        await watched.fact(ModelFitted, 3)
        pid = engine.worker_pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        assert (await watched.finish()).outcome == "done"
    assert any(isinstance(e.fact, Noted) and "worker" in e.fact.text for e in watched.events)
    assert same(await stored_samples(client, "bereft"), whole.samples)


async def test_a_worker_that_dies_twice_ends_the_run_with_a_sentence_and_no_trace(
    engine: Engine, client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = WorkerLost("the worker process died twice over 'judge_drives'")

    async def dies(self: Pool, work: Callable[..., Any], *args: Any, **rest: Any) -> Any:
        if work.__name__ == "judge_drives":
            raise lost
        return await run(self, work, *args, **rest)

    run = Pool.run
    monkeypatch.setattr(Pool, "run", dies)
    await start(client, "lost")
    async with client.follow("lost") as feed:
        ended = await Watched(feed).finish()
    assert (ended.outcome, ended.note) == ("failed", str(lost))
    logged = [json.loads(text) for text in engine.workspace.log.read_text().splitlines()]
    (told,) = (e for e in logged if e["event"] == "run failed" and e["session"] == "lost")
    assert told["error"] == str(lost)
    assert "exception" not in told


async def test_a_session_that_cannot_be_written_ends_its_feeds_with_a_sentence(
    engine: Engine, client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start(client, "full", pace=SLOW)
    async with client.follow("full") as feed:
        watched = Watched(feed)
        await watched.fact(SampleTaken)
        append = SessionFile.append

        async def full(self: SessionFile, fact: Fact, **rest: Any) -> Event:
            if self.name == "full":
                raise SessionError("cannot be written: the disk is full", where="full")
            return await append(self, fact, **rest)

        monkeypatch.setattr(SessionFile, "append", full)
        with pytest.raises(SessionError, match="the disk is full"):
            await watched.finish()
        monkeypatch.undo()
    assert await state_of(client, "full") == "interrupted"
    taken = {s.id for s in await stored_samples(client, "full")}
    await client.ask(ResumeSession("full"))
    async with client.follow("full") as feed:
        assert (await Watched(feed).finish()).outcome == "done"
    assert taken < {s.id for s in await stored_samples(client, "full")}


async def test_an_exported_bundle_comes_back_and_answers_as_a_lab(
    client: SocketClient, whole: Run, tmp_path: Path
) -> None:
    bundle = tmp_path / "again.bundle"
    exported = await client.ask(ExportSession("whole", "bundle", str(bundle)))
    assert isinstance(exported, Exported)
    assert await client.ask(ImportBundle(exported.path)) == RunAccepted("again")
    assert await stored_samples(client, "again") == whole.samples
    assert await stored_events(client, "again") == [
        replace(event, session="again") for event in await stored_events(client, "whole")
    ]
    request = RunCampaign(SMALL, session="recalled", lab=f"recorded:{bundle}", seed=7)
    await client.ask(request)
    async with client.follow("recalled") as feed:
        finished = await Watched(feed).finish()
    recalled = await stored_samples(client, "recalled")
    assert same(sorted(recalled, key=by_id), sorted(whole.samples, key=by_id))
    # A configuration is fitted once, when it has ended: others may know more or less by then.
    for again, before in zip(
        sorted(finished.breakpoints, key=by_rule),
        sorted(whole.finished.breakpoints, key=by_rule),
        strict=True,
    ):
        assert (by_rule(again), again.state) == (by_rule(before), before.state)
        if before.low is not None and again.wl is not None and before.high is not None:
            assert before.low <= again.wl <= before.high


def by_id(sample: Sample) -> str:
    return sample.id


def by_rule(found: Breakpoint) -> tuple[str, str, str]:
    return found.target, found.configuration.key, found.rule


async def test_a_clock_that_jumps_neither_reorders_events_nor_stretches_durations(
    client: SocketClient, whole: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    true, jumps = time.time, itertools.cycle((0.0, 3 * 3600.0, -5 * 3600.0))
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: true() + next(jumps))
        await start(client, "jumps", seed=7)
        async with client.follow("jumps") as feed:
            finished = await Watched(feed).finish()
    at = [event.at for event in await stored_events(client, "jumps")]
    assert at == sorted(at)
    assert 0 < at[-1] - at[0] < LONGEST_S
    assert 0 < finished.wall_s < LONGEST_S
    samples = await stored_samples(client, "jumps")
    assert all(at[0] <= sample.started_at <= at[-1] for sample in samples)
    assert same(samples, whole.samples)


@pytest.mark.slow
async def test_every_block_is_a_deployment_of_its_own_also_after_a_resume(
    client: SocketClient, tmp_path: Path
) -> None:
    blocks = tmp_path / "blocks.yaml"
    method = "sampling: {method: uniform, max_samples: 6, repetitions: 2"
    blocks.write_text(Path(SMALL).read_text().replace("sampling: {max_samples: 6", method))
    await client.ask(RunCampaign(str(blocks), session="blocks", lab="sim", seed=7))
    async with client.follow("blocks") as feed:
        watched = Watched(feed)
        assert (await watched.finish()).outcome == "done"
    deployed = [e.fact.block for e in watched.events if isinstance(e.fact, TargetDeployed)]
    assert deployed == [0, 1]
    taken = await stored_samples(client, "blocks")
    assert [s.block for s in taken] == sorted(s.point.repetition for s in taken)
    assert {s.block for s in taken} == {0, 1}
    plan = watched.view.plan
    assert plan is not None
    costs = SimulatedLab(watched.view.campaign, LabSettings("costs")).costs  # type: ignore[arg-type]
    assert besides_s(plan) >= 2 * costs.deploy_s

    await client.ask(RunCampaign(str(blocks), session="halves", lab="sim", seed=7, pace=SLOW))
    async with client.follow("halves") as feed:
        watched = Watched(feed)
        await watched.until(
            lambda c: (
                isinstance(c, Event)
                and isinstance(c.fact, SampleTaken)
                and c.fact.sample.block == 1
            )
        )
        await client.ask(StopRun("halves", abort=True))
        await watched.finish()
        await client.ask(ResumeSession("halves"))
        assert (await watched.finish()).outcome == "done"
    deployed = [e.fact.block for e in watched.events if isinstance(e.fact, TargetDeployed)]
    assert deployed == [0, 1, 1]
    assert same(await stored_samples(client, "halves"), taken)


async def test_a_view_of_the_past_is_the_fold_up_to_there(client: SocketClient, whole: Run) -> None:
    assert whole.watched.view.seq > 9
    folded = SessionView("whole")
    for event in (await stored_events(client, "whole"))[:9]:
        folded.apply(event)
    reply = await client.ask(ViewSession("whole", until=9))
    assert isinstance(reply, Viewed)
    assert reply.view == folded


async def test_a_bug_is_one_sentence_for_the_user_and_a_trace_in_the_log(
    engine: Engine, client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> None:
        raise ZeroDivisionError("of nobody's making")

    monkeypatch.setattr(engine.library, "list", broken)
    with pytest.raises(EngineError, match="unexpected ZeroDivisionError: of nobody's making"):
        await client.ask(ListSessions())
    monkeypatch.undo()
    assert isinstance(await client.ask(ListSessions()), SessionList)
    last = [json.loads(text) for text in engine.workspace.log.read_text().splitlines()]
    traces = [entry["exception"] for entry in last if "exception" in entry]
    assert any("of nobody's making" in trace and "Traceback" in trace for trace in traces)


@pytest.mark.usefixtures("whole")
async def test_wrong_requests_are_sentences(client: SocketClient) -> None:
    with pytest.raises(SessionTaken, match="resume whole"):
        await start(client, "whole")
    with pytest.raises(UsageError, match="cannot be the name"):
        await start(client, "../whole")
    with pytest.raises(SessionUnknown):
        await client.ask(ResumeSession("nobody"))
    with pytest.raises(SessionUnknown):
        async with client.follow("nobody"):
            pass
    with pytest.raises(UsageError, match="no campaign"):
        await client.ask(RunCampaign("nothing-of-that-name", lab="sim"))
    with pytest.raises(EngineError, match="not running"):
        await client.ask(PauseRun("whole"))


@pytest.mark.usefixtures("whole")
async def test_observers_watch_and_do_not_command(engine: Engine) -> None:
    observer = await SocketClient.connect(engine.workspace.socket, "guest", "observer")
    try:
        with pytest.raises(EngineError, match="observers"):
            await observer.ask(RunCampaign(SMALL, lab="sim"))
        async with observer.follow("whole") as feed:
            assert feed.view.state == "finished"
    finally:
        await observer.close()
