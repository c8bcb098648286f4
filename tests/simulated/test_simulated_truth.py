"""Truth: the same rule on the noise-free curve."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from workbench.domain.campaign import Campaign
from workbench.domain.parameters import LoadModel
from workbench.domain.topology import VnfTemplate
from workbench.labs.simulated.truth import Truth


def truth_of(campaign: Campaign, target: str, configuration: int = 0, **how: float) -> Truth:
    plan = campaign.target_plan(target)
    return Truth(campaign, plan.target, campaign.configurations(plan)[configuration], **how)  # type: ignore[arg-type]


def test_capacity_is_the_rate_at_which_the_long_run_loss_meets_the_goal(
    make_demo: Callable[..., Campaign],
) -> None:
    campaign = make_demo()
    low, high = (truth_of(campaign, "tinyproxy", c).capacity() for c in (0, 1))
    assert low == pytest.approx(0.25 / 290e-6 / (1 - campaign.loss_goal), rel=0.01)
    assert high / low == pytest.approx(2.0, rel=0.01)


def test_capacity_is_found_where_requests_are_lost_long_before_the_cpu_is_busy(
    make_demo: Callable[..., Campaign],
) -> None:
    """One place and Poisson arrivals: Erlang's loss ρ / (1 + ρ) meets a goal of 5 % at ρ = 1/19."""
    roomy = make_demo(LoadModel("open", arrivals="poisson"))
    templates = [t for t in roomy.templates if t.name != "tinyproxy"]
    tight = replace(
        roomy,
        loss_goal=0.05,
        templates=(*templates, VnfTemplate("tinyproxy", simulated={"buffer": 1.0})),
    )
    capacity = truth_of(tight, "tinyproxy", seconds=60.0).capacity()
    assert capacity == pytest.approx(1 / 19 / 290e-6, rel=0.1)


def test_the_sla_is_crossed_where_throttling_sets_in(make_demo: Callable[..., Campaign]) -> None:
    truth = truth_of(make_demo(), "tinyproxy", seconds=10.0)
    crossing = truth.crossing("p95_ms", 50.0, 50.0, 2000.0)
    assert crossing is not None
    below, above = truth.curve(np.array([crossing * 0.98, crossing * 1.02]))
    assert below.p95_ms < 50.0 < above.p95_ms
    assert truth.crossing("p95_ms", 50.0, 50.0, 400.0) is None
    assert truth.crossing("p95_ms", 0.1, 50.0, 400.0) is None


def test_a_closed_loop_saturates_at_n_star(make_demo: Callable[..., Campaign]) -> None:
    """METHOD.md 2: with Z = 0 tinyproxy is saturated by the first client."""
    without = truth_of(make_demo(LoadModel("closed")), "tinyproxy", seconds=5.0).capacity()
    assert without == pytest.approx(1.0, abs=0.15)
    think = truth_of(make_demo(LoadModel("closed", 0.1)), "tinyproxy", seconds=5.0).capacity()
    assert think == pytest.approx(862 * 0.1007, rel=0.05)


def test_truth_knows_no_noise(make_demo: Callable[..., Campaign]) -> None:
    rates = [
        truth_of(make_demo(), "tinyproxy", seconds=10.0, seed=s).at(1500.0).throughput_rps
        for s in range(4)
    ]
    assert max(rates) / min(rates) < 1.01
