"""Every recording with either of its passes as the training pass: how much is luck.

A recording has one training pass, so that seeds vary what a sampler does and never what it sees.
Where both directions agree a ratio says something of samplers, where they do not it says something
of the day on which the passes were recorded.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import geometric_mean, median

from science import comparing, recordings, tables
from science.comparing import Plan
from science.plays import UNIFORM
from science.stored import Store

OURS = "pooled"
SHOWN = (OURS, "heuristic", "heuristic-endless", "sobol")
BOUND = 1.1
"""Times uniform sampling's samples: the issue's bound for every recording."""


def report(store: Store, seeds: int) -> str:
    """A row for each recorded problem, from what is stored; then how the directions differ."""
    rows, ratios = [], {sampler: list[float]() for sampler in SHOWN}
    for name, twin in zip(recordings.names(), recordings.twins(), strict=True):
        cells = [name]
        for one in (name, twin):
            needed = medians(store, one, seeds)
            base = needed[UNIFORM]
            cells.append(tables.number(base))
            for sampler in SHOWN:
                cells.append(tables.ratio(needed[sampler], base))
                ratios[sampler].append(needed[sampler] / base if math.isfinite(base) else math.nan)
        rows.append(cells)
    head = ["recording"]
    for way in ("first teaches", "second teaches"):
        head += [f"{way}: uniform", *(f"{sampler}, of uniform" for sampler in SHOWN)]
    return "\n\n".join([tables.table(head, rows), *(summed(s, ratios[s]) for s in SHOWN)])


def medians(store: Store, name: str, seeds: int) -> dict[str, float]:
    """Samples to the reference by sampler, each with its own best model; NaN where not played."""
    plan = replace(Plan.of(name, ",".join((UNIFORM, *SHOWN)), seeds=seeds), only_stored=True)
    found = comparing.measure(store, plan, 1)
    needed = {}
    for sampler in plan.samplers:
        counts = [n for n, _ in found.needs(sampler, found.best(sampler), found.reference[1])]
        needed[sampler] = tables.quartiles(counts)[1]
    return needed


def summed(sampler: str, ratios: list[float]) -> str:
    """A sentence: how often and by how much a sampler is ahead of uniform sampling."""
    known = [r for r in ratios if not math.isnan(r)]
    reached = [r for r in known if math.isfinite(r)]
    if not reached:
        return f"`{sampler}`: not played."
    return (
        f"`{sampler}`: of {len(known)} at which uniform sampling comes there it does on "
        f"{len(reached)}, with {median(reached):.2f} times as many samples in the median, "
        f"{geometric_mean(reached):.2f} times in the geometric mean; with more than {BOUND} times "
        f"as many, or never, on {sum(r > BOUND for r in known)}."
    )
