"""Truth: the same rule on the noise-free curve."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_truth.long_runs import Truth

from workbench.domain.campaign import Campaign
from workbench.domain.parameters import LoadModel, Sla
from workbench.domain.topology import VnfTemplate
from workbench.labs.simulated.options import SimulationOptions

OPTIONS_AT_80_PER_CENT = SimulationOptions(functions={"plateau": 0.8})


def truth_of(campaign: Campaign, target: str, configuration: int = 0, **how: Any) -> Truth:
    plan = campaign.target_plan(target)
    return Truth(campaign, plan.target, campaign.configurations(plan)[configuration], **how)


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
        templates=(
            *templates,
            VnfTemplate(
                "tinyproxy", simulated={"service_us": 290.0, "per_kb_us": 0.0, "buffer": 1.0}
            ),
        ),
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


def with_range(campaign: Campaign, low: float, high: float) -> Campaign:
    targets = tuple(
        replace(plan, primary=replace(plan.primary, low=low, high=high))
        for plan in campaign.targets
    )
    return replace(campaign, targets=targets, sla=Sla("p95_ms", 50.0))


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [
        (100.0, 3000.0, "found"),
        (100.0, 700.0, "none_in_range"),
        (1200.0, 3000.0, "below_range"),
    ],
)
def test_every_rule_has_its_state(
    make_demo: Callable[..., Campaign], low: float, high: float, state: str, tmp_path: Path
) -> None:
    campaign = with_range(make_demo(), low, high)
    found = truth_of(campaign, "tinyproxy", seconds=8.0).breakpoints(tmp_path)
    assert {rule: one.state for rule, one in found.items()} == dict.fromkeys(
        ("capacity", "knee", "cpu", "sla"), state
    )
    if state == "found":
        # Each rule by its own definition: they agree within a tenth on a plain queue.
        for rule, one in found.items():
            assert one.wl == pytest.approx(866.0, rel=0.15), rule


def test_a_closed_loop_truth_is_no_step_function(make_demo: Callable[..., Campaign]) -> None:
    campaign = with_range(make_demo(LoadModel("closed", 0.1)), 1.0, 400.0)
    truth = truth_of(campaign, "tinyproxy", seconds=4.0)
    low, middle, high = (truth.at(n).p95_ms for n in (120, 120.5, 121))
    assert min(low, high) <= middle <= max(low, high)
    crossing = truth.sla().wl
    assert crossing is not None
    assert crossing != round(crossing)
    assert truth.at(crossing).p95_ms == pytest.approx(50.0, rel=0.1)


def test_usage_that_never_reaches_its_allotment_has_a_plateau_of_its_own(
    make_demo: Callable[..., Campaign],
) -> None:
    campaign = with_range(make_demo(), 50.0, 2000.0)
    truth = truth_of(campaign, "tinyproxy", seconds=8.0, options=OPTIONS_AT_80_PER_CENT)
    assert max(point.usage for point in truth.dense()) == pytest.approx(0.8, abs=0.01)
    assert truth.cpu().wl == pytest.approx(0.8 * 862.0, rel=0.1)


def test_truths_are_kept_and_found_again_by_all_that_shapes_them(
    make_demo: Callable[..., Campaign], tmp_path: Path
) -> None:
    campaign = with_range(make_demo(), 100.0, 3000.0)
    first = truth_of(campaign, "tinyproxy", seconds=4.0).breakpoints(tmp_path)
    (kept,) = tmp_path.iterdir()
    again = truth_of(campaign, "tinyproxy", seconds=4.0)
    again.at = None  # type: ignore[assignment,method-assign]  # nothing may be run anew
    assert again.breakpoints(tmp_path) == first
    noisier = SimulationOptions(window_sd=0.2, source_cap=0.7, deploy_s=60.0)
    assert (
        truth_of(campaign, "tinyproxy", seconds=4.0, options=noisier).breakpoints(tmp_path) == first
    )
    assert list(tmp_path.iterdir()) == [kept]
    kept.write_text("{ half a file")
    assert truth_of(campaign, "tinyproxy", seconds=4.0).breakpoints(tmp_path) == first
    slower = SimulationOptions(functions={"service_us": 300.0})
    other = truth_of(campaign, "tinyproxy", seconds=4.0, options=slower).breakpoints(tmp_path)
    assert other != first
    assert len(list(tmp_path.iterdir())) == 2
