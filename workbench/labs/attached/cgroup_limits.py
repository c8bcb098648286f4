"""The files of a control group that limit CPU and memory: read, and what to write into them.

The files themselves are written, and not the engine asked: `docker update` takes 0 for *unchanged*,
turns it into -1, and refuses a quota beside `--cpus`, so that settings would not come back bit for
bit. What `docker inspect` shows is the engine's own note and stays as it is.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.domain.errors import LabError
from workbench.probes.cgroup import CgroupFolders

PERIOD_US = 100_000
"""CFS period, the kernel's default, where a file does not say."""
PAGE = os.sysconf("SC_PAGE_SIZE")
Change = tuple[Path, str]


def limit_files(folders: CgroupFolders) -> tuple[Path, ...]:
    """All that may say what a group may use; those of one version are not there in the other."""
    cpu, memory = folders.cpu, folders.memory
    return tuple(
        folder / name
        for folder, name in (
            (cpu, "cpu.max"),
            (cpu, "cpu.cfs_period_us"),
            (cpu, "cpu.cfs_quota_us"),
            (memory, "memory.max"),
            (memory, "memory.limit_in_bytes"),
            (memory, "memory.memsw.limit_in_bytes"),
        )
    )


@dataclass(frozen=True)
class CgroupLimits:
    """Limits of one control group, as they were when they were read."""

    folders: CgroupFolders
    place: str
    held: Mapping[Path, str]
    """By file, those that are there."""
    page: int = PAGE
    """Bytes; the kernel keeps whole pages."""

    @classmethod
    def read(cls, folders: CgroupFolders, place: str) -> CgroupLimits:
        """Of this host. Raises `OSError` where the group is gone."""
        folders.cpu.stat()
        there = (file for file in limit_files(folders) if file.is_file())
        return cls(folders, place, {file: file.read_text().strip() for file in there})

    def cores(self) -> float:
        """Its quota in cores; 0 without one. Raises `OSError` where none can be set."""
        quota, period = self._quota()
        return quota / period if quota > 0 else 0.0

    def memory_bytes(self) -> int:
        """The most that it may hold; 0 without a limit."""
        text = self.held.get(self._memory, "max")
        # Version 1 writes a limit that nobody set as the largest number of whole pages.
        return 0 if text == "max" or int(text) >= 1 << 62 else int(text)

    def of_cpu(self, cores: float) -> list[Change]:
        """Its period stays; `cores` 0 is no quota. Raises `OSError` where none can be set."""
        _, period = self._quota()
        quota = round(cores * period)
        if self.folders.version == "v2":
            return [(self.folders.cpu / "cpu.max", f"{quota or 'max'} {period}")]
        return [(self.folders.cpu / "cpu.cfs_quota_us", str(quota or -1))]

    def of_memory(self, memory_bytes: int) -> list[Change]:
        """Whole pages, as the kernel keeps them; in the order in which it takes them."""
        pages = str(memory_bytes // self.page * self.page)
        if self._memory not in self.held:
            raise LabError("its control group cannot limit memory", where=self.place)
        changes = [(self._memory, pages)]
        with_swap = self.folders.memory / "memory.memsw.limit_in_bytes"
        if with_swap in self.held:  # never less than without swap
            raised = int(pages) > int(self.held[with_swap])
            changes.insert(0 if raised else 1, (with_swap, pages))
        return changes

    @property
    def _memory(self) -> Path:
        name = "memory.max" if self.folders.version == "v2" else "memory.limit_in_bytes"
        return self.folders.memory / name

    def _quota(self) -> tuple[int, int]:
        """Quota (-1 without) and period in µs."""
        cpu = self.folders.cpu
        if self.folders.version == "v2":
            words = self.held.get(cpu / "cpu.max", "").split()
            quota, period = words if len(words) == 2 else ("max", str(PERIOD_US))
            return (-1 if quota == "max" else int(quota)), int(period)
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        if missing := next((name for name in names if cpu / name not in self.held), ""):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(cpu / missing))
        return int(self.held[cpu / names[0]]), int(self.held[cpu / names[1]])
