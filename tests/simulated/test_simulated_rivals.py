"""Competitors in the simulated lab: what they take, and that it is stored what they really used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import pytest

from workbench.diagnosis.readings import read
from workbench.domain.campaign import Campaign, Manager
from workbench.domain.errors import LabError
from workbench.domain.parameters import Configuration, OperatingPoint, Parameter
from workbench.domain.samples import Measurement
from workbench.engine.runs.opening import refuse_other_definition
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab
from workbench.measuring.judging import Terms, judge

MakeDemo = Callable[..., Campaign]


async def measured(
    demo: Campaign, competitor: str, wl: float = 400.0, vcpu: float = 1.0
) -> Measurement:
    varied = (*demo.workload, Parameter("competitor", (competitor,)))
    campaign = replace(demo, workload=varied)
    lab = SimulatedLab(campaign, LabSettings("rivals", argument="noise=0,restart_sd=0"))
    await lab.open()
    plan = campaign.target_plan("tinyproxy")
    workload = {"filesize_bytes": 10_000.0, "competitor": competitor}
    configuration = Configuration({"tinyproxy.vcpu": vcpu}, workload)
    await lab.deploy(plan.target, configuration)
    point = OperatingPoint("tinyproxy", configuration, wl)
    seen = await lab.drive(point, 5.0, lambda usage: None)
    terms = Terms(campaign.load, campaign.windows, None, "p95_ms")
    return judge([seen], point, terms, started_at=0.0, lab_s=5.0).measurement


async def test_a_competitor_takes_half_of_a_core_from_the_function(make_demo: MakeDemo) -> None:
    alone, beside = (
        await measured(make_demo(), "none", 6000.0),
        await measured(make_demo(), "cpu", 6000.0),
    )
    carried = [m.sample.kpis["throughput_rps"].value for m in (alone, beside)]
    assert carried[1] == pytest.approx(carried[0] / 2, rel=0.05)
    assert "competitor" not in alone.sample.usage
    used = beside.sample.usage["competitor"]
    assert used.cpu_share == pytest.approx(0.5, abs=0.05)


async def test_what_it_really_used_is_an_observation_of_each_window(make_demo: MakeDemo) -> None:
    beside = await measured(make_demo(), "cpu:30", 100.0)
    assert beside.sample.valid, beside.sample.findings
    seen = {o.name: o for o in beside.observations if o.component == "competitor"}
    (window,) = beside.windows
    asked = 0.3 * window.duration_s
    assert seen["competitor_cpu_s"].value == pytest.approx(asked, rel=0.01)
    assert {o.detail for o in seen.values()} == {"cpu:30"}
    assert seen["competitor_began_s"].value == 0.0
    assert seen["competitor_ended_s"].value == pytest.approx(5.0)
    assert not read(beside).collected  # it says nothing of why the function is as it is
    series = [s for s in beside.series if s.component == "competitor"]
    assert {round(s.cpu_cores, 2) for s in series} == {0.3}


async def test_a_quota_that_leaves_room_is_kept_and_only_waits(make_demo: MakeDemo) -> None:
    alone, beside = (
        await measured(make_demo(), "none", 300.0, 0.5),
        await measured(make_demo(), "cpu", 300.0, 0.5),
    )
    carried = [m.sample.kpis["throughput_rps"].value for m in (alone, beside)]
    assert carried[1] == pytest.approx(carried[0], rel=0.02)
    p50 = [m.sample.kpis["p50_ms"].value for m in (alone, beside)]
    assert p50[1] > 1.3 * p50[0]


async def test_one_elsewhere_takes_no_core_and_memory_costs_everywhere(make_demo: MakeDemo) -> None:
    cpu = [
        (await measured(make_demo(), c, 100.0)).sample
        for c in ("none", "cpu@others", "memory@others")
    ]
    used = [sample.usage["tinyproxy"].cpu_cores for sample in cpu]
    assert used[1] == pytest.approx(used[0], rel=0.06)
    assert used[2] == pytest.approx(1.3 * used[0], rel=0.08)


async def chained(demo: Campaign, wl: float, **cpusets: str) -> Measurement:
    """The demo's chain with its functions pinned to these cores."""
    managers = tuple(Manager(name, "local", cpuset) for name, cpuset in cpusets.items())
    campaign = replace(demo, managers=managers)
    lab = SimulatedLab(campaign, LabSettings("rivals", argument="noise=0,restart_sd=0"))
    await lab.open()
    plan = campaign.target_plan("haproxy-tinyproxy")
    vcpus = {"haproxy.vcpu": 1.0, "tinyproxy.vcpu": 1.0}
    configuration = Configuration(vcpus, {"filesize_bytes": 10_000.0})
    await lab.deploy(plan.target, configuration)
    point = OperatingPoint(plan.target.name, configuration, wl)
    seen = await lab.drive(point, 5.0, lambda usage: None)
    terms = Terms(campaign.load, campaign.windows, None, "p95_ms")
    return judge([seen], point, terms, started_at=0.0, lab_s=5.0).measurement


async def test_functions_on_one_core_wait_for_each_other_and_burn_what_they_did(
    make_demo: MakeDemo,
) -> None:
    apart = await chained(make_demo(), 800.0, haproxy="1", tinyproxy="2")
    beside = await chained(make_demo(), 800.0, haproxy="1", tinyproxy="1")
    wider = await chained(make_demo(), 800.0, haproxy="1-2", tinyproxy="1-2")
    p50 = [m.sample.kpis["p50_ms"].value for m in (apart, wider, beside)]
    assert p50[0] < p50[1] < p50[2]
    for name in ("haproxy", "tinyproxy"):
        used = [m.sample.usage[name].cpu_cores for m in (apart, beside)]
        assert used[1] == pytest.approx(used[0], rel=0.02)


async def test_samples_of_functions_on_one_core_are_of_another_definition(
    make_demo: MakeDemo,
) -> None:
    """Such functions did not wait for each other before; all other samples are as they were."""
    apart = (await chained(make_demo(), 800.0, haproxy="1", tinyproxy="2")).sample
    beside = (await chained(make_demo(), 800.0, haproxy="1", tinyproxy="1")).sample
    assert (apart.generator, beside.generator) == ("simulated 2", "simulated 3")
    managers = (Manager("haproxy", "local", "1"), Manager("tinyproxy", "local", "0-1"))
    for pinned, old in ((managers, True), (managers[:1], False), ((), False)):
        lab = SimulatedLab(replace(make_demo(), managers=pinned), LabSettings("rivals"))
        refuse_other_definition("core", (), lab)
        mixed = pytest.raises(LabError, match="of simulated 2, and this version measures simulated")
        with mixed if old else nullcontext():
            refuse_other_definition("core", [apart], lab)


async def test_functions_on_one_core_carry_no_more_than_it_has(make_demo: MakeDemo) -> None:
    beside = await chained(make_demo(), 6000.0, haproxy="1", tinyproxy="1")
    used = sum(beside.sample.usage[name].cpu_cores for name in ("haproxy", "tinyproxy"))
    assert used == pytest.approx(1.0, abs=0.05)
