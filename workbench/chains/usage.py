"""The CPU that each function of a chain is expected to use."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from workbench.chains.base import family_of, functions_of, visits_of
from workbench.chains.capacity import CpuScale
from workbench.chains.composition import ChainForecaster, Outlook
from workbench.chains.function_profiles import Part
from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.topology import Node
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.models.scales import NORMAL_95


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
    scales : mapping of str to CpuScale, optional
        By instance name, CPU per request in the chain over that alone.

    Raises
    ------
    DataError
        If a part does not state its throughput, or has no demand.
    """

    def __init__(
        self,
        graph: Node,
        parts: Mapping[str, Part],
        demands: Mapping[str, Forecaster],
        scales: Mapping[str, CpuScale] | None = None,
    ) -> None:
        self._scales = scales or {}
        names = [vnf.name for vnf in functions_of(graph)]
        for name in names:
            if name in parts and parts[name].target not in demands:
                raise DataError("nothing is known of the CPU that it uses", where=name)
        packets = any(family_of(part.load_model) == "packets" for part in parts.values())
        rate = kpis.carried("packets" if packets else "requests")
        self._throughput = ChainForecaster(graph, parts, rate, scales=self._scales)
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
        scale = self._scales.get(name, CpuScale(0.0, 0.0))
        mean = demand.mean + scale.log + rate.mean + share - math.log(1000.0)
        below, above = (
            NORMAL_95 * np.hypot(math.hypot(scale.sd, scale.spread), np.hypot(one, other))
            for one, other in zip(demand.sd, rate.sd, strict=True)
        )
        unknown = demand.extrapolates | rate.extrapolates
        return _within(Forecast(mean, mean - below, mean + above, unknown), name, points)


class MeasuredUsage:
    """CPU of each function of a target that was itself measured, as its samples have it.

    Parameters
    ----------
    cores : mapping of str to Forecaster
        `cores_measured`, by instance name.
    """

    def __init__(self, cores: Mapping[str, Forecaster]) -> None:
        self._cores = cores

    def forecast(self, points: Points) -> dict[str, Forecast]:
        """As `ExpectedUsage.forecast`; nothing uses more than it is allotted."""
        told = {name: own.forecast(points) for name, own in self._cores.items()}
        return {name: _within(cores, name, points) for name, cores in told.items()}


def _within(said: Forecast, name: str, points: Points) -> Forecast:
    """Log cores up to those that the function has."""
    most = np.log([c.vcpu(name) or math.inf for c, _ in points])
    return Forecast(
        np.minimum(said.mean, most),
        np.minimum(said.low, most),
        np.minimum(said.high, most),
        said.extrapolates,
    )
