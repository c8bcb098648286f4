"""Trials: points that somebody asks for one after the other, once the campaign has ended."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
import pytest_asyncio
from engine_fakes import FaultyLab
from engine_watching import SLOW, Watched, kinds, same, stored_events, stored_samples

from workbench.domain.campaign import TargetPlan
from workbench.domain.errors import (
    BudgetSpent,
    EngineError,
    LabError,
    SessionUnknown,
    Stopped,
    UsageError,
)
from workbench.domain.events import Progress, SampleTaken, TrialsFinished, TrialsStarted
from workbench.domain.messages import (
    ContinueRun,
    ListSessions,
    PauseRun,
    ResumeSession,
    RunCampaign,
    SessionList,
    StopRun,
    Viewed,
    ViewSession,
)
from workbench.domain.parameters import Configuration, Parameter, PrimaryWorkload
from workbench.domain.projection import SessionView
from workbench.domain.samples import Sample
from workbench.domain.topology import Parallel, Series, Target, Vnf
from workbench.engine.core import Engine
from workbench.engine.learning.scoring import material
from workbench.engine.runs.trials import TrialsRequest
from workbench.labs.simulated import SimulatedLab
from workbench.link.socket import SocketClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

CAMPAIGN = str(Path(__file__).with_name("chain_and_function.yaml"))
CHAIN = "haproxy-tinyproxy"
FILES, OTHER = {"filesize_bytes": 10_000.0}, {"filesize_bytes": 5_000.0}
HERE = Configuration({"haproxy.vcpu": 0.25, "tinyproxy.vcpu": 0.5}, FILES)
ELSEWHERE = Configuration({"haproxy.vcpu": 0.25, "tinyproxy.vcpu": 0.25}, FILES)
"""An allocation that the campaign does not have."""


async def profile(client: SocketClient, session: str, lab: str = "sim", **options: float) -> None:
    """Run the campaign to its end, or to that of its budget."""
    await client.ask(RunCampaign(CAMPAIGN, session=session, lab=lab, seed=7, **options))  # type: ignore[arg-type]
    async with client.follow(session) as feed:
        await Watched(feed).finish()


async def view_of(client: SocketClient, session: str, until: int | None = None) -> SessionView:
    reply = await client.ask(ViewSession(session, until))
    assert isinstance(reply, Viewed)
    return reply.view


async def state_of(client: SocketClient, session: str) -> str:
    reply = await client.ask(ListSessions())
    assert isinstance(reply, SessionList)
    return next(s.state for s in reply.sessions if s.name == session)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def profiled(client: SocketClient) -> tuple[Sample, ...]:
    """The session `profiled`: its campaign has ended; the samples of that."""
    await profile(client, "profiled")
    return tuple(await stored_samples(client, "profiled"))


async def test_points_are_measured_one_after_the_other_in_a_session_that_has_ended(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    before = await view_of(client, "profiled")
    known = next(s.point for s in profiled if s.point.target == CHAIN)
    async with engine.queue.trials(
        TrialsRequest("profiled", "canary", points=3, by="ann")
    ) as trials:
        first = await trials.measure(CHAIN, HERE, 123.0)
        again = await trials.measure(CHAIN, HERE, 123.0)
        third = await trials.measure(CHAIN, HERE, known.wl)
        assert trials.lab_s > sum(s.lab_s for s in trials.samples) > 0
        assert engine.queue.running == "profiled"
    taken = [first, again, third]
    assert [s.point.repetition for s in taken] == [0, 1, known.repetition + 1]
    assert all(s.id.endswith("/canary") and s.purpose == "canary" for s in taken)
    (block,) = {s.block for s in taken}
    assert block not in {s.block for s in profiled}, "it was deployed anew"
    assert await stored_samples(client, "profiled") == [*profiled, *taken]

    view = await view_of(client, "profiled")
    assert (view.state, await state_of(client, "profiled")) == ("finished", "finished")
    assert (view.configurations, view.finished) == (before.configurations, before.finished)
    (canary,) = view.trials
    assert [(t.target, t.sample.id) for t in canary.samples] == [(CHAIN, s.id) for s in taken]
    assert (canary.purpose, canary.by, canary.outcome) == ("canary", "ann", "done")
    assert canary.lab_s == pytest.approx(trials.lab_s) == view.lab_s - before.lab_s


async def test_a_stand_alone_profile_does_not_learn_from_trials(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    async with engine.queue.trials(TrialsRequest("profiled", "verification")) as trials:
        sample = await trials.measure(
            "tinyproxy", Configuration({"tinyproxy.vcpu": 0.5}, FILES), 77.0
        )
    given = await material(engine.library, "profiled", None)
    assert sample in given.samples
    assert given.of("tinyproxy") == tuple(s for s in profiled if s.point.target == "tinyproxy")


async def test_replicas_behind_a_balancer_are_measured_and_their_templates_kept(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    del profiled
    graph = Series(
        (
            Vnf("balancer", "nginx"),
            Parallel(
                (Vnf("tinyproxy-1", "tinyproxy"), Vnf("tinyproxy-2", "tinyproxy")), (0.5, 0.5)
            ),
        )
    )
    allocation = {"balancer.vcpu": 0.5, "tinyproxy-1.vcpu": 0.5, "tinyproxy-2.vcpu": 0.5}
    plan = TargetPlan(
        Target("spread", graph),
        tuple(Parameter(key, (value,), "cores") for key, value in allocation.items()),
        PrimaryWorkload("rate", 50.0, 2000.0, "log", "requests/s"),
    )
    at = Configuration(allocation, FILES)
    async with engine.queue.trials(
        TrialsRequest("profiled", "verification", plans=(plan,))
    ) as trials:
        sample = await trials.measure("spread", at, 200.0)
    assert sample.valid
    assert {"balancer", "tinyproxy-1", "tinyproxy-2"} <= sample.usage.keys()
    view = await view_of(client, "profiled")
    assert view.trials[-1].plans == (plan,)
    assert [template.name for template in view.trials[-1].templates] == ["nginx"]
    assert view.host is not None
    assert "nginx" in view.host.image_digests, "another image is refused from now on"
    async with engine.queue.trials(
        TrialsRequest("profiled", "verification", plans=(plan,))
    ) as trials:
        again = await trials.measure("spread", at, 200.0)
    assert again.point.repetition == 1
    assert again.block != sample.block

    wider = TargetPlan(Target("tinyproxy", graph), plan.resources, plan.primary)
    with pytest.raises(UsageError, match="another target 'tinyproxy'"):
        async with engine.queue.trials(TrialsRequest("profiled", "greedy", plans=(wider,))):
            pass
    large = tuple(Parameter(p.key, (4.0,), "cores") for p in plan.resources)
    with pytest.raises(UsageError, match="12 cores"):
        async with engine.queue.trials(
            TrialsRequest(
                "profiled", "greedy", plans=(TargetPlan(plan.target, large, plan.primary),)
            )
        ):
            pass


async def test_an_allocation_that_the_campaign_does_not_have_can_be_measured(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    del client, profiled
    async with engine.queue.trials(TrialsRequest("profiled", "greedy")) as trials:
        sample = await trials.measure(CHAIN, ELSEWHERE, 100.0)
    assert sample.point.configuration == ELSEWHERE


async def test_no_sample_is_begun_once_the_budget_is_spent(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    async with engine.queue.trials(TrialsRequest("profiled", "canary", budget_s=1.0)) as trials:
        await trials.measure(CHAIN, HERE, 100.0)
        with pytest.raises(BudgetSpent, match=r"of 1 s; 1 sample stored"):
            await trials.measure(CHAIN, HERE, 110.0)
        with pytest.raises(BudgetSpent):
            await trials.measure(CHAIN, HERE, 120.0)
    ended = (await stored_events(client, "profiled"))[-1].fact
    assert isinstance(ended, TrialsFinished)
    assert (ended.outcome, ended.samples) == ("budget", 1)


async def test_stop_waits_for_the_sample_and_abort_does_not(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    for abort in (False, True):
        before = len(await stored_samples(client, "profiled"))
        async with client.follow("profiled") as feed:
            watched = Watched(feed)
            async with engine.queue.trials(
                TrialsRequest("profiled", "canary", pace=SLOW)
            ) as trials:
                asked = asyncio.create_task(trials.measure(CHAIN, HERE, 300.0))
                await watched.phase("measuring")
                await client.ask(StopRun("profiled", abort=abort, by="bob"))
                if not abort:
                    assert (await asked).purpose == "canary"
                    asked = asyncio.create_task(trials.measure(CHAIN, HERE, 310.0))
                with pytest.raises(Stopped, match="was stopped"):
                    await asked
            finished = (await watched.fact(TrialsFinished)).fact
        assert isinstance(finished, TrialsFinished)
        assert finished.outcome == ("aborted" if abort else "stopped")
        assert len(await stored_samples(client, "profiled")) == before + (not abort)
    assert await state_of(client, "profiled") == "finished"


async def test_pause_holds_between_points_and_says_nothing_of_the_campaign(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    async with client.follow("profiled") as feed:
        watched = Watched(feed)
        async with engine.queue.trials(TrialsRequest("profiled", "canary", points=2)) as trials:
            await trials.measure(CHAIN, HERE, 90.0)
            await client.ask(PauseRun("profiled", by="ann"))
            asked = asyncio.create_task(trials.measure(CHAIN, HERE, 95.0))
            await watched.phase("paused")
            tick = watched.ticks[-1]
            assert isinstance(tick, Progress)
            assert (tick.samples, tick.samples_planned) == (1, 2)
            assert tick.eta_s == pytest.approx(trials.samples[0].lab_s), "one more like it"
            assert watched.view.state == "finished"
            assert not asked.done()
            await client.ask(ContinueRun("profiled", by="ann"))
            await asked
    names = kinds(await stored_events(client, "profiled"))
    assert names[-6:].count("RunPaused") == names[-6:].count("RunContinued") == 1
    assert await state_of(client, "profiled") == "finished"


async def test_who_is_cancelled_aborts_and_the_next_trials_work(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    async def measuring() -> None:
        async with engine.queue.trials(TrialsRequest("profiled", "canary", pace=SLOW)) as trials:
            await trials.measure(CHAIN, HERE, 400.0)

    async with client.follow("profiled") as feed:
        task = asyncio.create_task(measuring())
        await Watched(feed).phase("measuring")
        with pytest.raises(UsageError, match="is running already"):
            await client.ask(ResumeSession("profiled"))
        with pytest.raises(UsageError, match="is running already"):
            async with engine.queue.trials(TrialsRequest("profiled", "canary")):
                pass
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    assert engine.queue.unfinished == ()
    assert (await view_of(client, "profiled")).trials[-1].outcome == "aborted"
    async with engine.queue.trials(TrialsRequest("profiled", "canary")) as trials:
        await trials.measure(CHAIN, HERE, 400.0)


async def test_trials_wait_their_turn_and_can_be_stopped_in_the_queue(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    before = len(await stored_samples(client, "profiled"))
    await client.ask(RunCampaign(CAMPAIGN, session="busy", lab="sim", pace=SLOW))
    async with client.follow("busy") as feed, client.follow("profiled") as other:
        busy, queued = Watched(feed), Watched(other)
        await busy.fact(SampleTaken)
        async with engine.queue.trials(TrialsRequest("profiled", "canary")) as trials:
            assert trials.queued_behind == "busy"
            asked = asyncio.create_task(trials.measure(CHAIN, HERE, 100.0))
            await queued.phase("queued")
            await client.ask(StopRun("profiled"))
            with pytest.raises(Stopped):
                await asked
        async with engine.queue.trials(TrialsRequest("profiled", "canary")) as trials:
            await client.ask(StopRun("busy", abort=True))
            await trials.measure(CHAIN, HERE, 100.0)
        await busy.finish()
    assert len(await stored_samples(client, "profiled")) == before + 1
    starts = [
        e for e in await stored_events(client, "profiled") if isinstance(e.fact, TrialsStarted)
    ]
    assert len(starts) == len((await view_of(client, "profiled")).trials)


async def test_what_cannot_be_measured_is_refused_with_a_sentence(
    engine: Engine,
    client: SocketClient,
    profiled: tuple[Sample, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = await stored_samples(client, "profiled")
    async with engine.queue.trials(TrialsRequest("profiled", "canary")) as trials:
        with pytest.raises(
            UsageError, match=f"no target 'nobody'.*Choose one of: tinyproxy, {CHAIN}"
        ):
            await trials.measure("nobody", HERE, 100.0)
        with pytest.raises(UsageError, match=r"squid\.vcpu"):
            await trials.measure(CHAIN, Configuration({"squid.vcpu": 1.0}, FILES), 100.0)
        with pytest.raises(UsageError, match="filesize_bytes is missing"):
            await trials.measure(CHAIN, Configuration(HERE.resources, {}), 100.0)
        with pytest.raises(UsageError, match="cannot be loaded with -1"):
            await trials.measure(CHAIN, HERE, -1.0)
    assert await stored_samples(client, "profiled") == before
    with pytest.raises(SessionUnknown):
        async with engine.queue.trials(TrialsRequest("nobody", "canary")):
            pass
    lab = SimulatedLab.open

    async def moved(self: SimulatedLab) -> object:
        facts = await lab(self)
        return type(facts)(**(vars(facts) | {"cores": 64}))

    monkeypatch.setattr(SimulatedLab, "open", moved)
    with pytest.raises(LabError, match="another host: its number of cores was 4 and is 64"):
        async with engine.queue.trials(TrialsRequest("profiled", "canary")):
            pass
    assert await state_of(client, "profiled") == "finished"


async def test_the_view_at_any_event_is_the_fold_up_to_there(
    client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    del profiled
    events = await stored_events(client, "profiled")
    assert sum(isinstance(e.fact, TrialsStarted) for e in events) > 1
    folded = SessionView("profiled")
    for event in events:
        folded.apply(event)
        if isinstance(event.fact, TrialsStarted | TrialsFinished):
            assert await view_of(client, "profiled", event.seq) == folded
    assert await view_of(client, "profiled") == folded


async def test_a_campaign_that_is_resumed_measures_nothing_twice_and_ignores_trials(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    await profile(client, "cut", budget_s=30.0)
    cut = await view_of(client, "cut")
    assert (cut.state, cut.finished and cut.finished.outcome) == ("finished", "budget")
    already = {s.point for s in await stored_samples(client, "cut")}
    to_come = next(s.point for s in profiled if s.purpose == "profile" and s.point not in already)
    async with engine.queue.trials(TrialsRequest("cut", "canary")) as trials:
        trial = await trials.measure(to_come.target, to_come.configuration, to_come.wl)
    assert trial.point == to_come, "the very point that the campaign will ask for"
    spent_s = (await view_of(client, "cut")).lab_s
    assert spent_s > cut.lab_s
    await client.ask(ResumeSession("cut"))
    async with client.follow("cut") as feed:
        finished = await Watched(feed).finish()
    taken = await stored_samples(client, "cut")
    assert len({s.id for s in taken}) == len(taken)
    assert same([s for s in taken if s.purpose == "profile"], list(profiled))
    assert [s for s in taken if s.purpose == "canary"] == [trial]
    view = await view_of(client, "cut")
    assert view.lab_s == pytest.approx(finished.measured_s + view.trials_s)


async def test_after_a_kill_the_session_reads_as_finished_with_what_was_measured(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    del profiled
    killed = engine.library.file_of("killed")
    async with engine.queue.trials(TrialsRequest("profiled", "canary", budget_s=100.0)) as trials:
        last = await trials.measure(CHAIN, HERE, 250.0)
        for file in engine.workspace.sessions.glob("profiled.duckdb*"):  # as kill -9 leaves them
            shutil.copy(file, file.with_name(file.name.replace("profiled", "killed")))
    assert killed.exists()
    assert await state_of(client, "killed") == "finished"
    view = await view_of(client, "killed")
    assert (view.state, view.trials[-1].outcome) == ("finished", "interrupted")
    assert [t.sample.id for t in view.trials[-1].samples] == [last.id]
    assert (await stored_samples(client, "killed"))[-1] == last
    async with engine.queue.trials(TrialsRequest("killed", "canary")) as trials:
        again = await trials.measure(CHAIN, HERE, 250.0)
    assert again.point.repetition == 1
    view = await view_of(client, "killed")
    assert [t.outcome for t in view.trials[-2:]] == ["interrupted", "done"]


async def test_a_lab_that_fails_is_a_sentence_and_the_session_stays_readable(
    engine: Engine, client: SocketClient, faulty: type[FaultyLab], monkeypatch: pytest.MonkeyPatch
) -> None:
    await profile(client, "hurt", lab="faulty")
    attempts = 0

    def fails(attempted: str, configuration: Configuration | None) -> str | None:
        nonlocal attempts
        attempts += attempted == "drive"
        return "it crashed" if attempted == "drive" and attempts in broken else None

    monkeypatch.setattr(faulty, "failing", staticmethod(fails))
    broken = {1}
    async with engine.queue.trials(TrialsRequest("hurt", "canary")) as trials:
        assert (await trials.measure(CHAIN, HERE, 60.0)).valid
    notes = [line.text for line in (await view_of(client, "hurt")).log]
    assert any("it crashed" in note and "tried once more" in note for note in notes)

    attempts, broken = 0, {1, 2}
    async with engine.queue.trials(TrialsRequest("hurt", "canary")) as trials:
        with pytest.raises(LabError, match=r"it crashed. Look at its log"):
            await trials.measure(CHAIN, HERE, 70.0)
        assert (await trials.measure(CHAIN, ELSEWHERE, 70.0)).valid, "another point may do"

    attempts, broken = 0, set(range(100))
    async with engine.queue.trials(TrialsRequest("hurt", "canary")) as trials:
        for at in (HERE, ELSEWHERE, HERE):
            with pytest.raises(LabError, match="it crashed"):
                await trials.measure(CHAIN, at, 80.0)
    view = await view_of(client, "hurt")
    assert [t.outcome for t in view.trials] == ["done", "done", "failed"]
    assert "it crashed" in view.trials[-1].note
    assert [len(t.samples) for t in view.trials] == [1, 1, 0]
    assert FaultyLab.reaped[-1] == frozenset(), "strays go before the first deployment"

    monkeypatch.setattr(faulty, "digest", "sha256:2")
    with pytest.raises(LabError, match="image of tinyproxy"):
        async with engine.queue.trials(TrialsRequest("hurt", "canary")):
            pass
    assert await state_of(client, "hurt") == "finished"


async def test_a_recorded_lab_answers_what_it_recorded(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    await profile(client, "again", lab="recorded:profiled")
    known = [s for s in profiled if s.point.target == CHAIN][-1]
    async with engine.queue.trials(TrialsRequest("again", "verification")) as trials:
        recalled = await trials.measure(CHAIN, HERE, known.point.wl)
        unknown = await trials.measure(CHAIN, Configuration(HERE.resources, OTHER), known.point.wl)
    assert recalled.id == f"{known.id[:-1]}1/verification", "a repetition that it does not have"
    for sample in (recalled, unknown):
        assert (sample.valid, sample.reason, sample.kpis) == (False, "not_measured", {})
    taken = await stored_samples(client, "again")
    assert [s.purpose for s in taken[-2:]] == ["verification"] * 2
    assert {s.purpose for s in taken[:-2]} == {"profile"}


async def test_a_campaign_that_has_not_ended_is_not_to_be_disturbed(
    engine: Engine, client: SocketClient
) -> None:
    await client.ask(RunCampaign(CAMPAIGN, session="running", lab="sim", pace=SLOW / 10.0))
    with pytest.raises(UsageError, match="is running already"):
        async with engine.queue.trials(TrialsRequest("running", "canary")):
            pass
    async with client.follow("running") as feed:
        watched = Watched(feed)
        await watched.fact(SampleTaken)
        await engine.interrupt_runs()
    with pytest.raises(EngineError, match="is ending"):
        async with engine.queue.trials(TrialsRequest("running", "canary")):
            pass
    engine.queue.ending = False
    with pytest.raises(UsageError, match="is interrupted: its campaign has not ended"):
        async with engine.queue.trials(TrialsRequest("running", "canary")):
            pass


async def test_an_engine_that_ends_says_so_to_who_waits(
    engine: Engine, client: SocketClient, profiled: tuple[Sample, ...]
) -> None:
    del profiled
    async with (
        client.follow("profiled") as feed,
        engine.queue.trials(TrialsRequest("profiled", "canary", pace=SLOW)) as trials,
    ):
        asked = asyncio.create_task(trials.measure(CHAIN, HERE, 500.0))
        await Watched(feed).phase("measuring")
        await engine.interrupt_runs()
        with pytest.raises(EngineError, match="the engine ended during the canary"):
            await asked
    engine.queue.ending = False
    assert (await view_of(client, "profiled")).trials[-1].note == "the engine ended"
