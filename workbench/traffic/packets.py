"""Packets instead of requests: what is offered, what is counted, who can send them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from workbench.domain.parameters import LoadModel
from workbench.measuring.records import PacketCounts


@dataclass(frozen=True)
class PacketOffer:
    """UDP packets at a constant rate, in one flow.

    Attributes
    ----------
    host, port : where the source sends them.
    rate_pps : packets/s.
    size_bytes : payload of a packet; the IP packet is 28 bytes longer.
    seconds : whole seconds.
    """

    host: str
    port: int
    rate_pps: float
    size_bytes: int
    seconds: int


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
