"""Profiles whose truth is a formula, for tests of what is composed of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from workbench.chains.function_profiles import Part
from workbench.domain.parameters import Configuration
from workbench.domain.topology import Vnf
from workbench.models.forecast import Forecast, Points
from workbench.models.scales import NORMAL_95, log_kpi

Formula = Callable[[float, float], float]
"""KPI in its unit from vCPUs and load."""
OPEN, CLOSED = "open-constant", "closed"


class Known:
    """A forecaster of a formula, with one log sd everywhere; it counts what it is asked."""

    def __init__(
        self, kpi: str, vnf: str, formula: Formula, sd: float, loads: tuple[float, float]
    ) -> None:
        self.kpi, self.asked = kpi, 0
        self._key, self._formula, self._sd, self._loads = f"{vnf}.vcpu", formula, sd, loads

    def forecast(self, points: Points) -> Forecast:
        self.asked += len(points)
        low, high = self._loads
        told = [(float(c.resources.get(self._key, 1.0)), wl) for c, wl in points]
        mean = np.array([log_kpi(self.kpi, self._formula(*at)) for at in told])
        half = NORMAL_95 * self._sd
        outside = np.array([not low <= wl <= high * (1 + 1e-9) for _, wl in told], dtype=bool)
        return Forecast(mean, mean - half, mean + half, outside)


def part(
    vnf: str,
    formulas: Mapping[str, Formula | float],
    *,
    load: str = OPEN,
    sd: float = 0.05,
    loads: tuple[float, float] = (1.0, 1000.0),
    vcpus: tuple[float, ...] = (),
    path_ms: float = 0.0,
) -> Part:
    """A function profiled alone; a number stands for a formula that is constant."""
    return Part(
        target=vnf,
        vnf=vnf,
        template=vnf,
        load_model=load,
        primary="rate" if load == OPEN else "concurrent",
        lowest_wl=loads[0],
        forecasters={
            kpi: Known(kpi, vnf, (lambda _, __, f=f: f) if isinstance(f, float) else f, sd, loads)
            for kpi, f in formulas.items()
        },
        profiled={f"{vnf}.vcpu": vcpus} if vcpus else {},
        loads=dict.fromkeys(formulas, loads),
        path_ms=path_ms,
    )


def named(*names: str) -> tuple[Vnf, ...]:
    return tuple(Vnf(name, name) for name in names)


def at(wl: float, **vcpus: float) -> tuple[Configuration, float]:
    return Configuration({f"{vnf}.vcpu": value for vnf, value in vcpus.items()}, {}), wl


def overload(capacity: float) -> Formula:
    """Loss in per cent of a function that carries `capacity` for each vCPU."""
    return lambda vcpu, wl: 100.0 * max(0.0, 1.0 - capacity * vcpu / wl)


def carried(capacity: float) -> Formula:
    return lambda vcpu, wl: min(wl, capacity * vcpu)
