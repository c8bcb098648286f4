"""Random SLAs on the simulated lab, whose truth is known: is the cheapest allocation found?

Profiles and canaries are the first pass of the grid `simulated-kept`. Allowed are all pairs of
the functions' profiled allocations; ten canaries at the largest pair are proposed, and accepted
where the proposal says that something is gained, before anything is asked. The KPI is p95, as in
paper A.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chain_science.asking import Models, answered
from chain_science.canaries import CANARIES
from chain_science.grids import Grid, options_of, simulated, split
from chain_science.predicting import known
from chain_science.stored import LAB, SLA, digest, kept
from workbench.chains.proposal import propose
from workbench.domain.campaign import TargetPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, Sla
from workbench.domain.recommendations import Choice, Deployment
from workbench.domain.retraining import Decision, ModelVersion
from workbench.engine.chain_models import Accepted, method_named, usual_method
from workbench.labs.simulated.options import SimulationOptions
from workbench.labs.simulated.truth import Truth
from workbench.sla.costs import VcpuHours, allowed

GRID, KPI = "simulated-kept", "p95_ms"
SLAS = 10
"""Of each chain and seed."""
CONFIDENCE = 0.95
LONG_S, SHORT_S, CLEAR = 240.0, 48.0, 1.25
"""Virtual length of a truth's runs, and of those that do where they miss the limit by a factor."""
MOST_MS = 400.0
"""Limits above are not drawn: twelve seconds of a run would not tell them."""
FACTORS = (1.02, 1.35)
"""The limit is the truth of one allocation, drawn at random, times a factor in between."""
LOADS = (0.08, 0.9)
"""Shares of the highest load between which the asked one lies, log-uniform."""


@dataclass(frozen=True)
class Asked:
    """One SLA and what became of it.

    Attributes
    ----------
    optimum, chosen : places of the allocation of each function among its own, smallest 0; `chosen`
        is None where nothing was recommended.
    optimal_kpi, true_kpi : the long run of the optimum and of what was recommended.
    note : the answer's.
    """

    seed: int
    chain: str
    wl: float
    limit: float
    model_version: int
    optimum: tuple[int, ...]
    optimal_kpi: float
    chosen: tuple[int, ...] | None = None
    true_kpi: float | None = None
    expected_kpi: float | None = None
    probability: float | None = None
    note: str = ""

    @property
    def missed(self) -> bool:
        return self.true_kpi is not None and self.true_kpi > self.limit

    @property
    def steps(self) -> int | None:
        """By how many steps the function that is farthest off is off."""
        if self.chosen is None:
            return None
        return max(abs(a - b) for a, b in zip(self.chosen, self.optimum, strict=True))


def asked(seed: int, slas: int = SLAS, grid: str = GRID) -> list[Asked]:
    """All SLAs of a seed, played once."""
    key = f"{seed}-{slas}-{digest('recommending.py', 'asking.py', 'grids.py', *SLA, *LAB)}"
    return kept(f"slas-{grid}", key, list[Asked], lambda: _asked(simulated(grid, seed), slas))


def _asked(grid: Grid, slas: int) -> list[Asked]:
    random = np.random.default_rng((grid.seed, 5))
    models: Models = {}
    found: list[Asked] = []
    for plan in grid.chains:
        accepted = accepted_canary(grid, plan)
        truths = Truths(grid, plan)
        while len([one for one in found if one.chain == plan.target.name]) < slas:
            question = _question(truths, plan, random)
            if question is None:
                continue
            wl, limit, optimum = question
            answer = answered(
                grid.campaign,
                plan.target,
                [s for s in grid.samples if s.point.repetition == 0],
                Sla(KPI, limit, "<=", wl, truths.workload),
                models,
                confidence=CONFIDENCE,
                accepted=accepted,
            )
            base = Asked(
                grid.seed,
                plan.target.name,
                wl,
                limit,
                len(accepted),
                truths.places(optimum),
                truths.of(optimum, wl),
                note="" if answer is None else answer.note,
            )
            found.append(_judged(base, truths, answer.chosen if answer else None))
    return found


def _judged(base: Asked, truths: Truths, choice: Choice | None) -> Asked:
    if choice is None:
        return base
    chosen = Deployment(choice.allocation)
    return replace(
        base,
        chosen=truths.places(chosen),
        true_kpi=truths.of(chosen, base.wl),
        expected_kpi=choice.kpis[KPI].value,
        probability=choice.probability,
    )


def _question(
    truths: Truths, plan: TargetPlan, random: np.random.Generator
) -> tuple[float, float, Deployment] | None:
    """Load, limit and optimum; None where the optimum is trivial: the smallest of all."""
    wl = float(round(plan.primary.high * math.exp(random.uniform(*np.log(LOADS)))))
    drawn = truths.every[int(random.integers(len(truths.every)))]
    limit = truths.of(drawn, wl, SHORT_S) * math.exp(random.uniform(*np.log(FACTORS)))
    if limit > MOST_MS:
        return None
    optimum = truths.optimum(wl, limit)
    return None if optimum in (None, truths.every[0]) else (wl, limit, optimum)


def accepted_canary(grid: Grid, plan: TargetPlan) -> dict[str, Accepted]:
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
        return {}
    if not proposal.gain:
        return {}
    version = ModelVersion(1, proposal, Decision(proposal.id, True, "benchmark", 0.0))
    return {KPI: Accepted(version, own, plan.primary, given.kpi_max)}


class Truths:
    """Whether an allocation holds in the long run, by runs as long as it takes to tell.

    In a closed loop clients that wait when a run ends reach its percentile: short runs say too
    much. They serve where the answer is clear.
    """

    def __init__(self, grid: Grid, plan: TargetPlan) -> None:
        self._grid, self._plan = grid, plan
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
