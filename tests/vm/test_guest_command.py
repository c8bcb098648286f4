"""Options of the VM lab, the command line that they make, what a host may lack."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from workbench.descriptors.loading import load_campaign
from workbench.domain.errors import LabError, UsageError
from workbench.domain.lab import EMULATED, HostFacts
from workbench.engine.runs.opening import what_changed
from workbench.labs.base import LabSettings
from workbench.labs.vm import qemu_monitor, vm_lab
from workbench.labs.vm.qemu_command import Descriptors, command, mac_of
from workbench.labs.vm.vm_lab import KVM, TUN, VHOST, VmLab, lacking_for_guests
from workbench.labs.vm.vm_options import VmOptions
from workbench.paths import Workspace

GIVEN = Descriptors(kernel=7, initramfs=8, agent=9, monitor=10)
EVERYTHING = {TUN: True, KVM: True, VHOST: True}


def option(argv: tuple[str, ...], name: str) -> str:
    return argv[argv.index(name) + 1]


def test_options_are_read_and_stated_whole() -> None:
    assert VmOptions.parse("") == VmOptions()
    given = VmOptions.parse("accel=kvm, nic=e1000,memory=1024,boot=30")
    assert given == VmOptions("kvm", "e1000", False, 1024, 30)
    assert VmOptions.parse(given.text) == given
    assert VmOptions.parse("vhost=1").vhost


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("acel=kvm", "'acel' is no option of the VM lab"),
        ("accel=xen", "accel is 'xen'"),
        ("nic=rtl8139", "nic is 'rtl8139'. Give virtio or e1000"),
        ("memory=16", "memory is '16'. Give a whole number from 384"),
        ("memory=-5", "memory is '-5'"),
        ("boot=9999999999999999999999", "boot is '99999999999999999999'"),
        ("boot=", "boot is ''"),
        ("vhost=1,nic=e1000", "vhost moves the packets of a virtio card, and nic is e1000"),
    ],
)
def test_what_no_guest_has_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        VmOptions.parse(text)
    assert caught.value.where == f"vm:{text}"
    assert sentence in f"{caught.value.what}. {caught.value.remedy}"


def test_a_guest_is_emulated_unless_kvm_is_named() -> None:
    argv = command(VmOptions(), 1, "52:54:0a:4d:00:03", GIVEN)
    assert option(argv, "-accel") == "tcg,thread=single,tb-size=64"
    assert option(command(VmOptions(), 2, "", GIVEN), "-accel").startswith("tcg,thread=multi")
    assert option(argv, "-cpu") == "max"
    assert option(argv, "-kernel") == "/proc/self/fd/7"
    assert option(argv, "-initrd") == "/proc/self/fd/8"
    assert "socket,id=agent,fd=9" in argv
    assert "socket,id=monitor,fd=10" in argv
    assert "virtio-net-pci,netdev=net,mac=52:54:0a:4d:00:03,romfile=" in argv
    assert GIVEN.all == (7, 8, 9, 10)
    real = command(VmOptions.parse("accel=kvm,vhost=1,memory=900"), 4, "", GIVEN)
    assert (option(real, "-accel"), option(real, "-cpu")) == ("kvm", "host")
    assert (option(real, "-smp"), option(real, "-m")) == ("4", "900")
    assert option(real, "-netdev").endswith(",vhost=on")
    assert "vhost" not in option(argv, "-netdev")


def test_the_card_is_named_after_the_address() -> None:
    assert mac_of("10.77.1.255") == "52:54:0a:4d:01:ff"


@pytest.mark.parametrize(
    ("text", "missing", "sentence", "remedy"),
    [
        ("", TUN, "guests have no network", "module tun"),
        ("accel=kvm", KVM, "/dev/kvm cannot be opened", "Leave accel=kvm out"),
        ("vhost=1", VHOST, "/dev/vhost-net cannot be opened", "Leave vhost out"),
    ],
)
def test_a_device_that_is_missing_is_named(
    text: str, missing: Path, sentence: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(qemu_monitor, "installed", lambda: True)
    options = VmOptions.parse(text)
    assert lacking_for_guests(options, EVERYTHING) is None
    found = lacking_for_guests(options, {**EVERYTHING, missing: False})
    assert found is not None
    assert sentence in found[0]
    assert remedy in found[1]
    assert lacking_for_guests(VmOptions(), {TUN: True, KVM: False, VHOST: False}) is None


def test_a_host_without_qemu_or_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(qemu_monitor, "installed", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert lacking_for_guests(VmOptions(), EVERYTHING) == qemu_monitor.MISSING
    assert "vnf-workbench[vm]" in qemu_monitor.MISSING[1]
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert lacking_for_guests(VmOptions(), EVERYTHING) == (
        "this host has no qemu-system-x86_64",
        "Install the package qemu-system-x86",
    )


def test_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vm_lab, "lacking", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    (check,) = asyncio.run(VmLab.examine())
    assert (check.name, check.state) == ("VM lab", "warning")
    assert check.found == "this host has no qemu-system-x86_64"


async def opened(name: str, folder: Path, **changed: object) -> HostFacts:
    loaded = load_campaign(name, workspace=Workspace(folder)).campaign
    templates = tuple(
        replace(t, **changed) if t.role == "function" else t  # type: ignore[arg-type]
        for t in loaded.templates
    )
    return await VmLab(replace(loaded, templates=templates), LabSettings("test")).open()


@pytest.mark.parametrize(
    ("campaign", "changed", "sentence"),
    [
        ("nat", {}, "nat is a router, and guests of the VM lab forward no packets"),
        ("demo", {"packages": ()}, "haproxy names no Debian packages, and a guest has nothing"),
    ],
)
async def test_functions_that_no_guest_can_be_are_refused(
    campaign: str,
    changed: dict[str, object],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vm_lab, "lacking", lambda: None)
    monkeypatch.setattr(vm_lab, "lacking_for_guests", lambda _: None)
    with pytest.raises(UsageError, match=sentence):
        await opened(campaign, tmp_path, **changed)


def test_a_guest_sees_the_cores_of_its_largest_allotment(tmp_path: Path) -> None:
    loaded = load_campaign("case-study", workspace=Workspace(tmp_path)).campaign
    lab = VmLab(loaded, LabSettings("test"))
    most = max(
        configuration.vcpu(vnf.name)
        for plan in loaded.targets
        for configuration in loaded.configurations(plan)
        for vnf in plan.target.vnfs
        if vnf.name == "study-tinyproxy"
    )
    assert lab._cores_of("study-tinyproxy") == -(-most // 1)


HERE = HostFacts("vm", 2, 4 << 30, "6.1", "Xeon", "v1", "qemu 7", {}, {EMULATED: "TCG"})


def test_emulated_facts_say_so() -> None:
    assert HERE.is_emulated
    assert "emulated CPU (TCG)" in HERE.caveats[0]
    assert not replace(HERE, details={}).is_emulated


def test_a_session_is_not_resumed_on_another_lab() -> None:
    assert what_changed("s", HERE, HERE) == ()
    with pytest.raises(LabError, match=r"measured on the lab vm \(emulated\), and this is vm"):
        what_changed("s", HERE, replace(HERE, details={}))
    with pytest.raises(LabError, match="and this is netns"):
        what_changed("s", replace(HERE, details={}), replace(HERE, lab="netns", details={}))
