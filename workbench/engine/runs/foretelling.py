"""What every registered sampler would cost, played against a stand-in before anything runs.

How long a sampler goes on depends on what it is told. The stand-in is a server per configuration,
flat up to a capacity that grows with its vCPUs, and overloaded above: the shape that the papers
describe, without noise. It answers in microseconds, and nothing of it is stored. A lab with noise
takes more samples of those who stop by what they see.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import replace

from workbench.domain.campaign import Campaign
from workbench.domain.errors import PluginError, WorkbenchError
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Estimate, Sample
from workbench.domain.sessions import SamplerCost
from workbench.engine.learning.advice import space_of, visit_s
from workbench.engine.learning.guarded import GuardedSampler
from workbench.engine.runs.planning import bypasses_s, make_plan
from workbench.labs.base import LabCosts
from workbench.sampling.base import Ask, Space

PLAY_S = 3.0
"""Seconds that one sampler is played for: of longer plays only the bound is told."""
MOST_PLAYED = 2000
"""Samples of a campaign beyond which nothing is played."""
RESPONSE_MS = 2.0
INTERVAL = 1.1
"""Upper end of an interval over its figure."""


def cost_of(campaign: Campaign, lab: str, costs: LabCosts, seed: int, sampler: str) -> SamplerCost:
    """Samples and lab seconds of a campaign, were it run with that sampler.

    Samplers that the campaign does not name have their default options. Deployments are counted
    as a sampler asks for blocks. Runs in the worker process.
    """
    chosen = sampler == campaign.sampling.method
    options = campaign.sampling.options if chosen else {}
    sampling = replace(campaign.sampling, method=sampler, options=options)
    campaign = replace(campaign, sampling=sampling)
    samples, lab_s = 0, 0.0
    try:
        most = make_plan(campaign, lab, costs)
        bound = SamplerCost(sampler, most.samples, most.lab_s, "at_most", chosen)
        if most.samples > MOST_PLAYED:
            return replace(bound, note=f"over {MOST_PLAYED} samples are not played")
        until = time.monotonic() + PLAY_S
        for plan in campaign.targets:
            space = space_of(campaign, plan.target.name, seed, costs)
            asks = _play(campaign, space, until)
            if asks is None:
                return replace(bound, note=f"to play it takes over {PLAY_S:g} s")
            points = (OperatingPoint(space.target, a.configuration, a.wl) for a in asks)
            blocks = len({a.block for a in asks})
            samples += len(asks)
            lab_s += sum(visit_s(campaign, point, costs) for point in points)
            lab_s += blocks * costs.deploy_s + bypasses_s(campaign, lab, costs)
    except WorkbenchError as error:
        return SamplerCost(sampler, 0, 0.0, "unknown", chosen, str(error.what))
    return SamplerCost(sampler, samples, lab_s, "played", chosen)


def _play(campaign: Campaign, space: Space, until: float) -> list[Ask] | None:
    """All asks for one target; None if the time is over before the sampler is.

    Raises
    ------
    WorkbenchError
        If the sampler refuses the campaign or breaks its contract.
    """
    sampler = GuardedSampler(campaign, space)
    asks: list[Ask] = []
    while (ask := sampler.ask()) is not None and not sampler.set_aside:
        if time.monotonic() > until:
            return None
        asks.append(ask)
        sampler.tell([stand_in(ask, space)])
    if sampler.set_aside:
        raise PluginError(sampler.set_aside)
    return asks


def stand_in(ask: Ask, space: Space) -> Sample:
    """A valid sample of a server that is flat up to its capacity and overloaded above.

    Capacities lie around the middle of the range on a log scale, proportional to the vCPUs of the
    smallest function and with a seeded factor of each configuration.
    """
    rate = f"throughput_{'pps' if space.load.unit == 'packets' else 'rps'}"
    capacity = _capacity(ask.configuration, space)
    load = ask.wl / capacity
    is_open = space.load.kind == "open"
    response_ms = RESPONSE_MS / max(1.0 - min(load, 0.98), 0.02) if is_open else RESPONSE_MS
    kpis = {
        rate: min(ask.wl, capacity),
        "goodput_mbps": min(ask.wl, capacity),
        "loss_pct": max(0.0, 100.0 * (1.0 - 1.0 / load)) if is_open else 0.0,
        "error_pct": 0.0,
    }
    overloaded = is_open and load > 1.0
    if not overloaded:
        slow = response_ms * (1.0 if is_open else max(1.0, load))
        kpis |= {"mean_ms": slow, "p50_ms": slow, "p95_ms": 2.0 * slow, "p99_ms": 3.0 * slow}
        kpis["jitter_ms"] = 0.1 * slow
    return Sample(
        id=f"{space.target}/{ask.configuration.key}/{ask.wl:g}/{ask.repetition}",
        point=OperatingPoint(space.target, ask.configuration, ask.wl, ask.repetition),
        kpis={k: Estimate(v, v / INTERVAL, v * INTERVAL) for k, v in kpis.items()},
        usage={},
        valid=True,
        findings=(),
        labels=("overloaded",) if overloaded else (),
        load_model=space.load.key,
        kpi_definition="planned" if is_open else "request",
        generator="stand-in",
        planned=1000,
        completed=1000,
        errors=0,
        unfinished=0,
        windows=1,
        batches=6,
        throttled_share=0.0,
        straddle_share=0.0,
        started_at=0.0,
        measured_s=space.costs.sample_s,
        lab_s=space.costs.sample_s,
        block=ask.block,
    )


def _capacity(configuration: Configuration, space: Space) -> float:
    """In the unit of the primary workload."""
    largest = max(map(_vcpus, space.configurations))
    middle = math.sqrt(space.primary.low * space.primary.high)
    luck = random.Random(f"{space.seed}/{space.target}/{configuration.key}").gauss(0.0, 0.2)
    return middle * math.sqrt(_vcpus(configuration) / largest) * 1.5 * math.exp(luck)


def _vcpus(configuration: Configuration) -> float:
    found = [
        float(value) for key, value in configuration.resources.items() if key.endswith(".vcpu")
    ]
    return min(found, default=1.0)
