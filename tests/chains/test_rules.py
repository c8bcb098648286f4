"""Rules of composition: their formulas, what they refuse, and what must hold for all of them."""

from __future__ import annotations

import math
import tomllib
from importlib import import_module
from itertools import permutations

import numpy as np
import pytest
from driving import REPOSITORY
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from known_profiles import CLOSED, OPEN, at, carried, named, overload, part

from workbench.chains.base import ChainRule, functions_of, visits_of
from workbench.chains.composition import ChainForecaster
from workbench.chains.distributions import ResponseTimes, percentile_of_sum
from workbench.chains.quasi_random import uniforms
from workbench.chains.rules import (
    AddedMeans,
    BottleneckAndSum,
    Convolved,
    LeastThroughput,
    ThinnedLoss,
    WeakestLink,
    default_rule,
)
from workbench.domain.errors import UsageError
from workbench.domain.topology import Node, Parallel, Series, Vnf

A, B, C = named("a", "b", "c")
TIMES = {"p50_ms": 1.0, "p95_ms": 3.0, "p99_ms": 5.0, "mean_ms": 1.3}


def composed(
    graph: Node, figures: dict[str, float], kpi: str, rule: ChainRule, load: str = OPEN
) -> float:
    """The expected KPI of functions whose figures depend on nothing."""
    chain = ChainForecaster(
        graph, {n: part(n, {kpi: f}, load=load) for n, f in figures.items()}, kpi, rule, draws=9
    )
    return float(np.exp(chain.forecast([at(10.0)]).mean[0]))


FIGURE = st.floats(0.2, 90.0)


@settings(max_examples=examples(40), deadline=None)
@given(a=FIGURE, b=FIGURE, c=FIGURE, share=st.floats(0.05, 0.95))
def test_series_and_branches_follow_their_formulas(
    a: float, b: float, c: float, share: float
) -> None:
    figures = {"a": a, "b": b, "c": c}
    graph = Series((A, Parallel((B, C), (share, 1.0 - share))))
    mixed = share * b + (1.0 - share) * c

    def close(rule: ChainRule, kpi: str, expected: float) -> None:
        assert composed(graph, figures, kpi, rule) == pytest.approx(expected)

    close(WeakestLink(), "mean_ms", max(a, mixed))
    close(WeakestLink(), "p95_ms", max(a, b, c))
    close(AddedMeans(), "mean_ms", a + mixed)
    close(AddedMeans(handover_ms=2.0), "mean_ms", a + mixed + 2.0)
    close(BottleneckAndSum(), "mean_ms", a + mixed)
    close(BottleneckAndSum(scale=3.0), "mean_ms", max(3.0 * max(a, mixed), a + mixed))
    close(LeastThroughput(), "goodput_mbps", min(a, b + c))
    passed = (1.0 - a / 100.0) * (1.0 - mixed / 100.0)
    close(ThinnedLoss(), "error_pct", 100.0 * (1.0 - passed))


EVERY = [
    (WeakestLink(), "p95_ms", OPEN),
    (WeakestLink(), "jitter_ms", OPEN),
    (BottleneckAndSum(), "mean_ms", CLOSED),
    (BottleneckAndSum(), "p95_ms", CLOSED),
    (ThinnedLoss(), "loss_pct", OPEN),
    (AddedMeans(), "mean_ms", OPEN),
    (Convolved(), "p99_ms", OPEN),
    (LeastThroughput(), "throughput_rps", CLOSED),
]


@pytest.mark.parametrize(("rule", "kpi", "load"), EVERY)
@pytest.mark.parametrize("graph", [A, Series((A,))])
def test_a_chain_of_one_is_its_profile(rule: ChainRule, kpi: str, load: str, graph: Node) -> None:
    # Slow at the least load, too, which some functions are.
    wavy = part(
        "a",
        {k: lambda _, wl: 5.0 + 3.0 * math.cos(wl) for k in {kpi, *rule.needs(kpi)}},
        load=load,
        sd=0.2,
    )
    points = [at(wl) for wl in (1.0, 2.0, 3.0, 50.0)]
    chain = ChainForecaster(graph, {"a": wavy}, kpi, rule).forecast(points)
    alone = wavy.forecasters[kpi].forecast(points)
    assert chain.mean == pytest.approx(alone.mean)
    assert chain.low == pytest.approx(alone.low, abs=0.005)
    assert chain.high == pytest.approx(alone.high, abs=0.005)


@pytest.mark.parametrize(("rule", "kpi", "load"), EVERY)
def test_the_order_of_a_series_does_not_matter_where_nothing_is_lost(
    rule: ChainRule, kpi: str, load: str
) -> None:
    parts = {
        name: part(
            name, {k: TIMES.get(k, 1.0) * factor for k in {kpi, *rule.needs(kpi)}}, load=load
        )
        for name, factor in (("a", 1.0), ("b", 2.0), ("c", 5.0))
    }
    said = [
        ChainForecaster(Series(order), parts, kpi, rule).forecast([at(10.0)]).mean[0]
        for order in permutations((A, B, C))
    ]
    # Drawn requests are dealt to functions by their place.
    assert said == pytest.approx([said[0]] * 6, abs=0.03 if rule == Convolved() else 1e-9)


def test_two_equal_functions_at_150_per_cent_lose_33_not_56_per_cent() -> None:
    """METHOD.md 9."""
    parts = {n: part(n, {"loss_pct": overload(100.0)}) for n in "ab"}
    chain = ChainForecaster(Series((A, B)), parts, "loss_pct")
    assert chain.rule == ThinnedLoss()
    assert np.exp(chain.forecast([at(150.0)]).mean[0]) == pytest.approx(100.0 / 3.0, rel=1e-3)
    assert np.exp(chain.forecast([at(90.0)]).mean[0]) == pytest.approx(0.1), "the floor of a loss"


def test_branches_lose_by_their_shares_and_spare_what_lies_behind() -> None:
    parts = {n: part(n, {"loss_pct": overload(100.0)}) for n in "abc"}
    graph = Series((Parallel((A, B), (0.75, 0.25)), C))
    chain = ChainForecaster(graph, parts, "loss_pct")
    said = chain.outlook([at(160.0)])
    # a gets 120 and passes 100, b passes its 40; c gets 140 and passes 100 of 160.
    assert said.loads["c"] == pytest.approx([140.0])
    assert np.exp(said.chain.mean[0]) == pytest.approx(100.0 * (1.0 - 100.0 / 160.0))


def test_delay_adds_along_the_chain() -> None:
    """Paper D, section VI.C: one more function, one more delay; halved load in a split."""
    router = part("router", {"mean_ms": lambda _, wl: 0.2 + 1e-4 * wl})
    firewall = part("firewall", {"mean_ms": lambda _, wl: 1.0 + 1e-3 * wl})
    parts = {
        "in": router, "out": router, "one": firewall, "two": firewall
    }  # fmt: skip
    line = Series((Vnf("in", "router"), Vnf("one", "firewall")))
    split = Series(
        (
            Vnf("in", "router"),
            Parallel((Vnf("one", "firewall"), Vnf("two", "firewall")), (0.5, 0.5)),
            Vnf("out", "router"),
        )
    )
    linear, parallel = (
        float(np.exp(ChainForecaster(g, parts, "mean_ms").forecast([at(100.0)]).mean[0]))
        for g in (line, split)
    )
    assert linear == pytest.approx(0.21 + 1.1)
    assert parallel == pytest.approx(0.21 + 1.05 + 0.21)


def test_the_path_from_source_to_sink_counts_once() -> None:
    """METHOD.md 9; every stand-alone time holds it."""
    narrow = {"p50_ms": 1.5, "p95_ms": 1.51, "p99_ms": 1.52, "mean_ms": 1.5}
    split = Series((A, Parallel((B, C), (0.5, 0.5))))
    for kpi, load in (("mean_ms", OPEN), ("p95_ms", OPEN), ("mean_ms", CLOSED)):
        parts = {n: part(n, narrow, load=load, path_ms=0.5) for n in "abc"}
        for graph in (Series((A, B)), split):
            said = ChainForecaster(graph, parts, kpi).forecast([at(9.0)])
            assert np.exp(said.mean) == pytest.approx([2.5], rel=0.01)
        parts["b"] = part("b", narrow, load=load)
        unknown = ChainForecaster(Series((A, B)), parts, kpi).forecast([at(9.0)])
        assert np.exp(unknown.mean) == pytest.approx([3.0], rel=0.01)


def test_below_saturation_idle_times_add_and_above_it_the_slowest_holds_all() -> None:
    """METHOD.md 9: tinyproxy→haproxy with its 44 ms."""
    grows = {"a": 0.3, "b": 0.6}
    parts = {
        n: part(n, {"mean_ms": lambda _, wl, r=r: r * wl}, load=CLOSED) for n, r in grows.items()
    }
    chain = ChainForecaster(
        Series((A, B)), parts, "mean_ms", BottleneckAndSum(scale=0.9, handover_ms=44.0)
    )
    assert np.exp(chain.forecast([at(1.0)]).mean) == pytest.approx([44.9])
    assert np.exp(chain.forecast([at(500.0)]).mean) == pytest.approx([0.9 * 300.0])


def test_throughput_behind_a_function_that_sheds_is_what_it_passes_on() -> None:
    # Overloaded, the second would carry less than half of its capacity; it never is.
    parts = {
        "a": part("a", {"throughput_rps": carried(50.0)}),
        "b": part("b", {"throughput_rps": lambda _, wl: wl if wl <= 60 else 20.0}),
    }
    chain = ChainForecaster(Series((A, B)), parts, "throughput_rps")
    assert np.exp(chain.forecast([at(200.0)]).mean) == pytest.approx([50.0])


@pytest.mark.parametrize(
    ("rule", "kpi", "load", "sentence"),
    [
        (AddedMeans(), "p95_ms", OPEN, "percentiles such as p95_ms do not add"),
        (AddedMeans(), "mean_ms", CLOSED, "clients are divided among the functions"),
        (Convolved(), "mean_ms", OPEN, "composes percentiles"),
        (Convolved(), "p95_ms", CLOSED, "clients are divided"),
        (WeakestLink(), "throughput_rps", OPEN, "of throughput_rps the least limits"),
        (WeakestLink(), "lag_pct", OPEN, "does not know lag_pct"),
        (ThinnedLoss(), "loss_pct", CLOSED, "no plan is missed"),
        (ThinnedLoss(), "p95_ms", OPEN, "composes what is lost"),
        (LeastThroughput(), "mean_ms", OPEN, "composes throughput_rps"),
        (BottleneckAndSum(), "loss_pct", OPEN, "composes response times"),
    ],
)
def test_a_rule_refuses_what_it_is_not_for(
    rule: ChainRule, kpi: str, load: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=f"rule {rule.name}: .*{sentence}.* Choose another rule"):
        ChainForecaster(A, {"a": part("a", {kpi: 1.0}, load=load)}, kpi, rule)


def test_no_function_carries_more_than_is_offered() -> None:
    # Profiled from 100/s on: below that its model knows of nothing less.
    parts = {"a": part("a", {"throughput_rps": lambda _, wl: max(wl, 100.0)})}
    said = ChainForecaster(A, parts, "throughput_rps").forecast([at(30.0), at(300.0)])
    assert np.exp(said.mean) == pytest.approx([30.0, 300.0])


def test_every_kpi_has_its_default_rule() -> None:
    assert default_rule("mean_ms", "open") == AddedMeans()
    assert default_rule("p95_ms", "packets") == Convolved()
    assert default_rule("p95_ms", "closed") == BottleneckAndSum()
    assert default_rule("throughput_pps", "packets") == LeastThroughput()
    assert default_rule("error_pct", "closed") == ThinnedLoss()
    assert default_rule("jitter_ms", "packets") == WeakestLink()
    with pytest.raises(UsageError, match="lag_pct"):
        default_rule("lag_pct", "open")


def test_rules_are_registered_under_their_names() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    for name, place in project["project"]["entry-points"]["workbench.chain_rules"].items():
        module, _, kind = place.partition(":")
        assert getattr(import_module(module), kind)().name == name


# ------------------------------------------------------------------ against queues


def served(arrivals: np.ndarray, service: np.ndarray) -> np.ndarray:
    """When a single server is done with each request (Lindley's recursion)."""
    total = np.cumsum(service)
    return total + np.maximum.accumulate(arrivals - (total - service))


@pytest.mark.parametrize("rate", [0.3, 0.7])
def test_two_queues_one_behind_the_other_under_an_open_load(rate: float) -> None:
    """Added means and convolved percentiles against half a million requests."""
    random, n = np.random.default_rng(7), 500_000
    arrivals = np.cumsum(random.exponential(1.0 / rate, n))
    services = [random.lognormal(math.log(m) - 0.125, 0.5, n) for m in (1.0, 0.8)]
    alone = [served(arrivals, service) - arrivals for service in services]
    both = served(served(arrivals, services[0]), services[1]) - arrivals

    def figures(times: np.ndarray) -> dict[str, float]:
        p50, p95, p99 = np.quantile(times, (0.5, 0.95, 0.99))
        return {"p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "mean_ms": times.mean()}

    parts = {v.name: part(v.name, figures(t)) for v, t in zip((A, B), alone, strict=True)}
    for kpi, true in figures(both).items():
        said = ChainForecaster(Series((A, B)), parts, kpi).forecast([at(9.0)]).mean[0]
        # What leaves the first queue comes more evenly than what reached it.
        assert 0.99 * true <= np.exp(said) <= 1.15 * true
        weakest = ChainForecaster(Series((A, B)), parts, kpi, WeakestLink()).forecast([at(9.0)])
        assert np.exp(weakest.mean[0]) < 0.9 * true


def test_two_queues_in_a_closed_loop() -> None:
    """The unscaled rule is the asymptotic bound, next to exact mean value analysis."""
    demands = {"a": 1.0, "b": 0.4}
    parts = {
        n: part(n, {"mean_ms": lambda _, wl, d=d: d * wl}, load=CLOSED) for n, d in demands.items()
    }
    chain = ChainForecaster(Series((A, B)), parts, "mean_ms")
    waiting = np.zeros(2)
    for clients in range(1, 65):
        times = np.array(list(demands.values())) * (1.0 + waiting)
        waiting = times * clients / times.sum()
        said = np.exp(chain.forecast([at(float(clients))]).mean[0])
        assert said <= times.sum() * (1.0 + 1e-9)
        assert said >= 0.75 * times.sum()
    assert said == pytest.approx(times.sum(), rel=0.02), "64 clients"


# ------------------------------------------------------------------ walking


def graphs(names: list[str]) -> st.SearchStrategy[Node]:
    """Chains of these functions, nested at will."""
    if len(names) == 1:
        return st.just(Vnf(names[0], names[0]))

    def joined(cut: int) -> st.SearchStrategy[Node]:
        sides = st.tuples(graphs(names[:cut]), graphs(names[cut:]))
        share = st.floats(0.1, 0.9)
        return st.one_of(
            sides.map(Series),
            st.tuples(sides, share).map(lambda t: Parallel(t[0], (t[1], 1.0 - t[1]))),
        )

    return st.integers(1, len(names) - 1).flatmap(joined)


@settings(max_examples=examples(40), deadline=None)
@given(graph=graphs(list("abcde")))
def test_splits_conserve_load_and_every_interval_holds_its_mean(graph: Node) -> None:
    names = [vnf.name for vnf in functions_of(graph)]
    assert names == list("abcde")
    parts = {n: part(n, {"loss_pct": overload(25.0), "mean_ms": 1.0}, sd=0.3) for n in names}
    chain = ChainForecaster(graph, parts, "mean_ms", draws=50)
    idle, busy = chain.outlook([at(20.0)]), chain.outlook([at(200.0)])
    for name, visits in visits_of(graph).items():
        assert idle.loads[name] == pytest.approx([20.0 * visits]), "nothing is lost"
        assert (busy.loads[name] <= 200.0 * visits * (1 + 1e-9)).all()
    loss = ChainForecaster(graph, parts, "loss_pct", draws=50).forecast([at(200.0), at(20.0)])
    for one in (idle.chain, busy.chain, loss):
        assert (one.low <= one.mean).all()
        assert (one.mean <= one.high).all()
    assert np.exp(loss.mean[0]) <= 100.0
    # At most five branches of 25 pass.
    assert np.exp(loss.mean[0]) >= 100.0 * (1.0 - 125.0 / 200.0) - 1e-6


# ------------------------------------------------------------------ distributions


def test_a_distribution_has_the_percentiles_and_the_mean_that_it_was_made_of() -> None:
    p50, p95, p99 = np.array([0.6, 10.0]), np.array([60.0, 18.0]), np.array([75.0, 24.0])
    mean = np.array([7.0, 10.8])
    made = ResponseTimes.of(p50, p95, p99, mean)
    said = made.quantiles(np.array([0.5, 0.95, 0.99]))
    assert said == pytest.approx(np.stack([p50, p95, p99], axis=1))
    assert made.mean() == pytest.approx(mean, rel=1e-3)
    u = (np.arange(20_000) + 0.5) / 20_000
    drawn = made.quantiles(u)
    assert (np.diff(drawn, axis=1) >= 0.0).all()
    assert drawn.mean(axis=1) == pytest.approx(mean, rel=0.01)


def test_percentiles_of_a_sum_are_those_of_a_million_requests() -> None:
    random = np.random.default_rng(1)
    locations, sds, n = (0.0, 0.7), (0.8, 0.5), 300_000
    draws = [random.lognormal(m, s, n) for m, s in zip(locations, sds, strict=True)]
    laws = [
        ResponseTimes.of(*(np.array([np.quantile(d, p)]) for p in (0.5, 0.95, 0.99)),
                         np.array([d.mean()]))
        for d in draws
    ]  # fmt: skip
    u = uniforms(4096, 2, seed=0)
    times = np.stack([law.quantiles(u[:, k]) for k, law in enumerate(laws)])
    for p in (0.5, 0.95, 0.99):
        said = percentile_of_sum(times, p).parts.sum(axis=0)
        assert said == pytest.approx([np.quantile(sum(draws), p)], rel=0.03)


def test_a_percentile_is_shared_out_as_its_functions_move_it() -> None:
    u = uniforms(4096, 2, seed=0)
    laws = [ResponseTimes.of(np.array([p50]), np.array([2.0 * p50])) for p50 in (1.0, 3.0)]
    times = np.stack([law.quantiles(u[:, k]) for k, law in enumerate(laws)])
    moved = percentile_of_sum(times * np.array([1.05, 1.0])[:, None, None], 0.95)
    linear = percentile_of_sum(times, 0.95).scaled(np.array([1.05, 1.0])[:, None, None])
    assert linear[0] == pytest.approx(moved.parts.sum(axis=0), rel=3e-3)


def test_branches_are_a_mixture_and_not_a_mean_of_percentiles() -> None:
    def narrow(p50: float) -> dict[str, float]:
        return {"p50_ms": p50, "p95_ms": 1.1 * p50, "p99_ms": 1.15 * p50}

    parts = {"a": part("a", narrow(1.0)), "b": part("b", narrow(100.0))}
    rare = ChainForecaster(Parallel((A, B), (0.97, 0.03)), parts, "p95_ms").forecast([at(9.0)])
    often = ChainForecaster(Parallel((A, B), (0.9, 0.1)), parts, "p95_ms").forecast([at(9.0)])
    assert np.exp(rare.mean[0]) == pytest.approx(1.1, rel=0.1), "the slow are beyond the percentile"
    assert np.exp(often.mean[0]) == pytest.approx(100.0, rel=0.1), "half of the slow are within it"


def test_an_interval_reaches_from_independent_to_comonotone_functions() -> None:
    times = dict(TIMES)
    parts = {n: part(n, times, sd=1e-4) for n in "ab"}
    said = ChainForecaster(Series((A, B)), parts, "p95_ms").forecast([at(9.0)])
    mean, high = np.exp(said.mean[0]), np.exp(said.high[0])
    assert mean < 5.5, "two requests in a hundred are slow at both"
    assert high == pytest.approx(6.0, rel=0.03), "or all that are slow at one are at the other"


def test_random_numbers_fill_every_column_and_every_pair_evenly() -> None:
    u = uniforms(400, 6, seed=3)
    for column in u.T:
        assert np.sort(column) == pytest.approx((np.arange(400) + 0.5) / 400)
    correlations = np.corrcoef(u.T) - np.eye(6)
    assert np.abs(correlations).max() < 0.1
    assert (u == uniforms(400, 6, seed=3)).all()
    assert (u != uniforms(400, 6, seed=4)).any()
