"""Paper B's workflow: edges, who matters, Algorithm 3, when a parameter is left."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
from synthetic_function import OPEN, TARGET, make_sample

from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration, Parameter, PrimaryWorkload, grid
from workbench.domain.samples import Sample
from workbench.models.interpolation import LogInterpolation
from workbench.sampling.base import Ask, Space
from workbench.sampling.factors import Factor
from workbench.sampling.growth import next_value
from workbench.sampling.heuristic import HeuristicSampler
from workbench.sampling.surface import Seen, change_of_rmse

RATE = PrimaryWorkload("rate", 100.0, 500_000.0)
VCPU = Parameter("fw.vcpu", (0.25, 0.5, 1.0, 2.0, 3.0))
FLOWS = Parameter("flows", (1.0, 100.0, 1000.0, 10000.0))
SIZE = Parameter("packet_bytes", (64.0, 512.0, 1500.0))


def space(*workload: Parameter, seed: int = 1) -> Space:
    configurations = tuple(grid((VCPU,), workload))
    return Space(TARGET, configurations, RATE, OPEN, "loss_pct", 30.0, 0.005, None, seed)


def firewall(size: float, flows: float) -> Callable[[Ask], Sample]:
    """Loss beyond a capacity that grows with the allocation, and with the exponents given."""

    def measure(ask: Ask) -> Sample:
        c = ask.configuration
        capacity = 60_000.0 * c.vcpu("fw") ** 0.9
        capacity *= (c.parameter("packet_bytes", 64.0) / 64.0) ** size
        capacity *= c.parameter("flows", 1.0) ** flows
        return make_sample(
            ask.wl,
            {"loss_pct": max(0.0, 100.0 * (1.0 - capacity / ask.wl))},
            configuration=c,
            repetition=ask.repetition,
        )

    return measure


def run(sampler: HeuristicSampler, measure: Callable[[Ask], Sample]) -> list[Ask]:
    asks = []
    while (ask := sampler.ask()) is not None:
        asks.append(ask)
        sampler.tell([measure(ask)])
    return asks


def made(where: Space, **options: float | str) -> HeuristicSampler:
    plan = SamplingPlan("heuristic", 6, 0.01, options=options)
    return HeuristicSampler(where, plan, model_factory=LogInterpolation)


def order_of(asks: Sequence[Ask], key: str) -> list[float]:
    """Values of a parameter as they came after the edges."""
    later = [a for a in asks if a.why != "an edge of the space"]
    values = [{**a.configuration.resources, **a.configuration.workload}[key] for a in later]
    return [float(v) for v in dict.fromkeys(values)]


def test_who_stands_out_is_sampled_completely_before_the_next() -> None:
    """As paper B's Table 2: first the allocation, at the middle value of the others."""
    asks = run(
        sampler := made(space(FLOWS, SIZE), configuration_epsilon=0.0), firewall(-0.05, -0.01)
    )
    assert sampler.influence is not None
    assert max(sampler.influence.overall, key=sampler.influence.overall.__getitem__) == "rate"
    assert [a.why for a in asks[:16]] == ["an edge of the space"] * 16
    later = asks[16:]
    first = [
        a for a in later if a.configuration.workload == {"flows": 1000.0, "packet_bytes": 512.0}
    ]
    assert later[: len(first)] == first, "nothing else before the allocations are through"
    assert {a.configuration.vcpu("fw") for a in first} == set(VCPU.values)
    sizes_done = max(i for i, a in enumerate(later) if a.configuration.parameter("flows") == 1000.0)
    others = [i for i, a in enumerate(later) if a.configuration.parameter("flows") != 1000.0]
    assert min(others) > sizes_done - 1, "packet sizes are through before the flows begin"
    assert {a.configuration for a in asks} == set(space(FLOWS, SIZE).configurations)


def test_where_nobody_stands_out_they_take_turns() -> None:
    """As paper B's Table 3: both ends of all, then a value of each in turn."""
    asks = run(sampler := made(space(SIZE), configuration_epsilon=0.0), firewall(0.72, 0.0))
    assert sampler.influence is not None
    shares = sampler.influence.overall
    assert shares["fw.vcpu"] < 2.0 * shares["packet_bytes"] < 4.0 * shares["fw.vcpu"]
    seen = [(a.configuration.vcpu("fw"), a.configuration.parameter("packet_bytes")) for a in asks]
    vcpus, sizes = order_of(asks, "fw.vcpu"), order_of(asks, "packet_bytes")
    assert set(vcpus[:2]) == {0.25, 3.0}
    assert set(sizes[:2]) == {64.0, 1500.0}
    grid_end = max(seen.index((v, s)) for v in (0.25, 3.0) for s in (64.0, 1500.0))
    size = seen.index((0.25, 512.0))
    third, fourth, fifth = (seen.index((v, 64.0)) for v in vcpus[2:])
    assert grid_end < size < third < fourth < fifth, "packet size matters a little more: first"


def test_a_parameter_without_influence_is_left_early() -> None:
    where = space(FLOWS)
    asks = run(sampler := made(where, configuration_epsilon=0.02), firewall(0.0, 0.0))
    sampled = {a.configuration for a in asks}
    # The middle of the flows and both ends: there they add nothing, and the others are spared.
    spared = set(where.configurations) - sampled
    assert spared == {c for c in where.configurations if c.parameter("flows") == 100.0}
    for configuration in spared:
        ending = sampler.endings[configuration]
        assert (ending.outcome, ending.note.partition(":")[0]) == ("converged", "not needed")


def test_within_a_configuration_it_is_algorithm_one() -> None:
    asks = run(made(space(), configuration_epsilon=0.0), firewall(0.0, 0.0))
    for value in VCPU.values:
        own = [a for a in asks if a.configuration.vcpu("fw") == value]
        assert {a.wl for a in own[:2]} == {RATE.low, RATE.high}
        assert own[2].wl == pytest.approx(math.sqrt(RATE.low * RATE.high), rel=1e-3)
        assert all("bisects" in a.why for a in own[2:])
        assert len(own) == 6


def test_edges_that_are_not_valid_leave_no_order_and_stop_nothing() -> None:
    measure = firewall(-0.05, 0.0)

    def answer(ask: Ask) -> Sample:
        if ask.why == "an edge of the space":
            return make_sample(ask.wl, {}, configuration=ask.configuration, reason="errors")
        return measure(ask)

    asks = run(sampler := made(space(SIZE), configuration_epsilon=0.0), answer)
    assert sampler.influence is None
    assert {a.configuration for a in asks} == set(space(SIZE).configurations)
    assert {e.outcome for e in sampler.endings.values()} == {"max_samples"}


def test_kpis_may_be_several() -> None:
    measure = firewall(-0.05, 0.0)

    def answer(ask: Ask) -> Sample:
        sample = measure(ask)
        return make_sample(
            ask.wl,
            {"loss_pct": sample.kpis["loss_pct"].value, "goodput_mbps": 8.0},
            configuration=ask.configuration,
            repetition=ask.repetition,
        )

    run(sampler := made(space(SIZE), kpis="loss_pct, goodput_mbps"), answer)
    assert sampler.influence is not None
    assert sampler.influence.kpis == ("loss_pct", "goodput_mbps")
    assert sampler.influence.weights[1] == (0.0, 0.0, 0.0)


# --- Algorithm 3


def level(sample: Sample) -> float:
    return math.log(sample.kpis["loss_pct"].value)


def at(vcpu: float, loss: float, reason: str = "") -> Sample:
    configuration = Configuration({"fw.vcpu": vcpu}, {})
    return make_sample(100.0, {"loss_pct": loss}, configuration=configuration, reason=reason)


def test_algorithm_three_takes_the_middle_of_the_largest_change() -> None:
    factor = Factor("fw.vcpu", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0), log=True)
    samples = [at(1.0, 90.0), at(1.0, 30.0), at(4.0, 20.0), at(7.0, 1.0)]
    assert next_value(factor, (1.0, 7.0), samples, level) == [4.0]
    assert next_value(factor, (1.0, 4.0, 7.0), samples, level) == [5.0]
    # The invalid one would have turned it round.
    samples.append(at(1.0, 1e9, reason="errors"))
    assert next_value(factor, (1.0, 4.0, 7.0), samples, level) == [5.0]
    # No value is left between 4 and 5: the next largest change.
    samples += [at(5.0, 1.0), at(6.0, 1.0)]
    assert next_value(factor, (1.0, 4.0, 5.0, 6.0, 7.0), samples, level) == [2.0]
    assert next_value(factor, factor.values, samples, level) == []


# --- the stop over configurations


def curve(row: tuple[float, ...], shift: float = 0.0) -> list[Seen]:
    return [Seen(row, x, 2.0 * x + 0.5 * row[0] + shift) for x in (0.0, 0.5, 1.0)]


def test_change_of_rmse_is_what_the_old_profile_missed() -> None:
    old = [*curve((0.0, 0.0)), *curve((1.0, 0.0)), *curve((0.0, 1.0), 7.0)]
    assert change_of_rmse(old, curve((0.5, 0.0)), 0, 4.0) == pytest.approx(0.0, abs=1e-12)
    missed = change_of_rmse(old[:6], curve((0.5, 0.0), 0.6), 0, 4.0)
    assert missed == pytest.approx(0.6 * math.sqrt(3 / 9) / 4.0)
    # A factor without influence, though the other one has some: its line is followed.
    assert change_of_rmse(old[:6], curve((1.0, 0.4)), 1, 4.0) == pytest.approx(0.0, abs=1e-12)
    # No line: the nearest configuration stands in.
    assert change_of_rmse(old[:6], curve((0.9, 0.4)), None, 4.0) == pytest.approx(
        0.05 * math.sqrt(3 / 9) / 4.0
    )


def test_nothing_new_changes_nothing_and_nothing_old_knows_nothing() -> None:
    assert change_of_rmse(curve((0.0,)), [], 0, 4.0) == 0.0
    assert change_of_rmse([], curve((0.0,)), 0, 4.0) == math.inf
    assert change_of_rmse(curve((0.0,))[:2], curve((1.0,)), 0, 4.0) == math.inf, "two edges"
