"""Breakpoints of any campaign on the simulated lab against the truth (METHOD.md 7), over seeds.

    python benchmarks/breakpoints.py [--seeds 50] [--campaign demo] [--lab-options source_cap=0.7]

`bench_truth` does so for the traps of METHOD.md 11; this one takes a campaign as users write it,
and plays it in the same way.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench_truth.long_runs import Truth
from bench_truth.playing import conclude, play

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.labs.simulated.options import SimulationOptions
from workbench.paths import Workspace

Cell = tuple[str, str, str]
"""Target, configuration, rule."""


@dataclass(frozen=True)
class Outcome:
    """What one seed concluded for one cell."""

    cell: Cell
    state: str
    wl: float | None
    low: float | None
    high: float | None


def campaign_of(name: str) -> Campaign:
    return load_campaign(name, workspace=Workspace(Path.cwd())).campaign


def one_seed(job: tuple[Campaign, int, str]) -> tuple[list[Outcome], int, dict[str, int]]:
    """All targets under one seed: outcomes, samples taken, invalid ones by reason."""
    campaign, seed, options = job
    outcomes: list[Outcome] = []
    taken, reasons = 0, dict[str, int]()
    for plan in campaign.targets:
        samples, _ = asyncio.run(play(campaign, plan, seed, options))
        taken += len(samples)
        for sample in samples:
            if not sample.valid:
                reasons[sample.reason] = reasons.get(sample.reason, 0) + 1
        for configuration, breakpoints in conclude(campaign, plan, samples).items():
            for b in breakpoints:
                cell = (b.target, configuration.key, b.rule)
                outcomes.append(Outcome(cell, b.state, b.wl, b.low, b.high))
    return outcomes, taken, reasons


def truths(campaign: Campaign, options: str) -> dict[Cell, float | None]:
    """True `capacity` and `sla` of every configuration; None where it lies out of range."""
    parsed = SimulationOptions.parse(options)
    return {
        (plan.target.name, configuration.key, rule): true.wl
        for plan in campaign.targets
        for configuration in campaign.configurations(plan)
        for rule, true in Truth(campaign, plan.target, configuration, parsed)
        .breakpoints(rules=("capacity", "sla"))
        .items()
    }


@dataclass(frozen=True)
class Row:
    """One cell over all seeds. Where the truth is None, no seed should have found anything."""

    cell: Cell
    truth: float | None
    seeds: int
    found: int
    median_error: float
    covered: int
    median_width: float


def score(true: dict[Cell, float | None], outcomes: list[Outcome]) -> list[Row]:
    rows = []
    for cell, value in true.items():
        own = [o for o in outcomes if o.cell == cell]
        if not own:
            continue
        found = [o for o in own if o.state == "found" and o.wl and o.low and o.high]
        rows.append(
            Row(
                cell,
                value,
                len(own),
                len(found),
                median(abs(math.log(o.wl / value)) for o in found) if found and value else math.nan,
                sum(o.low <= value <= o.high for o in found) if value else 0,
                median(math.log(o.high / o.low) for o in found) if found else math.nan,
            )
        )
    return rows


def run(
    campaign: Campaign, seeds: int, options: str, workers: int
) -> tuple[list[Row], int, dict[str, int]]:
    """What each cell concludes against its truth; samples taken, invalid ones by reason."""
    jobs = [(campaign, seed, options) for seed in range(1, seeds + 1)]
    outcomes: list[Outcome] = []
    taken, reasons = 0, dict[str, int]()
    with ProcessPoolExecutor(workers) as pool:
        for found, count, invalid in pool.map(one_seed, jobs):
            outcomes += found
            taken += count
            for reason, number in invalid.items():
                reasons[reason] = reasons.get(reason, 0) + number
    return score(truths(campaign, options), outcomes), taken, reasons


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--campaign", default="demo")
    parser.add_argument("--lab-options", default="")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    campaign = campaign_of(chosen.campaign)
    rows, taken, reasons = run(campaign, chosen.seeds, chosen.lab_options, chosen.workers)
    print(f"{chosen.seeds} seeds, {taken} samples, invalid: {reasons or 'none'}")
    print("| target | configuration | rule | truth | found | median error | covered | width |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        target, configuration, rule = row.cell
        truth = "out of range" if row.truth is None else f"{row.truth:.4g}"
        scored = row.truth is not None and row.found
        error = f"{row.median_error:.1%}" if scored else "-"
        covered = f"{row.covered}/{row.seeds}" if scored else "-"
        width = f"{row.median_width:.1%}" if row.found else "-"
        print(
            f"| {target} | {configuration} | {rule} | {truth} | {row.found}/{row.seeds} | "
            f"{error} | {covered} | {width} |"
        )


if __name__ == "__main__":
    main()
