"""What each sampler would cost, before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from driving import REPOSITORY
from session_making import campaign

from workbench import plugins
from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign, SamplingPlan
from workbench.domain.parameters import LoadModel, Parameter, PrimaryWorkload
from workbench.domain.samples import Sample
from workbench.engine.learning.sampler_worker import space_of
from workbench.engine.runs import sampler_cost
from workbench.engine.runs.planning import make_plan
from workbench.engine.runs.sampler_cost import cost_of, stand_in
from workbench.labs.base import LabCosts
from workbench.models.selection import stated
from workbench.paths import Workspace
from workbench.sampling.base import Ask, Costs, Space
from workbench.sampling.uniform import UniformSampler

WIDE = REPOSITORY / "tests" / "data" / "wide.yaml"
NAMES = ("uniform", "bisection", "random")
COSTS = LabCosts(deploy_s=3, allocate_s=1, drive_overhead_s=0.5)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy host a play may take long; what it finds is what is tested."""
    monkeypatch.setattr(sampler_cost, "PLAY_S", 300.0)


def test_uniform_takes_what_the_plan_allows() -> None:
    grid = replace(campaign(), sampling=SamplingPlan("uniform", 6, repetitions=2))
    cost = cost_of(grid, "sim", COSTS, 1, "uniform")
    plan = make_plan(grid, "sim", COSTS)
    assert (cost.figure, cost.chosen, cost.samples) == ("played", True, plan.samples)
    # Three loads twice instead of six once: nearly the same seconds; the same deployments.
    assert cost.lab_s == pytest.approx(plan.lab_s, rel=0.1)


def test_who_stops_by_what_it_sees_may_need_less() -> None:
    flat = replace(campaign(), sampling=SamplingPlan("uniform", 40, epsilon=0.05))
    bisected = cost_of(flat, "sim", COSTS, 1, "bisection")
    whole = cost_of(flat, "sim", COSTS, 1, "uniform")
    assert whole.samples == 40 * 3
    assert 5 * 3 <= bisected.samples < 40 * 3
    assert bisected.lab_s < whole.lab_s
    assert (bisected.chosen, whole.chosen) == (False, True)
    assert cost_of(flat, "sim", COSTS, 1, "bisection") == bisected


def test_deployments_are_counted_as_blocks_are_asked_for() -> None:
    grid = replace(campaign(), sampling=SamplingPlan("blocks", 8))
    blocks = cost_of(grid, "recorded:x", COSTS, 1, "blocks")
    other = cost_of(grid, "recorded:x", replace(COSTS, deploy_s=103), 1, "blocks")
    assert other.lab_s - blocks.lab_s == pytest.approx(100 * 8 * 2)


@pytest.mark.parametrize("name", plugins.names("samplers"))
def test_every_sampler_can_be_told(name: str) -> None:
    small = replace(campaign(), sampling=SamplingPlan("bisection", 5, model="interpolation"))
    cost = cost_of(small, "sim", COSTS, 1, name)
    assert cost.figure == "played", cost.note
    assert 0 < cost.samples <= 5 * 3
    assert cost.lab_s > cost.samples * 0.5


def test_what_takes_too_long_is_told_as_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(campaign(), "sim", COSTS)
    monkeypatch.setattr(sampler_cost, "PLAY_S", 0.0)
    slow = cost_of(campaign(), "sim", COSTS, 1, "uniform")
    assert (slow.figure, slow.samples, slow.lab_s) == ("at_most", plan.samples, plan.lab_s)
    huge = replace(campaign(), sampling=SamplingPlan("uniform", 1001))
    cost = cost_of(huge, "sim", COSTS, 1, "random")
    assert (cost.figure, cost.samples) == ("at_most", 3003)
    assert cost.note == "over 2000 samples are not played"


def wide(**sampling: Any) -> Campaign:
    """Forty configurations of one function, beside the chain's one."""
    alone, chain = campaign().targets
    vcpus = Parameter("haproxy.vcpu", tuple(0.05 * place for place in range(1, 41)), "cores")
    targets = replace(alone, resources=(vcpus,)), chain
    return replace(campaign(), targets=targets, sampling=SamplingPlan(**sampling))


def test_what_cannot_be_played_whole_is_scaled_from_what_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Here a play may have 160 samples: uniform takes 10 of each of 40 configurations all the same,
    and who stops by what it sees takes about what it would take of all."""
    plan = SamplingPlan("uniform", 10, model="interpolation")
    whole = {name: cost_of(wide(**vars(plan)), "sim", COSTS, 1, name) for name in NAMES}
    assert {cost.figure for cost in whole.values()} == {"played"}
    monkeypatch.setattr(sampler_cost, "MOST_PLAYED", 160)
    scaled = {name: cost_of(wide(**vars(plan)), "sim", COSTS, 1, name) for name in NAMES}
    for name, cost in scaled.items():
        assert cost.figure == "scaled"
        assert cost.note == "from 17 of 41 configurations"
        assert cost.samples == pytest.approx(whole[name].samples, rel=0.15)
        assert cost.lab_s == pytest.approx(whole[name].lab_s, rel=0.15)
    assert scaled["uniform"].samples == whole["uniform"].samples
    assert scaled["bisection"].samples < scaled["uniform"].samples
    assert cost_of(wide(**vars(plan)), "sim", COSTS, 1, "bisection") == scaled["bisection"]


@pytest.mark.parametrize("name", plugins.names("samplers"))
def test_of_nine_parameters_some_configurations_are_played(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """512 configurations; a play may have the samples of eight, however fast the host is."""
    campaign = load_campaign(str(WIDE), workspace=Workspace(Path())).campaign
    most = make_plan(campaign, "sim", COSTS)
    assert (len(most.configurations), most.samples) == (2**9, 2**9 * 10)
    monkeypatch.setattr(sampler_cost, "MOST_PLAYED", 80)
    cost = cost_of(campaign, "sim", COSTS, 1, name)
    assert cost.figure == "scaled", cost.note
    assert cost.note == "from 8 of 512 configurations"
    assert 0 < cost.samples <= most.samples
    if name == "uniform":
        assert cost.samples == most.samples, "each configuration takes all it may"


def test_samplers_are_played_with_the_costs_of_the_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they ask in the campaign they ask in its plan."""
    seen: list[Costs] = []

    class Sees(UniformSampler):
        def __init__(self, space: Space, plan: SamplingPlan) -> None:
            super().__init__(space, plan)
            seen.append(space.costs)

    shipped = plugins.load
    monkeypatch.setattr(
        plugins, "load", lambda group, name: Sees if name == "sees" else shipped(group, name)
    )
    dear = replace(COSTS, allocate_s=60.0)
    cost_of(replace(campaign(), sampling=SamplingPlan("sees", 5)), "sim", dear, 1, "sees")
    assert seen == [
        space_of(campaign(), plan.target.name, 1, dear).costs for plan in campaign().targets
    ]
    assert {costs.change_s for costs in seen} == {60.0}


def test_what_is_learned_once_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sampler that spends 30 samples on any target and 2 on each configuration."""

    class Learns(UniformSampler):
        def __init__(self, space: Space, plan: SamplingPlan) -> None:
            super().__init__(space, plan)
            self.still = 30 + 2 * len(space.configurations)

        def ask(self) -> Ask | None:
            return super().ask() if self.still > 0 else None

        def tell(self, samples: Sequence[Sample]) -> None:
            super().tell(samples)
            self.still -= len(samples)

    shipped = plugins.load
    monkeypatch.setattr(
        plugins, "load", lambda group, name: Learns if name == "learns" else shipped(group, name)
    )
    monkeypatch.setattr(sampler_cost, "MOST_PLAYED", 400)
    learning = cost_of(wide(method="learns", max_samples=25), "sim", COSTS, 1, "learns")
    assert learning.figure == "scaled"
    assert learning.samples == (30 + 2 * 40) + 25


def test_a_sampler_that_refuses_the_campaign_is_unknown_and_says_why() -> None:
    odd = replace(campaign(), sampling=SamplingPlan("uniform", 2, repetitions=3))
    cost = cost_of(odd, "sim", COSTS, 1, "uniform")
    assert (cost.figure, cost.samples) == ("unknown", 0)
    assert cost.note == "2 samples are too few for 3 repetitions"


def test_options_are_of_the_chosen_sampler_only() -> None:
    chosen = replace(campaign(), sampling=SamplingPlan("sobol", 4, options={"design": "none"}))
    assert "is no design" in cost_of(chosen, "sim", COSTS, 1, "sobol").note
    other = replace(campaign(), sampling=SamplingPlan("random", 4, options={"design": "none"}))
    assert cost_of(other, "sim", COSTS, 1, "sobol").figure == "played"


@pytest.mark.parametrize("load", [LoadModel("open"), LoadModel("closed", 0.1)])
def test_the_stand_in_is_flat_then_breaks_within_the_range(load: LoadModel) -> None:
    space = replace(space_of(campaign(), "haproxy", 1), load=load)
    space = replace(space, primary=PrimaryWorkload("rate", 1.0, 10_000.0))
    small, large = sorted(space.configurations, key=lambda c: c.vcpu("haproxy"))
    carried = {}
    for configuration in (small, large):
        loads = [1.0, 10.0, 100.0, 1000.0, 10_000.0]
        samples = [stand_in(Ask(configuration, wl, 0, wl, wl, ""), space) for wl in loads]
        rates = [s.kpis["throughput_rps"].value for s in samples]
        assert rates[0] == 1.0
        assert rates[-1] < 10_000.0
        assert all(low <= high for low, high in pairwise(rates))
        assert stated(samples[0], "p95_ms") is not None
        is_slow = stated(samples[-1], "p95_ms") is None or samples[-1].kpis["p95_ms"].value > 50.0
        assert is_slow
        carried[configuration] = rates[-1]
    assert carried[small] < carried[large]
