"""Counters of TCP in one network namespace, from `/proc/<pid>/net`."""

from __future__ import annotations

from collections.abc import Mapping

EXTENDED: Mapping[str, str] = {
    "delayed_acks": "DelayedACKs",
    "tcp_timeouts": "TCPTimeouts",
    "zero_windows": "TCPToZeroWindowAdv",
    "listen_overflows": "ListenOverflows",
    "listen_drops": "ListenDrops",
    "backlog_drops": "TCPBacklogDrop",
}
"""Our names of what `netstat` counts under `TcpExt`."""
PLAIN: Mapping[str, str] = {
    "segments_sent": "OutSegs",
    "retransmitted": "RetransSegs",
    "connections_opened": "ActiveOpens",
    "connections_accepted": "PassiveOpens",
    "connections_failed": "AttemptFails",
    "established": "CurrEstab",
}
"""Our names of what `snmp` counts under `Tcp`."""


def parse_pairs(text: str, group: str) -> dict[str, int]:
    """The counters of a group, `TcpExt` or `Tcp`: a line of names and a line of figures."""
    lines = [line.split() for line in text.splitlines() if line.startswith(f"{group}:")]
    if len(lines) < 2:
        return {}
    names, figures = lines[0][1:], lines[1][1:]
    return {name: int(figure) for name, figure in zip(names, figures, strict=False)}


def parse_netstat(text: str) -> dict[str, float]:
    """What `/proc/<pid>/net/netstat` says; a counter that this kernel lacks is left out."""
    return _named(parse_pairs(text, "TcpExt"), EXTENDED)


def parse_snmp(text: str) -> dict[str, float]:
    """What `/proc/<pid>/net/snmp` says of TCP."""
    return _named(parse_pairs(text, "Tcp"), PLAIN)


def parse_sockstat(text: str) -> dict[str, float]:
    """Sockets in TIME_WAIT in `/proc/<pid>/net/sockstat`."""
    for line in text.splitlines():
        if line.startswith("TCP:"):
            words = line.split()[1:]
            counts = dict(zip(words[::2], words[1::2], strict=False))
            return {"time_wait": float(counts["tw"])} if "tw" in counts else {}
    return {}


def _named(found: Mapping[str, int], names: Mapping[str, str]) -> dict[str, float]:
    return {ours: float(found[theirs]) for ours, theirs in names.items() if theirs in found}
