"""Counters of one container: from the kernel where it runs here, else from its engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.measuring.records import ComponentCounters
from workbench.probes import cgroup, process

NANO = 1e-9


@dataclass(frozen=True)
class ContainerProbe:
    """Reads the counters of a container whose first process is `pid` on this host."""

    pid: int
    folders: cgroup.CgroupFolders
    own_network: bool = True
    """Whether its network is its own: counters of one that it shares are not counted as its own."""

    @classmethod
    def find(cls, container_id: str, pid: int) -> ContainerProbe | None:
        """The probe, or None where that process is not this container's: its engine is elsewhere.

        A remote engine's process ids mean nothing here, so the group must carry the container's
        id, as it does with both drivers (`docker/<id>`, `docker-<id>.scope`).
        """
        membership = process.PROC / str(pid) / "cgroup"
        if pid <= 0 or not membership.exists():
            return None
        text = membership.read_text()
        if container_id not in text:
            return None
        mounts = cgroup.parse_mounts((process.PROC / "self" / "mountinfo").read_text())
        folders = cgroup.locate(mounts, cgroup.parse_membership(text))
        if folders is None or not (folders.cpu / "cpu.stat").exists():
            return None
        return cls(pid, folders)

    def read(self) -> ComponentCounters:
        """All counters but those of threads. Raises `OSError` once the container has ended."""
        group = cgroup.read(self.folders)
        network = self.read_network()
        return ComponentCounters(
            group.cpu_s,
            group.periods,
            group.throttled_periods,
            group.throttled_s,
            group.memory_bytes,
            network.rx_bytes,
            network.tx_bytes,
            network.rx_packets,
            network.tx_packets,
        )

    def read_network(self) -> process.NetworkCounters:
        """Zeros where it shares its network; `evidence` names them as absent then."""
        return process.read_network(self.pid) if self.own_network else process.NetworkCounters()

    def read_threads(self) -> dict[int, process.ThreadCounters]:
        return process.read_threads(cgroup.threads(self.folders), switches=True)


def from_engine(stats: Mapping[str, Any]) -> ComponentCounters:
    """The counters in an answer of the engine's `/containers/{id}/stats`."""
    cpu = stats.get("cpu_stats", {})
    throttling = cpu.get("throttling_data", {})
    memory = stats.get("memory_stats", {})
    details = memory.get("stats", {})
    inactive = details.get("total_inactive_file", details.get("inactive_file", 0))
    networks = stats.get("networks", {}).values()
    return ComponentCounters(
        cpu.get("cpu_usage", {}).get("total_usage", 0) * NANO,
        throttling.get("periods", 0),
        throttling.get("throttled_periods", 0),
        throttling.get("throttled_time", 0) * NANO,
        float(max(0, memory.get("usage", 0) - inactive)),
        float(sum(n["rx_bytes"] for n in networks)),
        float(sum(n["tx_bytes"] for n in networks)),
        float(sum(n["rx_packets"] for n in networks)),
        float(sum(n["tx_packets"] for n in networks)),
    )


class ThreadLedger:
    """Keeps CPU seconds per thread in one order over a drive, though threads come and go.

    A thread holds 0 before it was first seen and its last figure after it ended.
    """

    def __init__(self) -> None:
        self._instants: list[dict[int, float]] = []
        self._order: dict[int, None] = {}

    def note(self, seen: Mapping[int, float]) -> None:
        last = self._instants[-1] if self._instants else {}
        self._instants.append({**last, **seen})
        self._order.update(dict.fromkeys(seen))

    def columns(self) -> Sequence[tuple[float, ...]]:
        """One tuple per instant noted, all of the same length."""
        return [tuple(at.get(t, 0.0) for t in self._order) for at in self._instants]
