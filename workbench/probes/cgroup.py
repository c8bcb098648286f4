"""CPU, quota and memory counters of a control group, version 1 and 2.

Where a group lies is read from `/proc/<pid>/cgroup` and the mount table, so that the `cgroupfs`
and `systemd` drivers, custom parents and hybrid hosts need no case of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CgroupVersion = Literal["v1", "v2"]

UNIFIED = ""
"""Key of the version 2 hierarchy among the controllers; `/proc/<pid>/cgroup` leaves it empty."""

NANO = 1e-9
MICRO = 1e-6


@dataclass(frozen=True)
class Mount:
    """A mounted hierarchy: the group at its top as the kernel names it, and the mount point."""

    root: str
    point: Path


@dataclass(frozen=True)
class CgroupFolders:
    """Where the counters of one control group lie; in version 2 all are the same folder."""

    version: CgroupVersion
    cpu: Path
    cpuacct: Path
    memory: Path
    disk: Path | None = None


@dataclass(frozen=True)
class CgroupCounters:
    """Cumulative since the group was made; `memory_bytes` is what is held now."""

    cpu_s: float
    periods: int
    throttled_periods: int
    throttled_s: float
    memory_bytes: float


def parse_mounts(mountinfo: str) -> dict[str, Mount]:
    """Mounted hierarchies by controller, from `/proc/self/mountinfo`; version 2 is `UNIFIED`."""
    mounts: dict[str, Mount] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        mount = Mount(fields[3], Path(fields[4]))
        if kind[0] == "cgroup2":
            mounts[UNIFIED] = mount
        elif kind[0] == "cgroup":
            for option in kind[2].split(","):
                mounts.setdefault(option, mount)
    return mounts


def parse_membership(text: str) -> dict[str, str]:
    """A process's group by controller, from `/proc/<pid>/cgroup`."""
    groups: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def locate(mounts: Mapping[str, Mount], groups: Mapping[str, str]) -> CgroupFolders | None:
    """Folders of a process's group; None where no hierarchy accounts for CPU.

    A hybrid host mounts version 2 without controllers beside version 1; version 1 counts there.
    """
    v1 = {
        controller: _folder(mounts[controller], groups[controller])
        for controller in ("cpu", "cpuacct", "memory", "blkio")
        if controller in mounts and controller in groups
    }
    if "cpu" in v1 and "cpuacct" in v1:
        memory = v1.get("memory", v1["cpu"])
        return CgroupFolders("v1", v1["cpu"], v1["cpuacct"], memory, v1.get("blkio"))
    if UNIFIED in mounts and UNIFIED in groups:
        folder = _folder(mounts[UNIFIED], groups[UNIFIED])
        return CgroupFolders("v2", folder, folder, folder, folder)
    return None


def _folder(mount: Mount, group: str) -> Path:
    # Inside a container only part of the tree is mounted; the kernel still names it from the top.
    inside = group.removeprefix(mount.root) if mount.root != "/" else group
    return mount.point / inside.lstrip("/")


def parse_flat(text: str) -> dict[str, int]:
    """`key value` lines, as in `cpu.stat` and `memory.stat`."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}


def counters_v1(
    cpu_stat: str, cpuacct_usage: str, memory_usage: str, memory_stat: str
) -> CgroupCounters:
    """From the files of version 1: times in nanoseconds."""
    cpu = parse_flat(cpu_stat)
    return CgroupCounters(
        int(cpuacct_usage) * NANO,
        cpu.get("nr_periods", 0),
        cpu.get("nr_throttled", 0),
        cpu.get("throttled_time", 0) * NANO,
        _held(memory_usage, parse_flat(memory_stat).get("total_inactive_file", 0)),
    )


def counters_v2(cpu_stat: str, memory_current: str, memory_stat: str) -> CgroupCounters:
    """From the files of version 2: times in microseconds."""
    cpu = parse_flat(cpu_stat)
    return CgroupCounters(
        cpu.get("usage_usec", 0) * MICRO,
        cpu.get("nr_periods", 0),
        cpu.get("nr_throttled", 0),
        cpu.get("throttled_usec", 0) * MICRO,
        _held(memory_current, parse_flat(memory_stat).get("inactive_file", 0)),
    )


def _held(usage: str, inactive_file: int) -> float:
    # Page cache that nobody uses is not what the function needs; `docker stats` leaves it out too.
    return float(max(0, int(usage or 0) - inactive_file))


def read(folders: CgroupFolders) -> CgroupCounters:
    """The counters now. Raises `OSError` once the group is gone."""
    cpu_stat = (folders.cpu / "cpu.stat").read_text()
    memory_stat = _optional(folders.memory / "memory.stat")
    if folders.version == "v1":
        return counters_v1(
            cpu_stat,
            (folders.cpuacct / "cpuacct.usage").read_text(),
            _optional(folders.memory / "memory.usage_in_bytes"),
            memory_stat,
        )
    return counters_v2(cpu_stat, _optional(folders.memory / "memory.current"), memory_stat)


def _optional(file: Path) -> str:
    # The memory controller is switched off on some hosts (Raspberry Pi OS, for one).
    return file.read_text() if file.exists() else ""


def threads(folders: CgroupFolders) -> tuple[int, ...]:
    """Thread ids of every process in the group."""
    name = "tasks" if folders.version == "v1" else "cgroup.threads"
    return tuple(map(int, (folders.cpu / name).read_text().split()))


def processes(folders: CgroupFolders) -> tuple[int, ...]:
    """Ids of every process in the group."""
    return tuple(map(int, (folders.cpu / "cgroup.procs").read_text().split()))


def read_memory_events(folders: CgroupFolders) -> dict[str, float]:
    """Faults, reclaim at the limit and what was ended for lack of memory, so far."""
    stat = _optional(folders.memory / "memory.stat")
    if folders.version == "v2":
        return memory_events("v2", stat, _optional(folders.memory / "memory.events"))
    events = _optional(folders.memory / "memory.oom_control")
    return memory_events("v1", stat, events, _optional(folders.memory / "memory.failcnt"))


def memory_events(
    version: CgroupVersion, memory_stat: str, events: str, hits: str = ""
) -> dict[str, float]:
    """From the texts of `memory.stat`, and of `memory.oom_control` and `memory.failcnt` (version
    1) or `memory.events` (version 2)."""
    stat, counted = parse_flat(memory_stat), parse_flat(events)
    prefix = "total_" if version == "v1" else ""
    found: dict[str, float] = {}
    for name, count in (
        ("page_faults", stat.get(f"{prefix}pgfault")),
        ("major_faults", stat.get(f"{prefix}pgmajfault")),
        ("limit_hits", int(hits or -1) if version == "v1" else counted.get("max")),
        ("oom_kills", counted.get("oom_kill")),
    ):
        if count is not None and count >= 0:
            found[name] = float(count)
    return found


def parse_disk_v1(text: str) -> float:
    """Read and written on all disks, in a file such as `blkio.throttle.io_service_bytes`.

    Its totals hold what was discarded as well, which no disk transfers.
    """
    lines = [line.split() for line in text.splitlines()]
    if not any(words[:1] == ["Total"] for words in lines):
        raise ValueError("no total in its file")
    return float(
        sum(int(words[2]) for words in lines if len(words) == 3 and words[1] in ("Read", "Write"))
    )


def parse_disk_v2(text: str) -> tuple[float, float]:
    """Bytes and operations over all devices in `io.stat`."""
    pairs = (word.split("=") for line in text.splitlines() for word in line.split()[1:])
    counts = [(pair[0], int(pair[1])) for pair in pairs if len(pair) == 2]
    return (
        float(sum(count for name, count in counts if name in ("rbytes", "wbytes"))),
        float(sum(count for name, count in counts if name in ("rios", "wios"))),
    )


def read_disk(folders: CgroupFolders) -> dict[str, float]:
    """Bytes and operations on disks so far. Raises `OSError` or `ValueError` where not counted."""
    if folders.disk is None:
        raise ValueError("its control group counts no disk (controller blkio)")
    if folders.version == "v1":
        each = ("io_service_bytes", "io_serviced")
        files = [folders.disk / f"blkio.throttle.{name}" for name in each]
        amount, operations = (parse_disk_v1(file.read_text()) for file in files)
    else:
        amount, operations = parse_disk_v2((folders.disk / "io.stat").read_text())
    return {"disk_bytes": amount, "disk_operations": operations}
