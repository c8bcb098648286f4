"""The pooled sampler: it goes to the breakpoints, keeps its guard, stops where it was told to."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from synthetic_function import OPEN, TARGET, make_sample

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, PrimaryWorkload, Sla
from workbench.sampling.base import Space
from workbench.sampling.pooled import GUARD, PooledSampler

CONFIGURATIONS = tuple(
    Configuration({"f.vcpu": vcpu}, {"size_bytes": size})
    for vcpu in (0.25, 0.5, 1.0, 2.0, 4.0)
    for size in (100.0, 1000.0)
)
RATE = PrimaryWorkload("rate", 10.0, 100_000.0)


LIMIT = Sla("p95_ms", 40.0)


def space(sla=None, **given):
    return Space(TARGET, CONFIGURATIONS, RATE, OPEN, "p95_ms", 1000.0, 0.005, sla, 0, **given)


def capacity(configuration):
    return 2_000.0 * configuration.vcpu("f") ** 0.9 * configuration.workload["size_bytes"] ** -0.1


def answer(ask):
    """Flat at 5 ms, then steeply up; 4 % of noise."""
    rng = np.random.default_rng(int(ask.wl * 7) + CONFIGURATIONS.index(ask.configuration))
    u = math.log(ask.wl / capacity(ask.configuration))
    p95 = 5.0 * math.exp(5.0 * np.logaddexp(0.0, 12.0 * u) / 12.0 + 0.04 * rng.standard_normal())
    kpis = {"p95_ms": min(p95, 5_000.0)}
    return make_sample(ask.wl, kpis, configuration=ask.configuration, repetition=ask.repetition)


def play(sampler, most):
    asks = []
    while len(asks) < most and (ask := sampler.ask()) is not None:
        asks.append(ask)
        sampler.tell([answer(ask)])
    return asks


@pytest.fixture(scope="module")
def whole():
    """One that plays by default to its end, and what it asked; for those who only look."""
    sampler = PooledSampler(space(), SamplingPlan(max_samples=20))
    return sampler, play(sampler, 150)


@pytest.fixture(scope="module")
def endless():
    """What one asks that is never accurate enough, up to sixty times."""
    plan = SamplingPlan(max_samples=20, options={"accuracy": 0.0})
    return play(PooledSampler(space(), plan), 60)


def test_most_samples_lie_near_breakpoints_and_every_eighth_fills_the_space(endless):
    asks = endless[:40]
    late = [ask for ask in asks[16:] if "fills" not in ask.why]
    near = [abs(math.log(ask.wl / capacity(ask.configuration))) < 1.2 for ask in late]
    assert np.mean(near) > 0.8
    assert all("fills" in ask.why for ask in asks[GUARD - 1 :: GUARD])


@pytest.mark.parametrize(("configurations", "filled"), [(1, 6), (5, 10), (10, 16)])
def test_twice_as_many_samples_as_configurations_fill_the_space_before_the_law_is_followed(
    configurations, filled
):
    chosen = replace(space(), configurations=CONFIGURATIONS[:configurations])
    asks = play(PooledSampler(chosen, SamplingPlan(max_samples=40)), filled + 1)
    assert ["fills" in ask.why for ask in asks] == [True] * filled + [False]


def test_where_the_law_counts_for_little_its_breakpoints_end_nothing_and_draw_no_samples():
    sampler = PooledSampler(space(), SamplingPlan(max_samples=40, options={"accuracy": 0.9}))
    play(sampler, 17)
    model, open_ = sampler._model, range(len(CONFIGURATIONS))
    model.weight_ = np.array([0.0, 1.0])
    known = sampler._breakpoints_known()
    assert known
    assert all(sampler.visits[place].taken for place in known)
    gain, _ = sampler._telling(open_)
    model.weight_ = np.array([0.0, 0.1])
    assert sampler._breakpoints_known() == {}
    assert sampler._telling(open_)[0] == pytest.approx(0.1 * gain)


def test_it_stops_at_the_accuracy_and_says_so():
    plan = SamplingPlan(max_samples=20, options={"accuracy": 0.1})
    sampler = PooledSampler(space(), plan)
    asks = play(sampler, 150)
    assert len(asks) < 100
    assert sampler.ask() is None
    endings = sampler.endings
    assert set(endings) == set(CONFIGURATIONS)
    assert all("breakpoint known to" in ending.note for ending in endings.values())


def test_by_default_it_ends_and_what_it_says_of_breakpoints_is_true(whole):
    sampler, _ = whole
    assert sampler.ask() is None
    assert sum(visits.taken for visits in sampler.visits) < 100
    law = sampler._model.law_
    off = law.capacity.posterior - [math.log(capacity(c)) for c in CONFIGURATIONS]
    # The shape's own breakpoint is at a constant distance from ours.
    assert np.ptp(off) < 0.4


def test_an_accuracy_of_zero_never_ends_it_early(endless):
    assert len(endless) == 60


@pytest.mark.parametrize("options", [{"accuracy": -0.1}, {"confidence": 1.0}])
def test_an_accuracy_or_confidence_that_cannot_be_is_refused(options):
    with pytest.raises(DataError, match="accuracy"):
        PooledSampler(space(), SamplingPlan(max_samples=20, options=options))


def test_a_breakpoint_above_the_range_ends_a_configuration():
    """The two largest allocations never saturate: said, not sampled to the end."""
    low = PrimaryWorkload("rate", 10.0, 900.0)
    there = Space(TARGET, CONFIGURATIONS, low, OPEN, "p95_ms", 1000.0, 0.005, None, 0)
    sampler = PooledSampler(there, SamplingPlan(max_samples=20))
    play(sampler, 150)
    above = [c for c, e in sampler.endings.items() if "above the range" in e.note]
    assert above
    assert all(capacity(c) > 800.0 for c in above)


def test_what_is_unresolved_is_said():
    plan = SamplingPlan(max_samples=1, options={"accuracy": 0.01})
    sampler = PooledSampler(space(), plan)
    play(sampler, 50)
    notes = [ending.note for ending in sampler.endings.values()]
    assert len(notes) == len(CONFIGURATIONS)
    assert all("unresolved" in note for note in notes)


def test_the_same_tells_give_the_same_asks(whole):
    _, asks = whole
    second = PooledSampler(space(), SamplingPlan(max_samples=20))
    for ask in asks[:20]:
        second.tell([answer(ask)])
    assert second.ask() == asks[20]


def test_recorded_loads_are_the_only_ones_asked_for():
    loads = dict.fromkeys(CONFIGURATIONS, (10.0, 300.0, 1000.0, 3000.0, 100000.0))
    plan = SamplingPlan(max_samples=20, options={"accuracy": 0.0})
    asks = play(PooledSampler(space(loads=loads), plan), 60)
    points = [(ask.configuration.key, ask.wl) for ask in asks]
    assert len(points) == len(set(points)) == 50
    assert all(ask.wl in loads[ask.configuration] for ask in asks)


def test_recorded_loads_end_a_configuration_by_its_own_range():
    """The first configuration was recorded far beyond its breakpoint, the others far below."""
    few = tuple(float(wl) for wl in np.geomspace(10.0, 100.0, 8).round(1))
    many = tuple(float(wl) for wl in np.geomspace(10.0, 10_000.0, 16).round(1))
    loads = dict.fromkeys(CONFIGURATIONS, few) | {CONFIGURATIONS[0]: many}
    sampler = PooledSampler(space(loads=loads), SamplingPlan(max_samples=20))
    play(sampler, 150)
    above = {c for c, e in sampler.endings.items() if "above the range" in e.note}
    assert CONFIGURATIONS[0] not in above
    assert above


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_kpi_that_is_no_number_is_named(value):
    sampler = PooledSampler(space(), SamplingPlan(max_samples=20))
    ask = sampler.ask()
    bad = make_sample(ask.wl, {"p95_ms": value}, configuration=ask.configuration)
    with pytest.raises(DataError, match=f"p95_ms is {value}") as error:
        sampler.tell([bad])
    assert bad.id in str(error.value)


# --- a limit on the KPI

NOT_AIMED_AT = {
    "another KPI": Sla("throughput_rps", 300.0, ">="),
    "above the ceiling": Sla("p95_ms", 2000.0),
    "zero": Sla("p95_ms", 0.0),
}


@pytest.mark.parametrize("sla", NOT_AIMED_AT.values(), ids=NOT_AIMED_AT)
def test_a_limit_that_cannot_be_aimed_at_changes_no_ask_and_is_said(sla, whole):
    plain, asks = whole
    limited = PooledSampler(space(sla), SamplingPlan(max_samples=20))
    assert play(limited, 150) == asks
    assert all("not aimed at" in e.note for e in limited.endings.values())
    assert not any("aimed at" in e.note for e in plain.endings.values())


def crossing(configuration):
    """Load at which p95 is `LIMIT`, by the formula of `answer`."""
    u = math.log(math.expm1(12.0 * math.log(LIMIT.limit / 5.0) / 5.0)) / 12.0
    return capacity(configuration) * math.exp(u)


def test_with_a_limit_it_ends_when_its_crossing_is_known_too_and_says_where_it_is():
    sampler = PooledSampler(space(LIMIT), SamplingPlan(max_samples=20))
    play(sampler, 150)
    assert sampler.ask() is None
    for configuration, ending in sampler.endings.items():
        said = re.search(r"p95_ms crosses 40 at ([\d.]+), known to ([\d.]+) % at 95 %", ending.note)
        assert "breakpoint known to" in ending.note
        assert float(said[2]) <= 10.0
        assert abs(math.log(float(said[1]) / crossing(configuration))) < 0.15


@pytest.mark.slow
def test_a_crossing_outside_of_the_range_is_said():
    """No load is low enough for 4 ms, nor high enough within the range for 900 ms."""
    for limit, where in ((4.0, "below"), (900.0, "above")):
        low = PrimaryWorkload("rate", 10.0, 1.5 * min(capacity(c) for c in CONFIGURATIONS))
        there = replace(space(Sla("p95_ms", limit)), primary=low)
        sampler = PooledSampler(there, SamplingPlan(max_samples=20))
        play(sampler, 200)
        notes = [e.note for e in sampler.endings.values()]
        assert all(f"p95_ms crosses {limit:g} {where} the range" in note for note in notes)


def test_where_the_budget_ends_it_what_is_unresolved_of_the_crossing_is_said():
    plan = SamplingPlan(max_samples=2, options={"accuracy": 0.01})
    sampler = PooledSampler(space(LIMIT), plan)
    play(sampler, 50)
    notes = [ending.note for ending in sampler.endings.values()]
    assert all("unresolved" in note for note in notes)
    assert all("p95_ms crosses 40 somewhere from " in note for note in notes)


FOOT = Sla("p95_ms", 7.0)
"""Where the knee begins: not where most is learned of a capacity."""


def foot(configuration):
    """Load at which p95 is 7 ms."""
    u = math.log(math.expm1(12.0 * math.log(FOOT.limit / 5.0) / 5.0)) / 12.0
    return capacity(configuration) * math.exp(u)


def aimed(sla, seed, most=30):
    """Error of the crossings in log wl, as root mean square over the configurations, and the share
    of samples within a quarter of them, after `most` samples that were taken with the limit `sla`
    known or not."""
    plan = SamplingPlan(max_samples=20, options={"accuracy": 0.0})
    sampler = PooledSampler(replace(space(sla), seed=seed), plan)
    asks = play(sampler, most)
    judge = sampler
    if sla is None:
        judge = PooledSampler(replace(space(FOOT), seed=seed), plan)
        judge.tell([answer(ask) for ask in asks])
    found = [judge._crossing(place).at for place in range(len(CONFIGURATIONS))]
    error = np.array(found) - [math.log(foot(c)) for c in CONFIGURATIONS]
    near = [abs(math.log(ask.wl / foot(ask.configuration))) < 0.25 for ask in asks]
    return float(np.sqrt(np.mean(error**2))), float(np.mean(near))


def test_who_knows_the_limit_samples_near_it_and_knows_the_crossings_better(full_length):
    seeds = range(5 if full_length else 1)
    known, unknown = (
        np.median([aimed(sla, seed) for seed in seeds], axis=0) for sla in (FOOT, None)
    )
    assert known[0] < unknown[0]
    if full_length:  # of one seed nothing is said
        assert known[1] > 1.3 * unknown[1]
