"""Whose containers and networks are whose, and removing those that nobody owns any more."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiodocker

from workbench.probes import network_threads, process

SESSION_LABEL = "vnf-workbench.session"
COMPONENT_LABEL = "vnf-workbench.component"
OWNER_LABEL = "vnf-workbench.owner"
MAKING_LABEL = "vnf-workbench.making"
"""On a container in which an image or a program is made; it is of no session. Holds the owner."""

NOT_FOUND, IN_PROGRESS, IN_USE = 404, 409, 403
ENDPOINTS_S = 10.0
"""How long a network may have endpoints of containers that somebody else is just removing."""


@dataclass(frozen=True)
class Owner:
    """The process that made an object: as long as it lives, nobody else removes the object."""

    host: str
    boot: str
    pid: int
    started_ms: int
    """Since its host started; tells it from a later process of the same number."""

    @classmethod
    def this_process(cls) -> Owner:
        return cls(socket.gethostname(), _boot(), os.getpid(), _started_ms(os.getpid()))

    def __str__(self) -> str:
        return f"{self.host}/{self.boot}/{self.pid}/{self.started_ms}"

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        try:
            host, boot, pid, started_ms = text.split("/")
            return cls(host, boot, int(pid), int(started_ms))
        except ValueError:
            return None

    def may_live(self) -> bool:
        """False only if the process is known to be gone; one on another host cannot be known."""
        if self.host != socket.gethostname():
            return True
        if self.boot != _boot():
            return False
        try:
            return _started_ms(self.pid) == self.started_ms
        except OSError:
            return False


def _started_ms(pid: int) -> int:
    return round(process.read_start_s(pid) * 1000)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def is_stray(labels: Mapping[str, str], alive: frozenset[str]) -> bool:
    """Whether an object is ours and belongs to a session that nobody runs any more.

    A session in `alive` keeps its objects. So does any other whose process still runs: a second
    workspace on the same engine. This process knows its own sessions, they are all in `alive`.
    """
    session = labels.get(SESSION_LABEL)
    if session is None or session in alive:
        return False
    owner = Owner.parse(labels.get(OWNER_LABEL, ""))
    return owner is None or owner == Owner.this_process() or not owner.may_live()


def is_left(labels: Mapping[str, str]) -> bool:
    """Whether whoever made something in that container is gone."""
    owner = Owner.parse(labels.get(MAKING_LABEL, ""))
    return owner is None or not owner.may_live()


async def labelled(
    docker: aiodocker.Docker, session: str | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Containers (stopped ones too) and networks that carry our label, as the engine lists them."""
    label = f"{SESSION_LABEL}={session}" if session else SESSION_LABEL
    filters = {"label": [label]}
    containers = await docker.containers.list(all=True, filters=json.dumps(filters))
    networks = await docker.networks.list(filters=filters)
    return [c._container for c in containers], networks


async def remove(
    docker: aiodocker.Docker,
    containers: list[dict[str, Any]],
    networks: list[dict[str, Any]],
) -> tuple[str, ...]:
    """Remove objects, containers first; the names of what went. Gone already is no error."""
    removed = await asyncio.gather(
        *(_remove_container(docker, container) for container in containers)
    )
    # A network goes only once nothing is attached to it.
    removed += await asyncio.gather(*(_remove_network(docker, network) for network in networks))
    return tuple(name for name in removed if name)


async def _remove_container(docker: aiodocker.Docker, container: Mapping[str, Any]) -> str:
    await remove_container(docker, container["Id"])
    return str(container["Names"][0]).lstrip("/")


async def remove_container(docker: aiodocker.Docker, container_id: str) -> None:
    """End and remove a container; gone already is no error."""
    await asyncio.to_thread(network_threads.release, container_id)
    try:
        await docker.containers.container(container_id).delete(force=True, v=True)
    except aiodocker.DockerError as error:
        if error.status not in (NOT_FOUND, IN_PROGRESS):
            raise


async def _remove_network(docker: aiodocker.Docker, network: Mapping[str, Any]) -> str:
    """Gone already is no error, and a container that is just being removed is waited for."""
    until = time.monotonic() + ENDPOINTS_S
    while True:
        try:
            async with docker._query(f"networks/{network['Id']}", method="DELETE"):
                return str(network["Name"])
        except aiodocker.DockerError as error:
            if error.status == NOT_FOUND:
                return str(network["Name"])
            if error.status != IN_USE or time.monotonic() > until:
                raise
        await asyncio.sleep(0.1)


async def reap(docker: aiodocker.Docker, alive: frozenset[str]) -> tuple[str, ...]:
    """Remove the objects of dead sessions and processes; nothing without our label is touched."""
    containers, networks = await labelled(docker)
    making = await docker.containers.list(all=True, filters=json.dumps({"label": [MAKING_LABEL]}))
    return await remove(
        docker,
        [c for c in containers if is_stray(c.get("Labels") or {}, alive)]
        + [c._container for c in making if is_left(c._container.get("Labels") or {})],
        [n for n in networks if is_stray(n.get("Labels") or {}, alive)],
    )
