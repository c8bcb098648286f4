"""What the simulated lab is asked in trials: its own noise, and allocations that are tried."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import numpy as np
from bench_truth.playing import bench_of, visit

from chain_science.grids import FIRST, Grid
from chain_science.questions import KPI
from chain_science.worlds import options_of
from workbench.domain.campaign import TargetPlan
from workbench.domain.lab import HostNoise, MeasureHost
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.recommendations import Deployment
from workbench.domain.samples import Sample
from workbench.engine.answers.verification_steps import (
    ATTEMPTS,
    UNDECIDED_REPEATS,
    overloaded,
    tried_of,
    typical,
    worth_repeating,
)
from workbench.engine.learning.sampler_worker import first_s
from workbench.labs.simulated.options import SimulationOptions
from workbench.measuring.floor import variance_floor
from workbench.measuring.noise import components
from workbench.sla.sla_query import Question
from workbench.sla.updated_by_trials import Tried

QUIET = 10.0
"""Clients of the host's own noise: few, so that nothing queues."""
TRIAL_SEEDS = 10_000
"""Trials of a world count their deployments' seeds from that times its own on."""


def host_noise(grid: Grid) -> HostNoise:
    """The host's own noise as `doctor --measure` tells it: a function deployed again and again,
    visited twice on each deployment."""
    visits = np.array(asyncio.run(_visits(grid)))
    found = components(visits)
    return HostNoise(
        lab="sim",
        generator="",
        measured_at=0.0,
        samples=visits.size,
        deployments=len(visits),
        window_sd={KPI: found.window_sd},
        restart_sd={KPI: found.restart_sd},
        drift_sd={KPI: found.drift_sd},
        smallest_difference={KPI: found.smallest_difference},
        source_limit_rps=0.0,
    )


async def _visits(grid: Grid) -> list[list[float]]:
    campaign, plan = grid.campaign, grid.functions[0]
    options = SimulationOptions.parse(options_of(grid.name, grid.seed))
    bench = bench_of(campaign, TRIAL_SEEDS * (grid.seed + 1), options)
    await bench.lab.open()
    largest = campaign.configurations(plan)[-1]
    found: list[list[float]] = []
    for block in range(MeasureHost.pairs):
        own: list[float] = []
        while len(own) < 2:
            point = OperatingPoint(plan.target.name, largest, QUIET, len(own))
            sample = await visit(bench, plan, point, first_s(campaign, [], point), block=block)
            own.append(sample.kpis[KPI].value)
        found.append(own)
    await bench.lab.close()
    return found


class TrialLab:
    """Measures deployments of a chain, each started anew, as `engine.trials` does: what was seen of
    the host's noise says how wide an interval is at least."""

    def __init__(
        self,
        grid: Grid,
        plan: TargetPlan,
        workload: Mapping[str, float | str],
        noise: HostNoise,
    ) -> None:
        self._campaign, self._plan, self._workload = grid.campaign, plan, workload
        known = [s for s in grid.samples if s.point.repetition == FIRST]
        self._floor = variance_floor(known, noise)
        self._options = SimulationOptions.parse(options_of(grid.name, grid.seed))
        self._seed = TRIAL_SEEDS * (grid.seed + 1)

    def tried(self, deployment: Deployment, question: Question) -> Tried | None:
        self._seed += 1
        return asyncio.run(self._tried(deployment, question))

    async def _tried(self, deployment: Deployment, question: Question) -> Tried | None:
        bench = bench_of(self._campaign, self._seed, self._options)
        await bench.lab.open()
        configuration = Configuration(dict(deployment.allocation), dict(self._workload))
        target, deploying_s = self._plan.target, 0.0
        samples: list[Sample] = []
        for repetition in range(ATTEMPTS + UNDECIDED_REPEATS):
            point = OperatingPoint(target.name, configuration, question.wl, repetition)
            seconds = first_s(self._campaign, samples, point)
            sample = await visit(bench, self._plan, point, seconds, self._floor)
            deploying_s = bench.lab_s - sample.lab_s if not repetition else deploying_s
            if sample.valid:
                samples.append(sample)
                if not worth_repeating(samples, question.limits, deploying_s):
                    break
            elif overloaded(sample, target) or repetition + 1 == ATTEMPTS:
                break
        await bench.lab.close()
        told = typical(samples or [sample], question.limits)
        return tried_of(deployment, target, told, question.limits)
