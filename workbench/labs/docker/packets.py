"""Load of packets through routers: the pre-flight and the drives of the Docker lab."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.domain.errors import LabError, TrafficError, UsageError
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.labs.base import Deployment, OnUsage
from workbench.labs.docker import driving
from workbench.labs.docker.containers import Component
from workbench.labs.docker.target import Deployed
from workbench.labs.docker.watching import Watch
from workbench.labs.docker.wiring import SINK, SOURCE
from workbench.measuring.records import Drive, RequestRecords
from workbench.plugins import make
from workbench.traffic.packets import PacketGenerator, PacketOffer
from workbench.traffic.reading import read_counts

GENERATOR = "iperf3"
PACKET_SIZES = "packetsize_bytes"
DEFAULT_SIZE = 512
FINISHING_S = 5.0
"""For which the far end may go on: it hands over what it counted."""
SOCKET_COUNTS = ("cat", "/proc/net/snmp")
FULL_SOCKET = "RcvbufErrors"


@dataclass(frozen=True)
class Sender:
    """A generator of packets on a deployed target."""

    deployed: Deployed
    generator: PacketGenerator
    version: str
    seen_from: str
    """Address that the sink saw the packets come from."""

    @property
    def title(self) -> str:
        return f"{self.generator.name} {self.version}"

    def deployment(self, warnings: Sequence[str]) -> Deployment:
        """What the pre-flight saw."""
        source = self.deployed.component(SOURCE)
        translated = "unchanged" if self.seen_from == source.address else "translated"
        uncharged = [sentence for sentence in self.deployed.uncharged.values() if sentence]
        return Deployment(
            self.deployed.target.name,
            self.title,
            False,
            f"passes packets on, their source address {translated}: the sink sees "
            f"{self.seen_from}, the source is {source.address}",
            (*warnings, *uncharged),
        )

    async def drive(
        self,
        point: OperatingPoint,
        seconds: float,
        on_usage: OnUsage,
        own_cpu_s: Callable[[], float] | None,
    ) -> Drive:
        """Send packets and hand over what was counted, on a whole number of seconds.

        Raises `LabError` where a container ends.
        """
        deployed = self.deployed
        offer = _offer(deployed, point.configuration, point.wl, math.ceil(seconds - 1e-6))
        allotted, threads = deployed.allotted(), deployed.threads()
        watch = Watch(deployed.components, allotted, threads, own_cpu_s)
        sink = deployed.component(SINK)
        dropped = await _dropped(sink)
        begin_s, outcome = await driving.send(
            watch, self.generator.packet_argv(offer), offer.seconds, FINISHING_S, on_usage
        )
        counts = read_counts(self.generator, offer, outcome.stdout, begin_s)
        nothing = np.zeros(0)
        empty = nothing.astype(np.int64)
        return Drive(
            begin_s,
            begin_s + offer.seconds,
            RequestRecords(nothing, nothing, nothing, nothing, empty, empty),
            watch.counters(),
            self.title,
            "none",
            0,
            allotted,
            threads,
            packets=replace(counts, dropped_by_sink=await _dropped(sink) - dropped),
            routers=tuple(c.name for c in deployed.components if c.template.passage == "router"),
        )


async def prepare(deployed: Deployed, configuration: Configuration) -> Sender:
    """Choose the generator and send a few packets. Raises `LabError` if none comes through."""
    campaign, source = deployed.campaign, deployed.component(SOURCE)
    name = campaign.generator or GENERATOR
    generator = make("traffic", name)
    if not isinstance(generator, PacketGenerator):
        raise TrafficError(
            f"{name} sends requests, and target {deployed.target.name} is measured with packets",
            remedy=f"Name {GENERATOR} as generator, or none",
        )
    for component in deployed.components:
        if component.template.role == "function" and component.template.passage != "router":
            raise UsageError(
                f"{component.name} is no router and passes no packets on",
                where=f"target {deployed.target.name}",
                remedy="Chain routers with routers only, or load it with requests",
            )
    kpis = (campaign.kpi, *((campaign.sla.kpi,) if campaign.sla else ()))
    most = campaign.target_plan(deployed.target.name).primary.high
    if reason := generator.unable(campaign.load, kpis, most):
        raise TrafficError(reason, remedy="Change `load` or `kpi`")
    version = await source.run(generator.version_argv())
    if version.exit_code != 0:
        raise TrafficError(
            f"{name} is not in the source's image",
            where=source.template.name,
            remedy="Use packet-source as source, or install it in its Dockerfile",
        )
    probe = _offer(deployed, configuration, 0.0, 1)
    arrived, seen_from = generator.seen_from((await source.run(generator.probe_argv(probe))).stdout)
    if not arrived:
        raise LabError(
            "none of the first packets came through",
            where=f"target {deployed.target.name}",
            remedy="Look at the rules in the files of its routers",
        )
    return Sender(deployed, generator, generator.parse_version(version.stdout), seen_from)


def _offer(
    deployed: Deployed, configuration: Configuration, rate_pps: float, seconds: int
) -> PacketOffer:
    host, port = deployed.entry.endpoint
    size = int(configuration.parameter(PACKET_SIZES, DEFAULT_SIZE))
    return PacketOffer(host, port, rate_pps, size, seconds)


async def _dropped(sink: Component) -> int:
    return parse_dropped((await sink.run(SOCKET_COUNTS)).stdout)


def parse_dropped(snmp: str) -> int:
    """Datagrams that found their socket full, in `/proc/net/snmp`; 0 where it does not tell."""
    lines = [line.split() for line in snmp.splitlines() if line.startswith("Udp:")]
    if len(lines) < 2:
        return 0
    return int(dict(zip(*lines[:2], strict=True)).get(FULL_SOCKET, 0))
