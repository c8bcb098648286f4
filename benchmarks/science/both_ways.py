"""Every recording with either of its passes as the training pass: how much is luck.

A recording has one training pass, so that seeds vary what a sampler does and never what it sees.
Where both directions agree a ratio says something of samplers, where they do not it says something
of the day on which the passes were recorded.
"""

from __future__ import annotations

import math
from statistics import geometric_mean, median

from science import comparing, recordings, tables
from science.plays import UNIFORM
from science.stored import Store

OURS = "pooled"
SHOWN = (OURS, "heuristic", "heuristic-endless", "sobol")
BOUND = 1.1
"""Times uniform sampling's samples: the issue's bound for every recording."""


def report(store: Store, seeds: int) -> str:
    """A row for each recorded problem, from what is stored; then how often a sampler is ahead."""
    rows, ratios = [], {sampler: list[float]() for sampler in SHOWN}
    for name, twin in zip(recordings.names(), recordings.twins(), strict=True):
        both = [comparing.stored(store, one, (UNIFORM, *SHOWN), seeds) for one in (name, twin)]
        cells = [name]
        for own in both:
            base = middle(own[UNIFORM], both, UNIFORM)
            cells.append(tables.number(base))
            for sampler in SHOWN:
                count = middle(own[sampler], both, sampler)
                cells.append(tables.ratio(count, base))
                ratios[sampler].append(count / base if math.isfinite(base) else math.nan)
        seen = [str(len(common(both, sampler))) for sampler in (UNIFORM, *SHOWN)]
        rows.append([*cells, "/".join(seen)])
    head = ["recording"]
    for way in ("first teaches", "second teaches"):
        head += [f"{way}: uniform", *(f"{sampler}, of uniform" for sampler in SHOWN)]
    table = tables.table([*head, "seeds"], rows)
    return "\n\n".join([table, *(summed(s, ratios[s]) for s in SHOWN)])


def common(both: list[dict[str, dict[int, float]]], sampler: str) -> set[int]:
    """Seeds of a sampler that were played both ways."""
    return set.intersection(*(set(own[sampler]) for own in both))


def middle(
    counts: dict[int, float], both: list[dict[str, dict[int, float]]], sampler: str
) -> float:
    """Median over the seeds that were played both ways; NaN where there are none."""
    return tables.quartiles([counts[seed] for seed in common(both, sampler)])[1]


def summed(sampler: str, ratios: list[float]) -> str:
    """A sentence: how often and by how much a sampler is ahead of uniform sampling."""
    known = [r for r in ratios if not math.isnan(r)]
    if not known:
        return f"`{sampler}`: not played both ways."
    reached = [r for r in known if math.isfinite(r)]
    how = (
        f", with {median(reached):.2f} times as many samples in the median, "
        f"{geometric_mean(reached):.2f} times in the geometric mean"
        if reached
        else ""
    )
    return (
        f"`{sampler}`: of {len(known)} at which uniform sampling comes there it does on "
        f"{len(reached) or 'none'}{how}; with more than {BOUND} times as many, or never, on "
        f"{sum(r > BOUND for r in known)}."
    )
