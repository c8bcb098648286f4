"""Control groups of the lab's components, version 1 and 2: made, limited, emptied, removed."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.domain.errors import LabError
from workbench.probes import cgroup, process

PARENT = "vnf-workbench"
CONTROLLERS = ("cpu", "cpuacct", "memory", "cpuset")
PERIOD_US = 100_000
"""CFS period, the kernel's default (METHOD.md 5)."""
ENDING_S, LOOK_S = 2.0, 0.02
"""For how long `reap` waits for the killed processes of one group, and how often it looks."""
_NAME = re.compile(r"(?P<pid>\d+)\.(?P<started_ms>\d+)\.(?P<session>.+)\.[^.]+\.[0-9a-f]{6}")


@dataclass(frozen=True)
class Group:
    """The control group of one component, named after the process that made it and its session."""

    name: str
    version: cgroup.CgroupVersion
    folders: tuple[Path, ...]
    """One in version 2; in version 1 one for each controller, without repetition."""
    counters: cgroup.CgroupFolders

    @classmethod
    def make(cls, session: str, component: str) -> Group:
        """A new group. Raises `LabError` where this process may make none."""
        name = f"{_owner()}.{_plain(session)}.{_plain(component)}.{secrets.token_hex(3)}"
        mounts = _mounts()
        try:
            if "cpu" in mounts:
                return cls._version_1(name, mounts)
            if cgroup.UNIFIED in mounts:
                return cls._version_2(name, mounts[cgroup.UNIFIED].point)
        except OSError as error:
            raise LabError(
                f"no control group can be made: {error.strerror}",
                where=str(error.filename),
                remedy="Run as root, on a host whose control groups may be written",
            ) from error
        raise LabError(
            "this host has no control groups that limit CPU",
            remedy="Mount cgroup2 at /sys/fs/cgroup, or use another lab",
        )

    @classmethod
    def _version_1(cls, name: str, mounts: dict[str, cgroup.Mount]) -> Group:
        made = {c: mounts[c].point / PARENT / name for c in CONTROLLERS if c in mounts}
        for folder in dict.fromkeys(made.values()):
            folder.mkdir(parents=True, exist_ok=True)
        if "cpuset" in made:
            # A group of version 1 begins with no cores and no memory nodes.
            for folder in (made["cpuset"].parent, made["cpuset"]):
                for file in ("cpuset.cpus", "cpuset.mems"):
                    if not (folder / file).read_text().strip():
                        (folder / file).write_text((folder.parent / file).read_text())
        if cgroup.UNIFIED in mounts:  # limits nothing there; perf knows groups by it
            made[cgroup.UNIFIED] = mounts[cgroup.UNIFIED].point / PARENT / name
            made[cgroup.UNIFIED].mkdir(parents=True, exist_ok=True)
        folders = cgroup.CgroupFolders(
            "v1", made["cpu"], made.get("cpuacct", made["cpu"]), made.get("memory", made["cpu"])
        )
        return cls(name, "v1", tuple(dict.fromkeys(made.values())), folders)

    @classmethod
    def _version_2(cls, name: str, root: Path) -> Group:
        folder = root / PARENT / name
        folder.parent.mkdir(exist_ok=True)
        for above in (root, folder.parent):
            there = (above / "cgroup.controllers").read_text().split()
            wanted = " ".join(f"+{c}" for c in ("cpu", "memory", "cpuset") if c in there)
            (above / "cgroup.subtree_control").write_text(wanted)
        folder.mkdir()
        return cls(name, "v2", (folder,), cgroup.CgroupFolders("v2", folder, folder, folder))

    def limit_cpu(self, cores: float, pinned: Sequence[int]) -> None:
        """A quota of `cores`, 0 for none, on cores `pinned`; whole pinned cores need no quota."""
        whole = bool(pinned) and cores == len(pinned)
        quota = 0 if whole or not cores else round(cores * PERIOD_US)
        folder = self.counters.cpu
        if self.version == "v2":
            (folder / "cpu.max").write_text(f"{quota or 'max'} {PERIOD_US}")
        else:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota or -1))
        if pinned:
            for folder in self.folders:
                if (folder / "cpuset.cpus").exists():
                    (folder / "cpuset.cpus").write_text(",".join(map(str, pinned)))

    def limit_memory(self, memory_bytes: int) -> None:
        """The most that it may hold, without swap where the kernel counts that. `OSError` where it
        holds more."""
        folder = self.counters.memory
        if self.version == "v2":
            if (folder / "memory.swap.max").exists():  # it is not with swapaccount=0
                (folder / "memory.swap.max").write_text("0")
            (folder / "memory.max").write_text(str(memory_bytes))
            return
        files = [folder / "memory.limit_in_bytes", folder / "memory.memsw.limit_in_bytes"]
        files = [file for file in files if file.exists()]
        if memory_bytes > int(files[0].read_text()):
            files.reverse()  # with swap counted it is never less than without
        for file in files:
            file.write_text(str(memory_bytes))

    def out_of_memory(self) -> bool:
        """Whether the kernel ended one of its processes for lack of memory."""
        file = "memory.events" if self.version == "v2" else "memory.oom_control"
        with suppress(OSError, ValueError):
            stated = cgroup.parse_flat((self.counters.memory / file).read_text())
            return stated.get("oom_kill", 0) > 0
        return False

    def processes(self) -> tuple[int, ...]:
        with suppress(OSError):
            return tuple(map(int, (self.folders[0] / "cgroup.procs").read_text().split()))
        return ()

    def kill(self) -> None:
        """End all its processes at once."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """Whether it is gone; it stays while processes of it are still ending."""
        for folder in self.folders:
            with suppress(FileNotFoundError):
                try:
                    folder.rmdir()
                except OSError:
                    return False
        return True


def left(alive: frozenset[str]) -> Iterator[Path]:
    """Folders of groups whose session is not in `alive` and whose maker is gone or this process."""
    for mount in {m.point for m in _mounts().values()}:
        for folder in sorted((mount / PARENT).glob("*")):
            match = _NAME.fullmatch(folder.name)
            if match is None or match["session"] in {_plain(session) for session in alive}:
                continue
            owner = f"{match['pid']}.{match['started_ms']}"
            if owner == _owner() or not _lives(int(match["pid"]), int(match["started_ms"])):
                yield folder


async def end(folder: Path) -> bool:
    """End what runs in a group of a dead session and remove it; whether it is gone.

    A killed process stays in its group until the kernel has taken it down, on a busy host for a
    while.
    """
    for _ in range(round(ENDING_S / LOOK_S)):
        if _ended(folder):
            return True
        await asyncio.sleep(LOOK_S)
    return False


def _ended(folder: Path) -> bool:
    with suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        folder.rmdir()
    return not folder.exists()


def version() -> cgroup.CgroupVersion:
    return "v1" if "cpu" in _mounts() else "v2"


def _mounts() -> dict[str, cgroup.Mount]:
    return cgroup.parse_mounts((process.PROC / "self" / "mountinfo").read_text())


def _owner() -> str:
    return f"{os.getpid()}.{round(process.read_start_s(os.getpid()) * 1000)}"


def _lives(pid: int, started_ms: int) -> bool:
    with suppress(OSError, ValueError):
        return round(process.read_start_s(pid) * 1000) == started_ms
    return False


def _plain(text: str) -> str:
    return "".join(c if c.isalnum() or c in "_-" else "-" for c in text)
