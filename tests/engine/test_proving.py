"""Recommendations on the lab: verified, beside greedy scaling, stored, replayed, refused."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Never

import pytest
from engine_watching import Watched
from modelling_session import InlinePool
from recommending_session import (
    CHAIN,
    LAB_S,
    SESSION,
    campaign,
    make_workspace,
    measured_chain,
    sample,
)

from workbench.chains import handover
from workbench.domain.campaign import TargetPlan
from workbench.domain.errors import BudgetSpent, LabError, UsageError
from workbench.domain.messages import RunCampaign, Viewed, ViewSession
from workbench.domain.parameters import Configuration, Sla
from workbench.domain.questions import Recommend, Recommended, VerifyRecommendation
from workbench.domain.recommendations import Deployment
from workbench.domain.samples import Estimate, Finding, Sample
from workbench.engine.answers import verification
from workbench.engine.answers.recommending import recommend, verify
from workbench.engine.answers.verification_steps import verdict
from workbench.engine.core import Engine
from workbench.engine.runs.trials import TrialsRequest
from workbench.engine.sessions.library import Library
from workbench.exports.bundle import export_bundle
from workbench.link.socket import SocketClient
from workbench.paths import Workspace
from workbench.sla import max_load
from workbench.store.session_file import SessionFile

SLA = "p95<=1000ms @ concurrent=80, filesize=10kB"
MANY = "p95<=1000ms @ concurrent=300, filesize=10kB"
DEPLOYING_S = 3.0
DROWNED = Finding("timeout", 1.0, 0.0, "no answer came in time")
SPOILT = Finding("source_saturated", 1.0, 0.9, "the source was at its limit")
CAMPAIGN = str(Path(__file__).with_name("canary_functions.yaml"))


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few loads and halvings: how finely a margin is searched is not the point."""
    monkeypatch.setattr(max_load, "LOADS", 5)
    monkeypatch.setattr(max_load, "ROUNDS", 5)
    # What other chains have added is for tests/engine/test_measured_first.py.
    monkeypatch.setattr(handover, "MEASURED", {})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(tmp_path_factory.mktemp("made"))


@dataclass
class LawfulLab:
    """Answers by the law of the session, slower by a factor; every opening is a deployment.

    `invalid` are how many samples come before a valid one; beyond `patience_ms` nobody waits.
    """

    slower: float = 1.0
    invalid: int = 0
    patience_ms: float = math.inf
    deploying_s: float = DEPLOYING_S
    refuses: Exception | None = None
    opened: list[tuple[str, TargetPlan, float | None]] = field(default_factory=list)
    measured: list[Configuration] = field(default_factory=list)
    lab_s: float = 0.0
    unused_s: float = 0.0
    """Of the clock, beside the lab's own."""

    @property
    def spent_s(self) -> float:
        return self.lab_s + self.unused_s

    @asynccontextmanager
    async def __call__(self, request: TrialsRequest) -> AsyncIterator[LawfulLab]:
        assert request.session == SESSION
        if self.refuses is not None:
            raise self.refuses
        (plan,) = request.plans
        self.opened.append((request.purpose, plan, request.budget_s))
        lab = replace(self, lab_s=self.deploying_s)
        yield lab

    async def measure(self, target: str, configuration: Configuration, wl: float) -> Sample:
        _, plan, budget_s = self.opened[-1]
        assert target == plan.target.name
        assert set(configuration.resources) == {p.key for p in plan.resources}
        assert all(configuration.resources[p.key] in p.values for p in plan.resources)
        if budget_s is not None and self.lab_s + LAB_S > budget_s:
            raise BudgetSpent("no time is left for another sample")
        self.lab_s += LAB_S
        self.measured.append(configuration)
        taken = sample(plan, configuration, wl).sample
        if self.invalid:
            self.invalid -= 1
            return replace(taken, valid=False, findings=(SPOILT,))
        p95 = taken.kpis["p95_ms"].value * self.slower
        if p95 > self.patience_ms:
            return replace(taken, valid=False, findings=(DROWNED,), kpis={})
        return replace(taken, kpis={**taken.kpis, "p95_ms": Estimate(p95, p95 / 1.02, p95 * 1.02)})


def asked(sla: str = SLA, **others: object) -> Recommend:
    return replace(Recommend(SESSION, (sla,), CHAIN), **others)  # type: ignore[arg-type]


async def test_what_is_recommended_is_measured_and_its_verdict_stored(
    library: Library, pool: InlinePool
) -> None:
    lab = LawfulLab()
    told = await recommend(library, pool, lab, asked(verify=True, budget_s=60.0, by="ann"))
    found = told.recommendation
    verified = found.verified
    assert verified is not None
    assert verified.met
    assert verified.note == ""
    assert verified.kpis["p95_ms"].value == pytest.approx(800.0)
    assert found.chosen is not None
    assert [c.resources for c in lab.measured] == [found.chosen.allocation]
    ((purpose, plan, budget_s),) = lab.opened
    assert (purpose, plan.target.name, budget_s) == ("verification", CHAIN, 60.0)
    assert (found.lab_iterations, found.lab_s) == (1, LAB_S + DEPLOYING_S)
    assert told.rows[-1].lab_s_with_profiling == found.lab_s + 28 * LAB_S
    async with library.borrow(SESSION) as channel:
        live = channel.snapshot()
    assert [one.recommendation for one in live.recommendations] == [found]
    assert live.log[-1].text == "recommendation r1 holds on the lab by ann"
    await library.close()
    path = library.workspace.sessions / f"{SESSION}.duckdb"
    file = await SessionFile.open(path, read_only=True)
    try:
        view = await file.view()
        assert view == live
        (before,) = (await file.view(view.recommendations[0].seq)).recommendations
        assert before.recommendation.verified is None
    finally:
        await file.close()


async def test_what_is_stored_is_verified_later_under_its_own_id(
    library: Library, pool: InlinePool
) -> None:
    before = (
        await recommend(library, pool, LawfulLab(), asked(MANY, cost="example"))
    ).recommendation
    lab = LawfulLab()
    request = VerifyRecommendation(SESSION, "r1", budget_s=60.0)
    told = await verify(library, pool, lab, request, by="ann")
    found = told.recommendation
    assert before.chosen is not None
    assert found.verified is not None
    assert found.verified.met
    assert replace(found, verified=None, lab_iterations=0, lab_s=0.0) == before
    assert {purpose for purpose, *_ in lab.opened} == {"verification"}
    assert f"{CHAIN}-4-tinyproxy" in [plan.target.name for _, plan, _ in lab.opened]
    assert found.lab_iterations == len(lab.opened) <= 2
    async with library.borrow(SESSION) as channel:
        assert [one.recommendation for one in channel.view.recommendations] == [found]
        assert channel.view.log[-1].text == "recommendation r1 holds on the lab by ann"


async def test_nothing_is_verified_where_nothing_was_recommended(
    library: Library, pool: InlinePool
) -> None:
    with pytest.raises(UsageError, match="no recommendation 'r1'"):
        await verify(library, pool, no_lab, VerifyRecommendation(SESSION, "r1"))
    await recommend(library, pool, no_lab, asked("p95<=10ms @ concurrent=80"))
    with pytest.raises(UsageError, match="recommends nothing"):
        await verify(library, pool, no_lab, VerifyRecommendation(SESSION, "r1"))


def no_lab(*_: object, **__: object) -> Never:
    raise AssertionError("nothing is measured")


async def test_a_cheaper_allocation_that_the_lab_confirms_comes_after_what_was_recommended(
    library: Library, pool: InlinePool
) -> None:
    lab = LawfulLab(slower=0.6)
    told = await recommend(library, pool, lab, asked(verify=True, by="ann"))
    found = told.recommendation
    assert (found.id, found.after) == ("r2", "r1")
    assert found.chosen is not None
    assert found.verified is not None
    assert found.verified.met
    async with library.borrow(SESSION) as channel:
        issued = [one.recommendation for one in channel.view.recommendations]
    assert issued[1] == found
    assert issued[0].chosen is not None
    assert issued[0].verified is None
    assert found.chosen.cost < issued[0].chosen.cost
    tried = [configuration.resources for configuration in lab.measured]
    assert found.chosen.allocation in tried
    assert 1 <= found.lab_iterations == len(tried) <= 2
    assert found.lab_s == len(tried) * (LAB_S + DEPLOYING_S)
    assert "it was r1" in found.told_of_trials


async def test_a_second_trial_has_what_the_first_left_of_the_budget_by_the_clock(
    library: Library, pool: InlinePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (await recommend(library, pool, no_lab, asked())).recommendation
    assert first.chosen is not None
    recommended = first.chosen.deployment
    cheaper = replace(recommended, allocation={**recommended.allocation, "tinyproxy.vcpu": 0.5})
    monkeypatch.setattr(
        verification, "next_trial", lambda *given: recommended if given[3] else cheaper
    )
    lab = LawfulLab(unused_s=100.0)
    wanted = VerifyRecommendation(SESSION, first.id, budget_s=1000.0)
    await verify(library, pool, lab, wanted, by="ann")
    left = [budget_s for _, _, budget_s in lab.opened]
    assert left == [1000.0, 1000.0 - (LAB_S + DEPLOYING_S + 100.0)]


async def test_what_is_verified_later_is_tried_as_recommend_tries_it(
    library: Library, pool: InlinePool
) -> None:
    at_once = await recommend(library, pool, LawfulLab(slower=0.6), asked(verify=True))
    first = (await recommend(library, pool, no_lab, asked())).recommendation
    lab = LawfulLab(slower=0.6)
    told = await verify(library, pool, lab, VerifyRecommendation(SESSION, first.id), by="ann")
    found = told.recommendation
    assert (first.id, found.id, found.after) == ("r3", "r4", "r3")
    assert found.chosen == at_once.recommendation.chosen
    assert found.lab_iterations == at_once.recommendation.lab_iterations == len(lab.measured)


async def test_what_stays_after_a_cheaper_one_failed_is_verified_and_not_issued_again(
    library: Library, pool: InlinePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (await recommend(library, pool, no_lab, asked())).recommendation
    assert first.chosen is not None
    recommended = first.chosen.deployment
    slower = {"tinyproxy.vcpu": 0.5}
    assert recommended.allocation["tinyproxy.vcpu"] == 1.0
    cheaper = replace(recommended, allocation={**recommended.allocation, **slower})

    def following(order: object, question: object, profiles: object, tried: tuple[object, ...],
                  last: bool) -> Deployment:  # fmt: skip
        return recommended if tried else cheaper

    monkeypatch.setattr(verification, "next_trial", following)
    lab = LawfulLab()
    told = await verify(library, pool, lab, VerifyRecommendation(SESSION, first.id), by="ann")
    found = told.recommendation
    assert (found.id, found.after, found.chosen) == ("r1", "", first.chosen)
    assert found.verified is not None
    assert found.verified.met
    assert (found.lab_iterations, found.lab_s) == (2, 2 * (LAB_S + DEPLOYING_S))
    assert found.told_of_trials == "The lab was asked 2 times, and r1 stays."
    again = await verify(library, pool, lab, VerifyRecommendation(SESSION, first.id), by="ann")
    assert again.recommendation.lab_iterations == 4
    async with library.borrow(SESSION) as channel:
        assert [one.recommendation.id for one in channel.view.recommendations] == ["r1"]


async def test_what_fails_on_the_lab_is_not_what_is_left(
    library: Library, pool: InlinePool
) -> None:
    lab = LawfulLab(slower=2.0)
    told = await recommend(library, pool, lab, asked(verify=True))
    found = told.recommendation
    async with library.borrow(SESSION) as channel:
        first = channel.view.recommendations[0].recommendation
    assert first.met, "the models say so"
    assert first.chosen is not None
    assert (found.after, found.lab_iterations) == ("r1", 2)
    assert found.chosen is None or found.chosen.cost > first.chosen.cost
    confirmed = found.verified is not None and found.verified.met
    assert confirmed or not found.met or "not tried itself" in found.told_of_trials


async def test_a_deployment_that_costs_more_than_its_sample_is_sampled_until_the_median_tells(
    library: Library, pool: InlinePool
) -> None:
    lab = LawfulLab(deploying_s=25.0)
    told = await recommend(library, pool, lab, asked(verify=True))
    assert told.recommendation.verified is not None
    assert told.recommendation.lab_iterations == 1
    assert len(lab.measured) == 3
    assert told.recommendation.lab_s == 25.0 + 3 * LAB_S


async def test_several_instances_are_deployed_as_functions_of_their_own(
    library: Library, pool: InlinePool
) -> None:
    lab = LawfulLab()
    told = await recommend(library, pool, lab, asked(MANY, verify=True))
    assert told.recommendation.verified is not None
    assert told.recommendation.verified.met
    _, plan, _ = lab.opened[-1]
    assert plan.target.name == f"{CHAIN}-4-tinyproxy"
    assert [vnf.name for vnf in plan.target.vnfs] == [
        "haproxy", "tinyproxy-1", "tinyproxy-2", "tinyproxy-3", "tinyproxy-4",
    ]  # fmt: skip
    assert lab.measured[-1].vcpu("tinyproxy-4") == 1.0
    assert lab.measured[-1].workload == {"filesize_bytes": 10_000.0}


async def test_a_function_alone_is_deployed_with_the_balancer_that_it_got(
    library: Library, pool: InlinePool
) -> None:
    lab = LawfulLab()
    told = await recommend(library, pool, lab, asked(MANY, chain="tinyproxy", verify=True))
    assert told.recommendation.verified is not None
    _, plan, _ = lab.opened[-1]
    assert plan.target.vnfs[0].name == "tinyproxy-balancer"
    assert lab.measured[-1].vcpu("tinyproxy-balancer") == 0.5


async def test_greedy_scaling_on_the_lab_counts_its_iterations_and_its_time(
    library: Library, pool: InlinePool
) -> None:
    played = await recommend(library, pool, LawfulLab(), asked(MANY, greedy=True))
    lab = LawfulLab()
    told = await recommend(library, pool, lab, asked(MANY, greedy=True, on_lab=True, verify=True))
    on_model, on_lab = played.recommendation.greedy, told.recommendation.greedy
    assert on_model is not None
    assert on_lab is not None
    assert on_lab.met
    assert [s.deployment for s in on_lab.steps] == [s.deployment for s in on_model.steps]
    assert on_lab.lab_iterations == len(on_lab.steps)
    assert len(on_lab.steps) == len(lab.measured) - told.recommendation.lab_iterations
    greedy = [plan.target.name for purpose, plan, _ in lab.opened if purpose == "greedy"]
    instances = on_lab.steps[-1].replicas["tinyproxy"]
    assert greedy == [
        CHAIN, *(f"{CHAIN}-{count}-tinyproxy" for count in range(2, instances + 1))
    ], "one deployment for each number of instances"  # fmt: skip
    assert on_lab.lab_s == len(on_lab.steps) * LAB_S + len(greedy) * DEPLOYING_S
    first = on_lab.steps[0]
    assert first.usage == pytest.approx({"haproxy": 0.1, "tinyproxy": 1.0})
    assert told.recommendation.lab_s < on_lab.lab_s
    async with library.borrow(SESSION) as channel:
        assert channel.view.recommendations[-1].recommendation == told.recommendation
        assert f"{on_lab.lab_iterations} allocations on the lab" in channel.view.log[-1].text


async def test_a_budget_holds_for_both_and_what_was_tried_until_then_is_kept(
    library: Library, pool: InlinePool
) -> None:
    wanted = asked(greedy=True, on_lab=True, verify=True, budget_s=40.0)
    told = await recommend(library, pool, LawfulLab(), wanted)
    greedy = told.recommendation.greedy
    assert greedy is not None
    assert (greedy.lab_iterations, greedy.met) == (2, False)
    assert "no time is left" in greedy.note
    told = await recommend(library, pool, LawfulLab(), replace(wanted, budget_s=20.0))
    assert told.recommendation.greedy is None
    assert "was not run" in told.notes[-1]


async def test_a_sample_that_is_not_valid_is_taken_again(
    library: Library, pool: InlinePool
) -> None:
    lab = LawfulLab(invalid=2)
    told = await recommend(library, pool, lab, asked(verify=True))
    assert told.recommendation.verified is not None
    assert told.recommendation.verified.met
    assert (len(lab.measured), told.recommendation.lab_iterations) == (3, 1)

    told = await recommend(library, pool, LawfulLab(invalid=3), asked(verify=True))
    assert told.recommendation.verified is not None
    assert not told.recommendation.verified.met
    assert "the source was at its limit" in told.recommendation.verified.note


async def test_a_deployment_that_drowns_misses_its_limits_at_the_first_sample(
    library: Library, pool: InlinePool
) -> None:
    lab = LawfulLab(patience_ms=1500.0)
    told = await recommend(library, pool, lab, asked(greedy=True, on_lab=True))
    greedy = told.recommendation.greedy
    assert greedy is not None
    assert [step.kpis.keys() for step in greedy.steps] == [set(), set(), {"p95_ms"}, {"p95_ms"}]
    assert len(lab.measured) == greedy.lab_iterations == 4
    assert greedy.met
    drowning = LawfulLab(slower=10.0, patience_ms=1500.0)
    told = await recommend(library, pool, drowning, asked(verify=True))
    assert told.recommendation.verified is not None
    assert not told.recommendation.verified.met
    assert "no answer came in time" in told.recommendation.verified.note
    assert len(drowning.measured) == 1


async def test_what_cannot_be_measured_is_refused_with_a_sentence(
    library: Library, pool: InlinePool, tmp_path: Path
) -> None:
    lab = LawfulLab()
    with pytest.raises(UsageError, match="observers may watch"):
        await recommend(library, pool, lab, asked(verify=True), store=False)
    async with library.borrow(SESSION) as channel:
        await export_bundle(channel.file, tmp_path / "kept")
        assert channel.view.recommendations == []
    bundle = next(path for path in tmp_path.iterdir() if (path / "manifest.json").exists())
    with pytest.raises(UsageError, match="bundles are not changed"):
        await recommend(library, pool, lab, asked(verify=True, session=str(bundle)))
    told = await recommend(library, pool, lab, asked("p95<=10ms @ concurrent=80", verify=True))
    assert told.notes[-1] == "Nothing is recommended, so that nothing was verified"
    assert lab.opened == []
    refusing = LawfulLab(refuses=LabError("no balancer of this lab passes packets"))
    with pytest.raises(LabError, match="r2 is stored, and was not verified: no balancer"):
        await recommend(library, pool, refusing, asked(verify=True))
    async with library.borrow(SESSION) as channel:
        issued = channel.view.recommendation("r2")
        assert issued is not None
        assert issued.recommendation.verified is None


def test_a_verdict_tells_bounds_from_figures_and_says_where_a_limit_is_close() -> None:
    plan = campaign(measured_chain()).targets[0]
    resources = {"haproxy.vcpu": 0.25, "tinyproxy.vcpu": 1.0}
    taken = sample(plan, Configuration(resources, {"filesize_bytes": 10_000.0}), 80.0).sample

    def told(limit: float, seen: Sample = taken) -> tuple[bool, str]:
        found = verdict(seen, (Sla("p95_ms", limit, "<="),), LAB_S)
        return found.met, found.note

    assert told(1000.0) == (True, "")
    met, note = told(805.0)
    assert met
    assert "within the interval" in note
    bound = replace(taken, kpis={"p95_ms": Estimate(800.0, 800.0, 9000.0)}, labels=("censored",))
    met, note = told(1000.0, bound)
    assert not met
    assert "known only that it is above 800" in note
    assert told(1000.0, replace(taken, kpis={})) == (
        False,
        "The sample does not state p95_ms.",
    )


@pytest.mark.slow
@pytest.mark.asyncio(loop_scope="module")
async def test_the_simulated_lab_verifies_and_is_scaled(
    engine: Engine, client: SocketClient
) -> None:
    del engine
    await client.ask(RunCampaign(CAMPAIGN, session="functions", lab="sim", seed=7))
    async with client.follow("functions") as feed:
        await Watched(feed).finish()
    wanted = Recommend("functions", ("mean<=100ms @ rate=300/s",), CHAIN)
    told = await client.ask(replace(wanted, verify=True, greedy=True, on_lab=True))
    assert isinstance(told, Recommended)
    found = told.recommendation
    assert found.met
    assert found.verified is not None
    assert found.verified.met == (found.verified.kpis["mean_ms"].value <= 100.0)
    assert found.greedy is not None
    assert found.greedy.lab_iterations > 0
    reply = await client.ask(ViewSession("functions"))
    assert isinstance(reply, Viewed)
    assert reply.view.recommendations[0].recommendation == found
    verification, greedy = reply.view.trials
    assert (verification.purpose, greedy.purpose) == ("verification", "greedy")
    assert verification.lab_s == pytest.approx(found.lab_s)
    assert greedy.lab_s == pytest.approx(found.greedy.lab_s)
    assert found.verified.sample_id in {taken.sample.id for taken in verification.samples}
