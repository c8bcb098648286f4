"""What deployments cost, and that the allowed ones come by rising cost."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, product

import pytest

from workbench.domain.errors import NothingAllowed, UsageError
from workbench.domain.parameters import Parameter, ParameterValue
from workbench.domain.recommendations import Deployment, PriceTable
from workbench.sla.costs import Prices, VcpuHours, allowed, cost_of

VALUES = (0.25, 0.5, 1.0, 2.0, 4.0)


def three() -> tuple[Parameter, ...]:
    return tuple(Parameter(f"{vnf}.vcpu", VALUES) for vnf in ("a", "b", "c"))


def test_vcpu_hours_are_the_cores_of_all_instances() -> None:
    deployment = Deployment({"a.vcpu": 0.5, "b.vcpu": 1.0}, {"b": 4})
    assert cost_of(deployment, VcpuHours()) == 4.5


def test_a_function_without_cores_has_no_cost_in_vcpu_hours() -> None:
    with pytest.raises(UsageError, match="a: is allotted no vCPU"):
        cost_of(Deployment({"a.memory_bytes": 1e9}), VcpuHours())


def test_every_allocation_comes_once_and_none_is_cheaper_than_the_one_before() -> None:
    found = list(allowed(three(), VcpuHours()))
    costs = [cost_of(one, VcpuHours()) for one in found]
    assert costs == sorted(costs)
    assert {tuple(one.allocation.values()) for one in found} == set(product(VALUES, repeat=3))
    assert len(found) == 125
    assert found[0].replicas == {"a": 1, "b": 1, "c": 1}


def test_ties_come_in_the_same_order_whatever_order_the_values_are_given_in() -> None:
    backwards = tuple(Parameter(p.key, p.values[::-1]) for p in three())
    assert list(allowed(backwards, VcpuHours())) == list(allowed(three(), VcpuHours()))


def test_the_cheapest_are_had_without_listing_the_others() -> None:
    class Counted(VcpuHours):
        asked = 0

        def of_instance(self, vnf: str, resources: Mapping[str, ParameterValue]) -> float:
            self.asked += 1
            return super().of_instance(vnf, resources)

    cost = Counted()
    many = tuple(Parameter(f"f{n}.vcpu", VALUES) for n in range(12))  # 244 million allocations
    first = next(islice(allowed(many, cost), 500, None))
    assert cost_of(first, VcpuHours()) <= 4.5
    assert cost.asked == 12 * len(VALUES)


def test_by_places_only_the_stated_pairs_are_allowed() -> None:
    pair = (Parameter("a.vcpu", (2.0, 0.5)), Parameter("b.vcpu", (1.0, 0.25)))
    found = [tuple(one.allocation.values()) for one in allowed(pair, VcpuHours(), "places")]
    assert found == [(0.5, 0.25), (2.0, 1.0)]


@pytest.mark.parametrize("resources", [(), (Parameter("a.vcpu", ()),)])
@pytest.mark.parametrize("combine", ["every", "places"])
def test_without_an_allowed_value_there_is_a_sentence(
    resources: tuple[Parameter, ...], combine: str
) -> None:
    with pytest.raises(NothingAllowed, match="allowed"):
        list(allowed(resources, VcpuHours(), combine))  # type: ignore[arg-type]


SMALL_AND_LARGE = Parameter(
    "a.flavor",
    ("large", "small"),
    flavors={
        "small": {"vcpu": 0.5, "memory_bytes": 2.0**30},
        "large": {"vcpu": 1.0, "memory_bytes": 4 * 2.0**30},
    },
)


def test_a_flavor_costs_its_price_and_anything_else_the_sum_of_its_parts() -> None:
    table = PriceTable("shop", "EUR", {"small": 0.2}, {"vcpu": 0.1, "memory_gib": 0.01}, 0.05)
    found = {
        str(one.allocation["a.flavor"]): cost_of(one, Prices(table))
        for one in allowed((SMALL_AND_LARGE,), Prices(table))
    }
    assert found == {"small": pytest.approx(0.25), "large": pytest.approx(0.1 + 0.04 + 0.05)}
    assert list(found) == ["large", "small"], "the large one is on offer, and comes first"
    assert Prices(table).unit == "EUR/h"


def test_bandwidth_is_priced_by_the_gigabit() -> None:
    table = PriceTable("shop", "EUR", {}, {"vcpu": 0.1, "bandwidth_gbps": 0.5})
    deployment = Deployment({"a.vcpu": 1.0, "a.bandwidth_mbps": 200.0}, {"a": 3})
    assert cost_of(deployment, Prices(table)) == pytest.approx(0.6)


def test_what_has_no_price_is_named() -> None:
    table = PriceTable("shop", "EUR", {"small": 0.2})
    with pytest.raises(UsageError, match="price table shop: has no price for flavor 'large' of a"):
        list(allowed((SMALL_AND_LARGE,), Prices(table)))
