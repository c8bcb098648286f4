"""CPU per request of a function that was profiled alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.forecast import Forecaster, Points, ProfileForecaster
from workbench.models.interpolation import LogInterpolation
from workbench.models.scales import UNKNOWN_LOG_SD
from workbench.models.selection import must_be_alike, rate_kpi
from workbench.models.table import Column, Table, columns_of, rows_of

DEMAND = "cpu_ms_per_request"
"""CPU time per request or packet that was carried, in ms."""
LOST_PCT = 3.0
"""A sample that loses more says little of CPU per request: what is lost has cost CPU, too."""

BANDWIDTH = 0.5
"""Of the log rate, over which CPU per request alone is smoothed: the rates of a factor of three."""


def cpu_demand(
    target: str, vnf: str, samples: Sequence[Sample], primary: PrimaryWorkload
) -> ProfileForecaster:
    """CPU time per request of a function over its loads, as a forecaster of `DEMAND`.

    By the utilisation law (Denning & Buzen 1978), usage is throughput times this demand. Unlike
    usage it hardly depends on load or allocation, so that little is lost where it is extrapolated:
    it is interpolated in logs between the samples, and outside of them the nearest holds.

    Parameters
    ----------
    target, vnf : the profiled target and the function's name in it.
    samples : any; of this target, valid ones that carried something and say what the function used.

    Raises
    ------
    DataError
        If there is no such sample, or if they are of different kinds.
    """
    used = _used(target, vnf, samples)
    return _forecaster(target, vnf, used, primary.name, [s.point.wl for s in used])


def cores_measured(
    target: str, vnf: str, samples: Sequence[Sample], primary: PrimaryWorkload
) -> ProfileForecaster:
    """The cores that a function of a target took in its own samples, over their loads.

    Takes, interpolates and raises as `cpu_demand`.
    """
    used = _used(target, vnf, samples)
    cores = np.log([s.usage[vnf].cpu_cores for s in used])
    return _forecaster(target, vnf, used, primary.name, [s.point.wl for s in used], cores)


@dataclass(frozen=True)
class CpuAlone:
    """The cores that a function alone takes for what it carries.

    It is asked by what it carries, not by its load: behind others it may get less of the same
    load, and CPU per request falls with the rate on every real host.

    Attributes
    ----------
    per_request : forecaster of `DEMAND` over requests or packets per second.
    fixed : cores that it takes whatever it carries.
    """

    per_request: Forecaster
    fixed: float

    @classmethod
    def of(cls, target: str, vnf: str, samples: Sequence[Sample]) -> CpuAlone:
        """Takes and raises what `cpu_demand` does."""
        used = _used(target, vnf, samples)
        rates = [carried(s) for s in used]
        smooth = _smoothed(used, vnf)
        return cls(_forecaster(target, vnf, used, "carried", rates, smooth), _fixed(used, vnf))

    def cores(self, points: Points) -> Floats:
        """Of shape (m,), for configurations and rates."""
        rates = np.array([rate for _, rate in points])
        return np.asarray(np.exp(self.per_request.forecast(points).mean) * rates / 1000.0)


def carried(sample: Sample) -> float:
    """Requests or packets per second that came through; 0 where that is not stated."""
    name = rate_kpi(sample)
    return sample.kpis[name].value if name else 0.0


def loses(sample: Sample) -> bool:
    """Whether what was lost or answered with an error has cost CPU that counts."""
    return any((sample.kpi(name) or 0.0) > LOST_PCT for name in (kpis.LOSS, kpis.ERRORS))


def _used(target: str, vnf: str, samples: Sequence[Sample]) -> list[Sample]:
    used = [
        s
        for s in samples
        if s.point.target == target
        and s.valid
        and carried(s) > 0.0
        and vnf in s.usage
        and s.usage[vnf].cpu_cores > 0.0
    ]
    if not used:
        raise DataError(
            "no valid sample says what CPU it used", where=vnf, remedy=f"Measure {target} first"
        )
    must_be_alike(used)
    return used


def _forecaster(
    target: str,
    vnf: str,
    used: Sequence[Sample],
    load: str,
    loads: Sequence[float],
    y: Floats | None = None,
) -> ProfileForecaster:
    configurations = [s.point.configuration for s in used]
    columns = (*columns_of(configurations), Column(load, "primary"))
    X = rows_of(columns, zip(configurations, loads, strict=True))
    y = _logs(used, vnf) if y is None else y
    table = Table(
        target,
        DEMAND,
        columns,
        X,
        y,
        np.full(len(y), UNKNOWN_LOG_SD),
        np.unique(X, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64),
        np.unique(X[:, :-1], axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64),
        tuple(s.id for s in used),
        math.inf,
    )
    model = LogInterpolation(categorical=table.categorical).fit(X, y, table.noise)
    return ProfileForecaster(table, model)


def _logs(used: Sequence[Sample], vnf: str) -> Floats:
    return np.asarray(np.log([1000.0 * s.usage[vnf].cpu_cores / carried(s) for s in used]))


def _smoothed(used: Sequence[Sample], vnf: str) -> Floats:
    """Log demand of each sample by a line through its neighbours over the log rate, of the same
    configuration: what is compared with it should not hold one sample's luck."""
    logs, rates = _logs(used, vnf), np.log([carried(s) for s in used])
    smooth = logs.copy()
    numbers: dict[Configuration, int] = {}
    groups = np.array([numbers.setdefault(s.point.configuration, len(numbers)) for s in used])
    for k, rate in enumerate(rates):
        own = groups == groups[k]
        x, y = rates[own] - rate, logs[own]
        weight = np.exp(-0.5 * np.square(x / BANDWIDTH))
        # A little ridge: alone, a sample has no slope.
        slope_xx = weight @ np.square(x - weight @ x / weight.sum()) + 1e-3
        centre, level = weight @ x / weight.sum(), weight @ y / weight.sum()
        smooth[k] = level - centre * (weight @ ((x - centre) * (y - level))) / slope_xx
    return smooth


def _fixed(used: Sequence[Sample], vnf: str) -> float:
    """Cores at rate 0, by lines of cores over rate, relative errors; 0 where none can be told.

    Of each configuration the lower half of its rates; the median over configurations.
    """
    found = []
    by_configuration: dict[Configuration, list[Sample]] = {}
    for sample in used:
        by_configuration.setdefault(sample.point.configuration, []).append(sample)
    for own in by_configuration.values():
        rates = np.array([carried(s) for s in own])
        low = rates <= 0.5 * rates.max()
        if len(np.unique(rates[low])) < 3:
            continue
        cores = np.array([s.usage[vnf].cpu_cores for s in own])[low]
        rows = np.column_stack([1.0 / cores, rates[low] / cores])
        found.append(float(np.linalg.lstsq(rows, np.ones(len(cores)), rcond=None)[0][0]))
    return max(float(np.median(found)), 0.0) if found else 0.0
