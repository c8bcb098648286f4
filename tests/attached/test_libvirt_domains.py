"""Domains of libvirt: a real libvirtd and a real domain that is emulated (TCG).

The domain burns a core and serves nobody: a process of the host answers in its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from driving import Workbench
from killing import killed_and_put_back
from libvirt_host import NAME, LibvirtHost, a_libvirt_host
from running_system import Attach, RunningSystem

from workbench.descriptors.loading import load_campaign
from workbench.domain.attaching import Attached
from workbench.domain.errors import LabError, LabStopped, UsageError
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Usage
from workbench.labs.attached import AttachedLab, command_journal
from workbench.labs.attached.discovering import campaign_of, domains
from workbench.labs.attached.domain_function import find_domain
from workbench.labs.attached.own_settings import SettingGone
from workbench.labs.attached.virsh import DomainQuota
from workbench.measuring.usage import Meter
from workbench.paths import Workspace, attached_folder

pytestmark = [
    pytest.mark.long,
    pytest.mark.needs("virsh", "libvirtd", "qemu-system-x86_64", "unshare"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root runs a libvirtd with control groups"),
]
QUARTER = Configuration({"web.vcpu": 0.25}, {})
POINT = OperatingPoint("web", QUARTER, 50)


@pytest.fixture(scope="module")
def libvirt() -> Iterator[LibvirtHost]:
    with a_libvirt_host() as host:
        host.start()
        yield host


@pytest.fixture
def burner(libvirt: LibvirtHost) -> LibvirtHost:
    """With a domain that nobody limits."""
    if "running" not in libvirt.virsh("domstate", NAME, check=False):
        libvirt.end()
        libvirt.start()
    libvirt.virsh("schedinfo", NAME, "--live", "--set", "global_quota=-1")
    return libvirt


def campaign(
    libvirt: LibvirtHost, system: RunningSystem, folder: Path, means: str = "", samples: int = 2
) -> Path:
    found = f"domain: {NAME}\n    connect: {libvirt.connect}"
    path = system.campaign(folder, found, "p95<=2s", resources="fixed", samples=samples)
    text = path.read_text()
    if means != "fixed":
        shares = "    resource_parameters: [{name: vcpu, values: [25%]}]\n"
        text = text.replace("    resources: fixed\n", "")
        text = text.replace("  - vnf: web\n", f"  - vnf: web\n{shares}")
    path.write_text(text)
    return path


async def standing(lab: AttachedLab) -> AttachedLab:
    await lab.open()
    await lab.deploy(lab._campaign.targets[0].target, QUARTER)
    return lab


async def test_a_domain_is_bounded_while_it_is_loaded_and_set_free_again(
    burner: LibvirtHost, system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    before, seen = burner.settings(), list[str]()
    lab = attach(campaign(burner, system, tmp_path))
    facts = await lab.open()
    assert facts.is_emulated
    await lab.deploy(lab._campaign.targets[0].target, QUARTER)
    assert burner.settings() == before
    drive = await lab.drive(POINT, 3.0, lambda usage: seen.append(burner.quota.read_text()))
    assert seen[0].split()[0] == "25000"
    assert burner.settings() == before
    assert drive.allotted_cores["web"] == 0.25
    used = Meter(drive).usage(drive.counters[0].at_s, drive.counters[-1].at_s)["web"]
    assert 0.05 < used.cpu_cores <= 0.25 * 1.3  # it burns what it gets, which is bounded
    assert used.memory_bytes > 2**20
    assert any(key[:2] == ("web", "cpu_wait_s") for key in drive.counters[-1].observed)
    assert "guest" in drive.absent["web", "page_faults"]
    assert "quota" in drive.absent["web", "throttled_s"]
    await lab.close()
    assert not list(attached_folder().glob("*"))


async def test_what_becomes_of_it_meanwhile_is_a_sentence(
    burner: LibvirtHost, system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    lab = attach(campaign(burner, system, tmp_path))

    async def driven(words: list[str], said: str) -> None:
        await standing(lab)
        done = list[str]()

        def meanwhile(usage: Mapping[str, Usage]) -> None:
            if not done:
                done.append(burner.virsh(*words))

        with pytest.raises(LabStopped, match=said):
            await lab.drive(POINT, 8.0, meanwhile)

    await driven(["suspend", NAME], r"domain burner: it is paused \(user\), while it was measured")
    with pytest.raises(LabError, match=r"it is paused \(user\)"):
        await standing(lab)
    burner.virsh("resume", NAME)
    await driven(
        ["schedinfo", NAME, "--live", "--set", "global_quota=50000"],
        "somebody set global_quota from 25000 to 50000 while it was measured; that stays",
    )
    assert burner.quota.read_text().split()[0] == "50000"
    burner.virsh("schedinfo", NAME, "--live", "--set", "global_quota=-1")
    await driven(["destroy", NAME], r"there is no such domain|it is gone")
    with pytest.raises(LabError, match="there is no such domain"):
        await standing(lab)
    assert not list(attached_folder().glob("*"))


async def test_one_that_was_started_again_is_not_set_back(burner: LibvirtHost) -> None:
    attached = Attached(
        "web", "domain", NAME, connect=burner.connect, resources="schedinfo"
    )  # no address is asked for
    found = await find_domain(attached)
    assert found.kind == "qemu"
    assert (found.vcpus, found.own_network) == (1, False)
    journal = command_journal.CommandJournal.new("one")
    await journal.change(found.quota, "30000")
    burner.end()
    burner.start()
    (said,) = await journal.restore()
    assert "libvirt domain burner was started again" in said or "runs no more there" in said
    assert "its global_quota was -1" in said
    await journal.change((await find_domain(attached)).quota, "30000")
    burner.end()
    (read,) = command_journal.CommandJournal.kept()
    (setting,) = read.before
    assert isinstance(setting, DomainQuota)
    with pytest.raises(SettingGone):
        await setting.held()
    (said,) = await read.restore()
    assert "where it was migrated, the quota of this session went with it" in said


async def test_a_quota_below_those_of_its_vcpus_says_why_it_is_refused(
    burner: LibvirtHost, system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    if burner.quota.name == "cpu.max":
        pytest.skip("control groups of version 2 take any quota")
    burner.virsh("schedinfo", NAME, "--live", "--set", "vcpu_quota=50000")
    before = burner.settings()
    lab = await standing(attach(campaign(burner, system, tmp_path)))
    with pytest.raises(LabStopped, match=r"has a quota of its own \(50000 µs\)"):
        await lab.drive(POINT, 1.0, lambda usage: None)
    burner.virsh("schedinfo", NAME, "--live", "--set", "vcpu_quota=-1")
    assert {**before, **burner.settings()}.keys() == before.keys()
    assert burner.quota.read_text().split()[0] == "-1"


async def test_more_cores_than_vcpus_are_refused(
    burner: LibvirtHost, system: RunningSystem, attach: Attach, tmp_path: Path
) -> None:
    path = campaign(burner, system, tmp_path)
    path.write_text(path.read_text().replace("25%", "200%"))
    with pytest.raises(UsageError, match=r"gives web 2 cores, and .* \(vCPUs are not added"):
        await attach(path).open()


async def test_it_is_discovered_and_its_campaign_can_be_read(
    burner: LibvirtHost, tmp_path: Path
) -> None:
    found = await domains(burner.connect)
    assert [(c.name, c.kind, c.program, c.vcpu, c.why_not) for c in found] == [
        (NAME, "domain", "qemu", 1.0, "")
    ]
    assert found[0].memory_bytes == 32 << 20
    path = tmp_path / "found.yaml"
    path.write_text(campaign_of([NAME], found, path.name, ["25%"]))
    (web,) = load_campaign(str(path), workspace=Workspace(tmp_path)).campaign.attached
    assert (web.found_by, web.found_at, web.resources) == ("domain", NAME, "schedinfo")
    assert await domains("qemu:///system?socket=/nowhere") == []


def test_what_a_killed_engine_left_is_set_back(
    workbench: Workbench, burner: LibvirtHost, system: RunningSystem, full_length: bool
) -> None:
    path = campaign(burner, system, workbench.root, samples=20)
    again = f"libvirt domain {NAME}: its global_quota is -1 again"
    killed_and_put_back(workbench, path, burner.settings, again, 20 if full_length else 2)
