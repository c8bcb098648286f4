"""A chain of two proxies as METHOD.md 9 found it: slow by a constant where its functions are fast.

Each function alone carries its capacity from the first client on (closed loop, no think time):
R_i(n) = n / C_i. The chain adds a constant to the unloaded times, and follows the bottleneck where
that takes longer; the knee between the two is rounded, as no formula of ours is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from workbench.domain.parameters import Configuration, OperatingPoint, PrimaryWorkload
from workbench.domain.samples import Estimate, Finding, Sample
from workbench.models.base import Floats
from workbench.models.forecast import Forecast, Points

CHAIN = "tinyproxy-haproxy"
CLIENTS = PrimaryWorkload("clients", 1.0, 128.0, integer=True)
KPI_MAX = 20_000.0
PER_CORE = {"tinyproxy": 3.4, "haproxy": 16.0}
"""Requests per ms of a whole core."""
NOISE = 0.05


def setting(tinyproxy: float = 0.25, haproxy: float = 0.25, size: float = 1e4) -> Configuration:
    return Configuration(
        {"tinyproxy.vcpu": tinyproxy, "haproxy.vcpu": haproxy}, {"filesize_bytes": size}
    )


SETTINGS = tuple(setting(t, h) for t in (0.25, 0.5) for h in (0.125, 0.25))


def sample(
    wl: float,
    mean_ms: float,
    configuration: Configuration = SETTINGS[0],
    *,
    repetition: int = 0,
    reason: str = "",
    overloaded: bool = False,
    noise: float = NOISE,
    lab_s: float = 5.0,
    at: float = 0.0,
    target: str = CHAIN,
    kpi: str = "mean_ms",
) -> Sample:
    width = math.exp(1.96 * noise)
    estimate = Estimate(mean_ms, mean_ms / width, mean_ms * width)
    if overloaded:
        estimate = Estimate(mean_ms, mean_ms, KPI_MAX)
    return Sample(
        id=f"{target}/{configuration.key}/{wl:g}/{repetition}",
        point=OperatingPoint(target, configuration, wl, repetition),
        kpis={kpi: estimate},
        usage={},
        valid=not reason,
        findings=(Finding(reason, 1.0, 0.5, "seen in the test"),) if reason else (),  # type: ignore[arg-type]
        labels=("overloaded",) if overloaded else (),
        load_model="closed",
        kpi_definition="request",
        generator="synthetic 1",
        planned=1000,
        completed=1000,
        errors=0,
        unfinished=0,
        windows=1,
        batches=6,
        throttled_share=0.0,
        straddle_share=0.0,
        started_at=at,
        measured_s=4.0,
        lab_s=lab_s,
    )


@dataclass
class SyntheticChain:
    """Truth, samples, and what stand-alone profiles that are a little wrong say of it.

    `delta_ms` is what the order adds, `knee` how sharp the two regimes meet (large is sharp), None
    for a chain that is its weakest link. `own` is the log sd of each configuration's own factor,
    `shared` that of one deployment, `wrong` that of the profiles.
    """

    seed: int = 0
    delta_ms: float = 44.0
    knee: float | None = 6.0
    own: float = 0.04
    shared: float = 0.03
    wrong: float = 0.03
    noise: float = NOISE
    kpi: str = field(default="mean_ms", init=False)
    think_ms: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self._own = {c: self.random.normal(0.0, self.own) for c in SETTINGS}
        self._start = {c: self.random.normal(0.0, self.shared) for c in SETTINGS}
        self._wrong = {
            (name, v): self.random.normal(0.0, self.wrong)
            for name in PER_CORE
            for v in (0.125, 0.25, 0.5, 1.0)
        }

    # --------------------------------------------------------------- what is measured

    def truth(self, configuration: Configuration, wl: float) -> float:
        alone = [self._alone(configuration, name, wl) for name in PER_CORE]
        factor = math.exp(self._own.get(configuration, 0.0))
        if self.knee is None:
            return factor * max(alone)
        unloaded = sum(self._alone(configuration, n, 1.0) for n in PER_CORE) + self.delta_ms
        saturated = factor * max(alone)
        return float((unloaded**self.knee + saturated**self.knee) ** (1.0 / self.knee))

    def measure(self, configuration: Configuration, wl: float, repetition: int = 0) -> Sample:
        scatter = self.noise * self.random.standard_t(4) / math.sqrt(2.0)
        luck = self._start.get(configuration, 0.0)
        value = self.truth(configuration, wl) * math.exp(scatter + luck)
        return sample(wl, value, configuration, repetition=repetition, noise=self.noise)

    def lower_half(self, count: int, *configurations: Configuration) -> list[Sample]:
        """So many samples, the loads of the lower half dealt out to the configurations."""
        loads = np.linspace(1.0, 64.0, count)
        return [
            self.measure(configurations[k % len(configurations)], float(round(wl)))
            for k, wl in enumerate(loads)
        ]

    # --------------------------------------------------------------- what is predicted

    def bottleneck(self, points: Points) -> Floats:
        return np.log([max(self._profiled(c, wl).values()) for c, wl in points])

    def unloaded_sum(self, points: Points) -> Floats:
        return np.array([sum(self._profiled(c, 1.0).values()) for c, _ in points])

    def forecast(self, points: Points) -> Forecast:
        """The weakest link."""
        mean = self.bottleneck(points)
        half = 1.96 * self.wrong
        beyond = np.array([wl > CLIENTS.high for _, wl in points], dtype=bool)
        return Forecast(mean, mean - half, mean + half, beyond)

    def _alone(self, configuration: Configuration, name: str, wl: float) -> float:
        return wl / (PER_CORE[name] * configuration.vcpu(name))

    def _profiled(self, configuration: Configuration, wl: float) -> dict[str, float]:
        return {
            name: self._alone(configuration, name, wl)
            * math.exp(self._wrong.get((name, configuration.vcpu(name)), 0.0))
            for name in PER_CORE
        }


def upper_half(*configurations: Configuration) -> list[tuple[Configuration, float]]:
    return [(c, float(wl)) for c in configurations for wl in range(70, 129, 6)]
