"""The cheapest deployment that holds, its margin, and what is said where nothing does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from sla.foretold import CACHE, PROXY, Foretold, at_least, p95, profiled, response, vcpus

from workbench.domain.errors import NothingAllowed, OutsideProfile
from workbench.domain.parameters import Configuration, Parameter, Sla
from workbench.models.base import Floats
from workbench.models.forecast import Forecast, Points
from workbench.models.scales import NORMAL_95
from workbench.sla import recommendation
from workbench.sla.costs import VcpuHours, allowed
from workbench.sla.performance import ProfilePerformance, joint
from workbench.sla.profiled import Profiled
from workbench.sla.recommendation import Answer, recommend
from workbench.sla.sla_query import asked

RESOURCES = (PROXY, CACHE)


def answered(
    slas: Sequence[Sla],
    *forecasters: Foretold,
    resources: tuple[Parameter, ...] = RESOURCES,
    known: Profiled | None = None,
    usage: object = None,
    **options: object,
) -> Answer:
    known = known or profiled()
    by_kpi = {one.kpi: one for one in forecasters or (Foretold("p95_ms", response),)}
    question = asked(slas, known, tuple(by_kpi), **options)  # type: ignore[arg-type]
    performance = ProfilePerformance(by_kpi, question.workload, usage)  # type: ignore[arg-type]
    cost = VcpuHours()
    return recommend(question, performance, [allowed(resources, cost)], known, cost)


def test_the_cheapest_allocation_that_holds_is_chosen_and_dearer_ones_are_listed() -> None:
    # 10 clients take 1000 ms at one core of proxy, and at half a core of cache.
    answer = answered([p95(1150.0)])
    assert answer.chosen is not None
    assert vcpus(answer.chosen.allocation) == (1.0, 0.5)
    assert answer.chosen.cost == 1.5
    assert answer.chosen.cost_unit == "vCPU"
    assert answer.chosen.probability >= 0.95
    assert answer.chosen.kpis["p95_ms"].value == pytest.approx(1000.0)
    assert answer.chosen.kpis["p95_ms"].high == pytest.approx(1000.0 * math.exp(NORMAL_95 * 0.05))
    assert [vcpus(one.allocation) for one in answer.runners_up] == [
        (1.0, 1.0),
        (2.0, 0.5),
        (1.0, 2.0),
    ]
    assert answer.closest is None
    assert answer.note == ""


class LessSureOfMore(Foretold):
    """Of more cache it knows less."""

    def forecast(self, points: Points) -> Forecast:
        said = super().forecast(points)
        wider = np.array([2.0 * configuration.vcpu("cache") for configuration, _ in points])
        low, high = (said.mean + wider * (end - said.mean) for end in (said.low, said.high))
        return Forecast(said.mean, low, high, said.extrapolates)


def test_an_allocation_is_no_less_sure_than_one_that_gives_no_function_more() -> None:
    answer = answered([p95(1150.0)], LessSureOfMore("p95_ms", response), confidence=0.6)
    assert answer.chosen is not None
    held = (answer.chosen, *answer.runners_up)
    assert len(held) == 4
    pairs = 0
    for less in held:
        for more in held:
            if more is not less and more.deployment.gives_at_least(less.deployment):
                assert more.probability >= less.probability
                assert more.margin_wl is not None
                assert less.margin_wl is not None
                assert more.margin_wl >= less.margin_wl
                pairs += 1
    assert pairs >= 3


def test_at_the_edge_of_what_is_allowed_a_smaller_one_may_do() -> None:
    assert answered([p95(8000.0)]).is_first
    assert not answered([p95(1040.0)]).is_first


def test_a_limit_within_the_error_of_the_estimate_asks_for_the_next_allocation() -> None:
    answer = answered([p95(1040.0)])  # 0.8 standard deviations over 1000 ms
    assert answer.chosen is not None
    assert vcpus(answer.chosen.allocation) == (2.0, 1.0)


def test_more_confidence_costs_more() -> None:
    costs = []
    for confidence in (0.6, 0.95, 0.9999):
        chosen = answered([p95(1120.0)], confidence=confidence).chosen
        assert chosen is not None
        costs.append(chosen.cost)
    assert costs == [1.5, 1.5, 3.0]


def test_a_forecast_of_all_candidates_is_made_at_once() -> None:
    class Batches(Foretold):
        def forecast(self, points: Points) -> Forecast:
            sizes.append(len(points))
            return super().forecast(points)

    sizes: list[int] = []
    answered([p95(1150.0)], Batches("p95_ms", response))
    assert sizes[0] == 16
    assert len(sizes) < 60


def test_looking_at_a_few_at_a_time_finds_the_same_and_stops_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = answered([p95(1150.0)])
    monkeypatch.setattr(recommendation, "_AT_ONCE", 2)
    few = answered([p95(1150.0)])
    assert few.chosen == whole.chosen
    assert few.runners_up == whole.runners_up
    assert few.judged < whole.judged == 16


def test_too_many_to_look_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recommendation, "MOST_JUDGED", 5)
    answer = answered([p95(400.0)])
    assert answer.judged == 5
    assert answer.note.endswith("Dearer ones were not looked at: there are too many.")


def test_the_margin_is_the_load_that_is_still_carried_with_the_confidence() -> None:
    chosen = answered([p95(1150.0)]).chosen
    assert chosen is not None
    assert chosen.margin_wl is not None
    carried = 10.0 + chosen.margin_wl
    # One core: 100 ms a client. The contenders that fail are far away, so that 1.645 sd remain.
    assert carried == pytest.approx(11.5 * math.exp(-1.6449 * 0.05), rel=0.01)
    assert not chosen.margin_open


def test_clients_come_whole() -> None:
    chosen = answered([p95(10_000.0, 20.0)], known=profiled(integer=True)).chosen
    assert chosen is not None
    assert chosen.margin_wl == 3.0, "a quarter of a core: 400 ms a client, 23.03 of them"


def test_a_margin_beyond_the_profile_is_open() -> None:
    chosen = answered([p95(1e6)]).chosen
    assert chosen is not None
    assert chosen.margin_wl == pytest.approx(90.0)
    assert chosen.margin_open


def test_a_margin_ends_where_the_samples_do() -> None:
    chosen = answered([p95(1e6)], Foretold("p95_ms", response, known=(1.0, 60.0))).chosen
    assert chosen is not None
    assert chosen.margin_wl == pytest.approx(50.0, rel=1e-3)
    assert chosen.margin_open


class Patchy(Foretold):
    """Knows nothing of loads from `gap[0]` to `gap[1]`, both left out."""

    gap = (0.0, 0.0)

    def forecast(self, points: Points) -> Forecast:
        said = super().forecast(points)
        inside = [self.gap[0] < wl < self.gap[1] for _, wl in points]
        return replace(said, extrapolates=said.extrapolates | np.array(inside, dtype=bool))


ONE_CORE = (Parameter("proxy.vcpu", (1.0,)), Parameter("cache.vcpu", (1.0,)))


@pytest.mark.parametrize(
    ("limit", "gap", "carried"),
    [
        (500.0, (0.0, 6.0), None),  # it might carry 4.6 clients: nobody knows
        (800.0, (0.0, 6.0), 8.0 * math.exp(-1.645 * 0.05)),  # what is unknown is passed over
        (600.0, (5.0, 7.0), 5.0),  # it might carry 5.5: known is that it carries 5
    ],
)
def test_only_a_load_that_is_known_counts_as_carried(
    limit: float, gap: tuple[float, float], carried: float | None
) -> None:
    patchy = Patchy("p95_ms", response)
    patchy.gap = gap
    closest = answered([p95(limit)], patchy, resources=ONE_CORE).closest
    assert closest is not None
    if carried is None:
        assert closest.margin_wl is None
        assert not closest.margin_open
    else:
        assert closest.margin_wl == pytest.approx(carried - 10.0, abs=0.02)


def test_a_model_that_inverts_itself_is_asked_instead_of_bisecting() -> None:
    class Inverts(Foretold):
        def inverse(
            self, configurations: Sequence[Configuration], limit: float, probability: float
        ) -> Floats:
            asked_for.append((limit, probability))
            return np.full(len(configurations), 12.5)

    asked_for: list[tuple[float, float]] = []
    scanned = Foretold("p95_ms", response)
    answered([p95(1150.0)], scanned)
    inverts = Inverts("p95_ms", response)
    chosen = answered([p95(1150.0)], inverts).chosen
    assert chosen is not None
    assert chosen.margin_wl == pytest.approx(2.5)
    assert asked_for[0][0] == pytest.approx(math.log(1150.0))
    assert asked_for[0][1] == pytest.approx(0.95, abs=1e-3)
    assert inverts.counted < scanned.counted


def dipping(configuration: Configuration, wl: float) -> float:
    """R(1) = 1.4 R(4), as with a delayed acknowledgement that load drives out."""
    return max(1400.0 if wl < 3.0 else 1000.0, 100.0 * wl) / configuration.vcpu("proxy")


def test_what_holds_at_the_asked_load_but_not_below_it_is_passed_over_and_said() -> None:
    one = (Parameter("proxy.vcpu", (0.5, 1.0, 2.0)), Parameter("cache.vcpu", (0.5,)))
    answer = answered([p95(1200.0, 8.0)], Foretold("p95_ms", dipping, 0.02), resources=one)
    assert answer.chosen is not None
    assert answer.chosen.allocation["proxy.vcpu"] == 2.0
    assert "hold at 8 clients but not at every lower load: 1" in answer.note
    assert answer.chosen.margin_wl == pytest.approx(
        2 * 12.0 * math.exp(-1.645 * 0.02) - 8.0, rel=0.02
    )


def test_lower_loads_must_hold_more_likely_than_not() -> None:
    def dips(configuration: Configuration, wl: float) -> float:
        return max(1100.0 if wl < 3.0 else 900.0, 100.0 * wl) / configuration.vcpu("proxy")

    one = (Parameter("proxy.vcpu", (0.5, 1.0, 2.0)), Parameter("cache.vcpu", (0.5,)))
    answer = answered([p95(1200.0, 8.0)], Foretold("p95_ms", dips, 0.1), resources=one)
    assert answer.chosen is not None
    assert answer.chosen.allocation["proxy.vcpu"] == 1.0, "at 8 clients it is sure"
    assert answer.chosen.probability >= 0.95
    assert answer.note == ""


def test_several_kpis_in_both_directions_hold_together() -> None:
    def throughput(configuration: Configuration, wl: float) -> float:
        return min(20.0 * wl, 300.0 * configuration.vcpu("cache"))

    both = (Foretold("p95_ms", response, 0.02), Foretold("throughput_rps", throughput, 0.02))
    answer = answered([p95(1150.0), at_least(180.0)], *both)
    assert answer.chosen is not None
    assert vcpus(answer.chosen.allocation) == (1.0, 1.0), "half a core of cache carries 150/s"
    assert set(answer.chosen.kpis) == {"p95_ms", "throughput_rps"}
    # Throughput is small at small loads, and that is no miss; from 10 clients on it stays.
    assert answer.chosen.margin_wl is not None
    assert answer.chosen.margin_wl > 0.0
    only = answered([at_least(180.0)], *both)
    assert only.chosen is not None
    assert vcpus(only.chosen.allocation) == (0.25, 1.0)
    assert only.chosen.margin_open


def test_a_lower_limit_that_fails_carries_no_load_at_all() -> None:
    answer = answered(
        [at_least(180.0)], Foretold("throughput_rps", lambda c, _: 20.0 * c.vcpu("proxy"))
    )
    assert answer.chosen is None
    assert answer.closest is not None
    assert answer.closest.margin_wl is None


def test_the_joint_margin_is_that_of_the_sum_of_the_risks() -> None:
    assert joint(np.array([[1.0]])) == pytest.approx([1.0])
    two = joint(np.array([[1.959964, 1.959964], [1.644854, 9.0], [-1.0, 3.0]]))
    assert two == pytest.approx([1.644854, 1.644854, -1.0], abs=0.01)


def test_where_nothing_meets_the_sla_the_closest_is_named() -> None:
    answer = answered([p95(400.0)])
    assert answer.chosen is None
    assert answer.runners_up == ()
    assert answer.closest is not None
    assert vcpus(answer.closest.allocation) == (2.0, 1.0), "as near as (2, 2), and cheaper"
    assert answer.closest.probability < 0.5
    assert answer.closest.margin_wl == pytest.approx(-2.2, abs=0.5)
    assert answer.note == (
        "None of 16 allowed allocations holds with a confidence of 95%. What may help: a milder "
        "SLA, less confidence, larger allocations, or more samples where intervals are wide."
    )


def test_hopeless_is_still_told_from_more_hopeless() -> None:
    answer = answered([p95(1.0)])
    assert answer.closest is not None
    assert vcpus(answer.closest.allocation) == (2.0, 1.0)
    assert answer.closest.probability == pytest.approx(0.0, abs=1e-12)
    assert answer.closest.margin_wl is None, "not even one client"


def test_an_allocation_that_nobody_measured_is_marked() -> None:
    between = (Parameter("proxy.vcpu", (0.5, 1.5)), Parameter("cache.vcpu", (1.0,)))
    answer = answered([p95(800.0)], resources=between)
    assert answer.chosen is not None
    assert answer.chosen.allocation["proxy.vcpu"] == 1.5
    assert not answer.chosen.profiled
    assert "Nobody measured this allocation" in answer.note


def test_an_allocation_outside_of_the_samples_is_not_recommended_but_counted() -> None:
    wide = (Parameter("proxy.vcpu", (0.25, 4.0)), Parameter("cache.vcpu", (1.0,)))
    answer = answered([p95(800.0)], Foretold("p95_ms", response, most_vcpu=2.0), resources=wide)
    assert answer.chosen is None
    assert [vcpus(one.allocation) for one in answer.unjudged] == [(4.0, 1.0)]


def test_where_nothing_was_profiled_around_the_load_that_is_refused() -> None:
    with pytest.raises(OutsideProfile, match=r"none of the 16 .* 80 clients: the combination"):
        answered([p95(800.0, 80.0)], Foretold("p95_ms", response, known=(1.0, 60.0)))
    beyond = (Parameter("proxy.vcpu", (4.0,)), Parameter("cache.vcpu", (1.0,)))
    with pytest.raises(OutsideProfile, match=r"proxy\.vcpu lies outside of the samples"):
        answered([p95(800.0)], Foretold("p95_ms", response, most_vcpu=2.0), resources=beyond)


def test_no_allowed_allocation_is_an_error_of_its_own() -> None:
    with pytest.raises(NothingAllowed):
        answered([p95(800.0)], resources=())


def test_the_next_window_is_less_sure_than_the_long_run() -> None:
    long_run = answered([p95(1150.0)]).chosen
    answer = answered([p95(1150.0)], window_sd={"p95_ms": 0.12})
    assert long_run is not None
    assert answer.chosen is not None
    assert answer.chosen.cost > long_run.cost
    made = answer.recommendation("r1", "s", "chain", model_version=2, at=5.0)
    assert made.probability_of == "next_window"
    assert (made.met, made.model_version, made.judged) == (True, 2, 16)


def test_usage_is_a_share_of_the_allocation() -> None:
    class Cores:
        def forecast(self, points: Points) -> Mapping[str, Forecast]:
            mean = np.full(len(points), math.log(0.2))
            nowhere = np.zeros(len(points), dtype=bool)
            return {"proxy": Forecast(mean, mean, mean, nowhere)}

    chosen = answered([p95(1150.0)], usage=Cores()).chosen
    assert chosen is not None
    assert chosen.usage == {"proxy": pytest.approx(0.2)}
