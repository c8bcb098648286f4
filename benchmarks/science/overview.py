"""All surfaces in one table, held against what the issue asks for."""

from __future__ import annotations

from science import comparing, tables
from science.both_ways import OURS
from science.plays import UNIFORM
from science.stored import Store
from science.surfaces import SURFACES

RIVALS = ("heuristic", "heuristic-endless", "bisection-endless", "sobol")
MATCHED, MISMATCHED = 1 / 20, 1 / 5
"""Targets: samples to the reference as a share of uniform sampling's."""


def report(store: Store, seeds: int) -> str:
    """A row for each surface, from what is stored."""
    samplers = (UNIFORM, OURS, *RIVALS)
    rows = []
    for surface in SURFACES:
        needed = comparing.stored(store, surface.name, samplers, seeds)
        counts = {sampler: list(needed[sampler].values()) for sampler in samplers}
        base, ours = (tables.quartiles(counts[one])[1] for one in (UNIFORM, OURS))
        target = MATCHED if surface.matched else MISMATCHED
        if not all(counts[one] for one in (UNIFORM, OURS)):
            said = "-"
        else:
            said = f"{target:.2f}{'' if ours <= target * base else ': missed'}"
        rows.append(
            [
                f"`{surface.name}`",
                tables.spread(counts[UNIFORM]),
                tables.spread(counts[OURS]),
                tables.ratio(ours, base),
                said,
                *(tables.number(tables.quartiles(counts[one])[1]) for one in RIVALS),
                "/".join(str(len(counts[one])) for one in samplers),
            ]
        )
    head = ["surface", UNIFORM, OURS, "of uniform", "target", *RIVALS, "seeds"]
    return tables.table(head, rows)
