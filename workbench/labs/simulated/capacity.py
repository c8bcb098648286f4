"""What a function carries at an allocation, and under a load: the laws of METHOD.md 11."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from workbench.labs.simulated.component_models import ComponentModel
from workbench.labs.simulated.noise import stream
from workbench.labs.simulated.options import CapacityLaw, SimulationOptions


class CapacityGrowth(Protocol):
    """Capacity at v vCPUs over v times the capacity at one; 1 at one vCPU and below for v > 1
    where nothing is lost."""

    def __call__(self, part: ComponentModel, vcpu: float) -> float: ...


def power(part: ComponentModel, vcpu: float) -> float:
    """C(v) = C(1) v^alpha (METHOD.md 12.1)."""
    return float(vcpu ** (part.alpha - 1.0))


def scalability(part: ComponentModel, vcpu: float) -> float:
    """C(v) = C(1) v / (1 + σ(v-1) + κv(v-1)) above one vCPU: Gunther's universal scalability law
    (Gunther 2007, Guerrilla Capacity Planning, eq. 4.33)."""
    more = max(vcpu - 1.0, 0.0)
    return 1.0 / (1.0 + part.serial * more + part.coherence * vcpu * more)


GROWTH: Mapping[CapacityLaw, CapacityGrowth] = {"power": power, "scalability": scalability}


def usable_cores(part: ComponentModel, vcpu: float) -> float:
    """Cores of an allotment that the function can run on."""
    if part.steps and vcpu > 1.0:
        vcpu = math.floor(vcpu)
    return min(vcpu, part.stops_at) if part.stops_at else vcpu


def efficiency(
    options: SimulationOptions, part: ComponentModel, name: str, configuration: str, vcpu: float
) -> float:
    """Factor on what a core carries: law, losses, unsmooth effects and spread of capacities."""
    value = GROWTH[options.capacity_law](part, vcpu)
    if part.loses_share and vcpu >= part.loses_from:
        value *= 1.0 - part.loses_share
    if part.effect_sd:
        rng = stream(options.world, "effect", name, configuration)
        value *= math.exp(float(rng.normal(0.0, part.effect_sd)))
    if options.capacity_spread:
        place = float(stream(options.world, "spread", name).uniform(-1.0, 1.0))
        value *= math.exp(place * math.log(options.capacity_spread))
    return value


def under_load(part: ComponentModel, load: float, degraded: bool = False) -> float:
    """Capacity under a load, over the nominal one.

    Parameters
    ----------
    load : offered load over nominal capacity, ρ.
    degraded : whether it was overloaded and has not recovered.

    Throughput bends on a parabola from ρ at 1-w to 1 at 1+w; so that capacity has no step there,
    it has fallen from 1 at 1-2w. Above ρ = 1 it decays as a power of ρ, to 1-decay at twice the
    load.
    """
    value, width = 1.0, part.knee_width
    if width and abs(load - 1.0) < width:
        value = load - (load - 1.0 + width) ** 2 / (4.0 * width)
    elif width and 1.0 - 2.0 * width < load < 1.0:
        value = 2.0 - 2.0 * width - load
    if part.decay and load > 1.0:
        value *= load ** math.log2(1.0 - part.decay)
    return min(value, 1.0 - part.decay) if degraded else value
