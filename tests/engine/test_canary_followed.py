"""What screens know of a canary: its plan before, each step as it is judged, end and verdict."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from engine_watching import Watched, stored_events

from workbench.domain.canaries import ProposalView
from workbench.domain.errors import NotAllowed, Stopped, UsageError
from workbench.domain.events import CanaryEnded, CanaryStarted, CanaryStepped, Event, TrialsStarted
from workbench.domain.messages import Done, RunCampaign, StopRun, Viewed, ViewSession
from workbench.domain.projection import SessionView
from workbench.domain.questions import (
    CanaryPlanned,
    ChainRetrained,
    DecideProposal,
    ExplainModel,
    ModelExplained,
    PlanCanary,
    RetrainChain,
    RollBackModel,
    ScoreModels,
)
from workbench.engine.core import Engine
from workbench.link.socket import SocketClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

CAMPAIGN = str(Path(__file__).with_name("canary_functions.yaml"))
SESSION, CHAIN, KPI = "followed", "tinyproxy-haproxy", "mean_ms"
LONGEST_S = 300.0
"""A feed that never brings what is waited for is a failure, not a test that hangs."""
ASKED = RetrainChain(SESSION, CHAIN, steps=4, guards=("mean<=200ms",), by="ann")


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def profiled(client: SocketClient) -> None:
    """Both functions alone; what follows builds on what came before."""
    await client.ask(RunCampaign(CAMPAIGN, session=SESSION, lab="sim", seed=7))
    async with client.follow(SESSION) as feed:
        await Watched(feed).finish()


async def view_of(client: SocketClient) -> SessionView:
    reply = await client.ask(ViewSession(SESSION))
    assert isinstance(reply, Viewed)
    return reply.view


async def proposed_in(client: SocketClient) -> ProposalView:
    """The proposal of the canary that was asked for; of one now where no test before did so, which
    other workers may have taken."""
    if not (await view_of(client)).proposals:
        await client.ask(ASKED)
    (proposed,) = (await view_of(client)).proposals
    return proposed


async def accepted_in(client: SocketClient) -> None:
    """Version 1 is that proposal's."""
    proposed = await proposed_in(client)
    if proposed.decision is None:
        await client.ask(DecideProposal(SESSION, proposed.proposal.id, True, by="ann"))


async def test_a_plan_names_loads_and_cost_and_measures_nothing(client: SocketClient) -> None:
    before = await stored_events(client, SESSION)
    reply = await client.ask(PlanCanary(ASKED))
    assert isinstance(reply, CanaryPlanned)
    assert reply.kpi == KPI
    assert (reply.primary, len(reply.plan.loads)) == ("rate", 4)
    assert list(reply.plan.loads) == sorted(reply.plan.loads)
    assert [guard.text for guard in reply.plan.guards] == ["mean<=200ms"]
    assert reply.lab_s == pytest.approx(4 * reply.plan.sample_s)
    assert any(note.startswith("it is the largest allocation") for note in reply.notes)
    chosen = replace(ASKED, allocation="haproxy=25%, tinyproxy=25%")
    assert not (await client.ask(PlanCanary(chosen))).notes, "somebody knows why"
    assert len(await stored_events(client, SESSION)) == len(before)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"share": 2.0}, "--share"),
        ({"steps": -1}, "--steps"),
        ({"sla": "mean<200ms"}, "--sla"),
        ({"guards": ("nonsense",)}, "--guard"),
        ({"kpi": "p100"}, "--kpi"),
        ({"method": "correction"}, "--method"),
    ],
)
async def test_a_mistake_in_a_plan_names_its_field(
    client: SocketClient, changes: dict[str, object], where: str
) -> None:
    wrong = RetrainChain(SESSION, CHAIN, **changes)  # type: ignore[arg-type]
    with pytest.raises(UsageError) as refused:
        await client.ask(PlanCanary(wrong))
    assert refused.value.where == where


async def test_a_recording_can_plan_no_canary(client: SocketClient) -> None:
    with pytest.raises(UsageError, match="bundle"):
        await client.ask(PlanCanary(RetrainChain("demo-real", CHAIN)))


async def test_steps_are_told_one_by_one_with_what_the_model_says_then(
    client: SocketClient,
) -> None:
    async with asyncio.timeout(LONGEST_S), client.follow(SESSION) as feed:
        asking = asyncio.create_task(client.ask(ASKED))
        facts, asked_for = [], []
        async for change in feed.changes:
            if not isinstance(change, Event):
                continue
            feed.view.apply(change)
            facts.append(change.fact)
            canary = feed.view.canaries[-1] if feed.view.canaries else None
            if isinstance(change.fact, CanaryStarted | CanaryStepped):
                assert canary is not None
                assert canary.under_way
                asked_for.append(canary.ask.number if canary.ask else None)
            if isinstance(change.fact, CanaryEnded):
                break
        reply = await asking
    assert isinstance(reply, ChainRetrained)
    assert asked_for == [1, 2, 3, 4, None]
    begun = next(fact for fact in facts if isinstance(fact, CanaryStarted))
    steps = [fact for fact in facts if isinstance(fact, CanaryStepped)]
    assert (begun.kpi, begun.version, begun.by) == (KPI, 0, "ann")
    assert begun.in_force is not None
    first, last = begun.in_force, steps[-1].learned
    assert last is not None
    assert first.wl == last.wl
    assert last.wl[-1] > max(begun.plan.loads), "it extrapolates to where the SLA asks"
    assert max(first.mean) < min(last.mean), "44 ms that the profiles do not know"
    assert all(step.step.in_force is not None for step in steps)
    assert canary is not None
    assert reply.canary is not None
    assert tuple(canary.steps) == reply.canary.steps
    assert canary.ending == reply.canary.ending
    assert not canary.under_way

    view = await view_of(client)
    (proposed,) = view.proposals
    assert proposed.canary == 0
    assert proposed.decision is None
    assert proposed.learned is not None
    assert proposed.in_force is not None
    assert min(proposed.learned.mean) > max(proposed.in_force.mean)


async def test_a_proposal_is_decided_by_its_id_once(client: SocketClient) -> None:
    name = (await proposed_in(client)).proposal.id
    with pytest.raises(UsageError, match="does not say why"):
        await client.ask(DecideProposal(SESSION, name, accept=False))
    with pytest.raises(UsageError, match="does not exist"):
        await client.ask(DecideProposal(SESSION, "f00", accept=True))
    assert isinstance(await client.ask(DecideProposal(SESSION, name, True, by="ann")), Done)
    with pytest.raises(UsageError, match="was decided already"):
        await client.ask(DecideProposal(SESSION, name, accept=True))
    (proposed,) = (await view_of(client)).proposals
    assert proposed.decision is not None
    assert (proposed.decision.accepted, proposed.decision.by) == (True, "ann")


async def test_rolling_back_and_forward_leaves_a_trace(client: SocketClient) -> None:
    await accepted_in(client)
    await client.ask(RollBackModel(SESSION, 0, CHAIN, why="a look", by="bob"))
    await client.ask(RollBackModel(SESSION, 1, CHAIN, by="bob"))
    (models,) = (await view_of(client)).chain_models
    assert models.current == 1
    assert [(r.version, r.by, r.why) for r in models.rollbacks] == [
        (0, "bob", "a look"),
        (1, "bob", ""),
    ]


async def test_an_accepted_version_is_explained_by_loads_that_it_has_not_seen(
    client: SocketClient,
) -> None:
    await accepted_in(client)
    reply = await client.ask(ExplainModel(SESSION, CHAIN, KPI, 1, retrained=True))
    assert isinstance(reply, ModelExplained)
    assert (reply.version, reply.method) == (1, "correction-two-terms")
    assert len(reply.residuals) == 4
    assert all(r.measured > 30.0 for r in reply.residuals)
    errors = sorted(abs(math.log(r.predicted / r.measured)) for r in reply.residuals)
    assert errors[0] < 0.2
    with pytest.raises(UsageError, match="no retrained version 7"):
        await client.ask(ExplainModel(SESSION, CHAIN, KPI, 7, retrained=True))


async def test_a_parametric_model_has_coefficients_with_standard_errors(
    client: SocketClient,
) -> None:
    await client.ask(ScoreModels(SESSION, "haproxy", methods=("short",)))
    model = (await view_of(client)).model("haproxy", KPI)
    assert model is not None
    reply = await client.ask(ExplainModel(SESSION, "haproxy", KPI, model.version))
    assert isinstance(reply, ModelExplained)
    assert len(reply.residuals) == model.samples
    if reply.formulas:
        assert {c.name for f in reply.formulas for c in f.coefficients}
    else:
        assert any("no coefficients" in note for note in reply.notes)


async def test_a_canary_that_is_stopped_ends_and_keeps_its_samples(client: SocketClient) -> None:
    async with asyncio.timeout(LONGEST_S), client.follow(SESSION) as feed:
        slow = RetrainChain(SESSION, CHAIN, steps=4, guards=("mean<=200ms",), pace=1.0)
        asking = asyncio.create_task(client.ask(slow))
        async for change in feed.changes:
            if isinstance(change, Event):
                feed.view.apply(change)
                if isinstance(change.fact, TrialsStarted):
                    break
        await client.ask(StopRun(SESSION, abort=True))
        with pytest.raises(Stopped):
            await asking
    canary = (await view_of(client)).canaries[-1]
    assert canary.ending is not None
    assert canary.ending.state == "stopped"
    assert not canary.under_way


async def test_observers_may_plan_and_ask_but_decide_nothing(engine: Engine) -> None:
    guest = await SocketClient.connect(engine.workspace.socket, "guest", "observer")
    try:
        assert isinstance(await guest.ask(PlanCanary(ASKED)), CanaryPlanned)
        with pytest.raises(NotAllowed, match="not command"):
            await guest.ask(DecideProposal(SESSION, "f00", accept=True))
    finally:
        await guest.close()
