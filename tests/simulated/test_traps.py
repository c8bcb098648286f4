"""Every trap of METHOD.md 11 does to records and counters what it says (docs/simulated-lab.md)."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from workbench.domain.campaign import Campaign, TargetPlan, WindowPlan
from workbench.domain.parameters import (
    Configuration,
    LoadModel,
    OperatingPoint,
    Parameter,
    PrimaryWorkload,
)
from workbench.domain.topology import Series, Target, Vnf, VnfTemplate
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab, SimulationOptions
from workbench.labs.simulated.capacity import under_load
from workbench.labs.simulated.component_models import ComponentModel
from workbench.labs.simulated.scene import set_scene
from workbench.labs.simulated.stretch import Chance, run
from workbench.measuring.records import Drive

OPEN, CLOSED = LoadModel("open"), LoadModel("closed")
QUIET = "noise=0,hop_us=100"


def campaign(
    load: LoadModel = OPEN,
    vcpu: tuple[float, ...] = (0.25,),
    functions: int = 1,
    bytes_: float = 1000.0,
    timeout_s: float = 20.0,
    **part: float,
) -> Campaign:
    """Functions `a`, `b`, ... in series that carry 1000 requests/s per core."""
    vnfs = tuple(Vnf("abc"[i], "abc"[i]) for i in range(functions))
    graph = vnfs[0] if functions == 1 else Series(vnfs)
    stand_in = {"service_us": 1000.0, "per_kb_us": 0.0, **part}
    ends = {"service_us": 20.0, "per_kb_us": 0.0}
    return Campaign(
        name="traps",
        targets=(
            TargetPlan(
                Target("t", graph),
                tuple(Parameter(f"{vnf.name}.vcpu", vcpu) for vnf in vnfs),
                PrimaryWorkload("rate", 10.0, 10_000.0),
            ),
        ),
        templates=(
            *(VnfTemplate(vnf.name, simulated=stand_in) for vnf in vnfs),
            VnfTemplate("source", role="source", simulated=ends),
            VnfTemplate("sink", role="sink", simulated=ends),
        ),
        workload=(Parameter("filesize_bytes", (bytes_,)),),
        load=load,
        windows=WindowPlan(request_timeout_s=timeout_s),
    )


def lab_of(of: Campaign, options: str = "", seed: int = 1) -> SimulatedLab:
    parsed = SimulationOptions.parse(f"{QUIET},{options}")
    return SimulatedLab(of, LabSettings("s", seed=seed, oversubscribe=True), options=parsed)


def configuration_of(of: Campaign, number: int = 0) -> Configuration:
    return of.configurations(of.targets[0])[number]


async def drive(
    of: Campaign,
    wl: float,
    options: str = "",
    *,
    seconds: float = 5.0,
    seed: int = 1,
    number: int = 0,
    block: int = 0,
) -> Drive:
    lab, chosen = lab_of(of, options, seed), configuration_of(of, number)
    await lab.deploy(of.targets[0].target, chosen, block)
    return await lab.drive(OperatingPoint("t", chosen, wl), seconds, lambda _: None)


def rate(seen: Drive, after_s: float = 1.0) -> float:
    end = seen.records.end_s - seen.begin_s
    length = seen.stop_s - seen.begin_s - after_s
    return float(np.sum(seen.records.succeeded & (end >= after_s))) / length


def times_ms(seen: Drive) -> np.ndarray:
    records = seen.records
    return np.asarray((records.end_s - records.planned_s)[records.finished] * 1e3)


def usage(seen: Drive, name: str = "a") -> float:
    spent = seen.counters[-1].components[name].cpu_s / (seen.stop_s - seen.begin_s)
    return spent / seen.allotted_cores[name]


def carried(of: Campaign, options: str = "", number: int = 0) -> float:
    """Nominal capacity of the first function, requests/s."""
    parsed = SimulationOptions.parse(f"{QUIET},{options}")
    scene = set_scene(of, of.targets[0].target, configuration_of(of, number), parsed)
    return 1.0 / scene.components[1].demand_s


@pytest.mark.parametrize(
    ("part", "options", "expected"),
    [
        ({}, "", {0.5: 500, 1: 1000, 2: 2000, 3: 3000, 4: 4000}),
        ({"alpha": 0.8}, "", {0.5: 574, 1: 1000, 2: 1741, 4: 3031}),
        ({"stops_at": 1.0}, "", {0.5: 500, 1: 1000, 2: 1000, 4: 1000}),
        ({"stops_at": 3.0}, "", {2: 2000, 3: 3000, 4: 3000}),
        ({"loses_share": 0.1}, "", {3: 3000, 4: 3600}),
        ({"steps": 1.0}, "", {0.5: 500, 1: 1000, 1.9: 1000, 2: 2000}),
        ({"plateau": 0.8}, "", {0.5: 400, 1: 800, 2: 1600}),
        ({}, "capacity_law=scalability", {0.5: 500, 1: 1000, 2: 1869, 4: 3149}),
    ],
)
async def test_capacity_laws(
    part: Mapping[str, float], options: str, expected: Mapping[float, float]
) -> None:
    of = campaign(vcpu=tuple(expected), **part)
    for number, (vcpu, requests) in enumerate(expected.items()):
        assert carried(of, options, number) == pytest.approx(requests, rel=0.01), vcpu
    last = len(expected) - 1
    roomy = f"host_cores=8,{options}"
    overloaded = await drive(of, 1.3 * carried(of, options, last), roomy, number=last)
    assert rate(overloaded) == pytest.approx(carried(of, options, last), rel=0.03)


async def test_something_else_than_cpu_limits() -> None:
    for options, share in (("function.plateau=0.8", 0.8), ("function.stops_at=1", 0.5)):
        seen = await drive(campaign(vcpu=(2.0,)), 3000.0, options)
        assert usage(seen) == pytest.approx(share, abs=0.02)
        assert seen.counters[-1].components["a"].throttled_periods == 0


async def test_flavors_of_one_bandwidth_carry_the_same() -> None:
    flavors = {
        "small": {"vcpu": 1.0, "bandwidth_mbps": 8.0},
        "big": {"vcpu": 2.0, "bandwidth_mbps": 8.0},
    }
    of = campaign(bytes_=10_000.0 - 250.0)
    plan = replace(
        of.targets[0], resources=(Parameter("a.flavor", tuple(flavors), flavors=flavors),)
    )
    of = replace(of, targets=(plan,))
    seen = [await drive(of, 200.0, number=number) for number in (0, 1)]
    assert [rate(one) for one in seen] == pytest.approx([100.0, 100.0], rel=0.03)
    assert usage(seen[0]) == pytest.approx(2.0 * usage(seen[1]), rel=0.05)


def test_capacity_varies_unsmoothly_by_configuration_and_log_uniformly_by_world() -> None:
    of = campaign(vcpu=tuple(np.geomspace(0.1, 1.0, 60)))
    options = "function.effect_sd=0.15"
    effects = [math.log(carried(of, options, n) / carried(of, "", n)) for n in range(60)]
    assert np.std(effects) == pytest.approx(0.15, rel=0.25)
    assert abs(np.corrcoef(effects[:-1], effects[1:])[0, 1]) < 0.3
    assert effects[7] == math.log(carried(of, options, 7) / carried(of, "", 7))
    spread = [math.log(carried(of, f"capacity_spread=2,world={w}") / 100.0) for w in range(200)]
    assert max(map(abs, spread)) <= math.log(2.0)
    assert np.std(spread) == pytest.approx(math.log(2.0) / math.sqrt(3.0), rel=0.1)


def test_the_knee_is_smooth_and_as_wide_as_it_is_asked_to_be() -> None:
    part = ComponentModel(knee_width=0.3)
    loads = np.linspace(0.1, 2.0, 400)
    curve = np.array([under_load(part, float(load)) for load in loads])
    carried_share = np.minimum(loads, curve)
    assert np.max(np.abs(np.diff(curve))) < 0.02
    assert under_load(part, 0.4) == under_load(part, 1.3) == 1.0
    assert np.all(carried_share[loads <= 0.7] == loads[loads <= 0.7])
    assert under_load(part, 1.0) == pytest.approx(1.0 - 0.3 / 4.0)


@pytest.mark.parametrize("decay", [0.2, 0.6])
async def test_capacity_decays_in_overload(decay: float) -> None:
    assert under_load(ComponentModel(decay=decay), 2.0) == pytest.approx(1.0 - decay)
    seen = await drive(campaign(decay=decay), 500.0)
    assert rate(seen) == pytest.approx(250.0 * (1.0 - decay), rel=0.04)


async def test_an_overloaded_function_recovers_only_below_its_share() -> None:
    of = campaign(decay=0.4, recovers_below=0.7)
    lab, chosen = lab_of(of), configuration_of(of)

    async def carries(wl: float) -> float:
        return rate(await lab.drive(OperatingPoint("t", chosen, wl), 5.0, lambda _: None))

    await lab.deploy(of.targets[0].target, chosen)
    assert await carries(200.0) == pytest.approx(200.0, rel=0.02)
    await carries(500.0)
    assert await carries(201.0) == pytest.approx(150.0, rel=0.03)
    assert await carries(100.0) == pytest.approx(100.0, rel=0.02)
    assert await carries(202.0) == pytest.approx(202.0, rel=0.02)
    await carries(501.0)
    await lab.deploy(of.targets[0].target, chosen, 1)
    assert await carries(203.0) == pytest.approx(203.0, rel=0.02)


async def test_a_kpi_that_falls_before_it_rises() -> None:
    """R(1) = 1.4 R(4)."""
    of = campaign(CLOSED, vcpu=(1.0,), cold_factor=1.4, cv=0.0)
    one, four = [np.mean(times_ms(await drive(of, n))) for n in (1, 4)]
    assert one == pytest.approx(1.4 * four, rel=0.05)
    opened = campaign(vcpu=(1.0,), cold_factor=1.4, cv=0.0)
    low, middle = [np.mean(times_ms(await drive(opened, wl))) for wl in (5.0, 300.0)]
    assert low == pytest.approx(1.4 * middle, rel=0.05)


async def test_fast_refusals_lower_p95() -> None:
    waits = campaign(vcpu=(1.0,))
    sheds = campaign(vcpu=(1.0,), buffer=4.0, sheds=1.0)
    slow, fast = [await drive(of, 1500.0) for of in (waits, sheds)]
    assert set(np.unique(fast.records.status[fast.records.finished])) == {200, 503}
    assert np.quantile(times_ms(fast), 0.95) < 0.2 * np.quantile(times_ms(slow), 0.95)
    assert rate(fast) == pytest.approx(1000.0, rel=0.03)
    refuses = await drive(campaign(vcpu=(1.0,), buffer=4.0), 1500.0)
    assert 503 not in refuses.records.status


async def test_requests_time_out_after_sixty_seconds() -> None:
    of = campaign(CLOSED, vcpu=(0.001,), timeout_s=60.0)
    seen = await drive(of, 70.0, seconds=100.0)
    took = seen.records.end_s - seen.records.start_s
    failed = seen.records.finished & (seen.records.status == 0)
    assert failed.any()
    assert took[failed] == pytest.approx(60.0, abs=1e-6)
    assert np.nanmax(took) < 60.0 + 1e-6


async def test_large_files_stall_for_two_hundred_milliseconds() -> None:
    options = "stall_share=0.015"
    small = await drive(campaign(vcpu=(1.0,)), 200.0, options, seconds=20.0)
    large = await drive(campaign(vcpu=(1.0,), bytes_=1e6), 200.0, options, seconds=20.0)
    assert np.mean(times_ms(small) > 150.0) == 0.0
    assert np.mean(times_ms(large) > 150.0) == pytest.approx(0.015, abs=0.006)
    mode = times_ms(large)[times_ms(large) > 150.0]
    assert np.median(mode) == pytest.approx(201.3, abs=1.0)


async def test_a_chain_coalesces() -> None:
    of = campaign(functions=2)
    plain, better = [rate(await drive(of, 400.0, o)) for o in ("", "coalescing=1.15")]
    assert plain == pytest.approx(250.0, rel=0.03)
    assert better == pytest.approx(250.0, rel=0.03)  # the first function limits
    second = await drive(of, 200.0, "coalescing=1.15")
    assert usage(second, "a") / usage(second, "b") == pytest.approx(1.15, rel=0.02)


def test_quota_periods_of_two_functions_begin_together_or_apart() -> None:
    of = campaign(functions=2)
    for options, together in (("in_phase=1", True), ("in_phase=0", False)):
        parsed = SimulationOptions.parse(f"{QUIET},{options}")
        scene = set_scene(of, of.targets[0].target, configuration_of(of), parsed)
        used = run(scene, OPEN, 100.0, 1.0, 20.0, Chance(1, ())).passage.consumption
        assert (used[1].phase_s == used[2].phase_s) == together


async def test_the_bypass_is_the_same_load_without_the_functions() -> None:
    of = campaign()
    lab, chosen = lab_of(of, "bypass_share=0.3"), configuration_of(of)
    point = OperatingPoint("t", chosen, 100.0)
    await lab.deploy(of.targets[0].target, chosen)
    through = await lab.drive(point, 5.0, lambda _: None)
    past = await lab.drive_bypass(point, 5.0, lambda _: None)
    assert past is not None
    assert set(past.counters[-1].components) == {"source", "sink"}
    assert np.mean(times_ms(past)) == pytest.approx(0.3 * np.mean(times_ms(through)), rel=0.05)
    again = await lab.drive_bypass(point, 5.0, lambda _: None)
    assert again is not None
    assert again.begin_s > past.begin_s
    fast = await lab.drive_bypass(OperatingPoint("t", chosen, 2000.0), 2.0, lambda _: None)
    assert fast is not None
    assert rate(fast) == pytest.approx(2000.0, rel=0.01)


async def test_a_client_of_one_thread_is_at_its_limit_within_its_allotment() -> None:
    seen = await drive(campaign(), 230.0, "client_cap=0.7")
    assert rate(seen) == pytest.approx(0.7 * 250.0, rel=0.03)
    last = seen.counters[-1].components["source"]
    assert len(last.threads_cpu_s) == 1
    assert last.threads_cpu_s[0] / 5.0 > 0.98
    assert usage(seen, "source") < 0.55


async def test_a_neighbour_takes_the_host() -> None:
    of = campaign(vcpu=(1.0,))
    alone, beside = [
        await drive(of, 1500.0, f"host_cores=2,{o}") for o in ("", "neighbour_cores=3")
    ]
    assert beside.counters[-1].host_busy_s / 5.0 == pytest.approx(2.0, rel=0.02)
    assert alone.counters[-1].host_busy_s / 5.0 < 1.3
    assert rate(beside) < 0.6 * rate(alone)


async def test_the_connection_table_fills_and_swallows_what_comes_then() -> None:
    of = campaign(vcpu=(1.0,), closes=1.0)
    seen = await drive(of, 500.0, "conntrack_share=0.99")
    used = [c.conntrack_used / c.conntrack_limit for c in seen.counters]
    assert used[0] == pytest.approx(0.99, abs=0.001)
    assert np.all(np.diff(used) >= 0.0)
    assert used[-1] == pytest.approx(1.0, abs=0.001)
    assert int(seen.records.succeeded.sum()) == math.floor(0.01 * 262_144 / 2.0)
    kept_open = await drive(campaign(vcpu=(1.0,)), 500.0, "conntrack_share=0.99")
    assert rate(kept_open) == pytest.approx(500.0, rel=0.01)


async def test_the_host_stands_still_for_two_seconds() -> None:
    of = campaign(vcpu=(1.0,))
    seen = await drive(of, 200.0, "hangs_per_hour=3600,hang_s=2")
    ends = np.sort(seen.records.end_s[seen.records.finished])
    gap = int(np.argmax(np.diff(ends)))
    assert np.diff(ends)[gap] == pytest.approx(2.0, abs=0.02)
    records = seen.records
    due_then = (records.planned_s > ends[gap]) & (records.planned_s < ends[gap + 1])
    assert due_then.sum() == pytest.approx(400, abs=5)
    late = records.start_s[due_then] - records.planned_s[due_then]
    assert np.nanmax(late) == pytest.approx(2.0, abs=0.02)
    instants = np.diff([c.at_s for c in seen.counters])
    assert instants.max() > 1.0  # nobody reads a counter meanwhile
    assert seen.counters[-1].host_busy_s > 4 * 2.0
    hit = [
        (await drive(of, 200.0, "hangs_per_hour=72", seed=s)).counters[-1].host_busy_s > 4.0
        for s in range(60)
    ]
    assert np.mean(hit) == pytest.approx(0.1, abs=0.1)


async def test_restarts_and_passes_differ_by_block_and_are_the_same_again() -> None:
    of = campaign()
    options = "noise=1,window_sd=0,jitter_sd=0,drift_sd=0"
    for noise, least in (
        ("restart_sd=0.05", 0.001),
        ("pass_step_low=0.12,pass_step_high=0.3", 0.1),
    ):
        rates = [
            rate(await drive(of, 400.0, f"{options},restart_sd=0,{noise}", block=b))
            for b in (0, 1, 2, 0)
        ]
        assert rates[0] == rates[3]
        steps = np.abs(np.diff(np.log(rates[:3])))
        assert np.all((steps > least) & (steps < 0.33))


async def test_drift_varies_within_a_configuration() -> None:
    options = "noise=1,window_sd=0,jitter_sd=0,restart_sd=0,drift_sd=0.08,drift_s=120"
    of, rates = campaign(), []
    for seed in range(12):
        lab, chosen = lab_of(of, options, seed), configuration_of(of)
        await lab.deploy(of.targets[0].target, chosen)
        points = [OperatingPoint("t", chosen, wl) for wl in (400.0, 600.0)]
        rates.append([rate(await lab.drive(p, 5.0, lambda _: None)) for p in points])
    logs = np.log(rates)
    assert np.std(logs) == pytest.approx(0.08, rel=0.5)
    within = np.abs(np.diff(logs, axis=1))
    assert 0.005 < np.median(within) < np.median(np.abs(np.diff(logs[:, 0])))


async def test_a_visit_begins_cold_and_gets_warm() -> None:
    seen = await drive(campaign(vcpu=(1.0,)), 300.0, "warm_share=1,warm_s=0.3")
    planned = seen.records.planned_s - seen.begin_s
    taken = times_ms(seen)
    assert np.median(taken[planned < 0.1]) > 1.5 * np.median(taken[planned > 2.0])


async def test_what_deployments_and_changes_cost() -> None:
    of = campaign()
    lab, chosen = lab_of(of, "deploy_s=60,allocate_s=15,undeploy_s=3"), configuration_of(of)
    await lab.deploy(of.targets[0].target, chosen)
    await lab.allocate(chosen)
    await lab.undeploy()
    await lab.undeploy()
    assert lab.clock() == pytest.approx(78.0)
