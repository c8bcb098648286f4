"""Random SLAs on the simulated lab, whose truth is known: is the cheapest allocation found?

Profiles and canaries are the first pass of the grid `simulated-kept`. Allowed are all pairs of
the functions' profiled allocations; ten canaries at the largest pair are proposed, and accepted
where the proposal says that something is gained, before anything is asked. Afterwards the lab is
asked, as `recommend --verify` does. The KPI is p95, as in paper A.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from bench_truth.playing import bench_of, visit

from chain_science.canaries import CANARIES
from chain_science.grids import FIRST, Grid, options_of, simulated, split
from chain_science.predicting import known
from chain_science.stored import LAB, SLA, digest, kept
from workbench.chains.proposal import propose
from workbench.domain.campaign import TargetPlan
from workbench.domain.errors import DataError, WorkbenchError
from workbench.domain.parameters import Configuration, OperatingPoint, Sla
from workbench.domain.recommendations import Choice, Deployment
from workbench.domain.retraining import Decision, ModelVersion
from workbench.domain.samples import Sample
from workbench.engine.answers.chain_models import Accepted, in_force, method_named, usual_method
from workbench.engine.answers.proving import ITERATIONS
from workbench.engine.answers.proving_steps import (
    ATTEMPTS,
    REPEATS,
    overloaded,
    tried_of,
    typical,
    worth_repeating,
)
from workbench.engine.learning.advice import first_s
from workbench.labs.simulated.options import SimulationOptions
from workbench.labs.simulated.truth import Truth
from workbench.sla.costs import VcpuHours, allowed
from workbench.sla.performance import Performance
from workbench.sla.profiled import Profiled
from workbench.sla.question import Question
from workbench.sla.question import asked as question_of
from workbench.sla.recommendation import Answer, recommend
from workbench.sla.replicas import ChainPerformance
from workbench.sla.taught import TaughtPerformance, Tried
from workbench.sla.trying import around, confirmed, next_to_try

GRID, KPI = "simulated-kept", "p95_ms"
PROOF = ("engine/answers/proving_steps.py", "engine/learning/advice.py")
"""What decides beside models, rules and the lab."""
SLAS = 10
"""Of each chain and seed."""
CONFIDENCE = 0.95
LONG_S, SHORT_S, CLEAR = 240.0, 48.0, 1.25
"""Virtual length of a truth's runs, and of those that do where they miss the limit by a factor."""
MOST_MS = 400.0
"""Limits above are not drawn: twelve seconds of a run would not tell them."""
FACTORS = (1.02, 1.35)
"""The limit is the truth of one allocation, drawn at random, times a factor in between."""
LEAST = 1.5
"""Times what the largest allocation does: below, limits would part allocations that are alike."""
TRIAL_SEEDS = 10_000
"""Trials of a world count their deployments' seeds from that times its own on."""
LOADS = (0.08, 0.9)
"""Shares of the highest load between which the asked one lies, log-uniform."""


@dataclass(frozen=True)
class Recommended:
    """An allocation, as `Asked.optimum`, what is expected of it, and its long run."""

    chosen: tuple[int, ...]
    true_kpi: float
    expected_kpi: float
    probability: float


@dataclass(frozen=True)
class Asked:
    """One SLA and what became of it.

    Attributes
    ----------
    optimum : places of the allocation of each function among its own, smallest 0.
    optimal_kpi : the long run of the optimum.
    before, after : what is recommended by the models, and after so many `iterations` on the lab;
        None where nothing is.
    note : of the models' answer.
    """

    seed: int
    chain: str
    wl: float
    limit: float
    model_version: int
    optimum: tuple[int, ...]
    optimal_kpi: float
    before: Recommended | None = None
    after: Recommended | None = None
    iterations: int = 0
    note: str = ""

    def missed(self, what: Recommended | None) -> bool:
        return what is not None and what.true_kpi > self.limit

    def steps(self, what: Recommended | None) -> int | None:
        """By how many steps the function that is farthest off is off."""
        if what is None:
            return None
        return max(abs(a - b) for a, b in zip(what.chosen, self.optimum, strict=True))


def asked(seed: int, slas: int = SLAS, grid: str = GRID) -> list[Asked]:
    """All SLAs of a seed, played once."""
    code = digest("recommending.py", "predicting.py", "grids.py", *SLA, *LAB, *PROOF)
    key = f"{seed}-{slas}-{code}"
    return kept(f"slas-{grid}", key, list[Asked], lambda: _asked(simulated(grid, seed), slas))


def _asked(grid: Grid, slas: int) -> list[Asked]:
    random = np.random.default_rng((grid.seed, 5))
    found: list[Asked] = []
    for plan in grid.chains:
        truths, adviser = Truths(grid, plan), Adviser.of(grid, plan)
        lab = TrialLab(grid, plan, truths.workload)
        own: list[Asked] = []
        while len(own) < slas:
            question = _question(truths, plan, random)
            if question is not None:
                own.append(_judged(truths, adviser, lab, *question))
        found += own
    return found


@dataclass(frozen=True)
class Adviser:
    """`recommend` as `engine.judging` asks it, of models that are made once."""

    plan: TargetPlan
    performance: Performance
    profiled: Profiled
    version: int

    @classmethod
    def of(cls, grid: Grid, plan: TargetPlan) -> Adviser:
        given = known(grid, plan, KPI)
        accepted = accepted_canary(grid, plan)
        model = in_force(given.prediction, accepted)
        workload = {p.key: p.values[0] for p in grid.campaign.workload}
        performance = ChainPerformance(
            plan.target.graph, (KPI,), workload, lambda *_: model.forecaster
        )
        points = [
            (s.point.configuration, s.point.wl)
            for own in grid.functions
            for s in grid.of(own.target.name, FIRST)
        ]
        profiled = Profiled.of(
            points,
            plan.primary.name,
            integer=plan.primary.integer,
            ceilings={grid.campaign.kpi: grid.campaign.kpi_max},
        )
        return cls(plan, performance, profiled, model.version)

    def question(self, wl: float, limit: float) -> Question:
        """Raises `SlaError` where it is refused."""
        sla = Sla(KPI, limit, "<=", wl)
        return question_of((sla,), self.profiled, (KPI,), confidence=CONFIDENCE)

    def answer(
        self, question: Question, performance: Performance, candidates: Sequence[Deployment]
    ) -> Answer:
        return recommend(
            question, performance, candidates, self.profiled, VcpuHours(), runners_up=0
        )

    def proven(
        self, question: Question, every: Sequence[Deployment], first: Answer, lab: TrialLab
    ) -> tuple[Choice | None, int]:
        """What is recommended after the lab was asked, and how often, as `engine.proving` does."""
        tried: list[Tried] = []
        answer, cost = first, VcpuHours()
        known = around(every, first, cost)
        performance = TaughtPerformance(self.performance, question, known, tried)
        for number in range(1, ITERATIONS + 1):
            last = number == ITERATIONS
            following = next_to_try(performance, known, cost, answer, tried, last=last)
            if following is None:
                break
            seen = lab.tried(following, question)
            if seen is None:
                break
            tried.append(seen)
            performance = TaughtPerformance(self.performance, question, known, tried)
            answer = self.answer(question, performance, every)

        def judged(until: Sequence[Tried], own: Sequence[Deployment]) -> Answer:
            then = TaughtPerformance(self.performance, question, known, until)
            return self.answer(question, then, own)

        if (found := confirmed(question, tried, cost, judged)) is not None:
            _, answer = found
        return answer.chosen, len(tried)


class TrialLab:
    """Measures deployments of a chain, each started anew, as `engine.trials` does."""

    def __init__(self, grid: Grid, plan: TargetPlan, workload: Mapping[str, float | str]) -> None:
        self._campaign, self._plan, self._workload = grid.campaign, plan, workload
        self._options = SimulationOptions.parse(options_of(grid.name, grid.seed))
        self._seed = TRIAL_SEEDS * (grid.seed + 1)

    def tried(self, deployment: Deployment, question: Question) -> Tried | None:
        self._seed += 1
        return asyncio.run(self._tried(deployment, question))

    async def _tried(self, deployment: Deployment, question: Question) -> Tried | None:
        bench = bench_of(self._campaign, self._seed, self._options)
        await bench.lab.open()
        configuration = Configuration(dict(deployment.allocation), dict(self._workload))
        target, deploying_s = self._plan.target, 0.0
        samples: list[Sample] = []
        for repetition in range(ATTEMPTS + REPEATS):
            point = OperatingPoint(target.name, configuration, question.wl, repetition)
            seconds = first_s(self._campaign, samples, point)
            sample = await visit(bench, self._plan, point, seconds)
            deploying_s = bench.lab_s - sample.lab_s if not repetition else deploying_s
            if sample.valid:
                samples.append(sample)
                if not worth_repeating(samples, deploying_s):
                    break
            elif overloaded(sample, target) or repetition + 1 == ATTEMPTS:
                break
        await bench.lab.close()
        told = typical(samples or [sample], question.limits)
        return tried_of(deployment, target, told, question.limits)


def _judged(
    truths: Truths, adviser: Adviser, lab: TrialLab, wl: float, limit: float, optimum: Deployment
) -> Asked:
    asked = Asked(
        truths.seed,
        adviser.plan.target.name,
        wl,
        limit,
        adviser.version,
        truths.places(optimum),
        truths.of(optimum, wl),
    )

    def recommended(choice: Choice) -> Recommended:
        chosen = Deployment(choice.allocation)
        return Recommended(
            truths.places(chosen),
            truths.of(chosen, wl),
            choice.kpis[KPI].value,
            choice.probability,
        )

    try:
        question = adviser.question(wl, limit)
        first = adviser.answer(question, adviser.performance, truths.every)
    except WorkbenchError as error:
        return replace(asked, note=str(error))
    if first.chosen is None:
        return replace(asked, note=first.note)
    final, iterations = adviser.proven(question, truths.every, first, lab)
    return replace(
        asked,
        before=recommended(first.chosen),
        after=None if final is None else recommended(final),
        iterations=iterations,
        note=first.note,
    )


def _question(
    truths: Truths, plan: TargetPlan, random: np.random.Generator
) -> tuple[float, float, Deployment] | None:
    """Load, limit and optimum; None where the optimum is trivial: the smallest of all."""
    wl = float(round(plan.primary.high * math.exp(random.uniform(*np.log(LOADS)))))
    drawn = truths.every[int(random.integers(len(truths.every)))]
    limit = truths.of(drawn, wl, SHORT_S) * math.exp(random.uniform(*np.log(FACTORS)))
    if not LEAST * truths.of(truths.every[-1], wl, SHORT_S) <= limit <= MOST_MS:
        return None
    optimum = truths.optimum(wl, limit)
    return None if optimum in (None, truths.every[0]) else (wl, limit, optimum)


def accepted_canary(grid: Grid, plan: TargetPlan) -> Accepted | None:
    """What ten canaries at the largest pair teach, where that is worth it."""
    given = known(grid, plan, KPI)
    canary = split(grid, plan.target.name, KPI, CANARIES).canary
    names = [v.name for v in plan.target.vnfs]
    largest = max((s.point.configuration for s in canary), key=lambda c: sum(map(c.vcpu, names)))
    own = tuple(s for s in canary if s.point.configuration == largest)
    prediction = given.prediction
    method = method_named(usual_method(prediction), prediction, None)
    try:
        proposal = propose(
            plan.target.name,
            own,
            method,
            prediction,
            kpi_max=given.kpi_max,
            primary=plan.primary,
        )
    except DataError:
        return None
    if not proposal.gain:
        return None
    version = ModelVersion(1, proposal, Decision(proposal.id, True, "benchmark", 0.0))
    return Accepted(version, own, plan.primary, given.kpi_max)


class Truths:
    """Whether an allocation holds in the long run, by runs as long as it takes to tell.

    In a closed loop clients that wait when a run ends reach its percentile: short runs say too
    much. They serve where the answer is clear.
    """

    def __init__(self, grid: Grid, plan: TargetPlan) -> None:
        self.seed, self._grid, self._plan = grid.seed, grid, plan
        own = {p.target.vnfs[0].template: p.resources for p in grid.functions}
        self._resources = tuple(
            parameter for v in plan.target.vnfs for parameter in own[v.template]
        )
        self.every: Sequence[Deployment] = tuple(allowed(self._resources, VcpuHours()))
        self.workload: Mapping[str, float | str] = {
            p.key: p.values[0] for p in grid.campaign.workload
        }
        self._options = SimulationOptions.parse(options_of(grid.name, grid.seed))
        self._truths: dict[tuple[str, float], Truth] = {}

    def of(self, deployment: Deployment, wl: float, seconds: float = LONG_S) -> float:
        """The KPI in the long run; infinite where unfinished requests are among it."""
        configuration = Configuration(dict(deployment.allocation), dict(self.workload))
        key = configuration.key, seconds
        if key not in self._truths:
            self._truths[key] = Truth(
                self._grid.campaign,
                self._plan.target,
                configuration,
                self._options,
                seconds=seconds,
            )
        return self._truths[key].at(wl).kpi(KPI)

    def holds(self, deployment: Deployment, wl: float, limit: float) -> bool:
        short = self.of(deployment, wl, SHORT_S)
        if max(short / limit, limit / short) > CLEAR:
            return short < limit
        return self.of(deployment, wl) <= limit

    def optimum(self, wl: float, limit: float) -> Deployment | None:
        """The cheapest that holds. What has no more of anything than one that fails is not run."""
        failed: list[tuple[int, ...]] = []
        for one in self.every:
            places = self.places(one)
            if any(all(p <= f for p, f in zip(places, other, strict=True)) for other in failed):
                continue
            if self.holds(one, wl, limit):
                return one
            failed.append(places)
        return None

    def places(self, deployment: Deployment) -> tuple[int, ...]:
        return tuple(
            sorted(map(float, p.values)).index(float(deployment.allocation[p.key]))
            for p in self._resources
        )
