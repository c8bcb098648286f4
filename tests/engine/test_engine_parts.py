"""Small parts of the engine: faults, worker, locks, plan, doctor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from session_making import campaign

from workbench.domain.errors import DataError, EngineError, LabError
from workbench.domain.parameters import PrimaryWorkload
from workbench.engine import doctor
from workbench.engine.faults import Faults
from workbench.engine.host_lock import FileLock, Holder
from workbench.engine.planning import ladder, make_plan
from workbench.engine.pool import NICE, Pool
from workbench.labs.base import LabCosts
from workbench.paths import Workspace

PLACES = [("t", c) for c in campaign().configurations(campaign().targets[0])]
ERROR = LabError("it crashed")


def test_a_first_error_is_tried_again_a_second_ends_the_configuration() -> None:
    faults = Faults()
    assert faults.blame(PLACES[0], ERROR) == "once more"
    assert faults.blame(PLACES[0], ERROR) == "configuration"
    assert [fault.place for fault in faults.sample_taken()] == [PLACES[0]]
    assert not faults.sample_taken()


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
        faults.sample_taken()


async def test_the_worker_is_nice_keeps_errors_whole_and_is_replaced_when_it_dies() -> None:
    pool = Pool()
    try:
        assert await pool.run(os.nice, 0) == NICE
        with pytest.raises(DataError, match="nothing to judge"):
            await pool.run(_refuse)
        with pytest.raises(EngineError, match="died twice"):
            await pool.run(os._exit, 1)
        assert pool.losses == 2
        assert await pool.run(abs, -1) == 1
    finally:
        await pool.close()


def _refuse() -> None:
    raise DataError("there is nothing to judge")


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
    plan = make_plan(campaign(), "sim", LabCosts(deploy_s=3, allocate_s=1, drive_overhead_s=0.5))
    assert [(p.block, p.target) for p in plan.configurations] == [
        (0, "haproxy"),
        (0, "haproxy"),
        (1, "tiny-ha"),
    ]
    assert plan.samples == sum(p.samples for p in plan.configurations) == 30
    assert plan.lab_s == pytest.approx(6 + sum(p.lab_s for p in plan.configurations))


async def test_the_doctor_names_what_is_there(tmp_path: Path) -> None:
    checks = {check.name: check for check in await doctor.examine(Workspace(tmp_path))}
    assert checks["cores"].found
    assert "sim" in checks["plugins labs"].found
    assert checks["workspace"].found == str(tmp_path)
    assert all(check.remedy for check in checks.values() if check.state != "ok")
