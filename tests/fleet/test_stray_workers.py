"""Workers of before in a host's folder: whose they are, and which of them are ended."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from workbench.fleet.fleet_standing import (
    FleetError,
    FleetFolder,
    end_stray,
    is_worker,
)
from workbench.paths import Workspace

WORKER = """
import fcntl, json, os, sys, time
path = sys.argv[1]
file = open(path, "a+")
fcntl.flock(file, fcntl.LOCK_EX)
file.write(json.dumps({"pid": os.getpid(), "workspace": "w", "session": ""}))
file.flush()
print("up", flush=True)
time.sleep(60)
"""
"""Holds a folder's lock as a worker does; what follows is in its command."""


@contextmanager
def worker_in(folder: Path, *owner: str) -> Iterator[subprocess.Popen[str]]:
    lock = Workspace(folder).engine_lock
    lock.parent.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-c", WORKER, str(lock), "workbench.fleet.lab_worker"]
    with subprocess.Popen([*words, *owner], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            assert is_worker(process.pid)
            yield process
        finally:
            process.kill()


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.fleet.fleet_standing.STRAY_S", 0.2)


def test_no_two_fleets_have_one_owner_and_a_fleet_keeps_its_own(tmp_path: Path) -> None:
    """Neither do two containers in which all names are alike."""
    place = tmp_path / "fleet"
    first = FleetFolder(place).owner("lab-a")
    assert FleetFolder(place).owner("lab-a") == first != FleetFolder(place).owner("lab-b")
    place.rename(tmp_path / "in another container")
    other = FleetFolder(place).owner("lab-a")
    assert other != first
    assert FleetFolder(tmp_path / "in another container").owner("lab-a") not in (first, other)
    assert oct((place / "id").stat().st_mode & 0o777) == "0o600"


def test_an_owner_that_cannot_be_kept_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "fleet").write_text("no folder")
    with pytest.raises(FleetError, match="told apart by cannot be kept"):
        FleetFolder(tmp_path / "fleet").owner("lab-a")


def test_a_worker_that_names_no_fleet_has_its_time_to_end(tmp_path: Path) -> None:
    """One of an earlier version, as it is while a fleet comes up again after an upgrade."""

    async def ended(process: subprocess.Popen[str]) -> int:
        asyncio.get_running_loop().call_later(0.3, process.terminate)
        return await end_stray(tmp_path, "ours")

    with worker_in(tmp_path) as process:
        assert asyncio.run(ended(process)) == 0
        assert process.wait() < 0


def test_a_worker_that_names_no_fleet_and_stays_is_told_and_left_alone(
    tmp_path: Path, soon: None
) -> None:
    with worker_in(tmp_path) as process:
        with pytest.raises(FleetError, match=f"not say of which fleet it is .*{process.pid}"):
            asyncio.run(end_stray(tmp_path, "ours"))
        assert process.poll() is None


def test_a_worker_of_another_fleet_is_told_at_once_and_left_alone(tmp_path: Path) -> None:
    with worker_in(tmp_path, "theirs") as process:
        with pytest.raises(FleetError, match=f"another fleet measures there .*{process.pid}"):
            asyncio.run(end_stray(tmp_path, "ours"))
        assert process.poll() is None


def test_our_worker_that_stays_is_killed(tmp_path: Path, soon: None) -> None:
    with worker_in(tmp_path, "ours") as process:
        assert asyncio.run(end_stray(tmp_path, "ours")) == process.pid
        assert process.wait() < 0
