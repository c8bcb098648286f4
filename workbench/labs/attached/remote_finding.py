"""Functions that run already on another host: where they are, and whether they are still the same.

As `finding`, over SSH. Of containers `docker` is asked there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.domain.attaching import Attached
from workbench.domain.errors import LabError
from workbench.labs.attached.cgroup_limits import CgroupLimits, limit_files
from workbench.labs.attached.finding import labels_of
from workbench.probes import cgroup, process
from workbench.probes.process import PROC
from workbench.probes.remote_shell import MOST_SHOWN, RemoteShell, RemoteTexts, ShellAnswer

PAGE = 64 << 10
"""Bytes, the largest that a kernel of Linux has: what is whole in it is whole on every host."""
MOST_MEMBERS = 1000
"""Processes of a group that are looked at for the first one."""
PID = re.compile(r"[0-9]{1,10}")
MACHINE = Path("/etc/machine-id")
MOST_LOOKS = 200
"""Processes that are asked for what they started."""
TOLD = ("id", "process", "state", "image", "name")
"""Words of `RemoteShell.container`."""
NO_ANSWER = 124
"""What `timeout` ends with."""
SEE_CONTAINERS = "See `docker ps --all` there"
SEE_THERE = "See `ps -eo pid,cgroup,comm` there, or `workbench discover --host`"


@dataclass(frozen=True)
class RemoteFunctionFound:
    """A function as it ran on its host when it was found."""

    place: str
    pid: int
    """Of its first process, on its host."""
    started_s: float
    folders: cgroup.CgroupFolders
    mounts: Mapping[str, cgroup.Mount]
    number: int
    """Inode of its control group's folder."""
    own_network: bool
    held: Mapping[Path, str]
    """By file of a limit, what it held."""
    machine: str = ""
    """Of its host, as `/etc/machine-id` has it."""
    image: str = ""
    """Digest of a container's image."""

    @property
    def looked_at(self) -> tuple[Path, ...]:
        """Files that tell whether it is still the same, with the limits that were set."""
        at = PROC / str(self.pid)
        return (at / "stat", at / "cgroup", *self.held)

    def departure(self, seen: RemoteTexts, number: int | None) -> str:
        """What has become of it, as a clause; empty while it runs as it was found."""
        at = PROC / str(self.pid)
        try:
            started_s = process.parse_start_s(seen.text(at / "stat"))
        except (OSError, ValueError):
            return f"its process {self.pid} has ended"
        if started_s != self.started_s:
            return f"its process {self.pid} has ended, and another one has that number now"
        if number is None:
            return "its control group is gone"
        if number != self.number:
            return "its control group is a new one"
        membership = cgroup.parse_membership(seen.optional(at / "cgroup"))
        folders = cgroup.locate(self.mounts, membership) if membership else None
        if folders is not None and folders.cpu != self.folders.cpu:
            return f"it was moved to another control group ({folders.cpu})"
        return ""

    def limits(self, seen: RemoteTexts) -> CgroupLimits:
        held = {file: text.strip() for file in self.held if (text := seen.held.get(file))}
        return CgroupLimits(self.folders, self.place, held, PAGE)


async def find_there(shell: RemoteShell, attached: Attached) -> RemoteFunctionFound:
    """Where a function runs now. Raises `LabError` with what is not as the campaign says."""
    mounts = await mounts_of(shell)
    if attached.found_by == "pid":
        pid = int(attached.found_at)
        folders = await _group_of(shell, mounts, pid, attached)
    elif attached.found_by == "cgroup":
        folders = _named_group(mounts, attached)
        pid = await _first_of(shell, folders, attached)
    else:
        return await find_container(shell, mounts, attached)
    return await looked_at(shell, mounts, folders, pid, attached)


async def mounts_of(shell: RemoteShell) -> dict[str, cgroup.Mount]:
    """Hierarchies of control groups, as a login there sees them."""
    file = PROC / "self" / "mountinfo"
    return cgroup.parse_mounts((await shell.read([file])).optional(file))


async def looked_at(
    shell: RemoteShell,
    mounts: Mapping[str, cgroup.Mount],
    folders: cgroup.CgroupFolders,
    pid: int,
    attached: Attached,
) -> RemoteFunctionFound:
    """A process in a group, with all that tells it from another later on. Raises `LabError`."""
    at, namespace = PROC / str(pid), PROC / "self" / "ns" / "net"
    own = at / "ns" / "net"
    ours = PROC / "self" / "cgroup"
    seen = await shell.read([at / "stat", at / "comm", ours, MACHINE, *limit_files(folders)])
    membership = cgroup.parse_membership(seen.optional(ours))
    if membership and _holds(folders, cgroup.locate(mounts, membership)):
        raise LabError(
            "this login runs in its control group, and would be limited with it",
            where=attached.found,
            remedy="Attach a group that holds the function alone (docs/attach.md)",
        )
    numbers = await shell.numbers([folders.cpu, namespace, own])
    try:
        started_s = process.parse_start_s(seen.text(at / "stat"))
        called = seen.text(at / "comm").strip()
        number = numbers[folders.cpu]
    except (OSError, KeyError, ValueError):
        raise LabError("it has just ended", where=attached.found) from None
    if attached.program and called != attached.program:
        raise LabError(
            f"its process {pid} is called {called!r}, and not {attached.program!r}: it is another "
            "one",
            where=attached.found,
            remedy=SEE_THERE,
        )
    held = {file: seen.held[file].strip() for file in limit_files(folders) if file in seen.held}
    # Another user's namespace may not be looked at: it is then not known to be its own.
    has_own = own in numbers and numbers[own] != numbers.get(namespace)
    machine = seen.optional(MACHINE).strip()
    return RemoteFunctionFound(
        attached.found, pid, started_s, folders, mounts, number, has_own, held, machine
    )


async def find_container(
    shell: RemoteShell, mounts: Mapping[str, cgroup.Mount], attached: Attached
) -> RemoteFunctionFound:
    """The one running container that is meant, as the engine there tells it. Raises `LabError`."""
    name = attached.found_at
    if attached.found_by != "container":
        running = _said(await shell.labelled(*labels_of(attached)), attached).splitlines()
        if len(running) != 1:
            names = ", ".join(sorted(" ".join(line.split()[1:2]) for line in running))
            raise LabError(
                f"{len(running)} containers run that are meant by it ({names}), one is needed"
                if running
                else "no container that is meant by it runs",
                where=attached.found,
                remedy=SEE_CONTAINERS,
            )
        name = running[0].partition(" ")[0]
    told = _said(await shell.container(name), attached).split()
    if len(told) != len(TOLD) or not PID.fullmatch(told[1]):
        raise LabError("`docker inspect` there says what cannot be read", where=attached.found)
    number, pid, state, image, called = told
    place = f"container {called.lstrip('/')} on {attached.host}"
    if state != "running":
        raise LabError(f"it is {state}", where=place, remedy="Start it; nothing is started here")
    file = PROC / pid / "cgroup"
    membership = cgroup.parse_membership((await shell.read([file])).optional(file).strip())
    folders = cgroup.locate(mounts, membership) if membership else None
    if folders is None or number not in str(folders.cpu):
        raise LabError(
            "its control group cannot be seen by this login",
            where=place,
            remedy="Log in to the host on which its engine runs, as root",
        )
    found = await looked_at(shell, mounts, folders, int(pid), attached)
    return replace(found, place=place, image=image)


def _said(answer: ShellAnswer, attached: Attached) -> str:
    """What `docker` there answered. Raises `LabError` with why it did not."""
    if not answer.code:
        return answer.out.strip()
    said = " ".join(answer.fault.split())
    if "no such container" in said.lower():
        raise LabError("there is no such container", where=attached.found, remedy=SEE_CONTAINERS)
    if answer.code == NO_ANSWER:
        said = "it does not answer within 4 s"
    raise LabError(
        f"the engine there cannot be asked: {said[:MOST_SHOWN] or f'exit code {answer.code}'}",
        where=attached.found,
        remedy="See that this login may run `docker ps`, or attach it by its group (`cgroup:`)",
    )


async def _group_of(
    shell: RemoteShell, mounts: Mapping[str, cgroup.Mount], pid: int, attached: Attached
) -> cgroup.CgroupFolders:
    """The group of a process, which must be alone in it."""
    file = PROC / str(pid) / "cgroup"
    membership = cgroup.parse_membership((await shell.read([file])).optional(file).strip())
    if not membership:
        raise LabError("there is no such process", where=attached.found, remedy=SEE_THERE)
    folders = cgroup.locate(mounts, membership)
    if folders is None or is_top(mounts, folders):
        raise LabError(
            "it has no control group of its own, so that nothing of it can be counted or limited",
            where=attached.found,
            remedy="Move it to one (docs/attach.md says how)",
        )
    others = await _members(shell, folders) - await _family(shell, pid)
    if others:
        raise LabError(
            f"its control group {folders.cpu} holds {len(others)} other processes "
            f"({min(others)} is one), which would be counted and limited with it",
            where=attached.found,
            remedy=f"Move it to a group of its own (docs/attach.md), or attach that group: "
            f"cgroup: {membership.get('cpu', membership.get(cgroup.UNIFIED, ''))}",
        )
    return folders


def _named_group(mounts: Mapping[str, cgroup.Mount], attached: Attached) -> cgroup.CgroupFolders:
    path = attached.found_at.rstrip("/")
    if ".." in path.split("/"):
        raise LabError(
            "its path goes upwards", where=attached.found, remedy="Write it from the top"
        )
    folders = cgroup.locate(mounts, dict.fromkeys(mounts, path))
    if folders is None or is_top(mounts, folders):
        raise LabError("there is no such control group", where=attached.found, remedy=SEE_THERE)
    return folders


async def _first_of(shell: RemoteShell, folders: cgroup.CgroupFolders, attached: Attached) -> int:
    """The process of a group that began first."""
    members = await _members(shell, folders)
    if not members:
        there = folders.cpu in await shell.numbers([folders.cpu])
        raise LabError(
            "no process runs in it" if there else "there is no such control group",
            where=attached.found,
            remedy="Start it; nothing is started here" if there else SEE_THERE,
        )
    files = {PROC / str(pid) / "stat": pid for pid in sorted(members)[:MOST_MEMBERS]}
    seen = await shell.read(list(files))
    began: dict[int, float] = {}
    for file, pid in files.items():
        with suppress(OSError, ValueError):
            began[pid] = process.parse_start_s(seen.text(file))
    if not began:
        raise LabError("it has just ended", where=attached.found)
    return min(began, key=lambda pid: (began[pid], pid))


async def _members(shell: RemoteShell, folders: cgroup.CgroupFolders) -> set[int]:
    file = folders.cpu / "cgroup.procs"
    words = (await shell.read([file])).optional(file).split()
    return {int(word) for word in words if PID.fullmatch(word)}


def _holds(folders: cgroup.CgroupFolders, others: cgroup.CgroupFolders | None) -> bool:
    """Whether the one group is the other, or above it."""
    if others is None:
        return False
    return others.cpu.is_relative_to(folders.cpu) or others.memory.is_relative_to(folders.memory)


async def _family(shell: RemoteShell, pid: int) -> set[int]:
    """A process and all that it started, as far as they still hang together."""
    found, waiting = set[int](), [pid]
    while waiting and len(found) < MOST_LOOKS:
        one = waiting.pop()
        found.add(one)
        waiting += sorted(await shell.children(one) - found)
    return found


def is_top(mounts: Mapping[str, cgroup.Mount], folders: cgroup.CgroupFolders) -> bool:
    return any(folders.cpu == mount.point for mount in mounts.values())
