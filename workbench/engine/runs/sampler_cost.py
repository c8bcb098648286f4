"""What every registered sampler would cost, played against a stand-in before anything runs.

How long a sampler goes on depends on what it is told. The stand-in is a server per configuration,
flat up to a capacity that grows with its vCPUs, and overloaded above: the shape that the papers
describe, without noise. It answers in microseconds, and nothing of it is stored. A lab with noise
takes more samples of those who stop by what they see.

What takes too long to be played whole is played on some configurations, then on more of them while
time is left. The rest is on the straight line through the last two plays: what a sampler that
learns across configurations spends on the first ones is not counted again.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, replace

from workbench.domain import kpis
from workbench.domain.campaign import Campaign
from workbench.domain.errors import PluginError, WorkbenchError
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Estimate, Sample
from workbench.domain.sessions import SamplerCost
from workbench.engine.learning.guarded import GuardedSampler
from workbench.engine.learning.sampler_worker import space_of, visit_s
from workbench.engine.runs.planning import bypasses_s, make_plan
from workbench.labs.base import LabCosts
from workbench.sampling.base import Ask, Space

PLAY_S = 2.0
"""Seconds that one sampler is played for ..."""
PATIENCE = 3.0
"""... and how many times as long where the first play of a target has not ended by then: without
one there is no figure."""
FIRST_PLAYED = 2
"""Configurations of the first play."""
SLOWER = 3.0
"""How many times longer than its configurations say a play may take that is more than doubled: who
learns across configurations thinks of all of them for each ask."""
MOST_PLAYED = 2000
"""Samples of a play beyond which it is not begun: the guard looks at all of them for each ask."""
RESPONSE_MS = 2.0
INTERVAL = 1.1
"""Upper end of an interval over its figure."""


@dataclass(frozen=True)
class _Played:
    """What the play of some configurations of a target came to."""

    configurations: int = 0
    samples: float = 0.0
    visits_s: float = 0.0
    blocks: int = 0

    def reaching(self, configurations: int, before: _Played) -> _Played:
        """On the straight line from a smaller play through this one."""
        share = (configurations - self.configurations) / (
            self.configurations - before.configurations
        )
        return _Played(
            configurations,
            self.samples + share * max(self.samples - before.samples, 0.0),
            self.visits_s + share * max(self.visits_s - before.visits_s, 0.0),
            self.blocks,
        )


def cost_of(campaign: Campaign, lab: str, costs: LabCosts, seed: int, sampler: str) -> SamplerCost:
    """Samples and lab seconds of a campaign, were it run with that sampler.

    Samplers that the campaign does not name have their default options. Deployments are counted
    as a sampler asks for blocks. Runs in the worker process.
    """
    chosen = sampler == campaign.sampling.method
    options = campaign.sampling.options if chosen else {}
    sampling = replace(campaign.sampling, method=sampler, options=options)
    campaign = replace(campaign, sampling=sampling)
    samples, lab_s, begin = 0.0, 0.0, time.monotonic()
    played = planned = 0
    try:
        most = make_plan(campaign, lab, costs)
        bound = SamplerCost(sampler, most.samples, most.lab_s, "at_most", chosen)
        for number, plan in enumerate(campaign.targets, start=1):
            space = space_of(campaign, plan.target.name, seed, costs)
            until = begin + PLAY_S * number / len(campaign.targets)
            plays = _plays(campaign, space, costs, until, begin + PATIENCE * PLAY_S)
            if len(plays) == 1:
                return replace(bound, note=_unplayed(campaign, space))
            *_, before, last = plays
            target = last.reaching(len(space.configurations), before)
            played, planned = played + last.configurations, planned + target.configurations
            samples += target.samples
            lab_s += target.visits_s + target.blocks * costs.deploy_s
            lab_s += bypasses_s(campaign, lab, costs)
    except WorkbenchError as error:
        return SamplerCost(sampler, 0, 0.0, "unknown", chosen, str(error.what))
    if played == planned:
        return SamplerCost(sampler, round(samples), lab_s, "played", chosen)
    note = f"from {played} of {planned} configurations"
    most_samples = min(round(samples), most.samples)
    return SamplerCost(sampler, most_samples, lab_s, "scaled", chosen, note)


def _plays(
    campaign: Campaign, space: Space, costs: LabCosts, until: float, latest: float
) -> list[_Played]:
    """Plays of a target on ever more of its configurations, as long as time is left; the first is
    of none at all, and the next may take until `latest`.

    Raises
    ------
    WorkbenchError
        If the sampler refuses the campaign or breaks its contract.
    """
    order = list(space.configurations)
    random.Random(f"{space.seed}/{space.target}/foretelling").shuffle(order)
    plays = [_Played()]
    most = min(len(order), MOST_PLAYED // campaign.sampling.max_samples)
    count = min(FIRST_PLAYED, len(order))
    while plays[-1].configurations < count <= most:
        begin = time.monotonic()
        some = frozenset(order[:count])
        kept = tuple(c for c in space.configurations if c in some)
        limit = until if len(plays) > 1 else latest
        asks = _play(campaign, replace(space, configurations=kept), space, limit)
        if asks is None:
            break
        points = (OperatingPoint(space.target, a.configuration, a.wl) for a in asks)
        visits_s = sum(visit_s(campaign, point, costs) for point in points)
        plays.append(_Played(count, len(asks), visits_s, len({a.block for a in asks})))
        now = time.monotonic()
        each_s, left_s = (now - begin) / count, until - now
        larger = min(2 * count, most)
        if larger * each_s > left_s:
            break
        while larger < most and SLOWER * min(2 * larger, most) * each_s < left_s:
            larger = min(2 * larger, most)
        count = larger
    return plays


def _unplayed(campaign: Campaign, space: Space) -> str:
    """Why not even the first play came to its end."""
    first = min(FIRST_PLAYED, len(space.configurations))
    if first * campaign.sampling.max_samples > MOST_PLAYED:
        return f"over {MOST_PLAYED} samples are not played"
    return f"to play it takes over {PATIENCE * PLAY_S:g} s"


def _play(campaign: Campaign, space: Space, whole: Space, until: float) -> list[Ask] | None:
    """All asks for some of a target's configurations; None if the time is over before that."""
    sampler = GuardedSampler(campaign, space)
    asks: list[Ask] = []
    most = _most_vcpus(whole)
    while (ask := sampler.ask()) is not None and not sampler.set_aside:
        if time.monotonic() > until:
            return None
        asks.append(ask)
        sampler.tell([stand_in(ask, whole, most)])
    if sampler.set_aside:
        raise PluginError(sampler.set_aside)
    return asks


def stand_in(ask: Ask, space: Space, most_vcpus: float | None = None) -> Sample:
    """A valid sample of a server that is flat up to its capacity and overloaded above.

    Capacities lie around the middle of the range on a log scale, proportional to the vCPUs of the
    smallest function and with a seeded factor of each configuration. `most_vcpus` of all of them
    is given by who asks often.
    """
    rate = kpis.carried("packets" if space.load.unit == "packets" else "requests")
    capacity = _capacity(ask.configuration, space, most_vcpus or _most_vcpus(space))
    load = ask.wl / capacity
    is_open = space.load.kind == "open"
    response_ms = RESPONSE_MS / max(1.0 - min(load, 0.98), 0.02) if is_open else RESPONSE_MS
    stated = {name: min(ask.wl, capacity) for name in (rate, "goodput_mbps")}
    stated |= {kpis.LOSS: max(0.0, 100.0 * (1.0 - 1.0 / load)) if is_open else 0.0}
    stated |= {kpis.ERRORS: 0.0}
    if space.load.unit == "streams":
        stated[kpis.LAG] = 100.0 * (load > 1.0)
    overloaded = is_open and load > 1.0
    if not overloaded:
        slow = response_ms * (1.0 if is_open else max(1.0, load))
        asked = dict.fromkeys((*kpis.names("response_time", "other"), space.kpi))
        stated |= {name: slow * _tail(name) for name in asked if name not in stated}
    return Sample(
        id=f"{space.target}/{ask.configuration.key}/{ask.wl:g}/{ask.repetition}",
        point=OperatingPoint(space.target, ask.configuration, ask.wl, ask.repetition),
        kpis={k: Estimate(v, v / INTERVAL, v * INTERVAL) for k, v in stated.items()},
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


def _tail(kpi: str) -> float:
    """Times the mean: of an exponential tail whose p95 is twice the mean; 1 of what has none."""
    return max(1.0, 2.0 * math.log(1.0 - (kpis.of(kpi).quantile or 0.0)) / math.log(0.05))


def _capacity(configuration: Configuration, space: Space, most_vcpus: float) -> float:
    """In the unit of the primary workload."""
    middle = math.sqrt(space.primary.low * space.primary.high)
    luck = random.Random(f"{space.seed}/{space.target}/{configuration.key}").gauss(0.0, 0.2)
    return middle * math.sqrt(_vcpus(configuration) / most_vcpus) * 1.5 * math.exp(luck)


def _most_vcpus(space: Space) -> float:
    return max(map(_vcpus, space.configurations))


def _vcpus(configuration: Configuration) -> float:
    found = [
        float(value) for key, value in configuration.resources.items() if key.endswith(".vcpu")
    ]
    return min(found, default=1.0)
