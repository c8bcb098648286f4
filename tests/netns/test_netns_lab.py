"""Functions as processes in network namespaces: real ones, by root, of Debian's own packages."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from left_groups import left_groups

from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import LabError
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Usage
from workbench.labs.base import LabSettings
from workbench.labs.netns import NetnsLab, groups
from workbench.labs.netns.processes import Log, ProcessComponent
from workbench.paths import SHIPPED_TEMPLATE, Workspace, located
from workbench.probes.process import PROC

CHAIN = "haproxy-tinyproxy"
SIZE = {"filesize_bytes": 10_000.0}
NARROW = Configuration({"haproxy.vcpu": 0.25, "tinyproxy.vcpu": 0.25}, SIZE)
WIDE = Configuration({"haproxy.vcpu": 0.25, "tinyproxy.vcpu": 0.5}, SIZE)

pytestmark = [
    pytest.mark.needs("apt-get", "dpkg-deb", "ip", "nsenter"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces"),
]


def note(usage: Mapping[str, Usage]) -> None:
    """What is used meanwhile is of no interest here."""


async def gone(*pids: int) -> None:
    """Ends once these processes have; the kernel takes its time on a busy host."""
    async with asyncio.timeout(30):
        while any((PROC / str(pid)).exists() for pid in pids):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[NetnsLab]:
    loaded = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    opened = NetnsLab(loaded, LabSettings(f"test-{os.getpid()}"))
    await opened.open()
    try:
        yield opened
    finally:
        await opened.close()


def component(lab: NetnsLab, name: str) -> ProcessComponent:
    assert lab._deployed is not None
    found = lab._deployed.component(name)
    assert isinstance(found, ProcessComponent)
    return found


async def test_a_chain_is_deployed_loaded_changed_and_gone(lab: NetnsLab) -> None:
    target = lab._campaign.target_plan(CHAIN).target
    deployed = await lab.deploy(target, NARROW)
    assert deployed.generator.startswith(("steady", "oha"))
    assert "answers 200 with 10000 bytes" in deployed.path
    drive = await lab.drive(OperatingPoint(CHAIN, NARROW, 50), 1.5, note)
    answered = np.count_nonzero(drive.records.succeeded)
    assert answered > 10
    first, *_, last = drive.counters
    for name in ("source", "haproxy", "tinyproxy", "sink"):
        burned = last.components[name].cpu_s - first.components[name].cpu_s
        assert 0 < burned < 3, name
        assert last.components[name].rx_packets > first.components[name].rx_packets

    tinyproxy = component(lab, "tinyproxy")
    folder = tinyproxy.group.counters.cpu
    await lab.allocate(WIDE)
    stated = {
        file.name: file.read_text().strip() for file in folder.glob("cpu.*") if file.is_file()
    }
    assert stated.get("cpu.cfs_quota_us") == "50000" or stated.get("cpu.max") == "50000 100000"
    assert (await lab.drive_bypass(OperatingPoint(CHAIN, WIDE, 50), 1.0, note)) is not None

    serving = tinyproxy.group.processes()
    tinyproxy.group.kill()
    with pytest.raises(LabError, match=r"process tinyproxy.*ended"):
        await lab.drive(OperatingPoint(CHAIN, WIDE, 50), 5.0, note)
    namespaces = [component(lab, name).pid for name in ("source", "haproxy", "tinyproxy", "sink")]
    bridges = [bridge.namespace.pid for bridge in lab._bridges.values()]
    await lab.close()
    await gone(*serving, *namespaces, *bridges)
    assert not folder.exists()
    assert not left_groups()
    assert not list(Path("/var/tmp").glob(f"*.{lab._settings.session}.*"))


async def announced_pids(output: asyncio.StreamReader | None) -> list[int]:
    """The numbers of the line that begins with ``pids``; a busy host's log lines may precede it."""
    assert output is not None
    async for line in output:
        match line.split():
            case [b"pids", *words]:
                return [int(word) for word in words]
    pytest.fail("the process ended and announced no pids")


async def test_what_a_killed_process_leaves_is_ended_by_the_kernel_and_reaped(
    tmp_path: Path,
) -> None:
    """Its namespaces end with it, whatever killed it; the groups are empty and go with `reap`."""
    script = """
import asyncio, sys
from pathlib import Path
from workbench.descriptors.loading import load_campaign
from workbench.domain.parameters import Configuration
from workbench.labs.base import LabSettings
from workbench.labs.netns import NetnsLab, groups
from workbench.paths import Workspace

async def main():
    campaign = load_campaign("demo", workspace=Workspace(Path(sys.argv[1]))).campaign
    lab = NetnsLab(campaign, LabSettings("killed"))
    await lab.open()
    plan = campaign.targets[0]
    await lab.deploy(plan.target, campaign.configurations(plan)[0])
    named = [c.pid for c in lab._deployed.components]
    print("pids", *named, *(b.namespace.pid for b in lab._bridges.values()), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    try:
        pids = await announced_pids(process.stdout)
        assert len(pids) == 4
        assert all((PROC / str(pid)).exists() for pid in pids)
    finally:  # or what it left would be found by the next run of this test
        process.kill()
        await process.wait()
    await gone(*pids)
    reaped = await NetnsLab.reap(frozenset())
    ended = {re.sub(r"^\d+\.\d+\.|\.\w+$", "", name) for name in reaped}
    # Other tests, which run beside, leave groups of their own.
    assert {name for name in ended if name.startswith("killed.")} == {
        "killed.source",
        "killed.haproxy",
        "killed.sink",
    }
    assert not left_groups("killed")
    assert not list(Path("/var/tmp").glob("*.killed.*"))


async def test_a_group_is_gone_once_its_killed_process_is_taken_down() -> None:
    """Which takes the kernel a while, the longer the more memory it holds."""
    group = groups.Group.make("large", "source")
    holding = "held = b'x' * 500_000_000; print('pids', flush=True); import time; time.sleep(600)"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", holding, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert await announced_pids(process.stdout) == []
        (group.counters.cpu / "cgroup.procs").write_text(str(process.pid))
        assert await groups.end(group.counters.cpu)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        group.remove()
    assert process.returncode == -9


async def test_a_template_without_programs_is_refused(tmp_path: Path) -> None:
    loaded = load_campaign("demo", workspace=Workspace(tmp_path)).campaign
    changed = tuple(
        replace(t, command=("no-such-program",)) if t.name == "haproxy" else t
        for t in loaded.templates
    )
    lab = NetnsLab(replace(loaded, templates=changed), LabSettings("test"))
    with pytest.raises(LabError, match="'no-such-program' is not on this host"):
        await lab.open()


async def test_a_log_without_end_is_read_in_constant_memory() -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(b"one\n" * 1000 + b"x" * 100_000 + b"\nlast")
    reader.feed_eof()
    log = Log()
    await log.read(reader, "stdout")
    lines, more = log.take()
    assert more
    assert lines[-1].text == "last"
    assert lines[-2].cut > 90_000
    assert log.take() == ([], False)


@pytest.mark.parametrize("name", ["haproxy", "tinyproxy", "sink"])
def test_packages_are_those_of_the_image(name: str) -> None:
    """One list for both labs: what a Dockerfile installs is what `packages` names."""
    folder = Path(located(f"{SHIPPED_TEMPLATE}vnfs/{name}"))
    dockerfile = (folder / "Dockerfile").read_text()
    installed = re.search(r"--no-install-recommends ([^\n]+)", dockerfile)
    assert installed is not None
    named = re.search(r"^packages: \[([^\]]*)\]", (folder / "vnf.yaml").read_text(), re.MULTILINE)
    assert named is not None
    assert set(installed[1].split()) == {part.strip() for part in named[1].split(",")}
