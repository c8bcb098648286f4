"""What a deployment costs, and the allowed ones by rising cost."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from workbench.domain.errors import NothingAllowed, UsageError
from workbench.domain.parameters import Combination, Parameter, ParameterValue, grid
from workbench.domain.recommendations import Deployment, PriceTable
from workbench.domain.resources import known

T = TypeVar("T")

_DIGITS = 12
"""Sums of the same prices in another order differ in their last bits; that is no difference."""


class Cost(Protocol):
    """Registered under `workbench.costs`: a class, or a function without arguments that makes one.

    A deployment costs what its instances cost together, so that allocations can be had by rising
    cost without listing them all. `unit` says what of: vCPU, or a currency per hour.
    """

    unit: str

    def of_instance(self, vnf: str, resources: Mapping[str, ParameterValue]) -> float:
        """An hour of one instance, from 0 on; `resources` by plain name (`vcpu`, `flavor`).

        Raises
        ------
        UsageError
            If these resources have no price.
        """
        ...


class VcpuHours:
    """The cores of all instances."""

    unit = "vCPU"

    def of_instance(self, vnf: str, resources: Mapping[str, ParameterValue]) -> float:
        if "vcpu" not in resources:
            raise UsageError(
                "is allotted no vCPU, so that vCPU say nothing of its cost",
                where=vnf,
                remedy="Give a price table",
            )
        return float(resources["vcpu"])


class Prices:
    """A price table: what a flavor costs, or else the sum of what is allotted.

    Parameters
    ----------
    table : PriceTable
        Resources without a price in it are free beside others that have one.
    """

    def __init__(self, table: PriceTable) -> None:
        self.table = table
        self.unit = f"{table.currency}/h"

    def of_instance(self, vnf: str, resources: Mapping[str, ParameterValue]) -> float:
        table = self.table
        flavor = resources.get("flavor")
        if flavor in table.flavors:
            return table.instance + table.flavors[str(flavor)]
        priced = [
            table.per_hour[one.price] * float(resources[key]) / one.priced_amount
            for key, one in known().items()
            if key in resources and one.price in table.per_hour
        ]
        if not priced:
            what = f"flavor {flavor!r}" if flavor else " or ".join(resources) or "an instance"
            raise UsageError(
                f"has no price for {what} of {vnf}",
                where=f"price table {table.name}",
                remedy="Add one, or choose another cost",
            )
        return table.instance + sum(priced)


def cost_of(deployment: Deployment, cost: Cost) -> float:
    """What all instances of a deployment cost together, an hour."""
    return round(
        sum(
            deployment.instances(vnf) * cost.of_instance(vnf, plain(own))
            for vnf, own in deployment.functions.items()
        ),
        _DIGITS,
    )


def plain(resources: Mapping[str, ParameterValue]) -> dict[str, ParameterValue]:
    """Resources of a function by their last part: `haproxy.vcpu` is `vcpu`."""
    return {key.rpartition(".")[2]: value for key, value in resources.items()}


@dataclass(frozen=True)
class Option:
    """One way to deploy a function: resources of one instance, and how many.

    It may bring its own balancer, whose resources stand beside.
    """

    cost: float
    resources: Mapping[str, ParameterValue]
    replicas: Mapping[str, int] = field(default_factory=dict)

    @property
    def order(self) -> tuple[float, int, str]:
        """Cheapest first, then the fewest instances; the rest is so that order never varies."""
        text = repr(sorted(self.resources.items()))
        return round(self.cost, _DIGITS), sum(self.replicas.values()), text


def options_of(resources: Sequence[Parameter], cost: Cost) -> dict[str, tuple[Option, ...]]:
    """Every allotment of every function, by rising cost.

    Raises
    ------
    NothingAllowed
        If there is no parameter, or one has no value.
    UsageError
        If the cost function knows no price.
    """
    by_vnf: dict[str, list[Parameter]] = {}
    for parameter in resources:
        if not parameter.values:
            raise NothingAllowed("no value is allowed", where=parameter.key)
        by_vnf.setdefault(parameter.key.rpartition(".")[0], []).append(parameter)
    if not by_vnf:
        raise NothingAllowed(
            "no allocation is allowed", remedy="Say which values each function may be given"
        )
    return {
        vnf: tuple(
            sorted(
                (
                    Option(cost.of_instance(vnf, plain(own)), own, {vnf: 1})
                    for own in (one.resources for one in grid(tuple(parameters), ()))
                ),
                key=lambda option: option.order,
            )
        )
        for vnf, parameters in by_vnf.items()
    }


def allowed(
    resources: Sequence[Parameter], cost: Cost, combine: Combination = "every"
) -> Iterator[Deployment]:
    """The allowed allocations of single instances, by rising cost (P of paper A, Eq. 3).

    Ties come in the same order every time. `combine` is as for `grid`: by `places`, only the
    stated pairs are allowed. Raises as `options_of` does.
    """
    if combine == "every":
        yield from by_cost(tuple(options_of(resources, cost).values()))
        return
    if not resources or not all(parameter.values for parameter in resources):
        raise NothingAllowed(
            "no allocation is allowed", remedy="Say which values each function may be given"
        )
    pairs = []
    for configuration in grid(tuple(resources), (), combine):
        single = Deployment(configuration.resources)
        one_each = Deployment(configuration.resources, dict.fromkeys(single.functions, 1))
        pairs.append((cost_of(single, cost), configuration.key, one_each))
    yield from (deployment for _, _, deployment in sorted(pairs, key=lambda pair: pair[:2]))


def by_cost(options: Sequence[Sequence[Option]]) -> Iterator[Deployment]:
    """Every combination of one option of each function, by rising cost.

    Each sequence is sorted. Sums of sorted terms are had in order from a heap of the combinations
    that are next to those given out; only that frontier is ever held.
    """
    first = (0,) * len(options)
    frontier = [(_order(options, first), first)]
    seen = {first}
    while frontier:
        _, places = heapq.heappop(frontier)
        seen.discard(places)
        chosen = [own[place] for own, place in zip(options, places, strict=True)]
        yield Deployment(_merged(o.resources for o in chosen), _merged(o.replicas for o in chosen))
        for function, own in enumerate(options):
            following = (*places[:function], places[function] + 1, *places[function + 1 :])
            if following[function] < len(own) and following not in seen:
                seen.add(following)
                heapq.heappush(frontier, (_order(options, following), following))


def _order(options: Sequence[Sequence[Option]], places: tuple[int, ...]) -> tuple[float, int]:
    chosen = [own[place] for own, place in zip(options, places, strict=True)]
    total = math.fsum(option.cost for option in chosen)
    return round(total, _DIGITS), sum(sum(option.replicas.values()) for option in chosen)


def _merged(mappings: Iterable[Mapping[str, T]]) -> dict[str, T]:
    return {key: value for mapping in mappings for key, value in mapping.items()}
