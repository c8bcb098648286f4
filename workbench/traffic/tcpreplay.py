"""tcpreplay: numbered packets of many flows and sizes from a file, counted one by one at the sink.

tcpreplay 4.4.3 sends raw frames from one thread and has no idea of what became of them, so nothing
that it says of rates is read: what was really sent is what the source's interface counted. With its
default timer it spins between packets (27 us of CPU for each at 20,000/s, 12 us with `nano`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.domain.parameters import LoadModel
from workbench.measuring.records import PacketCounts
from workbench.traffic import pcap
from workbench.traffic.packets import PacketOffer, varied

FILE = "/var/tmp/packets.pcap"  # noqa: S108 - in the source's own container
INTERFACE = "eth0"
QUIET_S = 1.0
"""After which the sink takes the drive for ended."""
STARTING_S = 15.0
"""That a drive may take besides its load: a file of 64 MB is read first."""
SHORTEST_S = 0.1
"""An interval below that is no batch."""
PROBES = 10
PROBE_RATE = 1000
_SENT = re.compile(r"Actual: (\d+) packets")


class Tcpreplay:
    """Speaks to tcpreplay 4.4 and to `count` of templates/vnfs/counting-sink."""

    name = "tcpreplay"

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        del most
        if why := varied(self.name, load):
            return why
        lacking = sorted({*kpis} - {"loss_pct", "throughput_pps", "goodput_mbps"})
        if lacking:
            return f"tcpreplay measures no {', no '.join(lacking)}: its packets carry no time"
        return None

    def offers(self, parameter: str) -> bool:
        return parameter in ("packetsize", "flows")

    def version_argv(self) -> tuple[str, ...]:
        return ("tcpreplay", "--version")

    def parse_version(self, output: str) -> str:
        found = re.search(r"tcpreplay version: (\S+)", output)
        return found[1] if found else "unknown"

    def files(self, offer: PacketOffer) -> tuple[str, Mapping[str, bytes]]:
        if offer.path is None:
            raise TrafficError("the addresses on the way are not known", where="source")
        sizes = offer.sizes or (offer.size_bytes,)
        count = max(PROBES, math.ceil(offer.rate_pps * offer.seconds))
        content, held = pcap.numbered(offer.path, offer.port, sizes, offer.flows, count)
        return f"{offer.path} {offer.port} {sizes} {offer.flows} {held}", {FILE: content}

    def packet_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        return _argv(offer.rate_pps, math.ceil(offer.rate_pps * offer.seconds))

    def probe_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        del offer
        return _argv(PROBE_RATE, PROBES)

    def seen_from(self, output: str) -> tuple[int, str]:
        return int(_counted(output)["received"]), ""

    def far_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        quiet_s = max(QUIET_S, 3.0 / offer.rate_pps if offer.rate_pps else 0.0)
        most_s = offer.seconds + STARTING_S
        return ("count", str(offer.port), f"{quiet_s:g}", f"{most_s:g}")

    def far_ready_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        return ("grep", "-q", f":{offer.port:04X} ", "/proc/net/udp")

    def parse_packets(self, offer: PacketOffer, output: str, begin_s: float) -> PacketCounts:
        return self.parse_pair(offer, "", output, begin_s)

    def parse_pair(
        self, offer: PacketOffer, output: str, far_output: str, begin_s: float
    ) -> PacketCounts:
        counted = _counted(far_output)
        every = float(counted["every_s"])
        rows = np.array(counted["rows"], dtype=float).reshape(-1, 2)
        # On one host both clocks are the kernel's own; else the first packet began both.
        first = float(counted["begun_s"])
        begin = first if abs(first - begin_s) < offer.seconds else begin_s
        missing = round(offer.seconds / every) - len(rows)
        rate = _sent(output) / offer.seconds if output else offer.rate_pps
        if missing > 0:  # nothing arrived any more: only the source knows how many these were
            rows = np.vstack([rows, np.tile([rate * every, 0.0], (missing, 1))])
        start = begin + every * np.arange(len(rows))
        end = np.minimum(start + every, begin + max(offer.seconds, len(rows) * every - every))
        whole = end - start >= SHORTEST_S
        rows, start, end = rows[whole], start[whole], end[whole]
        if not len(rows):
            raise TrafficError("the sink counted in no interval", remedy="Drive it for longer")
        return PacketCounts(
            start_s=start,
            end_s=end,
            planned=offer.rate_pps * (end - start),
            sent=rate * (end - start),
            numbered=rows[:, 0],
            received=rows[:, 1],
            lost=np.clip(rows[:, 0] - rows[:, 1], 0.0, None),
            jitter_s=np.full(len(rows), np.nan),
            out_of_order=int(counted["late"]),
            size_bytes=offer.size_bytes,
            duplicates=int(counted["doubled"]),
            exact=(_sent(output), int(counted["received"])),
        )


def _argv(rate_pps: float, count: int) -> tuple[str, ...]:
    return (
        *("tcpreplay", "--quiet", f"--intf1={INTERFACE}", "--preload-pcap", "--timer=nano"),
        *("--loop=0", f"--limit={count}", f"--pps={rate_pps:.3f}", FILE),
    )


def _sent(output: str) -> int:
    found = _SENT.search(output)
    if found is None:
        raise TrafficError(
            f"tcpreplay does not say what it sent: {output[-200:]!r}", where="source"
        )
    return int(found[1])


def _counted(output: str) -> dict[str, Any]:
    try:
        counted = json.loads(output)
        missing = {"received", "rows", "begun_s", "every_s", "late", "doubled"} - counted.keys()
    except (ValueError, AttributeError):
        missing = {"JSON"}
        counted = {}
    if missing:
        raise TrafficError(
            f"the counts of the sink have no {', no '.join(sorted(missing))}: {output[-200:]!r}",
            where="sink",
            remedy="Use counting-sink as sink",
        )
    assert isinstance(counted, dict)
    return counted
