"""One container of a target: made, configured, started, asked, read from."""

from __future__ import annotations

import io
import json
import posixpath
import secrets
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiodocker
from aiodocker.containers import DockerContainer
from aiodocker.stream import Stream

from workbench.domain.errors import LabError
from workbench.domain.logs import ComponentLog, WrittenLine
from workbench.domain.topology import VnfTemplate
from workbench.labs.components.component import Component, Ended, Limits, Outcome
from workbench.labs.components.environment import FORWARDING, SYSCTLS, expand
from workbench.labs.docker import logs
from workbench.labs.docker.strays import (
    COMPONENT_LABEL,
    IN_PROGRESS,
    NOT_FOUND,
    OWNER_LABEL,
    SESSION_LABEL,
    Owner,
    remove_container,
)
from workbench.measuring.records import ComponentCounters
from workbench.probes.containers import ContainerProbe, from_engine

LEAST_MEMORY = 6 << 20
"""The engine gives no container less."""
NOFILE = 20_000
"""Open files of a container: a connection each; some hosts refuse more."""

STDOUT = 1


@dataclass
class Container(Component):
    """A component in a container of its own."""

    container: DockerContainer = field(kw_only=True)
    network: str = field(kw_only=True)
    """Id of the network towards the source: its address there is the one that is spoken to."""
    read_ns: int = 0
    """Until when its log was read."""

    @property
    def place(self) -> str:
        return f"container {self.name}"

    async def limit_cpu(self, cores: float, pinned: tuple[int, ...]) -> None:
        await self._update(cpu_settings(cores, pinned))

    async def limit_memory(self, memory_bytes: int) -> None:
        try:
            await self._update(memory_settings(memory_bytes))
        except aiodocker.DockerError as error:
            # The kernel takes away no memory that is in use.
            raise LabError(f"the engine refused: {error.message}", where=self.place) from error

    async def _update(self, settings: Mapping[str, int | str]) -> None:
        """Change limits in place."""
        # aiodocker has no call for this one.
        async with self.container.docker._query(
            f"containers/{self.container.id}/update", method="POST", data=json.dumps(settings)
        ) as response:
            await response.read()

    async def put(self, files: Mapping[str, str | bytes]) -> None:
        async with self.container.docker._query(
            f"containers/{self.container.id}/archive",
            method="PUT",
            params={"path": "/"},
            headers={"Content-Type": "application/x-tar"},
            data=io.BytesIO(pack(files)),
        ):
            pass

    async def get(self, path: str) -> bytes:
        archive = await self.container.get_archive(path)
        with archive:
            entry = archive.extractfile(posixpath.basename(path))
            return entry.read() if entry else b""

    async def start(self, *, again: bool = False) -> None:
        """Start it, or start it again; its address and processes are new ones then."""
        if again:
            await self.container.restart(t=0)
        else:
            await self.container.start()
        found = await self.container.show()
        networks = found["NetworkSettings"]["Networks"].values()
        # It has none where its network was taken from it meanwhile; `death` says so.
        self.address, self.mac = next(
            ((n["IPAddress"], n["MacAddress"]) for n in networks if n["NetworkID"] == self.network),
            ("", ""),
        )
        self.pid = found["State"]["Pid"]
        self.probe = ContainerProbe.find(self.container.id, self.pid)

    async def begin(self, argv: Sequence[str]) -> Execution:
        """Start a program in it; argv, no shell."""
        execution = await self.container.exec(list(argv))
        stream = execution.start(detach=False)
        await stream.__aenter__()  # else aiodocker would start it at the first read
        return Execution(self.container, execution.id, stream)

    async def halt(self) -> None:
        # The engine cannot end a single program.
        try:
            await self.start(again=True)
        except aiodocker.DockerError as error:
            # Where the container itself is gone, that error is on its way already.
            if error.status != NOT_FOUND:
                raise

    async def counters(self) -> ComponentCounters:
        try:
            stats = await self.container.docker._query_json(
                f"containers/{self.container.id}/stats",
                params={"stream": "false", "one-shot": "true"},
            )
        except aiodocker.DockerError as error:
            if error.status in (NOT_FOUND, IN_PROGRESS):
                raise Ended(self) from error
            raise
        if not stats.get("cpu_stats", {}).get("system_cpu_usage"):
            # The engine answers for a stopped container too, with nothing in it.
            raise Ended(self)
        return from_engine(stats)

    async def remove(self) -> None:
        await remove_container(self.container.docker, self.container.id)

    async def written(self) -> ComponentLog:
        """What it wrote since this was asked last."""
        read = await logs.read(self.container, self.read_ns)
        self.read_ns = read.last_ns
        return ComponentLog.of(self.name, read.lines, uncounted=read.entries >= logs.TAIL)

    async def last_line(self) -> WrittenLine | None:
        """Of its log, the last line that is not empty; None where there is none."""
        lines = (await logs.read(self.container)).lines
        return next((line for line in reversed(lines) if line.text.strip()), None)

    async def death(self) -> LabError | None:
        """Why it cannot be spoken to any more, or None if it can."""
        where = f"container {self.name} ({self.template.name})"
        try:
            found = await self.container.show()
            state: Mapping[str, Any] = found["State"]
            if state["Running"] and found["NetworkSettings"]["Networks"]:
                return None
            if state["Running"]:
                return LabError(
                    "its network was taken from it",
                    where=where,
                    remedy="Leave the networks of a running session alone",
                )
            said = await self.last_words()
        except aiodocker.DockerError as error:
            if error.status != 404:
                raise
            what = "the container was removed by somebody else, and its log with it"
            return LabError(what, where=self.name)
        if state.get("OOMKilled"):
            what = "the kernel ended it for lack of memory"
        else:
            what = f"it ended with exit code {state['ExitCode']}"
        return LabError(
            f"{what}; {said}",
            where=where,
            remedy="Try its configuration by hand, or lower the load",
        )


@dataclass
class Execution:
    """A program that runs in a container."""

    container: DockerContainer
    execution: str
    stream: Stream

    async def pid(self) -> int:
        """Its process id on the engine's host; 0 until it runs."""
        found = await self.container.docker._query_json(f"exec/{self.execution}/json")
        return int(found.get("Pid") or 0)

    async def finish(self) -> Outcome:
        """Read what it says until it ends."""
        texts: dict[int, list[bytes]] = {}
        try:
            while message := await self.stream.read_out():
                texts.setdefault(message.stream, []).append(message.data)
        finally:
            await self.stream.close()
        found = await self.container.docker._query_json(f"exec/{self.execution}/json")
        stdout = b"".join(texts.pop(STDOUT, []))
        stderr = b"".join(part for parts in texts.values() for part in parts)
        return Outcome(
            int(found["ExitCode"] if found["ExitCode"] is not None else -1),
            stdout.decode(errors="replace"),
            stderr.decode(errors="replace"),
        )


PERIOD_US = 100_000
"""CFS period, the kernel's and Docker's default (METHOD.md 5)."""
UNLIMITED = -1


def cpu_settings(cores: float, pinned: Sequence[int]) -> dict[str, int | str]:
    """CPU part of a container's settings, the same for its creation and its update.

    Whole cores of a pinned component go by its cores alone, fractions by quota (METHOD.md 5).
    """
    whole = bool(pinned) and cores == len(pinned)
    quota = UNLIMITED if whole or not cores else round(cores * PERIOD_US)
    return {
        "CpuPeriod": PERIOD_US,
        "CpuQuota": quota,
        "CpusetCpus": ",".join(map(str, pinned)),
    }


def memory_settings(memory_bytes: int) -> dict[str, int]:
    """Memory part of a container's settings, without swap; the same for creation and update."""
    return {"Memory": memory_bytes, "MemorySwap": memory_bytes} if memory_bytes else {}


def capabilities(template: VnfTemplate) -> list[str]:
    """What a container may do besides what any may, by Docker's names."""
    forwards = ["NET_ADMIN"] if template.passage == "router" else []
    return [*forwards, *(["IPC_LOCK"] if template.locks_memory else [])]


def pack(files: Mapping[str, str | bytes]) -> bytes:
    """Files by absolute path as a tar for the root of a container."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.size = len(data)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


@dataclass(frozen=True)
class Workshop:
    """Makes a session's containers and its network, labelled so that they are found again."""

    docker: aiodocker.Docker
    session: str
    owner: Owner
    images: Mapping[str, str]
    """By template."""

    def labels(self, component: str = "") -> dict[str, str]:
        common = {SESSION_LABEL: self.session, OWNER_LABEL: str(self.owner)}
        return {**common, COMPONENT_LABEL: component} if component else common

    def _name(self, part: str) -> str:
        # Two workspaces may have sessions of one name on the same engine.
        plain = "".join(c if c.isalnum() or c in "_.-" else "-" for c in self.session)
        return f"vnf-{plain}-{part}-{secrets.token_hex(3)}"

    async def network(self) -> str:
        """Id of a new network that leads nowhere else: load never leaves the host."""
        made = await self.docker.networks.create(
            {
                "Name": self._name("net"),
                "Driver": "bridge",
                "Internal": True,
                "CheckDuplicate": True,
                "Labels": self.labels(),
            }
        )
        return str(made.id)

    async def networks_left(self, networks: Sequence[str]) -> list[str]:
        """Those that nobody has removed meanwhile."""
        there = {network["Id"] for network in await self.docker.networks.list()}
        return [network for network in networks if network in there]

    async def make(
        self,
        name: str,
        template: VnfTemplate,
        networks: Sequence[str],
        limits: Limits,
        environment: Mapping[str, str],
        shared_memory_bytes: int,
    ) -> Container:
        where = f"template {template.name}"
        forwards = template.passage == "router"
        given = {key: expand(value, where) for key, value in template.environment.items()}
        config: dict[str, Any] = {
            "Image": self.images[template.name],
            "Hostname": name,
            "Env": [f"{key}={value}" for key, value in {**given, **environment}.items()],
            "Labels": self.labels(name),
            "HostConfig": {
                **cpu_settings(limits.cores, limits.pinned),
                **memory_settings(limits.memory_bytes),
                "NetworkMode": networks[0],
                "RestartPolicy": {"Name": "no"},
                "LogConfig": logs.KEEPING,
                "ShmSize": shared_memory_bytes,
                "Ulimits": [{"Name": "nofile", "Soft": NOFILE, "Hard": NOFILE}],
                "Sysctls": {**SYSCTLS, **FORWARDING} if forwards else SYSCTLS,
                "CapAdd": capabilities(template),
            },
            "NetworkingConfig": {"EndpointsConfig": {networks[0]: {}}},
        }
        if template.command:
            config["Cmd"] = list(template.command)
        container = await self.docker.containers.create(config, name=self._name(name))
        for further in networks[1:]:
            await (await self.docker.networks.get(further)).connect({"Container": container.id})
        return Container(name, template, container=container, network=networks[0])
