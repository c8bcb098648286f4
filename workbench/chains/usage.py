"""The CPU that each function of a chain is expected to use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.chains.base import family_of, functions_of, visits_of
from workbench.chains.composition import ChainForecaster, Outlook
from workbench.chains.parts import Part
from workbench.domain.errors import DataError
from workbench.domain.parameters import PrimaryWorkload
from workbench.domain.samples import Sample
from workbench.domain.topology import Node
from workbench.models.forecast import Forecast, Forecaster, Points, ProfileForecaster
from workbench.models.interpolation import LogInterpolation
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD
from workbench.models.selection import must_be_alike, rate_kpi
from workbench.models.table import Column, Table, columns_of, rows_of

DEMAND = "cpu_ms_per_request"
"""CPU time per request or packet that was carried, in ms."""


def cpu_demand(
    target: str, vnf: str, samples: Sequence[Sample], primary: PrimaryWorkload
) -> ProfileForecaster:
    """CPU time per request of a function, as a forecaster of `DEMAND`.

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
    used = [
        s
        for s in samples
        if s.point.target == target
        and s.valid
        and rate_kpi(s)
        and vnf in s.usage
        and s.usage[vnf].cpu_cores > 0.0
    ]
    if not used:
        raise DataError(
            "no valid sample says what CPU it used", where=vnf, remedy=f"Measure {target} first"
        )
    must_be_alike(used)
    configurations = [s.point.configuration for s in used]
    columns = (*columns_of(configurations), Column(primary.name, "primary"))
    X = rows_of(columns, zip(configurations, (s.point.wl for s in used), strict=True))
    y = np.log([1000.0 * s.usage[vnf].cpu_cores / _carried(s) for s in used])
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


def _carried(sample: Sample) -> float:
    name = rate_kpi(sample)
    return sample.kpis[name].value if name else 0.0


class ExpectedUsage:
    """CPU of each function of a chain, over configurations and loads.

    A function uses its demand times what it carries. In an open loop that is its own throughput at
    the load that reaches it. In a closed loop the slowest function decides what all carry: the
    chain's throughput, times the share that passes the function. Nothing uses more than it is
    allotted.

    Parameters
    ----------
    graph : Node
    parts : mapping of str to Part
        By instance name; each states its throughput.
    demands : mapping of str to Forecaster
        `cpu_demand`, by profiled target.

    Raises
    ------
    DataError
        If a part does not state its throughput, or has no demand.
    """

    def __init__(
        self, graph: Node, parts: Mapping[str, Part], demands: Mapping[str, Forecaster]
    ) -> None:
        names = [vnf.name for vnf in functions_of(graph)]
        for name in names:
            if name in parts and parts[name].target not in demands:
                raise DataError("nothing is known of the CPU that it uses", where=name)
        packets = any(family_of(part.load_model) == "packets" for part in parts.values())
        rate = "throughput_pps" if packets else "throughput_rps"
        self._throughput = ChainForecaster(graph, parts, rate)
        self._visits = visits_of(graph)
        self._parts, self._demands = parts, demands

    def forecast(self, points: Points) -> dict[str, Forecast]:
        """By instance name, log of the cores that each function uses, and its 95 % interval."""
        carried = self._throughput.outlook(points)
        return {name: self._of(name, points, carried) for name in self._visits}

    def _of(self, name: str, points: Points, carried: Outlook) -> Forecast:
        part, loads = self._parts[name], carried.loads[name]
        own = [part.configuration(configuration, name) for configuration, _ in points]
        demand = self._demands[part.target].forecast(list(zip(own, loads.tolist(), strict=True)))
        closed = self._throughput.family == "closed"
        rate = carried.chain if closed else carried.functions[name]
        share = math.log(self._visits[name]) if closed else 0.0
        allotted = np.array([c.vcpu(name) or math.inf for c, _ in points])
        most = np.log(allotted)
        mean = demand.mean + rate.mean + share - math.log(1000.0)
        below, above = (
            NORMAL_95 * np.hypot(one, other) for one, other in zip(demand.sd, rate.sd, strict=True)
        )
        return Forecast(
            np.minimum(mean, most),
            np.minimum(mean - below, most),
            np.minimum(mean + above, most),
            demand.extrapolates | rate.extrapolates,
        )
