"""A chain where a profile would do: names, loads, intervals, and profiles that must not meet."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from known_profiles import CLOSED, Known, at, carried, named, overload, part
from synthetic_function import make_sample

from workbench.chains.composition import ChainForecaster, TwoTerms
from workbench.chains.function_profiles import must_be_of_one_host, part_of, parts_of
from workbench.chains.rules import AddedMeans, BottleneckAndSum, WeakestLink
from workbench.domain.errors import DataError, UsageError
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Configuration, LoadModel, OperatingPoint
from workbench.domain.samples import Bypass
from workbench.domain.topology import Parallel, Series, Target, Vnf
from workbench.models.forecast import ProfileForecaster
from workbench.models.interpolation import LogInterpolation
from workbench.models.table import Column, Table

A, B = named("a", "b")


def profile(kpi: str = "mean_ms", lowest: float = 10.0) -> ProfileForecaster:
    """Of tinyproxy: vCPUs 0.25 and 1, names of flavors, 10 kB; the KPI is wl / vCPU."""
    flavors = ("large", "small")
    rows = [(code, v, wl) for code, v in ((1, 0.25), (0, 1.0)) for wl in (lowest, 100.0)]
    X = np.array([[code, math.log(v), math.log(1e4), math.log(wl)] for code, v, wl in rows])
    y = np.log([wl / v for _, v, wl in rows])
    table = Table(
        "tinyproxy", kpi,
        (
            Column("tinyproxy.flavor", "resource", False, flavors),
            Column("tinyproxy.vcpu", "resource"),
            Column("filesize_bytes", "workload"),
            Column("concurrent", "primary"),
        ),
        X, y, np.full(4, 0.1), np.arange(4), np.array([0, 0, 1, 1]), tuple("abcd"), math.inf,
    )  # fmt: skip
    return ProfileForecaster(table, LogInterpolation(categorical=(0,)).fit(X, y, table.noise))


ALONE = Target("tinyproxy", Vnf("tinyproxy", "tinyproxy"))
SAMPLES = [
    replace(
        make_sample(wl, {"mean_ms": 9.0}, load=LoadModel("closed")),
        point=OperatingPoint("tinyproxy", Configuration({}, {}), wl),
        bypass=Bypass(900.0, path, 2.0 * path),
    )
    for wl, path in ((10.0, 0.25), (100.0, 0.75))
]


def test_a_template_may_stand_twice_each_with_its_own_allocation() -> None:
    tinyproxy = part_of(ALONE, SAMPLES, [profile()])
    assert (tinyproxy.primary, tinyproxy.load_model) == ("concurrent", "closed")
    assert tinyproxy.path_ms == 0.25, "that of the unloaded path"
    assert tinyproxy.lowest_wl == pytest.approx(10.0)
    assert tinyproxy.profiled["tinyproxy.vcpu"] == pytest.approx((0.25, 1.0))
    graph = Series((Vnf("front", "tinyproxy"), Vnf("back", "tinyproxy")))
    chain = ChainForecaster(graph, parts_of(graph, [tinyproxy]), "mean_ms", WeakestLink())
    small, large = {"flavor": "small", "vcpu": 0.25}, {"flavor": "large", "vcpu": 1.0}

    def of(front: dict[str, object], back: dict[str, object]) -> float:
        resources = {f"front.{k}": v for k, v in front.items()}
        resources |= {f"back.{k}": v for k, v in back.items()}
        configuration = Configuration(resources, {"filesize_bytes": 1e4})  # type: ignore[arg-type]
        return float(np.exp(chain.forecast([(configuration, 50.0)]).mean[0]))

    assert of(large, large) == pytest.approx(50.0)
    assert of(small, large) == of(large, small) == pytest.approx(200.0)


def test_instances_that_nothing_tells_apart_are_asked_about_once() -> None:
    def asked(copies: int, *larger: str) -> tuple[int, float]:
        profile = part("a", {"p95_ms": lambda vcpu, wl: wl / vcpu}, load=CLOSED)
        names = [f"a-{place}" for place in range(copies)]
        graph = Parallel(tuple(Vnf(name, "a") for name in names), (1.0 / copies,) * copies)
        chain = ChainForecaster(graph, dict.fromkeys(names, profile), "p95_ms")
        vcpus = {name: 2.0 if name in larger else 1.0 for name in names}
        said = chain.forecast([at(120.0, **vcpus), at(240.0, **vcpus)])
        known = profile.forecasters["p95_ms"]
        assert isinstance(known, Known)
        return known.asked, float(np.exp(said.mean[0]))

    once, alone = asked(1)
    four, each = asked(4)
    assert four == once
    assert each == pytest.approx(alone / 4.0), "a fourth of the load each"
    several, slowest = asked(4, "a-3")
    assert several == 2 * once, "two of one kind of allocation, and one of another"
    assert slowest == pytest.approx(each)


def test_what_was_not_profiled_is_named() -> None:
    graph = Vnf("front", "tinyproxy")
    chain = ChainForecaster(
        graph, parts_of(graph, [part_of(ALONE, SAMPLES, [profile()])]), "mean_ms"
    )
    with pytest.raises(DataError, match=r"tinyproxy\.flavor: 'huge' was not profiled"):
        chain.forecast(
            [(Configuration({"front.flavor": "huge", "front.vcpu": 1.0},
                            {"filesize_bytes": 1e4}), 9.0)]
        )  # fmt: skip
    with pytest.raises(DataError, match=r"filesize_bytes: is not given"):
        chain.forecast([(Configuration({"front.flavor": "small", "front.vcpu": 1.0}, {}), 9.0)])


def test_the_unloaded_time_is_the_forecast_at_the_lowest_profiled_load() -> None:
    parts = {
        n: part(n, {"mean_ms": lambda _, wl: wl}, load=CLOSED, loads=(2.0, 100.0)) for n in "ab"
    }
    chain = ChainForecaster(Series((A, B)), parts, "mean_ms", BottleneckAndSum())
    assert np.exp(chain.forecast([at(3.0), at(30.0)]).mean) == pytest.approx([4.0, 30.0])


def test_both_terms_of_a_response_time_are_to_be_had_apart() -> None:
    parts = {
        n: part(n, {"mean_ms": lambda _, wl, r=r: r * wl}, load=CLOSED, loads=(2.0, 100.0))
        for n, r in (("a", 1.0), ("b", 3.0))
    }
    terms = TwoTerms(Series((A, B)), parts, "mean_ms")
    points = [at(5.0), at(50.0)]
    assert np.exp(terms.bottleneck(points)) == pytest.approx([15.0, 150.0])
    assert terms.unloaded_sum(points) == pytest.approx([8.0, 8.0])


def test_functions_that_may_be_faster_than_the_path_leave_no_time_below_zero() -> None:
    kpis = {"p50_ms": 0.3, "p95_ms": 0.5}
    parts = {n: replace(part(n, kpis, sd=2.0), path_ms=0.25) for n in "ab"}
    said = ChainForecaster(Series((A, B)), parts, "p95_ms").forecast([at(5.0)])
    assert np.isfinite([said.mean, said.low, said.high]).all()


def test_clients_that_think_find_a_stretched_function_saturated_by_the_law_of_its_capacity() -> (
    None
):
    """It carries 2 requests per ms: n/X - Z from 200 clients on, whose think time is 100 ms."""

    def response_ms(_: Configuration, wl: float) -> float:
        return max(1.0, wl / 2.0 - 100.0)

    rate = {"mean_ms": response_ms, "throughput_rps": lambda _, wl: min(2e3, 1e3 * wl / 101.0)}
    thinking = "closed-think-0.1s"
    parts = {n: part(n, rate, load=thinking, loads=(2.0, 400.0)) for n in "ab"}
    terms = TwoTerms(Series((A, B)), parts, "mean_ms")
    assert terms.think_ms == 100.0
    said = np.exp(terms.bottleneck([at(100.0), at(300.0), at(400.0), at(1000.0)]))
    assert said == pytest.approx([1.0, 50.0, 100.0, 400.0])
    plain = {n: part(n, {"mean_ms": response_ms}, load=CLOSED, loads=(2.0, 400.0)) for n in "ab"}
    assert TwoTerms(Series((A, B)), plain, "mean_ms").think_ms == 0.0


def test_instances_of_one_profile_are_wrong_together_and_others_are_not() -> None:
    one = part("a", {"mean_ms": 1.0}, sd=0.2)
    graph = Series((A, B))

    def width(parts: dict[str, object]) -> float:
        said = ChainForecaster(graph, parts, "mean_ms", AddedMeans()).forecast([at(5.0)])  # type: ignore[arg-type]
        return float(said.high[0] - said.low[0])

    alone = 2 * 1.96 * 0.2
    assert width({"a": one, "b": one}) == pytest.approx(alone, rel=0.01)
    apart = {"a": one, "b": part("b", {"mean_ms": 1.0}, sd=0.2)}
    assert width(apart) == pytest.approx(alone / math.sqrt(2.0), rel=0.05)


def test_the_load_behind_a_function_follows_what_it_may_lose() -> None:
    parts = {
        "a": part("a", {"loss_pct": overload(100.0), "mean_ms": 1.0}, sd=0.2),
        "b": part("b", {"loss_pct": overload(90.0), "mean_ms": lambda _, wl: wl**1.5}, sd=0.2),
    }
    chain = ChainForecaster(Series((A, B)), parts, "mean_ms")
    figures = chain.figures([at(150.0), at(300.0)])
    loads, drawn = figures.loads["b"], figures.loaded("b", "mean_ms")
    assert loads[0] == pytest.approx([100.0, 100.0])
    assert (np.ptp(loads, axis=0) > 5.0).all(), "worlds in which the first passes more"
    # What does not come from the load is one factor in each world, at both points.
    left = drawn / loads**1.5
    assert left[:, 0] == pytest.approx(left[:, 1], rel=1e-6)
    assert drawn[0] == pytest.approx([1000.0, 1000.0])


def test_whole_curves_cost_few_forecasts() -> None:
    parts = {n: part(n, {"loss_pct": overload(100.0)}) for n in "ab"}
    ChainForecaster(Series((A, B)), parts, "loss_pct").forecast(
        [at(wl) for wl in np.linspace(1.0, 500.0, 100)]
    )
    asked = [known.asked for p in parts.values() for known in p.forecasters.values()
             if isinstance(known, Known)]  # fmt: skip
    assert sum(asked) <= 100 * 12


def test_a_function_extrapolates_for_the_chain_only_where_it_matters() -> None:
    def extrapolates(other: float, wl: float) -> bool:
        parts = {
            "a": part("a", {"mean_ms": 100.0}),
            "b": part("b", {"mean_ms": other}, loads=(20.0, 100.0)),
        }
        chain = ChainForecaster(Series((A, B)), parts, "mean_ms")
        return bool(chain.forecast([at(wl)]).extrapolates[0])

    assert not extrapolates(1.0, 200.0), "ten times as slow it would still not show"
    assert extrapolates(20.0, 200.0)
    assert not extrapolates(20.0, 10.0), "at a lower load it is hardly slower"
    assert extrapolates(50.0, 10.0)


def test_at_loads_below_all_profiled_nothing_more_is_lost_and_all_is_carried() -> None:
    shedding = {"loss_pct": overload(50.0), "throughput_rps": carried(50.0)}
    parts = {
        "a": part("a", shedding, loads=(1.0, 100.0)),
        "b": part("b", shedding, loads=(20.0, 100.0)),
    }
    for kpi in shedding:
        chain = ChainForecaster(Series((A, B)), parts, kpi)
        assert chain.forecast([at(10.0), at(200.0)]).extrapolates.tolist() == [False, True]


def test_the_same_seed_gives_the_same_interval_and_figures_stay_under_their_ceiling() -> None:
    parts = {n: part(n, {"mean_ms": 40.0}, sd=0.5) for n in "ab"}
    graph = Series((A, B))
    one, same, other = (
        ChainForecaster(graph, parts, "mean_ms", seed=seed).forecast([at(9.0)])
        for seed in (1, 1, 2)
    )
    assert one.high == same.high != other.high
    low = ChainForecaster(graph, parts, "mean_ms", kpi_max=60.0).forecast([at(9.0)])
    assert np.exp([low.mean[0], low.high[0]]) == pytest.approx([60.0, 60.0])
    assert ChainForecaster(graph, parts, "mean_ms").forecast([]).mean.shape == (0,)


def test_many_points_are_the_same_as_few() -> None:
    parts = {n: part(n, {"mean_ms": lambda _, wl: 1.0 + wl}) for n in "ab"}
    chain = ChainForecaster(Parallel((A, B), (0.5, 0.5)), parts, "mean_ms", draws=20)
    points = [at(float(wl)) for wl in range(1, 450)]
    together = chain.forecast(points)
    assert together.high[-9:] == pytest.approx(chain.forecast(points[-9:]).high)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"a": part("a", {"mean_ms": 1.0})}, "b: has no stand-alone profile"),
        (
            {"a": part("a", {"mean_ms": 1.0}), "b": part("b", {"p95_ms": 1.0})},
            "b: the profile of b does not state mean_ms, only p95_ms",
        ),
        (
            {"a": part("a", {"mean_ms": 1.0}), "b": part("b", {"mean_ms": 1.0}, load=CLOSED)},
            r"load models never meet: a over rate \(open-constant\); b over concurrent \(closed\)",
        ),
    ],
)
def test_parts_that_do_not_make_a_chain_are_refused(
    parts: dict[str, object], sentence: str
) -> None:
    with pytest.raises(DataError, match=sentence):
        ChainForecaster(Series((A, B)), parts, "mean_ms", WeakestLink())  # type: ignore[arg-type]


def test_profiles_are_found_by_their_kind() -> None:
    graph = Series((Vnf("front", "a"), B))
    a, b = part("a", {"mean_ms": 1.0}), part("b", {"mean_ms": 1.0})
    assert parts_of(graph, [b, a]) == {"front": a, "b": b}
    with pytest.raises(DataError, match="front: has no stand-alone profile of its kind, a"):
        parts_of(graph, [b])
    with pytest.raises(DataError, match="b: has several profiles: b, b2"):
        parts_of(graph, [a, b, replace(b, target="b2")])
    with pytest.raises(DataError, match="tinyproxy: has no profile"):
        part_of(ALONE, [], [profile()])
    with pytest.raises(DataError, match="pair: is a chain, not the profile of one function"):
        part_of(Target("pair", graph), SAMPLES, [])


HOST = HostFacts("docker", 2, 4 << 30, "6.1", "Xeon", "v1", "docker 20", {}, {})


def test_profiles_of_another_host_are_refused_or_marked() -> None:
    hosts = {"chain": HOST, "haproxy": replace(HOST, kernel="6.2"), "tinyproxy": HOST}
    assert must_be_of_one_host(hosts) == ()
    hosts["tinyproxy"] = replace(HOST, cores=8)
    sentence = "tinyproxy was measured on another host than chain: cores 8 instead of 2"
    with pytest.raises(UsageError, match=sentence):
        must_be_of_one_host(hosts)
    assert must_be_of_one_host(hosts, insisted=True) == (sentence,)
    sim = replace(HOST, lab="sim", details={"options": "world=1"})
    with pytest.raises(UsageError, match="other options of the lab"):
        must_be_of_one_host({"a": sim, "b": replace(sim, details={"options": "world=2"})})


@pytest.mark.parametrize("insisted", [True, False])
def test_an_emulated_host_never_meets_a_real_one(insisted: bool) -> None:
    vm = replace(HOST, lab="vm", details={"emulated": "TCG of QEMU 7.2.22"})
    assert must_be_of_one_host({"chain": vm, "haproxy": vm}, insisted) == ()
    sentence = "haproxy was measured on an emulated CPU and chain was not"
    with pytest.raises(UsageError, match=sentence):
        must_be_of_one_host({"chain": replace(vm, details={}), "haproxy": vm}, insisted)
