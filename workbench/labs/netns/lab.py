"""`NetnsLab`: the protocol of a lab over processes in network namespaces of this host."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import structlog

from workbench.descriptors.capacity import check_fits_host
from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError
from workbench.domain.lab import Check, HostFacts
from workbench.domain.topology import Target, VnfTemplate
from workbench.labs.base import LabCosts, LabSettings
from workbench.labs.components import allotments, disks, mirroring, preflight, wiring
from workbench.labs.components.allotments import HostMemory
from workbench.labs.components.environment import SYSCTLS
from workbench.labs.components.lab import ComponentLab
from workbench.labs.netns import groups
from workbench.labs.netns.bridge_firewall import BridgeFirewall, Firewall, firewall_asked_for
from workbench.labs.netns.namespaces import Bridge
from workbench.labs.netns.packages import layer
from workbench.labs.netns.processes import ProcessMaker, work_folder
from workbench.labs.programs import Listener
from workbench.paths import located
from workbench.probes import host

log = structlog.get_logger(__name__)

COSTS = LabCosts(deploy_s=1.5, allocate_s=0.01, drive_overhead_s=0.3)
NEEDED = {
    "util-linux": ("unshare", "nsenter", "setpriv"),
    "mount": ("mount",),
    "coreutils": ("chroot",),
    "iproute2": ("ip",),
}
"""Programs by the Debian package that brings them."""
LEAST_MEMORY = 1 << 20
BASICS = ("curl", "netcat-openbsd")
"""Packages of the pre-flight: readiness, first request."""


class NetnsLab(ComponentLab):
    """Functions, source and sink as processes, each in namespaces and a control group of its own.

    Parameters
    ----------
    campaign : what is to be profiled.
    settings : `session` is in the names of the control groups; `argument` may be `firewall=none`.
    """

    name = "netns"

    def __init__(self, campaign: Campaign, settings: LabSettings) -> None:
        super().__init__(campaign, settings)
        self._packages: Path | None = None
        self._open = False
        self._bridges: dict[str, Bridge] = {}
        self._asked = self._firewall_of(settings)
        self._firewall = BridgeFirewall("")

    @staticmethod
    def _firewall_of(settings: LabSettings) -> Firewall:
        """What packets between components are to pass. Raises `UsageError`."""
        return firewall_asked_for(settings.argument)

    @property
    def costs(self) -> LabCosts:
        return COSTS

    async def open(self) -> HostFacts:
        if short := lacking():
            raise LabError(short[0], remedy=short[1])
        self._cores = os.cpu_count() or 1
        if not self._settings.oversubscribe:
            check_fits_host(self._campaign, self._cores)
        self._check_wiring()
        needed = self._host_programs()
        for template in self._needed():
            if template.image:
                raise LabError(
                    f"it comes as an image ({template.image}), which runs in containers alone",
                    where=f"template {template.name}",
                    remedy="Use the Docker lab, or give it `packages`",
                )
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        await allotments.check(
            self._campaign, HostMemory(total, LEAST_MEMORY, True, disks.NO_DISK), local=True
        )
        await mirroring.check(self._campaign, local=True)
        packages = [p for t in needed for p in t.packages]
        self._packages = await layer(
            (*BASICS, *packages, *preflight.packages(self._campaign)),
            Listener(self._say, lambda line: log.info("packages", line=line)),
        )
        for template in needed:
            self._find(template)
        self._firewall = await BridgeFirewall.usable(self._asked)
        self._open = True
        facts = {**host.read_details(), **self._firewall.details}
        return HostFacts(
            lab=self.name,
            cores=self._cores,
            memory_bytes=total,
            kernel=platform.release(),
            cpu_model=host.read_cpu_model(),
            cgroup=groups.version(),
            engine="none",
            image_digests={},
            details={**SYSCTLS, **facts, **self._details()},
        )

    def _host_programs(self) -> list[VnfTemplate]:
        """Templates whose programs run on this host itself."""
        return self._needed()

    def _say(self, line: str) -> None:
        log.info("packages", line=line)
        self._settings.say(line)

    def _find(self, template: VnfTemplate) -> None:
        """Raises `LabError` where the program that a template starts is nowhere."""
        program = template.command[0] if template.command else ""
        if program in template.programs:
            return
        folders = [
            top / place
            for top in (self._packages or Path("/"), Path("/"))
            for place in ("usr/sbin", "usr/bin", "usr/local/bin")
        ]
        if not program or not any((folder / program).exists() for folder in folders):
            raise LabError(
                f"its program {program!r} is not on this host"
                if program
                else "it names no command",
                where=f"template {template.name}",
                remedy="Name the Debian packages that bring it (`packages`), or use the Docker lab",
            )

    def _maker(self) -> ProcessMaker:
        if not self._open:
            raise LabError("the lab is not open")
        return ProcessMaker(
            self._settings.session,
            self._packages,
            self._bridges,
            {t.name: programs_of(t) for t in self._needed()},
        )

    async def _networks_for(self, target: Target) -> Sequence[str]:
        numbers = wiring.networks(target, self._campaign.templates)
        for number in numbers:
            bridge = self._bridges.get(str(number))
            if bridge is not None and bridge.namespace.alive:
                continue
            self._bridges[str(number)] = await Bridge.make(number, self._firewall.rules)
        return [str(number) for number in numbers]

    @contextmanager
    def _sentences(self, where: str) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError) as error:
            raise LabError(f"the kernel refused: {error}", where=where) from error

    def _speaking(self, where: str) -> AbstractContextManager[None]:
        return self._sentences(where)

    async def close(self) -> None:
        try:
            await self.undeploy()
        except LabError as error:
            # The kernel ends what is left with this process; groups go with the next start.
            log.warning("processes are left behind", error=str(error))
        bridges, self._bridges, self._open = self._bridges, {}, False
        for bridge in bridges.values():
            await bridge.namespace.end()

    @staticmethod
    async def examine() -> tuple[Check, ...]:
        if short := lacking():
            return (Check("namespace lab", "warning", *short),)
        return (Check("namespace lab", "ok", "processes in network namespaces of this host"),)

    @staticmethod
    async def reap(alive: frozenset[str]) -> tuple[str, ...]:
        """Control groups of dead sessions; all else ends with the process that made it."""
        gone = []
        for folder in groups.left(alive):
            if await groups.end(folder):
                gone.append(folder.name)
                with suppress(OSError):
                    work_folder(folder.name).rmdir()
        return tuple(dict.fromkeys(gone))


def lacking() -> tuple[str, str] | None:
    """What this host lacks for the lab, and what to do about it."""
    if platform.system() != "Linux":
        return "network namespaces are of Linux", "Use another lab"
    if os.geteuid() != 0:
        return "only root may make network namespaces", "Run as root, or use the Docker lab"
    for package, programs in NEEDED.items():
        for program in programs:
            if shutil.which(program) is None:
                return f"this host has no {program}", f"Install the package {package}"
    return None


def programs_of(template: VnfTemplate) -> dict[str, bytes]:
    """Programs beside a template's descriptor, by the path that they have in a component."""
    folder = Path(located(template.build)) if template.programs else Path()
    return {f"/usr/local/bin/{name}": (folder / name).read_bytes() for name in template.programs}
