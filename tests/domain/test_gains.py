"""What more vCPU brought, as far as samples of a session tell."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from session_making import campaign

from workbench.cli.session_words import explain
from workbench.domain.campaign import Campaign
from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.gains import gains, nothing_gained
from workbench.domain.parameters import LoadModel, Parameter
from workbench.domain.profiles import Breakpoint
from workbench.domain.projection import SessionView
from workbench.domain.questions import Recommended
from workbench.domain.recommendations import Choice, Recommendation
from workbench.domain.samples import Estimate
from workbench.engine.answers.jobs import to_be_said
from workbench.tui import present
from workbench.tui.present import Shown
from workbench.tui.screens.live import live_rows

ERROR = 0.02
"""Half of an interval's width, in logs."""


def around(value: float, error: float = ERROR) -> Estimate:
    return Estimate(value, value * math.exp(-error), value * math.exp(error))


def profiled(kind: str, carried: dict[float, float], error: float = ERROR) -> SessionView:
    """haproxy alone, that carries so much at so many vCPUs."""
    known = campaign()
    plan = replace(
        known.targets[0], resources=(Parameter("haproxy.vcpu", tuple(carried), "cores"),)
    )
    load = LoadModel("open" if kind == "open" else "closed")
    whole: Campaign = replace(known, load=load, targets=(plan, *known.targets[1:]))
    shown = []
    for configuration in whole.configurations(plan):
        rate = around(carried[configuration.vcpu("haproxy")], error)
        view = ConfigurationView("haproxy", configuration)
        if kind == "open":
            view.breakpoints = (
                Breakpoint(
                    "haproxy", configuration, "capacity", "throughput_rps", "found",
                    rate.value, rate.low, rate.high,
                ),
            )  # fmt: skip
        else:
            view.samples = [
                SamplePoint(
                    f"{wl}", wl, 0, {"throughput_rps": rate if wl > 1 else around(10.0)}, {}, True,
                    "", (), 0.0,
                )
                for wl in (1.0, 32.0, 64.0)
            ]  # fmt: skip
        shown.append(view)
    return SessionView("t", campaign=whole, configurations=shown)


@pytest.mark.parametrize("kind", ["open", "closed"])
def test_a_vcpu_that_brings_nothing_is_named_with_its_cost(kind: str) -> None:
    view = profiled(kind, {1.0: 1000.0, 2.0: 1900.0, 3.0: 1938.0})
    second, third = gains(view)
    assert second.gain == pytest.approx(0.9)
    assert not second.is_nothing
    half = math.hypot(ERROR, ERROR)
    assert third.gain == pytest.approx(0.02)
    assert third.low == pytest.approx(1.02 * math.exp(-half) - 1)
    assert third.high == pytest.approx(1.02 * math.exp(half) - 1)
    assert nothing_gained(view) == (third,)
    assert third.text == "the third vCPU of haproxy adds 2 % [-1, 5] and costs 50 % more vCPU"


def test_shares_are_named_as_they_are_and_what_is_not_known_says_nothing() -> None:
    (gain,) = gains(profiled("open", {0.25: 500.0, 0.5: 505.0}))
    assert gain.text.startswith("haproxy with 0.5 vCPU instead of 0.25 adds 1 % [")
    view = profiled("open", {0.25: 500.0, 0.5: 505.0})
    view.configurations[1].breakpoints = ()
    assert tuple(gains(view)) == ()


def test_show_and_live_and_a_recommendation_say_it() -> None:
    view = profiled("open", {1.0: 1000.0, 2.0: 1900.0, 3.0: 1938.0})
    says = "the third vCPU of haproxy adds 2 % [-1, 5] and costs 50 % more vCPU"
    assert f"Where more vCPU brings nothing:\n  {says}" in explain(view)
    chosen = Choice({"haproxy.vcpu": 3.0}, {}, 3.0, "vCPU", 0.99, 0.0, {}, {})
    answer = Recommendation("r1", "t", "haproxy", (), 0.95, True, chosen, None, (), 0, 0.0)
    assert tuple(to_be_said(view, Recommended(answer, ()))) == (says,)
    other = replace(answer, chosen=replace(chosen, allocation={"nginx.vcpu": 1.0}))
    assert tuple(to_be_said(view, Recommended(other, ()))) == ()
    third = view.configurations[2]
    spans = live_rows.breakpoints(Shown(view), present.ViewChoice(third.key), 200)
    assert says in "".join(words for words, _ in spans)


def test_flavors_that_overlap_go_by_their_names() -> None:
    view = profiled("open", {1.0: 1000.0, 2.0: 1010.0})
    for shown, name in zip(view.configurations, ("small", "large"), strict=True):
        resources = {**shown.configuration.resources, "haproxy.flavor": name}
        if name == "large":
            resources["haproxy.memory_bytes"] = 64e6
        shown.configuration = replace(shown.configuration, resources=resources)
    (gain,) = nothing_gained(view)
    assert gain.text.startswith("flavor large of haproxy over small adds 1 % [")
    assert gain.text.endswith("costs 100 % more vCPU")


def test_what_is_not_known_well_is_not_called_nothing() -> None:
    view = profiled("open", {0.04: 1000.0, 0.06: 1500.0}, error=0.47)
    (gain,) = gains(view)
    assert gain.low < 0.0 < gain.high
    assert nothing_gained(view) == ()
