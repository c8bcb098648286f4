"""Samples rejected and pinned, points and budget asked for: a real engine, a simulated lab."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from engine_watching import SLOW, SMALL, Watched, stored_events, stored_samples

from workbench.domain.errors import EngineError, NotAllowed, UsageError, WorkbenchError
from workbench.domain.events import (
    Event,
    ModelFitted,
    Noted,
    RunFinished,
    SampleTaken,
    TargetDeployed,
)
from workbench.domain.messages import (
    ListSessions,
    ResumeSession,
    RunAccepted,
    RunCampaign,
    SessionList,
    StopRun,
    Viewed,
    ViewSession,
)
from workbench.domain.projection import SessionView
from workbench.domain.questions import ModelsScored, ScoreModels
from workbench.domain.sample_review import (
    BudgetExtended,
    DecideSample,
    ExtendBudget,
    GetSample,
    PointRequested,
    RequestPoint,
    SampleDecided,
    SampleDetail,
)
from workbench.engine.core import Engine
from workbench.engine.process import serving
from workbench.engine.runs.sample_decisions import request_point
from workbench.link.socket import SocketClient
from workbench.paths import Workspace

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def run(client: SocketClient, name: str, **options: float) -> SessionView:
    await client.ask(RunCampaign(SMALL, session=name, lab="sim", seed=7, **options))  # type: ignore[arg-type]
    async with client.follow(name) as feed:
        watched = Watched(feed)
        await watched.finish()
    return watched.view


async def view_of(client: SocketClient, name: str) -> SessionView:
    reply = await client.ask(ViewSession(name))
    assert isinstance(reply, Viewed)
    return reply.view


async def folded(client: SocketClient, name: str) -> SessionView:
    view = SessionView(name)
    for event in await stored_events(client, name):
        view.apply(event)
    return view


def fitted_samples(events: list[Event]) -> list[tuple[str, ...]]:
    """Of every fit the samples that it rests on."""
    facts = (event.fact for event in events)
    return [f.model.sample_ids for f in facts if isinstance(f, ModelFitted) and f.model]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def finished(client: SocketClient) -> AsyncIterator[str]:
    await run(client, "finished")
    yield "finished"


async def test_a_rejected_sample_is_fitted_no_more_and_undo_takes_it_back(
    client: SocketClient, finished: str
) -> None:
    before = await view_of(client, finished)
    item = before.configurations[0]
    chosen = next(p for p in item.samples if p.valid and 100 < p.wl < 1000)
    await client.ask(DecideSample(finished, chosen.id, "rejected", "a backup ran", by="ann"))

    after = await view_of(client, finished)
    point = next(p for p in after.configurations[0].samples if p.id == chosen.id)
    assert (point.valid, point.reason, point.verdict) == (False, "rejected", "rejected")
    assert after.configurations[0].curve != item.curve
    events = await stored_events(client, finished)
    assert chosen.id not in fitted_samples(events)[-1]
    taken = next(s for s in await stored_samples(client, finished) if s.id == chosen.id)
    assert not taken.valid
    assert "ann: a backup ran" in taken.findings[0].evidence
    scored = await client.ask(ScoreModels(finished, methods=("gaussian-process",)))
    assert isinstance(scored, ModelsScored)
    assert all(chosen.id not in version.sample_ids for version in scored.models)
    listed = await client.ask(ListSessions())
    assert isinstance(listed, SessionList)
    line = next(s for s in listed.sessions if s.name == finished)
    assert line.invalid == sum(c.invalid for c in after.configurations)
    decided = next(e.fact for e in events if isinstance(e.fact, SampleDecided))
    assert decided == SampleDecided(chosen.id, "rejected", "ann", "a backup ran")
    detail = await client.ask(GetSample(finished, chosen.id))
    assert isinstance(detail, SampleDetail)
    assert detail.decision == decided
    assert detail.windows
    now = await view_of(client, finished)
    assert await folded(client, finished) == now, "a replay shows the same"

    await client.ask(DecideSample(finished, chosen.id, "open", by="ann"))
    again = await view_of(client, finished)
    assert again.configurations[0].samples == item.samples
    assert again.configurations[0].curve == item.curve
    assert again.configurations[0].breakpoints == item.breakpoints, "though others came later"
    assert chosen.id in fitted_samples(await stored_events(client, finished))[-1]


async def test_a_pinned_sample_changes_no_fit(client: SocketClient, finished: str) -> None:
    before = await view_of(client, finished)
    chosen = before.configurations[1].samples[0].id
    await client.ask(DecideSample(finished, chosen, "pinned", "strange"))
    after = await view_of(client, finished)
    assert after.configurations[1].samples[0].verdict == "pinned"
    assert after.configurations[1].samples[0].valid == before.configurations[1].samples[0].valid
    assert isinstance((await stored_events(client, finished))[-1].fact, SampleDecided)
    note = await client.ask(DecideSample(finished, chosen, "pinned", "strange"))
    assert "so already" in note.note  # type: ignore[union-attr]
    await client.ask(DecideSample(finished, chosen, "open"))


@pytest.mark.parametrize(
    ("request_", "error", "says"),
    [
        (DecideSample("finished", "none/c/1/0", "pinned"), UsageError, "no sample"),
        (DecideSample("finished", "x", "rejected"), UsageError, "without a reason"),
        (DecideSample("finished", "x", "pinned", "x" * 501), UsageError, "500 characters"),
        (ExtendBudget("finished", 60.0), EngineError, "not running"),
    ],
)
async def test_what_cannot_be_decided_is_a_sentence(
    client: SocketClient,
    finished: str,
    request_: DecideSample | ExtendBudget,
    error: type[WorkbenchError],
    says: str,
) -> None:
    with pytest.raises(error, match=says):
        await client.ask(request_)


async def test_observers_decide_nothing(engine: Engine, finished: str) -> None:
    observer = await SocketClient.connect(engine.workspace.socket, "eve", "observer")
    view = await view_of(observer, finished)
    item = view.configurations[0]
    for request in (
        DecideSample(finished, item.samples[0].id, "rejected", "because"),
        RequestPoint(finished, item.target, item.configuration, 500.0),
        ExtendBudget(finished, 60.0),
    ):
        with pytest.raises(NotAllowed):
            await observer.ask(request)
    assert isinstance(await observer.ask(GetSample(finished, item.samples[0].id)), SampleDetail)
    await observer.close()


async def test_a_sample_rejected_in_mid_run_is_told_to_the_sampler_anew(
    client: SocketClient,
) -> None:
    await client.ask(RunCampaign(SMALL, session="midrun", lab="sim", seed=7, pace=SLOW))
    async with client.follow("midrun") as feed:
        watched = Watched(feed)
        event = await watched.fact(SampleTaken, 4)
        assert isinstance(event.fact, SampleTaken)
        chosen = event.fact.sample.id
        await client.ask(DecideSample("midrun", chosen, "rejected", "by hand"))
        await watched.fact(SampleDecided)
        await watched.finish()
    events = await stored_events(client, "midrun")
    decided = next(e.seq for e in events if isinstance(e.fact, SampleDecided))
    # The fit that was under way may still have it; those after the next sample have not.
    later = [e for e in events if e.seq > decided]
    second = [e.seq for e in later if isinstance(e.fact, SampleTaken)][1]
    assert all(chosen not in ids for ids in fitted_samples([e for e in later if e.seq > second]))
    assert await folded(client, "midrun") == await view_of(client, "midrun")


async def test_one_more_repetition_and_one_more_point_are_measured_next(
    client: SocketClient,
) -> None:
    await client.ask(RunCampaign(SMALL, session="more", lab="sim", seed=7, pace=SLOW))
    async with client.follow("more") as feed:
        watched = Watched(feed)
        event = await watched.fact(SampleTaken, 2)
        assert isinstance(event.fact, SampleTaken)
        point = event.fact.sample.point
        for wl in (point.wl, point.wl, 333.0):
            await client.ask(RequestPoint("more", point.target, point.configuration, wl, by="ann"))
        with pytest.raises(UsageError, match="not in the range"):
            await client.ask(RequestPoint("more", point.target, point.configuration, 1e6))
        await watched.finish()
        assert watched.view.requested == []
    taken = [s.point for s in await stored_samples(client, "more")]
    assert [p.repetition for p in taken if p.wl == point.wl and
            p.configuration == point.configuration] == [0, 1, 2]  # fmt: skip
    assert 333.0 in [p.wl for p in taken]
    asked = [e.fact for e in await stored_events(client, "more")]
    assert sum(isinstance(f, PointRequested) for f in asked) == 3


async def test_a_point_of_a_finished_campaign_resumes_it_for_that(client: SocketClient) -> None:
    view = await run(client, "after")
    count = view.samples_taken
    item = view.configurations[0]
    reply = await client.ask(RequestPoint("after", item.target, item.configuration, 777.0))
    assert reply == RunAccepted("after")
    async with client.follow("after") as feed:
        watched = Watched(feed)
        if watched.view.requested or watched.view.state != "finished":
            await watched.finish()
    after = await view_of(client, "after")
    assert after.state == "finished"
    assert after.samples_taken >= count + 1
    assert 777.0 in [p.wl for p in after.configurations[0].samples]
    assert after.configurations[0].state in ("converged", "max_samples")


async def test_points_of_a_finished_campaign_have_a_block_of_their_own_each_time(
    client: SocketClient, engine: Engine
) -> None:
    """As a fleet that is planned in one place asks for them, round by round: each is a deployment,
    and its samples have no number of another one."""
    view = await run(client, "rounds")
    item = view.configurations[0]
    known = {s.id for s in await stored_samples(client, "rounds")}
    last = max(s.block for s in await stored_samples(client, "rounds"))
    for loads in ((701.0, 702.0), (703.0,)):
        for wl in loads:
            asked = RequestPoint("rounds", item.target, item.configuration, wl, "fleet")
            await request_point(engine.library, asked, "fleet")
        seq = (await view_of(client, "rounds")).seq
        await client.ask(ResumeSession("rounds"))
        async with client.follow("rounds") as feed:
            watched = Watched(feed)
            if watched.view.requested or watched.view.state != "finished":
                await watched.finish()
        new = [s for s in await stored_samples(client, "rounds") if s.id not in known]
        known |= {s.id for s in new}
        own = {s.block for s in new if s.point.wl in loads}
        assert own == {last + 1}, "one deployment for those of a round, and none of before"
        events = [e.fact for e in await stored_events(client, "rounds") if e.seq > seq]
        assert own <= {fact.block for fact in events if isinstance(fact, TargetDeployed)}
        assert not [fact for fact in events if isinstance(fact, Noted) and fact.level == "warning"]
        last = max(s.block for s in await stored_samples(client, "rounds"))


async def test_a_budget_that_is_extended_holds_after_a_restart(
    root: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    workspace = Workspace(tmp_path_factory.mktemp("budget"))
    async with serving(workspace) as engine:
        client = await SocketClient.connect(engine.workspace.socket, "tester")
        await client.ask(
            RunCampaign(SMALL, session="b", lab="sim", seed=7, pace=SLOW / 10.0, budget_s=30.0)
        )
        async with client.follow("b") as feed:
            watched = Watched(feed)
            event = await watched.fact(SampleTaken)
            assert isinstance(event.fact, SampleTaken)
            await client.ask(ExtendBudget("b", 600.0, by="ann"))
            extended = (await watched.fact(BudgetExtended)).fact
            assert extended == BudgetExtended(630.0, "ann")
            point = event.fact.sample.point
            await client.ask(RequestPoint("b", point.target, point.configuration, 444.0))
        await client.close()
    async with serving(workspace) as engine:  # the run was cut off
        client = await SocketClient.connect(engine.workspace.socket, "tester")
        cut = await view_of(client, "b")
        assert cut.state == "interrupted"
        assert cut.budget_s == 630.0
        await client.ask(ResumeSession("b"))
        async with client.follow("b") as feed:
            watched = Watched(feed)
            done = await watched.finish()
        assert done.outcome == "done", "30 s would not have been enough"
        view = await view_of(client, "b")
        assert view.lab_s > 30.0
        assert 444.0 in [p.wl for c in view.configurations for p in c.samples]
        assert view.requested == []
        assert await folded(client, "b") == view
        await client.close()


async def test_a_run_without_a_budget_needs_none(client: SocketClient) -> None:
    await client.ask(RunCampaign(SMALL, session="free", lab="sim", seed=7, pace=SLOW))
    async with client.follow("free") as feed:
        watched = Watched(feed)
        await watched.fact(SampleTaken)
        with pytest.raises(UsageError, match="has no budget"):
            await client.ask(ExtendBudget("free", 60.0))
        with pytest.raises(UsageError, match="-1 is not a time"):
            await client.ask(ExtendBudget("free", -1.0))
        await client.ask(StopRun("free", abort=True))
        await watched.fact(RunFinished)
