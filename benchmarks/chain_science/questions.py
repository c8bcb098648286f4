"""Random SLAs with a non-trivial optimum, and the truth that says so: long runs of the lab.

They depend on the lab alone, so that they are drawn once, whatever is made of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from bench_truth.long_runs import Truth

from chain_science.grids import Grid
from chain_science.stored import LAB, digest, kept
from chain_science.worlds import options_of
from workbench.domain.campaign import TargetPlan
from workbench.domain.parameters import Configuration
from workbench.domain.recommendations import Deployment
from workbench.labs.simulated.options import SimulationOptions
from workbench.sla.costs import VcpuHours, allowed

KPI = "p95_ms"
LONG_S, SHORT_S, CLEAR = 240.0, 48.0, 1.25
"""Virtual length of a truth's runs, and of those that do where they miss the limit by a factor."""
MOST_MS = 400.0
"""Limits above are not drawn: twelve seconds of a run would not tell them."""
FACTORS = (1.02, 1.35)
"""The limit is the truth of one allocation, drawn at random, times a factor in between."""
LEAST = 1.5
"""Times what the largest allocation does: below, limits would part allocations that are alike."""
LOADS = (0.08, 0.9)
"""Shares of the highest load between which the asked one lies, log-uniform."""


@dataclass(frozen=True)
class Posed:
    """One SLA: `optimum` are the places of the allocation of each function among its own, smallest
    0, `optimal_kpi` its long run."""

    chain: str
    wl: float
    limit: float
    optimum: tuple[int, ...]
    optimal_kpi: float


def posed(grid: Grid, slas: int) -> list[Posed]:
    """So many of each chain of a grid."""

    def drawn() -> list[Posed]:
        random = np.random.default_rng((grid.seed, 5))
        found: list[Posed] = []
        for plan in grid.chains:
            truths = Truths(grid, plan)
            own: list[Posed] = []
            while len(own) < slas:
                if (question := _question(truths, plan, random)) is not None:
                    own.append(question)
            found += own
        return found

    key = f"{grid.seed}-{slas}-{digest('questions.py', 'worlds.py', *LAB)}"
    return kept(f"questions-{grid.name}", key, list[Posed], drawn)


def _question(truths: Truths, plan: TargetPlan, random: np.random.Generator) -> Posed | None:
    """None where the optimum is trivial: the smallest of all."""
    wl = float(round(plan.primary.high * math.exp(random.uniform(*np.log(LOADS)))))
    drawn = truths.every[int(random.integers(len(truths.every)))]
    limit = truths.of(drawn, wl, SHORT_S) * math.exp(random.uniform(*np.log(FACTORS)))
    if not LEAST * truths.of(truths.every[-1], wl, SHORT_S) <= limit <= MOST_MS:
        return None
    optimum = truths.optimum(wl, limit)
    if optimum is None or optimum == truths.every[0]:
        return None
    name = plan.target.name
    return Posed(name, wl, limit, truths.places(optimum), truths.of(optimum, wl))


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
