"""What holds of every registered sampler, whatever the lab answers."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_function import LATENCY_SLA, OPEN, TARGET, make_sample

from workbench import plugins
from workbench.domain.campaign import SamplingPlan
from workbench.domain.parameters import Configuration, Parameter, PrimaryWorkload, grid
from workbench.domain.samples import Sample
from workbench.models.interpolation import LogInterpolation
from workbench.sampling.base import Ask, Sampler, Space

REGISTERED = plugins.names("samplers")
VARIANTS = ("adaptive nd", "sobol latin-hypercube")
"""A name, and an option that makes another sampler of it."""
SAMPLERS = (*REGISTERED, *VARIANTS)
OPTIONS: dict[str, dict[str, str | float]] = {
    "nd": {"learner": "nd"},
    "latin-hypercube": {"design": "latin-hypercube"},
}
OWN = {
    "adaptive", "bisection", "blocks", "breakpoint-search", "gp-variance", "gradient", "heuristic",
    "pooled", "random", "sobol", "uniform",
}  # fmt: skip


def made(name: str, space: Space, plan: SamplingPlan) -> Sampler:
    method, _, option = name.partition(" ")
    plan = replace(plan, method=method, options=OPTIONS.get(option, {}))
    kind = plugins.load("samplers", method)
    if "model_factory" in inspect.signature(kind).parameters:
        sampler: Sampler = kind(space, plan, model_factory=LogInterpolation)
    else:
        sampler = kind(space, plan)
    return sampler


# --- spaces and answers

vcpus = Parameter("haproxy.vcpu", (0.125, 0.25, 0.5, 1.0))
sizes = Parameter("filesize_bytes", (0.0, 1e3, 1e4))
flavors = Parameter(
    "haproxy.flavor",
    ("small", "large", "middle"),
    flavors={
        "small": {"vcpu": 0.25, "memory_bytes": 1e8},
        "middle": {"vcpu": 0.5, "memory_bytes": 2e8},
        "large": {"vcpu": 1.0, "memory_bytes": 2e8},
    },
)
kinds = Parameter("kind", ("http", "https"))
GRIDS: Sequence[tuple[Configuration, ...]] = (
    (),
    tuple(grid((), ())),
    tuple(grid((vcpus,), ())),
    tuple(grid((vcpus,), (sizes,))),
    tuple(grid((flavors,), (sizes, kinds))),
    # Pairs of allocations, not all combinations.
    tuple(Configuration({"a.vcpu": v, "b.vcpu": 2.0 * v}, {}) for v in (0.125, 0.25, 0.5)),
)

primaries = st.one_of(
    st.builds(
        lambda low, factor, scale: PrimaryWorkload("rate", low, low * factor, scale),
        st.floats(1e-3, 1e6),
        st.sampled_from([1.0, 1.004, 2.0, 100.0, 1e4]),
        st.sampled_from(["log", "linear"]),
    ),
    st.builds(
        lambda low, span, scale: PrimaryWorkload("clients", low, low + span, scale, integer=True),
        st.integers(1, 50).map(float),
        st.sampled_from([0, 1, 3, 200]),
        st.sampled_from(["log", "linear"]),
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


@dataclass(frozen=True)
class Case:
    space: Space
    plan: SamplingPlan
    drawn: tuple[object, ...]

    def answer(self, ask: Ask, turn: int) -> Sample:
        """A sample as drawn, whatever the load: no shape may upset a sampler."""
        outcome = self.drawn[turn % len(self.drawn)]
        if isinstance(outcome, str):
            return sample_of(ask, {}, outcome)
        share, p95 = outcome
        return sample_of(
            ask, {"throughput_rps": share * ask.wl} | ({} if p95 is None else {"p95_ms": p95})
        )


def sample_of(ask: Ask, kpis: dict[str, float], reason: str = "") -> Sample:
    return make_sample(
        ask.wl,
        kpis,
        configuration=ask.configuration,
        repetition=ask.repetition,
        reason=reason,
        block=ask.block,
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    primary = draw(primaries)
    configurations = draw(st.sampled_from(GRIDS))
    plan = SamplingPlan(
        max_samples=draw(st.integers(3, 9)),
        epsilon=draw(st.sampled_from([0.0, 0.01, 0.2])),
        repetitions=draw(st.integers(1, 3)),
        model="interpolation",
    )
    loads = {}
    if draw(st.booleans()) and configurations:
        middle = float(round(math.sqrt(primary.low * primary.high)))
        known = {primary.low, primary.high, min(max(middle, primary.low), primary.high)}
        loads = {c: tuple(sorted(known)) for c in configurations}
    seed = draw(st.integers(0, 3))
    space = Space(
        TARGET, configurations, primary, OPEN, "p95_ms", 1000.0, 0.005, LATENCY_SLA, seed,
        loads=loads,
    )  # fmt: skip
    return Case(space, plan, tuple(draw(outcomes)))


def point_of(ask: Ask) -> tuple[str, float, int]:
    return ask.configuration.key, ask.wl, ask.repetition


def test_all_our_samplers_are_registered() -> None:
    assert set(REGISTERED) >= OWN


@pytest.mark.parametrize("name", REGISTERED)
@settings(max_examples=examples(25), deadline=None)
@given(case=cases(), cut=st.integers(0, 30))
def test_asks_stay_in_range_never_repeat_end_and_can_be_rebuilt(
    name: str, case: Case, cut: int
) -> None:
    holds_for(name, case, cut)


@pytest.mark.parametrize("name", VARIANTS)
@settings(max_examples=examples(8), deadline=None)
@given(case=cases(), cut=st.integers(0, 30))
def test_so_do_those_of_variants(name: str, case: Case, cut: int) -> None:
    holds_for(name, case, cut)


def holds_for(name: str, case: Case, cut: int) -> None:
    space, plan = case.space, case.plan
    primary = space.primary
    live = made(name, space, plan)
    taken: list[Sample] = []
    asked: set[tuple[str, float, int]] = set()
    block = 0
    while (ask := live.ask()) is not None:
        assert live.ask() == ask, "asking again changes nothing"
        assert primary.low <= ask.low <= ask.wl <= ask.high <= primary.high
        assert ask.configuration in space.configurations
        assert ask.configuration not in live.endings
        assert not primary.integer or ask.wl == int(ask.wl)
        if space.loads and ask.repetition == 0:
            assert ask.wl in space.loads[ask.configuration]
        assert point_of(ask) not in asked
        asked.add(point_of(ask))
        assert ask.block >= block, "blocks never decrease"
        block = ask.block
        if len(taken) == cut:
            again = made(name, space, plan)
            again.tell(taken)
            assert again.ask() == ask
            assert again.endings == live.endings
        taken.append(case.answer(ask, len(taken)))
        live.tell(taken[-1:])
        assert len(taken) <= plan.max_samples * len(space.configurations)
    assert set(live.endings) == set(space.configurations)
    for configuration, ending in live.endings.items():
        own = [s for s in taken if s.point.configuration == configuration]
        assert len(own) <= plan.max_samples
        assert (ending.outcome == "unusable") == (bool(own) and not any(s.valid for s in own))
        assert ending.note


def space_of(configurations: Sequence[Configuration], **options: object) -> Space:
    primary = PrimaryWorkload("rate", 40.0, 4000.0)
    return Space(
        TARGET, tuple(configurations), primary, OPEN, "p95_ms", 1000.0, 0.005, LATENCY_SLA, 1,
        **options,  # type: ignore[arg-type]
    )  # fmt: skip


def function(ask: Ask) -> Sample:
    """Flat, a break at a capacity that grows with the allocation, overload above."""
    capacity = 600.0 * ask.configuration.vcpu("haproxy") ** 0.8
    if ask.wl > capacity:
        return sample_of(ask, {"throughput_rps": capacity})
    return sample_of(
        ask, {"throughput_rps": ask.wl, "p95_ms": min(2.0 / (1.0 - ask.wl / capacity), 900.0)}
    )


def run(sampler: Sampler, answer: Callable[[Ask], Sample], most: int = 2000) -> list[Sample]:
    taken: list[Sample] = []
    while (ask := sampler.ask()) is not None and len(taken) < most:
        taken.append(answer(ask))
        sampler.tell(taken[-1:])
    return taken


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_finite_space_is_never_asked_for_more_than_it_has(name: str) -> None:
    configurations = GRIDS[2]
    loads = dict.fromkeys(configurations, (40.0, 100.0, 700.0, 4000.0))
    sampler = made(name, space_of(configurations, loads=loads), SamplingPlan(name, 50, 0.0))
    taken = run(sampler, function)
    assert len(taken) < 2000
    visited = {(s.point.configuration.key, s.point.wl) for s in taken}
    assert len(visited) <= 16
    assert sampler.endings.keys() == set(configurations)


@pytest.mark.parametrize("name", SAMPLERS)
def test_skipped_configurations_are_left_alone_and_the_others_go_on(name: str) -> None:
    space, plan = space_of(GRIDS[2]), SamplingPlan(name, 4)
    sampler = made(name, space, plan)
    left_out = GRIDS[2][1]
    taken = run(sampler, function, most=3)
    sampler.skip(left_out)
    rest = run(sampler, function)
    assert all(s.point.configuration != left_out for s in rest)
    assert rest
    assert sampler.endings[left_out].outcome == "skipped"
    # Who is rebuilt hears of the wish after the samples, whenever it came.
    for known in (3, len(rest)):
        again = made(name, space, plan)
        again.tell([*taken, *rest[: known - 3]])
        again.skip(left_out)
        assert run(again, function) == rest[known - 3 :]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        *((name, "host_saturated") for name in SAMPLERS),
        # A saturated host may pass and is tried again, errors are not: by these two.
        *((name, "errors") for name in ("adaptive", "breakpoint-search")),
    ],
)
def test_where_nothing_is_valid_it_ends_and_says_so(name: str, reason: str) -> None:
    sampler = made(name, space_of(GRIDS[2]), SamplingPlan(name, 12))
    taken = run(sampler, lambda ask: sample_of(ask, {}, reason))
    assert len(taken) <= 12 * len(GRIDS[2])
    measured = {s.point.configuration for s in taken}
    assert {c for c, e in sampler.endings.items() if e.outcome == "unusable"} == measured
    assert measured


@pytest.mark.parametrize("name", SAMPLERS)
def test_another_seed_orders_otherwise_and_the_same_seed_alike(name: str) -> None:
    space, plan = space_of(GRIDS[2]), SamplingPlan(name, 4)
    first, second = (run(made(name, space, plan), function) for _ in range(2))
    assert first == second
    if name in OWN:  # others may follow the data alone
        others = (run(made(name, replace(space, seed=s), plan), function) for s in (2, 3))
        assert any(other != first for other in others)
