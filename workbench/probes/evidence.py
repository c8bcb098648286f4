"""What is collected beside usage while load is driven: `domain.observations`, for each component.

A file that is missing, refused or says something else takes only its own counters away: they are
named with the reason, and a missing counter is never zero.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workbench.probes import burners, cgroup, host, process, tcp
from workbench.probes.containers import ContainerProbe
from workbench.probes.process import PROC, ThreadCounters

MOST_THREADS = 512
"""Of a component; reading that many takes 20 ms of a core each second."""
MOST_BURNERS = 3

SHARED_NETWORK = "it uses its host's network, whose counters are not its own"

Seen = dict[tuple[str, str], float]
"""Cumulative figures and levels by name and detail."""
Absent = dict[str, str]
"""Names that cannot be had here, and why."""

THREAD_NAMES = (
    "cpu_wait_s",
    "voluntary_switches",
    "involuntary_switches",
    "thread_cpu_s",
    "threads",
    "threads_begun",
)
OTHERS = "others_on_cores_s"
PRESSURE_FILES = {"pressure_cpu_s": "cpu", "pressure_memory_s": "memory", "pressure_io_s": "io"}


@dataclass
class ThreadSums:
    """Counters of all threads of a component, those that have ended included.

    What a thread did between its last reading and its end is not known, nor is anything of one
    that came and went between two readings: the sums are lower bounds where threads are short.
    """

    _last: dict[int, ThreadCounters] = field(default_factory=dict)
    _numbers: dict[int, int] = field(default_factory=dict)
    _ended: list[ThreadCounters] = field(default_factory=list)
    _first: int | None = None

    def note(self, seen: Mapping[int, ThreadCounters]) -> Seen:
        """Take in a reading; the sums after it."""
        for thread, now in seen.items():
            before = self._last.get(thread)
            if before is not None and now.cpu_s < before.cpu_s:  # its number was given again
                self._ended.append(before)
            if before is None:
                self._numbers[thread] = len(self._numbers) + 1
        if self._first is None:
            self._first = len(seen)
        self._last.update(seen)
        every = [*self._last.values(), *self._ended]
        sums: Seen = {
            ("threads", ""): float(len(seen)),
            ("threads_begun", ""): float(len(every) - self._first),
        }
        for name, counts in (
            ("cpu_wait_s", [one.wait_s for one in every]),
            ("voluntary_switches", [one.voluntary_switches for one in every]),
            ("involuntary_switches", [one.involuntary_switches for one in every]),
        ):
            known = [count for count in counts if count is not None]
            if known:
                sums[name, ""] = float(sum(known))
        for thread, number in self._numbers.items():
            sums["thread_cpu_s", f"thread {number}"] = self._last[thread].cpu_s
        return sums


@dataclass
class OthersOnCores:
    """CPU that others took of the cores that a component may run on, whoever they are: other
    groups, the kernel, a hypervisor.

    A core's idle time is told in ticks and the component's own CPU in nanoseconds, so that the
    difference may step back by a tick; then it is what it was.
    """

    _cores: frozenset[int] | None = None
    _others_s: float = 0.0

    def read(self, pid: int, own_cpu_s: float) -> Seen:
        """So far. Raises `ValueError` where these cores are not told, or no longer the same."""
        cores = frozenset(os.sched_getaffinity(pid))
        if self._cores not in (None, cores):
            raise ValueError("the cores that it may run on were changed")
        self._cores = cores
        stat = host.parse_stat(_text(PROC / "stat"), time.monotonic())
        busy = [stat.get(("core_busy_s", f"cpu{core}")) for core in cores]
        known = [one for one in busy if one is not None]
        if len(known) < len(busy):
            raise ValueError(f"only {host.MOST_CORES} of this host's cores are told apart")
        self._others_s = max(self._others_s, sum(known) - own_cpu_s)
        return {(OTHERS, ""): self._others_s}


class ComponentEvidence:
    """Of one container that runs on this host, over one drive.

    Attributes
    ----------
    absent : what could not be read at some time, by name.
    """

    def __init__(self, probe: ContainerProbe) -> None:
        self.absent: Absent = {}
        self._probe = probe
        self._threads = ThreadSums()
        self._others = OthersOnCores()
        if not probe.own_network:
            names = (*tcp.EXTENDED, *tcp.PLAIN, "time_wait", *HOP_NAMES)
            self.absent.update(dict.fromkeys(names, SHARED_NETWORK))

    def read(self, threads: Mapping[int, ThreadCounters] | None = None) -> Seen:
        """All that can be had now; `threads` where somebody has just read them."""
        seen: Seen = {}
        pid, folders = self._probe.pid, self._probe.folders
        network = PROC / str(pid) / "net"
        for names, read in (
            (THREAD_NAMES, lambda: self._read_threads(threads)),
            (tuple(tcp.EXTENDED), lambda: _plain(tcp.parse_netstat(_text(network / "netstat")))),
            (tuple(tcp.PLAIN), lambda: _plain(tcp.parse_snmp(_text(network / "snmp")))),
            (("time_wait",), lambda: _plain(tcp.parse_sockstat(_text(network / "sockstat")))),
            (HOP_NAMES, lambda: _hop(process.read_network(pid))),
            (MEMORY_NAMES, lambda: _plain(cgroup.read_memory_events(folders))),
            (DISK_NAMES, lambda: _plain(cgroup.read_disk(folders))),
            ((OTHERS,), lambda: self._others.read(pid, cgroup.read(folders).cpu_s)),
            *((pressure, _pressure_of(folders, file)) for pressure, file in _PRESSURES),
        ):
            take(seen, self.absent, names, read)
        return seen

    def _read_threads(self, threads: Mapping[int, ThreadCounters] | None) -> Seen:
        if threads is None:
            ids = cgroup.threads(self._probe.folders)
            if len(ids) > MOST_THREADS:
                raise ValueError(f"it has {len(ids)} threads; up to {MOST_THREADS} are read")
            threads = process.read_threads(ids, switches=True)
        return self._threads.note(threads)


def take(seen: Seen, absent: Absent, names: Iterable[str], read: Callable[[], Seen]) -> None:
    """Add what `read` finds; `names` that it does not find are absent, with the reason."""
    wanted = [name for name in names if name not in absent]
    if not wanted:
        return
    try:
        found = read()
    except (OSError, ValueError, IndexError, KeyError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        absent.update(dict.fromkeys(wanted, why or type(error).__name__))
        return
    there = {name for name, _ in found}
    absent.update({name: "this kernel does not count it" for name in wanted if name not in there})
    seen.update({key: value for key, value in found.items() if key[0] not in absent})


HOP_NAMES = ("rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_drops", "tx_drops")
MEMORY_NAMES = ("page_faults", "major_faults", "limit_hits", "oom_kills")
DISK_NAMES = ("disk_bytes", "disk_operations")
_PRESSURES = tuple(((name,), file) for name, file in PRESSURE_FILES.items())


def _plain(found: Mapping[str, float]) -> Seen:
    return {(name, ""): value for name, value in found.items()}


def _hop(network: process.NetworkCounters) -> Seen:
    return {(name, ""): getattr(network, name) for name in HOP_NAMES}


def _pressure_of(folders: cgroup.CgroupFolders, file: str) -> Callable[[], Seen]:
    name = next(name for name, of in PRESSURE_FILES.items() if of == file)

    def read() -> Seen:
        if folders.version == "v1":
            raise ValueError("its control group is of version 1, which has no pressure")
        return {(name, ""): host.parse_pressure(_text(folders.cpu / f"{file}.pressure"))}

    return read


def _text(path: Path) -> str:
    return path.read_text(errors="replace")


@dataclass
class HostEvidence:
    """Of the host, over one drive."""

    absent: Absent = field(default_factory=dict)
    _before: tuple[burners.Burned, float] | None = None

    def read(self) -> Seen:
        seen: Seen = {}
        now_s = time.monotonic()
        take(
            seen,
            self.absent,
            (*host.CORE_FIELDS, "core_busy_s"),
            lambda: host.parse_stat(_text(PROC / "stat"), now_s),
        )
        take(
            seen,
            self.absent,
            ("softirqs", "core_softirqs"),
            lambda: host.parse_softirqs(_text(PROC / "softirqs")),
        )
        for name, file in PRESSURE_FILES.items():
            take(seen, self.absent, (name,), _host_pressure(name, file))
        take(seen, self.absent, ("conntrack_used", "conntrack_limit"), _conntrack)
        return seen

    def look_round(self, inside: Sequence[ContainerProbe]) -> Seen:
        """One pass over all processes; from the second on, cores of those outside the lab.

        Parameters
        ----------
        inside : the lab's own components.
        """
        own = {thread for probe in inside for thread in _threads_of(probe)}
        burned, _ = burners.read()
        others = {key: one for key, one in burned.items() if key[0] not in own}
        before, self._before = self._before, (others, time.monotonic())
        if before is None:
            return {}
        was, since_s = before
        seconds = max(1e-3, time.monotonic() - since_s)
        spent_s = sum(
            one.cpu_s - (was[key].cpu_s if key in was else 0.0) for key, one in others.items()
        )
        seen: Seen = {("others_cores", ""): max(0.0, spent_s) / seconds}
        for burner in burners.busiest(was, others, seconds, MOST_BURNERS):
            seen["burner_cores", burner.name] = burner.cores
        return seen


def _threads_of(probe: ContainerProbe) -> tuple[int, ...]:
    try:
        return cgroup.threads(probe.folders)
    except OSError:  # it has ended, and whoever reads its counters says so
        return ()


def _host_pressure(name: str, file: str) -> Callable[[], Seen]:
    return lambda: {(name, ""): host.parse_pressure(_text(PROC / "pressure" / file))}


def _conntrack() -> Seen:
    used, limit = host.read_conntrack()
    if not limit:
        raise ValueError("this kernel tracks no connections, or its table is not to be read")
    return {("conntrack_used", ""): float(used), ("conntrack_limit", ""): float(limit)}
