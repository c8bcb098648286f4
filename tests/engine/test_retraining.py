"""Canaries on the simulated lab: what they teach, what is decided of it, and that it replays."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from engine_watching import Watched, stored_events, stored_samples

from workbench import plugins
from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import TargetPlan
from workbench.domain.chains import ChainPrediction
from workbench.domain.errors import (
    EngineError,
    OutsideProfile,
    SessionError,
    UsageError,
    WorkbenchError,
)
from workbench.domain.events import (
    CanaryEnded,
    ModelProposed,
    ModelRolledBack,
    ProposalDecided,
    TrialsStarted,
)
from workbench.domain.messages import Done, RunCampaign, Viewed, ViewSession
from workbench.domain.parameters import Configuration
from workbench.domain.projection import SessionView
from workbench.domain.questions import (
    ChainCharted,
    ChainCompared,
    ChainPredicted,
    ChainQuery,
    ChainRetrained,
    ChartChain,
    CompareChain,
    PredictChain,
    RetrainChain,
    RollBackModel,
)
from workbench.domain.samples import Estimate, Sample
from workbench.engine.answers.retraining import PointMeasurer, _competing, retrain
from workbench.engine.core import Engine
from workbench.engine.learning.scoring import short_list
from workbench.engine.runs.trials import TrialsRequest
from workbench.link.socket import SocketClient
from workbench.paths import Workspace

pytestmark = pytest.mark.asyncio(loop_scope="module")

CAMPAIGN = str(Path(__file__).with_name("canary_functions.yaml"))
SESSION, CHAIN, KPI = "functions", "tinyproxy-haproxy", "mean_ms"
ALLOCATION = "tinyproxy=50%, haproxy=25%"
LARGEST = Configuration({"tinyproxy.vcpu": 0.5, "haproxy.vcpu": 0.25}, {"filesize_bytes": 10_000.0})
GUARD = ("mean<=200ms",)


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def profiled(client: SocketClient) -> None:
    """Both functions alone; nothing of the chain. What follows builds on what came before."""
    await client.ask(RunCampaign(CAMPAIGN, session=SESSION, lab="sim", seed=7))
    async with client.follow(SESSION) as feed:
        await Watched(feed).finish()


async def view_of(client: SocketClient, until: int | None = None) -> SessionView:
    reply = await client.ask(ViewSession(SESSION, until))
    assert isinstance(reply, Viewed)
    return reply.view


async def retrained(client: SocketClient, **wanted: object) -> ChainRetrained:
    reply = await client.ask(RetrainChain(SESSION, CHAIN, **wanted))  # type: ignore[arg-type]
    assert isinstance(reply, ChainRetrained)
    return reply


async def said(client: SocketClient, *loads: float, rule: str = "") -> tuple[int, list[float]]:
    """The version in force and what it says of the largest allocation at these loads, in ms; by a
    rule what the profiles alone say."""
    told: list[ChainPrediction] = []
    for wl in loads:
        query = ChainQuery(SESSION, CHAIN, rule=rule)
        asked = PredictChain(query, f"rate={wl:g}/s", ALLOCATION)
        reply = await client.ask(asked)
        assert isinstance(reply, ChainPredicted)
        told += reply.predictions
    (version,) = {one.model_version for one in told}
    return version, [one.value.value for one in told]


def rms_error(samples: list[Sample], predicted: list[float]) -> float:
    errors = [p - s.kpis[KPI].value for p, s in zip(predicted, samples, strict=True)]
    return math.sqrt(sum(e * e for e in errors) / len(errors))


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"share": 1.5}, "must be above 0 and at most 1"),
        ({"steps": -1}, "a whole number from 0 to 1000"),
        ({"budget_s": 0.5}, "does not reach for one step"),
        ({"sla": "mean<=200ms @ rate=60/s", "share": 0.5}, "lies below the lowest load"),
        ({"guards": ("mean>=3ms",)}, "its limit is <="),
        ({"sla": "mean<=200ms @ rate=600/s, filesize=1MB"}, r"everything .*: \w+ and \w+ at 10kB"),
        (
            {"sla": "mean<=200ms @ rate=6000/s"},
            "a load of 6000 requests/s lies outside everything .* at .* to 600 requests/s",
        ),
        ({"share": math.nan}, "JSON cannot say nan"),
        ({"guards": ("jitter<=1ms",)}, "limits jitter_ms, which no sample of tinyproxy states"),
        ({"kpi": "p100"}, "no KPI"),
        ({"align": ("band",)}, "no rule of alignment is called 'band'"),
        ({"allocation": "squid=25%"}, "names 'squid'"),
        ({"decision": "reject"}, "does not say why"),
    ],
)
async def test_what_cannot_be_asked_is_a_sentence_and_measures_nothing(
    client: SocketClient, wanted: dict[str, object], sentence: str
) -> None:
    with pytest.raises((UsageError, OutsideProfile), match=sentence):
        await retrained(client, **{"guards": GUARD, **wanted})
    assert (await view_of(client)).trials == []


async def test_a_chain_that_nobody_knows_or_profiled_is_refused(client: SocketClient) -> None:
    with pytest.raises(UsageError, match="'tinyproxy-squid'"):
        await client.ask(RetrainChain(SESSION, "tinyproxy-squid"))
    with pytest.raises(UsageError, match="stand-alone profile of"):
        await client.ask(RetrainChain(SESSION, "study"))
    with pytest.raises(WorkbenchError, match="bundle") as refused:
        await client.ask(RetrainChain("demo-real", CHAIN))
    assert isinstance(refused.value, SessionError | UsageError)


async def test_a_guard_that_is_broken_at_once_leaves_the_chain_without_load(
    client: SocketClient,
) -> None:
    reply = await retrained(client, guards=("mean<=10ms",))
    assert reply.canary is not None
    assert [step.verdict for step in reply.canary.steps] == ["guard"]
    assert reply.canary.ending.state == "guard"
    assert reply.canary.ending.restored_wl is None
    assert "the chain gets no load" in reply.canary.ending.note
    assert reply.proposal is None
    assert reply.version == 0
    assert any("Nothing can be proposed" in note for note in reply.notes)


async def test_a_canary_rises_to_its_share_and_halves_the_error_on_held_out_points(
    client: SocketClient,
) -> None:
    reply = await retrained(client, guards=GUARD, steps=6)
    run, proposal = reply.canary, reply.proposal
    assert run is not None
    assert proposal is not None
    assert run.plan.configuration == LARGEST
    assert run.ending.state == "done"
    loads = [step.wl for step in run.steps]
    assert loads == sorted(loads)
    assert max(loads) == pytest.approx(50 + 0.5 * 550)
    assert {step.verdict for step in run.steps} == {"kept"}
    assert all(step.value and step.value.value > 30.0 for step in run.steps)
    first, _, *others = run.steps
    assert first.forecast is not None
    assert first.forecast.value < 10.0, "the profiles know of no delayed acknowledgement"
    assert all(step.forecast and step.forecast.value > 30.0 for step in others), "two points teach"
    assert proposal.gain
    assert proposal.after.rmse < 0.5 * proposal.before.rmse
    assert proposal.based_on == reply.version == 0
    assert reply.decision is None
    assert set(proposal.model.sample_ids) >= {step.sample_id for step in run.steps}
    facts = [event.fact for event in await stored_events(client, SESSION)]
    started = [fact for fact in facts if isinstance(fact, TrialsStarted)]
    assert [fact.purpose for fact in started] == ["canary", "canary"]


@pytest.mark.long  # all models compete; tests/chains/test_trend.py has the comparison itself
async def test_paper_a_s_way_trains_the_method_of_the_predicted_trend_on_random_loads(
    client: SocketClient,
) -> None:
    reply = await retrained(client, guards=GUARD, steps=3, online=True, method="trend")
    assert reply.canary is not None
    assert reply.proposal is not None
    loads = [step.wl for step in reply.canary.steps]
    assert all(50 <= wl <= 325 for wl in loads)
    assert len({round(wl) for wl in loads}) == 3
    assert any(
        f"{reply.proposal.model.method} says the predicted trend best" in note
        for note in reply.notes
    )
    assert reply.proposal.changes == (), "a model of the chain's samples alone has no terms"
    await retrained(client, decision="reject", why="forgets the profiles", by="eve")


async def test_every_method_competes_for_the_predicted_trend_the_short_list_first(
    tmp_path: Path,
) -> None:
    campaign = load_campaign(CAMPAIGN, workspace=Workspace(tmp_path)).campaign
    first = short_list(campaign, campaign.targets[0].target.name)
    found = _competing(campaign, campaign.targets[0].target.name)
    assert found[: len(first)] == first
    assert sorted(found) == sorted(plugins.names("models"))
    assert {"lasso3", "neural-network"} <= set(found) - set(first)


async def test_an_accepted_model_is_in_force_and_right_where_it_was_not_trained(
    engine: Engine, client: SocketClient
) -> None:
    asked = TrialsRequest(SESSION, "verification", await chain_plans(client))
    async with engine.queue.trials(asked) as lab:
        measured = [await lab.measure(CHAIN, LARGEST, wl) for wl in (370.0, 430.0, 490.0)]
    loads = [s.point.wl for s in measured]
    version, before = await said(client, *loads, rule="added-means")
    assert version == 0
    version, unaccepted = await said(client, *loads)
    assert version == 0
    assert rms_error(measured, unaccepted) < 0.1 * rms_error(measured, before), "it was measured"

    reply = await retrained(client, decision="accept", why="as measured", by="ann")
    assert reply.canary is None, "the stored proposal is decided, nothing is measured"
    assert reply.version == 1
    assert reply.decision is not None
    assert (reply.decision.by, reply.decision.why) == ("ann", "as measured")
    assert reply.decision.at > 1e9
    version, after = await said(client, *loads)
    assert version == 1
    assert rms_error(measured, after) < 0.5 * rms_error(measured, before)


async def test_predictions_and_comparisons_are_of_the_accepted_model(client: SocketClient) -> None:
    asked = PredictChain(ChainQuery(SESSION, CHAIN), "rate=430/s", ALLOCATION)
    reply = await client.ask(asked)
    assert isinstance(reply, ChainPredicted)
    (said_now,) = reply.predictions
    assert said_now.model_version == 1
    assert said_now.value.value > 30.0
    assert min(said_now.curve.mean) > 30.0
    assert not any("in force" in note for note in reply.notes)
    reply = await client.ask(replace(asked, query=replace(asked.query, rule="added-means")))
    assert isinstance(reply, ChainPredicted)
    (alone,) = reply.predictions
    assert alone.model_version == 0
    assert alone.value.value < said_now.value.value
    assert alone.limiting == said_now.limiting
    assert any("model 1 of" in note for note in reply.notes)

    told = await client.ask(CompareChain(ChainQuery(SESSION, CHAIN)))
    assert isinstance(told, ChainCompared)
    found, profiles = told.comparison, told.profiles
    assert profiles is not None
    assert found.model_version == 1
    assert found.rule == "model 1 (correction-two-terms)"
    assert (profiles.rule, profiles.samples) == ("added-means", found.samples)
    assert found.rmse < 0.5 * profiles.rmse
    learned = (await view_of(client)).chain_models[0].versions[0].proposal.model.sample_ids
    of_chain = [s for s in await stored_samples(client, SESSION) if s.point.target == CHAIN]
    assert found.samples == sum(s.id not in learned for s in of_chain), "those it has not seen"
    charted = await client.ask(ChartChain(ChainQuery(SESSION, CHAIN)))
    assert isinstance(charted, ChainCharted)
    assert charted.model_version == 1
    for chart in charted.charts:
        assert chart.profiles is not None
        assert min(chart.predicted.mean) > 30.0 > min(chart.profiles.mean)


async def test_what_was_accepted_is_retrained_on_new_points_only(client: SocketClient) -> None:
    reply = await retrained(client, guards=GUARD, steps=0)
    assert reply.canary is None
    assert reply.proposal is not None, "the points of the verification are new to it"
    assert reply.proposal.held_out == "given"
    assert reply.proposal.based_on == 1
    assert reply.drift is not None
    turned_down = await retrained(client, decision="reject", why="nothing new", by="bob")
    assert turned_down.decision is not None
    assert not turned_down.decision.accepted
    assert turned_down.version == 1
    with pytest.raises(UsageError, match="was decided already"):
        await retrained(client, guards=GUARD, steps=0)


async def test_one_can_go_back_and_forth_and_unknown_versions_are_named(
    client: SocketClient,
) -> None:
    for wrong, sentence in (
        (RollBackModel(SESSION, 7), "has no version 7"),
        (RollBackModel(SESSION, 1), "version 1 is in force"),
        (RollBackModel(SESSION, 0, "haproxy-tinyproxy"), "no retrained model"),
        (RollBackModel(SESSION, 0, CHAIN, "p95"), "no retrained model"),
    ):
        with pytest.raises(UsageError, match=sentence):
            await client.ask(wrong)
    reply = await client.ask(RollBackModel(SESSION, 0, why="a look", by="ann"))
    assert isinstance(reply, Done)
    assert (await said(client, 100.0))[0] == 0
    await client.ask(RollBackModel(SESSION, 1))
    version, (value,) = await said(client, 100.0)
    assert version == 1
    assert value > 30.0


async def test_a_session_with_decisions_replays_to_the_same_state_at_every_event(
    client: SocketClient,
) -> None:
    everything = await stored_events(client, SESSION)
    live = await view_of(client)
    replayed = SessionView(SESSION)
    currents: list[int] = []
    for event in everything:
        replayed.apply(event)
        if isinstance(event.fact, CanaryEnded | ModelProposed | ProposalDecided | ModelRolledBack):
            assert (await view_of(client, event.seq)) == replayed
            models = replayed.chain_model(CHAIN, KPI)
            currents.append(models.current if models else 0)
    assert replayed == live
    # Paper A's way, which is tried at full length, proposes once more and is rejected.
    assert currents[-5:] == [1, 1, 1, 0, 1]
    assert len(currents) in (8, 11)
    assert not any(currents[:-5])
    (models,) = live.chain_models
    assert [v.decision.by for v in models.versions] == ["ann"]
    assert [d.by for d in models.rejected] == ["eve", "bob"][-(len(currents) - 5) // 3 :]
    assert models.pending == ()
    assert any("back to model 0 of mean_ms by ann: a look" in line.text for line in live.log)


async def test_a_guard_that_trips_goes_back_to_the_last_load_and_says_so(engine: Engine) -> None:
    @asynccontextmanager
    async def slow_above_200(request: TrialsRequest) -> AsyncIterator[PointMeasurer]:
        async with engine.queue.trials(request) as lab:

            class Slow:
                async def measure(self, target: str, at: Configuration, wl: float) -> Sample:
                    sample = await lab.measure(target, at, wl)
                    p95 = Estimate(300.0, 290.0, 310.0)
                    return (
                        replace(sample, kpis={**sample.kpis, "p95_ms": p95}) if wl > 200 else sample
                    )

            yield Slow()

    asked = RetrainChain(SESSION, "haproxy-tinyproxy", steps=4, guards=("p95<=200ms",))
    reply = await retrain(engine.library, engine._jobs.pool, slow_above_200, asked, by="ann")
    assert reply.canary is not None
    assert [step.verdict for step in reply.canary.steps] == ["kept", "kept", "guard", "restored"]
    assert reply.canary.ending.state == "guard"
    assert reply.canary.ending.restored_wl == reply.canary.steps[1].wl == reply.canary.steps[3].wl
    assert "p95 300 ms is past the guard" in reply.canary.ending.note


async def test_what_is_learned_from_goes_by_the_rules_that_are_named(client: SocketClient) -> None:
    asked = {"guards": GUARD, "steps": 0, "method": "lasso2", "sla": "mean<=5ms @ rate=300/s"}
    for rules, told in (((), False), (("sla-band", "sla-band"), True)):
        reply = await retrained(client, **asked, align=rules)
        widened = "sla-band: widened to"  # all samples lie above 30 ms
        assert any(note.startswith(widened) for note in reply.notes) == told


async def test_observers_decide_nothing(engine: Engine) -> None:
    guest = await SocketClient.connect(engine.workspace.socket, "guest", "observer")
    try:
        for command in (RetrainChain(SESSION, CHAIN), RollBackModel(SESSION, 0)):
            with pytest.raises(EngineError, match="not command"):
                await guest.ask(command)
    finally:
        await guest.close()


async def chain_plans(client: SocketClient) -> tuple[TargetPlan, ...]:
    """The plan that the canary's trials were opened with."""
    return (await view_of(client)).trials[-1].plans
