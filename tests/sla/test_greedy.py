"""Algorithm 1, step by step: what it scales, and how it ends."""

from __future__ import annotations

import pytest
from sla.foretold import Foretold, p95, response

from workbench.domain.parameters import Parameter, Sla
from workbench.domain.recommendations import GreedyRun
from workbench.domain.topology import Vnf
from workbench.sla.costs import VcpuHours
from workbench.sla.greedy import GreedyScaling, ladders, on_model
from workbench.sla.performance import ProfilePerformance
from workbench.sla.replicas import Balancer

LIMIT = Sla("p95_ms", 100.0, "<=", 50.0)
ALONE = Parameter("a.vcpu", (0.5, 3.0))


def run(scaling: GreedyScaling, told: list[tuple[float, dict[str, float]]]) -> GreedyRun:
    for kpi, usage in told:
        assert scaling.ask() is not None
        scaling.tell({"p95_ms": kpi}, usage, lab_s=10.0)
    assert scaling.ask() is None
    return scaling.result(on_lab=True)


def test_rungs_are_quarters_up_to_a_core_and_whole_cores_then() -> None:
    rungs = ladders((ALONE, Parameter("b.vcpu", (0.125, 0.6)), Parameter("a.memory_bytes", (1, 9))))
    assert [rung["a.vcpu"] for rung in rungs["a"]] == [0.25, 0.5, 0.75, 1.0, 2.0, 3.0]
    assert {rung["a.memory_bytes"] for rung in rungs["a"]} == {9}
    assert [rung["b.vcpu"] for rung in rungs["b"]] == [0.25, 0.5, 0.6]


def test_flavors_are_climbed_by_their_size() -> None:
    flavors = {"big": {"vcpu": 2.0}, "small": {"vcpu": 0.5}}
    rungs = ladders((Parameter("a.flavor", ("big", "small"), flavors=flavors),))
    assert [rung["a.flavor"] for rung in rungs["a"]] == ["small", "big"]


def test_only_functions_over_ninety_per_cent_are_scaled_while_the_limit_fails() -> None:
    rungs = ladders((ALONE, Parameter("b.vcpu", (1.0,))))
    scaling = GreedyScaling([LIMIT], [50.0], rungs)
    done = run(
        scaling,
        [(300.0, {"a": 0.95, "b": 0.89}), (200.0, {"a": 0.9, "b": 0.92}), (99.0, {"a": 1.0})],
    )
    assert [step.scaled for step in done.steps] == [("a",), ("a", "b"), ()]
    assert [step.allocation["a.vcpu"] for step in done.steps] == [0.25, 0.5, 0.75]
    assert done.met
    assert done.cost == 0.75 + 0.5
    assert (done.lab_iterations, done.lab_s, done.note) == (3, 30.0, "")


def test_the_load_rises_with_every_pass_and_stays_at_the_last() -> None:
    scaling = GreedyScaling([LIMIT], [10.0, 30.0, 50.0], ladders((ALONE,)))
    done = run(
        scaling, [(20.0, {"a": 0.5}), (150.0, {"a": 1.0}), (120.0, {"a": 1.0}), (90.0, {"a": 0.8})]
    )
    assert [step.wl for step in done.steps] == [10.0, 30.0, 50.0, 50.0]
    assert [step.allocation["a.vcpu"] for step in done.steps] == [0.25, 0.25, 0.5, 0.75]
    assert done.lab_iterations == 3, "the first allocation was measured at two loads"


def test_where_nobody_is_busy_nothing_is_scaled_and_the_run_ends() -> None:
    scaling = GreedyScaling([LIMIT], [20.0, 50.0], ladders((ALONE,)))
    done = run(scaling, [(300.0, {"a": 0.8}), (300.0, {"a": 0.8})])
    assert not done.met
    assert done.note == "No function uses 90% of its allocation, so that nothing is scaled."


def test_at_the_largest_allocation_it_ends_and_names_who_is_busy() -> None:
    scaling = GreedyScaling([LIMIT], [50.0], ladders((Parameter("a.vcpu", (0.5,)),)))
    done = run(scaling, [(300.0, {"a": 1.0}), (300.0, {"a": 1.0})])
    assert not done.met
    assert done.note == "At the largest allocation and still busy: a."


def test_behind_a_balancer_the_largest_gets_more_instances_up_to_what_is_allowed() -> None:
    balancer = Balancer(Vnf("lb", "haproxy"), (Parameter("lb.vcpu", (0.5,)),))
    scaling = GreedyScaling(
        [LIMIT],
        [50.0],
        ladders((Parameter("a.vcpu", (0.25,)),)),
        VcpuHours(),
        {"a": balancer},
        most_instances=3,
    )
    done = run(scaling, [(300.0, {"a": 1.0}), (200.0, {"a": 1.0, "lb": 0.95}), (150.0, {"a": 1.0})])
    assert [step.replicas for step in done.steps] == [
        {"a": 1},
        {"a": 2, "lb": 1},
        {"a": 3, "lb": 1},
    ]
    assert [step.allocation.get("lb.vcpu") for step in done.steps] == [None, 0.25, 0.5]
    assert done.cost == 3 * 0.25 + 0.5
    assert not done.met


def test_it_runs_on_a_model_and_then_takes_no_lab_iterations() -> None:
    class Busy:
        def forecast(self, points: object) -> dict[str, object]:
            raise AssertionError("usage is known by hand")

    class ByHand(ProfilePerformance):
        def usage(self, deployments, wl):  # type: ignore[no-untyped-def]
            return [{"proxy": 1.0, "cache": 0.2} for _ in deployments]

    resources = (Parameter("proxy.vcpu", (1.0,)), Parameter("cache.vcpu", (1.0,)))
    scaling = GreedyScaling([p95(2100.0)], [10.0], ladders(resources))
    done = on_model(scaling, ByHand({"p95_ms": Foretold("p95_ms", response)}, {}))
    assert done.met
    assert done.lab_iterations == 0
    assert done.steps[-1].allocation == {"proxy.vcpu": 0.5, "cache.vcpu": 0.25}
    assert done.steps[-1].kpis["p95_ms"] == pytest.approx(2000.0)
