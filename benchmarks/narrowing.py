"""What looking after every window costs: coverage of intervals that were driven until narrow.

    python benchmarks/narrowing.py [--seeds 100] [--workers 2]

The simulated lab drives one point window after window, up to ten. After each the judge is
asked for its interval; the visit ends at the first that is narrow enough. Whether that interval
holds the truth (the KPI of all requests of all windows of all seeds, which none stopped) is
counted, for several factors on its width. The lab's noise is of half seconds, which is what
batches see: the floor, which pays for everything slower, is off.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean

from bench_truth.long_runs import Truth

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign, WindowPlan
from workbench.domain.parameters import LoadModel, OperatingPoint
from workbench.domain.samples import Estimate, LatencyHistogram, Window
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab, SimulationOptions
from workbench.measuring.censoring import Distribution
from workbench.measuring.floor import VarianceFloor
from workbench.measuring.histograms import merge
from workbench.measuring.judging import Terms, judge
from workbench.measuring.narrowing import FACTOR, MIN_WINDOWS, more_helps
from workbench.measuring.records import Drive
from workbench.paths import Workspace

CAMPAIGN = Path(__file__).parents[1] / "tests" / "data" / "small.yaml"
OPTIONS = SimulationOptions(
    window_sd=0.0, tail_sd=0.0, delay_sd=0.0, restart_sd=0.0, drift_sd=0.0, jitter_sd=0.12
)
NO_FLOOR = VarianceFloor({}, {}, {})
LOADS = (0.3, 0.45, 0.6)
"""Shares of the capacity. At 0.8 and more a few half seconds in a hundred lack quota and hold most
of the long-run mean: what did not happen in a visit none of its intervals tells."""
KPIS = ("mean_ms", "p95_ms")
INTERVALS = (0.008, 0.01, 0.015)
FACTORS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
DRIVE_S = 4.5
DRIVES = 10
"""Three quarters of a minute of load."""


@dataclass(frozen=True)
class Look:
    """What the judge says after one more drive."""

    windows: int
    """Steady ones so far."""
    left: int
    """Drives that the visit could still have."""
    kpis: Mapping[str, Estimate]


@dataclass(frozen=True)
class Visit:
    """All looks that found a valid sample, and every latency of the last one's windows."""

    looks: tuple[Look, ...]
    responses: LatencyHistogram


@dataclass(frozen=True)
class Point:
    share: float
    wl: float


def campaign() -> Campaign:
    workspace = Workspace(CAMPAIGN.parent)
    made = load_campaign(str(CAMPAIGN), workspace=workspace).campaign
    return replace(made, load=LoadModel("open", arrivals="poisson"))


def points(made: Campaign) -> list[Point]:
    """Loads at shares of the capacity of the first configuration."""
    plan = made.targets[0]
    truth = Truth(made, plan.target, made.configurations(plan)[0], OPTIONS)
    return [Point(share, share * truth.capacity()) for share in LOADS]


def truth_of(point: Point, visits: Sequence[tuple[Point, Visit]]) -> dict[str, float]:
    """KPIs in the long run, ms: those of all requests together, as the judge pools them."""
    every = merge([visit.responses for at, visit in visits if at == point])
    latencies = Distribution.of(every)
    figures = {"mean_ms": latencies.mean(), "p95_ms": latencies.quantile(0.95)}
    return {kpi: figure * 1e3 for kpi, figure in figures.items() if figure is not None}


async def drive(point: Point, seed: int) -> Visit:
    made = campaign()
    plan = made.targets[0]
    configuration = made.configurations(plan)[0]
    lab = SimulatedLab(made, LabSettings(session="narrowing", seed=seed), options=OPTIONS)
    await lab.open()
    await lab.deploy(plan.target, configuration)
    await lab.allocate(configuration)
    at = OperatingPoint(plan.target.name, configuration, point.wl)
    terms = Terms(made.load, WindowPlan(), None, "p95_ms", NO_FLOOR)
    drives: list[Drive] = []
    looks: list[Look] = []
    windows: tuple[Window, ...] = ()
    for left in reversed(range(DRIVES)):
        drives.append(await lab.drive(at, DRIVE_S, lambda _: None))
        measured = judge(drives, at, terms, started_at=0.0, lab_s=0.0).measurement
        if measured.sample.valid:
            looks.append(Look(measured.sample.windows, left, measured.sample.kpis))
            windows = measured.windows
    return Visit(tuple(looks), merge([window.response for window in windows]))


def one(job: tuple[Point, int]) -> Visit:
    return asyncio.run(drive(*job))


def widened(estimate: Estimate, factor: float) -> Estimate:
    """What the judge states with another factor; intervals are symmetric in logs."""
    ratio = (estimate.high / estimate.value) ** factor
    return Estimate(estimate.value, estimate.value / ratio, estimate.value * ratio)


def stopped(kpi: str, visit: Visit, interval: float, factor: float) -> tuple[Estimate, int]:
    """The interval at which a visit ends, and after how many windows."""
    for look in visit.looks:
        stated = widened(look.kpis[kpi], factor)
        if not more_helps(kpi, stated, interval, look.windows, look.left, NO_FLOOR):
            break
    return stated, look.windows


def held(kpi: str, visit: Visit, windows: int, true: float) -> bool | None:
    """Whether the interval after so many windows, at which nobody looked, holds the truth."""
    found = next((look.kpis[kpi] for look in visit.looks if look.windows == windows), None)
    return None if found is None else found.low <= true <= found.high


def share(hits: Sequence[bool]) -> float:
    return sum(hits) / len(hits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()

    jobs = list(product(points(campaign()), range(given.seeds)))
    with ProcessPoolExecutor(given.workers) as workers:
        driven = workers.map(one, jobs, chunksize=4)
        visits = [(point, visit) for (point, _), visit in zip(jobs, driven, strict=True)]
    visits = [(point, visit) for point, visit in visits if visit.looks]
    true = {point: truth_of(point, visits) for point in points(campaign())}
    print(f"seeds 0-{given.seeds - 1}, {len(visits)} of {len(jobs)} visits valid; ", end="")
    print(f"at least {MIN_WINDOWS} windows, at most {DRIVES}")
    print(f"{'KPI':8} {'half width':>10} {'windows':>8}" + "".join(f"{f:>8.1f}" for f in FACTORS))
    pooled: dict[float, list[bool]] = {factor: [] for factor in FACTORS}
    for kpi, interval in product(KPIS, INTERVALS):
        cells, windows = [], []
        for factor in FACTORS:
            hits = []
            for point, visit in visits:
                estimate, count = stopped(kpi, visit, interval, factor)
                hits.append(estimate.low <= true[point][kpi] <= estimate.high)
                windows += [count] if factor == FACTOR else []
            pooled[factor] += hits
            cells.append(f"{share(hits):8.1%}")
        print(f"{kpi:8} {interval:>10.1%} {fmean(windows):>8.1f}" + "".join(cells))
    print(f"{'pooled':28}" + "".join(f"{share(hits):8.1%}" for hits in pooled.values()))
    print("nobody looked, factor 1:")
    for kpi, count in product(KPIS, (MIN_WINDOWS, DRIVES)):
        fixed = [held(kpi, visit, count, true[point][kpi]) for point, visit in visits]
        print(f"{kpi:8} {'':>10} {count:>8}{share([h for h in fixed if h is not None]):8.1%}")


if __name__ == "__main__":
    main()
