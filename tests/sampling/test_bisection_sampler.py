"""The sampler as ask and tell: what it may ask, when it ends, that it can be rebuilt."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_function import LATENCY_SLA, OPEN, RATE, TARGET, Function, make_sample

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.models.gaussian_process import GaussianProcess
from workbench.models.interpolation import LogInterpolation
from workbench.sampling.base import Sampler, Space
from workbench.sampling.bisection import BisectionSampler
from workbench.sampling.track import FEWEST_SAMPLES, JUMP_RATIO, JUMP_RISE, TRANSIENT

CONFIGURATIONS = tuple(
    Configuration({"haproxy.vcpu": v}, {"filesize_bytes": 1e4}) for v in (0.125, 0.25, 0.5)
)
PLAN = SamplingPlan(model="interpolation")
REASONS = ("host_saturated", "unsteady", "source_saturated", "too_few", "errors")


def space(primary=RATE, configurations=CONFIGURATIONS, seed=1):
    return Space(TARGET, configurations, primary, OPEN, "p95_ms", 1000.0, 0.005, LATENCY_SLA, seed)


def sampler(where=None, plan=PLAN):
    made: Sampler = BisectionSampler(where or space(), plan, model_factory=LogInterpolation)
    return made


def functions(where, capacity=500.0, **options):
    """A function per configuration, twice as fast as the one before."""
    return {
        c: Function(capacity * 2**i, seed=i, **options) for i, c in enumerate(where.configurations)
    }


def run(asker, measure, most=500):
    """All samples until nothing more is asked."""
    taken = []
    while (ask := asker.ask()) is not None:
        assert len(taken) < most
        taken.append(measure(ask))
        asker.tell(taken[-1:])
    return taken


def measured_by(where, **options):
    made = functions(where, **options)
    return lambda ask: made[ask.configuration].measure(ask.wl, ask.configuration, ask.repetition)


def failing(ask, reason="unsteady"):
    return make_sample(
        ask.wl, {}, configuration=ask.configuration, repetition=ask.repetition, reason=reason
    )


# --- properties

primaries = st.one_of(
    st.builds(
        lambda low, factor, scale: PrimaryWorkload("rate", low, low * factor, scale),
        st.floats(1e-3, 1e6),
        st.floats(1.0, 1e4),
        st.sampled_from(["log", "linear"]),
    ),
    st.builds(
        lambda low, span, scale: PrimaryWorkload("clients", low, low + span, scale, integer=True),
        st.integers(1, 50),
        st.integers(0, 200),
        st.sampled_from(["log", "linear"]),
    ),
)
plans = st.builds(
    SamplingPlan,
    max_samples=st.integers(1, 14),
    epsilon=st.sampled_from([0.0, 0.01, 0.2]),
    repetitions=st.integers(1, 3),
    model=st.just("interpolation"),
)
outcomes = st.lists(
    st.one_of(
        st.sampled_from(REASONS),
        st.none(),  # overload that left no percentile
        st.floats(0.0, 1e5),
    ),
    min_size=1,
    max_size=40,
)


def answer(ask, outcome):
    """A sample whose p95 is as drawn, whatever the load: no shape may upset the sampler."""
    if isinstance(outcome, str):
        return failing(ask, outcome)
    kpis = {} if outcome is None else {"p95_ms": outcome}
    return make_sample(ask.wl, kpis, configuration=ask.configuration, repetition=ask.repetition)


@settings(max_examples=examples(150), deadline=None)
@given(
    primary=primaries, plan=plans, drawn=outcomes, seed=st.integers(0, 9), cut=st.integers(0, 40)
)
def test_asks_stay_in_range_never_repeat_end_and_can_be_rebuilt(primary, plan, drawn, seed, cut):
    where = space(primary, CONFIGURATIONS[:2], seed)
    live, taken, asked = BisectionSampler(where, plan, model_factory=LogInterpolation), [], set()
    while (ask := live.ask()) is not None:
        assert live.ask() == ask
        assert primary.low <= ask.wl <= primary.high
        assert ask.low <= ask.wl <= ask.high
        assert ask.configuration not in live.endings
        assert not primary.integer or ask.wl == int(ask.wl)
        point = (ask.configuration, ask.wl, ask.repetition)
        assert point not in asked
        asked.add(point)
        if len(taken) == cut:
            again = BisectionSampler(where, plan, model_factory=LogInterpolation)
            again.tell(taken)
            assert again.ask() == ask
            assert again.endings == live.endings
        taken.append(answer(ask, drawn[len(taken) % len(drawn)]))
        live.tell(taken[-1:])
        assert len(taken) <= plan.max_samples * len(where.configurations)
    assert set(live.endings) == set(where.configurations)
    for configuration, ending in live.endings.items():
        usable = any(s.valid for s in taken if s.point.configuration == configuration)
        assert (ending.outcome != "unusable") == usable
        assert ending.note


@settings(max_examples=examples(40), deadline=None)
@given(last=st.integers(1, 40), capacity=st.floats(0.5, 60.0))
def test_a_finite_space_is_exhausted_if_nothing_else_stops(last, capacity):
    """epsilon 0 never converges by the model: every client count below overload is asked once."""
    where = space(PrimaryWorkload("clients", 1, last, integer=True), CONFIGURATIONS[:1])
    plan = SamplingPlan(max_samples=1000, epsilon=0.0, model="interpolation")
    asker = sampler(where, plan)
    taken = run(asker, measured_by(where, capacity=capacity))
    assert len({s.point.wl for s in taken}) == len(taken) <= last
    assert asker.endings[CONFIGURATIONS[0]].outcome == "converged"


# --- order


def test_ends_come_first_then_the_largest_product():
    asker = sampler(space(configurations=CONFIGURATIONS[:1]))
    ends = []
    for _ in range(2):
        ask = asker.ask()
        assert ask.low == ask.wl == ask.high
        ends.append(ask.wl)
        asker.tell(
            [
                make_sample(
                    ask.wl,
                    {"p95_ms": 2.0 if ask.wl < 100 else 900.0},
                    configuration=ask.configuration,
                )
            ]
        )
    assert sorted(ends) == [40.0, 4000.0]
    ask = asker.ask()
    assert (ask.low, ask.wl, ask.high) == (40.0, 400.0, 4000.0)
    assert "bisects 40-4000" in ask.why


def test_a_linear_range_is_bisected_linearly():
    asker = sampler(space(replace(RATE, scale="linear"), CONFIGURATIONS[:1]))
    for wl, p95 in ((40.0, 2.0), (4000.0, 900.0)):
        asker.tell([make_sample(wl, {"p95_ms": p95}, configuration=CONFIGURATIONS[0])])
    assert asker.ask().wl == 2020.0


def test_the_jump_is_bisected_not_the_plateau_above_it():
    """Algorithm 2 leaves intervals alone whose lower end is at KPI_max already."""
    where = space(configurations=CONFIGURATIONS[:1])
    taken = run(sampler(where), measured_by(where, noise=0.0, shared=0.0))
    loads = sorted(s.point.wl for s in taken)
    above = [wl for wl in loads if wl > 520.0]
    around = [wl for wl in loads if 430.0 < wl < 570.0]
    assert len(around) >= 3
    assert len(above) <= 5


def test_configurations_take_turns_in_rounds_of_changing_order():
    where = space()
    taken = run(sampler(where), measured_by(where))
    rounds = [tuple(s.point.configuration.key for s in taken[i : i + 3]) for i in range(0, 15, 3)]
    assert all(len(set(r)) == 3 for r in rounds)
    assert len(set(rounds)) > 1


def test_the_seed_orders():
    first = {sampler(space(seed=s)).ask() for s in range(20)}
    assert len(first) > 3
    assert sampler(space(seed=4)).ask() == sampler(space(seed=4)).ask()


def test_repetitions_come_after_the_bisection_and_count():
    where = space()
    plan = replace(PLAN, repetitions=2, max_samples=12)
    taken = run(sampler(where, plan), measured_by(where))
    for configuration in where.configurations:
        own = [s.point for s in taken if s.point.configuration == configuration]
        firsts = [p.wl for p in own if p.repetition == 0]
        seconds = [p.wl for p in own if p.repetition == 1]
        assert [p.repetition for p in own] == [0] * len(firsts) + [1] * len(seconds)
        assert sorted(firsts) == sorted(seconds)
        assert firsts != seconds
        assert len(own) <= 12


# --- stop


def test_nothing_converges_before_five_loads_or_while_the_jump_is_wide():
    where = space(configurations=CONFIGURATIONS[:1])
    plan = SamplingPlan(max_samples=40, epsilon=10.0, model="interpolation")
    asker = sampler(where, plan)
    taken = run(asker, measured_by(where, noise=0.0, shared=0.0))
    ending = asker.endings[CONFIGURATIONS[0]]
    assert ending.outcome == "converged"
    assert "|dRMSE|" in ending.note
    assert len(taken) >= FEWEST_SAMPLES
    points = sorted((s.point.wl, math.log(1000.0 if s.labels else s.kpi("p95_ms"))) for s in taken)
    span = math.log(1000.0) - points[0][1]
    for (low, y_low), (high, y_high) in pairwise(points):
        assert high / low <= JUMP_RATIO or (y_high - y_low) / span < JUMP_RISE


def test_a_flat_kpi_converges_at_once():
    asker = sampler(space(configurations=CONFIGURATIONS[:1]))
    taken = run(
        asker, lambda ask: make_sample(ask.wl, {"p95_ms": 3.0}, configuration=ask.configuration)
    )
    assert len(taken) == FEWEST_SAMPLES
    assert asker.endings[CONFIGURATIONS[0]].outcome == "converged"


def test_the_model_behind_drmse_is_exchangeable():
    fits = []

    class Counting(LogInterpolation):
        def fit(self, X, y, noise=None):
            fits.append(len(y))
            return super().fit(X, y, noise)

    where = space(configurations=CONFIGURATIONS[:1])
    plan = replace(PLAN, max_samples=20)
    run(BisectionSampler(where, plan, model_factory=Counting), measured_by(where))
    assert fits
    assert min(fits) >= FEWEST_SAMPLES - 1


def test_a_gaussian_process_decides_alike_when_rebuilt():
    where = space(configurations=CONFIGURATIONS[:1])
    asker = BisectionSampler(where, SamplingPlan(), model_factory=GaussianProcess)
    taken = run(asker, measured_by(where))
    assert len(taken) <= 10
    again = BisectionSampler(where, SamplingPlan(), model_factory=GaussianProcess)
    again.tell(taken)
    assert again.endings == asker.endings


# --- skip, invalid


def test_skip_ends_a_configuration_and_only_that():
    where = space()
    asker = sampler(where)
    first = asker.ask().configuration
    asker.skip(first)
    taken = run(asker, measured_by(where))
    assert first not in {s.point.configuration for s in taken}
    assert asker.endings[first].outcome == "skipped"
    assert {e.outcome for c, e in asker.endings.items() if c != first} <= {
        "converged",
        "max_samples",
    }


def test_skipping_what_has_ended_changes_nothing():
    where = space()
    asker = sampler(where)
    run(asker, measured_by(where))
    before = dict(asker.endings)
    asker.skip(CONFIGURATIONS[0])
    assert asker.endings == before


@pytest.mark.parametrize("reason", REASONS)
def test_all_invalid_is_unusable_and_cheap(reason):
    asker = sampler(space(configurations=CONFIGURATIONS[:1]), replace(PLAN, max_samples=50))
    taken = run(asker, lambda ask: failing(ask, reason))
    ending = asker.endings[CONFIGURATIONS[0]]
    assert ending.outcome == "unusable"
    assert reason in ending.note
    assert len(taken) == (8 if reason in TRANSIENT else 4)


def test_an_invalid_point_is_tried_once_more_if_its_reason_may_pass():
    where = space(configurations=CONFIGURATIONS[:1])
    for reason, visits in (("unsteady", 2), ("source_saturated", 1)):
        asker = sampler(where)
        measure = measured_by(where)
        taken = run(
            asker,
            lambda ask, measure=measure, reason=reason: (
                failing(ask, reason) if ask.wl == 4000.0 else measure(ask)
            ),
        )
        top = [s.point.repetition for s in taken if s.point.wl == 4000.0]
        assert top == list(range(visits))


def test_the_sampler_retreats_from_where_the_source_limits():
    """Above 700/s nothing is valid: bisection closes in on that from below, without looping."""
    where = space(configurations=CONFIGURATIONS[:1])
    measure = measured_by(where, capacity=5000.0)
    taken = run(
        sampler(where),
        lambda ask: failing(ask, "source_saturated") if ask.wl > 700.0 else measure(ask),
    )
    valid = max(s.point.wl for s in taken if s.valid)
    invalid = min(s.point.wl for s in taken if not s.valid)
    assert valid <= 700.0 < invalid
    assert invalid / valid < 1.2


def test_a_lower_end_that_is_invalid_does_not_stop_the_search():
    where = space(configurations=CONFIGURATIONS[:1])
    measure = measured_by(where)
    taken = run(
        sampler(where), lambda ask: failing(ask, "too_few") if ask.wl < 100.0 else measure(ask)
    )
    under = [s.point.wl for s in taken if s.valid and not s.labels]
    assert max(under) > 350.0


def test_strangers_are_ignored():
    asker, alone = sampler(), sampler()
    stranger = make_sample(400.0, {"p95_ms": 2.0})
    asker.tell(
        [
            replace(stranger, point=replace(stranger.point, target="tinyproxy")),
            make_sample(400.0, {}, configuration=Configuration({"haproxy.vcpu": 9.0}, {})),
            make_sample(9e9, {"p95_ms": 2.0}, configuration=CONFIGURATIONS[0]),
        ]
    )
    assert asker.ask() == alone.ask()


@pytest.mark.parametrize(
    "primary",
    [
        PrimaryWorkload("rate", 0.0, 100.0),
        PrimaryWorkload("rate", 100.0, 10.0),
        PrimaryWorkload("clients", 1.2, 1.8, integer=True),
    ],
)
def test_a_range_without_loads_is_refused(primary):
    with pytest.raises(DataError, match="no load lies between"):
        sampler(space(primary))


def test_a_space_without_configurations_asks_nothing():
    assert sampler(space(configurations=())).ask() is None


def test_a_range_of_one_load_is_asked_once():
    where = space(PrimaryWorkload("rate", 100.0, 100.0), CONFIGURATIONS[:1])
    taken = run(sampler(where), measured_by(where))
    assert [s.point.wl for s in taken] == [100.0]


def test_loads_are_figures_a_person_reads():
    where = space(configurations=CONFIGURATIONS[:1])
    taken = run(sampler(where), measured_by(where))
    assert all(s.point.wl == float(f"{s.point.wl:.4g}") for s in taken)
    assert not any(math.isnan(s.point.wl) for s in taken)


class Hollow(LogInterpolation):
    """Fits anything and predicts nothing."""

    def predict(self, X):
        return np.full(len(X), np.nan)


def test_a_model_that_predicts_no_number_ends_nothing():
    """No change is no small change: what cannot be told must not read as converged."""
    where = space(configurations=CONFIGURATIONS[:1])
    plan = SamplingPlan(max_samples=12, epsilon=0.5)
    asker = BisectionSampler(where, plan, model_factory=Hollow)
    taken = run(asker, measured_by(where))
    assert len(taken) == 12
    assert asker.endings[CONFIGURATIONS[0]].outcome == "max_samples"
