"""One component of the namespace lab: a program, its namespaces and its control group."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from workbench.domain.errors import LabError
from workbench.domain.logs import LONGEST_LINE, ComponentLog, Stream, WrittenLine
from workbench.domain.topology import VnfTemplate
from workbench.labs.components.component import Component, Ended, Limits, Outcome, Program
from workbench.labs.components.environment import FORWARDING, SYSCTLS, expand
from workbench.labs.netns.groups import Group
from workbench.labs.netns.namespaces import PATH, Bridge, Namespace, hold_root, set_kernel
from workbench.measuring.records import ComponentCounters
from workbench.probes.child_ending import signal_child, uncancelled
from workbench.probes.containers import ContainerProbe

TAIL = 200
"""Lines of a log that are kept."""
PATIENCE_S = 5.0
POLL_S = 0.01
WRITE = 'mkdir -p "$(dirname "$1")"; cat >"$1"; chmod "$2" "$1"'


def work_folder(group: str) -> Path:
    """Where a component's root is mounted, by its control group; to all but it an empty folder."""
    return Path("/var/tmp") / f"vnf-workbench-{group}"  # noqa: S108 - of a name that is its own


@dataclass
class Running:
    """A program that runs in a component."""

    process: asyncio.subprocess.Process
    feed: bytes | None = None

    async def pid(self) -> int:
        return self.process.pid

    async def finish(self) -> Outcome:
        out, err = await self.process.communicate(self.feed)
        code = self.process.returncode
        return Outcome(
            -1 if code is None else code,
            out.decode(errors="replace"),
            err.decode(errors="replace"),
        )


@dataclass
class Log:
    """The end of what a program writes, read as it comes, in constant memory."""

    lines: deque[WrittenLine] = field(default_factory=lambda: deque(maxlen=TAIL))
    fresh: int = 0
    """Lines since they were last asked for, those that are not kept any more included."""

    async def read(self, stream: asyncio.StreamReader, name: Stream) -> None:
        """Until the program ends."""
        begin, length = b"", 0
        while chunk := await stream.read(1 << 16):
            *whole, rest = chunk.split(b"\n")
            for part in whole:
                self._add(begin + part[: LONGEST_LINE - len(begin)], length + len(part), name)
                begin, length = b"", 0
            begin, length = begin + rest[: LONGEST_LINE - len(begin)], length + len(rest)
        if length:
            self._add(begin, length, name)

    def _add(self, begin: bytes, length: int, stream: Stream) -> None:
        self.lines.append(WrittenLine.decoded(begin, length, stream, time.time()))
        self.fresh += 1

    def take(self) -> tuple[list[WrittenLine], bool]:
        """Lines that are new, and whether some of them were not kept."""
        fresh, self.fresh = self.fresh, 0
        kept = min(fresh, len(self.lines))
        return list(self.lines)[len(self.lines) - kept :], fresh > kept


@dataclass(frozen=True)
class Held:
    """Where a component is to live: namespaces, a group, its addresses; nothing runs there."""

    name: str
    template: VnfTemplate
    namespace: Namespace
    group: Group
    environment: Mapping[str, str]
    address: str
    """On its first network."""


@dataclass
class ProcessComponent(Component):
    """A component that is a process in namespaces of its own."""

    namespace: Namespace = field(kw_only=True)
    group: Group = field(kw_only=True)
    environment: Mapping[str, str] = field(kw_only=True)
    log: Log = field(default_factory=Log)
    serving: asyncio.subprocess.Process | None = None
    _reading: asyncio.Future[tuple[None, None]] | None = None
    _spawned: set[asyncio.subprocess.Process] = field(default_factory=set)

    @property
    def place(self) -> str:
        return f"process {self.name}"

    @classmethod
    def at(cls, held: Held, **more: Any) -> Self:
        """The component that lives there; `more` are further fields of its class."""
        return cls(
            held.name,
            held.template,
            address=held.address,
            pid=held.namespace.pid,
            probe=ContainerProbe(held.namespace.pid, held.group.counters),
            namespace=held.namespace,
            group=held.group,
            environment=held.environment,
            **more,
        )

    async def _spawn(
        self, argv: Sequence[str], *, fed: bool = False, inherited: Sequence[int] = ()
    ) -> asyncio.subprocess.Process:
        if not self.namespace.alive:
            raise Ended(self)
        self._spawned = {one for one in self._spawned if one.returncode is None}
        process = await asyncio.create_subprocess_exec(
            *self.namespace.inside(argv, self.group.folders),
            stdin=asyncio.subprocess.PIPE if fed else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": PATH, **self.environment},
            pass_fds=inherited,
        )
        self._spawned.add(process)
        return process

    async def begin(self, argv: Sequence[str]) -> Program:
        return Running(await self._spawn(argv))

    async def put(self, files: Mapping[str, str | bytes]) -> None:
        for path, content in files.items():
            await self.write(path, content, "644")

    async def write(self, path: str, content: str | bytes, mode: str) -> None:
        """Write a file by absolute path, with an octal mode."""
        data = content.encode() if isinstance(content, str) else content
        process = await self._spawn(("sh", "-ec", WRITE, "write", path, mode), fed=True)
        outcome = await Running(process, data).finish()
        if outcome.exit_code != 0:
            raise LabError(f"{path} cannot be written: {outcome.said}", where=self.place)

    async def get(self, path: str) -> bytes:
        process = await self._spawn(("cat", path))
        out, err = await process.communicate()
        if process.returncode != 0:
            said = err.decode(errors="replace").strip()
            raise LabError(f"{path} cannot be read: {said}", where=self.place)
        return out

    async def start(self, *, again: bool = False) -> None:
        if again:
            await self._end_programs()
        self.serving = await self._spawn(self.template.command)
        self._read_log(self.serving)

    def _read_log(self, serving: asyncio.subprocess.Process) -> None:
        """Read what it writes until it ends."""
        assert serving.stdout is not None
        assert serving.stderr is not None
        self._reading = asyncio.gather(
            self.log.read(serving.stdout, "stdout"), self.log.read(serving.stderr, "stderr")
        )

    async def halt(self) -> None:
        await self.start(again=True)

    async def _end_programs(self) -> None:
        """End all that runs in it, and see that it has ended."""
        until = time.monotonic() + PATIENCE_S
        while self._runs() and time.monotonic() < until:
            self.group.kill()
            for process in self._spawned:  # it may be about to join the group only now
                signal_child(process)
            await asyncio.sleep(POLL_S)
        if self.serving is not None:
            await self.serving.wait()
        if self._reading is not None:
            await asyncio.gather(self._reading, return_exceptions=True)

    def _runs(self) -> bool:
        return bool(self.group.processes()) or any(p.returncode is None for p in self._spawned)

    async def limit_cpu(self, cores: float, pinned: tuple[int, ...]) -> None:
        self._limit(lambda: self.group.limit_cpu(cores, pinned))

    async def limit_memory(self, memory_bytes: int) -> None:
        self._limit(lambda: self.group.limit_memory(memory_bytes))

    def _limit(self, change: Callable[[], None]) -> None:
        try:
            change()
        except OSError as error:
            # The kernel takes away no memory that is in use.
            raise LabError(f"the kernel refused: {error.strerror}", where=self.place) from error

    async def counters(self) -> ComponentCounters:
        assert self.probe is not None
        return self.probe.read()

    async def written(self) -> ComponentLog:
        lines, more = self.log.take()
        return ComponentLog.of(self.name, lines, uncounted=more)

    async def last_line(self) -> WrittenLine | None:
        return next((line for line in reversed(self.log.lines) if line.text.strip()), None)

    async def death(self) -> LabError | None:
        where = f"{self.place} ({self.template.name})"
        if not self.namespace.alive:
            return LabError("somebody ended its namespace", where=where)
        code = self.serving.returncode if self.serving is not None else None
        if code is None and not self.group.out_of_memory():
            return None
        if self.group.out_of_memory():
            what = "the kernel ended it for lack of memory"
        else:
            what = f"it ended with exit code {code}"
        return LabError(
            f"{what}; {await self.last_words()}",
            where=where,
            remedy="Try its configuration by hand, or lower the load",
        )

    async def remove(self) -> None:
        await self._end_programs()
        await abandon(self.group, self.namespace)


async def abandon(group: Group, namespace: Namespace | None) -> None:
    """End and remove what was made for a component: all that runs there, its group, its folder."""
    if namespace is not None:
        await namespace.end()
    until = time.monotonic() + PATIENCE_S
    # The kernel rings no bell for us.
    while not group.remove() and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(POLL_S)
    with suppress(OSError):
        work_folder(group.name).rmdir()


@dataclass(frozen=True)
class ProcessMaker:
    """Makes a session's components; networks are given by their numbers."""

    session: str
    packages: Path | None
    """Files of packages that the host lacks."""
    networks: Mapping[str, Bridge]
    programs: Mapping[str, Mapping[str, bytes]]
    """Programs that a template brings along, by template and path."""

    async def make(
        self,
        name: str,
        template: VnfTemplate,
        networks: Sequence[str],
        limits: Limits,
        environment: Mapping[str, str],
        shared_memory_bytes: int,
    ) -> ProcessComponent:
        held = await self.hold(name, template, networks, environment, shared_memory_bytes)
        component = ProcessComponent.at(held)
        try:
            await component.limit_cpu(limits.cores, limits.pinned)
            if limits.memory_bytes:
                await component.limit_memory(limits.memory_bytes)
            for path, content in self.programs.get(template.name, {}).items():
                await component.write(path, content, "755")
        except BaseException:
            await uncancelled(component.remove())
            raise
        return component

    async def hold(
        self,
        name: str,
        template: VnfTemplate,
        networks: Sequence[str],
        environment: Mapping[str, str],
        shared_memory_bytes: int,
    ) -> Held:
        """Namespaces and a group for a component, on its networks. Raises `LabError`, and leaves
        nothing then."""
        where = f"template {template.name}"
        given = {key: expand(value, where) for key, value in template.environment.items()}
        group = Group.make(self.session, name)
        namespace: Namespace | None = None
        try:
            work = work_folder(group.name)
            work.mkdir(mode=0o700)
            namespace = await hold_root(self.packages, work, shared_memory_bytes)
            forwards = template.passage == "router"
            await set_kernel(namespace, {**SYSCTLS, **FORWARDING} if forwards else SYSCTLS)
            addresses = [
                await self.networks[network].connect(namespace, f"eth{number}")
                for number, network in enumerate(networks)
            ]
        except BaseException:
            await uncancelled(abandon(group, namespace))
            raise
        return Held(name, template, namespace, group, {**given, **environment}, addresses[0])
