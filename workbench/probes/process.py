"""Counters of processes and threads, from `/proc/<pid>`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
ENDED = "ZX"
"""States of a process that does nothing any more."""
START_FIELD = 22
"""Position of the start time in `/proc/<pid>/stat`, counted from 1 as in proc(5)."""


@dataclass(frozen=True)
class NetworkCounters:
    """Sums over all interfaces but the loopback."""

    rx_bytes: float = 0.0
    rx_packets: float = 0.0
    tx_bytes: float = 0.0
    tx_packets: float = 0.0
    rx_drops: float = 0.0
    tx_drops: float = 0.0


def parse_net_dev(text: str) -> NetworkCounters:
    """`/proc/<pid>/net/dev`: the interfaces of the process's network namespace."""
    rows = []
    for line in text.splitlines()[2:]:
        interface, _, figures = line.partition(":")
        if interface.strip() != "lo":
            values = [float(value) for value in figures.split()]
            rows.append((*(values[place] for place in (0, 1, 8, 9, 3, 11)),))
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


def parse_state(stat: str) -> str:
    """The letter of what the process does: R runs, S sleeps, T was stopped, Z has ended, ..."""
    return _after_name(stat)[0]


def read_network(pid: int) -> NetworkCounters:
    return parse_net_dev((PROC / str(pid) / "net" / "dev").read_text())


def read_start_s(pid: int) -> float:
    return parse_start_s((PROC / str(pid) / "stat").read_text())


def started(pid: int) -> float | None:
    """When that process started, in seconds since the host did; None where there is none, or it has
    ended and nobody has asked how. Its number may be another's later."""
    try:
        stat = (PROC / str(pid) / "stat").read_text()
    except OSError:
        return None
    return None if parse_state(stat) in ENDED else parse_start_s(stat)


@dataclass(frozen=True)
class ThreadCounters:
    """Of one thread so far; None where this kernel does not tell."""

    cpu_s: float
    wait_s: float | None = None
    """Ready to run and not running: others had the cores, or a quota was used up."""
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None


def read_threads(thread_ids: Iterable[int], *, switches: bool = False) -> dict[int, ThreadCounters]:
    """Counters by thread id; threads that ended meanwhile are left out.

    `schedstat` counts nanoseconds; kernels without it fall back to the ticks of `stat`.
    """
    found: dict[int, ThreadCounters] = {}
    for thread in thread_ids:
        folder = f"{PROC}/{thread}"
        try:
            cpu_s, wait_s = _schedstat(folder)
            counts = parse_switches(_text(f"{folder}/status")) if switches else (None, None)
        except (FileNotFoundError, ProcessLookupError):
            continue
        found[thread] = ThreadCounters(cpu_s, wait_s, *counts)
    return found


def _schedstat(folder: str) -> tuple[float, float | None]:
    try:
        ran, waited, *_ = _text(f"{folder}/schedstat").split()
    except FileNotFoundError:  # also where the thread has ended: then the next one says so
        return parse_stat_cpu_s(_text(f"{folder}/stat")), None
    return int(ran) * 1e-9, int(waited) * 1e-9


def _text(path: str) -> str:
    # A path that is a text and no `Path`: there may be hundreds of threads, once a second.
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read()


def parse_switches(status: str) -> tuple[int | None, int | None]:
    """Voluntary and other context switches in `/proc/<pid>/status`; None where it has none."""
    lines = (line.split(":") for line in status.splitlines()[-4:])
    counts = {pair[0]: int(pair[1]) for pair in lines if pair[0].endswith("_ctxt_switches")}
    return counts.get("voluntary_ctxt_switches"), counts.get("nonvoluntary_ctxt_switches")
