"""A function that runs already, as a component: its limits may change, and nothing else of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import structlog

from workbench.domain.attaching import Attached
from workbench.domain.errors import LabError, LabGone, LabStopped
from workbench.domain.logs import ComponentLog, WrittenLine
from workbench.domain.parameters import Configuration
from workbench.labs.attached.cgroup_limits import CgroupLimits
from workbench.labs.attached.finding import FoundFunction
from workbench.labs.attached.journal import Journal, in_use
from workbench.labs.components import allotments
from workbench.labs.components.component import Component, Program
from workbench.measuring.records import ComponentCounters, Drive
from workbench.probes.evidence import Seen

log = structlog.get_logger(__name__)


@dataclass
class RunningFunction(Component):
    """A function that somebody else runs: nothing is started, written, ended or removed in it."""

    attached: Attached = field(kw_only=True)

    @property
    @abstractmethod
    def own_network(self) -> bool:
        """Whether its network is its own, so that what it sends and receives can be told."""

    @abstractmethod
    def claim(self) -> None:
        """Note its limits as they are. Raises `LabError` where another lab has them."""

    @abstractmethod
    async def allocate(self, configuration: Configuration) -> None:
        """Give it what a configuration says; what that does not say stays as it was found.

        Raises `LabError` where it is not any more what was found, or cannot be given that.
        """

    @abstractmethod
    def allotted(self, host_cores: int) -> float:
        """Cores that it may use. Raises `LabError` where it is gone."""

    @abstractmethod
    def trouble(self) -> LabError | None:
        """Why it is not any more what is measured, as its campaign wants it taken; None if it
        is."""

    async def look(self) -> LabError | None:
        """`trouble`, after asking whoever knows."""
        return self.trouble()

    def told(self, drive: Drive) -> Drive:
        """A drive that has just ended, with what only this function knows of it."""
        return drive

    def as_wanted(self, what: str) -> LabError:
        """An error as its campaign wants it taken: the run waits, or ends."""
        if self.attached.when_wrong == "wait":
            return LabGone(what, where=self.place, remedy=GO_ON)
        return LabStopped(what, where=self.place, remedy=GO_ON)

    async def death(self) -> LabError | None:
        return self.trouble()

    async def put(self, files: Mapping[str, str | bytes]) -> None:
        self.refuse(*files)

    async def get(self, path: str) -> bytes:
        self.refuse(path)

    async def start(self, *, again: bool = False) -> None:
        self.refuse("again" if again else "")

    async def begin(self, argv: Sequence[str]) -> Program:
        self.refuse(*argv)

    async def halt(self) -> None:
        self.refuse()

    async def remove(self) -> None:
        self.refuse()

    async def written(self) -> ComponentLog:
        return ComponentLog.of(self.name, [])

    async def last_line(self) -> WrittenLine | None:
        return None

    def refuse(self, *what: str) -> NoReturn:
        log.error("not done to an attached function", place=self.place, what=what)
        raise LabError("it runs already, and only its limits may be changed", where=self.place)


@dataclass
class AttachedFunction(RunningFunction):
    """One of this host. What is done to it goes through the journal."""

    found: FoundFunction = field(kw_only=True)
    journal: Journal = field(kw_only=True)
    _expected: dict[Path, str] = field(default_factory=dict)
    """What its limits are to hold."""

    @property
    def place(self) -> str:
        return self.found.place

    @property
    def own_network(self) -> bool:
        return self.found.own_network

    @property
    def limits(self) -> CgroupLimits:
        """As they are now. Raises `OSError` where its group is gone."""
        return CgroupLimits.read(self.found.folders, self.place)

    def claim(self) -> None:
        """Note its limits as they are. Raises `LabError` where another lab has them."""
        self._expected, self.cores, self.memory_bytes = dict(self._now()), 0.0, 0
        for file in self._expected:
            self.journal.refuse(in_use(file), self.place)

    async def allocate(self, configuration: Configuration) -> None:
        """Give it what a configuration says; what that does not say stays as it was found.

        Raises `LabError` where it is not any more what was found, or cannot be given that.
        """
        if trouble := self.trouble():
            raise trouble
        cores = configuration.vcpu(self.name)
        if cores and cores != self.cores:
            await self.limit_cpu(cores, ())
            self.cores = cores
        await allotments.change(self, configuration)

    def allotted(self, host_cores: int) -> float:
        """Cores that it may use. Raises `LabError` where it is gone."""
        try:
            return min(self.limits.cores() or host_cores, host_cores)
        except OSError:
            raise self.trouble() or self.as_wanted("its control group is gone") from None

    async def limit_cpu(self, cores: float, pinned: tuple[int, ...]) -> None:
        del pinned  # which cores it runs on is not ours to say
        try:
            changes = self.limits.of_cpu(cores)
        except OSError:
            raise self.trouble() or self.as_wanted("its control group is gone") from None
        self._change(changes)

    async def limit_memory(self, memory_bytes: int) -> None:
        try:
            changes = self.limits.of_memory(memory_bytes)
        except OSError:
            raise self.trouble() or self.as_wanted("its control group is gone") from None
        self._change(changes)

    def _change(self, changes: Sequence[tuple[Path, str]]) -> None:
        for file, wanted in changes:
            self.journal.change(self.place, file, wanted)
            self._expected[file] = wanted

    def _now(self) -> Mapping[Path, str]:
        try:
            return self.limits.held
        except OSError:
            return {}

    def trouble(self) -> LabError | None:
        """Why it is not any more what is measured, as its campaign wants it taken; None if it
        is."""
        if gone := self.found.departure():
            return self.as_wanted(f"{gone}, while it was measured")
        now = self._now()
        for file, wanted in self._expected.items():
            if now.get(file) != wanted:
                return self.as_wanted(
                    f"somebody set {file.name} from {wanted} to {now.get(file, 'nothing')} while "
                    "it was measured; that stays"
                )
        return None

    async def counters(self) -> ComponentCounters:
        assert self.probe is not None
        return self.probe.read()


def seen_beside(
    drive: Drive, name: str, looks: Sequence[Seen], missing: Mapping[str, str]
) -> Drive:
    """A drive with what was seen of a function beside usage, instant by instant.

    Parameters
    ----------
    looks : one for each instant of the drive.
    missing : why what was never seen is absent, by name.
    """
    instants = [
        replace(
            instant, observed={**instant.observed, **{(name, *key): n for key, n in own.items()}}
        )
        for instant, own in zip(drive.counters, looks, strict=True)
    ]
    had = {called for own in looks for called, _ in own}
    absent = {key: why for key, why in drive.absent.items() if key[0] != name}
    absent |= {(name, called): why for called, why in missing.items() if called not in had}
    return replace(drive, counters=tuple(instants), absent=absent)


GO_ON = "Look what has become of it; `workbench resume` goes on where this ended"
