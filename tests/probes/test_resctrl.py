"""Cache and memory bandwidth by resctrl, on a stand-in folder in the kernel's form."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from workbench.domain.observations import CACHE
from workbench.probes import resctrl
from workbench.probes.cgroup import CgroupFolders
from workbench.probes.recorders import Recorders
from workbench.probes.resctrl import FILES, ResctrlReader, counted, why_not


class StandIn(ResctrlReader):
    """The kernel's part: a new group has its files, and goes with them."""

    def _make(self, group: Path) -> None:
        super()._make(group)
        (group / "tasks").touch()
        for number in range(2):
            cache = group / "mon_data" / f"mon_L3_0{number}"
            cache.mkdir(parents=True)
            for name, file in FILES.items():
                if name in self.names:
                    (cache / file).write_text("1000\n")

    def _remove(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            shutil.rmtree(group)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """As of a processor that counts all but the traffic of its own node."""
    features = tmp_path / "info" / "L3_MON" / "mon_features"
    features.parent.mkdir(parents=True)
    features.write_text("llc_occupancy\nmbm_total_bytes\n")
    (tmp_path / "mon_groups").mkdir()
    return tmp_path


@pytest.fixture
def folders(tmp_path: Path) -> CgroupFolders:
    """A control group that this process is alone in."""
    group = tmp_path / "group"
    group.mkdir()
    (group / "cgroup.procs").write_text(f"{os.getpid()}\n")
    return CgroupFolders("v2", group, group, group)


def group_of(root: Path) -> Path:
    (group,) = (root / "mon_groups").iterdir()
    return group


def say(root: Path, file: str, text: str) -> None:
    for cache in (group_of(root) / "mon_data").iterdir():
        (cache / "said").write_text(text)
        (cache / "said").replace(cache / file)  # a file of the kernel is never half there


async def readings(reader: ResctrlReader, count: int) -> None:
    async with asyncio.timeout(30):
        while len(reader._at_s) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_files_and_observables_are_the_same_names() -> None:
    assert tuple(FILES) == CACHE


async def test_caches_are_added_up_and_the_group_goes_with_the_drive(
    root: Path, folders: CgroupFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resctrl, "EVERY_S", 0.01)
    reader = StandIn.of(folders, root)
    assert "does not count it" in reader.absent["memory_local_bytes"]
    both = Recorders(reader)
    await both.begin()
    await readings(reader, 1)
    moved = (group_of(root) / "tasks").read_text().split()
    assert str(os.getpid()) in moved
    assert len(moved) == len(set(moved))
    first = len(reader._at_s)
    say(root, "mbm_total_bytes", "5000\n")
    await readings(reader, first + 2)
    await both.end()
    assert not [*(root / "mon_groups").iterdir()]
    found = both.at(np.array([reader._at_s[0], reader._at_s[-1]]))
    assert found["memory_traffic_bytes", ""].tolist() == [2000.0, 10_000.0]
    assert found["llc_occupancy_bytes", ""].tolist() == [2000.0, 2000.0]
    assert ("memory_local_bytes", "") not in found
    assert both.absent == reader.absent


async def test_what_the_kernel_does_not_tell_is_absent_with_its_word(
    root: Path, folders: CgroupFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resctrl, "EVERY_S", 0.01)
    reader = StandIn.of(folders, root)
    await reader.begin()
    await readings(reader, 1)
    say(root, "llc_occupancy", "Unavailable\n")
    await readings(reader, len(reader._at_s) + 2)
    await reader.end()
    assert "'Unavailable'" in reader.absent["llc_occupancy_bytes"]
    assert list(reader.at(np.array(reader._at_s[-1:]))) == [("memory_traffic_bytes", "")]


async def test_a_group_that_is_refused_leaves_a_reason_and_no_group(
    root: Path, folders: CgroupFolders
) -> None:
    class Full(StandIn):
        def _make(self, group: Path) -> None:
            raise OSError(28, "No space left on device")

        def _remove(self) -> None:
            self._group = None

    reader = Full.of(folders, root)
    await reader.begin()
    await reader.end()
    assert reader.absent["llc_occupancy_bytes"] == (
        "resctrl takes no group: No space left on device"
    )
    assert reader.at(np.array([0.0])) == {}


async def test_a_thread_that_somebody_counts_already_stays_in_its_group(
    root: Path, folders: CgroupFolders
) -> None:
    site = root / "mon_groups" / "site" / "tasks"
    site.parent.mkdir()
    site.write_text(f"{os.getpid()}\n")
    reader = StandIn.of(folders, root)
    await reader.begin()
    await reader.end()
    assert reader.absent["llc_occupancy_bytes"] == (
        "resctrl takes no group: the group site counts it already"
    )
    assert [group.name for group in (root / "mon_groups").iterdir()] == ["site"]


async def test_groups_of_killed_processes_are_removed_and_those_of_others_stay(
    root: Path, folders: CgroupFolders
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    names = [f"workbench-{ended.pid}-1", f"workbench-{os.getppid()}-1", "workbench-x-1", "site"]
    for name in names:
        (root / "mon_groups" / name).mkdir()
    reader = StandIn.of(folders, root)
    await reader.begin()
    await reader.end()
    assert sorted(p.name for p in (root / "mon_groups").iterdir()) == sorted(names[1:])


def test_a_host_without_it_is_told_why(tmp_path: Path, folders: CgroupFolders) -> None:
    assert why_not(tmp_path).startswith("no resctrl is mounted")
    (tmp_path / "info").mkdir()
    assert why_not(tmp_path).startswith("this processor has no counters")
    assert counted(tmp_path) == ()
    reader = ResctrlReader.of(folders, tmp_path)
    assert set(reader.absent) == set(FILES)
