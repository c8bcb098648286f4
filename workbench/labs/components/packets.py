"""Load of packets through routers: the pre-flight and the drives of the Docker lab."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from workbench.domain.competitors import COMPETITOR
from workbench.domain.errors import LabError, TrafficError, UsageError
from workbench.domain.load_shapes import refusal as refused
from workbench.domain.parameters import Configuration, OperatingPoint, is_setting
from workbench.labs.base import DeployedTarget, OnUsage
from workbench.labs.components import driving, hops
from workbench.labs.components.component import Component, Outcome, run_within
from workbench.labs.components.preflight import wanted_kpis
from workbench.labs.components.target import Deployed
from workbench.labs.components.watching import DriveWatch
from workbench.labs.components.wiring import SINK, SOURCE
from workbench.measuring.records import Drive, PacketCounts, RequestRecords
from workbench.plugins import make
from workbench.traffic.packets import PacketGenerator, PacketOffer, PacketPath, PairedGenerator
from workbench.traffic.pcap import IMIX
from workbench.traffic.reading import read_counts, read_pair

GENERATORS = ("iperf3", "tcpreplay", "d-itg")
"""By preference, where a campaign names none; the first that the source's image has drives."""
PACKET_SIZES = "packetsize_bytes"
FLOWS = "flows"
DEFAULT_SIZE = 512
LISTENING_S = 10.0
"""For which the far end may take to listen."""
POLL_S, BEGIN_AGAIN_S = 0.02, 0.5
VERSION_S, PROBE_S = 10.0, 30.0
"""For which a generator may take to tell its version, and to send the first few packets."""
FINISHING_S = 5.0
"""For which the far end may go on: it hands over what it counted."""
SLOWEST_END_S = 30.0
"""That the far end may take besides: it counts what it has."""
SOCKET_COUNTS = ("cat", "/proc/net/snmp")
FULL_SOCKET = "RcvbufErrors"


@dataclass(frozen=True)
class Sender:
    """A generator of packets on a deployed target."""

    deployed: Deployed
    generator: PacketGenerator
    version: str
    seen_from: str
    """Address that the sink saw the packets come from; empty where it does not say."""
    held: dict[str, str] = field(default_factory=dict)
    """Which files the source holds already."""

    @property
    def title(self) -> str:
        return f"{self.generator.name} {self.version}"

    def deployment(self, warnings: Sequence[str]) -> DeployedTarget:
        """What the pre-flight saw."""
        source = self.deployed.component(SOURCE)
        if not self.seen_from:
            passed = "passes packets on"
        else:
            translated = "unchanged" if self.seen_from == source.address else "translated"
            passed = (
                f"passes packets on, their source address {translated}: the sink sees "
                f"{self.seen_from}, the source is {source.address}"
            )
        uncharged = [sentence for sentence in self.deployed.uncharged.values() if sentence]
        return DeployedTarget(
            self.deployed.target.name,
            self.title,
            False,
            passed,
            (*warnings, *uncharged),
        )

    async def drive(
        self,
        point: OperatingPoint,
        seconds: float,
        on_usage: OnUsage,
        watch: DriveWatch,
    ) -> Drive:
        """Send packets and hand over what was counted, on a whole number of seconds.

        Raises `LabError` where a container ends.
        """
        deployed = self.deployed
        offer = _offer(deployed, point.configuration, point.wl, math.ceil(seconds - 1e-6))
        sink = deployed.component(SINK)
        await put_files(self.generator, offer, deployed.component(SOURCE), self.held)
        hops.quieten(deployed.components)
        dropped, before = await _dropped(sink), await hops.read(deployed)
        far = await _listening(self.generator, offer, sink)
        try:
            begin_s, outcome = await driving.send(
                watch, self.generator.packet_argv(offer), offer.seconds, FINISHING_S, on_usage
            )
            if isinstance(self.generator, PairedGenerator):
                _refuse_failed(self.title, outcome)  # what the far end waits for does not come
                assert far is not None
                seen = await _finished(far, FINISHING_S + SLOWEST_END_S)
                said = outcome.stdout + outcome.stderr
                # Text of megabytes may have to be read.
                counts = await asyncio.to_thread(
                    read_pair, self.generator, offer, said, seen, begin_s
                )
                counts = _as_sent(counts, watch)
            else:  # whose parser knows its own sentence
                counts = read_counts(self.generator, offer, outcome.stdout, begin_s)
                _refuse_failed(self.title, outcome)
        except BaseException:
            if far is not None:
                far.cancel()
                await asyncio.gather(far, return_exceptions=True)
                await sink.halt()  # it holds its port
            raise
        on_the_way = (await hops.read(deployed)).since(before)
        nothing = np.zeros(0)
        empty = nothing.astype(np.int64)
        return Drive(
            begin_s,
            begin_s + offer.seconds,
            RequestRecords(nothing, nothing, nothing, nothing, empty, empty),
            watch.counters(),
            self.title,
            getattr(self.generator, "latency", "none"),
            0,
            watch.allotted,
            watch.threads,
            packets=replace(
                counts,
                dropped_by_sink=await _dropped(sink) - dropped,
                dropped_at=on_the_way.dropped,
            ),
            copies=on_the_way.copies,
            standing=watch.standing(),
            absent=watch.absent(),
            routers=tuple(c.name for c in deployed.components if c.template.passage == "router"),
        )


async def prepare(deployed: Deployed, configuration: Configuration) -> Sender:
    """Choose the generator and send a few packets. Raises `LabError` if none comes through."""
    campaign, source = deployed.campaign, deployed.component(SOURCE)
    generator, version = await _generator(deployed)
    for component in deployed.components:
        passed = component.template.role == "function" and component not in deployed.passive
        if passed and component.template.passage != "router":
            raise UsageError(
                f"{component.name} is no router and passes no packets on",
                where=f"target {deployed.target.name}",
                remedy="Chain routers with routers only, or load it with requests",
            )
    most = campaign.target_plan(deployed.target.name).primary.high
    refuse_two_clocks(generator, source, deployed.component(SINK))
    if reason := refused(campaign.load.shape, generator) or generator.unable(
        campaign.load, wanted_kpis(campaign), most
    ):
        raise TrafficError(reason, remedy="Change `load` or `kpi`")
    for key in configuration.workload:
        offers = getattr(generator, "offers", lambda name: name == "packetsize")
        name = key.removesuffix("_bytes")
        if not is_setting(key) and key != COMPETITOR and not offers(name):
            raise TrafficError(
                f"{generator.name} cannot vary {name}",
                remedy=f"Leave {name} out of the workload parameters, or use another source",
            )
    probe = _offer(deployed, configuration, 0.0, 1)
    sender = Sender(deployed, generator, version, "")
    far = await _listening(generator, probe, deployed.component(SINK))
    await put_files(generator, probe, source, sender.held)
    outcome = await run_within(source, generator.probe_argv(probe), PROBE_S)
    if outcome is None:
        raise TrafficError(
            f"{generator.name} was to send a few packets and has not ended in {PROBE_S:g} s",
            where="source",
            remedy="Run it by hand in the source's container",
        )
    text = await _finished(far, FINISHING_S + SLOWEST_END_S) if far else outcome.stdout
    arrived, seen_from = generator.seen_from(text)
    if not arrived:
        raise LabError(
            "none of the first packets came through",
            where=f"target {deployed.target.name}",
            remedy="Look at the rules in the files of its routers",
        )
    return replace(sender, seen_from=seen_from)


def refuse_two_clocks(generator: PacketGenerator, source: Component, sink: Component) -> None:
    """Raises `UsageError` where a delay from source to sink would be between two hosts' clocks."""
    apart = (source.probe is None) != (sink.probe is None)  # a probe reads what is on this host
    if apart and getattr(generator, "latency", "none") == "one-way":
        raise UsageError(
            f"{generator.name} measures from the source's clock to the sink's, and they are on "
            "different hosts",
            where=f"{source.place}, {sink.place}",
            remedy="Put both on one host, or ask for half of the round trip: load.generator "
            "d-itg-rtt",
        )


async def _generator(deployed: Deployed) -> tuple[PacketGenerator, str]:
    """The one that the campaign names, else the first that is in the source; and its version."""
    source, named = deployed.component(SOURCE), deployed.campaign.generator
    for name in (named,) if named else GENERATORS:
        generator = make("traffic", name)
        if not isinstance(generator, PacketGenerator):
            raise TrafficError(
                f"{name} sends requests, and target {deployed.target.name} is measured with "
                "packets",
                remedy=f"Name one of {', '.join(GENERATORS)} as generator, or none",
            )
        version = await run_within(source, generator.version_argv(), VERSION_S)
        if version is not None and version.exit_code == 0:
            return generator, generator.parse_version(version.stdout + version.stderr)
    raise TrafficError(
        f"{named or 'no generator of packets'} is {'not ' if named else ''}in the source's image",
        where=source.template.name,
        remedy="Use packet-source, pcap-source or itg-source as source, or install it in its "
        "Dockerfile",
    )


async def put_files(
    generator: PacketGenerator, offer: PacketOffer, source: Component, held: dict[str, str]
) -> None:
    """Bring the source what the generator reads there, unless it holds it already."""
    if not isinstance(generator, PairedGenerator):
        return
    # Numpy and Scapy work on megabytes.
    key, files = await asyncio.to_thread(generator.files, offer)
    if files and held.get(generator.name) != key:
        await source.put(files)
        held[generator.name] = key


async def _listening(
    generator: PacketGenerator, offer: PacketOffer, sink: Component
) -> asyncio.Task[Outcome] | None:
    """The far end, started and listening; None where the sink serves by itself."""
    if not isinstance(generator, PairedGenerator):
        return None
    deadline = time.monotonic() + LISTENING_S
    while True:
        # It ends at once where a connection of the load before still has its port: behind functions
        # that are overloaded its end arrives late.
        program = await sink.begin(generator.far_argv(offer))
        running = asyncio.create_task(program.finish())
        while not running.done() and time.monotonic() < deadline:
            ready = await run_within(
                sink, generator.far_ready_argv(offer), deadline - time.monotonic()
            )
            if ready is not None and ready.exit_code == 0:
                return running
            await asyncio.sleep(POLL_S)
        if time.monotonic() >= deadline:
            break
        await asyncio.sleep(BEGIN_AGAIN_S)
    said = running.result().said if running.done() else "nothing"
    running.cancel()
    raise TrafficError(
        f"the far end of {generator.name} does not listen: it said {said}",
        where=f"{sink.place} ({sink.template.name})",
        remedy="Use the sink that fits the source: packet-sink, counting-sink or itg-sink",
    )


async def _finished(far: asyncio.Task[Outcome], latest_s: float) -> str:
    try:
        async with asyncio.timeout(latest_s):
            outcome = await asyncio.shield(far)
    except TimeoutError:
        raise TrafficError(
            f"its far end has not ended {latest_s:g} s after the load", where="sink"
        ) from None
    if outcome.exit_code != 0:
        raise TrafficError(f"its far end failed: {outcome.said}", where="sink")
    return outcome.stdout


def _refuse_failed(title: str, outcome: Outcome) -> None:
    """Raises `TrafficError` where a sender says by its exit code that it failed."""
    if outcome.exit_code != 0:
        raise TrafficError(
            f"{title} ended with exit code {outcome.exit_code}: {outcome.said}",
            where="source",
            remedy="Run it by hand in the source's container",
        )


def _as_sent(counts: PacketCounts, watch: DriveWatch) -> PacketCounts:
    """With what the source's interface counted instead of what the tool says, where it is here."""
    if not watch.local or counts.exact is None:
        return counts
    instants = watch.instants
    at = [instant.at_s for instant in instants]
    sent = [instant.components[SOURCE].tx_packets for instant in instants]
    begin, end = (np.interp(edges, at, sent) for edges in (counts.start_s, counts.end_s))
    source = next(component for component in watch.components if component.name == SOURCE)
    assert source.probe is not None
    total = source.probe.read_network().tx_packets - sent[0]
    exact = (int(total), counts.exact[1])
    return replace(counts, sent=end - begin, exact=exact)


def _offer(
    deployed: Deployed, configuration: Configuration, rate_pps: float, seconds: int
) -> PacketOffer:
    host, port = deployed.entry.endpoint
    size = configuration.workload.get(PACKET_SIZES, DEFAULT_SIZE)
    source, entry = deployed.component(SOURCE), deployed.entry
    path = PacketPath(source.mac, source.address, entry.mac, entry.address)
    flows = int(configuration.parameter(FLOWS, 1))
    load, mix = deployed.campaign.load, isinstance(size, str)
    return PacketOffer(
        host,
        port,
        rate_pps,
        round(sum(IMIX) / len(IMIX)) if isinstance(size, str) else int(size),
        seconds,
        IMIX if mix else (),
        flows,
        path,
        load.arrivals,
        load.sizes,
        load.shaped(configuration),
    )


async def _dropped(sink: Component) -> int:
    return parse_dropped((await sink.run(SOCKET_COUNTS)).stdout)


def parse_dropped(snmp: str) -> int:
    """Datagrams that found their socket full, in `/proc/net/snmp`; 0 where it does not tell."""
    lines = [line.split() for line in snmp.splitlines() if line.startswith("Udp:")]
    if len(lines) < 2:
        return 0
    return int(dict(zip(*lines[:2], strict=True)).get(FULL_SOCKET, 0))
