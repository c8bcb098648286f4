"""Does CPU per request of ten canaries say what a chain carries once it is saturated?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chain_science.grids import FIRST, Grid, configurations, split
from chain_science.recordings import grid_of
from workbench.chains.alignment import measured
from workbench.chains.capacity import CpuScale, scales_of
from workbench.chains.demand import CpuAlone, carried
from workbench.chains.function_profiles import Part
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample

KPI = "mean_ms"
HIGHEST = 3
"""Loads whose throughput, as a median, is taken for what is carried."""
SATURATED = 0.95
"""Of what is offered: a planned load of which more is carried says no capacity."""


@dataclass(frozen=True)
class Saturation:
    """A chain of a grid: by function CPU per request over that alone, and log errors of what it
    carries by configuration, as the profiles say it and as they do by CPU."""

    grid: str
    seed: int
    chain: str
    scales: Mapping[str, CpuScale]
    alone: tuple[float, ...]
    by_cpu: tuple[float, ...]


def saturations(name: str, seed: int) -> list[Saturation]:
    """Of every chain of a grid."""
    return list(_saturations(grid_of(name, seed)))


def _saturations(grid: Grid) -> Iterator[Saturation]:
    for plan in grid.chains:
        parts = {v.name: _part(grid, v.template) for v in plan.target.vnfs}
        canary = split(grid, plan.target.name, KPI).canary
        seen = measured(plan.target.name, canary, kpi=KPI, kpi_max=math.inf, primary=plan.primary)
        scales = scales_of(plan.target.graph, parts, seen)
        alone, by_cpu = [], []
        whole = grid.of(plan.target.name, grid.judging)
        for configuration in configurations([(s.point.configuration, 0.0) for s in whole]):
            true = _carried([s for s in whole if s.point.configuration == configuration])
            said = {n: _alone(grid, p, n, configuration) for n, p in parts.items()}
            if true is None or None in said.values():
                continue
            least = {n: x for n, x in said.items() if x is not None}
            alone.append(math.log(min(least.values()) / true))
            scaled = [x / (scales[n].factor if n in scales else 1.0) for n, x in least.items()]
            by_cpu.append(math.log(min(scaled) / true))
        yield Saturation(
            grid.name, grid.seed, plan.target.name, scales, tuple(alone), tuple(by_cpu)
        )


def _part(grid: Grid, template: str) -> Part:
    plan = next(p for p in grid.functions if p.target.vnfs[0].template == template)
    name, vnf = plan.target.name, plan.target.vnfs[0].name
    own = grid.of(name, FIRST)
    load = own[0].load_model
    return Part(
        name, vnf, template, load, plan.primary.name, 1.0, {}, cpu=CpuAlone.of(name, vnf, own)
    )


def _alone(grid: Grid, part: Part, name: str, configuration: Configuration) -> float | None:
    """What a function carries alone: of the two nearest allocations in logs."""
    own = part.configuration(configuration, name)
    found = []
    samples = [s for s in grid.of(part.target, FIRST) if _alike(s, own)]
    for one in configurations([(s.point.configuration, 0.0) for s in samples]):
        most = _carried([s for s in samples if s.point.configuration == one])
        if most is not None:
            found.append((math.log(one.vcpu(part.vnf) or 1.0), math.log(most)))
    if not found:
        return None
    x, y = np.array(sorted(found)).T
    return math.exp(float(np.interp(math.log(own.vcpu(part.vnf) or 1.0), x, y)))


def _alike(sample: Sample, own: Configuration) -> bool:
    return sample.point.configuration.workload == own.workload


def _carried(samples: Sequence[Sample]) -> float | None:
    """The median at the highest loads; None where all of a planned load is carried."""
    last = sorted(samples, key=lambda s: s.point.wl)[-HIGHEST:]
    most = float(np.median([carried(s) for s in last]))
    offered = last[0].load_model.startswith("open")
    return None if offered and most > SATURATED * last[0].point.wl else most
