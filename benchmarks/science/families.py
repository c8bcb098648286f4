"""What a simulated function does to its KPI: laws of several families, free of noise.

A family turns a configuration and loads into a KPI in per cent. `shift` is what one visit's luck
adds to the log of the capacity. `Law` is the family that our pooled law is written for (METHOD.md
12, 1-2); the others are not: capacities that peak and fall, logistic and stepped shapes, effects
per configuration that no smooth function follows, a KPI that rises twice and one that never breaks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr, ndtr

from workbench.domain.parameters import Configuration

Floats = NDArray[np.float64]
Capacity = Callable[[Configuration], float]


class Family(Protocol):
    """A response surface: KPI in per cent, of shape (n,), at loads and shifts of shape (n,)."""

    def __call__(self, configuration: Configuration, wl: Floats, shift: Floats) -> Floats: ...


@cache
def luck(configuration: Configuration, name: str) -> float:
    """A standard normal figure that belongs to a configuration: unsmooth over its parameters."""
    key = f"{name}/{configuration.key}".encode()
    seed = int.from_bytes(blake2b(key, digest_size=8).digest(), "big")
    return float(np.random.default_rng(seed).standard_normal())


def value(configuration: Configuration, name: str) -> float:
    """A parameter by the last part of its key."""
    for key, found in (*configuration.resources.items(), *configuration.workload.items()):
        if key.rpartition(".")[2] == name:
            return float(found)
    raise KeyError(name)


def excess(x: Floats, width: float) -> Floats:
    """E[(1 - C'/wl)+] in per cent, C' log-normal with `width`, x = log(wl / C)."""
    share = ndtr(x / width) - np.exp(-x + width**2 / 2 + log_ndtr(x / width - width))
    return 100.0 * np.asarray(np.clip(share, 0.0, 1.0), dtype=float)


# ------------------------------------------------------------------------------- capacities


def firewall_law(configuration: Configuration) -> float:
    """Packets per second: a power of the vCPUs up to three of them, size and flows matter little
    (paper B, Fig. 3c and 8a)."""
    vcpu = min(value(configuration, "vcpu"), 3.0)
    size = 1.0 + 0.12 * value(configuration, "packetsize_bytes") / 1500.0
    return 42_000.0 * vcpu**0.95 / size * value(configuration, "flows") ** -0.012


def firewall_scalability(configuration: Configuration) -> float:
    """Universal scalability law with a peak near three vCPUs and less beyond it, a threshold in
    flows (a table that no longer fits) and 15 % of log-normal luck per configuration."""
    vcpu = value(configuration, "vcpu")
    scale = vcpu / (1.0 + 0.12 * max(vcpu - 1.0, 0.0) + 0.10 * vcpu * max(vcpu - 1.0, 0.0))
    scale *= min(vcpu, 1.0) ** 0.25  # a share below a core is worth less than its size
    table = 0.75 if value(configuration, "flows") >= 1000.0 else 1.0
    size = 0.9 if value(configuration, "packetsize_bytes") > 1024.0 else 1.0
    return 48_000.0 * scale * table * size * math.exp(0.15 * luck(configuration, "scalability"))


BITRATES_MBPS = (2.5, 1.6, 0.9, 0.45, 0.2)
"""Of qualities 1 to 5 (paper B, 4.2)."""


def streams_by_cpu(configuration: Configuration) -> float:
    """Streams that the vCPUs serve beside the transcoding of the movies; three at most help."""
    rate = BITRATES_MBPS[int(value(configuration, "quality")) - 1]
    vcpu = min(value(configuration, "vcpu"), 3.0)
    cost = 0.55 + 0.35 * rate
    return 620.0 * vcpu**0.9 / cost * value(configuration, "movies") ** -0.2


def streams_by_bandwidth(configuration: Configuration) -> float:
    rate = BITRATES_MBPS[int(value(configuration, "quality")) - 1]
    return 0.9 * value(configuration, "bandwidth_mbps") / rate


def streaming_law(configuration: Configuration) -> float:
    """The scarcer of CPU and bandwidth: flavors with the same bandwidth overlap where it is the
    bandwidth (paper B, Fig. 3d)."""
    return min(streams_by_cpu(configuration), streams_by_bandwidth(configuration))


def streaming_interference(configuration: Configuration) -> float:
    """CPU and bandwidth get into each other's way near balance, 15 % of luck per configuration."""
    power = 3.0
    both = streams_by_cpu(configuration) ** -power + streams_by_bandwidth(configuration) ** -power
    return float(both ** (-1.0 / power) * math.exp(0.15 * luck(configuration, "interference")))


# ----------------------------------------------------------------------------------- shapes


@dataclass(frozen=True)
class Law:
    """Flat, breakpoint, steep: what exceeds a capacity that scatters a little."""

    capacity: Capacity
    width: float = 0.06

    def __call__(self, configuration: Configuration, wl: Floats, shift: Floats) -> Floats:
        return excess(np.log(wl / self.capacity(configuration)) - shift, self.width)


@dataclass(frozen=True)
class Logistic:
    """A soft knee, logistic in log load; its slope differs by configuration, and goodput
    collapses beyond it."""

    capacity: Capacity

    def __call__(self, configuration: Configuration, wl: Floats, shift: Floats) -> Floats:
        x = np.log(wl / self.capacity(configuration)) - shift
        slope = 9.0 * math.exp(0.25 * luck(configuration, "slope"))
        served = 1.0 - expit(slope * (x - 0.12))
        return np.asarray(100.0 * (1.0 - served * np.exp(-0.3 * np.maximum(x, 0.0))), dtype=float)


@dataclass(frozen=True)
class Steps:
    """Clients step down in quality before they lag in earnest: three steps with plateaus."""

    capacity: Capacity

    def __call__(self, configuration: Configuration, wl: Floats, shift: Floats) -> Floats:
        x = np.log(wl / self.capacity(configuration)) - shift
        stretch = math.exp(0.2 * luck(configuration, "stretch"))
        lag = np.zeros_like(x)
        for height, at in ((2.0, 0.0), (7.0, 0.3), (20.0, 0.6), (65.0, 1.1)):
            lag += height * expit((x - at * stretch) / 0.03)
        return lag


@dataclass(frozen=True)
class Expiry:
    """Not monotone: entries of flows that are idle for a second are swept, so that few packets
    per flow lose more than many; beyond the capacity loss rises again."""

    capacity: Capacity

    def __call__(self, configuration: Configuration, wl: Floats, shift: Floats) -> Floats:
        capacity = self.capacity(configuration) * math.exp(0.1 * luck(configuration, "expiry"))
        per_flow = wl / value(configuration, "flows")
        swept = 0.06 / (1.0 + (per_flow / 2.0) ** 2)
        over = excess(np.log(wl / capacity) - shift, 0.08) / 100.0
        return np.asarray(100.0 * (1.0 - (1.0 - swept) * (1.0 - over)), dtype=float)


@dataclass(frozen=True)
class Creeping:
    """No breakpoint anywhere: lag creeps up as a power of the streams."""

    capacity: Capacity

    def __call__(self, configuration: Configuration, wl: Floats, shift: Floats) -> Floats:
        strain = 1_000.0 / self.capacity(configuration)
        top = 6.0 * strain**0.6 * math.exp(0.1 * luck(configuration, "creeping"))
        power = 0.7 + 0.1 * value(configuration, "movies") / 5.0
        creeping = min(top, 22.0) * (wl * np.exp(-shift) / 5_000.0) ** power
        return np.asarray(creeping, dtype=float)
