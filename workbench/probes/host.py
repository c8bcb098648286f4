"""Counters and facts of the host itself, from `/proc` and `/sys`."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from workbench.probes.process import TICK_S

SIOCETHTOOL = 0x8946
ETHTOOL_COMMANDS = {"tx_checksum": 0x16, "tso": 0x1E, "gso": 0x23, "gro": 0x2B}
"""Numbers of the kernel's interface (linux/sockios.h, linux/ethtool.h)."""

NETFILTER = Path("/proc/sys/net/netfilter")
SOFTIRQ_FIELD = 7
"""Word of the `cpu` line of `/proc/stat`."""
IDLE_FIELDS = (4, 5)
"""Words of idle and iowait in the `cpu` line of `/proc/stat`."""


def parse_busy_s(proc_stat: str, uptime_s: float) -> float:
    """CPU seconds that all cores together spent not idle, stolen ones included.

    Taken as what is left beside the idle time, which the kernel clocks. Its counts of busy time
    are samples at its own ticks, and work that a timer starts just after each tick is never seen:
    0.02 cores were counted where the containers used 0.45.
    """
    lines = proc_stat.splitlines()
    total = lines[0].split()
    cores = sum(1 for line in lines if line.startswith("cpu")) - 1
    return cores * uptime_s - sum(int(total[place]) for place in IDLE_FIELDS) * TICK_S


def parse_softirq_s(proc_stat: str) -> float:
    """CPU seconds that all cores together spent on deferred kernel work, mostly the network's.

    Counted at the kernel's ticks, in whoever's time it ran; a kernel without `IRQ_TIME_ACCOUNTING`
    charges it to whoever that was.
    """
    return int(proc_stat.splitlines()[0].split()[SOFTIRQ_FIELD]) * TICK_S


def read_softirq_s() -> float:
    return parse_softirq_s(Path("/proc/stat").read_text())


def read_stolen_s() -> float:
    """CPU seconds that a hypervisor has given to others since this host started."""
    return parse_stat(Path("/proc/stat").read_text(), time.monotonic())["stolen_s", ""]


def read_busy_s() -> float:
    return parse_busy_s(Path("/proc/stat").read_text(), time.monotonic())


def read_conntrack() -> tuple[int, int]:
    """Entries and size of the connection tracking table; (0, 0) where there is none."""
    used, limit = NETFILTER / "nf_conntrack_count", NETFILTER / "nf_conntrack_max"
    if not used.exists():
        return (0, 0)
    return int(used.read_text()), int(limit.read_text())


def parse_cpu_model(cpuinfo: str) -> str:
    """The processor's name in `/proc/cpuinfo`; empty where it tells none (some ARM)."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in {"model name", "Model", "Hardware"}:
            return value.strip()
    return ""


def read_cpu_model() -> str:
    return parse_cpu_model(Path("/proc/cpuinfo").read_text())


def read_details() -> Mapping[str, str]:
    """What else moves figures on this host: governor, turbo, clock source, conntrack table."""
    files = {
        "governor": Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "no_turbo": Path("/sys/devices/system/cpu/intel_pstate/no_turbo"),
        "smt": Path("/sys/devices/system/cpu/smt/active"),
        "clocksource": Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "conntrack_max": NETFILTER / "nf_conntrack_max",
        "host_tcp_congestion": Path("/proc/sys/net/ipv4/tcp_congestion_control"),
    }
    found = {name: file.read_text().strip() for name, file in files.items() if file.exists()}
    offloads = {f"docker0_{name}": state for name, state in read_offloads("docker0").items()}
    load = " ".join(f"{load:.2f}" for load in os.getloadavg())
    return {**found, **offloads, "load_average": load}


def read_offloads(interface: str) -> dict[str, str]:
    """Offload settings of a network interface, `on` or `off`; none where it does not exist."""
    states = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for name, command in ETHTOOL_COMMANDS.items():
            value = array.array("I", [command, 0])
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(any_socket, SIOCETHTOOL, request)
            except OSError:
                continue
            states[name] = "on" if value[1] else "off"
    return states


CORE_FIELDS = {"softirq_s": SOFTIRQ_FIELD, "interrupt_s": 6, "stolen_s": 8}
"""Words of the `cpu` line of `/proc/stat`, by our names."""
KINDS = ("NET_RX", "NET_TX", "TIMER", "SCHED", "RCU", "BLOCK")
"""Of deferred work, as the kernel names it; the others count next to nothing."""
RECEIVED = "NET_RX"
MOST_CORES = 64
"""Cores that are told one by one."""


def parse_stat(proc_stat: str, uptime_s: float) -> dict[tuple[str, str], float]:
    """Times of all cores together, and what each core was busy, by name and detail."""
    lines = [line.split() for line in proc_stat.splitlines() if line.startswith("cpu")]
    found = {(name, ""): int(lines[0][place]) * TICK_S for name, place in CORE_FIELDS.items()}
    for core in lines[1 : MOST_CORES + 1]:
        idle_s = sum(int(core[place]) for place in IDLE_FIELDS) * TICK_S
        found["core_busy_s", core[0]] = uptime_s - idle_s
    return found


def parse_softirqs(text: str) -> dict[tuple[str, str], float]:
    """Deferred work by kind, and for received packets by core, in `/proc/softirqs`."""
    cores, *rows = (line.split() for line in text.splitlines())
    found: dict[tuple[str, str], float] = {}
    for kind, *counts in rows:
        name = kind.rstrip(":")
        if name not in KINDS:
            continue
        found["softirqs", name] = float(sum(map(int, counts)))
        if name == RECEIVED:
            for core, count in zip(cores[:MOST_CORES], counts, strict=False):
                found["core_softirqs", core.lower()] = float(count)
    return found


def parse_pressure(text: str) -> float:
    """Seconds in which some task waited, in a file of pressure stall information."""
    for line in text.splitlines():
        if line.startswith("some "):
            return int(line.rpartition("total=")[2]) * 1e-6
    raise ValueError("no line of 'some' in a file of pressure stall information")
