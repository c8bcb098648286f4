"""Last-level cache and memory bandwidth of a function, by the kernel's resctrl, where there is one.

A monitoring group counts the function's threads and those that they start (Intel RDT and AMD QoS;
Documentation/arch/x86/resctrl.rst of the kernel). Which part of the cache they may use stays as it
was: a monitoring group inherits it. A thread that is in a group which somebody else made stays
there, and then nothing is counted: their group would silently lose it.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from workbench.measuring.records import Floats
from workbench.probes.cgroup import CgroupFolders, processes
from workbench.probes.process import PROC

ROOT = Path("/sys/fs/resctrl")
FILES: Mapping[str, str] = {
    "llc_occupancy_bytes": "llc_occupancy",
    "memory_traffic_bytes": "mbm_total_bytes",
    "memory_local_bytes": "mbm_local_bytes",
}
"""By observable, the file of each cache that holds it."""
EVERY_S = 0.5
"""Between two readings; amounts of windows are interpolated in between."""
MOST_READINGS = 7_200
"""Of one drive: an hour; older ones are forgotten."""
MOST_CACHES = 64
MOST_DIGITS = 32
"""Of a file: one number."""
SETTLING = 3
"""Looks for threads that began while the others were moved."""
PREFIX = "workbench-"
"""Of the name of a group; then come its process and a number."""

_numbers = itertools.count(1)


@dataclass
class ResctrlReader:
    """One function's group, from `begin` to `end`.

    A group that a process left which was killed is removed by the next one that makes any.

    Attributes
    ----------
    absent : what is not counted, by observable, and why.
    """

    folders: CgroupFolders
    names: tuple[str, ...]
    absent: dict[str, str]
    root: Path = ROOT
    _group: Path | None = None
    _polling: asyncio.Task[None] | None = None
    _at_s: list[float] = field(default_factory=list)
    _read: dict[str, list[float]] = field(default_factory=dict)
    _reading: threading.Lock = field(default_factory=threading.Lock)
    """A reading goes on in its thread when who polls is ended."""

    @classmethod
    def of(cls, folders: CgroupFolders, root: Path = ROOT) -> ResctrlReader:
        """Of a function by its control group."""
        why = why_not(root)
        told = () if why else counted(root)
        missing = why or "this processor does not count it"
        absent = {name: missing for name in FILES if name not in told}
        return cls(folders, told, absent, root)

    async def begin(self) -> None:
        """Make the group; where that fails nothing of it is counted. Raises nothing."""
        if not self.names:
            return
        try:
            await asyncio.to_thread(self._join)
        except OSError as error:
            self._lose(self.names, f"resctrl takes no group: {error.strerror}")
            await asyncio.to_thread(self._remove)
            return
        self._polling = asyncio.create_task(self._poll())

    async def end(self) -> None:
        """Read it once more, and remove the group. Raises nothing."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
            await asyncio.to_thread(self._take)
        await asyncio.to_thread(self._remove)

    def at(self, at_s: Floats) -> dict[tuple[str, str], Floats]:
        """Figures at instants of the monotonic clock, by observable and detail."""
        return {
            (name, ""): np.interp(at_s, self._at_s, read)
            for name, read in self._read.items()
            if name not in self.absent and len(read) == len(self._at_s)
        }

    async def _poll(self) -> None:
        while True:
            await asyncio.to_thread(self._take)
            await asyncio.sleep(EVERY_S)

    def _join(self) -> None:
        """A group with every thread of the function. Raises `OSError`."""
        _sweep(self.root)
        if elsewhere := _group_with(self.root, self._threads()):
            raise OSError(errno.EBUSY, f"the group {elsewhere} counts it already")
        self._group = self.root / "mon_groups" / f"{PREFIX}{os.getpid()}-{next(_numbers)}"
        self._make(self._group)
        taken: set[str] = set()
        with (self._group / "tasks").open("wb", buffering=0) as tasks:
            for _ in range(SETTLING):
                for thread in sorted(self._threads() - taken):
                    with suppress(ProcessLookupError):  # it has ended
                        tasks.write(f"{thread}\n".encode())
                    taken.add(thread)

    def _threads(self) -> set[str]:
        found: set[str] = set()
        for process in processes(self.folders):
            with suppress(OSError):  # it has ended
                found |= {thread.name for thread in (PROC / str(process) / "task").iterdir()}
        return found

    def _take(self) -> None:
        """One reading of every file of every cache."""
        with self._reading:
            self._take_now()

    def _take_now(self) -> None:
        assert self._group is not None
        caches = sorted(self._group.glob("mon_data/mon_L3_*"))[:MOST_CACHES]
        self._at_s.append(time.monotonic())
        for name in self.names:
            if name in self.absent:
                continue
            try:
                values = [_number(cache / FILES[name]) for cache in caches]
            except (OSError, ValueError) as error:
                self._lose((name,), f"resctrl does not tell it: {error}")
                continue
            if not values:
                self._lose((name,), "resctrl shows no cache")
                continue
            self._read.setdefault(name, []).append(sum(values))
            del self._read[name][:-MOST_READINGS]
        del self._at_s[:-MOST_READINGS]

    def _make(self, group: Path) -> None:
        group.mkdir()

    def _remove(self) -> None:
        group, self._group = self._group, None
        if group is not None:
            with suppress(OSError):
                group.rmdir()

    def _lose(self, names: Iterable[str], why: str) -> None:
        for name in names:
            self.absent.setdefault(name, why)


def why_not(root: Path = ROOT) -> str:
    """Why nothing is counted here; empty where something is."""
    if not (root / "info").is_dir():
        return "no resctrl is mounted (Intel RDT or AMD QoS; virtual machines rarely have either)"
    if not (root / "info" / "L3_MON" / "mon_features").is_file():
        return "this processor has no counters of cache and memory bandwidth (resctrl)"
    if not os.access(root / "mon_groups", os.W_OK):
        return "resctrl needs root"
    return ""


def counted(root: Path = ROOT) -> tuple[str, ...]:
    """Observables that this processor counts."""
    try:
        told = (root / "info" / "L3_MON" / "mon_features").read_text().split()
    except OSError:
        return ()
    return tuple(name for name, file in FILES.items() if file in told)


def _number(path: Path) -> float:
    """Raises `OSError`, or `ValueError` of what is no figure, such as `Unavailable`."""
    with path.open("rb") as file:
        text = file.read(MOST_DIGITS).decode(errors="replace").strip()
    if not text.isdigit():
        raise ValueError(f"it says {text!r}")
    return float(text)


def _group_with(root: Path, threads: set[str]) -> str:
    """The name of a group that somebody made, with one of these threads; empty: there is none."""
    for tasks in (*root.glob("*/tasks"), *root.glob("mon_groups/*/tasks"),
                  *root.glob("*/mon_groups/*/tasks")):  # fmt: skip
        if tasks.parent.name.startswith(PREFIX):
            continue
        with suppress(OSError):  # it was removed meanwhile
            if threads & set(tasks.read_text().split()):
                return tasks.parent.name
    return ""


def _sweep(root: Path) -> None:
    """Remove groups of processes that are gone."""
    for group in root.glob(f"mon_groups/{PREFIX}*-*"):
        process = group.name.removeprefix(PREFIX).partition("-")[0]
        if process.isdigit() and not (PROC / process).is_dir():
            with suppress(OSError):
                group.rmdir()
