"""Paper A, section 4: greedy scaling against the estimate from profiles, on a function by hand.

Closed loop without think time: X = min of the capacities, R = n/X. The figures are ours, such that
what the paper tells holds: one firewall carries 130 requests of 1 MB within 5 s; tinyproxy gains
little between 50 and 100 %; the firewall shows a busy CPU long before it is at its capacity (in
Fig. 5 its instances are scaled while another function limits).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from sla.foretold import Foretold, Law

from workbench.chains.composition import ChainForecaster
from workbench.chains.function_profiles import Part, parts_of
from workbench.chains.rules import WeakestLink as WeakestRule
from workbench.domain.parameters import Configuration, Parameter, Sla
from workbench.domain.recommendations import Deployment, GreedyRun, Recommendation
from workbench.domain.topology import Node, Parallel, Series, Vnf
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.models.scales import NORMAL_95
from workbench.sla.costs import VcpuHours, allowed
from workbench.sla.greedy import GreedyScaling, ladders
from workbench.sla.profiled import Profiled
from workbench.sla.recommendation import recommend
from workbench.sla.replicas import Balancer, ChainPerformance, replicated
from workbench.sla.sla_query import asked

SLA = Sla("p95_ms", 5000.0, "<=", 400.0, {"filesize_bytes": 1e6})
CHAIN = Series((Vnf("tinyproxy", "tinyproxy"), Vnf("firewall", "firewall")))
TINYPROXY = Parameter("tinyproxy.vcpu", (0.25, 0.5, 0.75, 1.0, 2.0, 3.0))
FIREWALL = Parameter("firewall.vcpu", (0.25, 0.5, 0.75, 1.0))
HAPROXY = Parameter("haproxy.vcpu", (0.25, 0.5, 0.75, 1.0))
BALANCERS = {"firewall": Balancer(Vnf("haproxy", "haproxy"), (HAPROXY,))}

PER_SECOND = {
    "tinyproxy": {0.25: 20.0, 0.5: 55.0, 0.75: 66.0, 1.0: 77.0, 2.0: 110.0, 3.0: 130.0},
    "haproxy": {0.25: 60.0, 0.5: 84.0, 0.75: 126.0, 1.0: 168.0},
    "firewall": {0.25: 6.5, 0.5: 13.0, 0.75: 19.5, 1.0: 26.0},
}
"""Requests a second that one instance carries, by its cores."""
BUSY_AT = {"tinyproxy": 1.0, "haproxy": 1.0, "firewall": 0.6}
"""Share of the capacity at which the CPU is fully used."""


class WeakestLink:
    """The largest of the response times of all functions, each at the clients that reach it."""

    kpi = "p95_ms"

    def __init__(self, graph: Node) -> None:
        self.graph = graph

    def forecast(self, points: Points) -> Forecast:
        mean = np.log([self._time(self.graph, c, wl) for c, wl in points])
        half = NORMAL_95 * 0.01
        beyond = np.zeros(len(points), dtype=bool)
        return Forecast(mean, mean - half, mean + half, beyond)

    def _time(self, node: Node, configuration: Configuration, wl: float) -> float:
        match node:
            case Vnf(name, template):
                return 1000.0 * wl / PER_SECOND[template][configuration.vcpu(name)]
            case Series(parts):
                return max(self._time(part, configuration, wl) for part in parts)
            case Parallel(branches, shares):
                split = zip(branches, shares, strict=True)
                return max(self._time(branch, configuration, wl * share) for branch, share in split)


def forecaster(graph: Node, kpi: str) -> Forecaster:
    assert kpi == "p95_ms"
    return WeakestLink(graph)


def measured(deployment: Deployment, wl: float) -> tuple[dict[str, float], dict[str, float]]:
    """What the lab would show: R = n/X, and the usage at that throughput."""
    capacity = {
        vnf: deployment.instances(vnf) * PER_SECOND[vnf][float(own[f"{vnf}.vcpu"])]
        for vnf, own in deployment.functions.items()
    }
    carried = min(capacity.values())
    usage = {vnf: min(1.0, carried / (BUSY_AT[vnf] * most)) for vnf, most in capacity.items()}
    return {"p95_ms": 1000.0 * wl / carried}, usage


def profiled() -> Profiled:
    points = [
        (Configuration({parameter.key: value}, {"filesize_bytes": 1e6}), wl)
        for parameter in (TINYPROXY, FIREWALL, HAPROXY)
        for value in parameter.values
        for wl in (1.0, 1000.0)
    ]
    return Profiled.of(points, "concurrent", integer=True)


def greedy() -> GreedyRun:
    scaling = GreedyScaling([SLA], [400.0], ladders((TINYPROXY, FIREWALL)), balancers=BALANCERS)
    while (step := scaling.ask()) is not None:
        scaling.tell(*measured(*step), lab_s=30.0)
    return scaling.result(on_lab=True)


def by_rule(graph: Node, kpi: str) -> Forecaster:
    """The same by the chain's own rule, from a profile of each function."""
    profiles = [
        Part(
            target=vnf,
            vnf=vnf,
            template=vnf,
            load_model="closed",
            primary="concurrent",
            lowest_wl=1.0,
            forecasters={kpi: Foretold(kpi, _law(vnf), 0.01, (1.0, 1000.0))},
        )
        for vnf in PER_SECOND
    ]
    return ChainForecaster(graph, parts_of(graph, profiles), kpi, WeakestRule(), draws=100)


def _law(vnf: str) -> Law:
    return lambda configuration, wl: 1000.0 * wl / PER_SECOND[vnf][configuration.vcpu(vnf)]


def estimated(made: Callable[[Node, str], Forecaster] = forecaster) -> Recommendation:
    known, cost = profiled(), VcpuHours()
    question = asked([SLA], known, ("p95_ms",))
    performance = ChainPerformance(CHAIN, ("p95_ms",), question.workload, made, BALANCERS)
    resources = (TINYPROXY, FIREWALL)
    answer = recommend(
        question,
        performance,
        [allowed(resources, cost), replicated(resources, BALANCERS, cost)],
        known,
        cost,
    )
    return answer.recommendation("r1", "case", "study", model_version=0, at=0.0, profiling_s=600.0)


def test_one_firewall_carries_130_requests_so_that_400_need_four() -> None:
    chosen = estimated().chosen
    assert chosen is not None
    assert chosen.allocation == {"tinyproxy.vcpu": 2.0, "firewall.vcpu": 1.0, "haproxy.vcpu": 0.5}
    assert chosen.replicas == {"tinyproxy": 1, "firewall": 4, "haproxy": 1}
    assert chosen.cost == 6.5
    assert chosen.profiled, "each function was measured with its own part"
    assert chosen.margin_wl is not None
    assert 400.0 + chosen.margin_wl == math.floor(5.0 * 84.0 * math.exp(-1.645 * 0.01))
    kpis, _ = measured(chosen.deployment, 400.0)
    assert SLA.holds(kpis["p95_ms"]), "one shot, and it holds on the lab"


def test_forecasts_of_the_chain_split_the_load_and_lead_to_the_same_answer() -> None:
    by_hand, composed = estimated().chosen, estimated(by_rule).chosen
    assert by_hand is not None
    assert composed is not None
    assert composed.deployment == by_hand.deployment
    assert composed.kpis["p95_ms"].value == pytest.approx(by_hand.kpis["p95_ms"].value)


def test_greedy_scaling_takes_eight_iterations_and_ends_with_more_than_is_needed() -> None:
    run = greedy()
    assert run.met
    assert run.lab_iterations >= 8
    last = run.steps[-1]
    assert last.allocation == {"tinyproxy.vcpu": 2.0, "firewall.vcpu": 1.0, "haproxy.vcpu": 0.75}
    assert last.replicas["firewall"] == 5
    assert run.cost == 7.75
    first_split = next(step for step in run.steps if step.replicas["firewall"] == 2)
    assert first_split.allocation["haproxy.vcpu"] == 0.25


def test_both_ways_stand_side_by_side_as_in_table_1() -> None:
    measured_once = replace(estimated(), greedy=greedy(), lab_iterations=1, lab_s=30.0)
    by_greedy, by_profile = measured_once.ways
    assert (by_greedy.method, by_profile.method) == ("greedy", "profiled")
    assert by_greedy.lab_iterations == 8
    assert by_profile.lab_iterations == 1
    assert by_greedy.cost - by_profile.cost == pytest.approx(1.25)
    assert by_greedy.replicas["firewall"] - by_profile.replicas["firewall"] == 1
    assert by_greedy.allocation["haproxy.vcpu"] > by_profile.allocation["haproxy.vcpu"]
    assert by_greedy.allocation["tinyproxy.vcpu"] == by_profile.allocation["tinyproxy.vcpu"]
    assert (by_greedy.lab_s, by_greedy.lab_s_with_profiling) == (240.0, 240.0)
    assert (by_profile.lab_s, by_profile.lab_s_with_profiling) == (30.0, 630.0)
    # 600 s of profiling against 210 s saved each time.
    assert measured_once.slas_to_break_even == 3


def test_without_a_run_on_the_lab_nothing_breaks_even() -> None:
    alone = estimated()
    assert alone.slas_to_break_even is None
    assert [row.method for row in alone.ways] == ["profiled"]
    on_model = replace(greedy(), lab_iterations=0, lab_s=0.0)
    assert replace(alone, greedy=on_model).slas_to_break_even is None
