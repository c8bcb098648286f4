"""The breakpoint search as a campaign meets it: samples of one length, configurations in turn."""

import math
from itertools import pairwise

import numpy as np
import pytest
from synthetic_function import CLOSED, LATENCY_SLA, OPEN, TARGET, make_sample

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Parameter, PrimaryWorkload, grid
from workbench.sampling.base import Space
from workbench.sampling.breakpoints import BreakpointSampler

GOAL = 0.005
WINDOW_S = 4
VCPUS = (0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0)
GRID = tuple(grid((Parameter(f"{TARGET}.vcpu", VCPUS),), ()))
JITTER = 0.01


def space_of(configurations=GRID, low=100.0, high=50_000.0, seed=1, load=OPEN, loads=None):
    primary = PrimaryWorkload("rate", low, high)
    return Space(
        TARGET, configurations, primary, load, "p95_ms", 1000.0, GOAL, LATENCY_SLA, seed,
        loads=loads or {},
    )  # fmt: skip


class Function:
    """A hard knee whose capacity jitters every second and grows with the allocation; `visit` is
    what a whole sample is off by, tails of Student's t with 4 degrees (METHOD.md 11)."""

    def __init__(self, seed=0, jitter=JITTER, visit=0.0):
        self.rng, self.jitter, self.visit = np.random.default_rng(seed), jitter, visit
        luck = np.random.default_rng(1000 + seed).normal(0.0, 0.1, len(GRID))
        self.capacities = {
            c: 9_000.0 * c.vcpu(TARGET) ** 0.8 * math.exp(e)
            for c, e in zip(GRID, luck, strict=True)
        }

    def sample(self, ask, reason=""):
        luck = self.visit * self.rng.standard_t(4) / math.sqrt(2.0)
        capacity = self.capacities[ask.configuration] * math.exp(luck)
        seconds = capacity * (1.0 + self.jitter * self.rng.standard_normal(WINDOW_S))
        carried = float(np.minimum(ask.wl, np.maximum(seconds, 0.0)).mean())
        kpis = {"throughput_rps": carried, "loss_pct": 100.0 * (1.0 - carried / ask.wl)}
        return make_sample(
            ask.wl, {} if reason else kpis, configuration=ask.configuration,
            repetition=ask.repetition, reason=reason, block=ask.block,
        )  # fmt: skip

    def breakpoint(self, configuration):
        """Where the expected loss passes the goal: many jitters of a known capacity."""
        capacity = self.capacities[configuration]
        loads = capacity * np.linspace(0.95, 1.08, 1301)
        jitter = capacity * (1.0 + self.jitter * np.random.default_rng(0).standard_normal(4000))
        lost = 1.0 - np.minimum(loads[:, None], jitter).mean(axis=1) / loads
        return float(loads[np.argmax(lost >= GOAL)])


def run(sampler, answer):
    taken = []
    while (ask := sampler.ask()) is not None:
        taken.append(answer(ask))
        sampler.tell(taken[-1:])
    return taken


def plan(**options):
    return SamplingPlan("breakpoint-search", max_samples=60, options=options)


def interval(note):
    """Ends of the interval in a note: `...: 1234-1297 (95 %), after ...`."""
    low, high = note.split(": ")[1].split(" (95 %)")[0].split("-")
    return float(low), float(high)


def test_intervals_hold_the_breakpoint_and_have_the_width_that_was_asked_for(full_length):
    held, seeds = [], range(6 if full_length else 3)
    for seed in seeds:
        function = Function(seed)
        sampler = BreakpointSampler(space_of(seed=seed), plan(width=0.04))
        run(sampler, function.sample)
        for configuration, ending in sampler.endings.items():
            assert ending.outcome == "converged"
            low, high = interval(ending.note)
            assert high / low == pytest.approx(1.04, abs=0.002)  # four digits in a note
            held.append(low <= function.breakpoint(configuration) <= high)
    assert len(held) == 8 * len(seeds)
    assert np.mean(held) >= 0.95


def test_the_luck_of_visits_is_learned_and_paid_for(full_length):
    """Windows of seconds scatter by 5 % on a busy host (METHOD.md 6), on a quiet one by less."""
    held, taken, seeds = [], {}, range(4 if full_length else 2)
    for visit in (0.0, 0.05):
        for seed in seeds:
            function = Function(seed, visit=visit)
            sampler = BreakpointSampler(space_of(seed=seed), plan())
            taken[visit] = taken.get(visit, 0) + len(run(sampler, function.sample))
            for configuration, ending in sampler.endings.items():
                assert ending.outcome == "converged"
                low, high = interval(ending.note)
                held.append(low <= function.breakpoint(configuration) <= high)
    assert len(held) == 2 * 8 * len(seeds)
    assert np.mean(held) >= 0.95
    assert taken[0.0] < 0.5 * taken[0.05]


def test_neighbours_tell_where_to_look():
    function = Function(3)
    sampler = BreakpointSampler(space_of(), plan())
    together = run(sampler, function.sample)
    alone = [
        run(BreakpointSampler(space_of((c,)), plan()), function.sample) for c in GRID
    ]  # each with nothing known before it
    assert len(together) < 0.8 * sum(map(len, alone))


def test_one_configuration_is_searched_to_its_end_before_the_next_begins():
    function = Function(1)
    taken = run(BreakpointSampler(space_of(), plan()), function.sample)
    order = [s.point.configuration for s in taken]
    changes = sum(a != b for a, b in pairwise(order))
    assert changes == len(GRID) - 1
    vcpus = [c.vcpu(TARGET) for c in dict.fromkeys(order)]
    places = [VCPUS.index(v) for v in vcpus]
    for done in range(1, len(places)):
        assert min(abs(places[done] - p) for p in places[:done]) == 1, "the nearest is next"


def test_what_lies_outside_of_the_range_is_said():
    function = Function()
    for low, high, said in ((1.0, 50.0, "above the range"), (4e4, 9e4, "below the range")):
        sampler = BreakpointSampler(space_of(low=low, high=high), plan())
        run(sampler, function.sample)
        assert all(said in ending.note for ending in sampler.endings.values())
        assert {ending.outcome for ending in sampler.endings.values()} == {"converged"}


def test_a_source_that_saturates_first_is_named_and_not_taken_for_the_function():
    function = Function()
    sampler = BreakpointSampler(space_of(), plan())
    run(sampler, lambda ask: function.sample(ask, "source_saturated" if ask.wl > 5_000.0 else ""))
    for configuration, ending in sampler.endings.items():
        truth = function.breakpoint(configuration)
        if truth < 4_000.0:
            low, high = interval(ending.note)
            assert low <= truth <= high
        elif truth > 5_500.0:
            assert "source_saturated" in ending.note
            beyond = float(ending.note.split("beyond ")[1].split(",")[0])
            assert 4_000.0 < beyond <= 5_000.0


@pytest.mark.parametrize("reason", ["unsteady", "host_saturated"])
def test_what_may_pass_is_measured_once_more_before_it_bounds_the_search(reason):
    """Windows near saturation are unsteady now and then: that is no limit of the source."""
    function, luck = Function(4), np.random.default_rng(4)
    sampler = BreakpointSampler(space_of(), plan())
    taken = run(sampler, lambda ask: function.sample(ask, reason if luck.random() < 0.15 else ""))
    assert any(not s.valid for s in taken)
    held = 0
    for configuration, ending in sampler.endings.items():
        if "(95 %)" in ending.note:
            low, high = interval(ending.note)
            held += low <= function.breakpoint(configuration) <= high
    assert held >= 7, "of eight"
    for earlier, later in pairwise(taken):
        if not earlier.valid and earlier.point.repetition == 0:
            assert later.point.wl == earlier.point.wl


def test_without_enough_samples_it_says_what_it_knows():
    few = SamplingPlan("breakpoint-search", max_samples=4, options={"width": 0.01})
    held = 0
    for seed in range(3):
        function = Function(seed, jitter=0.03)
        sampler = BreakpointSampler(space_of(seed=seed), few)
        assert len(run(sampler, function.sample)) == 4 * len(GRID)
        for configuration, ending in sampler.endings.items():
            assert ending.outcome == "max_samples"
            low, high = ending.note.split("within ")[1].split("-")
            assert float(high) / float(low) > 1.01
            held += float(low) <= function.breakpoint(configuration) <= float(high)
    assert held >= 22, "of 24 intervals of 95 %"


def test_somebodys_rejection_of_a_sample_is_no_limit_of_the_source():
    function, seen = Function(5), set()
    sampler = BreakpointSampler(space_of(), plan())

    def first_rejected(ask):
        is_first = ask.configuration not in seen
        seen.add(ask.configuration)
        return function.sample(ask, "rejected" if is_first else "")

    run(sampler, first_rejected)
    for configuration, ending in sampler.endings.items():
        low, high = interval(ending.note)
        assert 0.97 * low <= function.breakpoint(configuration) <= 1.03 * high


def test_loads_too_low_to_count_bound_it_from_below():
    function = Function(0, jitter=0.002)
    sampler = BreakpointSampler(space_of(GRID[:1], low=1.0, high=50_000.0), plan())

    def answer(ask):
        reason = "too_few" if ask.wl < 300.0 else "source_saturated" if ask.wl > 10_000.0 else ""
        return function.sample(ask, reason)

    run(sampler, answer)
    low, high = interval(sampler.endings[GRID[0]].note)
    assert low <= function.breakpoint(GRID[0]) <= high


@pytest.mark.parametrize(("capacity", "top"), [(7.3, 20.0), (2.5, 4.0), (90.0, 400.0)])
def test_between_whole_loads_there_is_nothing_to_search(capacity, top):
    primary = PrimaryWorkload("streams", 1.0, top, integer=True)
    space = Space(
        TARGET, GRID[:1], primary, OPEN, "p95_ms", 1000.0, GOAL, LATENCY_SLA, 1
    )  # fmt: skip
    sampler = BreakpointSampler(space, plan())

    def answer(ask):
        carried = min(ask.wl, capacity)
        kpis = {"throughput_rps": carried, "loss_pct": 100.0 * (1.0 - carried / ask.wl)}
        return make_sample(ask.wl, kpis, configuration=ask.configuration, repetition=ask.repetition)

    taken = run(sampler, answer)
    assert len(taken) <= 25
    low, high = interval(sampler.endings[GRID[0]].note)
    assert low <= capacity <= high


def test_the_throughput_of_random_arrivals_is_not_taken_for_their_loss():
    """Poisson arrivals scatter about the load: what is lost is what the sample says is lost."""
    held = []
    for seed in range(4):
        function = Function(seed)
        rng = np.random.default_rng(seed)

        def answer(ask, function=function, rng=rng):
            told = function.sample(ask)
            lost = told.kpis["loss_pct"].value
            arrived = rng.poisson(ask.wl * WINDOW_S) / WINDOW_S
            kpis = {"loss_pct": lost, "throughput_rps": arrived * (1.0 - lost / 100.0)}
            return make_sample(
                ask.wl, kpis, configuration=ask.configuration, repetition=ask.repetition
            )

        sampler = BreakpointSampler(space_of(seed=seed), plan(width=0.05))
        run(sampler, answer)
        for configuration, ending in sampler.endings.items():
            low, high = interval(ending.note)
            held.append(low <= function.breakpoint(configuration) <= high)
    assert np.mean(held) >= 0.93


@pytest.mark.parametrize("kpis", [{"p95_ms": 3.0}, {"loss_pct": math.nan}])
def test_a_sample_that_says_nothing_of_loss_is_named(kpis):
    sampler = BreakpointSampler(space_of(), plan())
    ask = sampler.ask()
    with pytest.raises(DataError, match="neither its loss nor its throughput"):
        sampler.tell([make_sample(ask.wl, kpis, configuration=ask.configuration)])


def test_a_range_of_one_load_that_is_carried_lies_below_the_breakpoint():
    function = Function()
    sampler = BreakpointSampler(space_of(GRID[-1:], low=500.0, high=500.0), plan())
    run(sampler, function.sample)
    assert "above the range" in sampler.endings[GRID[-1]].note


def test_what_somebody_else_asked_for_does_not_interrupt_a_search():
    function = Function(6)
    sampler = BreakpointSampler(space_of(), plan())
    first = sampler.ask()
    sampler.tell([function.sample(first)])
    other = next(c for c in GRID if c != first.configuration)
    wanted = make_sample(2_000.0, {"loss_pct": 0.0}, configuration=other)
    sampler.tell([wanted])
    assert sampler.ask().configuration == first.configuration


def test_of_recorded_loads_none_is_asked_for_twice():
    function = Function()
    known = tuple(float(f"{wl:.4g}") for wl in np.geomspace(200.0, 40_000.0, 12))
    sampler = BreakpointSampler(space_of(loads=dict.fromkeys(GRID, known)), plan())
    taken = run(sampler, function.sample)
    points = [(s.point.configuration, s.point.wl) for s in taken]
    assert len(set(points)) == len(points)
    assert {wl for _, wl in points} <= set(known)


def test_a_sample_that_states_no_loss_is_read_by_what_it_carried():
    function = Function(2)

    def carried(ask):
        told = function.sample(ask)
        only = {"throughput_rps": told.kpis["throughput_rps"].value}
        return make_sample(ask.wl, only, configuration=ask.configuration, repetition=ask.repetition)

    sampler = BreakpointSampler(space_of(GRID[:1]), plan())
    run(sampler, carried)
    low, high = interval(sampler.endings[GRID[0]].note)
    assert low <= function.breakpoint(GRID[0]) <= high


@pytest.mark.parametrize("width", [0.0, -1.0, math.nan, math.inf, "wide"])
def test_a_width_that_cannot_be_is_refused(width):
    with pytest.raises(DataError, match="width"):
        BreakpointSampler(space_of(), plan(width=width))


def test_a_closed_loop_has_no_loss_to_search_by():
    with pytest.raises(DataError, match="open loop"):
        BreakpointSampler(space_of(load=CLOSED), plan())
