"""iperf3: UDP packets at a constant rate, counted at the far end by their sequence numbers.

What its figures mean was read in its source (3.12, `iperf_udp.c`, `iperf_api.c`) and checked
against a real server:

- One thread sends. Its pacing wakes every millisecond and sends what is due since then in one
  burst, so 50,000 packets/s are bursts of 50.
- The server writes, for each interval, the bytes that it received, and how many packets the
  sequence numbers say were sent (`packets`) and are missing (`lost_packets`). A packet that is
  overtaken counts as lost first, and is taken back and counted as out of order when it arrives.
- Jitter is the smoothed one of RFC 1889 (A.8), as it stood at the end of an interval.
- What is lost at the very end leaves no gap in the numbers: the client's own count of what it
  sent is the only one that knows of it.
- Client and server both begin their intervals when the test begins, on the clock of one host.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.domain.errors import TrafficError
from workbench.domain.kpis import of
from workbench.domain.parameters import LoadModel
from workbench.measuring.records import Floats, PacketCounts
from workbench.traffic.packets import PacketOffer, varied

INTERVAL_S = 0.5
"""Of client and server alike (the sink's template starts the server with it)."""
SHORTEST_S = 0.1
"""What the server adds behind the last whole interval is a rest of milliseconds; it is left out."""
SMALLEST, LARGEST = 16, 65_507
"""Bytes of payload: iperf3's own header, and what UDP can carry."""
PROBES = 10
PROBE_RATE = 1000
CONNECT_TIMEOUT_MS = 5000
SOCKET_BYTES = 212_992
"""The most that Linux grants unless told otherwise; it doubles it, and so the default."""


class Iperf3:
    """Speaks to iperf3 3.12 and later."""

    name = "iperf3"

    def unable(self, load: LoadModel, kpis: Collection[str], most: float) -> str | None:
        del most  # where its thread is too slow, its own counters say so
        if why := varied(self.name, load):
            return why
        delays = sorted(kpi for kpi in kpis if of(kpi).kind == "response_time")
        if delays:
            return f"iperf3 measures no delay, and the campaign asks for {', '.join(delays)}"
        return None

    def version_argv(self) -> tuple[str, ...]:
        return ("iperf3", "--version")

    def parse_version(self, output: str) -> str:
        words = output.split()
        return words[1] if len(words) > 1 else "unknown"

    def packet_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        _check_size(offer.size_bytes)
        return (
            *_common(offer, offer.rate_pps),
            *("--time", str(offer.seconds), "--interval", f"{INTERVAL_S:g}"),
        )

    def probe_argv(self, offer: PacketOffer) -> tuple[str, ...]:
        _check_size(offer.size_bytes)
        return (*_common(offer, PROBE_RATE), "--blockcount", str(PROBES))

    def seen_from(self, output: str) -> tuple[int, str]:
        server = _server(_report(output))
        try:
            total = server["end"]["sum"]
            arrived = int(total["packets"]) - int(total["lost_packets"])
            return arrived, str(server["start"]["connected"][0]["remote_host"])
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise _unreadable(output) from error

    def parse_packets(self, offer: PacketOffer, output: str, begin_s: float) -> PacketCounts:
        report = _report(output)
        server = _server(report)
        try:
            sent = _rows(report["intervals"], "packets")
            seen = _rows(server["intervals"], "packets", "bytes", "lost_packets", "jitter_ms")
            out_of_order = int(report["end"]["streams"][0]["udp"]["out_of_order"])
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise _unreadable(output) from error
        rows = min(len(sent), len(seen))
        if not rows:
            raise TrafficError(
                f"iperf3 counted in no interval of {INTERVAL_S:g} s",
                remedy="Drive the point for longer",
            )
        sent, seen = sent[:rows], seen[:rows]
        # Up to here the numbers tell of what was sent; where nothing arrived, only the client can.
        numbered = np.where(seen[:, 2] > 0, seen[:, 2], sent[:, 2])
        received = seen[:, 3] / offer.size_bytes
        lost = np.where(seen[:, 2] > 0, seen[:, 4], sent[:, 2])
        return PacketCounts(
            start_s=begin_s + seen[:, 0],
            end_s=begin_s + seen[:, 1],
            planned=offer.rate_pps * (sent[:, 1] - sent[:, 0]),
            sent=sent[:, 2],
            numbered=numbered,
            received=received,
            lost=np.clip(lost, 0, numbered),
            jitter_s=seen[:, 5] / 1e3,
            out_of_order=out_of_order,
            size_bytes=offer.size_bytes,
        )


def _common(offer: PacketOffer, rate_pps: float) -> tuple[str, ...]:
    bits = round(rate_pps * offer.size_bytes * 8)
    return (
        *("iperf3", "--client", offer.host, "--port", str(offer.port), "--udp", "--json"),
        *("--connect-timeout", str(CONNECT_TIMEOUT_MS), "--get-server-output"),
        *("--window", str(SOCKET_BYTES)),
        *("--bitrate", str(bits), "--length", str(offer.size_bytes)),
    )


def _check_size(size_bytes: int) -> None:
    if not SMALLEST <= size_bytes <= LARGEST:
        raise TrafficError(
            f"a packet of {size_bytes} bytes is none that iperf3 can send",
            remedy=f"Choose a packetsize of {SMALLEST} to {LARGEST} bytes",
        )


def _report(output: str) -> Mapping[str, Any]:
    try:
        report = json.loads(output)
        failure = report.get("error")
    except (ValueError, AttributeError):
        raise _unreadable(output) from None
    if failure:
        raise TrafficError(
            f"iperf3 says: {failure}",
            where="source",
            remedy="Look whether the sink runs and the router's rules lead to it",
        )
    assert isinstance(report, dict)
    return report


def _server(report: Mapping[str, Any]) -> Mapping[str, Any]:
    server = report.get("server_output_json")
    if not isinstance(server, dict):
        raise TrafficError(
            "iperf3's server did not hand over what it counted",
            where="sink",
            remedy="Start it with --json, as templates/vnfs/packet-sink does",
        )
    return server


def _rows(intervals: Sequence[Mapping[str, Any]], *fields: str) -> Floats:
    """A row per interval of start, end and the fields."""
    sums = [interval["sum"] for interval in intervals]
    rows = [[float(s[field]) for field in ("start", "end", *fields)] for s in sums]
    table: Floats = np.array(rows, dtype=float).reshape(-1, 2 + len(fields))
    whole: Floats = table[table[:, 1] - table[:, 0] >= SHORTEST_S]
    return whole


def _unreadable(output: str) -> TrafficError:
    return TrafficError(
        f"iperf3's output cannot be read: {output[-200:]!r}",
        remedy="Check that source and sink have iperf3 3.12 or later",
    )
