"""Sampler `blocks`: what it may ask, when it ends, that it can be rebuilt, where it looks."""

import math
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from noisy_session import CONFIGURATIONS, Session, Trap
from synthetic_function import CLIENTS, LATENCY_SLA, OPEN, TARGET, make_sample

from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import LoadModel, PrimaryWorkload
from workbench.engine.runs.planning import blocks
from workbench.models.breakpoints import RuleTerms, find_breakpoints
from workbench.models.interpolation import LogInterpolation
from workbench.sampling.base import Sampler, Space
from workbench.sampling.blocks import EDGE_SAMPLES, BlockSampler

PLAN = SamplingPlan(method="blocks", max_samples=12)


def made(space, plan=PLAN) -> Sampler:
    return BlockSampler(space, plan, model_factory=LogInterpolation)


def play(session, plan=PLAN):
    """All asks of a session, with their samples, and the sampler at its end."""
    sampler, asks, samples = made(session.space(), plan), [], []
    while (ask := sampler.ask()) is not None:
        asks.append(ask)
        samples.append(session.measure(ask))
        sampler.tell(samples[-1:])
    return asks, samples, sampler


primaries = st.one_of(
    st.builds(
        lambda low, factor: PrimaryWorkload("rate", low, low * factor),
        st.floats(1e-3, 1e6),
        st.floats(1.0, 1e4),
    ),
    st.builds(
        lambda low, span: PrimaryWorkload("clients", low, low + span, integer=True),
        st.integers(1, 50),
        st.integers(0, 200),
    ),
)
outcomes = st.lists(
    st.one_of(
        st.sampled_from(("host_saturated", "unsteady", "errors")),
        st.tuples(st.floats(0.001, 1.2), st.one_of(st.none(), st.floats(0.0, 1e5))),
    ),
    min_size=1,
    max_size=40,
)


def answer(ask, outcome):
    """A sample as drawn, whatever the load: no shape may upset the sampler."""
    if isinstance(outcome, str):
        return make_sample(
            ask.wl,
            {},
            configuration=ask.configuration,
            repetition=ask.repetition,
            reason=outcome,
            block=ask.block,
        )
    share, p95 = outcome
    kpis = {"throughput_rps": share * ask.wl} | ({} if p95 is None else {"p95_ms": p95})
    return make_sample(
        ask.wl,
        kpis,
        configuration=ask.configuration,
        repetition=ask.repetition,
        block=ask.block,
    )


@settings(max_examples=examples(60), deadline=None)
@given(primary=primaries, most=st.integers(1, 14), drawn=outcomes, cut=st.integers(0, 40))
def test_asks_stay_in_range_never_repeat_end_and_can_be_rebuilt(primary, most, drawn, cut):
    space = Space(
        TARGET, CONFIGURATIONS, primary, OPEN, "p95_ms", 1000.0, 0.005, LATENCY_SLA, seed=3
    )
    plan = SamplingPlan(max_samples=most)
    live, taken, asks = made(space, plan), [], []
    while (ask := live.ask()) is not None:
        assert live.ask() == ask
        assert primary.low <= ask.wl <= primary.high
        assert ask.low <= ask.wl <= ask.high
        assert not primary.integer or ask.wl == int(ask.wl)
        assert ask.configuration not in live.endings
        assert (ask.configuration, ask.wl, ask.repetition) not in {
            (a.configuration, a.wl, a.repetition) for a in asks
        }
        asks.append(ask)
        if len(taken) == cut:
            rebuilt = made(space, plan)
            rebuilt.tell(taken)
            assert rebuilt.ask() == ask
        taken.append(answer(ask, drawn[len(taken) % len(drawn)]))
        live.tell(taken[-1:])
    assert all(a.block <= b.block for a, b in pairwise(asks))
    for configuration in CONFIGURATIONS:
        assert sum(a.configuration == configuration for a in asks) <= most
        assert live.endings[configuration].note


def test_every_sample_of_a_configuration_lies_on_a_deployment_of_its_own():
    asks, _, sampler = play(Session(Trap(), seed=1))
    for configuration in CONFIGURATIONS:
        blocks = [a.block for a in asks if a.configuration == configuration]
        assert blocks == list(range(12))
        assert sampler.endings[configuration].outcome == "max_samples"


@pytest.mark.parametrize("decay", [0.0, 0.6])
def test_most_samples_lie_within_a_quarter_of_capacity(decay):
    for seed in range(5):
        session = Session(Trap(decay=decay), seed)
        asks, _, _ = play(session)
        for configuration, capacity in session.capacities.items():
            near = [
                abs(math.log(a.wl / capacity)) < 0.25
                for a in asks
                if a.configuration == configuration
            ]
            assert np.sum(near) >= 5, (seed, capacity)


@pytest.mark.parametrize(("low", "high", "end"), [(8.0, 12.0, 40.0), (2e4, 3e4, 4000.0)])
def test_a_breakpoint_beyond_the_range_costs_few_samples(low, high, end):
    asks, _, sampler = play(Session(Trap(), 1, low=low, high=high))
    for configuration in CONFIGURATIONS:
        mine = [a.wl for a in asks if a.configuration == configuration]
        assert mine.count(end) == EDGE_SAMPLES
        assert len(mine) < 12
        assert sampler.endings[configuration].outcome == "converged"


def test_a_closed_loop_is_read_alone_on_its_plateau_and_between():
    """Z = 0.1 s, R(1) = 0.02 s, X_max = 400/s: N* = 48."""
    load = LoadModel("closed", think_time_s=0.1)
    space = Space(
        TARGET, CONFIGURATIONS[:1], CLIENTS, load, "p95_ms", 1000.0, 0.005, LATENCY_SLA, seed=3
    )
    sampler, samples = made(space), []
    random = np.random.default_rng(1)
    while (ask := sampler.ask()) is not None:
        rate = min(ask.wl / 0.12, 400.0 * math.exp(random.normal(0.0, 0.03)))
        kpis = {"throughput_rps": rate, "p95_ms": 3e3 * max(ask.wl / rate - 0.1, 1e-3)}
        samples.append(
            make_sample(
                ask.wl,
                kpis,
                load=load,
                configuration=ask.configuration,
                repetition=ask.repetition,
                block=ask.block,
            )
        )
        sampler.tell(samples[-1:])
    loads = [s.point.wl for s in samples]
    assert len(loads) == 12
    assert loads.count(1.0) >= 2
    assert sum(n >= 96.0 for n in loads) >= 4
    assert len({n for n in loads if n < 96.0}) >= 3
    found = find_breakpoints(
        TARGET,
        CONFIGURATIONS[0],
        samples,
        RuleTerms(
            primary=CLIENTS,
            load=load,
            kpi="p95_ms",
            kpi_max=1000.0,
            loss_goal=0.005,
            sla=LATENCY_SLA,
        ),
    )[0]
    assert found.low < 48.0 < found.high
    assert math.log(found.high / found.low) < 0.2


def test_a_skipped_configuration_is_not_asked_for_again():
    session = Session(Trap(), 1)
    sampler = made(session.space())
    sampler.skip(CONFIGURATIONS[0])
    asked = []
    while (ask := sampler.ask()) is not None:
        asked.append(ask.configuration)
        sampler.tell([session.measure(ask)])
    assert set(asked) == {CONFIGURATIONS[1]}
    assert sampler.endings[CONFIGURATIONS[0]].outcome == "skipped"


def test_a_plan_counts_the_deployments_that_are_asked_for():
    for plan in (PLAN, SamplingPlan(method="blocks", max_samples=7)):
        asks, _, _ = play(Session(Trap(), 1), plan)
        assert len({ask.block for ask in asks}) == blocks(plan)
