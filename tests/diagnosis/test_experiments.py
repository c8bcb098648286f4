"""What `why` proposes to measure: points of the campaign that decide, none that is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.diagnosis.experiments import REPETITIONS, experiments
from workbench.domain.campaign import Campaign
from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.diagnoses import Bound, BoundBy, Diagnosis
from workbench.domain.observations import NOT_COLLECTED
from workbench.domain.parameters import Configuration
from workbench.domain.projection import SessionView
from workbench.paths import Workspace

CHAIN, REVERSED = "tinyproxy-haproxy", "haproxy-tinyproxy"
WL = 400.0


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    return load_campaign("demo", workspace=Workspace(tmp_path_factory.mktemp("demo"))).campaign


def view(demo: Campaign, *measured: tuple[str, Configuration], times: int = 1) -> SessionView:
    """A session that has measured these at `WL`."""
    made = SessionView("s")
    made.campaign = demo
    for target, configuration in measured:
        points = [
            SamplePoint(f"{n}", WL * 1.01, n, {}, {}, True, "", (), 0.0) for n in range(times)
        ]
        made.configurations.append(ConfigurationView(target, configuration, samples=points))
    return made


def diagnosis(demo: Campaign, target: str, by: BoundBy, wl: float = WL) -> Diagnosis:
    """Of the smallest allocation of a target, all its functions limited alike."""
    plan = next(p for p in demo.targets if p.target.name == target)
    bounds = tuple(Bound(v.name, by, 0.9, 0.1, 0.0, 0.0) for v in plan.target.vnfs)
    first = min(demo.configurations(plan), key=lambda c: sum(map(float, c.resources.values())))
    return Diagnosis(target, first, wl, "id", "Nothing.", 40.0, 1.0, (), (), bounds)


def test_a_chain_that_waits_is_turned_round_and_its_functions_asked_alone(demo: Campaign) -> None:
    found = diagnosis(demo, CHAIN, "peer or network")
    order, alone = experiments(found, view(demo))[:2]
    assert (order.target, order.configuration, order.wl) == (REVERSED, found.configuration, WL)
    assert alone.target in ("haproxy", "tinyproxy")
    (share,) = alone.configuration.resources.values()
    assert share == found.configuration.resources[f"{alone.target}.vcpu"]
    assert alone.tells.endswith("3 samples are needed, there are 0")


def test_what_was_measured_is_not_proposed_again(demo: Campaign) -> None:
    found = diagnosis(demo, CHAIN, "peer or network")
    order, alone, *_ = experiments(found, view(demo))
    known = [(one.target, one.configuration) for one in (order, alone)]
    after = experiments(found, view(demo, *known, times=REPETITIONS))
    assert not {(one.target, one.configuration) for one in after} & set(known)
    once = experiments(found, view(demo, known[1]))
    assert any(one.tells.endswith("needed, there are 1") for one in once)


@pytest.mark.parametrize("by", ["quota", "cpu", "cpu wait"])
def test_one_that_is_short_of_cpu_gets_its_next_larger_share_first(
    demo: Campaign, by: BoundBy
) -> None:
    found = diagnosis(demo, "haproxy", by, wl=1000.0)
    (first, *_) = experiments(found, view(demo))
    here = found.configuration.resource("haproxy.vcpu")
    larger = sorted(
        c.resource("haproxy.vcpu")
        for plan in demo.targets
        if plan.target.name == "haproxy"
        for c in demo.configurations(plan)
        if c.resource("haproxy.vcpu") > here
    )
    assert first.target == "haproxy"
    assert first.configuration.resource("haproxy.vcpu") == larger[0]


def test_where_evidence_is_missing_the_same_point_comes_first(demo: Campaign) -> None:
    found = diagnosis(demo, CHAIN, "peer or network")
    lacking = replace(found, missing={"delayed_acks": NOT_COLLECTED})
    (again, *others) = experiments(lacking, view(demo))
    assert (again.target, again.configuration, again.wl) == (CHAIN, found.configuration, WL)
    assert tuple(others) == experiments(found, view(demo))
    simulated = view(demo)
    simulated.lab = "sim"  # it collects none, however often it is asked
    assert experiments(lacking, simulated) == tuple(others)


def test_a_load_out_of_range_and_a_session_without_campaign_propose_nothing(
    demo: Campaign,
) -> None:
    assert experiments(diagnosis(demo, CHAIN, "quota", wl=1e9), view(demo)) == ()
    assert experiments(diagnosis(demo, CHAIN, "quota"), SessionView("s")) == ()
