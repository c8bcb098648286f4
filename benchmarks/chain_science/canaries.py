"""Ten canaries of the lower half say the upper half: the target of issue and METHOD.md 9."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chain_science.grids import CANARIES, Grid, Split, split
from chain_science.predicting import OURS, SIMPLE, Known, known, sayers
from chain_science.recordings import grid_of
from chain_science.stored import LAB, MODELS, digest, kept

KPIS = ("mean_ms", "p95_ms")
CODE = ("canaries.py", "predicting.py", "grids.py", "recordings.py", "worlds.py", *LAB, *MODELS)
"""What decides an error."""
LEAST_ERROR, NOISES = 0.10, 1.5
"""At most the larger of 10 % and 1.5 times the repeat noise is allowed."""
WORTH, HALVED = 2.0, 0.5
"""Where the best simple method errs by more than twice the noise, at most half of its error."""


@dataclass(frozen=True)
class Error:
    """Median |log error| on the upper half of a chain under one seed, by who said it."""

    grid: str
    seed: int
    chain: str
    kpi: str
    canaries: int
    points: int
    noise: float
    errors: Mapping[str, float]

    @property
    def allowed(self) -> float:
        return max(LEAST_ERROR, NOISES * self.noise)

    @property
    def simple(self) -> float:
        return min(self.errors[name] for name in SIMPLE)

    @property
    def small(self) -> bool:
        return self.errors[OURS] <= self.allowed

    @property
    def halved(self) -> bool | None:
        """None where the best simple method is within twice the noise already."""
        if self.simple <= WORTH * self.noise:
            return None
        return self.errors[OURS] <= HALVED * self.simple


def errors(name: str, seed: int) -> list[Error]:
    """Every chain of a grid and every KPI, played once."""
    key = f"errors-{name}", f"{seed}-{digest(*CODE)}"
    return kept(*key, list[Error], lambda: _errors(grid_of(name, seed)))


def _errors(grid: Grid) -> list[Error]:
    """Of what was measured twice: else nobody knows the noise that errors are held against."""
    found = []
    for plan in grid.chains if grid.twice else ():
        for kpi in KPIS:
            parted = split(grid, plan.target.name, kpi, CANARIES)
            if parted.upper:
                found.append(error_of(known(grid, plan, kpi), parted))
    return found


def error_of(given: Known, parted: Split) -> Error:
    test = given.seen(parted.upper)
    said = {name: say(test.points) for name, say in sayers(given, parted.canary).items()}
    return Error(
        given.grid.name,
        given.grid.seed,
        given.plan.target.name,
        given.kpi,
        len(parted.canary),
        len(test),
        float(np.median(parted.noise)),
        {name: middle(test.table.y - logs) for name, logs in said.items()},
    )


def middle(gaps: np.ndarray) -> float:
    """Median size; what cannot be said is infinitely wrong."""
    sizes = np.where(np.isnan(gaps), math.inf, np.abs(gaps))
    return float(np.median(sizes))
