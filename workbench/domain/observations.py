"""What is seen of a host, its functions and their connections beside usage: names, units, layers.

One catalogue (`OBSERVABLES`) names every counter that may stand as evidence. Who collects, stores,
shows or judges one takes its name, unit and meaning from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Layer = Literal["cpu", "memory", "disk", "tcp", "hop", "kernel", "host", "workbench", "load"]
Kind = Literal["amount", "level"]
"""`amount`: what came in a window, of a counter that grows; `level`: the mean of what stood."""

CPU_COUNTS = "schedstat, which kernels have with CONFIG_SCHED_INFO"
CORE_TIMES = "/proc/stat of this host (its first 64 cores), not a remote engine"
TCP_COUNTS = "/proc/PID/net of its network on this host, not a remote engine"
GROUP_COUNTS = "its control group's files on this host, not a remote engine"
RECORDS = "a load whose rate varies, in an open loop"
COMPETED = "a campaign with competitors"
PERF_TOOL = "perf and leave to use it (`evidence: perf` of the campaign)"
TRACEFS = "tracefs and root (`evidence: trace` of the campaign)"
PMU = "perf, and a PMU, which few virtual machines have"
RESCTRL = "resctrl of the kernel, and root (`evidence: perf` of the campaign)"
PRESSURE = "pressure stall information (CONFIG_PSI) and, for a group, cgroup version 2"
MOST_STOLEN = 0.05
"""Share of a host's cores that its hypervisor may give to others before it is told (ours)."""
THROTTLED_SHARE = "throttled_share"
"""Of quota periods, those in which its own quota stopped a function: a counter to models, though it
stands in a sample's usage and not in its evidence."""


@dataclass(frozen=True)
class Observable:
    """What one name stands for.

    Attributes
    ----------
    says : what is counted, as a table shows it.
    takes : what a host must have so that it can be counted.
    """

    name: str
    unit: str
    layer: Layer
    says: str
    takes: str
    kind: Kind = "amount"


_ALL = (
    Observable("cpu_wait_s", "s", "cpu", "waiting for CPU, over all threads", CPU_COUNTS),
    Observable("voluntary_switches", "switches", "cpu", "gave its core up", CPU_COUNTS),
    Observable("involuntary_switches", "switches", "cpu", "was taken off its core", CPU_COUNTS),
    Observable("thread_cpu_s", "s", "cpu", "CPU of each of the busiest threads", CPU_COUNTS),
    Observable("threads", "threads", "cpu", "threads", CPU_COUNTS, "level"),
    Observable("threads_begun", "threads", "cpu", "threads that came meanwhile", CPU_COUNTS),
    Observable("others_on_cores_s", "s", "cpu", "CPU of others on its cores", CORE_TIMES),
    Observable("pressure_cpu_s", "s", "cpu", "some thread waited for CPU", PRESSURE),
    Observable("pressure_memory_s", "s", "memory", "some thread waited for memory", PRESSURE),
    Observable("pressure_io_s", "s", "disk", "some thread waited for a disk", PRESSURE),
    Observable("page_faults", "faults", "memory", "page faults", GROUP_COUNTS),
    Observable("major_faults", "faults", "memory", "page faults that read a disk", GROUP_COUNTS),
    Observable("limit_hits", "hits", "memory", "memory reclaimed at its limit", GROUP_COUNTS),
    Observable("oom_kills", "processes", "memory", "ended for lack of memory", GROUP_COUNTS),
    Observable("disk_bytes", "bytes", "disk", "read from and written to disks", GROUP_COUNTS),
    Observable("disk_operations", "operations", "disk", "disk operations", GROUP_COUNTS),
    Observable("delayed_acks", "segments", "tcp", "acknowledged late", TCP_COUNTS),
    Observable("retransmitted", "segments", "tcp", "sent again", TCP_COUNTS),
    Observable("tcp_timeouts", "time-outs", "tcp", "retransmission time-outs", TCP_COUNTS),
    Observable("segments_sent", "segments", "tcp", "sent, before a link joins them", TCP_COUNTS),
    Observable("zero_windows", "times", "tcp", "its receive window closed", TCP_COUNTS),
    Observable("listen_overflows", "connections", "tcp", "accept queue full", TCP_COUNTS),
    Observable("listen_drops", "connections", "tcp", "refused by its socket", TCP_COUNTS),
    Observable("backlog_drops", "segments", "tcp", "dropped, socket busy and full", TCP_COUNTS),
    Observable("connections_opened", "connections", "tcp", "opened by it", TCP_COUNTS),
    Observable("connections_accepted", "connections", "tcp", "opened to it", TCP_COUNTS),
    Observable("connections_failed", "connections", "tcp", "not opened", TCP_COUNTS),
    Observable("established", "connections", "tcp", "established", TCP_COUNTS, "level"),
    Observable("time_wait", "sockets", "tcp", "in TIME_WAIT", TCP_COUNTS, "level"),
    Observable("rx_packets", "packets", "hop", "packets in", TCP_COUNTS),
    Observable("tx_packets", "packets", "hop", "packets out", TCP_COUNTS),
    Observable("rx_bytes", "bytes", "hop", "bytes in", TCP_COUNTS),
    Observable("tx_bytes", "bytes", "hop", "bytes out", TCP_COUNTS),
    Observable("branch_share", "%", "hop", "of the traffic that was split", "a target that splits"),
    Observable("rx_drops", "packets", "hop", "dropped as they came", TCP_COUNTS),
    Observable("tx_drops", "packets", "hop", "dropped as they left", TCP_COUNTS),
    Observable("softirqs", "times", "kernel", "deferred work, by kind", "/proc/softirqs"),
    Observable("core_softirqs", "times", "kernel", "received packets, by core", "/proc/softirqs"),
    Observable("softirq_s", "s", "kernel", "CPU of deferred work", "/proc/stat"),
    Observable("interrupt_s", "s", "kernel", "CPU of interrupts", "/proc/stat"),
    Observable("core_busy_s", "s", "host", "not idle, by core", "/proc/stat"),
    Observable("stolen_s", "s", "host", "CPU taken by the hypervisor", "/proc/stat"),
    Observable("conntrack_used", "entries", "kernel", "tracked connections", "conntrack", "level"),
    Observable("conntrack_limit", "entries", "kernel", "room for them", "conntrack", "level"),
    Observable("others_cores", "cores", "host", "who is no part of the lab", "/proc", "level"),
    Observable("burner_cores", "cores", "host", "the busiest of these", "/proc", "level"),
    Observable("collecting_cores", "cores", "workbench", "collecting all this", "/proc", "level"),
    Observable("perf_task_s", "s", "cpu", "perf: on a core", PERF_TOOL),
    Observable("perf_switches", "switches", "cpu", "perf: context switches", PERF_TOOL),
    Observable("perf_migrations", "moves", "cpu", "perf: moved to another core", PERF_TOOL),
    Observable("perf_wakeups", "times", "cpu", "perf: woke a thread", PERF_TOOL),
    Observable("perf_softirqs", "times", "cpu", "perf: softirqs in its turns", PERF_TOOL),
    Observable("perf_minor_faults", "faults", "memory", "perf: faults without a disk", PERF_TOOL),
    Observable("perf_major_faults", "faults", "memory", "perf: faults that read a disk", PERF_TOOL),
    Observable("perf_alignment_faults", "faults", "memory", "perf: alignment faults", PERF_TOOL),
    Observable("perf_emulation_faults", "faults", "memory", "perf: emulation faults", PERF_TOOL),
    Observable("perf_sent", "packets", "hop", "perf: given to an interface", PERF_TOOL),
    Observable("perf_received", "packets", "hop", "perf: received in its turns", PERF_TOOL),
    Observable("perf_copied", "datagrams", "hop", "perf: copied to it", PERF_TOOL),
    Observable("perf_cycles", "cycles", "cpu", "perf: cycles", PMU),
    Observable("perf_instructions", "instructions", "cpu", "perf: instructions", PMU),
    Observable("perf_branches", "branches", "cpu", "perf: branches", PMU),
    Observable("perf_branch_misses", "branches", "cpu", "perf: branches mispredicted", PMU),
    Observable("perf_l1d_misses", "loads", "memory", "perf: level 1 data cache missed", PMU),
    Observable("perf_cache_references", "accesses", "memory", "perf: asked the last cache", PMU),
    Observable("perf_cache_misses", "accesses", "memory", "perf: missed the last cache", PMU),
    Observable("perf_dtlb_misses", "loads", "memory", "perf: data TLB missed", PMU),
    Observable("llc_occupancy_bytes", "bytes", "memory", "last-level cache held", RESCTRL, "level"),
    Observable("memory_traffic_bytes", "bytes", "memory", "to and from memory", RESCTRL),
    Observable("memory_local_bytes", "bytes", "memory", "of these, on its own node", RESCTRL),
    Observable("state_s", "s", "cpu", "trace: its threads, by what they did", TRACEFS),
    Observable("state_changes", "times", "cpu", "trace: from one to another", TRACEFS),
    Observable("traced_s", "s", "cpu", "trace: how long it was traced", TRACEFS),
    Observable("trace_lost", "events", "cpu", "trace: events without room", TRACEFS),
    Observable("competitor_cpu_s", "s", "load", "CPU that the competitor used", COMPETED),
    Observable("competitor_began_s", "s", "load", "began, from load begin", COMPETED, "level"),
    Observable("competitor_ended_s", "s", "load", "ended, from load begin", COMPETED, "level"),
    Observable("due_in_second", "requests", "load", "due in that second", RECORDS),
    Observable("answered_in_second", "requests", "load", "answered in that second", RECORDS),
    Observable("p95_in_second", "ms", "load", "p95 of what was due in that second", RECORDS),
)  # fmt: skip
OBSERVABLES: Mapping[str, Observable] = {one.name: one for one in _ALL}
PERF = tuple(name for name in OBSERVABLES if name.startswith("perf_"))
"""What `perf stat` counts of a function; collected only where a campaign asks for it."""
CACHE = tuple(one.name for one in _ALL if one.takes == RESCTRL)
"""What resctrl counts of a function; collected with what perf does."""
TRACE = tuple(one.name for one in _ALL if one.takes == TRACEFS)
"""What a trace says of a function's threads; collected only where a campaign asks for it."""
ON_REQUEST = (*PERF, *CACHE, *TRACE)


SITE = "the site"
"""Component of a site's metric that is of no component."""


def is_level(name: str) -> bool:
    """Whether its figure is a mean over a window: what the site's Prometheus says is."""
    known = OBSERVABLES.get(name)
    return known is None or known.kind == "level"


@dataclass(frozen=True)
class Observation:
    """One figure of one component in one window of a sample."""

    window: int
    """Its place among the sample's windows, from 0."""
    component: str
    """VNF instance name, `source`, `sink`, `host`, `workbench`; `SITE`."""
    name: str
    """Of `OBSERVABLES`, or of a metric that the site's Prometheus was asked for, a level."""
    value: float | None
    """In its unit; None: it was looked for, and this host has none."""
    detail: str = ""
    """Which core, kind or process; of what is missing, why."""


NOT_COLLECTED = (
    "nothing was collected beside CPU usage and throttling: a simulated lab measured it, or an "
    "earlier workbench"
)
"""What is said of samples without any observation, where the lab could have made them."""
