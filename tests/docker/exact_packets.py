"""Packets through a firewall, every one of them accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from docker_targets import ignore

from workbench.domain.campaign import Campaign
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.labs.base import LabSettings
from workbench.labs.docker import DockerLab
from workbench.measuring.records import Drive, PacketCounts
from workbench.traffic.pcap import FIRST_PORT, MOST_PACKETS

FLOWS = 100
REFUSED_FLOWS = 7


def campaign_of(loaded: Campaign) -> Campaign:
    """The firewall's own campaign, with a file of packets as its source."""
    plan = loaded.targets[0]
    return replace(loaded, targets=(plan,))


def point(campaign: Campaign, rate_pps: float, vcpu: float, rules: int) -> OperatingPoint:
    """So many of the flows are refused that 7 of 100 packets are."""
    refused = {"firewall.refused_below": float(FIRST_PORT + REFUSED_FLOWS)}
    workload = {"packetsize_bytes": 512.0, "flows": float(FLOWS), "firewall.match": "last"}
    given = {**workload, "firewall.rules": float(rules), **refused}
    target = campaign.targets[0].target.name
    return OperatingPoint(target, Configuration({"firewall.vcpu": vcpu}, given), rate_pps)


def meant_to_be_refused(sent: float) -> int:
    """Of so many packets: the file begins anew after its last, in the midst of a turn of flows."""
    return sum(number % MOST_PACKETS % FLOWS < REFUSED_FLOWS for number in range(int(sent)))


def reached(drive: Drive, function: str) -> int:
    """Packets that came into the function: sent, less what found the queue before it full."""
    assert drive.packets is not None
    assert drive.packets.exact is not None
    queued = (f"{function} eth0: queue", f"{function} eth1: queue")
    sent, _ = drive.packets.exact
    return int(sent) - sum(drive.packets.dropped_at.get(place, 0) for place in queued)


async def driven(
    campaign: Campaign, session: str, points: Sequence[OperatingPoint], seconds: float
) -> list[Drive]:
    """One drive at each point, on one deployment of the campaign's first target."""
    lab = DockerLab(campaign, LabSettings(session))
    drives = []
    try:
        await lab.open()
        await lab.deploy(campaign.targets[0].target, points[0].configuration)
        for at in points:
            await lab.allocate(at.configuration)
            drives.append(await lab.drive(at, seconds, ignore))
    finally:
        await lab.close()
    return drives


async def counted(
    campaign: Campaign, session: str, points: Sequence[OperatingPoint], seconds: float
) -> list[PacketCounts]:
    """What source and sink counted in one drive at each point."""
    drives = await driven(campaign, session, points, seconds)
    return [drive.packets for drive in drives if drive.packets is not None]
