"""Lab seconds per valid sample against fixed protocols, at equal interval width.

A fixed protocol drives every point for as long as it says, whatever is seen. The same judge states
its interval, from one drive of that length. Ours takes visits as a campaign does (warm-up, one
window, more where the judge asks for it) and repeats them until the interval of their mean is as
narrow. The mean over all lengths of luck is not the same for both: so the error against the truth
is compared as well as the width.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench_truth.families import BY_NAME, Family
from bench_truth.long_runs import Truth
from bench_truth.playing import bench_of, visit
from bench_truth.truths import Known
from workbench.domain.campaign import Campaign
from workbench.domain.parameters import OperatingPoint
from workbench.domain.samples import Sample
from workbench.engine.learning.sampler_worker import terms
from workbench.labs.simulated.options import SimulationOptions
from workbench.measuring.judging import first_drive_s

PROTOCOLS = {30.0: "30 s (D, VI.A)", 60.0: "60 s (A, 5.1)", 100.0: "100 s"}
"""Seconds of load per point. Paper A has up to 60 s for a point to ramp up and stabilise, paper D
30 s for each rate; 100 s is the longest that the issue names."""
FAMILIES = (
    "default",
    "windows",
    "student",
    "outliers",
    "restarts",
    "drift",
    "band",
    "interference",
)
"""Of noise, one law and size each."""
LOADS = (0.3, 0.7, 0.9, 1.3)
"""Shares of capacity."""
MOST_VISITS = 40


@dataclass(frozen=True)
class Race:
    """One operating point under one seed.

    `ours_s` and `fixed_s` are lab seconds; the errors are |log(measured / true)|.
    """

    family: str
    protocol_s: float
    load: float
    seed: int
    ours_s: float
    fixed_s: float
    visits: int
    ours_error: float
    fixed_error: float

    @property
    def ratio(self) -> float:
        return self.ours_s / self.fixed_s


def races(
    family_name: str,
    protocols: Sequence[float],
    seed: int,
    known: Known,
    loads: Sequence[float] = LOADS,
) -> list[Race]:
    """All loads and protocols under one seed; points that overload leaves without a figure in
    either are left out."""
    family: Family = BY_NAME[family_name]
    campaign, text = family.campaign(), family.lab_options(seed)
    options = SimulationOptions.parse(text)
    (plan,) = campaign.targets
    configuration = campaign.configurations(plan)[-1]
    capacity = known.of(family, seed)[configuration.key]["capacity"].wl
    assert capacity is not None
    truth = Truth(campaign, plan.target, configuration, options)
    found = []
    for load in loads:
        kpi = "p95_ms" if load < 1.0 else "throughput_rps"
        wl = float(f"{load * capacity:.4g}")
        point = OperatingPoint(plan.target.name, configuration, wl)
        true = truth.at(wl).kpi(kpi)
        ours = _Visits(campaign, point, seed, options, kpi)
        for seconds in protocols:
            fixed = asyncio.run(_drive_for(campaign, point, seed, options, seconds))
            width = _half_width(fixed, kpi)
            reached = ours.until(width) if width else None
            if reached is None:
                continue
            visits, spent_s, mean = reached
            found.append(
                Race(
                    family.name,
                    seconds,
                    load,
                    seed,
                    spent_s,
                    fixed.lab_s,
                    visits,
                    abs(mean - math.log(true)),
                    abs(math.log(fixed.kpis[kpi].value / true)),
                )
            )
    return found


class _Visits:
    """Visits to a point one after the other, each as a campaign takes it."""

    def __init__(
        self,
        campaign: Campaign,
        point: OperatingPoint,
        seed: int,
        options: SimulationOptions,
        kpi: str,
    ) -> None:
        self._point, self._kpi = point, kpi
        (self._plan,) = campaign.targets
        self._bench = bench_of(campaign, seed, options)
        self._first_s = first_drive_s(point, terms(campaign))
        self._taken: list[Sample] = []

    def until(self, half_width: float) -> tuple[int, float, float] | None:
        """Number, lab seconds and mean log KPI of the visits that make the interval of their mean
        that narrow: visits are independent, so it is the root of the squared widths over their
        number. None where they cannot state the KPI."""
        for count in range(1, MOST_VISITS + 1):
            if count > len(self._taken):
                self._taken.append(asyncio.run(self._visit(count)))
            taken = [s for s in self._taken[:count] if _half_width(s, self._kpi)]
            if not taken:
                continue
            widths = [_half_width(s, self._kpi) or 0.0 for s in taken]
            if math.sqrt(sum(w * w for w in widths)) / len(taken) <= half_width:
                spent_s = sum(s.lab_s for s in self._taken[:count])
                logs = [math.log(s.kpis[self._kpi].value) for s in taken]
                return count, spent_s, sum(logs) / len(logs)
        return None

    async def _visit(self, number: int) -> Sample:
        point = replace(self._point, repetition=number)
        return await visit(self._bench, self._plan, point, self._first_s)


async def _drive_for(
    campaign: Campaign,
    point: OperatingPoint,
    seed: int,
    options: SimulationOptions,
    seconds: float,
) -> Sample:
    """One drive of that length, judged with all of it but the warm-up."""
    warmup_s = campaign.windows.warmup_s
    fixed = replace(
        campaign,
        windows=replace(campaign.windows, window_s=seconds - warmup_s, timeout_s=seconds),
    )
    (plan,) = fixed.targets
    bench = bench_of(fixed, seed, options)
    return await visit(bench, plan, point, seconds)


def _half_width(sample: Sample, kpi: str) -> float | None:
    """Half the log width of a KPI's interval; None where the sample does not state it."""
    estimate = sample.kpis.get(kpi)
    if not sample.valid or estimate is None or estimate.low <= 0:
        return None
    return 0.5 * math.log(estimate.high / estimate.low)
