"""The edges of a space, as many as fit, and what they say of every parameter."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from synthetic_function import LATENCY_SLA, OPEN, TARGET, make_sample

from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, Parameter, PrimaryWorkload, grid
from workbench.domain.samples import Sample
from workbench.sampling.base import Space
from workbench.sampling.edges import edges, resolution, two_level
from workbench.sampling.factors import Coordinates, factors_of
from workbench.sampling.influence import edge_samples, influence_of

RATE = PrimaryWorkload("rate", 10.0, 1000.0)
VCPU = Parameter("fw.vcpu", (0.25, 0.5, 1.0, 2.0, 3.0))
FLOWS = Parameter("flows", (1.0, 10.0, 100.0, 10000.0))
SIZE = Parameter("packet_bytes", (64.0, 512.0, 1500.0))
FLAVORS = Parameter(
    "fw.flavor",
    ("wide", "small", "fast"),
    flavors={
        "small": {"vcpu": 1.0, "bandwidth_mbps": 100.0},
        "wide": {"vcpu": 1.0, "bandwidth_mbps": 1000.0},
        "fast": {"vcpu": 4.0, "bandwidth_mbps": 100.0},
    },
)


def space(*parameters: Parameter, **options: object) -> Space:
    resources = tuple(p for p in parameters if "." in p.key)
    workload = tuple(p for p in parameters if "." not in p.key)
    return Space(
        TARGET, tuple(grid(resources, workload)), RATE, OPEN, "p95_ms", 1000.0, 0.005,
        LATENCY_SLA, 1, **options,  # type: ignore[arg-type]
    )  # fmt: skip


# --- designs


def test_two_level_designs_are_full_where_they_fit() -> None:
    assert two_level(0) == ((),)
    assert len(set(two_level(4))) == len(two_level(4, 16)) == 16
    assert two_level(3, 100) == two_level(3)


@pytest.mark.parametrize(
    ("factors", "most", "runs", "expected"),
    # Box, Hunter, Hunter, Table 6.22: the resolutions of the best fractions.
    [(3, 4, 4, 3), (4, 8, 8, 4), (5, 16, 16, 5), (6, 20, 16, 4), (7, 8, 8, 3), (7, 63, 32, 4),
     (8, 64, 64, 5), (9, 128, 128, 6), (12, 32, 32, 4), (15, 64, 64, 4)],
)  # fmt: skip
def test_a_fraction_has_the_highest_resolution_that_fits(
    factors: int, most: int, runs: int, expected: int
) -> None:
    design = np.array(two_level(factors, most)) * 2 - 1
    assert design.shape == (runs, factors)
    # Resolution R: no product of fewer than R columns is constant.
    shortest = next(
        size
        for size in range(1, factors + 1)
        for chosen in combinations(range(factors), size)
        if abs(design[:, chosen].prod(axis=1).sum()) == runs
    )
    assert shortest == expected
    assert (design.sum(axis=0) == 0).all(), "every factor is as often low as high"


def test_a_fraction_of_very_many_factors_is_had_at_once() -> None:
    """Forty factors have 2^40 corners, and more sets of generators than can be compared."""
    design = np.array(two_level(40, 64)) * 2 - 1
    assert design.shape == (64, 40)
    assert (design.T @ design == 64 * np.eye(40)).all(), "resolution III: main effects are apart"


def test_the_words_of_a_fraction_multiply() -> None:
    # D = AB, E = AC: the third word BCDE follows.
    assert resolution([0b01011, 0b10101]) == 3
    assert resolution([0b1111]) == 4
    assert resolution([]) == 0


def test_too_small_a_budget_cuts_the_smallest_fraction() -> None:
    assert len(two_level(5, 3)) == 3
    assert two_level(5, 3) == two_level(5, 8)[:3]


# --- edges


def test_edges_are_all_combinations_of_low_and_high() -> None:
    points = edges(space(VCPU, FLOWS, SIZE))
    assert len(points) == 16
    found = {
        (c.vcpu("fw"), c.parameter("flows"), c.parameter("packet_bytes"), wl) for c, wl in points
    }
    assert found == {
        (v, f, s, wl)
        for v in (0.25, 3.0) for f in (1.0, 10000.0) for s in (64.0, 1500.0)
        for wl in (10.0, 1000.0)
    }  # fmt: skip


def test_edges_keep_within_a_budget() -> None:
    points = edges(space(VCPU, FLOWS, SIZE), most=10)
    assert len(points) == 8
    assert {wl for _, wl in points} == {10.0, 1000.0}
    assert len({c for c, _ in points}) == 8, "all corners of the configurations, one load each"
    assert edges(space(VCPU), most=0) == ()


def test_edges_of_nine_parameters_are_a_fraction_in_which_all_are_apart() -> None:
    """With `wl` they have 1,024 corners."""
    eight = [Parameter(f"fw.resource{number}", (1.0, 2.0)) for number in range(8)]
    points = edges(space(*eight, SIZE), most=64)
    assert len(set(points)) == 64
    levels = np.array([[*c.resources.values(), *c.workload.values(), wl] for c, wl in points])
    design = np.where(levels == levels.min(axis=0), -1, 1)
    assert (design.T @ design == 64 * np.eye(10)).all(), "as often low as high, whatever else is"


def test_edges_of_pairs_of_allocations_are_those_that_there_are() -> None:
    pairs = tuple(Configuration({"a.vcpu": v, "b.vcpu": 2.0 * v}, {}) for v in (0.125, 0.25, 0.5))
    points = edges(replace(space(), configurations=pairs))
    assert {c for c, _ in points} >= {pairs[0], pairs[-1]}
    assert len(points) == len(set(points))


def test_edges_are_recorded_loads_where_there_are_any() -> None:
    where = space(VCPU)
    loads = dict.fromkeys(where.configurations, (20.0, 70.0, 640.0))
    assert {wl for _, wl in edges(replace(where, loads=loads))} == {20.0, 640.0}


# --- factors


def test_a_flavor_is_one_factor_in_the_order_of_what_it_allocates() -> None:
    factors = factors_of(space(FLAVORS, SIZE).configurations)
    assert [f.key for f in factors] == ["fw.flavor", "packet_bytes"]
    assert factors[0].values == ("small", "wide", "fast")
    assert [factors[0].place(v) for v in factors[0].values] == [0.0, 0.5, 1.0]


def test_coordinates_are_logs_over_the_range_of_each_factor() -> None:
    where = Coordinates(space(FLOWS, SIZE).configurations, RATE)
    middle = Configuration({}, {"flows": 100.0, "packet_bytes": 64.0})
    assert where.of(middle, 100.0) == pytest.approx([0.5, 0.0, 0.5])
    assert where.at(where.load(37.0)) == pytest.approx(37.0)


def test_parameters_of_one_value_are_no_factors() -> None:
    assert factors_of(space(Parameter("fw.vcpu", (1.0,))).configurations) == ()
    with pytest.raises(DataError, match="absent in others"):
        factors_of([Configuration({"a.vcpu": 1.0}, {}), Configuration({}, {})])


# --- influence


def measured(where: Space, law: dict[str, float], noise: float = 0.0) -> list[Sample]:
    """Samples of all edges of a law that is linear on the axes of range one."""
    random = np.random.default_rng(5)
    axes = Coordinates(where.configurations, where.primary)
    keys = [*(f.key for f in axes.factors), where.primary.name]
    samples = []
    for configuration, wl in edges(where):
        at = dict(zip(keys, axes.of(configuration, wl), strict=True))
        x = sum(law.get(key, 0.0) * at[key] for key in keys) + noise * random.normal()
        kpis = {"p95_ms": 10.0 * math.exp(x), "throughput_rps": 50.0 * math.exp(at["rate"])}
        samples.append(make_sample(wl, kpis, configuration=configuration))
    return samples


def test_shares_of_a_linear_law_are_its_coefficients() -> None:
    where = space(VCPU, FLOWS, SIZE)
    samples = measured(where, {"fw.vcpu": -2.0, "flows": 1.0, "rate": 1.0})
    found = influence_of(where, samples, ["p95_ms", "throughput_rps"])
    assert found.kpis == ("p95_ms", "throughput_rps")
    assert dict(zip(found.parameters, found.weights[0], strict=True)) == pytest.approx(
        {"fw.vcpu": 0.5, "flows": 0.25, "packet_bytes": 0.0, "rate": 0.25}, abs=0.01
    )
    assert found.weights[1] == pytest.approx((0.0, 0.0, 0.0, 1.0), abs=0.01)
    assert found.overall["rate"] == pytest.approx(0.625, abs=0.01)
    assert all(sum(row) == pytest.approx(1.0) for row in found.weights)


def test_noise_does_not_hide_who_matters() -> None:
    where = space(VCPU, FLOWS, SIZE)
    law = {"fw.vcpu": -2.0, "packet_bytes": 0.3, "rate": 1.5}
    found = influence_of(where, measured(where, law, noise=0.2), ["p95_ms"])
    ranked = sorted(found.overall, key=lambda key: -found.overall[key])
    assert ranked[:2] == ["fw.vcpu", "rate"]
    assert found.overall["flows"] < 0.1


def test_a_kpi_that_never_moves_has_no_bars() -> None:
    where = space(VCPU)
    samples = [
        make_sample(wl, {"p95_ms": 3.0, "throughput_rps": wl}, configuration=c)
        for c, wl in edges(where)
    ]
    found = influence_of(where, samples, ["p95_ms", "throughput_rps"])
    assert found.weights[0] == (0.0, 0.0)
    assert found.overall == pytest.approx({"fw.vcpu": 0.0, "rate": 1.0})


def test_a_kpi_that_follows_no_parameter_by_itself_has_no_bars() -> None:
    """Slow in two opposite corners: an interaction alone, which no direction explains."""
    where = space(VCPU)
    samples = [
        make_sample(
            wl, {"p95_ms": 9.0 if (c.vcpu("fw") > 1.0) == (wl > 100.0) else 3.0}, configuration=c
        )
        for c, wl in edges(where)
    ]
    assert influence_of(where, samples, ["p95_ms"]).weights == ((0.0, 0.0),)


def test_shares_are_shares_whatever_a_few_samples_say() -> None:
    random = np.random.default_rng(0)
    where = space(VCPU, FLOWS)
    for _ in range(200):
        chosen = random.permutation(8)[: random.integers(3, 9)]
        corners = [edges(where)[place] for place in chosen]
        samples = [
            make_sample(
                wl,
                {k: float(random.integers(2, 4)) for k in ("p95_ms", "mean_ms")},
                configuration=c,
            )
            for c, wl in corners
        ]
        found = influence_of(where, samples, ["p95_ms", "mean_ms"])
        for row in found.weights:
            assert sum(row) == pytest.approx(1.0) or not any(row)


def test_edge_samples_are_those_of_a_complete_design_and_else_none() -> None:
    where = space(VCPU, FLOWS)
    corners = measured(where, {"fw.vcpu": 1.0})
    middle = replace(
        corners[0], id="middle", point=replace(corners[0].point, wl=where.primary.low * 2.0)
    )
    again = replace(
        corners[1], id="again", point=replace(corners[1].point, repetition=1), valid=True
    )
    bad = replace(corners[2], id="bad", point=replace(corners[2].point, repetition=1), valid=False)
    strange = replace(corners[0], id="strange", point=replace(corners[0].point, target="other"))
    found = edge_samples(where, [middle, *corners, again, bad, strange])
    assert found == (*corners, again)
    for lost in range(len(corners)):
        assert edge_samples(where, [middle, *corners[:lost], *corners[lost + 1 :]]) == ()
    assert edge_samples(where, [replace(corners[0], valid=False), *corners[1:]]) == ()
    fraction = edges(where, 4)
    few = [s for s in corners if (s.point.configuration, s.point.wl) in fraction]
    assert len(few) == 4
    assert edge_samples(where, few) == ()
    assert edge_samples(where, few, most=4) == tuple(few)
    alone = space()
    assert edge_samples(alone, measured(alone, {})) == (), "two ends of one load say nothing"


def test_what_is_missing_is_said() -> None:
    where = space(VCPU)
    samples = measured(where, {"fw.vcpu": 1.0})
    with pytest.raises(DataError, match="only 2 valid samples"):
        influence_of(where, samples[:2], ["p95_ms"])
    with pytest.raises(DataError, match="no KPI of mean_ms is stated by all 4"):
        influence_of(where, samples, ["mean_ms"])
    with pytest.raises(DataError, match="never share a model"):
        influence_of(where, [*samples, replace(samples[0], load_model="closed")], ["p95_ms"])
