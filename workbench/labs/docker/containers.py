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
from workbench.domain.logs import ComponentLog, WrittenLine, quoted
from workbench.domain.topology import VnfTemplate
from workbench.labs.docker import logs
from workbench.labs.docker.engine import expand
from workbench.labs.docker.strays import COMPONENT_LABEL, OWNER_LABEL, SESSION_LABEL, Owner
from workbench.probes.containers import ContainerProbe

NOFILE = 20_000
"""Open files of a container: a connection each; some hosts refuse more."""
SYSCTLS = {
    # A closing proxy spends a local port per request and gets it back after a minute.
    "net.ipv4.ip_local_port_range": "10000 65000",
    # Hosts that default to BBR pace the lab's own links: after a delayed acknowledgement it takes
    # them for slow, and at 500-3000 requests/s over haproxy 9 % of the answers came after 40-90 ms
    # with both ends idle, 0.05 % with Reno. Reno is the one that every namespace may choose.
    "net.ipv4.tcp_congestion_control": "reno",
}
FORWARDING = {"net.ipv4.ip_forward": "1"}

STDOUT = 1


@dataclass(frozen=True)
class Outcome:
    """What a program in a container left: exit code and texts."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """The last line of either text, for a sentence."""
        lines = [*self.stdout.splitlines(), *self.stderr.splitlines()]
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")


@dataclass
class Component:
    """A container of a target, as it runs now."""

    name: str
    """VNF instance name, `source` or `sink`."""
    template: VnfTemplate
    container: DockerContainer
    network: str = ""
    """Id of the network towards the source: its address there is the one that is spoken to."""
    address: str = ""
    pid: int = 0
    """Of its first process, on the engine's host."""
    probe: ContainerProbe | None = None
    """None where the engine is on another host."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Configuration files as it was started with them."""
    threads: int = 0
    cores: float = 0.0
    """Its quota in cores; 0 without one."""
    memory_bytes: int = 0
    """The most that it may hold; 0 without a limit."""
    bandwidth_mbps: float = 0.0
    """The most that each of its interfaces sends; 0 without a limit."""
    pinned: tuple[int, ...] = ()
    read_ns: int = 0
    """Until when its log was read."""

    @property
    def endpoint(self) -> tuple[str, int]:
        return self.address, self.template.port

    async def update(self, settings: Mapping[str, int | str]) -> None:
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
            data=pack(files),
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
        self.address = next(
            (n["IPAddress"] for n in networks if n["NetworkID"] == self.network), ""
        )
        self.pid = found["State"]["Pid"]
        self.probe = ContainerProbe.find(self.container.id, self.pid)

    async def begin(self, argv: Sequence[str]) -> Program:
        """Start a program in it; argv, no shell."""
        execution = await self.container.exec(list(argv))
        stream = execution.start(detach=False)
        await stream.__aenter__()  # else aiodocker would start it at the first read
        return Program(self, execution.id, stream)

    async def run(self, argv: Sequence[str]) -> Outcome:
        program = await self.begin(argv)
        return await program.finish()

    async def written(self) -> ComponentLog:
        """What it wrote since this was asked last."""
        read = await logs.read(self.container, self.read_ns)
        self.read_ns = read.last_ns
        return ComponentLog.of(self.name, read.lines, uncounted=read.entries >= logs.TAIL)

    async def last_words(self) -> str:
        """The last line of its log, for a sentence."""
        line = await self.last_line()
        return f"the last line of its log: {quoted(line.whole)}" if line else "it wrote no log"

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
class Program:
    """A program that runs in a component."""

    component: Component
    execution: str
    stream: Stream

    async def pid(self) -> int:
        """Its process id on the engine's host; 0 until it runs."""
        found = await self.component.container.docker._query_json(f"exec/{self.execution}/json")
        return int(found.get("Pid") or 0)

    async def finish(self) -> Outcome:
        """Read what it says until it ends."""
        texts: dict[int, list[bytes]] = {}
        try:
            while message := await self.stream.read_out():
                texts.setdefault(message.stream, []).append(message.data)
        finally:
            await self.stream.close()
        found = await self.component.container.docker._query_json(f"exec/{self.execution}/json")
        stdout = b"".join(texts.pop(STDOUT, []))
        stderr = b"".join(part for parts in texts.values() for part in parts)
        return Outcome(
            int(found["ExitCode"] if found["ExitCode"] is not None else -1),
            stdout.decode(errors="replace"),
            stderr.decode(errors="replace"),
        )


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

    async def container(
        self,
        name: str,
        template: VnfTemplate,
        image: str,
        networks: Sequence[str],
        settings: Mapping[str, int | str],
        environment: Mapping[str, str],
        shared_memory_bytes: int,
    ) -> Component:
        """A new container, not started, on the networks from the source's side to the sink's.

        A router may set the rules of its own network, and forward; nobody else may.
        """
        where = f"template {template.name}"
        forwards = template.passage == "router"
        given = {key: expand(value, where) for key, value in template.environment.items()}
        config: dict[str, Any] = {
            "Image": image,
            "Hostname": name,
            "Env": [f"{key}={value}" for key, value in {**given, **environment}.items()],
            "Labels": self.labels(name),
            "HostConfig": {
                **settings,
                "NetworkMode": networks[0],
                "RestartPolicy": {"Name": "no"},
                "LogConfig": logs.KEEPING,
                "ShmSize": shared_memory_bytes,
                "Ulimits": [{"Name": "nofile", "Soft": NOFILE, "Hard": NOFILE}],
                "Sysctls": {**SYSCTLS, **FORWARDING} if forwards else SYSCTLS,
                **({"CapAdd": ["NET_ADMIN"]} if forwards else {}),
            },
            "NetworkingConfig": {"EndpointsConfig": {networks[0]: {}}},
        }
        if template.command:
            config["Cmd"] = list(template.command)
        container = await self.docker.containers.create(config, name=self._name(name))
        for further in networks[1:]:
            await (await self.docker.networks.get(further)).connect({"Container": container.id})
        return Component(name, template, container, networks[0])
