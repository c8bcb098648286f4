"""Random SLAs on the simulated lab, whose truth is known: is the cheapest allocation found?

Profiles and canaries are the first pass of the grid `simulated-kept`. Allowed are all pairs of
the functions' profiled allocations; ten canaries at the largest pair are proposed, and accepted
where the proposal says that something is gained, before anything is asked. Afterwards the lab is
asked, as `recommend --verify` does. The KPI is p95, as in paper A.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from chain_science.grids import FIRST, Grid, split
from chain_science.predicting import known
from chain_science.questions import KPI, Posed, Truths, posed
from chain_science.stored import LAB, SLA, digest, kept
from chain_science.trials import TrialLab, host_noise
from chain_science.worlds import simulated
from workbench.chains.proposal import propose
from workbench.domain.campaign import TargetPlan
from workbench.domain.errors import DataError, WorkbenchError
from workbench.domain.lab import HostNoise
from workbench.domain.parameters import Sla
from workbench.domain.recommendations import Choice, Deployment
from workbench.domain.retraining import ChainModelVersion, Decision
from workbench.engine.answers.chain_models import Accepted, in_force, method_named, usual_method
from workbench.engine.answers.verification import ITERATIONS
from workbench.models.base import Floats
from workbench.models.forecast import Forecast
from workbench.sla.costs import VcpuHours
from workbench.sla.performance import Performance
from workbench.sla.profiled import Profiled
from workbench.sla.recommendation import Answer, recommend
from workbench.sla.replicas import ChainPerformance
from workbench.sla.sla_query import Question
from workbench.sla.sla_query import asked as question_of
from workbench.sla.trial_selection import around, confirmed, next_to_try
from workbench.sla.updated_by_trials import PerformanceUpdatedByTrials, Tried, start_sds

GRID = "simulated-kept"
CODE = (
    *("recommending.py", "trials.py", "questions.py", "predicting.py", "grids.py", "worlds.py"),
    *("engine/answers/verification_steps.py", "engine/learning/sampler_worker.py", *SLA, *LAB),
)
"""What decides what becomes of an SLA."""
SLAS = 10
"""Of each chain and seed."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Recommended:
    """An allocation, as `Asked.optimum`, and its long run."""

    chosen: tuple[int, ...]
    true_kpi: float


@dataclass(frozen=True)
class Asked:
    """One SLA and what became of it.

    Attributes
    ----------
    optimum : places of the allocation of each function among its own, smallest 0.
    optimal_kpi : the long run of the optimum.
    before, after : what is recommended by the models, and after so many `iterations` on the lab;
        None where nothing is.
    tried : whether that is one of these.
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
    tried: bool = False
    note: str = ""

    def missed(self, what: Recommended | None) -> bool:
        return what is not None and what.true_kpi > self.limit

    def steps(self, what: Recommended | None) -> int | None:
        """By how many steps the function that is farthest off is off."""
        if what is None:
            return None
        return max(abs(a - b) for a, b in zip(what.chosen, self.optimum, strict=True))


def asked(seed: int) -> list[Asked]:
    """All SLAs of a seed; each chain's are played once."""
    grid, found = simulated(GRID, seed), []
    questions = posed(grid, SLAS)
    for plan in grid.chains:
        own = [one for one in questions if one.chain == plan.target.name]
        key = f"slas-{GRID}-{plan.target.name}", f"{seed}-{SLAS}-{digest(*CODE)}"
        found += kept(*key, list[Asked], partial(_asked, grid, plan, own))
    return found


def _asked(grid: Grid, plan: TargetPlan, questions: Sequence[Posed]) -> list[Asked]:
    truths, noise = Truths(grid, plan), host_noise(grid)
    adviser, lab = Adviser.of(grid, plan, noise), TrialLab(grid, plan, truths.workload, noise)
    return [_judged(truths, adviser, lab, one) for one in questions]


@dataclass(frozen=True)
class Adviser:
    """`recommend` as `engine.answers.recommend_worker` asks it, of models that are made once."""

    plan: TargetPlan
    performance: Performance
    profiled: Profiled
    version: int
    start_sd: Mapping[str, float]

    @classmethod
    def of(cls, grid: Grid, plan: TargetPlan, noise: HostNoise) -> Adviser:
        given = known(grid, plan, KPI)
        accepted = accepted_canary(grid, plan)
        model = in_force(given.prediction, accepted)
        workload = {p.key: p.values[0] for p in grid.campaign.workload}
        performance = Remembered(
            ChainPerformance(plan.target.graph, (KPI,), workload, lambda *_: model.forecaster)
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
        return cls(plan, performance, profiled, model.version, start_sds(noise))

    def question(self, wl: float, limit: float) -> Question:
        """Raises `SlaError` where it is refused."""
        sla = Sla(KPI, limit, "<=", wl)
        return question_of(
            (sla,), self.profiled, (KPI,), confidence=CONFIDENCE, start_sd=self.start_sd
        )

    def answer(
        self, question: Question, performance: Performance, candidates: Sequence[Deployment]
    ) -> Answer:
        return recommend(
            question, performance, [candidates], self.profiled, VcpuHours(), runners_up=0
        )

    def proven(
        self, question: Question, every: Sequence[Deployment], first: Answer, lab: TrialLab
    ) -> tuple[Choice | None, list[Tried]]:
        """What is recommended after the lab was asked, and what of, as `verification` does."""
        tried: list[Tried] = []
        answer, cost = first, VcpuHours()
        known = around(every, first, cost)
        performance = PerformanceUpdatedByTrials(self.performance, question, known, tried)
        for number in range(1, ITERATIONS + 1):
            last = number == ITERATIONS
            following = next_to_try(performance, known, cost, answer, tried, last=last)
            if following is None:
                break
            seen = lab.tried(following, question)
            if seen is None:
                break
            tried.append(seen)
            performance = PerformanceUpdatedByTrials(self.performance, question, known, tried)
            answer = self.answer(question, performance, every)

        def judged(until: Sequence[Tried], own: Sequence[Deployment]) -> Answer:
            then = PerformanceUpdatedByTrials(self.performance, question, known, until)
            return self.answer(question, then, own)

        if (found := confirmed(question, tried, cost, judged)) is not None:
            _, answer = found
        return answer.chosen, tried


class Remembered:
    """A performance that is asked once for each deployment and load: most loads that are scanned
    are the same for all questions."""

    def __init__(self, performance: Performance) -> None:
        self._performance = performance
        self._said: dict[tuple[str, Hashable, float], tuple[float, float, float, bool]] = {}

    @property
    def kpis(self) -> tuple[str, ...]:
        return self._performance.kpis

    def usage(self, deployments: Sequence[Deployment], wl: float) -> Sequence[Mapping[str, float]]:
        return self._performance.usage(deployments, wl)

    def forecast(self, kpi: str, deployments: Sequence[Deployment], wl: Floats) -> Forecast:
        keys = [(kpi, one.key, load) for one, load in zip(deployments, wl.tolist(), strict=True)]
        new = {key: place for place, key in enumerate(keys) if key not in self._said}
        if new:
            places = list(new.values())
            said = self._performance.forecast(kpi, [deployments[p] for p in places], wl[places])
            columns = (said.mean, said.low, said.high, said.extrapolates)
            rows = zip(*(column.tolist() for column in columns), strict=True)
            self._said.update(zip(new, rows, strict=True))
        mean, low, high, unknown = zip(*(self._said[key] for key in keys), strict=True)
        return Forecast(np.array(mean), np.array(low), np.array(high), np.array(unknown))


def _judged(truths: Truths, adviser: Adviser, lab: TrialLab, posed: Posed) -> Asked:
    wl, limit = posed.wl, posed.limit
    asked = Asked(
        truths.seed, posed.chain, wl, limit, adviser.version, posed.optimum, posed.optimal_kpi
    )

    def recommended(choice: Choice) -> Recommended:
        chosen = Deployment(choice.allocation)
        return Recommended(truths.places(chosen), truths.of(chosen, wl))

    try:
        question = adviser.question(wl, limit)
        first = adviser.answer(question, adviser.performance, truths.every)
    except WorkbenchError as error:
        return replace(asked, note=str(error))
    if first.chosen is None:
        return replace(asked, note=first.note)
    final, tried = adviser.proven(question, truths.every, first, lab)
    return replace(
        asked,
        before=recommended(first.chosen),
        after=None if final is None else recommended(final),
        iterations=len(tried),
        tried=final is not None and final.deployment.key in {one.deployment.key for one in tried},
        note=first.note,
    )


def accepted_canary(grid: Grid, plan: TargetPlan) -> Accepted | None:
    """What ten canaries at the largest pair teach, where that is worth it."""
    given = known(grid, plan, KPI)
    canary = split(grid, plan.target.name, KPI).canary
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
    version = ChainModelVersion(1, proposal, Decision(proposal.id, True, "benchmark", 0.0))
    return Accepted(version, own, plan.primary, given.kpi_max)
