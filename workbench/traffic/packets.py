"""Packets instead of requests: what is offered, what is counted, who can send them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from workbench.domain.load_shapes import LoadShape
from workbench.domain.parameters import Arrivals, LoadModel, SizeSpread
from workbench.measuring.records import PacketCounts


@dataclass(frozen=True)
class PacketPath:
    """Addresses of the source and of the first hop."""

    source_mac: str
    source_address: str
    hop_mac: str
    hop_address: str


@dataclass(frozen=True)
class PacketOffer:
    """Packets at a rate.

    Attributes
    ----------
    host, port : where the source sends them.
    rate_pps : packets/s.
    size_bytes : payload of a packet; the IP packet is 28 bytes longer.
    seconds : whole seconds.
    sizes : payloads that packets have in turn; empty: all have `size_bytes`, which is their mean
        else.
    flows : source ports that packets have in turn.
    path : None where the lab does not know it.
    gap_spread, size_spread : how gaps and sizes spread about their means.
    shape : how the rate varies about `rate_pps`; None: it does not.
    """

    host: str
    port: int
    rate_pps: float
    size_bytes: int
    seconds: int
    sizes: tuple[int, ...] = ()
    flows: int = 1
    path: PacketPath | None = None
    gap_spread: Arrivals = "constant"
    size_spread: SizeSpread = "constant"
    shape: LoadShape | None = None


def varied(name: str, load: LoadModel) -> str | None:
    """Why a generator that sends packets of one size at a constant rate cannot offer a load."""
    if load.unit != "packets":
        return f"{name} sends packets, which are not answered: it cannot measure requests"
    if load.arrivals != "constant":
        return f"{name} sends at a constant rate, not with {load.arrivals} arrivals"
    if load.sizes != "constant":
        return f"{name} draws no sizes, and the campaign asks for {load.sizes} ones"
    return None


@runtime_checkable
class PacketGenerator(Protocol):
    """A program beside the source that sends packets, and whose far end counts them.

    Like a `Generator` it starts nothing itself.
    """

    name: str

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        """A sentence why it cannot offer this load or state these KPIs, or None."""
        ...

    def version_argv(self) -> tuple[str, ...]: ...

    def parse_version(self, output: str) -> str: ...

    def packet_argv(self, offer: PacketOffer) -> tuple[str, ...]: ...

    def probe_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        """The same with a handful of packets: does any come through?"""
        ...

    def seen_from(self, output: str) -> tuple[int, str]:
        """Of the probe: packets that arrived, and the address that the far end saw them come from.

        Raises `TrafficError`.
        """
        ...

    def parse_packets(self, offer: PacketOffer, output: str, begin_s: float) -> PacketCounts:
        """Counts on the lab's clock. Raises `TrafficError` naming what is wrong with them."""
        ...


@runtime_checkable
class PairedGenerator(PacketGenerator, Protocol):
    """A generator of packets whose far end the lab starts in the sink for each drive.

    One that stamps packets says by `latency` what its delays are (`KpiDefinition`); `one-way` ones
    need source and sink on one host.
    """

    def offers(self, parameter: str) -> bool:
        """Whether it can vary a workload parameter (`flows`, `packetsize`)."""
        ...

    def files(self, offer: PacketOffer) -> tuple[str, Mapping[str, bytes]]:
        """What it reads beside the source, by path, and a key that changes with its content."""
        ...

    def far_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        """The program in the sink; it ends by itself some time after the last packet."""
        ...

    def far_ready_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        """Run in the sink: its exit code says whether the program listens."""
        ...

    def parse_pair(
        self, offer: PacketOffer, output: str, far_output: str, begin_s: float
    ) -> PacketCounts:
        """Counts on the lab's clock, from what both ends wrote. Raises `TrafficError`."""
        ...
