"""Forecasts made by hand, for tests: a law of configuration and load, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from workbench.domain.parameters import Configuration, Parameter, Sla
from workbench.models.forecast import Forecast, Points
from workbench.models.scales import NORMAL_95
from workbench.sla.profiled import Profiled

Law = Callable[[Configuration, float], float]


@dataclass
class Foretold:
    """A forecaster: `law` is the KPI in its unit, `sd` the log standard deviation.

    `known` are the loads between which nothing is extrapolated; `counted` counts the points.
    """

    kpi: str
    law: Law
    sd: float = 0.05
    known: tuple[float, float] = (0.0, math.inf)
    most_vcpu: float = math.inf
    counted: int = 0

    def forecast(self, points: Points) -> Forecast:
        self.counted += len(points)
        mean = np.log([self.law(configuration, wl) for configuration, wl in points])
        half = NORMAL_95 * self.sd
        low, high = self.known
        beyond = [
            not low <= wl <= high
            or any(float(value) > self.most_vcpu for value in configuration.resources.values())
            for configuration, wl in points
        ]
        return Forecast(mean, mean - half, mean + half, np.array(beyond, dtype=bool))


def response(configuration: Configuration, wl: float) -> float:
    """100 ms a client and core of the slower of `proxy` and `cache`, which is twice as fast."""
    return max(100.0 * wl / configuration.vcpu("proxy"), 50.0 * wl / configuration.vcpu("cache"))


PROXY = Parameter("proxy.vcpu", (0.25, 0.5, 1.0, 2.0))
CACHE = Parameter("cache.vcpu", (0.25, 0.5, 1.0, 2.0))


def profiled(
    values: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0),
    loads: tuple[float, float] = (1.0, 100.0),
    **more: object,
) -> Profiled:
    points = [
        (Configuration({"proxy.vcpu": one, "cache.vcpu": other}, {"filesize_bytes": 1e4}), wl)
        for one in values
        for other in values
        for wl in loads
    ]
    return Profiled.of(points, "concurrent", **more)  # type: ignore[arg-type]


def p95(limit: float, wl: float | None = 10.0, **workload: float) -> Sla:
    return Sla("p95_ms", limit, "<=", wl, workload)


def at_least(limit: float, wl: float | None = 10.0, kpi: str = "throughput_rps") -> Sla:
    return Sla(kpi, limit, ">=", wl)


def vcpus(allocation: Mapping[str, object]) -> tuple[object, object]:
    return allocation["proxy.vcpu"], allocation["cache.vcpu"]
