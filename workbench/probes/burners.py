"""Who burns the host's CPU: processes by their groups, from one pass over `/proc`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.probes.process import PROC, START_FIELD, TICK_S

CONTAINER = re.compile(r"(?:^|[/-])([0-9a-f]{64})(?:\.scope)?(?:/|$)")
"""A container's id in the path of its group, as every engine writes it (`docker/ID`,
`docker-ID.scope`)."""
LEAST_CORES = 0.05
"""Who burns less is not named."""


@dataclass(frozen=True)
class Burning:
    """CPU seconds of a process so far, and where it belongs."""

    name: str
    group: str
    """A container or service, as people name it; empty: none."""
    cpu_s: float


@dataclass(frozen=True)
class Burner:
    """A group, or a process of none, and what it burned over a while."""

    name: str
    cores: float

    def __str__(self) -> str:
        return f"{self.name} {self.cores:.1f} cores"


Burned = Mapping[tuple[int, int], Burning]
"""By process id and start time: ids are used again."""


def parse_group(membership: str) -> str:
    """What to call the group in `/proc/<pid>/cgroup`: a container by its id, a service by name."""
    paths = [line.split(":", 2)[2] for line in membership.splitlines() if line.count(":") >= 2]
    for path in paths:
        if found := CONTAINER.search(path):
            return f"container {found[1][:12]}"
    names = [part for path in paths for part in path.split("/") if part.endswith(".service")]
    return names[-1] if names else ""


def parse_stat(stat: str) -> tuple[str, int, int, float]:
    """Name, parent, start time in ticks and CPU seconds in `/proc/<pid>/stat`."""
    name = stat[stat.index("(") + 1 : stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2 :].split()  # the third of proc(5) and those after it
    cpu_s = (int(fields[11]) + int(fields[12])) * TICK_S
    return name, int(fields[1]), int(fields[START_FIELD - 3]), cpu_s


def read(proc: Path = PROC) -> tuple[Burned, float]:
    """Every process but this one and its children; CPU seconds of these, dead ones included."""
    own, found = os.getpid(), {}
    times = os.times()
    own_s = times.children_user + times.children_system
    for folder in proc.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            name, parent, started, cpu_s = parse_stat((folder / "stat").read_text(errors="replace"))
            if own in (int(folder.name), parent):
                own_s += cpu_s
                continue
            group = parse_group((folder / "cgroup").read_text(errors="replace"))
        except OSError:  # it has ended meanwhile
            continue
        found[int(folder.name), started] = Burning(name, group, cpu_s)
    return found, own_s


def busiest(before: Burned, after: Burned, seconds: float, most: int = 3) -> tuple[Burner, ...]:
    """Who burned most between two passes, the busiest first; who came and went is not seen."""
    groups: dict[str, dict[str, float]] = {}
    for key, process in after.items():
        was = before[key].cpu_s if key in before else 0.0
        cores = (process.cpu_s - was) / seconds
        if cores <= 0.0:
            continue
        name = process.name if process.group else f"{process.name} (process {key[0]})"
        members = groups.setdefault(process.group or name, {})
        members[name] = members.get(name, 0.0) + cores
    burners = []
    for group, members in groups.items():
        chief = max(members, key=lambda name: members[name])
        title = group if group == chief else f"{group} ({chief})"
        burners.append(Burner(title, sum(members.values())))
    burners.sort(key=lambda burner: -burner.cores)
    return tuple(burner for burner in burners[:most] if burner.cores >= LEAST_CORES)
