"""What runs and can be attached: containers of this host's engine, domains of its libvirt,
processes that listen here or on a host reached by SSH."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from workbench.descriptors.fields import RESERVED_INSTANCES
from workbench.domain.attaching import LOCAL_LIBVIRT, Attached, SshAddress
from workbench.domain.errors import LabError, LabGone, UsageError
from workbench.labs.attached.cgroup_limits import CgroupLimits
from workbench.labs.attached.domain_function import find_domain
from workbench.labs.attached.finding import (
    COMPOSE_PROJECT,
    COMPOSE_SERVICE,
    FoundFunction,
    find,
)
from workbench.labs.attached.remote_finding import find_there
from workbench.labs.attached.virsh import asked
from workbench.labs.docker.engine import connect, speaking_to
from workbench.labs.docker.strays import MAKING_LABEL, SESSION_LABEL
from workbench.probes.process import PROC
from workbench.probes.remote_shell import MOST_SHOWN, RemoteShell

LISTENS = "0A"
"""State of a socket in `/proc/net/tcp` that waits for connections."""
LOOPBACK = "0100007F"
PROXY = "docker-proxy"
"""Stands for a container that is listed."""
PUBLISHED = re.compile(r"(\S+):([0-9]{1,5})(?:-([0-9]{1,5}))?->[0-9]+(?:-[0-9]+)?/tcp")
MOST_PORTS = 64
"""Of a range that is published, those that are told."""
MOST_PROCESSES = 20_000
UNSEEN_PORT = 80
"""What a domain is taken to listen at: its guest is not looked into."""
NOT_ROOT = "only what that login owns is listed; log in as root to see all"
MOST_THERE = 200
"""Processes that listen on another host and are looked at: six questions each."""
DOMAINS_S = 20.0
"""For which a libvirt is asked about its domains, all together."""
OURS = (SESSION_LABEL, MAKING_LABEL)


@dataclass(frozen=True)
class Candidate:
    """Something that runs here. `why_not` says what stands against attaching it; empty: nothing."""

    kind: str
    """`container`, `domain` or `process`."""
    name: str
    """A container's or a domain's name, or a process's id."""
    program: str
    image: str = ""
    compose: str = ""
    """PROJECT/SERVICE where Compose started it."""
    pid: int = 0
    cgroup: str = ""
    address: str = ""
    ports: tuple[int, ...] = ()
    vcpu: float = 0.0
    """Its quota in cores; 0 without one."""
    memory_bytes: int = 0
    """The most that it may hold; 0 without a limit."""
    why_not: str = ""
    host: str = ""
    """Reached by SSH; empty: this host."""

    def plain(self) -> dict[str, Any]:
        return {**asdict(self), "ports": list(self.ports)}


async def discover() -> tuple[tuple[Candidate, ...], str]:
    """What can be attached here, containers first; and why no container is listed, if none is.

    Domains are those of the host's own libvirt; where none answers, there are none.
    """
    try:
        containers, why = await _containers(), ""
    except LabError as error:
        containers, why = [], str(error)
    in_containers = {c.pid for c in containers}
    processes = [p for p in await _processes() if p.pid not in in_containers]
    return (*containers, *await domains(), *processes), why


async def domains(connect: str = LOCAL_LIBVIRT) -> list[Candidate]:
    """Domains of libvirt that run; none where no libvirt answers.

    A slow libvirt is asked about each for `DOMAINS_S` in all; the others are listed as not seen.
    """
    try:
        names = (await asked(connect, "list", "--name")).split("\n")
    except LabError:
        return []
    found = []
    until = time.monotonic() + DOMAINS_S
    for name in sorted(filter(None, map(str.strip, names)))[:MOST_THERE]:
        candidate = Candidate("domain", name, "qemu", ports=(UNSEEN_PORT,))
        if time.monotonic() > until:
            why = f"libvirt took over {DOMAINS_S:g} s to tell of the domains before it; name it"
            found.append(replace(candidate, why_not=why))
            continue
        if name.isdecimal():
            why = "its name is a number, by which virsh means another; write its UUID"
            found.append(replace(candidate, why_not=why))
            continue
        attached = Attached(name, "domain", name, connect=connect, resources="schedinfo")
        try:
            domain = await find_domain(attached)
        except LabError as error:
            found.append(replace(candidate, why_not=error.what))
            continue
        memory = domain.look.figures.get("balloon.current", 0) * 1024
        vcpu = domain.look.cores or float(domain.vcpus)
        found.append(replace(candidate, program=domain.kind, vcpu=vcpu, memory_bytes=memory))
    return found


async def discover_there(host: str) -> tuple[tuple[Candidate, ...], str]:
    """Containers and processes that listen on a host reached by SSH, and what keeps others from
    being listed.

    Raises `LabError`, `UsageError`.
    """
    try:
        shell = RemoteShell(SshAddress.parse(host))
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        files = [PROC / "self" / "net" / name for name in ("tcp", "tcp6")]
        status = PROC / "self" / "status"
        seen = await shell.read([*files, status])
        bound = {k: v for file in files for k, v in _listening_in(seen.optional(file)).items()}
        ports: dict[int, set[tuple[int, bool]]] = {}
        pid = 0
        for line in (await shell.sockets()).splitlines():
            if line.startswith("/proc/"):
                pid = int(line.split("/")[2])
            elif (link := line.rpartition("-> ")[2]) in bound:
                ports.setdefault(pid, set()).add(bound[link])
        few = sorted(ports.items())[:MOST_THERE]
        why = [] if "\nUid:\t0\t" in seen.optional(status) else [NOT_ROOT]
        if more := len(ports) - len(few):
            why.append(f"{more} more processes listen and are not listed")
        containers, silent = await _containers_there(shell, host)
        # One on its host's network publishes nothing, and is attached as a process.
        in_containers = {one.pid for one in containers if not one.why_not}
        processes = [
            await _process_there(shell, host, *one) for one in few if one[0] not in in_containers
        ]
        named = [one for one in processes if one.program != PROXY]
        return (*containers, *named), "; ".join(filter(None, (*why, silent)))
    finally:
        await shell.close()


async def _containers_there(shell: RemoteShell, host: str) -> tuple[list[Candidate], str]:
    """Those that run there and are no lab's; why none is listed, where the engine does not say."""
    answer = await shell.labelled()
    if answer.code:
        said = " ".join(answer.fault.split())[:MOST_SHOWN] or f"exit code {answer.code}"
        return [], f"no container is listed: {said}"
    ours = {line for label in OURS for line in (await shell.labelled(label)).out.splitlines()}
    found = []
    for line in sorted(set(answer.out.splitlines()) - ours)[:MOST_THERE]:
        _, name, image, *bound = line.split()
        ports = published(" ".join(bound))
        candidate = Candidate(
            "container", name, "", image, address=shell.address.shown, ports=ports, host=host
        )
        why = "" if ports else "it publishes no TCP port of its host"
        found.append(
            await _looked_at_there(
                shell, candidate, Attached(name, "container", name, host=host), why
            )
        )
    return found, ""


def published(ports: str) -> tuple[int, ...]:
    """TCP ports of a host, of what `docker ps` prints: `0.0.0.0:8080->80/tcp, 443/tcp`, or
    `0.0.0.0:8000-8002->8000-8002/tcp`."""
    found: set[int] = set()
    for address, first, last in PUBLISHED.findall(ports):
        if not address.startswith(("127.", "::1", "[::1]")):
            found.update(range(int(first), int(last or first) + 1)[:MOST_PORTS])
    return tuple(sorted(found))


async def _process_there(
    shell: RemoteShell,
    host: str,
    pid: int,
    bound: set[tuple[int, bool]],
) -> Candidate:
    reached = tuple(sorted({port for port, loopback in bound if not loopback}))
    comm = PROC / str(pid) / "comm"
    called = (await shell.read([comm])).optional(comm).strip()
    candidate = Candidate(
        "process", str(pid), called, pid=pid, address=shell.address.shown, ports=reached, host=host
    )
    why = "" if reached else "it listens on its own host's loopback alone"
    return await _looked_at_there(shell, candidate, Attached("it", "pid", str(pid), host=host), why)


async def _looked_at_there(
    shell: RemoteShell, candidate: Candidate, attached: Attached, why: str
) -> Candidate:
    """With its limits, and `why` else it cannot be attached."""
    try:
        found = await find_there(shell, attached)
        limits = CgroupLimits(found.folders, found.place, found.held)
        return replace(
            candidate,
            pid=found.pid,
            cgroup=str(found.folders.cpu),
            vcpu=limits.cores(),
            memory_bytes=limits.memory_bytes(),
            why_not=why,
        )
    except LabGone:
        raise
    except LabError as error:
        return replace(candidate, why_not=error.what)
    except OSError:
        return replace(candidate, why_not="its control group cannot limit CPU")


async def _containers() -> list[Candidate]:
    found = []
    async with connect() as docker:
        with speaking_to("the Docker engine"):
            listed = [c._container for c in await docker.containers.list()]
    for one in sorted(listed, key=lambda c: str(c["Names"][0])):
        labels: Mapping[str, str] = one.get("Labels") or {}
        if any(label in labels for label in OURS):
            continue
        name = str(one["Names"][0]).lstrip("/")
        service, project = labels.get(COMPOSE_SERVICE, ""), labels.get(COMPOSE_PROJECT, "")
        candidate = Candidate(
            "container",
            name,
            str(one.get("Command", "")).split(" ")[0],
            image=str(one.get("Image", "")),
            compose=f"{project}/{service}" if service else "",
        )
        found.append(await _looked_at(candidate, Attached(name, "container", name)))
    return found


async def _processes() -> list[Candidate]:
    """Processes that listen in this host's network, each with all its ports."""
    ports: dict[int, set[tuple[int, bool]]] = {}
    sockets = listening("self")
    for pid in sorted(int(p.name) for p in PROC.iterdir() if p.name.isdigit())[:MOST_PROCESSES]:
        for link in _links(pid):
            if link in sockets:
                ports.setdefault(pid, set()).add(sockets[link])
    found = []
    for pid, bound in ports.items():
        with suppress(OSError):
            program = (PROC / str(pid) / "comm").read_text().strip()
            if program in (PROXY, "workbench"):
                continue
            candidate = Candidate(
                "process",
                str(pid),
                program,
                pid=pid,
                address="127.0.0.1",
                ports=tuple(sorted({port for port, _ in bound})),
            )
            found.append(await _looked_at(candidate, Attached("it", "pid", str(pid))))
    return found


async def _looked_at(candidate: Candidate, attached: Attached) -> Candidate:
    try:
        found = await find(attached)
        limits = CgroupLimits.read(found.folders, found.place)
        return replace(
            candidate,
            program=_program(found.pid) or candidate.program,
            pid=found.pid,
            cgroup=str(found.folders.cpu),
            address=candidate.address or found.address or "127.0.0.1",
            ports=candidate.ports or _ports_of(found),
            vcpu=limits.cores(),
            memory_bytes=limits.memory_bytes(),
            why_not="" if os.geteuid() == 0 else "only root may count and limit it",
        )
    except LabError as error:
        return replace(candidate, why_not=error.what)
    except OSError:
        return replace(candidate, why_not="it has just ended")


def _ports_of(found: FoundFunction) -> tuple[int, ...]:
    """Ports that a container listens at, in its own network; those of a host are not told apart."""
    if not found.own_network:
        return ()
    reachable = {port for port, loopback in listening(str(found.pid)).values() if not loopback}
    return tuple(sorted(reachable))


def listening(who: str) -> dict[str, tuple[int, bool]]:
    """Listening sockets of a process's network: port, and whether on the loopback alone, by the
    name that descriptors' links give them."""
    found: dict[str, tuple[int, bool]] = {}
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            found |= _listening_in((PROC / who / "net" / name).read_text())
    return found


def _listening_in(sockets: str) -> dict[str, tuple[int, bool]]:
    """As `listening`, of the text of `/proc/net/tcp`."""
    found: dict[str, tuple[int, bool]] = {}
    for line in sockets.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == LISTENS:
            host, _, port = fields[1].rpartition(":")
            found[f"socket:[{fields[9]}]"] = (int(port, 16), host == LOOPBACK)
    return found


def _links(pid: int) -> set[str]:
    with suppress(OSError):
        return {_link(descriptor) for descriptor in (PROC / str(pid) / "fd").iterdir()}
    return set()


def _link(descriptor: Path) -> str:
    with suppress(OSError):
        return str(descriptor.readlink())
    return ""


def _program(pid: int) -> str:
    with suppress(OSError):
        return (PROC / str(pid) / "comm").read_text().strip()
    return ""


# ------------------------------------------------------------------ a campaign of them

MOST = 200
"""Requests per second that a campaign goes up to where nobody says: little, as nobody knows what
its system bears."""
SPAN = 20
"""From the lowest load of a campaign to its highest."""
GUARD = "p95<=500ms"

HEAD = """\
# Written by `workbench discover`. Look at url, max_load and guard before you run it:
#   workbench lint {file} && workbench run {file}
kind: campaign
summary: what runs already, as it was found

attach:
"""
FUNCTION = """\
  {name}:
    {found_by}: {found_at}
    url: http://{host}:{port}/          # where load enters{unseen}
    max_load: {most}/s                  # never passed
    guard: {guard}                   # broken: the load stops at once, and the campaign ends
"""
FIXED = "    resources: fixed               # or {other}, and vcpu below\n"
TAIL = """
primary_workload_parameter:
  name: rate
  range: [{low}/s, {most}/s]
  scale: log

kpi: p95
sampling: {{max_samples: 6}}
windows: {{warmup: 1s, window: 3s, timeout: 15s, request_timeout: 5s}}
budget: 15min
"""


def campaign_of(
    names: Sequence[str],
    candidates: Sequence[Candidate],
    file: str,
    vcpu: Sequence[str],
    most: int = MOST,
) -> str:
    """The text of a campaign over the candidates of these names.

    Parameters
    ----------
    vcpu : shares to profile each at, as descriptors write them; none: as it is.
    most : load in requests/s that is never passed.

    Raises
    ------
    UsageError
        For a name that nothing has, or what cannot be attached.
    """
    chosen = _named([_chosen(name, candidates) for name in names])
    text = HEAD.format(file=file)
    for name, one in chosen.items():
        container = one.kind == "container"
        domain = one.kind == "domain"
        own = container or domain or one.host
        at = one.name
        at += f"\n    program: {json.dumps(one.program)}" if one.kind == "process" else ""
        at += f"\n    host: {one.host}" if one.host else ""
        text += FUNCTION.format(
            name=name,
            found_by=one.kind if container or domain else "pid",
            found_at=at,
            host="{address}" if own and one.address != "127.0.0.1" else one.address,
            port=one.ports[0],
            unseen="; nobody looked at what it listens" if domain else "",
            most=most,
            guard=GUARD,
        )
        text += "" if vcpu else FIXED.format(other="schedinfo" if domain else "cgroup")
    text += "\ntargets:\n"
    for name in chosen:
        text += f"  - vnf: {name}\n"
        values = ", ".join(vcpu) or "25%, 50%"
        shares = f"resource_parameters: [{{name: vcpu, values: [{values}]}}]"
        text += f"    {shares}\n" if vcpu else f"    # {shares}\n"
    return text + TAIL.format(low=max(1, most // SPAN), most=most)


def _named(chosen: Sequence[Candidate]) -> dict[str, Candidate]:
    """By names that targets may have, made of a container's or a program's."""
    named: dict[str, Candidate] = {}
    for one in chosen:
        base = one.program if one.kind == "process" else one.name
        plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in base.lower())
        name = plain.strip("-")[:36].strip("-") or "function"
        if name in named or name in RESERVED_INSTANCES:
            name += f"-{len(named) + 1}"
        named[name] = one
    return named


def _chosen(name: str, candidates: Sequence[Candidate]) -> Candidate:
    found = next((c for c in candidates if name in (c.name, c.compose) and name), None)
    if found is None:
        known = ", ".join(c.name for c in candidates) or "nothing"
        raise UsageError(f"nothing here is called {name!r}", remedy=f"Choose among: {known}")
    if found.why_not:
        raise UsageError(f"{name} cannot be attached: {found.why_not}")
    if not found.ports:
        raise UsageError(
            f"{name} listens at no TCP port that can be reached",
            remedy="Start what serves in it, or write the campaign by hand (docs/attach.md)",
        )
    return found
