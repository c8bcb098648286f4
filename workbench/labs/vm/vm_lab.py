"""`VmLab`: each function in a guest of QEMU, source and sink as in the namespace lab."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import structlog

from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, UsageError
from workbench.domain.lab import EMULATED, OPTIONS, Check, HostFacts
from workbench.domain.topology import Placement, VnfTemplate
from workbench.labs.base import LabCosts, LabSettings
from workbench.labs.components import allotments, wiring
from workbench.labs.netns.bridge_firewall import Firewall
from workbench.labs.netns.lab import NetnsLab, lacking
from workbench.labs.netns.processes import ProcessComponent
from workbench.labs.programs import Listener, run
from workbench.labs.vm import qemu_monitor
from workbench.labs.vm.guest_files import GuestFiles, guest_files
from workbench.labs.vm.guests import GuestMaker
from workbench.labs.vm.qemu_command import QEMU
from workbench.labs.vm.vm_options import VmOptions

log = structlog.get_logger(__name__)

COSTS = LabCosts(deploy_s=25.0, allocate_s=0.5, drive_overhead_s=0.3)
MACHINE = "x86_64"
TUN, KVM, VHOST = Path("/dev/net/tun"), Path("/dev/kvm"), Path("/dev/vhost-net")
_VERSION = re.compile(r"version ([\w.]+)")


class VmLab(NetnsLab):
    """Functions as guests, each in the namespaces and the control group of its component.

    Parameters
    ----------
    campaign : what is to be profiled: functions in the path that are spoken to, no routers.
    settings : `argument` may hold options as text (`nic=e1000,memory=1024`).
    """

    name = "vm"
    placements: tuple[Placement, ...] = ("inline",)

    def __init__(self, campaign: Campaign, settings: LabSettings) -> None:
        super().__init__(campaign, settings)
        self.options = VmOptions.parse(settings.argument)
        self._files: dict[str, GuestFiles] = {}
        self._made: list[ProcessComponent] = []

    @staticmethod
    def _firewall_of(settings: LabSettings) -> Firewall:
        del settings  # its argument is of guests
        return "none"

    @property
    def costs(self) -> LabCosts:
        return COSTS

    async def open(self) -> HostFacts:
        if short := lacking() or lacking_for_guests(self.options):
            raise LabError(short[0], remedy=short[1])
        self._refuse_what_no_guest_can()
        facts = await super().open()
        version = await qemu_version()
        listener = Listener(self._say, lambda line: log.info("guest", line=line))
        for template in self._functions():
            self._files[template.name] = await guest_files(
                template.packages, self.options, listener
            )
        details = {**facts.details, OPTIONS: self.options.text}
        if self.options.emulated:
            details[EMULATED] = f"TCG of QEMU {version}"
        return replace(
            facts,
            engine=f"qemu {version}",
            image_digests={name: files.digest for name, files in self._files.items()},
            details=details,
        )

    def _functions(self) -> list[VnfTemplate]:
        return [template for template in self._needed() if template.role == "function"]

    def _host_programs(self) -> list[VnfTemplate]:
        """Programs of functions are in their guests."""
        return [template for template in self._needed() if template.role != "function"]

    def _refuse_what_no_guest_can(self) -> None:
        where = f"campaign {self._campaign.name}"
        for template in self._functions():
            if template.passage == "router":
                raise UsageError(
                    f"{template.name} is a router, and guests of the VM lab forward no packets",
                    where=where,
                    remedy="Use the Docker lab or the namespace lab for it",
                )
            if not template.packages:
                raise UsageError(
                    f"{template.name} names no Debian packages, and a guest has nothing else",
                    where=f"template {template.name}",
                    remedy="Name them (`packages`), or use the Docker lab",
                )
        allotments.refuse_unknown(self._campaign)
        allotments.refuse_disk(self._campaign, "a guest has its files in memory")
        for plan in self._campaign.targets:
            for configuration in self._campaign.configurations(plan):
                for vnf in plan.target.vnfs:
                    if allotments.memory(configuration, vnf.name):
                        raise UsageError(
                            f"it allots memory to {vnf.name}, and a guest's is fixed while it runs",
                            where=where,
                            remedy="Leave `memory` out of its resource parameters and flavors; "
                            "--lab vm:memory=MIB sets it for all guests",
                        )

    def _maker(self) -> GuestMaker:  # type: ignore[override]
        return GuestMaker(super()._maker(), self.options, self._files, self._cores_of, self._made)

    def _cores_of(self, name: str) -> int:
        """A guest's cores: those that the largest allotment of a function of that name begins."""
        return max(
            wiring.worker_threads(
                wiring.vcpu(configuration, vnf.name, self._campaign.template(vnf.template))
            )
            for plan in self._campaign.targets
            for vnf in plan.target.vnfs
            if vnf.name == name
            for configuration in self._campaign.configurations(plan)
        )

    async def undeploy(self) -> None:
        try:
            await super().undeploy()
        finally:  # what was made for a target that did not come up
            left, self._made[:] = list(self._made), []
            await asyncio.gather(*(one.remove() for one in left if one.namespace.alive))

    @staticmethod
    async def examine() -> tuple[Check, ...]:
        short = lacking() or lacking_for_guests(VmOptions())
        if short:
            return (Check("VM lab", "warning", *short),)
        kvm = "KVM may be tried (vm:accel=kvm)" if os.access(KVM, os.R_OK | os.W_OK) else "no KVM"
        found = f"guests of QEMU {await qemu_version()}, emulated (TCG); {kvm}"
        return (Check("VM lab", "ok", found),)

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:
        """Nothing: groups of guests are the namespace lab's, and go with its."""
        del alive
        return ()


def lacking_for_guests(
    options: VmOptions, there: Mapping[Path, bool] | None = None
) -> tuple[str, str] | None:
    """What this host lacks for guests, and what to do about it.

    Parameters
    ----------
    there : whether devices can be opened; None: it is looked up.
    """
    if platform.machine() != MACHINE:
        return f"guests are made for {MACHINE} hosts alone", "Use another lab"
    if shutil.which(QEMU) is None:
        return f"this host has no {QEMU}", "Install the package qemu-system-x86"
    if not qemu_monitor.installed():
        return qemu_monitor.MISSING
    if there is None:
        there = {device: os.access(device, os.R_OK | os.W_OK) for device in (TUN, KVM, VHOST)}
    if not there[TUN]:
        return f"{TUN} cannot be opened: guests have no network", "Load the kernel's module tun"
    if not options.emulated and not there[KVM]:
        return f"{KVM} cannot be opened", "Leave accel=kvm out, or load the kernel's module kvm"
    if options.vhost and not there[VHOST]:
        return f"{VHOST} cannot be opened", "Leave vhost out, or load the module vhost_net"
    return None


async def qemu_version() -> str:
    """Raises `LabError` where it does not start."""
    said: list[str] = []
    code, tail = await run((QEMU, "--version"), said.append)
    found = _VERSION.search(said[0]) if said else None
    if code != 0 or found is None:
        raise LabError(
            f"{QEMU} does not start: {tail or 'it says nothing'}",
            remedy="Install the package qemu-system-x86 again",
        )
    return found[1]
