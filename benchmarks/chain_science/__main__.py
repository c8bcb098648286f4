"""Plays, scores, prints and publishes: `python -m chain_science [--quick] [--publish]`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from chain_science import capacities, case_study, figures, grids, recommending, report
from chain_science.canaries import Error, errors_of
from chain_science.grids import Grid
from chain_science.stored import LAB, MODELS, digest, kept

PARTS = ("capacities", "canaries", "recommendations", "case-study", "figures")
KPIS = ("mean_ms", "p95_ms")
SIMULATED = ("simulated-closed", "simulated-kept")
FIGURE_SEEDS = 3
"""Figures are for the eye; the targets are judged on all seeds."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="chain_science", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--grids", default=",".join((grids.RECORDED, *SIMULATED)))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="one seed; writes nothing")
    parser.add_argument("--publish", action="store_true", help="write docs/chain-science.md")
    given = parser.parse_args()
    seeds = range(1 if given.quick else given.seeds)
    names = given.grids.split(",")

    def section(name: str, work: Callable[[], str]) -> None:
        begin = time.perf_counter()
        text = work()
        print(f"\n### {name}\n\n{text}\n({time.perf_counter() - begin:.0f} s)", flush=True)
        if given.publish and not given.quick:
            report.publish(name, text)

    parts = given.parts.split(",")
    if "capacities" in parts:
        every = (grid for name in names for grid in _grids(name, seeds))
        found = (one for grid in every for one in capacities.saturations(grid))
        section("capacities", lambda: capacities.report(list(found)))
    if "canaries" in parts:
        section("canaries", lambda: report.canaries(_errors(names, seeds)))
    if "recommendations" in parts:
        section("recommendations", lambda: report.recommendations(_asked(seeds)))
    if "case-study" in parts:
        section("case-study", lambda: case_study.report(seeds[: case_study.SEEDS]))
    if "figures" in parts:
        for name in names:
            section(f"figures-{name}", lambda n=name: _figures(n, seeds[:FIGURE_SEEDS]))


def _grids(name: str, seeds: Sequence[int]) -> list[Grid]:
    """Of the real lab there is one."""
    if name == grids.RECORDED:
        return [grids.recorded()]
    return [grids.simulated(name, seed) for seed in seeds]


def _errors(names: Sequence[str], seeds: Sequence[int]) -> list[Error]:
    code = digest("canaries.py", "predicting.py", "grids.py", *LAB, *MODELS)
    found: list[Error] = []
    for name in names:
        for seed in seeds if name != grids.RECORDED else [0]:

            def work(name: str = name, seed: int = seed) -> list[Error]:
                (grid,) = _grids(name, [seed])
                return errors_of(grid, KPIS)

            found += kept(f"errors-{name}", f"{seed}-{code}", list[Error], work)
    return found


def _asked(seeds: Sequence[int]) -> list[recommending.Asked]:
    return [one for seed in seeds for one in recommending.asked(seed)]


def _figures(name: str, seeds: Sequence[int]) -> str:
    own = _grids(name, seeds)
    found = [figures.compared(grid) for grid in own]
    return "\n\n".join(
        [
            f"Table 3, RMSE of p95 in ms, five folds, {len(own)} seeds:",
            figures.table_3(own),
            "Table 4:",
            figures.table_4(found),
            figures.figure_8(found, name),
            figures.figure_12(found, name),
            figures.figure_13_14(own, name),
        ]
    )


if __name__ == "__main__":
    main()
