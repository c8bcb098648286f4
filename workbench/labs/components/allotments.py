"""Memory, bandwidth and disk of a function: checked before a campaign, changed while it runs.

Bandwidth is a token bucket (`tc tbf`) on what a function's interfaces send, answers towards the
source and requests towards the sink alike. It is set from this host in the container's network
namespace, so it needs the engine to be here; the function itself gets no right to change it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from workbench.domain.campaign import Campaign
from workbench.domain.errors import LabError, UsageError
from workbench.domain.parameters import Configuration
from workbench.domain.resources import BANDWIDTH, DISK, MEMORY, VCPU, known
from workbench.domain.topology import Target
from workbench.labs.components import disks
from workbench.labs.components.component import Component
from workbench.labs.programs import run

PROGRAMS = ("tc", "nsenter", "unshare")
QUEUE_S = 0.05
"""What the bucket lets wait at most before it drops."""
LEAST_BURST = 32_000
BURST_S = 0.004
"""A bucket holds what a slow clock (250 ticks a second) needs to reach the rate at all."""


def memory(configuration: Configuration, name: str) -> int:
    """Bytes that a component is allotted; 0 for no limit."""
    return int(configuration.resource(f"{name}.memory_bytes"))


def bandwidth(configuration: Configuration, name: str) -> float:
    """Mbit/s that a component is allotted; 0 for no limit."""
    return configuration.resource(f"{name}.bandwidth_mbps")


def disk(configuration: Configuration, name: str) -> float:
    """MB/s of disk that a component is allotted; 0 for no limit."""
    return configuration.resource(f"{name}.disk_mbps")


@dataclass(frozen=True)
class HostMemory:
    """What a lab's host can allot of its memory, in bytes, and whether it can of its disk."""

    total: int
    least: int
    """No component can be given less."""
    limitable: bool
    no_disk: str | None = None
    """A clause why no component can be held to a rate on a disk."""


async def check(campaign: Campaign, host: HostMemory, local: bool) -> None:
    """Refuse allotments that the host cannot give; `local` is whether it is this one.

    Raises
    ------
    UsageError
        For amounts that are too small or too large.
    LabError
        Where its kernel cannot limit memory, bandwidth or disk at all.
    """
    refuse_unknown(campaign)
    configurations = list(_configurations(campaign))
    amounts = [
        [memory(configuration, vnf.name) for vnf in target.vnfs]
        for target, configuration in configurations
    ]
    _check_memory(campaign, host, amounts)
    if any(bandwidth(c, vnf.name) for target, c in configurations for vnf in target.vnfs):
        reason = await unshapeable(local)
        if reason is not None:
            raise LabError(
                f"bandwidth cannot be allotted here: {reason}",
                where=f"campaign {campaign.name}",
                remedy="Leave `bandwidth` out of its resource parameters and flavors",
            )
    if host.no_disk is not None:
        refuse_disk(campaign, host.no_disk)


def refuse_unknown(campaign: Campaign) -> None:
    """Raises `LabError` for resources that no part of this package sets on a host."""
    others = [r for r in known().values() if r not in (VCPU, MEMORY, BANDWIDTH, DISK)]
    for (target, configuration), resource in product(_configurations(campaign), others):
        if any(configuration.resource(f"{vnf.name}.{resource.key}") for vnf in target.vnfs):
            raise LabError(
                f"{resource.name} cannot be allotted here: this lab does not know how to set it",
                where=f"campaign {campaign.name}, {target.name}",
                remedy=f"Leave `{resource.name}` out of its resource parameters and flavors",
            )


def refuse_disk(campaign: Campaign, why: str) -> None:
    """Raises `LabError` where a campaign allots disk, which `why` (a clause) forbids."""
    for target, configuration in _configurations(campaign):
        if any(disk(configuration, vnf.name) for vnf in target.vnfs):
            raise LabError(
                f"disk cannot be allotted here: {why}",
                where=f"campaign {campaign.name}, {target.name}",
                remedy="Leave `disk` out of its resource parameters and flavors",
            )


def _configurations(campaign: Campaign) -> Iterator[tuple[Target, Configuration]]:
    for plan in campaign.targets:
        for configuration in campaign.configurations(plan):
            yield plan.target, configuration


def _check_memory(campaign: Campaign, host: HostMemory, amounts: list[list[int]]) -> None:
    given = [amount for together in amounts for amount in together if amount]
    if not given:
        return
    where = f"campaign {campaign.name}"
    if not host.limitable:
        raise LabError(
            "the kernel of its host cannot limit memory",
            where=where,
            remedy="Boot it with cgroup_enable=memory, or leave `memory` out",
        )
    if min(given) < host.least:
        raise UsageError(
            f"it allots {min(given) / 2**20:.3g} MiB of memory, and none is given less than "
            f"{host.least >> 20} MiB",
            where=where,
            remedy="Raise the smallest `memory`",
        )
    most = max(sum(together) for together in amounts)
    if most > host.total:
        raise UsageError(
            f"its functions are allotted up to {most / 2**30:.3g} GiB of memory together, and the "
            f"host has {host.total / 2**30:.3g}",
            where=where,
            remedy="Lower the largest `memory`",
        )


async def unshapeable(local: bool) -> str | None:
    """A clause why no bandwidth can be set here, or None; it is tried where nothing is harmed."""
    if not local:
        return "the engine is on another host, and its links are set from there alone"
    for program in PROGRAMS:
        if shutil.which(program) is None:
            return f"this host has no {program} (packages iproute2 and util-linux)"
    if os.geteuid() != 0:
        return "only root may shape the links of containers"
    code, said = await run(("unshare", "--net", *bucket("lo", 1.0)), _unheard)
    return f"the kernel shapes no link with a token bucket ({said})" if code else None


def bucket(interface: str, mbps: float) -> tuple[str, ...]:
    """The command that holds an interface to a rate."""
    bytes_per_second = mbps * 1e6 / 8
    burst = max(LEAST_BURST, round(bytes_per_second * BURST_S))
    return (
        *("tc", "qdisc", "replace", "dev", interface, "root", "tbf"),
        *("rate", f"{round(mbps * 1e6)}bit", "burst", f"{burst}b"),
        *("latency", f"{QUEUE_S * 1e3:g}ms"),
    )


async def hold(component: Component) -> None:
    """Hold a started component to its bandwidth and disk; a new start forgets them."""
    if component.bandwidth_mbps:
        await shape(component)
    if component.disk_mbps:
        disks.hold(component)


async def shape(component: Component) -> None:
    """Hold what its interfaces send to its bandwidth; without one they stay as they are."""
    if not component.bandwidth_mbps:
        return
    inside = ("nsenter", f"--net=/proc/{component.pid}/ns/net")
    _, links = await run((*inside, "tc", "qdisc", "show"), _unheard)
    for interface in sorted(set(re.findall(r"dev (eth\d+)", links))):
        code, said = await run((*inside, *bucket(interface, component.bandwidth_mbps)), _unheard)
        if code:
            raise LabError(
                f"{interface} cannot be held to {component.bandwidth_mbps:g} Mbit/s: {said}",
                where=component.place,
                remedy="Leave `bandwidth` out, or choose another rate",
            )


async def change(component: Component, configuration: Configuration) -> None:
    """Give a running component what a configuration says besides CPU, in place."""
    wanted = memory(configuration, component.name)
    if wanted and wanted != component.memory_bytes:
        await _limit_memory(component, wanted)
    mbps = bandwidth(configuration, component.name)
    if mbps != component.bandwidth_mbps:
        component.bandwidth_mbps = mbps
        await shape(component)
    rate = disk(configuration, component.name)
    if rate != component.disk_mbps:
        component.disk_mbps = rate
        disks.hold(component)


async def _limit_memory(component: Component, wanted: int) -> None:
    held = int(component.probe.read().memory_bytes) if component.probe else 0
    if held > wanted:
        raise _too_little(component, wanted, f"it holds {held / 2**20:.3g} MiB")
    try:
        await component.limit_memory(wanted)
    except LabError as error:
        raise _too_little(component, wanted, error.what) from error
    component.memory_bytes = wanted


def _too_little(component: Component, wanted: int, why: str) -> LabError:
    return LabError(
        f"it cannot be given {wanted / 2**20:.3g} MiB of memory: {why}",
        where=component.place,
        remedy="Raise the smallest `memory` of its resource parameters",
    )


def _unheard(line: str) -> None:
    """Only the end of what these commands say is told, and only where they fail."""
