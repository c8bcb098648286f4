"""A process that runs already, in a control group of its own: measured, and left as it was."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from driving import Workbench
from left_groups import left_groups
from running_system import Attach, RunningSystem

from workbench.domain.errors import LabError, LabGone, LabStopped
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Usage
from workbench.labs.attached import AttachedLab, journal
from workbench.labs.attached.discovering import GUARD
from workbench.labs.attached.finding import find
from workbench.labs.base import LabSettings
from workbench.measuring.records import Drive
from workbench.paths import attached_folder

SMALL = Configuration({"web.vcpu": 0.35, "web.memory_bytes": 64 * 2**20}, {})


def note(usage: Mapping[str, Usage]) -> None:
    """What is used meanwhile is of no interest here."""


async def standing(lab: AttachedLab) -> AttachedLab:
    await lab.open()
    await lab.deploy(lab._campaign.targets[0].target, SMALL)
    return lab


async def driven(lab: AttachedLab, seconds: float = 1.5, wl: float = 50) -> Drive:
    return await lab.drive(OperatingPoint("web", SMALL, wl), seconds, note)


async def test_it_is_limited_while_it_is_loaded_and_at_no_other_time(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    before, seen = system.settings(), list[dict[str, bytes]]()
    lab = attach(system.campaign(tmp_path, guard="p95<=2s"))
    await lab.open()
    deployed = await lab.deploy(lab._campaign.targets[0].target, SMALL)
    assert "answers 200 with 1000 bytes" in deployed.path
    assert any("nobody said where the load ends" in warning for warning in deployed.warnings)
    assert any("is not known, and stands as 0" in warning for warning in deployed.warnings)
    assert system.settings() == before
    drive = await lab.drive(
        OperatingPoint("web", SMALL, 50), 2.0, lambda usage: seen.append(system.settings())
    )
    assert system.settings() == before
    changed = {
        Path(path).name: (before[path].strip(), held.strip())
        for path, held in seen[0].items()
        if held != before[path]
    }
    quota = "cpu.max" if "cpu.max" in changed else "cpu.cfs_quota_us"
    # 35 % of the period that its owner chose, which stays.
    assert changed.pop(quota)[1] in (b"17500", b"17500 50000")
    assert {held for _, held in changed.values()} == {str(64 * 2**20).encode()}
    assert np.count_nonzero(drive.records.succeeded) > 20
    assert drive.allotted_cores["web"] == 0.35
    first, *_, last = drive.counters
    for name in ("source", "web"):
        assert last.components[name].cpu_s > first.components[name].cpu_s
        assert last.components[name].tx_packets == 0
        assert "its host's network" in drive.absent[name, "tx_packets"]
    assert await lab.drive_bypass(OperatingPoint("web", SMALL, 50), 1.0, note) is None
    await lab.close()
    assert system.settings() == before
    assert not list(attached_folder().glob("*"))
    assert not left_groups()


async def test_a_lab_that_opens_leaves_what_another_of_its_process_is_measuring(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    """A second campaign is started, or a session resumed, while the first one is under load."""
    before = system.settings()
    lab = await standing(attach(system.campaign(tmp_path)))
    assert lab._standing is not None
    await lab._standing.entry.allocate(SMALL)
    limited, (written,) = system.settings(), attached_folder().glob("*.journal")
    assert limited != before
    noted = written.read_text()
    other = AttachedLab(lab._campaign, LabSettings("another"))
    await other.open()
    assert system.settings() == limited
    assert written.read_text() == noted
    await other.close()
    assert system.settings() == limited
    await lab.close()
    assert system.settings() == before


async def test_a_guard_that_breaks_stops_the_load_and_says_so(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    before = system.settings()
    lab = await standing(attach(system.campaign(tmp_path, guard="p95<=150ms")))
    source = lab._source
    assert source is not None

    def slow(usage: Mapping[str, Usage]) -> None:
        system.delay.write_text("0.4")

    began = time.monotonic()
    with pytest.raises(LabStopped, match=r"guard p95<=150ms broke: of the last \d+ requests"):
        await lab.drive(OperatingPoint("web", SMALL, 50), 60.0, slow)
    assert time.monotonic() - began < 50, "the load went on to its end"
    assert system.settings() == before
    assert not source.group.processes()


async def test_load_that_may_never_be_passed_is_not_sent(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    lab = await standing(attach(system.campaign(tmp_path)))
    with pytest.raises(LabStopped, match=r"151 is more than 150, the max_load of web: nothing"):
        await driven(lab, wl=151)


async def test_another_limit_meanwhile_ends_it_and_stays(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    before = system.settings()
    lab = await standing(attach(system.campaign(tmp_path)))
    other = "30000 50000" if system.quota.name == "cpu.max" else "30000"

    def interfere(usage: Mapping[str, Usage]) -> None:
        system.quota.write_text(other)

    with pytest.raises(LabStopped, match=rf"somebody set {system.quota.name} from 17500"):
        await lab.drive(OperatingPoint("web", SMALL, 50), 30.0, interfere)
    after = system.settings()
    assert after.pop(str(system.quota)).decode().strip() == other
    before.pop(str(system.quota))
    assert after == before


async def test_a_process_that_ends_is_waited_for_where_the_campaign_says_so(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    campaign = system.campaign(tmp_path, f"cgroup: {system.path}", when_wrong="wait")
    before = system.settings()
    lab = await standing(attach(campaign))
    loop = asyncio.get_running_loop()
    with pytest.raises(LabGone, match=r"its process \d+ has ended"):
        await lab.drive(
            OperatingPoint("web", SMALL, 50), 30.0, lambda usage: loop.call_soon(system.kill)
        )
    assert system.settings() == before
    with pytest.raises(LabGone, match="no process runs in it"):
        await lab.undeploy()
    system.start()
    await lab.undeploy()
    await lab.deploy(lab._campaign.targets[0].target, SMALL)
    assert (await driven(lab)).records.succeeded.any()


async def test_a_process_of_the_same_number_is_another_one(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    lab = await standing(attach(system.campaign(tmp_path)))
    assert lab._standing is not None
    entry = lab._standing.entry
    assert entry.found.departure() == ""
    entry.found = replace(entry.found, started_s=entry.found.started_s - 1)
    with pytest.raises(LabStopped, match="and another one has that number now"):
        await driven(lab)
    lab = attach(system.campaign(tmp_path, f"pid: {system.pid}\n    program: nginx"))
    with pytest.raises(LabError, match=r"is called 'python\S*', and not 'nginx'"):
        await lab.open()


async def test_where_nothing_listens_it_is_said(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    campaign = system.campaign(tmp_path)
    campaign.write_text(campaign.read_text().replace(f":{system.port}/", ":1/"))
    lab = attach(campaign)
    await lab.open()
    with pytest.raises(LabStopped, match=r"not answered.*See that process \d+ serves http://127"):
        await lab.deploy(lab._campaign.targets[0].target, SMALL)
    assert not left_groups()


async def test_a_limit_that_the_kernel_refuses_is_a_sentence(
    system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    before = system.settings()
    lab = await standing(attach(system.campaign(tmp_path)))
    tiny = Configuration({"web.vcpu": 0.0001}, {})
    with pytest.raises(LabError, match=r"cpu\.(max|cfs_quota_us).*cannot be changed: Invalid"):
        await lab.drive(OperatingPoint("web", tiny, 50), 1.0, note)
    assert system.settings() == before


async def test_a_group_that_others_share_is_not_limited(system: RunningSystem) -> None:
    """A child of ours in the group is its own; this test's process is somebody else."""
    from workbench.domain.attaching import Attached

    it = Attached("it", "pid", str(system.pid))
    assert (await find(it)).pid == system.pid
    with pytest.raises(LabError, match="no control group of its own"):
        await find(replace(it, found_at="1"))
    other = await asyncio.create_subprocess_exec("sleep", "600")
    for folder in system.folders:
        (folder / "cgroup.procs").write_text(str(other.pid))
    try:
        with pytest.raises(LabError, match=r"holds 1 other processes \('sleep' is one\)"):
            await find(it)
    finally:
        other.kill()
        await other.wait()


def test_it_is_discovered_and_profiled_as_it_is(
    workbench: Workbench, system: RunningSystem
) -> None:
    before = system.settings()
    listed = workbench.json("discover", "--json")
    mine = next(c for c in listed if c["pid"] == system.pid)
    assert mine["why_not"] == ""
    assert mine["vcpu"] == 0.8
    assert mine["ports"] == [system.port]
    assert mine["cgroup"].endswith(system.path)
    workbench.run("discover", "--write", "mine.yaml", str(system.pid))
    workbench.run("lint", "mine.yaml")
    path = workbench.root / "mine.yaml"
    short = path.read_text().replace("max_samples: 6", "max_samples: 2").replace("3s,", "1.5s,")
    # On a busy host none of them may be valid, and it answers late: that is the judge's say, and no
    # matter here.
    assert GUARD in short
    path.write_text(short.replace(GUARD, "p95<=30s"))
    done = workbench.run("run", "mine.yaml", "--headless", "--session", "mine", expect=None)
    assert "run done" in done.stdout + done.stderr
    samples = workbench.samples("mine")
    assert len(samples) >= 2
    assert all(sample["target"].startswith("python") for sample in samples), json.dumps(samples)
    assert system.settings() == before


async def test_a_torn_or_foreign_journal_changes_nothing(tmp_path: Path) -> None:
    attached_folder().mkdir(parents=True)
    victim = tmp_path / "cpu.cfs_quota_us"
    victim.write_text("1")
    entry = {"whose": "x", "file": str(victim), "inode": tmp_path.stat().st_ino}
    entry |= {"before": "2", "ours": "1"}
    dead = {"session": "s", "owner": "vm/another-boot/1/1"}
    path = attached_folder() / "1-a.journal"
    path.write_text(f"{json.dumps(dead)}\n{json.dumps(entry)}\n{{torn")
    (attached_folder() / "2-b.journal").write_bytes(b"\xff\x00")
    assert await journal.Journal.reap() == ()
    assert victim.read_text() == "1", "a file outside of all control groups was written to"
