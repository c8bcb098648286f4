"""Counters of processes and threads, from `/proc/<pid>`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
START_FIELD = 22
"""Position of the start time in `/proc/<pid>/stat`, counted from 1 as in proc(5)."""


@dataclass(frozen=True)
class NetworkCounters:
    """Sums over all interfaces but the loopback."""

    rx_bytes: float = 0.0
    rx_packets: float = 0.0
    tx_bytes: float = 0.0
    tx_packets: float = 0.0


def parse_net_dev(text: str) -> NetworkCounters:
    """`/proc/<pid>/net/dev`: the interfaces of the process's network namespace."""
    rows = []
    for line in text.splitlines()[2:]:
        interface, _, figures = line.partition(":")
        if interface.strip() != "lo":
            values = [float(value) for value in figures.split()]
            rows.append((values[0], values[1], values[8], values[9]))
    return NetworkCounters(*(sum(column) for column in zip(*rows, strict=True)))


def _after_name(stat: str) -> list[str]:
    # The second field is the program's name in parentheses and may hold spaces and parentheses.
    return stat[stat.rindex(")") + 2 :].split()


def parse_stat_cpu_s(stat: str) -> float:
    """User and system time of `/proc/<pid>/stat`, in whole ticks of 10 ms."""
    fields = _after_name(stat)
    return (int(fields[11]) + int(fields[12])) * TICK_S


def parse_start_s(stat: str) -> float:
    """When the process started, in seconds since the host did; its ticks are 10 ms long."""
    return int(_after_name(stat)[START_FIELD - 3]) * TICK_S


def read_network(pid: int) -> NetworkCounters:
    return parse_net_dev((PROC / str(pid) / "net" / "dev").read_text())


def read_start_s(pid: int) -> float:
    return parse_start_s((PROC / str(pid) / "stat").read_text())


def read_threads(thread_ids: Iterable[int]) -> dict[int, float]:
    """CPU seconds by thread id; threads that ended meanwhile are left out.

    `schedstat` counts nanoseconds; kernels without it fall back to the ticks of `stat`.
    """
    used: dict[int, float] = {}
    for thread in thread_ids:
        folder = PROC / str(thread)
        try:
            schedstat = folder / "schedstat"
            if schedstat.exists():
                used[thread] = int(schedstat.read_text().split()[0]) * 1e-9
            else:
                used[thread] = parse_stat_cpu_s((folder / "stat").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return used
