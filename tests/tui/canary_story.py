"""A canary of the fake session, fact by fact, and a client that answers what the screen asks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from fake_link import SESSION, START, FakeClient, campaign, configurations, modelled, sample, story

from workbench.domain.errors import UsageError, WorkbenchError
from workbench.domain.events import (
    CanaryEnded,
    CanaryStarted,
    CanaryStepped,
    DriftSeen,
    Fact,
    ModelProposed,
    ModelRolledBack,
    ProposalDecided,
    SampleTaken,
    TrialsFinished,
    TrialsStarted,
)
from workbench.domain.export_requests import GetRecommendOptions, RecommendOptions
from workbench.domain.messages import Done, GetStatus, Request
from workbench.domain.parameters import Configuration, OperatingPoint, Sla
from workbench.domain.profiles import Coefficient, Curve, FittedModel, ModelFormula, Residual
from workbench.domain.questions import (
    CanaryPlanned,
    ChainRetrained,
    DecideProposal,
    ExplainModel,
    ModelExplained,
    PlanCanary,
    RetrainChain,
    RollBackModel,
)
from workbench.domain.retraining import (
    CanaryAsk,
    CanaryEnding,
    CanaryPlan,
    CanaryRun,
    CanaryStep,
    Decision,
    Drift,
    HeldOutScores,
    Proposal,
    Reach,
    Rollback,
    StepVerdict,
    TermChange,
)
from workbench.domain.samples import Estimate, Sample

CHAIN, KPI = "tinyproxy-haproxy", "p95_ms"
GUARD = Sla(KPI, 200.0, wl=300.0, text="p95<=200ms")
LOADS = (10.0, 45.0, 80.0, 115.0, 150.0)
TARGET, AT = configurations(campaign())[-1]
PLAN = CanaryPlan(CHAIN, AT, LOADS, (GUARD,), budget_s=300.0, sample_s=5.0)
assert TARGET == CHAIN


def curve(handover_ms: float, spread: float) -> Curve:
    wls = tuple(10 * 30 ** (i / 59) for i in range(60))
    mean = tuple(handover_ms + 3 + wl / 40 for wl in wls)
    low = tuple(m / (1 + spread * wl / 300) for m, wl in zip(mean, wls, strict=True))
    high = tuple(m * (1 + spread * wl / 300) for m, wl in zip(mean, wls, strict=True))
    return Curve(KPI, "correction-two-terms", wls, mean, low, high)


def measured(wl: float, handover_ms: float = 44.0) -> Sample:
    at = OperatingPoint(CHAIN, AT, wl)
    taken = sample(at, 90)
    p95 = handover_ms + 3 + wl / 40
    kpis = {**taken.kpis, KPI: Estimate(p95, 0.97 * p95, 1.03 * p95)}
    return replace(taken, id=f"{taken.id}/canary", kpis=kpis, purpose="canary", labels=())


def asked(number: int) -> CanaryAsk | None:
    if number > len(LOADS):
        return None
    wl = LOADS[number - 1]
    expected = 3 + wl / 40 if number == 1 else 47 + wl / 40
    forecast = Estimate(expected, 0.8 * expected, 1.3 * expected)
    why = f"step {number} of {len(LOADS)}"
    return CanaryAsk("step", number, OperatingPoint(CHAIN, AT, wl), forecast, why)


def step(number: int, verdict: StepVerdict = "kept", note: str = "") -> CanaryStep:
    ask = asked(number)
    assert ask is not None
    wl = ask.point.wl
    slow = 300.0 if verdict == "guard" else 44.0
    taken, before = measured(wl, slow), 3 + wl / 40
    in_force = Estimate(before, 0.9 * before, 1.1 * before)
    return CanaryStep(number, taken.id, wl, verdict, ask.forecast, note, taken.kpis[KPI], in_force)


def begun(version: int = 0) -> list[Fact]:
    first = asked(1)
    assert first is not None
    started = CanaryStarted(PLAN, KPI, version, curve(0.0, 0.3), first, "ann")
    return [started, TrialsStarted("canary", "ann", 300.0)]


def taken(number: int, verdict: StepVerdict = "kept", note: str = "") -> list[Fact]:
    """A step as it is measured and judged."""
    slow = 300.0 if verdict == "guard" else 44.0
    judged = step(number, verdict, note)
    learned = curve(0.0 if number == 1 else 44.0, 0.8 / number)
    ask = asked(number + 1) if verdict == "kept" else None
    return [SampleTaken(measured(judged.wl, slow)), CanaryStepped(judged, ask, learned)]


def ended(
    steps: int = len(LOADS), ending: CanaryEnding | None = None, tripped: bool = False
) -> list[Fact]:
    judged = tuple(step(number) for number in range(1, steps + 1))
    if tripped:
        judged = (*judged[:-1], step(steps, "guard", TRIPPED))
    ending = ending or CanaryEnding("done", f"All {len(LOADS)} loads are measured")
    outcome = "stopped" if ending.state == "stopped" else "done"
    run = CanaryRun(PLAN, judged, ending)
    return [TrialsFinished(outcome, steps, 0, 30.0, 25.0), CanaryEnded(run, "ann")]


TRIPPED = "p95 303 ms is past the guard of p95 <= 200 ms"


def proposal(gain: bool = True, id: str = "3fa29c77d001") -> Proposal:
    scores = HeldOutScores(5, 41.2, 41.0, 40.8, 0.87, 2.1)
    after = HeldOutScores(5, 0.62, 0.5, 0.4, 0.013, 0.011)
    statement = (
        "The median error on 5 held-out samples falls from 717% to 1%."
        if gain
        else "The model in force is off by 2%, already within the noise (3% between samples): "
        "nothing can be gained."
    )
    ids = tuple(measured(wl).id for wl in LOADS)
    changes = (
        TermChange("handover", None, 0.0, 43.9, 43.1, 44.8, "ms"),
        TermChange("scale", None, 1.0, 1.02, 0.7, 1.5),
    )
    model = FittedModel("correction-two-terms", {"shared_sd": 0.05}, ids, (43.9, 1.02))
    return Proposal(
        id, CHAIN, KPI, 0, model, changes, "leave-one-load-out", scores,
        after if gain else scores, 0.03, gain, statement, (Reach(AT, LOADS[-1]),),
    )  # fmt: skip


def proposed(gain: bool = True, id: str = "3fa29c77d001") -> list[Fact]:
    return [ModelProposed(proposal(gain, id), (), curve(0.0, 0.3), curve(44.0, 0.2))]


def whole() -> list[Fact]:
    """A canary from its start to the proposal."""
    facts = begun()
    for number in range(1, len(LOADS) + 1):
        facts += taken(number)
    return [*facts, *ended(), *proposed()]


def accepted(id: str = "3fa29c77d001") -> ProposalDecided:
    return ProposalDecided(Decision(id, True, "ann", START + 900, "as measured"))


def rolled_back(version: int) -> ModelRolledBack:
    return ModelRolledBack(Rollback(CHAIN, KPI, version, "bob", START + 950, "a look"))


def drifted() -> DriftSeen:
    note = "12 later samples lie above the model by 3.1 standard deviations"
    return DriftSeen(Drift(CHAIN, KPI, 12, "above", "s12", 3.1, 0.002, note))


class CanaryClient(FakeClient):
    """Plans, retrains, decides and explains as an engine would; steps come when a test says so."""

    def __init__(self, *facts: Fact, finished: bool = True) -> None:
        super().__init__(story(finished=finished))
        self.tell(*facts)
        self.plan_refused: WorkbenchError | None = None
        self.unmeasurable = ""
        self.plan_notes: tuple[str, ...] = ("The SLA is the campaign's: p95<=200ms @ rate=300/s.",)
        self.gain = True
        self.retrained = asyncio.Event()
        self.retrained.set()

    def requests(self, kind: type[Request]) -> list[Request]:
        return [request for request in self.asked if isinstance(request, kind)]

    async def ask(self, request: Request) -> Any:
        match request:
            case PlanCanary(canary=canary):
                self.asked.append(request)
                if self.refuses or self.plan_refused:
                    raise self.refuses or self.plan_refused or UsageError("never")
                count = canary.steps
                loads = tuple(10 + i * (280 * canary.share) / max(1, count - 1)
                              for i in range(count))  # fmt: skip
                plan = replace(PLAN, loads=loads, budget_s=canary.budget_s)
                return CanaryPlanned(plan, KPI, "rate", "/s", 5.0 * count, self.plan_notes)
            case RetrainChain():
                self.asked.append(request)
                await self.until(self.retrained, request)
                run = CanaryRun(PLAN, (), CanaryEnding("done", "All 5 loads are measured"))
                return ChainRetrained(CHAIN, KPI, 0, run, proposal(self.gain), None, None)
            case DecideProposal(proposal=id, accept=accept, why=why):
                self.asked.append(request)
                self.tell(ProposalDecided(Decision(id, accept, "tester", START + 900, why)))
                return Done()
            case RollBackModel(version=version, chain=chain, kpi=kpi):
                self.asked.append(request)
                assert chain
                assert kpi
                rollback = Rollback(chain, kpi, version, "tester", START + 950)
                self.tell(ModelRolledBack(rollback))
                return Done(f"{chain}: rolled back to {version}")
            case ExplainModel():
                self.asked.append(request)
                if self.refuses:
                    raise self.refuses
                return explained(request)
            case GetRecommendOptions():
                chains = ("haproxy-tinyproxy", CHAIN, "haproxy", "tinyproxy")
                return RecommendOptions(chains, (), (), self.unmeasurable)
            case GetStatus():
                return self.status
        return await super().ask(request)


def explained(request: ExplainModel) -> ModelExplained:
    loads = (10.0, 120.0, 440.0, 760.0, 830.0, 900.0)
    at: Configuration = AT
    errors = (0.02, -0.05, 0.08, -0.3, 0.4, 0.1)
    residuals = tuple(
        Residual(f"s{i}", at, wl, 20.0, 20.0 * 2.718281828**error)
        for i, (wl, error) in enumerate(zip(loads, errors, strict=True))
    )
    formula = ModelFormula(
        at, "no saturation", "a exp(b r)", 10.0, 760.0,
        (Coefficient("a", 2.1, 0.08), Coefficient("b", 0.0021, 0.0004)),
    )  # fmt: skip
    formulas = () if request.retrained else (formula,)
    return ModelExplained(
        request.target, request.kpi, request.version, "catalogue", "in 5 folds", residuals,
        formulas,
    )  # fmt: skip


__all__ = ["SESSION", "CanaryClient", "modelled"]
