"""Plays, scores, prints and publishes: `python -m chain_science [--parts ...] [--publish]`.

What is played of a seed is stored, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain
from typing import TypeVar

from chain_science import (
    canaries,
    capacities,
    case_study,
    figures,
    figuring,
    harms,
    held_out,
    low_load,
    recommending,
    report,
    risks,
)
from chain_science.recordings import BUNDLES
from chain_science.worlds import SIMULATED

T = TypeVar("T")

PARTS = (
    *(
        "risk",
        "unseen",
        "harm",
        "low-load",
        "held-out",
        "capacities",
        "canaries",
        "recommendations",
    ),
    *("case-study", "figures"),
)
FIGURE_SEEDS = 3
"""Figures are for the eye; the targets are judged on all seeds."""


def main() -> None:
    every = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser("chain_science", description=__doc__, formatter_class=every)
    parser.add_argument("--parts", default=",".join(PARTS), help="what is played")
    parser.add_argument("--grids", default=",".join((*BUNDLES, *SIMULATED)), help="on which")
    parser.add_argument("--seeds", type=int, default=20, help="how many worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1, help="processes that play seeds")
    parser.add_argument("--quick", action="store_true", help="one seed; writes nothing")
    parser.add_argument("--publish", action="store_true", help="write docs/chain-science.md")
    given = parser.parse_args()
    seeds = range(given.first, given.first + (1 if given.quick else given.seeds))
    names, parts = given.grids.split(","), given.parts.split(",")

    def played(work: Callable[..., T], jobs: Sequence[tuple[object, ...]]) -> list[T]:
        return spread(work, jobs, given.workers)

    def section(name: str, text: str) -> None:
        print(f"\n### {name}\n\n{text}\n", flush=True)
        if given.publish and not given.quick:
            report.publish(name, text)

    if "risk" in parts:
        section("risk", report.risk(played(risks.risks, [()])[0]))
    if "unseen" in parts:
        section("unseen", report.unseen(played(risks.unseen, [()])[0]))
    if "harm" in parts:
        section("harm", report.harm(played(harms.harms, [()])[0]))
    if "low-load" in parts:
        section("low-load", report.low_load(played(low_load.low_loads, [()])[0]))
    if "held-out" in parts:
        section("held-out", report.held_out(played(held_out.held_out, [()])[0]))
    labs: dict[str, Collection[str]] = {"real": BUNDLES, "simulated": SIMULATED}
    for lab, known in labs.items():
        grids = [(name, seed) for name in names if name in known for seed in of(name, seeds)]
        if grids and "capacities" in parts:
            saturations = chain.from_iterable(played(capacities.saturations, grids))
            section(f"capacities-{lab}", report.capacities(list(saturations)))
        if grids and "canaries" in parts:
            errors = chain.from_iterable(played(canaries.errors, grids))
            section(f"canaries-{lab}", report.canaries(list(errors)))
    if "recommendations" in parts:
        asked = chain.from_iterable(played(recommending.asked, [(seed,) for seed in seeds]))
        section("recommendations", report.recommendations(list(asked)))
    if "case-study" in parts:
        few = seeds[: case_study.SEEDS]
        answers = chain.from_iterable(played(case_study.answers, [(seed,) for seed in few]))
        section("case-study", report.case_study(list(answers)))
    if "figures" in parts:
        for name in names:
            few = of(name, seeds)[:FIGURE_SEEDS]
            found = played(figuring.figured, [(name, seed) for seed in few])
            section(f"figures-{name}", figures.report(found, name))


def of(name: str, seeds: range) -> range:
    """Of a recording there is one."""
    return range(1) if name in BUNDLES else seeds


def spread(work: Callable[..., T], jobs: Sequence[tuple[object, ...]], workers: int) -> list[T]:
    """All jobs, one after the other or several at once, each in a process of its own."""
    if workers == 1:
        return [_timed(work, job) for job in jobs]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(partial(_timed, work), jobs))


def _timed(work: Callable[..., T], job: tuple[object, ...]) -> T:
    """Says what it took, so that one seed tells how long all of them will."""
    begin, cpu = time.perf_counter(), _cpu_s()
    found = work(*job)
    took = f"{_cpu_s() - cpu:.1f} s of CPU in {time.perf_counter() - begin:.1f} s"
    print(f"{work.__module__} {job}: {took}", flush=True)
    return found


def _cpu_s() -> float:
    """Of this process and of those that it waited for."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()
