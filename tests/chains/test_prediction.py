"""A prediction: what limits, where another takes over, what the next step brings, and usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from known_profiles import CLOSED, Known, at, carried, named, overload, part
from synthetic_function import CONFIGURATION, OPEN, RATE, TARGET, make_sample

from workbench.chains.composition import ChainForecaster
from workbench.chains.demand import DEMAND, cpu_demand
from workbench.chains.function_profiles import Part
from workbench.chains.prediction import predict
from workbench.chains.rules import WeakestLink
from workbench.chains.usage import ExpectedUsage
from workbench.domain import codec
from workbench.domain.chains import ChainPrediction
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, Parameter, PrimaryWorkload
from workbench.domain.samples import Usage
from workbench.domain.topology import Node, Parallel, Series

A, B = named("a", "b")
LINE = Series((A, B))
CLIENTS = PrimaryWorkload("concurrent", 1.0, 500.0, integer=True)
OFFERED = PrimaryWorkload("rate", 10.0, 1000.0)

# a is slow when idle, b slows down: they cross at 200 / vCPU of b.
SLOWS: Mapping[str, Part] = {
    "a": part("a", {"p95_ms": 20.0}, load=CLOSED),
    "b": part("b", {"p95_ms": lambda vcpu, wl: 0.1 * wl / vcpu}, load=CLOSED, vcpus=(0.5, 1.0)),
}


def predicted(
    wl: float,
    vcpu: float = 0.5,
    graph: Node = LINE,
    parts: Mapping[str, Part] = SLOWS,
    kpi: str = "p95_ms",
    primary: PrimaryWorkload = CLIENTS,
    allowed: tuple[Parameter, ...] = (),
) -> ChainPrediction:
    rule = WeakestLink() if kpi == "p95_ms" else None
    chain = ChainForecaster(graph, parts, kpi, rule)
    configuration = Configuration({"a.vcpu": 1.0, "b.vcpu": vcpu}, {})
    return predict(chain, configuration, wl, name="line", primary=primary, allowed=allowed)


def test_it_says_which_function_limits_and_where_another_takes_over() -> None:
    said = predicted(50.0)
    assert said.limiting == "a"
    assert said.value.value == pytest.approx(20.0)
    assert said.value.low < 20.0 < said.value.high
    assert [(f.vnf, f.value.value) for f in said.functions] == [
        ("a", pytest.approx(20.0)),
        ("b", pytest.approx(10.0)),
    ]
    assert [f.effect for f in said.functions] == pytest.approx([1.0, 0.0])
    (takeover,) = said.takeovers
    assert takeover.vnf == "b"
    assert takeover.wl == pytest.approx(100.0, rel=0.03)
    assert (said.unit, said.rule, said.extrapolates) == ("ms", "weakest-link", False)


def test_a_prediction_crosses_the_link() -> None:
    said = predicted(50.0)
    assert codec.from_plain(codec.to_plain(said), ChainPrediction) == said


def test_the_curve_is_ready_to_draw() -> None:
    curve = predicted(600.0).curve
    assert len(curve.wl) <= 200
    assert (curve.wl[0], curve.wl[-1]) == (1.0, 600.0), "widened to hold the point asked for"
    assert all(wl == round(wl) for wl in curve.wl), "clients come whole"
    low, mean, high = (np.array(b) for b in (curve.low, curve.mean, curve.high))
    assert (low <= mean).all()
    assert (mean <= high).all()
    assert curve.limiting[0] == "a"
    assert curve.limiting[-1] == "b"


def test_the_next_step_of_vcpu_of_the_limiting_function() -> None:
    allowed = (Parameter("b.vcpu", (0.25, 2.0, 0.5, 1.0)), Parameter("a.vcpu", (1.0,)))
    step = predicted(150.0, allowed=allowed).next_step
    assert step is not None
    assert (step.key, step.before, step.after) == ("b.vcpu", 0.5, 1.0)
    assert step.value.value == pytest.approx(20.0)
    assert step.limiting == "a"
    largest = predicted(50.0, allowed=allowed)
    assert largest.next_step is None
    assert largest.note == "a.vcpu is at the largest that is allowed"


def test_the_next_flavor_brings_all_that_it_allocates() -> None:
    sizes = {"s": {"vcpu": 0.5, "memory_bytes": 1e8}, "l": {"vcpu": 1.0, "memory_bytes": 2e8}}
    flavors = Parameter("b.flavor", ("l", "s"), flavors=sizes)
    chain = ChainForecaster(LINE, SLOWS, "p95_ms", WeakestLink())
    small = Configuration({"b.flavor": "s", "b.vcpu": 0.5, "b.memory_bytes": 1e8}, {})
    said = predict(chain, small, 150.0, name="line", primary=CLIENTS, allowed=(flavors,))
    assert said.next_step is not None
    assert said.next_step.after == "l"
    assert said.next_step.value.value == pytest.approx(20.0)
    assert said.warnings == (
        "b: b.flavor, b.memory_bytes is set, but no sample of its profile says so; it is left out",
    )


def test_extrapolation_is_said_by_name() -> None:
    said = predicted(2000.0, vcpu=4.0)
    assert said.extrapolates
    a, b = said.functions
    assert a.extrapolated == ("2000 clients is outside 1 to 1000",)
    assert b.extrapolated == (
        "b.vcpu=4 is outside 0.5 to 1",
        "2000 clients is outside 1 to 1000",
    )


def test_nothing_limits_what_is_carried_or_what_does_not_lose() -> None:
    rates = {n: part(n, {"throughput_rps": carried(c)}) for n, c in (("a", 300.0), ("b", 700.0))}
    idle = predicted(100.0, 1.0, parts=rates, kpi="throughput_rps", primary=OFFERED)
    assert idle.limiting == ""
    assert [t.vnf for t in idle.takeovers] == ["a"]
    assert idle.takeovers[0].wl == pytest.approx(300.0, rel=0.05)
    losses = {n: part(n, {"loss_pct": overload(c)}) for n, c in (("a", 300.0), ("b", 200.0))}
    said = predicted(400.0, 1.0, parts=losses, kpi="loss_pct", primary=OFFERED)
    assert said.limiting == "b", "what the first lets pass is still too much for the second"
    assert said.functions[1].wl == pytest.approx(300.0)
    assert said.takeovers[0].vnf == "b"


def test_a_closed_loop_over_unlike_branches_is_marked() -> None:
    apart = predicted(50.0, graph=Parallel((A, B), (0.5, 0.5)))
    assert any("clients gather in the slower one" in w for w in apart.warnings)
    twins = dict.fromkeys("ab", SLOWS["a"])
    assert predicted(50.0, 1.0, Parallel((A, B), (0.5, 0.5)), twins).warnings == ()
    assert predicted(50.0, 1.0, Parallel((A, B), (0.6, 0.4)), twins).warnings


def test_an_open_loop_without_losses_is_marked() -> None:
    parts = {n: part(n, {"mean_ms": 1.0}) for n in "ab"}
    said = predicted(50.0, parts=parts, kpi="mean_ms", primary=OFFERED)
    assert said.warnings == ("nothing is known of what a, b loses: all of it is taken to pass",)


# ------------------------------------------------------------------ usage


def using(wl: float, rate: float, cores: float, vcpu: float) -> object:
    configuration = Configuration({"haproxy.vcpu": vcpu}, CONFIGURATION.workload)
    sample = make_sample(wl, {"throughput_rps": rate}, configuration=configuration)
    return replace(sample, usage={"haproxy": Usage(cores, cores / vcpu)})


def test_demand_is_cpu_time_per_request_whatever_the_load() -> None:
    samples = [
        using(wl, min(wl, 500.0 * vcpu), min(wl, 500.0 * vcpu) * 0.002, vcpu)
        for vcpu in (0.25, 0.5)
        for wl in (50.0, 100.0, 800.0)
    ]
    demand = cpu_demand(TARGET, "haproxy", samples, RATE)  # type: ignore[arg-type]
    assert demand.kpi == DEMAND
    there = Configuration({"haproxy.vcpu": 2.0}, CONFIGURATION.workload)
    said = demand.forecast([(CONFIGURATION, 70.0), (there, 5000.0)])
    assert np.exp(said.mean) == pytest.approx([2.0, 2.0]), "also where it extrapolates"
    assert said.extrapolates.tolist() == [False, True]
    with pytest.raises(DataError, match="no valid sample says what CPU it used"):
        cpu_demand(TARGET, "haproxy", [make_sample(9.0, {"throughput_rps": 9.0}, load=OPEN)], RATE)


DEMANDS = {
    name: Known(DEMAND, name, lambda _, __, ms=ms: ms, 0.1, (1.0, 1000.0))
    for name, ms in (("a", 1.0), ("b", 4.0))
}


def cores(graph: Node, parts: Mapping[str, Part], wl: float, **vcpus: float) -> dict[str, float]:
    said = ExpectedUsage(graph, parts, DEMANDS).forecast([at(wl, **vcpus)])
    assert all((f.low <= f.mean).all() and (f.mean <= f.high).all() for f in said.values())
    return {name: float(np.exp(f.mean[0])) for name, f in said.items()}


def test_in_an_open_loop_a_function_works_for_what_reaches_it() -> None:
    parts = {n: part(n, {"throughput_rps": carried(c)}) for n, c in (("a", 300.0), ("b", 900.0))}
    assert cores(LINE, parts, 100.0) == pytest.approx({"a": 0.1, "b": 0.4})
    assert cores(LINE, parts, 600.0) == pytest.approx({"a": 0.3, "b": 1.2})
    assert cores(LINE, parts, 600.0, a=1.0, b=0.5) == pytest.approx({"a": 0.3, "b": 0.5})
    split = Parallel((A, B), (0.25, 0.75))
    assert cores(split, parts, 400.0) == pytest.approx({"a": 0.1, "b": 1.2})


def test_in_a_closed_loop_all_work_at_the_pace_of_the_slowest() -> None:
    parts = {
        n: part(n, {"throughput_rps": c}, load=CLOSED) for n, c in (("a", 900.0), ("b", 200.0))
    }
    assert cores(LINE, parts, 64.0) == pytest.approx({"a": 0.2, "b": 0.8})
    with pytest.raises(DataError, match="b: nothing is known of the CPU"):
        ExpectedUsage(LINE, parts, {"a": DEMANDS["a"]})
