"""What each baseline is about: spread, variance, gradient, other people's learners."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from synthetic_function import LATENCY_SLA, OPEN, TARGET, make_sample

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError, PluginError
from workbench.domain.parameters import Configuration, Parameter, PrimaryWorkload, grid
from workbench.domain.samples import Sample
from workbench.sampling.adaptive import AdaptiveSampler, load_learner
from workbench.sampling.base import Ask, Sampler, Space
from workbench.sampling.factors import Coordinates
from workbench.sampling.gradient import GradientSampler
from workbench.sampling.random import RandomSampler
from workbench.sampling.sobol import SobolSampler
from workbench.sampling.variance import VarianceSampler

RATE = PrimaryWorkload("rate", 10.0, 1000.0)
VCPU = Parameter("fw.vcpu", (0.25, 0.5, 1.0, 2.0))
SIZE = Parameter("packet_bytes", (64.0, 512.0, 1500.0))


def space(*workload: Parameter, seed: int = 1) -> Space:
    configurations = tuple(grid((VCPU,), workload))
    return Space(
        TARGET, configurations, RATE, OPEN, "p95_ms", 1000.0, 0.005, LATENCY_SLA, seed
    )  # fmt: skip


def alone(value: float = 1.0) -> Space:
    configuration = Configuration({"fw.vcpu": value}, {})
    return Space(
        TARGET, (configuration,), RATE, OPEN, "p95_ms", 1000.0, 0.005, LATENCY_SLA, 1
    )  # fmt: skip


def breaking(ask: Ask) -> Sample:
    """3 ms up to a capacity, 600 ms above."""
    p95 = 3.0 if ask.wl < 300.0 * ask.configuration.vcpu("fw") else 600.0
    return make_sample(ask.wl, {"p95_ms": p95}, configuration=ask.configuration)


def run(sampler: Sampler, answer: Callable[[Ask], Sample] = breaking) -> list[Ask]:
    asks = []
    while (ask := sampler.ask()) is not None:
        asks.append(ask)
        sampler.tell([answer(ask)])
    return asks


@pytest.mark.parametrize("kind", [RandomSampler, SobolSampler])
def test_designs_give_every_configuration_its_loads_in_a_mixed_order(
    kind: type[RandomSampler] | type[SobolSampler],
) -> None:
    where = space(SIZE)
    asks = run(kind(where, SamplingPlan("x", 8)))
    assert set(Counter(a.configuration for a in asks).values()) == {8}
    assert len({a.configuration for a in asks[:12]}) > 5
    shares = [math.log(a.wl / 10.0) / math.log(100.0) for a in asks]
    assert 0.45 < float(np.mean(shares)) < 0.55


@pytest.mark.parametrize("design", ["sobol", "latin-hypercube"])
def test_a_designed_space_is_more_even_than_a_random_one(design: str) -> None:
    """Centred discrepancy of all points: a property of the whole design."""
    from scipy.stats import qmc

    def discrepancy(asks: list[Ask], where: Space) -> float:
        axes = Coordinates(where.configurations, where.primary)
        loads = [[axes.load(a.wl)] for a in asks]
        return float(qmc.discrepancy(loads))

    designed, drawn = [], []
    for seed in range(5):
        where = space(SIZE, seed=seed)
        plan = SamplingPlan("sobol", 8, options={"design": design})
        designed.append(discrepancy(run(SobolSampler(where, plan)), where))
        drawn.append(discrepancy(run(RandomSampler(where, SamplingPlan("random", 8))), where))
    assert float(np.median(designed)) < 0.5 * float(np.median(drawn))


def test_an_unknown_design_is_refused() -> None:
    with pytest.raises(DataError, match="'halton' is no design"):
        SobolSampler(space(), SamplingPlan("sobol", 8, options={"design": "halton"}))


def test_along_one_axis_the_gradient_is_algorithm_two() -> None:
    asks = run(GradientSampler(alone(), SamplingPlan("gradient", 8)))
    assert {a.wl for a in asks[:2]} == {10.0, 1000.0}
    assert [a.wl for a in asks[2:5]] == [100.0, 316.2, 177.8]
    assert (asks[4].low, asks[4].high) == (100.0, 316.2)
    # What jumps is bisected further, what is flat is not.
    assert sum(150.0 < a.wl < 400.0 for a in asks) == 5


def test_over_the_whole_space_the_gradient_follows_the_break() -> None:
    asks = run(GradientSampler(space(), SamplingPlan("gradient", 8)))
    later = asks[8:20]
    near = [
        abs(math.log(a.wl / (300.0 * a.configuration.vcpu("fw")))) < math.log(2.5) for a in later
    ]
    assert sum(near) >= 0.7 * len(near)
    assert {a.configuration for a in asks} == set(space().configurations)


def test_variance_goes_where_nothing_was_measured() -> None:
    sampler = VarianceSampler(alone(), SamplingPlan("gp-variance", 6))
    asks = run(
        sampler, lambda a: make_sample(a.wl, {"p95_ms": a.wl}, configuration=a.configuration)
    )
    shares = [math.log(a.wl / 10.0) / math.log(100.0) for a in asks]
    assert set(shares[:2]) == {0.0, 1.0}
    assert np.diff(sorted(shares)).max() < 0.4, "a smooth KPI is covered all over"
    assert asks[-1].why.startswith("largest standard deviation")


def test_learners_bisect_the_break_and_pass_over_invalid_loads() -> None:
    asks = run(AdaptiveSampler(alone(), SamplingPlan("adaptive", 12)))
    assert {a.wl for a in asks[:2]} == {10.0, 1000.0}
    assert sum(200.0 < a.wl < 450.0 for a in asks) >= 5

    def half(ask: Ask) -> Sample:
        if ask.wl > 500.0:
            return make_sample(
                ask.wl, {}, configuration=ask.configuration, reason="source_saturated"
            )
        return breaking(ask)

    asks = run(AdaptiveSampler(alone(), SamplingPlan("adaptive", 12)), half)
    assert len({a.wl for a in asks}) == 12
    assert sum(a.wl <= 500.0 for a in asks) >= 6


@pytest.mark.parametrize("learner", ["2d", "nd"])
def test_a_learner_of_the_whole_space_begins_with_its_corners(learner: str) -> None:
    plan = SamplingPlan("adaptive", 10, options={"learner": learner})
    asks = run(AdaptiveSampler(space(), plan))
    corners = {(a.configuration.vcpu("fw"), a.wl) for a in asks[:4]}
    assert corners == {(v, wl) for v in (0.25, 2.0) for wl in (10.0, 1000.0)}
    if learner == "nd":  # the other one spreads its points over the areas of its triangles first
        away = [math.log(a.wl / (300.0 * a.configuration.vcpu("fw"))) for a in asks[8:24]]
        assert sum(abs(log) < math.log(3.0) for log in away) >= 10
    assert {a.configuration for a in asks} == set(space().configurations)
    assert max(Counter(a.configuration for a in asks).values()) <= 10


def test_a_learner_that_the_space_has_no_axes_for_is_refused() -> None:
    for learner, where, what in (
        ("2d", space(SIZE), "the learner 2d has two axes, the space has 3"),
        ("3d", space(), "'3d' is no learner"),
    ):
        with pytest.raises(DataError, match=what):
            AdaptiveSampler(where, SamplingPlan("adaptive", 6, options={"learner": learner}))


def test_the_runner_of_the_package_is_never_imported() -> None:
    """It sets uvloop's policy; who imports the package later still gets the whole of it."""
    code = (
        "import sys, asyncio;"
        "from workbench.sampling.adaptive import load_learner;"
        "load_learner('learner1D', 'Learner1D', 'x');"
        "load_learner('learnerND', 'LearnerND', 'x');"
        "assert 'adaptive.runner' not in sys.modules, 'runner';"
        "assert not [m for m in sys.modules if m.startswith('adaptive')], 'left behind';"
        "assert type(asyncio.get_event_loop_policy()).__module__.startswith('asyncio');"
        "import adaptive; assert adaptive.Runner"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_the_package_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    load_learner.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PluginError, match="is not installed") as caught:
        load_learner("learner1D", "Learner1D", "haproxy")
    assert caught.value.remedy == "Install it with `pip install 'vnf-workbench[adaptive]'`"
    assert caught.value.where == "haproxy"
