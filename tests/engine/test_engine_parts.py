"""Small parts of the engine: faults, worker, locks, plan, doctor."""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from session_making import campaign, measurement

from workbench.domain.campaign import SamplingPlan
from workbench.domain.errors import DataError, EngineError, LabError, PluginError
from workbench.domain.lab import BypassPoint
from workbench.domain.parameters import LoadModel, PrimaryWorkload, Sla
from workbench.domain.samples import Estimate, Finding
from workbench.engine.learning import pool as pool_module
from workbench.engine.learning.pool import NICE, Pool
from workbench.engine.runs import bypass, doctor
from workbench.engine.runs.faults import Faults
from workbench.engine.runs.planning import ladder, make_plan
from workbench.engine.runs.progress import besides_s
from workbench.labs.base import LabCosts
from workbench.locks import FileLock, Holder
from workbench.paths import Workspace

CONFIGURATION = campaign().configurations(campaign().targets[0])[0]
PLACES = [("t", c) for c in campaign().configurations(campaign().targets[0])]
ERROR = LabError("it crashed")


def test_a_first_error_is_tried_again_a_second_ends_the_configuration() -> None:
    faults = Faults()
    assert faults.blame(PLACES[0], ERROR) == "once more"
    assert faults.blame(PLACES[0], ERROR) == "configuration"
    assert [fault.place for fault in faults.sample_taken(PLACES[1])] == [PLACES[0]]
    assert not faults.sample_taken(PLACES[1])


def test_three_errors_without_a_sample_between_are_the_labs() -> None:
    faults = Faults()
    faults.blame(PLACES[0], ERROR)
    faults.blame(PLACES[0], ERROR)
    assert faults.blame(PLACES[1], ERROR) == "lab"
    assert not faults.given_up


def test_samples_between_clear_the_lab() -> None:
    faults = Faults()
    for place in PLACES:
        assert faults.blame(place, ERROR) == "once more"
        faults.sample_taken(place)
    assert faults.blame(PLACES[0], ERROR) == "once more"


def _nice_beside_a_thread() -> int:
    """As numerical libraries have threads of their own from their import on."""
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return os.nice(0)


async def test_the_worker_gives_way_to_whoever_else_begins_to_measure_while_it_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_module, "NICE", NICE)
    monkeypatch.setattr(pool_module, "LOOK_AT_OTHERS_S", 0.05)
    pool, measuring = Pool(gives_way=False), False
    pool.others_measure = lambda: measuring
    try:
        computing = asyncio.create_task(pool.run(_until_nice, NICE))
        await asyncio.sleep(0.2)
        assert not computing.done()
        measuring = True
        assert await asyncio.wait_for(computing, 30.0) == NICE
    finally:
        await pool.close()


def _until_nice(level: int) -> int:
    """By what the test says: a worker that is forked may know a lower one."""
    while os.nice(0) < level:
        time.sleep(0.02)
    return os.nice(0)


def _nice_of_threads() -> list[int]:
    threads = Path("/proc/self/task").iterdir()
    return [os.getpriority(os.PRIO_PROCESS, int(thread.name)) for thread in threads]


async def test_the_worker_is_nice_keeps_errors_whole_and_is_replaced_when_it_dies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool_module, "NICE", NICE)  # tests have it lower
    pool = Pool(gives_way=False)
    try:
        assert await pool.run(_nice_beside_a_thread) < NICE, "nothing is measured yet"
        pool.give_way()
        assert await pool.run(os.nice, 0) == NICE
        assert set(await pool.run(_nice_of_threads)) == {NICE}, "those that it had before as well"
        with pytest.raises(DataError, match="nothing to judge"):
            await pool.run(_refuse)
        with pytest.raises(PluginError, match="'_exit' called exits with 5"):
            await pool.run(_exit)
        with pytest.raises(EngineError, match="died twice"):
            await pool.run(os._exit, 1)
        assert pool.losses == 2
        assert await pool.run(os.nice, 0) == NICE, "so are those that come after it"
    finally:
        await pool.close()


async def test_the_worker_does_not_go_on_with_what_nobody_waits_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pool_module, "UNWANTED_S", 0.01)
    pool = Pool()
    begun = tmp_path / "begun"
    try:
        endless = [asyncio.create_task(pool.run(_endless, begun)) for _ in range(3)]
        wanted = asyncio.create_task(pool.run(abs, -1))
        while not begun.exists():  # noqa: ASYNC110 - another process, which tells by a file
            await asyncio.sleep(0.01)
        for task in endless:
            task.cancel()
        assert await wanted == 1, "who waits behind it is asked again"
        assert begun.read_text() in ("begun", "begunbegun"), "what had not begun never does"
        assert pool.losses == 0, "no worker died"
    finally:
        await pool.close()


async def test_who_waits_behind_what_hangs_is_asked_again_as_often_as_it_is_ended(
    tmp_path: Path,
) -> None:
    pool = Pool()
    begun = [tmp_path / f"begun-{number}" for number in range(3)]
    try:
        hanging = [asyncio.create_task(pool.run(_endless, path)) for path in begun]
        wanted = asyncio.create_task(pool.run(abs, -1))
        for path, hangs in zip(begun, hanging, strict=True):
            while not (path.exists() or hangs.done()):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
            assert hangs.cancel(), "it was asked again"
            pool.kill()
        assert await wanted == 1
        assert pool.losses == 0
    finally:
        await pool.close()


def _endless(begun: Path) -> None:
    with begun.open("a") as file:
        file.write("begun")
    while True:
        time.sleep(1)


def _refuse() -> None:
    raise DataError("there is nothing to judge")


def _exit() -> None:
    raise SystemExit(5)


def test_a_lock_says_who_holds_it_and_frees_itself(tmp_path: Path) -> None:
    mine, theirs = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    assert mine.holder() is None
    assert mine.take(Holder(7, "/w", "s"))
    assert not theirs.take(Holder(8, "/v"))
    assert theirs.holder() == mine.holder() == Holder(7, "/w", "s")
    mine.free()
    mine.free()
    assert theirs.holder() is None
    assert theirs.take(Holder(8, "/v"))
    theirs.free()


def test_the_ladder_spans_the_range_on_its_scale() -> None:
    assert list(ladder(PrimaryWorkload("rate", 10, 1000), 3)) == pytest.approx([10, 100, 1000])
    assert list(ladder(PrimaryWorkload("n", 1, 9, "linear", integer=True), 3)) == [1, 5, 9]
    assert list(ladder(PrimaryWorkload("rate", 10, 1000), 1)) == [1000]


def test_a_plan_holds_every_configuration_in_the_block_of_its_target() -> None:
    costs = LabCosts(deploy_s=3, allocate_s=1, drive_overhead_s=0.5)
    plan = make_plan(campaign(), "sim", costs)
    assert [(p.block, p.target) for p in plan.configurations] == [
        (0, "haproxy"),
        (0, "haproxy"),
        (1, "tiny-ha"),
    ]
    assert plan.samples == sum(p.samples for p in plan.configurations) == 30
    kinds = sum(math.prod(len(p.values) for p in campaign().workload) for _ in campaign().targets)
    bypasses_s = kinds * bypass.POINTS * (0.5 + bypass.DRIVE_S)
    assert besides_s(plan) == pytest.approx(2 * 3 + bypasses_s)
    # A recording offers no load; and every repetition is a deployment of its own.
    assert besides_s(make_plan(campaign(), "recorded:x", costs)) == pytest.approx(2 * 3)
    thrice = replace(campaign(), sampling=SamplingPlan(method="uniform", repetitions=3))
    assert besides_s(make_plan(thrice, "recorded:x", costs)) == pytest.approx(3 * 2 * 3)


def test_an_sla_is_warned_of_a_sampler_that_teaches_little() -> None:
    search = replace(campaign(), sampling=SamplingPlan(method="breakpoint-search"))
    assert make_plan(replace(search, sla=None), "sim", LabCosts(3, 1, 0.5)).warnings == ()
    sla = Sla("p95_ms", "<=", 200.0, wl=300.0)
    (said,) = make_plan(replace(search, sla=sla), "sim", LabCosts(3, 1, 0.5)).warnings
    assert "around breakpoints alone" in said
    assert make_plan(replace(campaign(), sla=sla), "sim", LabCosts(3, 1, 0.5)).warnings == ()


def test_a_bypass_is_loaded_over_the_range_and_beyond_it_only_by_rates() -> None:
    def over(load: LoadModel, *ranges: PrimaryWorkload) -> list[float]:
        plan = campaign().targets[0]
        targets = tuple(replace(plan, primary=primary) for primary in ranges)
        return list(bypass.loads(replace(campaign(), targets=targets, load=load)))

    opened = over(LoadModel("open"), PrimaryWorkload("rate", 70, 700))
    assert len(opened) == bypass.POINTS
    assert (opened[0], opened[-2], opened[-1]) == (70, 700, pytest.approx(700 * bypass.HEADROOM))
    assert opened == sorted(opened)
    clients = PrimaryWorkload("concurrent", 1, 3, integer=True)
    assert over(LoadModel("closed"), clients) == [1, 2, 3]
    # Targets share a curve, so that it must reach as far as the widest of them.
    assert over(LoadModel("closed"), clients, replace(clients, low=2, high=40))[-1] == 40
    narrow, wide = PrimaryWorkload("rate", 100, 1000), PrimaryWorkload("rate", 500, 8000)
    both = over(LoadModel("open"), narrow, wide)
    assert (both[0], both[-1]) == (100, 8000 * bypass.HEADROOM)


def test_a_bypass_point_says_what_limited_it() -> None:
    made = measurement("haproxy", CONFIGURATION, 1000.0).sample
    figures = {"throughput_rps": 990.0, "mean_ms": 1.0, "p95_ms": 2.0}
    kpis = {name: Estimate(value, value, value) for name, value in figures.items()}
    carried = replace(made, kpis=kpis, findings=(), planned=round(1000 * made.measured_s))
    load = LoadModel("open")
    assert bypass.point_of(carried, load) == BypassPoint(1000.0, 990.0, 1.0, 2.0)
    slow = kpis | {"throughput_rps": Estimate(700.0, 700.0, 700.0)}
    limited = bypass.point_of(replace(carried, kpis=slow), load)
    assert limited is not None
    assert limited.limited_by == "700 of 1000 requests/s were carried"
    found = (Finding("sink_saturated", 0.95, 0.9, "the sink used all it has"),)
    busy = bypass.point_of(replace(carried, findings=found), load)
    assert busy is not None
    assert busy.limited_by == "the sink used all it has"
    assert bypass.point_of(replace(carried, kpis={}), load) is None


async def test_own_cpu_counts_the_worker_and_never_falls_when_one_dies() -> None:
    pool = Pool()
    try:
        await pool.run(abs, -1)
        before = pool.own_cpu_s()
        await pool.run(_burn, 0.25)  # the kernel counts in ticks
        after = pool.own_cpu_s()
        assert after - before >= 0.2
        with pytest.raises(EngineError, match="died twice"):
            await pool.run(os._exit, 1)
        assert pool.own_cpu_s() >= after
    finally:
        await pool.close()


def _burn(cpu_s: float) -> None:
    begin = time.process_time()
    while time.process_time() - begin < cpu_s:
        pass


async def test_the_doctor_names_what_is_there(tmp_path: Path) -> None:
    checks = {check.name: check for check in await doctor.examine(Workspace(tmp_path))}
    assert checks["cores"].found
    assert "sim" in checks["plugins labs"].found
    assert checks["workspace"].found == str(tmp_path)
    assert all(check.remedy for check in checks.values() if check.state != "ok")
