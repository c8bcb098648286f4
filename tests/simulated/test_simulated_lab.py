"""The simulated lab by its protocol: what its records and counters must show."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.errors import LabError, UsageError
from workbench.domain.parameters import (
    LoadModel,
    OperatingPoint,
    Parameter,
    PrimaryWorkload,
)
from workbench.domain.topology import Parallel, Series, Target, Vnf, VnfTemplate
from workbench.labs.base import DrivingLab, LabSettings
from workbench.labs.simulated import SimulatedLab, SimulationOptions
from workbench.measuring.records import Drive, RequestRecords

QUIET = SimulationOptions(noise=False)
MakeDemo = Callable[..., Campaign]


async def drive(
    campaign: Campaign,
    target: str,
    wl: float,
    *,
    configuration: int = 0,
    seconds: float = 5.0,
    options: SimulationOptions = QUIET,
    seed: int = 1,
    repetition: int = 0,
) -> Drive:
    lab = SimulatedLab(campaign, LabSettings("s", seed=seed), options=options)
    plan = campaign.target_plan(target)
    chosen = campaign.configurations(plan)[configuration]
    await lab.open()
    await lab.deploy(plan.target, chosen)
    await lab.allocate(chosen)
    point = OperatingPoint(target, chosen, wl, repetition)
    return await lab.drive(point, seconds, lambda _: None)


def rate_rps(drive: Drive, warmup_s: float = 1.0) -> float:
    """Answers per second after the warm-up."""
    end = drive.records.end_s
    begin = drive.begin_s + warmup_s
    return float(np.sum(drive.records.succeeded & (end >= begin))) / (drive.stop_s - begin)


def times_ms(drive: Drive) -> np.ndarray:
    records = drive.records
    taken = (records.end_s - records.planned_s)[records.finished] * 1e3
    return np.asarray(taken)


def used_share(drive: Drive, component: str) -> float:
    first, last = drive.counters[0], drive.counters[-1]
    used = last.components[component].cpu_s - first.components[component].cpu_s
    return used / (last.at_s - first.at_s) / drive.allotted_cores[component]


def same(one: RequestRecords, other: RequestRecords) -> bool:
    columns = ("planned_s", "start_s", "end_s", "status", "bytes")
    return all(
        np.array_equal(getattr(one, c), getattr(other, c), equal_nan=c.endswith("_s"))
        for c in columns
    )


def test_it_is_a_driving_lab(make_demo: MakeDemo) -> None:
    assert isinstance(SimulatedLab(make_demo(), LabSettings("s")), DrivingLab)


@pytest.mark.parametrize("clients", [1, 4, 64])
async def test_littles_law_holds_on_closed_loop_records(make_demo: MakeDemo, clients: int) -> None:
    campaign = make_demo(LoadModel("closed"))
    seen = await drive(campaign, "haproxy", clients)
    records = seen.records
    in_system = np.nansum(np.minimum(np.nan_to_num(records.end_s, nan=seen.stop_s), seen.stop_s))
    in_system = (in_system - records.start_s.sum()) / (seen.stop_s - seen.begin_s)
    assert in_system == pytest.approx(clients, rel=0.001)
    ratio = rate_rps(seen) * np.mean(times_ms(seen)) * 1e-3 / clients
    assert 0.97 < ratio < 1.03
    assert int(np.sum(~records.finished)) <= clients


@pytest.mark.parametrize(("think_s", "clients"), [(0.0, 1), (0.1, 10), (0.1, 200)])
async def test_closed_loop_follows_the_operational_bound(
    make_demo: MakeDemo, think_s: float, clients: int
) -> None:
    seen = await drive(make_demo(LoadModel("closed", think_s)), "tinyproxy", clients)
    alone_s = 40e-6 + 290e-6 + 12e-6 + 2 * 120e-6
    bound = min(clients / (alone_s + think_s), 0.25 / 290e-6)
    assert rate_rps(seen) == pytest.approx(bound, rel=0.05)


async def test_tinyproxy_is_saturated_by_the_first_client(make_demo: MakeDemo) -> None:
    """METHOD.md 2: 892, 796, 832, 858, 888 requests/s at 1, 2, 4, 16, 64 clients."""
    campaign = make_demo(LoadModel("closed"))
    rates = [rate_rps(await drive(campaign, "tinyproxy", n)) for n in (1, 2, 4, 16, 64)]
    assert min(rates) > 0.93 * max(rates)
    assert max(rates) == pytest.approx(862, rel=0.04)


async def test_half_the_quota_halves_capacity_and_throttles(make_demo: MakeDemo) -> None:
    campaign = make_demo()
    half, whole = [await drive(campaign, "haproxy", 20_000.0, configuration=c) for c in (0, 1)]
    assert rate_rps(half) / rate_rps(whole) == pytest.approx(0.5, rel=0.03)
    for seen in (half, whole):
        last = seen.counters[-1].components["haproxy"]
        assert used_share(seen, "haproxy") == pytest.approx(1.0, abs=0.02)
        assert last.periods in (49, 50)
        assert last.throttled_periods >= 48
        assert 1.0 < last.throttled_s < 5.0
    assert half.counters[-1].components["haproxy"].throttled_s > 2.0
    calm = await drive(campaign, "haproxy", 4000.0)
    assert calm.counters[-1].components["haproxy"].throttled_periods == 0


async def test_p95_jumps_where_five_per_cent_meet_a_gap(make_demo: MakeDemo) -> None:
    """METHOD.md 5: n/(X·T) is 2.3 % at 2 clients and 9 % at 8."""
    campaign = make_demo(LoadModel("closed"))
    below, above = [
        np.quantile(times_ms(await drive(campaign, "tinyproxy", n)), 0.95) for n in (2, 8)
    ]
    assert below < 2.0
    assert 50.0 < above < 95.0


async def test_order_decides_about_forty_milliseconds(make_demo: MakeDemo) -> None:
    campaign = make_demo(LoadModel("closed"))
    slow = np.median(times_ms(await drive(campaign, "tinyproxy-haproxy", 2)))
    fast = np.median(times_ms(await drive(campaign, "haproxy-tinyproxy", 2)))
    without = await drive(
        campaign, "tinyproxy-haproxy", 2, options=replace(QUIET, delayed_ack=False)
    )
    assert 43.0 < slow < 46.0
    assert 0.5 < fast < 1.2
    assert np.median(times_ms(without)) == pytest.approx(fast, rel=0.05)


async def test_a_source_that_gives_out_first_shows_it(make_demo: MakeDemo) -> None:
    campaign, capped = make_demo(), replace(QUIET, source_cap=0.7)
    seen = await drive(campaign, "haproxy", 8000.0, options=capped)
    assert rate_rps(seen) == pytest.approx(0.7 * 0.125 / 15e-6, rel=0.03)
    assert used_share(seen, "source") > 0.97
    assert used_share(seen, "haproxy") < 0.75
    begun = np.isfinite(seen.records.start_s)
    assert np.max((seen.records.start_s - seen.records.planned_s)[begun]) > 0.5
    free = await drive(campaign, "haproxy", 8000.0)
    assert used_share(free, "source") < 0.4


async def test_a_sink_that_gives_out_first_shows_it(make_demo: MakeDemo) -> None:
    seen = await drive(make_demo(), "tinyproxy", 900.0, options=replace(QUIET, sink_cap=0.8))
    assert used_share(seen, "sink") > 0.97
    assert used_share(seen, "tinyproxy") < 0.9


async def test_overload_leaves_a_row_for_every_request_that_was_due(make_demo: MakeDemo) -> None:
    seen = await drive(make_demo(), "tinyproxy", 2000.0)
    records = seen.records
    assert len(records) == 10_000
    np.testing.assert_allclose(np.diff(records.planned_s), 1 / 2000.0, atol=1e-8)
    unsent = np.isnan(records.start_s)
    assert 0.5 < unsent.mean() < 0.6
    assert np.isnan(records.end_s[unsent]).all()
    in_flight = ~unsent & ~records.finished
    assert in_flight.sum() == 64
    assert (records.status[~records.finished] == 0).all()
    assert (records.bytes[records.finished] == 10_000).all()


async def test_counters_grow_and_agree_with_the_records(make_demo: MakeDemo) -> None:
    seen = await drive(make_demo(), "haproxy-tinyproxy", 500.0, seconds=4.5)
    assert [c.at_s - seen.begin_s for c in seen.counters] == [0.0, 1.0, 2.0, 3.0, 4.0, 4.5]
    assert seen.counters[-1].at_s == seen.stop_s
    for name in ("source", "haproxy", "tinyproxy", "sink"):
        series = [c.components[name] for c in seen.counters]
        assert all(a.cpu_s < b.cpu_s and a.rx_bytes < b.rx_bytes for a, b in pairwise(series))
    answered = int(seen.records.succeeded.sum())
    last = seen.counters[-1].components
    assert last["tinyproxy"].cpu_s == pytest.approx(answered * 290e-6, rel=0.02)
    assert last["source"].cpu_s == pytest.approx(answered * 40e-6, rel=0.02)
    assert last["sink"].tx_bytes == pytest.approx(answered * 10_250, rel=0.01)
    components = sum(c.cpu_s for c in last.values())
    assert components < seen.counters[-1].host_busy_s < components + 0.2


async def test_same_seed_same_records_other_points_other_records(make_demo: MakeDemo) -> None:
    campaign, noisy = make_demo(), SimulationOptions()
    first = await drive(campaign, "tinyproxy", 600.0, options=noisy)
    again = await drive(campaign, "tinyproxy", 600.0, options=noisy)
    assert same(first.records, again.records)
    assert first.counters == again.counters
    others = [
        await drive(campaign, "tinyproxy", 600.0, options=noisy, seed=2),
        await drive(campaign, "tinyproxy", 600.0, options=noisy, repetition=1),
        await drive(campaign, "tinyproxy", 600.0, options=noisy, configuration=1),
        await drive(campaign, "haproxy-tinyproxy", 600.0, options=noisy),
    ]
    assert not any(same(first.records, other.records) for other in others)


async def test_what_was_measured_before_leaves_no_trace(make_demo: MakeDemo) -> None:
    """A resumed campaign takes the samples of an uninterrupted one, to the last bit."""
    campaign = make_demo()
    plan = campaign.target_plan("tinyproxy")
    configurations = campaign.configurations(plan)
    lab = SimulatedLab(campaign, LabSettings("s"))
    await lab.deploy(plan.target, configurations[0])
    for wl in (100.0, 333.3, 1200.0):
        point = OperatingPoint("tinyproxy", configurations[0], wl)
        await lab.drive(point, 4.7, lambda _: None)
    await lab.allocate(configurations[1])
    point = OperatingPoint("tinyproxy", configurations[1], 600.0)
    late = await lab.drive(point, 5.0, lambda _: None)
    fresh = await drive(campaign, "tinyproxy", 600.0, configuration=1, options=SimulationOptions())
    assert late.begin_s > fresh.begin_s
    for column in ("planned_s", "start_s", "end_s"):
        one, other = getattr(late.records, column), getattr(fresh.records, column)
        np.testing.assert_array_equal(one - late.begin_s, other - fresh.begin_s)
    extended = await lab.drive(point, 5.0, lambda _: None)
    assert not np.array_equal(
        extended.records.end_s - extended.begin_s, late.records.end_s - late.begin_s
    )


async def test_noise_moves_capacity_by_a_few_per_cent(make_demo: MakeDemo) -> None:
    rates = [
        rate_rps(await drive(make_demo(), "tinyproxy", 1500.0, seed=s, options=SimulationOptions()))
        for s in range(12)
    ]
    assert 0.015 < np.std(np.log(rates)) < 0.08
    assert np.median(rates) == pytest.approx(862, rel=0.05)


async def test_nothing_may_be_answered_at_all(make_demo: MakeDemo) -> None:
    seen = await drive(make_demo(LoadModel("closed")), "tinyproxy-haproxy", 1, seconds=0.02)
    assert len(seen.records) == 1
    assert not seen.records.finished.any()
    poisson = make_demo(LoadModel("open", arrivals="poisson"))
    assert len((await drive(poisson, "haproxy", 1e-3, seconds=0.5)).records) == 0


async def test_four_threads_under_a_quota_burn_it_faster(make_demo: MakeDemo) -> None:
    campaign = make_demo(LoadModel("closed"))
    four = replace(
        campaign,
        templates=(
            replace(
                campaign.template("tinyproxy"),
                simulated={**campaign.template("tinyproxy").simulated, "threads": 4.0},
            ),
            *campaign.templates[2:],
        ),
    )
    one_thread, four_threads = [await drive(c, "tinyproxy", 8) for c in (campaign, four)]
    assert four_threads.threads == {"tinyproxy": 4}
    assert rate_rps(four_threads) == pytest.approx(rate_rps(one_thread), rel=0.03)
    gaps = [c.counters[-1].components["tinyproxy"].throttled_s for c in (one_thread, four_threads)]
    assert gaps[0] == pytest.approx(0.75 * 5.0, rel=0.05)
    assert gaps[1] == pytest.approx((1 - 0.25 / 4) * 5.0, rel=0.05)


async def test_traffic_splits_over_parallel_branches(make_demo: MakeDemo) -> None:
    demo = make_demo()
    graph = Series(
        (
            Vnf("lb", "haproxy"),
            Parallel((Vnf("a", "tinyproxy"), Vnf("b", "tinyproxy")), (0.75, 0.25)),
        )
    )
    vcpu = {"lb": 0.25, "a": 0.5, "b": 0.5}
    plan = TargetPlan(
        Target("split", graph),
        tuple(Parameter(f"{name}.vcpu", (cores,)) for name, cores in vcpu.items()),
        PrimaryWorkload("rate", 10.0, 3000.0),
    )
    seen = await drive(replace(demo, targets=(plan,)), "split", 1000.0)
    cpu = {name: seen.counters[-1].components[name].cpu_s for name in vcpu}
    assert cpu["a"] / cpu["b"] == pytest.approx(3.0, rel=0.1)
    assert cpu["lb"] == pytest.approx(5.0 * 1000 * 15e-6, rel=0.05)
    assert rate_rps(seen) == pytest.approx(1000.0, rel=0.02)


async def test_a_small_host_stretches_all_work(make_demo: MakeDemo) -> None:
    small = replace(QUIET, host_cores=1)
    demo = make_demo()
    with pytest.raises(UsageError, match="need up to 0"):
        await drive(demo, "haproxy", 20_000.0, configuration=1, options=small)
    lab = SimulatedLab(demo, LabSettings("s", oversubscribe=True), options=small)
    plan = demo.target_plan("haproxy")
    chosen = demo.configurations(plan)[1]
    await lab.open()
    await lab.deploy(plan.target, chosen)
    seen = await lab.drive(OperatingPoint("haproxy", chosen, 20_000.0), 5.0, lambda _: None)
    assert rate_rps(seen) == pytest.approx(1.0 / 67e-6, rel=0.05)
    busy = seen.counters[-1].host_busy_s / 5.0
    assert busy == pytest.approx(1.0, abs=0.05)


async def test_the_clock_charges_what_the_costs_say(make_demo: MakeDemo) -> None:
    campaign = make_demo()
    lab = SimulatedLab(campaign, LabSettings("s"), options=QUIET)
    plan = campaign.target_plan("haproxy")
    chosen = campaign.configurations(plan)[0]
    usages: list[float] = []
    assert lab.clock() == 0.0
    await lab.deploy(plan.target, chosen)
    await lab.allocate(chosen)
    seen = await lab.drive(
        OperatingPoint("haproxy", chosen, 1000.0),
        4.5,
        lambda usage: usages.append(usage["haproxy"].cpu_cores),
    )
    costs = lab.costs
    expected = costs.deploy_s + costs.allocate_s + costs.drive_overhead_s + 4.5
    assert lab.clock() == pytest.approx(expected, abs=1e-6)
    assert seen.stop_s == lab.clock()
    assert len(usages) == 5
    assert usages == pytest.approx([0.015] * 5, rel=0.1)


async def test_a_pace_lets_wall_time_pass(make_demo: MakeDemo) -> None:
    campaign = make_demo()
    lab = SimulatedLab(campaign, LabSettings("s", pace=100.0))
    plan = campaign.target_plan("haproxy")
    loop = asyncio.get_running_loop()
    begin = loop.time()
    await lab.deploy(plan.target, campaign.configurations(plan)[0])
    await lab.allocate(campaign.configurations(plan)[1])
    assert loop.time() - begin >= 0.9 * (5.5 / 100.0)


async def test_driving_what_is_not_there_is_a_sentence(make_demo: MakeDemo) -> None:
    campaign = make_demo()
    lab = SimulatedLab(campaign, LabSettings("s"))
    plan = campaign.target_plan("haproxy")
    low, high = campaign.configurations(plan)
    with pytest.raises(LabError, match="no target is deployed"):
        await lab.drive(OperatingPoint("haproxy", low, 10.0), 1.0, lambda _: None)
    await lab.deploy(plan.target, low)
    with pytest.raises(LabError, match="Deploy and allocate"):
        await lab.drive(OperatingPoint("haproxy", high, 10.0), 1.0, lambda _: None)
    with pytest.raises(LabError, match="above zero"):
        await lab.drive(OperatingPoint("haproxy", low, 0.0), 1.0, lambda _: None)
    await lab.undeploy()
    await lab.undeploy()
    await lab.close()
    with pytest.raises(LabError, match="no target is deployed"):
        await lab.allocate(low)


async def test_host_facts_tell_stand_ins_and_options_apart(make_demo: MakeDemo) -> None:
    demo = make_demo()
    tuned = replace(
        demo,
        templates=(VnfTemplate("haproxy", simulated={"service_us": 20.0}), *demo.templates[1:]),
    )
    plain, again, other, capped = [
        (await SimulatedLab(c, LabSettings("s", argument=text)).open()).image_digests
        for c, text in ((demo, ""), (demo, ""), (tuned, ""), (demo, "source_cap=0.7"))
    ]
    assert plain == again
    assert plain["haproxy"] != other["haproxy"]
    assert plain["tinyproxy"] == other["tinyproxy"]
    assert plain["source"] != capped["source"]
    checks = await SimulatedLab.examine()
    assert checks[0].state == "ok"
    assert await SimulatedLab.reap(frozenset()) == ()
