"""Random SLAs on recorded chains, of which nothing was tuned on the recording that is asked.

Functions and canaries are taught by the first pass of a recording, the second pass is the truth;
where there is one pass it is the truth, and only what is said before canaries is judged. Allowed
are the allocations that the chain was measured at. The risk of the hand-over is that of the other
recordings (docs/chain-science.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chain_science.grids import CANARIES, FIRST, Grid
from chain_science.predicting import Known, known
from chain_science.questions import FACTORS, LEAST
from chain_science.recommending import CONFIDENCE, Remembered
from chain_science.recordings import BUNDLES, recorded
from chain_science.risks import FEWEST, shown_by_others
from chain_science.stored import LAB, SLA, digest, kept
from workbench.chains.handover import HandoverRisk
from workbench.chains.proposal import propose
from workbench.domain.campaign import TargetPlan
from workbench.domain.errors import DataError, WorkbenchError
from workbench.domain.parameters import Configuration, Sla
from workbench.domain.recommendations import Deployment
from workbench.domain.retraining import ChainModelVersion, Decision
from workbench.domain.samples import Sample
from workbench.engine.answers.chain_models import (
    Accepted,
    InForce,
    in_force,
    measured_first,
    method_named,
    usual_method,
)
from workbench.engine.answers.verification import ITERATIONS
from workbench.engine.answers.verification_steps import tried_of
from workbench.models.forecast import Forecaster
from workbench.models.selection import stated
from workbench.sla.costs import VcpuHours, cost_of
from workbench.sla.performance import Performance, ProfilePerformance
from workbench.sla.profiled import Profiled
from workbench.sla.recommendation import Answer, recommend
from workbench.sla.sla_query import Question
from workbench.sla.trial_selection import confirmed, next_to_try
from workbench.sla.updated_by_trials import PerformanceUpdatedByTrials, Tried

KPIS = ("mean_ms", "p95_ms")
SLAS = 24
"""Of each chain and KPI."""
STAGES = ("profiles", "before", "canaries", "lab")
"""Of the functions' profiles alone, with the risk of the hand-over, after ten canaries at the
largest allocation, and after the lab (the first pass) was asked of at most two allocations."""
CODE = ("held_out.py", "risks.py", "predicting.py", "grids.py", "recordings.py", *LAB, *SLA)
_TRIES = 4000

Workload = Mapping[str, float | str]


@dataclass(frozen=True)
class Said:
    """What is recommended at one stage: by cost, and its truth; None where nothing is."""

    cost: float | None = None
    truth: float | None = None


@dataclass(frozen=True)
class Held:
    """One SLA and what became of it, by stage; `cost` is that of the cheapest that holds."""

    grid: str
    chain: str
    kpi: str
    wl: float
    limit: float
    cost: float
    said: Mapping[str, Said]

    def missed(self, stage: str) -> bool:
        truth = self.said[stage].truth
        return truth is not None and truth > self.limit

    def refused(self, stage: str) -> bool:
        return self.said[stage].cost is None


def held_out() -> list[Held]:
    return kept("held-out", f"{SLAS}-{digest(*CODE)}", list[Held], _held_out)


def _held_out() -> list[Held]:
    found: list[Held] = []
    for kpi in KPIS:
        for name in BUNDLES:
            grid = recorded(name)
            for plan in grid.campaign.targets:
                own = [s for s in grid.samples if s.point.target == plan.target.name]
                if len(plan.target.vnfs) > 1 and len(own) >= FEWEST:
                    found += _of_chain(grid, plan, kpi)
    return found


def _of_chain(grid: Grid, plan: TargetPlan, kpi: str) -> list[Held]:
    given, risks = known(grid, plan, kpi), {kpi: shown_by_others(grid.name, kpi)}
    truths = Truths(grid, plan, kpi)
    random = np.random.default_rng((5, list(BUNDLES).index(grid.name), KPIS.index(kpi)))
    advisers: dict[tuple[tuple[str, float | str], ...], Adviser] = {}
    found: list[Held] = []
    for _ in range(_TRIES):
        if len(found) == SLAS:
            break
        workload, wl = truths.asked[int(random.integers(len(truths.asked)))]
        every = {c: t for c in truths.pairs(workload) if (t := truths.at(c, wl)) is not None}
        factor = math.exp(random.uniform(*np.log(FACTORS)))
        drawn = list(every.values())[int(random.integers(len(every)))]
        limit = drawn * factor
        largest = every[max(every, key=_cost)] if every else math.inf
        if len(every) < 2 or not LEAST * largest <= limit < math.inf:
            continue
        optimum = min((c for c, t in every.items() if t <= limit), key=_cost)
        if _cost(optimum) == min(map(_cost, every)):
            continue
        key = tuple(sorted(workload.items()))
        if key not in advisers:
            advisers[key] = Adviser(grid, plan, given, risks, workload)
        said = advisers[key].said(wl, limit, every)
        name = plan.target.name
        found.append(Held(grid.name, name, kpi, wl, limit, _cost(optimum), said))
    return found


class Truths:
    """A chain's KPI in the pass that judges: measured, or between two loads in logs."""

    def __init__(self, grid: Grid, plan: TargetPlan, kpi: str) -> None:
        self._seen: dict[Configuration, dict[float, float]] = {}
        overloads: dict[Configuration, float] = {}
        for s in grid.of(plan.target.name, grid.judging):
            c, wl = s.point.configuration, s.point.wl
            if (value := stated(s, kpi)) is not None:
                self._seen.setdefault(c, {})[wl] = value.value
            elif "overloaded" in s.labels:
                overloads[c] = min(wl, overloads.get(c, wl))
        self._overloads = overloads
        self.asked: list[tuple[Workload, float]] = [
            (c.workload, wl) for c, own in self._seen.items() for wl in own
        ]

    def pairs(self, workload: Workload) -> list[Configuration]:
        every = (*self._seen, *(c for c in self._overloads if c not in self._seen))
        return sorted((c for c in every if dict(c.workload) == dict(workload)), key=_cost)

    def at(self, configuration: Configuration, wl: float) -> float | None:
        """Infinite where it was overloaded at that load or below, None where nobody knows."""
        if wl >= self._overloads.get(configuration, math.inf):
            return math.inf
        own = self._seen.get(configuration, {})
        if wl in own:
            return own[wl]
        loads = sorted(own)
        if len(loads) < 2 or not loads[0] < wl < loads[-1]:
            return None
        logs = np.log([own[load] for load in loads])
        return float(np.exp(np.interp(math.log(wl), np.log(loads), logs)))


class Adviser:
    """`recommend` at every stage, of one chain under one workload."""

    def __init__(
        self,
        grid: Grid,
        plan: TargetPlan,
        given: Known,
        risks: Mapping[str, HandoverRisk],
        workload: Workload,
    ) -> None:
        self._grid, self._plan, self._given, self._workload = grid, plan, given, workload
        self._first = {
            (s.point.configuration, s.point.wl): s for s in grid.of(plan.target.name, FIRST)
        }
        self._stages = {"profiles": self._remembered(given.prediction)}
        self._stages["before"] = self._resting(InForce(given.prediction), (), risks)
        if grid.twice:
            self._stages["canaries"] = self._resting(*self._taught(), risks)
        points = [
            (s.point.configuration, s.point.wl)
            for own in grid.functions
            for s in grid.of(own.target.name, FIRST)
        ]
        self._profiled = Profiled.of(points, plan.primary.name, integer=plan.primary.integer)

    def said(
        self, wl: float, limit: float, every: Mapping[Configuration, float]
    ) -> dict[str, Said]:
        sla = Sla(self._given.kpi, limit, "<=", wl)
        question = Question((sla,), (sla,), wl, dict(self._workload), CONFIDENCE)
        truth = {Deployment(c.resources).key: t for c, t in every.items()}
        candidates = [Deployment(c.resources) for c in sorted(every, key=_cost)]
        found = {}
        for stage, performance in self._stages.items():
            found[stage] = self._said(question, performance, candidates, truth)
        if "canaries" in self._stages:
            found["lab"] = self._after_the_lab(question, candidates, truth)
        return found

    def _said(
        self,
        question: Question,
        performance: Performance,
        candidates: Sequence[Deployment],
        truth: Mapping[object, float],
    ) -> Said:
        try:
            answer = self._answer(question, performance, candidates)
        except WorkbenchError:
            return Said()
        if answer.chosen is None:
            return Said()
        chosen = answer.chosen.deployment
        return Said(cost_of(chosen, VcpuHours()), truth[chosen.key])

    def _answer(
        self, question: Question, performance: Performance, candidates: Sequence[Deployment]
    ) -> Answer:
        return recommend(
            question, performance, [candidates], self._profiled, VcpuHours(), runners_up=0
        )

    def _after_the_lab(
        self, question: Question, candidates: Sequence[Deployment], truth: Mapping[object, float]
    ) -> Said:
        """As `engine.answers.verification` asks it, the first pass in the lab's place."""
        tried: list[Tried] = []
        base, cost = self._stages["canaries"], VcpuHours()
        performance: Performance = base
        try:
            answer = self._answer(question, base, candidates)
            for number in range(1, ITERATIONS + 1):
                performance = PerformanceUpdatedByTrials(base, question, candidates, tried)
                answer = self._answer(question, performance, candidates)
                following = next_to_try(
                    performance, candidates, cost, answer, tried, last=number == ITERATIONS
                )
                if following is None or (seen := self._tried(following, question)) is None:
                    break
                tried.append(seen)

            def judged(until: Sequence[Tried], own: Sequence[Deployment]) -> Answer:
                then = PerformanceUpdatedByTrials(base, question, candidates, until)
                return self._answer(question, then, own)

            if (proven := confirmed(question, tried, cost, judged)) is not None:
                answer = proven[1]
            else:
                performance = PerformanceUpdatedByTrials(base, question, candidates, tried)
                answer = self._answer(question, performance, candidates)
        except WorkbenchError:
            return Said()
        if answer.chosen is None:
            return Said()
        chosen = answer.chosen.deployment
        return Said(cost_of(chosen, cost), truth[chosen.key])

    def _tried(self, deployment: Deployment, question: Question) -> Tried | None:
        configuration = Configuration(dict(deployment.allocation), dict(self._workload))
        sample = self._first.get((configuration, question.wl))
        if sample is None:
            return None
        return tried_of(deployment, self._plan.target, sample, question.limits)

    def _taught(self) -> tuple[InForce, tuple[Sample, ...]]:
        """What is in force after canaries at the largest allocation, and these."""
        given, plan = self._given, self._plan
        own = self._canaries()
        if not own:
            return InForce(given.prediction), ()
        prediction, name = given.prediction, plan.target.name
        method = method_named(usual_method(prediction), prediction, None)
        try:
            proposal = propose(
                name, own, method, prediction, kpi_max=given.kpi_max, primary=plan.primary
            )
        except DataError:
            return InForce(prediction), own
        if not proposal.gain:
            return InForce(prediction), own
        version = ChainModelVersion(1, proposal, Decision(proposal.id, True, "benchmark", 0.0))
        accepted = Accepted(version, own, plan.primary, given.kpi_max)
        return in_force(prediction, accepted), own

    def _canaries(self) -> tuple[Sample, ...]:
        """Of the largest allocation, ten from the lowest load to half of the highest."""
        asked = [
            s
            for s in self._first.values()
            if dict(s.point.configuration.workload) == dict(self._workload)
            and stated(s, self._given.kpi) is not None
        ]
        if not asked:
            return ()
        largest = max((s.point.configuration for s in asked), key=_cost)
        own = sorted(
            (s for s in asked if s.point.configuration == largest), key=lambda s: s.point.wl
        )
        half = 0.5 * own[-1].point.wl
        end = next(place for place, s in enumerate(own) if s.point.wl >= half)
        places = np.unique(np.linspace(0, end, CANARIES).round().astype(int))
        return tuple(own[place] for place in places)

    def _resting(
        self, told: InForce, samples: tuple[Sample, ...], risks: Mapping[str, HandoverRisk]
    ) -> Remembered:
        given, plan = self._given, self._plan
        return self._remembered(
            measured_first(
                given.prediction,
                told,
                samples,
                plan.target.name,
                plan.primary,
                risks=risks,
            )
        )

    def _remembered(self, forecaster: Forecaster) -> Remembered:
        return Remembered(ProfilePerformance({self._given.kpi: forecaster}, self._workload))


def _cost(configuration: Configuration) -> float:
    return cost_of(Deployment(configuration.resources), VcpuHours())
