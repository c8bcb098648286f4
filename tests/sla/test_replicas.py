"""Instances behind a balancer: what is deployed, what it costs, what each of them gets."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.domain.errors import UsageError
from workbench.domain.parameters import Configuration, Parameter
from workbench.domain.recommendations import Deployment
from workbench.domain.topology import Node, Parallel, Series, Vnf
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.sla.costs import VcpuHours, cost_of
from workbench.sla.replicas import (
    Balancer,
    ChainPerformance,
    replicated,
    spread,
    spread_allocation,
)

CHAIN = Series((Vnf("proxy", "tinyproxy"), Vnf("wall", "firewall")))
RESOURCES = (Parameter("proxy.vcpu", (0.5, 1.0)), Parameter("wall.vcpu", (0.25, 1.0)))
BESIDE = {"wall": Balancer(Vnf("split", "haproxy"), (Parameter("split.vcpu", (0.25, 0.5)),))}


def test_only_the_largest_allotment_is_had_more_than_once_and_the_cheapest_comes_first() -> None:
    found = list(replicated(RESOURCES, BESIDE, VcpuHours(), most_instances=3))
    costs = [cost_of(one, VcpuHours()) for one in found]
    assert costs == sorted(costs)
    assert costs[0] == 0.5 + 0.25 + 2.0
    assert len(found) == 2 * 2 * 2, "two of proxy, two of the balancer, two or three instances"
    assert all(one.allocation["wall.vcpu"] == 1.0 for one in found)
    assert found[0].replicas == {"proxy": 1, "wall": 2, "split": 1}


def test_a_balancer_that_stands_in_the_chain_costs_nothing_more() -> None:
    inside = {"wall": Balancer(Vnf("proxy", "tinyproxy"))}
    found = next(replicated(RESOURCES, inside, VcpuHours()))
    assert cost_of(found, VcpuHours()) == 0.5 + 2.0
    assert spread(CHAIN, found.replicas, inside) == Series(
        (Vnf("proxy", "tinyproxy"), Parallel(_walls(2), (0.5, 0.5)))
    )


def test_the_chain_holds_every_instance_and_the_balancer() -> None:
    graph = spread(CHAIN, {"wall": 4}, BESIDE)
    assert graph == Series(
        (
            Vnf("proxy", "tinyproxy"),
            Vnf("split", "haproxy"),
            Parallel(_walls(4), (0.25,) * 4),
        )
    )
    assert spread(CHAIN, {"wall": 1}, BESIDE) == CHAIN
    deployment = Deployment({"proxy.vcpu": 0.5, "wall.vcpu": 1.0, "split.vcpu": 0.25}, {"wall": 2})
    assert spread_allocation(deployment) == {
        "proxy.vcpu": 0.5,
        "wall-1.vcpu": 1.0,
        "wall-2.vcpu": 1.0,
        "split.vcpu": 0.25,
    }


def _walls(count: int) -> tuple[Vnf, ...]:
    return tuple(Vnf(f"wall-{n}", "firewall") for n in range(1, count + 1))


@pytest.mark.parametrize(
    ("balancers", "sentence"),
    [
        ({"nobody": BESIDE["wall"]}, "nobody: is no function"),
        ({"wall": Balancer(Vnf("wall", "firewall"))}, "wall: cannot balance"),
        (dict.fromkeys(("wall", "proxy"), BESIDE["wall"]), "split: cannot balance the load of two"),
    ],
)
def test_a_balancer_that_cannot_be_is_refused(
    balancers: dict[str, Balancer], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        list(replicated(RESOURCES, balancers, VcpuHours()))


def test_each_number_of_instances_is_asked_of_its_own_chain_once() -> None:
    made: list[tuple[Node, str]] = []

    class Cores:
        kpi = "mean_ms"

        def forecast(self, points: Points) -> Forecast:
            mean = np.log([sum(map(float, c.resources.values())) * wl for c, wl in points])
            return Forecast(mean, mean, mean, np.zeros(len(points), dtype=bool))

    class Usage:
        def forecast(self, points: Points) -> dict[str, Forecast]:
            names = {key.partition(".")[0] for c, _ in points for key in c.resources}
            told = np.log(np.full(len(points), 0.25))
            return {n: Forecast(told, told, told, np.zeros(len(points), bool)) for n in names}

    def forecaster(graph: Node, kpi: str) -> Forecaster:
        made.append((graph, kpi))
        return Cores()

    performance = ChainPerformance(CHAIN, ("mean_ms",), {}, forecaster, BESIDE, lambda _: Usage())
    three = [
        Deployment({"proxy.vcpu": 0.5, "wall.vcpu": 1.0, "split.vcpu": 0.5}, {"wall": 2}),
        Deployment({"proxy.vcpu": 0.5, "wall.vcpu": 1.0}),
        Deployment({"proxy.vcpu": 1.0, "wall.vcpu": 1.0, "split.vcpu": 0.5}, {"wall": 2}),
    ]
    for _ in range(2):
        said = performance.forecast("mean_ms", three, np.array([1.0, 2.0, 3.0]))
        assert np.exp(said.mean) == pytest.approx([3.0, 3.0, 10.5])
    assert len(made) == 2
    usage = performance.usage(three, 5.0)
    assert usage[0] == {"proxy": 0.5, "wall": 0.25, "split": 0.5}
    assert usage[1] == {"proxy": 0.5, "wall": 0.25}
    assert Configuration(spread_allocation(three[1]), {}).vcpu("wall") == 1.0
