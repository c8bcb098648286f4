"""Functions that run already: where they are now, and whether they are still the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiodocker

from workbench.domain.attaching import Attached
from workbench.domain.errors import LabError
from workbench.labs.docker.engine import connect, speaking_to
from workbench.probes import cgroup, process
from workbench.probes.containers import ContainerProbe
from workbench.probes.process import PROC

COMPOSE_SERVICE, COMPOSE_PROJECT = "com.docker.compose.service", "com.docker.compose.project"
NOT_FOUND = 404
ON_ENGINE = ("container", "label", "compose")


@dataclass(frozen=True)
class FoundFunction:
    """A function as it runs now."""

    place: str
    """As a sentence names it."""
    pid: int
    """Of its first process, on this host."""
    started_s: float
    """When that started: a later process of the same number started later."""
    folders: cgroup.CgroupFolders
    inode: int
    """Of its control group's folder."""
    own_network: bool
    address: str = ""
    """Of a container, on its first network."""
    image: str = ""
    """Digest of a container's image."""

    @property
    def probe(self) -> ContainerProbe:
        return ContainerProbe(self.pid, self.folders, self.own_network)

    def departure(self) -> str:
        """What has become of it, as a clause; empty while it runs as it was found."""
        try:
            started_s = process.read_start_s(self.pid)
        except OSError:
            return f"its process {self.pid} has ended"
        if started_s != self.started_s:
            return f"its process {self.pid} has ended, and another one has that number now"
        try:
            if self.folders.cpu.stat().st_ino != self.inode:
                return "its control group is a new one"
        except OSError:
            return "its control group is gone"
        membership = _membership(self.pid)
        folders = cgroup.locate(_mounts(), membership) if membership else None
        if folders is not None and folders.cpu != self.folders.cpu:
            return f"it was moved to another control group ({folders.cpu})"
        return ""


async def find(attached: Attached) -> FoundFunction:
    """Where a function runs now. Raises `LabError` with what is not as the campaign says."""
    if attached.found_by in ON_ENGINE:
        async with connect() as docker:
            with speaking_to(attached.found):
                shown = await _container(docker, attached)
        found = _of_container(attached, shown)
    elif attached.found_by == "pid":
        found = _of_process(int(attached.found_at))
    else:
        found = _of_group(attached)
    called = _program(found.pid)
    if attached.program and called != attached.program:
        raise LabError(
            f"its process {found.pid} is called {called!r}, and not {attached.program!r}: "
            "it is another one",
            where=attached.found,
            remedy="Name the process that is meant, as `workbench discover` lists it",
        )
    return found


async def _container(docker: aiodocker.Docker, attached: Attached) -> Mapping[str, Any]:
    """What the engine says of the one running container that is meant."""
    if attached.found_by == "container":
        try:
            shown: Mapping[str, Any] = await docker.containers.container(attached.found_at).show()
        except aiodocker.DockerError as error:
            if error.status != NOT_FOUND:
                raise
            raise LabError(
                "there is no such container", where=attached.found, remedy=SEE_DISCOVER
            ) from None
        return shown
    meant = {"label": labels_of(attached), "status": ["running"]}
    running = await docker.containers.list(filters=meant)
    if len(running) != 1:
        names = ", ".join(sorted(str(c["Names"][0]).lstrip("/") for c in running))
        raise LabError(
            f"{len(running)} containers run that are meant by it ({names}), one is needed"
            if running
            else "no container that is meant by it runs",
            where=attached.found,
            remedy=SEE_DISCOVER,
        )
    return await running[0].show()


SEE_DISCOVER = "See `workbench discover`"


def labels_of(attached: Attached) -> list[str]:
    """Labels, `KEY=VALUE`, of what is found by a label or as a service of Compose."""
    if attached.found_by != "compose":
        return [attached.found_at]
    project, _, service = attached.found_at.rpartition("/")
    of_project = [f"{COMPOSE_PROJECT}={project}"] if project else []
    return [f"{COMPOSE_SERVICE}={service}", *of_project]


def _of_container(attached: Attached, shown: Mapping[str, Any]) -> FoundFunction:
    state = shown.get("State", {})
    name = str(shown.get("Name", "")).lstrip("/")
    place = f"container {name}"
    if not state.get("Running") or state.get("Paused"):
        said = "paused" if state.get("Paused") else str(state.get("Status", "not running"))
        raise LabError(f"it is {said}", where=place, remedy="Start it; nothing is started here")
    pid = int(state.get("Pid", 0))
    probe = ContainerProbe.find(str(shown["Id"]), pid)
    if probe is None:
        raise LabError(
            "it does not run on this host, or its control group cannot be seen from here",
            where=place,
            remedy="Run the workbench on the host of its engine, as root",
        )
    networks = (shown.get("NetworkSettings") or {}).get("Networks") or {}
    addresses = [str(n.get("IPAddress") or "") for n in networks.values()]
    address = next(filter(None, addresses), "")
    if not address and "{address}" in attached.url + attached.past:
        raise LabError(
            "it has no address of its own, as it uses its host's network",
            where=place,
            remedy="Write the address into its url, such as 127.0.0.1",
        )
    return _found(place, pid, probe.folders, address=address, image=str(shown.get("Image", "")))


def _of_process(pid: int) -> FoundFunction:
    place = f"process {pid}"
    membership = _membership(pid)
    if not membership:
        raise LabError("there is no such process", where=place, remedy=SEE_DISCOVER)
    folders = cgroup.locate(_mounts(), membership)
    if folders is None or _is_top(folders):
        raise LabError(
            "it has no control group of its own, so that nothing of it can be counted or limited",
            where=place,
            remedy="Move it to one (docs/attach.md says how)",
        )
    others = _members(folders) - _family(pid)
    if others:
        raise LabError(
            f"its control group {folders.cpu} holds {len(others)} other processes "
            f"({_program(min(others))!r} is one), which would be counted and limited with it",
            where=place,
            remedy=f"Move it to a group of its own (docs/attach.md), or attach that group: "
            f"cgroup: {membership.get('cpu', membership.get(cgroup.UNIFIED, ''))}",
        )
    return _found(place, pid, folders, address="")


def _of_group(attached: Attached) -> FoundFunction:
    path, mounts = attached.found_at.rstrip("/"), _mounts()
    place = f"control group {path}"
    if ".." in path.split("/"):
        raise LabError("its path goes upwards", where=place, remedy="Write it from the top")
    folders = cgroup.locate(mounts, dict.fromkeys(mounts, path))
    if folders is None or not (folders.cpu / "cgroup.procs").exists() or _is_top(folders):
        raise LabError("there is no such control group", where=place, remedy=SEE_DISCOVER)
    members = _members(folders)
    if not members:
        raise LabError(
            "no process runs in it", where=place, remedy="Start it; nothing is started here"
        )
    first = min(members, key=_started_s)
    return _found(place, first, folders, address="")


def _found(
    place: str, pid: int, folders: cgroup.CgroupFolders, *, address: str, image: str = ""
) -> FoundFunction:
    try:
        return FoundFunction(
            place,
            pid,
            process.read_start_s(pid),
            folders,
            folders.cpu.stat().st_ino,
            not _shares_network(pid),
            address,
            image,
        )
    except OSError as error:
        raise LabError(f"it has just ended ({error.strerror})", where=place) from error


def _shares_network(pid: int) -> bool:
    here, there = (PROC / who / "ns" / "net" for who in ("self", str(pid)))
    return here.stat().st_ino == there.stat().st_ino


def _members(folders: cgroup.CgroupFolders) -> set[int]:
    with suppress(OSError):
        return set(map(int, (folders.cpu / "cgroup.procs").read_text().split()))
    return set()


def _family(pid: int) -> set[int]:
    """A process and all that it started, as far as they still hang together."""
    found, waiting = set[int](), [pid]
    while waiting:
        one = waiting.pop()
        found.add(one)
        for children in (PROC / str(one) / "task").glob("*/children"):
            with suppress(OSError):
                waiting += [int(n) for n in children.read_text().split() if int(n) not in found]
    return found


def _is_top(folders: cgroup.CgroupFolders) -> bool:
    return os.path.ismount(folders.cpu)


def _started_s(pid: int) -> float:
    with suppress(OSError):
        return process.read_start_s(pid)
    return float("inf")


def _program(pid: int) -> str:
    with suppress(OSError):
        return (PROC / str(pid) / "comm").read_text().strip()
    return ""


def _membership(pid: int) -> dict[str, str]:
    with suppress(OSError):
        return cgroup.parse_membership((PROC / str(pid) / "cgroup").read_text())
    return {}


def _mounts() -> dict[str, cgroup.Mount]:
    return cgroup.parse_mounts(Path(PROC / "self" / "mountinfo").read_text())
