"""Several instances of a function behind a load balancer (paper A, section 4).

A function that is at its largest allocation and still too slow can only be had more than once: one
firewall carries 130 concurrent requests, so that 400 need four. Each of k instances gets wl/k, and
the balancer is a function of the chain like any other, at the whole load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.domain.errors import UsageError
from workbench.domain.parameters import Configuration, Parameter, ParameterValue
from workbench.domain.recommendations import Deployment
from workbench.domain.resources import known
from workbench.domain.topology import Node, Parallel, Series, Vnf
from workbench.models.base import Floats
from workbench.models.forecast import Forecast, Forecaster
from workbench.sla.costs import Cost, Option, by_cost, options_of
from workbench.sla.performance import UsageForecaster, shares

MOST_INSTANCES = 8


@dataclass(frozen=True)
class Balancer:
    """What splits the load over the instances of one function.

    Attributes
    ----------
    vnf : its name in the chain, and its template.
    resources : what it may be allotted; empty where it stands in the chain anyway.
    """

    vnf: Vnf
    resources: tuple[Parameter, ...] = ()


def size(resources: Mapping[str, ParameterValue]) -> tuple[float, ...]:
    """How large an allotment is: by cores, then memory, then the others in their order."""
    amounts = {key.rpartition(".")[2]: value for key, value in resources.items()}
    return tuple(float(amounts.get(key, 0.0)) for key in known())


def replicated(
    resources: Sequence[Parameter],
    balancers: Mapping[str, Balancer],
    cost: Cost,
    *,
    most_instances: int = MOST_INSTANCES,
) -> Iterator[Deployment]:
    """Deployments with at least one function in several instances, by rising cost.

    Only a function that has a balancer, and only at its largest allotment, is had more than once.

    Parameters
    ----------
    resources : of the functions of the chain.
    balancers : by the function that they stand before, each with a name of its own.
    most_instances : of one function.

    Raises
    ------
    UsageError
        If a balancer stands before two functions, or before one that is not there.
    NothingAllowed
        As `costs.options_of`.
    """
    options = options_of(resources, cost)
    names = [balancer.vnf.name for balancer in balancers.values()]
    for vnf, balancer in balancers.items():
        if vnf not in options:
            raise UsageError("is no function whose resources can be set", where=vnf)
        if names.count(balancer.vnf.name) > 1 or balancer.vnf.name == vnf:
            raise UsageError(
                "cannot balance the load of two functions, nor its own", where=balancer.vnf.name
            )
    every = [
        tuple(
            sorted(
                (*own, *_multiplied(vnf, own, balancers[vnf], cost, most_instances)),
                key=lambda option: option.order,
            )
        )
        if vnf in balancers
        else own
        for vnf, own in options.items()
    ]
    for deployment in by_cost(every):
        if any(count > 1 for count in deployment.replicas.values()):
            yield deployment


def _multiplied(
    vnf: str, own: Sequence[Option], balancer: Balancer, cost: Cost, most: int
) -> Iterator[Option]:
    largest = max(own, key=lambda option: size(option.resources))
    beside = (
        options_of(balancer.resources, cost)[balancer.vnf.name]
        if balancer.resources
        else (Option(0.0, {}),)
    )
    for count in range(2, most + 1):
        for one in beside:
            yield Option(
                count * largest.cost + one.cost,
                {**largest.resources, **one.resources},
                {vnf: count, **one.replicas},
            )


def spread(graph: Node, replicas: Mapping[str, int], balancers: Mapping[str, Balancer]) -> Node:
    """The chain with every instance in it: `firewall` three times is `firewall-1` to `-3`.

    The load is split evenly. A balancer that is not in the chain is put before its function.
    """
    present = set(_names(graph))

    def walk(node: Node) -> Node:
        match node:
            case Series(parts):
                walked = [walk(part) for part in parts]
                # What follows each other is one series: labs and rules need not look into it.
                flat = [w.parts if isinstance(w, Series) else (w,) for w in walked]
                return Series(tuple(part for parts in flat for part in parts))
            case Parallel(branches, shares):
                return Parallel(tuple(walk(branch) for branch in branches), shares)
            case Vnf(name, template):
                count = replicas.get(name, 1)
                if count == 1:
                    return node
                copies = tuple(Vnf(copy, template) for copy in instances(name, count))
                split = Parallel(copies, (1.0 / count,) * count)
                balancer = balancers[name].vnf
                return split if balancer.name in present else Series((balancer, split))

    return walk(graph)


def instances(vnf: str, count: int) -> tuple[str, ...]:
    """Names of a function's instances; a single one keeps its own."""
    return (vnf,) if count == 1 else tuple(f"{vnf}-{place}" for place in range(1, count + 1))


def spread_allocation(deployment: Deployment) -> dict[str, ParameterValue]:
    """The allocation with the resources of every instance, under the names of `instances`."""
    return {
        f"{copy}.{key.rpartition('.')[2]}": value
        for vnf, own in deployment.functions.items()
        for copy in instances(vnf, deployment.instances(vnf))
        for key, value in own.items()
    }


def _names(node: Node) -> Iterator[str]:
    match node:
        case Vnf(name):
            yield name
        case Series(parts):
            for part in parts:
                yield from _names(part)
        case Parallel(branches):
            for branch in branches:
                yield from _names(branch)


class ChainPerformance:
    """Performance of a chain whose functions may have several instances.

    Parameters
    ----------
    graph : the chain, each function once.
    kpis : that `forecaster` can be asked for.
    workload : values of all workload parameters but `wl`.
    forecaster : makes the forecaster of a KPI of a chain, instances and balancers included
        (`workbench.chains.composition.ChainForecaster`). Configurations name the resources of
        each instance. Asked once for each number of instances and KPI.
    balancers : by function.
    usage : the same for the CPU of its functions.
    """

    def __init__(
        self,
        graph: Node,
        kpis: Sequence[str],
        workload: Mapping[str, ParameterValue],
        forecaster: Callable[[Node, str], Forecaster],
        balancers: Mapping[str, Balancer] | None = None,
        usage: Callable[[Node], UsageForecaster] | None = None,
    ) -> None:
        self.graph, self._kpis, self._workload = graph, tuple(kpis), workload
        self._forecaster, self._usage = forecaster, usage
        self._balancers = balancers or {}
        self._made: dict[tuple[Node, str], Forecaster] = {}
        self._users: dict[Node, UsageForecaster] = {}

    @property
    def kpis(self) -> tuple[str, ...]:
        return self._kpis

    def forecast(self, kpi: str, deployments: Sequence[Deployment], wl: Floats) -> Forecast:
        mean, low, high = (np.empty(len(deployments)) for _ in range(3))
        extrapolates = np.empty(len(deployments), dtype=bool)
        for graph, places in self._by_graph(deployments).items():
            if (graph, kpi) not in self._made:
                self._made[graph, kpi] = self._forecaster(graph, kpi)
            points = [(self._configuration(deployments[p]), float(wl[p])) for p in places]
            said = self._made[graph, kpi].forecast(points)
            mean[places], low[places], high[places] = said.mean, said.low, said.high
            extrapolates[places] = said.extrapolates
        return Forecast(mean, low, high, extrapolates)

    def usage(self, deployments: Sequence[Deployment], wl: float) -> Sequence[Mapping[str, float]]:
        """Of a function with several instances, that of the first: all carry the same."""
        found: list[Mapping[str, float]] = [{} for _ in deployments]
        if self._usage is None:
            return found
        for graph, places in self._by_graph(deployments).items():
            if graph not in self._users:
                self._users[graph] = self._usage(graph)
            configurations = [self._configuration(deployments[place]) for place in places]
            told = shares(self._users[graph], configurations, wl)
            for place, share in zip(places, told, strict=True):
                deployment = deployments[place]
                first = {f: instances(f, deployment.instances(f))[0] for f in deployment.functions}
                found[place] = {f: share[copy] for f, copy in first.items() if copy in share}
        return found

    def _by_graph(self, deployments: Sequence[Deployment]) -> dict[Node, list[int]]:
        groups: dict[Node, list[int]] = {}
        for place, deployment in enumerate(deployments):
            graph = spread(self.graph, deployment.replicas, self._balancers)
            groups.setdefault(graph, []).append(place)
        return groups

    def _configuration(self, deployment: Deployment) -> Configuration:
        return Configuration(spread_allocation(deployment), self._workload)
