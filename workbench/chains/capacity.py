"""How much more or less CPU a function needs in a chain than alone: read off its counters.

By the utilisation law (Denning & Buzen 1978) a function that needs s times the CPU per request is
saturated at 1/s of the load. Every canary measures s, at any load and to a few per cent, while
response times know nothing of capacity until something queues.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.chains.alignment import Measured
from workbench.chains.base import functions_of, visits_of
from workbench.chains.function_profiles import Part
from workbench.chains.shrinkage import log_weights, student
from workbench.domain.errors import DataError
from workbench.domain.topology import Node
from workbench.models.base import Floats
from workbench.models.folds import Ints
from workbench.models.scales import NORMAL_95

RESOLVED_CORES = 0.001
"""What a function must use beside what it always uses, before a ratio of it says anything."""
FEWEST = 3
"""Samples below which one that is off by a factor of two would pass for a ratio."""
TAUS = (0.01, 0.02, 0.04, 0.08)
TAU_GUESS = 0.02
"""By what configurations of an order, and deployments, are thought to differ (log)."""
LEAST_SCATTER = 0.02
"""Log standard deviation that one sample has at least."""
_PRIOR = 0.1, 2.0
_TREND = 0.03
"""Scale and degrees of Student's t around log s = 0, and the sd of its slope over the log rate."""
_GRID = np.linspace(-3.0, 3.0, 3001)
_MEDIAN = 1.4826
_ROUNDS = 5


@dataclass(frozen=True)
class CpuScale:
    """Log of CPU per request in the chain over that alone.

    Attributes
    ----------
    log, sd : of what all configurations of an order share, and how sure that is.
    spread : by how much a single configuration differs from it, a standard deviation.
    """

    log: float
    sd: float
    spread: float = 0.0

    @property
    def factor(self) -> float:
        return math.exp(self.log)

    @property
    def interval(self) -> tuple[float, float]:
        """95 %, of the shared factor."""
        half = NORMAL_95 * self.sd
        return math.exp(self.log - half), math.exp(self.log + half)

    def differs_from(self, factor: float) -> bool:
        low, high = self.interval
        return not low <= factor <= high


def scales_of(graph: Node, parts: Mapping[str, Part], seen: Measured) -> dict[str, CpuScale]:
    """By instance name, of those functions whose CPU says it.

    Compared are samples of the chain with the function alone at the same rate, what it takes in
    any case (`CpuAlone.fixed`) left out on both sides. Left out is a function whose usage was not
    measured, alone or here, or drowns in that.
    """
    found = {}
    for name, visits in visits_of(graph).items():
        part, cores = parts[name], seen.cores.get(name)
        if part.cpu is None or cores is None:
            continue
        rates = seen.carried * visits
        chosen = np.isfinite(rates) & np.isfinite(cores)
        own = [part.configuration(c, name) for c, _ in seen.points]
        points = [(own[k], rates[k]) for k in np.flatnonzero(chosen)]
        try:
            alone = part.cpu.cores(points) if points else np.empty(0)
        except DataError:  # a category that was never profiled
            continue
        fixed = part.cpu.fixed
        used, needed = cores[chosen] - fixed, alone - fixed
        least = max(RESOLVED_CORES, fixed)
        told = (used > RESOLVED_CORES) & (needed > least)
        if told.sum() >= FEWEST:
            logs = np.log(used[told] / needed[told])
            groups = seen.table.configurations[chosen][told]
            found[name] = pooled(logs, np.log(rates[chosen][told]), groups)
    return found


def carried_to(scales: Mapping[str, CpuScale], graph: Node, other: Node) -> dict[str, CpuScale]:
    """Those of the functions of a graph, for the same kinds of functions in another one."""
    by_template: dict[str, CpuScale] = {}
    for vnf in functions_of(graph):
        if vnf.name in scales:
            by_template.setdefault(vnf.template, scales[vnf.name])
    every = {vnf.name: vnf.template for vnf in functions_of(other)}
    found = {}
    for name, template in every.items():
        scale = scales.get(name) or by_template.get(template)
        if scale is not None:
            found[name] = scale
    return found


def pooled(logs: Floats, rates: Floats, groups: Ints) -> CpuScale:
    """Of log ratios (n,) at log rates (n,), of configurations `groups` (n,), at the highest rates.

    CPU per request falls with the rate, and in a chain it may fall otherwise than alone: a common
    slope over the log rate, drawn to 0, tells what is left of the ratio where it counts. Each
    configuration has its own, normal around the order's; that is drawn to 0 with a heavy tail.
    """
    numbers = np.unique(groups)
    highest = np.array([rates[groups == number].max() for number in numbers])
    place = np.searchsorted(numbers, groups)
    below = rates - highest[place]
    slope, slope_sd = _slope(logs, below, place)
    level = logs - slope * below
    centres = np.array([np.median(level[place == k]) for k in range(len(numbers))])
    scatter = _scatter(level - centres[place], len(numbers))
    depth = np.array([-below[place == k].mean() for k in range(len(numbers))])
    count = np.bincount(place)
    # A median is less sure than a mean by a quarter.
    sd = 1.25 * scatter / np.sqrt(count)
    shared = slope_sd * float(depth.mean())
    return _posterior(centres, sd, shared)


def _slope(logs: Floats, below: Floats, place: Ints) -> tuple[float, float]:
    """Common slope within configurations, drawn to 0, and its standard deviation."""
    count = np.bincount(place)
    x = below - (np.bincount(place, below) / count)[place]
    y = logs - np.array([np.median(logs[place == k]) for k in range(len(count))])[place]
    slope = precision = 0.0
    for _ in range(_ROUNDS):
        gaps = y - slope * x
        scatter = _scatter(gaps, len(count))
        # Samples that are far off count less: Student's t with four degrees (METHOD.md 11).
        weight = 5.0 / (4.0 + np.square(gaps / scatter)) / scatter**2
        precision = float(np.sum(weight * x * x)) + 1.0 / _TREND**2
        slope = float(np.sum(weight * x * y)) / precision
    return slope, 1.0 / math.sqrt(precision)


def _scatter(gaps: Floats, groups: int) -> float:
    free = max(len(gaps) - groups, 1)
    robust = _MEDIAN * float(np.median(np.abs(gaps))) * math.sqrt(len(gaps) / free)
    return max(robust, LEAST_SCATTER)


def _posterior(centres: Floats, sd: Floats, shared: float) -> CpuScale:
    prior = student(_GRID, *_PRIOR)
    found = []
    for tau, weight in zip(TAUS, log_weights(TAUS, TAU_GUESS), strict=True):
        spread = np.sqrt(np.square(sd) + tau**2)
        gaps = (centres[:, None] - _GRID) / spread[:, None]
        logs = -0.5 * np.square(gaps) - np.log(spread)[:, None]
        found.append(logs.sum(axis=0) + prior + weight)
    joint = np.exp(np.stack(found) - np.max(found))
    joint /= joint.sum()
    mean = float(joint.sum(axis=0) @ _GRID)
    variance = float(joint.sum(axis=0) @ np.square(_GRID - mean))
    apart = math.sqrt(float(joint.sum(axis=1) @ np.square(TAUS)))
    return CpuScale(mean, math.hypot(math.sqrt(variance), shared), apart)
