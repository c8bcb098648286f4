"""One component of a target, as labs make it: a container, a process in a namespace.

What is done with a component (a target is brought up, load is driven, counters are read) is the
same in every lab, and written against this class. A lab says how a program is started in it and
how its limits are changed.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from workbench.domain.errors import LabError
from workbench.domain.logs import ComponentLog, WrittenLine, quoted
from workbench.domain.parameters import ParameterValue
from workbench.domain.topology import VnfTemplate
from workbench.measuring.records import ComponentCounters
from workbench.probes.containers import ContainerProbe


@dataclass(frozen=True)
class Outcome:
    """What a program in a component left: exit code and texts."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """The last line of either text, for a sentence."""
        lines = [*self.stdout.splitlines(), *self.stderr.splitlines()]
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")


class Program(Protocol):
    """A program that runs in a component."""

    async def pid(self) -> int:
        """Its process id on the component's host; 0 until it runs."""
        ...

    async def finish(self) -> Outcome:
        """Read what it says until it ends."""
        ...


class Ended(LabError):
    """A component's counters are gone; `Component.death` knows why."""

    def __init__(self, component: Component) -> None:
        super().__init__("it ended while load was driven", where=component.place)
        self.component = component


@dataclass
class Component(ABC):
    """A function, source or sink of a target, as it runs now."""

    name: str
    """VNF instance name, `source` or `sink`."""
    template: VnfTemplate
    address: str = ""
    """Towards the source: where it is spoken to."""
    mac: str = ""
    """Of its interface there."""
    pid: int = 0
    """Of its first process, on its host."""
    probe: ContainerProbe | None = None
    """Reads its counters; None where it runs on another host."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Configuration files as it was started with them."""
    settings: Mapping[str, ParameterValue] = field(default_factory=dict)
    """Its function parameters, as its files hold them."""
    threads: int = 0
    cores: float = 0.0
    """Its quota in cores; 0 without one."""
    memory_bytes: int = 0
    """The most that it may hold; 0 without a limit."""
    bandwidth_mbps: float = 0.0
    """The most that each of its interfaces sends; 0 without a limit."""
    disk_mbps: float = 0.0
    """The most that it reads from disks, and that it writes, in MB/s; 0 without a limit."""
    pinned: tuple[int, ...] = ()

    @property
    @abstractmethod
    def place(self) -> str:
        """What an error calls it, such as `container haproxy`."""

    @property
    def endpoint(self) -> tuple[str, int]:
        return self.address, self.template.port

    @abstractmethod
    async def put(self, files: Mapping[str, str | bytes]) -> None:
        """Write files by absolute path."""

    @abstractmethod
    async def get(self, path: str) -> bytes:
        """What a file holds; `path` is absolute."""

    @abstractmethod
    async def start(self, *, again: bool = False) -> None:
        """Start it, or start it again; its address and processes are new ones then."""

    @abstractmethod
    async def begin(self, argv: Sequence[str]) -> Program:
        """Start a program in it; argv, no shell."""

    async def run(self, argv: Sequence[str]) -> Outcome:
        program = await self.begin(argv)
        return await program.finish()

    def sends(self, before: ComponentCounters) -> bool:
        """Whether it has begun to send since it counted `before`; it was idle then. Needs a
        probe."""
        assert self.probe is not None
        return self.probe.read_network().tx_packets > before.tx_packets

    @abstractmethod
    async def halt(self) -> None:
        """End whatever programs run in it; it serves again afterwards, and gone is no error."""

    @abstractmethod
    async def limit_cpu(self, cores: float, pinned: tuple[int, ...]) -> None:
        """Give it a quota of `cores` (0 is none) on cores `pinned` (none are all), in place."""

    @abstractmethod
    async def limit_memory(self, memory_bytes: int) -> None:
        """Let it hold that much at most, in place. Raises `LabError` where it holds more."""

    @abstractmethod
    async def counters(self) -> ComponentCounters:
        """Its counters where no probe reads them here. Raises `Ended`."""

    @abstractmethod
    async def written(self) -> ComponentLog:
        """What it wrote since this was asked last."""

    @abstractmethod
    async def last_line(self) -> WrittenLine | None:
        """Of its log, the last line that is not empty; None where there is none."""

    async def last_words(self) -> str:
        """The last line of its log, for a sentence."""
        line = await self.last_line()
        return f"the last line of its log: {quoted(line.whole)}" if line else "it wrote no log"

    @abstractmethod
    async def death(self) -> LabError | None:
        """Why it cannot be spoken to any more, or None if it can."""

    @abstractmethod
    async def remove(self) -> None:
        """End it and remove what was made for it; gone already is no error."""


class ComponentMaker(Protocol):
    """A lab's way to make components on a session's networks."""

    async def make(
        self,
        name: str,
        template: VnfTemplate,
        networks: Sequence[str],
        limits: Limits,
        environment: Mapping[str, str],
        shared_memory_bytes: int,
    ) -> Component:
        """A new component, not started, on the networks from the source's side to the sink's.

        A router may set the rules of its own network, and forward; nobody else may.
        """
        ...


@dataclass(frozen=True)
class Limits:
    """What a component is given when it is made; 0 and none are no limit."""

    cores: float = 0.0
    pinned: tuple[int, ...] = ()
    memory_bytes: int = 0


async def run_within(component: Component, argv: Sequence[str], seconds: float) -> Outcome | None:
    """Run a program in it; None where that has not ended by then, or holds its output open."""
    try:
        async with asyncio.timeout(seconds):
            return await component.run(argv)
    except TimeoutError:
        return None
