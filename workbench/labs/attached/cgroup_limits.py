"""The files of a control group that limit CPU and memory: read, and what to write into them.

The files themselves are written, and not the engine asked: `docker update` takes 0 for *unchanged*,
turns it into -1, and refuses a quota beside `--cpus`, so that settings would not come back bit for
bit. What `docker inspect` shows is the engine's own note and stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workbench.domain.errors import LabError
from workbench.probes.cgroup import CgroupFolders

PERIOD_US = 100_000
"""CFS period, the kernel's default, where a file does not say."""
PAGE = os.sysconf("SC_PAGE_SIZE")
Change = tuple[Path, str]


@dataclass(frozen=True)
class CgroupLimits:
    """Limits of one control group."""

    folders: CgroupFolders
    place: str

    def files(self) -> Iterator[Path]:
        """All that says what the group may use."""
        cpu, memory = self.folders.cpu, self.folders.memory
        names = (
            (cpu, "cpu.max"),
            (cpu, "cpu.cfs_period_us"),
            (cpu, "cpu.cfs_quota_us"),
            (memory, "memory.max"),
            (memory, "memory.limit_in_bytes"),
            (memory, "memory.memsw.limit_in_bytes"),
        )
        return (folder / name for folder, name in names if (folder / name).is_file())

    def now(self) -> dict[Path, str]:
        """What the files hold. Raises `OSError` where the group is gone."""
        return {file: file.read_text().strip() for file in self.files()}

    def cores(self) -> float:
        """Its quota in cores; 0 without one. Raises `OSError`."""
        quota, period = self._quota()
        return quota / period if quota > 0 else 0.0

    def memory_bytes(self) -> int:
        """The most that it may hold; 0 without a limit. Raises `OSError`."""
        file = self.folders.memory / self._memory_name
        text = file.read_text().strip() if file.is_file() else "max"
        # Version 1 writes a limit that nobody set as the largest number of whole pages.
        return 0 if text == "max" or int(text) >= 1 << 62 else int(text)

    def of_cpu(self, cores: float) -> list[Change]:
        """Its period stays; `cores` 0 is no quota."""
        _, period = self._quota()
        quota = round(cores * period)
        if self.folders.version == "v2":
            return [(self.folders.cpu / "cpu.max", f"{quota or 'max'} {period}")]
        return [(self.folders.cpu / "cpu.cfs_quota_us", str(quota or -1))]

    def of_memory(self, memory_bytes: int) -> list[Change]:
        """Whole pages, as the kernel keeps them; in the order in which it takes them."""
        pages = str(memory_bytes // PAGE * PAGE)
        file = self.folders.memory / self._memory_name
        if not file.is_file():
            raise LabError("its control group cannot limit memory", where=self.place)
        changes = [(file, pages)]
        with_swap = self.folders.memory / "memory.memsw.limit_in_bytes"
        if with_swap.is_file():  # never less than without swap
            raised = int(pages) > int(file.read_text())
            changes.insert(0 if raised else 1, (with_swap, pages))
        return changes

    @property
    def _memory_name(self) -> str:
        return "memory.max" if self.folders.version == "v2" else "memory.limit_in_bytes"

    def _quota(self) -> tuple[int, int]:
        """Quota (-1 without) and period in µs."""
        cpu = self.folders.cpu
        if self.folders.version == "v2":
            words = (cpu / "cpu.max").read_text().split() if (cpu / "cpu.max").is_file() else []
            quota, period = words if len(words) == 2 else ("max", str(PERIOD_US))
            return (-1 if quota == "max" else int(quota)), int(period)
        return (
            int((cpu / "cpu.cfs_quota_us").read_text()),
            int((cpu / "cpu.cfs_period_us").read_text()),
        )
