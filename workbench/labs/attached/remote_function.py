"""A function that runs on another host, as a component: counted and limited over SSH."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from workbench.domain.errors import LabError, LabGone
from workbench.domain.observations import ON_REQUEST
from workbench.domain.parameters import Configuration
from workbench.labs.attached.attached_functions import RunningFunction, seen_beside
from workbench.labs.attached.remote_finding import RemoteFunctionFound
from workbench.labs.attached.remote_journal import RemoteJournal, in_use
from workbench.labs.components import allotments
from workbench.labs.components.watching import COLLECTED
from workbench.labs.docker.strays import Owner
from workbench.measuring.records import ComponentCounters, Drive
from workbench.probes import cgroup, host, process, tcp
from workbench.probes.evidence import (
    HOP_NAMES,
    MEMORY_NAMES,
    PRESSURE_FILES,
    SHARED_NETWORK,
    Absent,
    Seen,
    take,
)
from workbench.probes.process import PROC
from workbench.probes.remote_shell import RemoteShell, RemoteTexts

MOST_KEPT = 100_000
"""Looks of one drive that are kept: a day's."""
NOT_ASKED = "it is not read over SSH"
STAT, UPTIME = PROC / "stat", PROC / "uptime"


@dataclass(frozen=True)
class RemoteLook:
    """What was seen at one instant of a drive."""

    counted: ComponentCounters
    evidence: Seen
    busy_s: float
    """Of all cores of its host."""
    up_s: float
    """Since its host began, by its own clock."""


@dataclass
class RemoteFunction(RunningFunction):
    """What is done to it goes through the journal and the shell on its host."""

    found: RemoteFunctionFound = field(kw_only=True)
    shell: RemoteShell = field(kw_only=True)
    journal: RemoteJournal = field(kw_only=True)
    host_cores: int = field(kw_only=True)
    _expected: dict[Path, str] = field(default_factory=dict)
    """What its limits are to hold."""
    _wrong: LabError | None = None
    """What was seen of it last."""
    _looks: deque[RemoteLook] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    _absent: Absent = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._expected = dict(self.found.held)

    @property
    def place(self) -> str:
        return self.found.place

    @property
    def own_network(self) -> bool:
        return self.found.own_network

    def claim(self) -> None:
        """Raises `LabError` where another lab has changed its limits."""
        self._expected, self.cores, self.memory_bytes = dict(self.found.held), 0.0, 0
        for file in self._expected:
            other = in_use(self.attached.host, self.found.machine, file)
            if other is None or other.path == self.journal.path:
                continue
            if other.owner.may_live() and other.owner != Owner.this_process():
                self.journal.refuse(other, self.place)
            raise LabError(
                f"session {other.session} changed its {file.name}, and it is not put back yet",
                where=self.place,
                remedy="`workbench reap` puts it back",
            )

    async def allocate(self, configuration: Configuration) -> None:
        if trouble := await self.look():
            raise trouble
        cores = configuration.vcpu(self.name)
        if cores and cores != self.cores:
            await self.limit_cpu(cores, ())
            self.cores = cores
        await allotments.change(self, configuration)

    async def limit_cpu(self, cores: float, pinned: tuple[int, ...]) -> None:
        del pinned  # which cores it runs on is not ours to say
        limits = self.found.limits(RemoteTexts(self._expected, {}))
        try:
            changes = limits.of_cpu(cores)
        except OSError:
            raise self.as_wanted("its control group cannot limit CPU") from None
        await self._change(changes)

    async def limit_memory(self, memory_bytes: int) -> None:
        limits = self.found.limits(RemoteTexts(self._expected, {}))
        changes = limits.of_memory(memory_bytes)
        held = await self._held_bytes()
        if held > memory_bytes:  # version 2 takes such a limit, and ends a process for it
            raise LabError(
                f"it holds {held / 2**20:.3g} MiB",
                where=self.place,
                remedy="Raise the smallest `memory` of its resource parameters",
            )
        await self._change(changes)

    async def _held_bytes(self) -> float:
        """Memory that it holds now, without files that can be read again. Raises `LabError`."""
        folders = self.found.folders
        try:
            seen = await self.shell.read(_counted(folders))
        except LabError as error:
            raise self._silent(error) from error
        try:
            return counters_of(folders, seen).memory_bytes
        except (OSError, ValueError, IndexError):
            raise (await self.look()) or self.as_wanted("its control group is gone") from None

    async def _change(self, changes: Sequence[tuple[Path, str]]) -> None:
        for file, wanted in changes:
            try:
                await self.journal.change(self.shell, self.found, file, wanted)
            except LabGone as error:
                raise self._silent(error) from error
            self._expected[file] = wanted

    def allotted(self, host_cores: int) -> float:
        """Cores that it may use, of its own host."""
        del host_cores
        try:
            cores = self.found.limits(RemoteTexts(self._expected, {})).cores()
        except OSError:
            cores = 0.0
        return min(cores or self.host_cores, self.host_cores)

    # ------------------------------------------------------------------ is it still the same?

    def trouble(self) -> LabError | None:
        return self._wrong

    async def death(self) -> LabError | None:
        return await self.look()

    async def look(self) -> LabError | None:
        """Ask its host."""
        try:
            seen = await self.shell.read(self.found.looked_at)
            folder = self.found.folders.cpu
            number = (await self.shell.numbers([folder])).get(folder)
        except LabError as error:
            return self._silent(error)
        self._wrong = self._departed(seen, number)
        return self._wrong

    def _departed(self, seen: RemoteTexts, number: int | None) -> LabError | None:
        if gone := self.found.departure(seen, number):
            return self.as_wanted(f"{gone}, while it was measured")
        for file, wanted in self._expected.items():
            now = seen.optional(file).strip()
            if now != wanted:
                return self.as_wanted(
                    f"somebody set {file.name} from {wanted} to {now or 'nothing'} while it was "
                    "measured; that stays"
                )
        return None

    def _silent(self, error: LabError) -> LabError:
        """What a host does not answer, as its campaign wants it taken."""
        said = self.as_wanted(f"{error.where}: {error.what}")
        return type(said)(said.what, where=self.place, remedy=error.remedy or said.remedy)

    # ------------------------------------------------------------------ counters

    async def counters(self) -> ComponentCounters:
        folders, network = self.found.folders, PROC / str(self.found.pid) / "net"
        files = [*_counted(folders), *_evidence(folders), STAT, UPTIME]
        if self.own_network:
            files += [network / name for name in ("dev", "netstat", "snmp", "sockstat")]
        try:
            seen = await self.shell.read(files)
        except LabError as error:
            raise self._silent(error) from error
        try:
            look = self._of(seen, network)
        except (OSError, ValueError, IndexError):
            raise (await self.look()) or self.as_wanted("its control group is gone") from None
        self._looks.append(look)
        return look.counted

    def _of(self, seen: RemoteTexts, network: Path) -> RemoteLook:
        group = counters_of(self.found.folders, seen)
        sums = process.NetworkCounters()
        if self.own_network:
            sums = process.parse_net_dev(seen.text(network / "dev"))
        up_s = float(seen.text(UPTIME).split()[0])
        return RemoteLook(
            ComponentCounters(
                group.cpu_s,
                group.periods,
                group.throttled_periods,
                group.throttled_s,
                group.memory_bytes,
                sums.rx_bytes,
                sums.tx_bytes,
                sums.rx_packets,
                sums.tx_packets,
            ),
            self._seen(seen, network, sums),
            host.parse_busy_s(seen.text(STAT), up_s),
            up_s,
        )

    def _seen(self, texts: RemoteTexts, network: Path, sums: process.NetworkCounters) -> Seen:
        """Evidence beside usage, as far as it is read."""
        seen: Seen = {}
        folders = self.found.folders

        def note(names: Iterable[str], read: Callable[[], Mapping[str, float]]) -> None:
            def plain() -> Seen:
                return {(name, ""): value for name, value in read().items()}

            take(seen, self._absent, names, plain)

        def pressure(name: str, file: Path) -> Mapping[str, float]:
            if folders.version == "v1":
                raise ValueError("its control group is of version 1, which has no pressure")
            return {name: host.parse_pressure(texts.text(file))}

        note(MEMORY_NAMES, lambda: memory_events_of(folders, texts))
        for name, file in PRESSURE_FILES.items():
            note((name,), partial(pressure, name, folders.cpu / f"{file}.pressure"))
        if self.own_network:
            note(tcp.EXTENDED, lambda: tcp.parse_netstat(texts.text(network / "netstat")))
            note(tcp.PLAIN, lambda: tcp.parse_snmp(texts.text(network / "snmp")))
            note(("time_wait",), lambda: tcp.parse_sockstat(texts.text(network / "sockstat")))
            note(HOP_NAMES, lambda: {name: getattr(sums, name) for name in HOP_NAMES})
        return seen

    def told(self, drive: Drive) -> Drive:
        """A drive with what was seen beside usage, instant by instant."""
        looks = list(self._looks)[-len(drive.counters) :]
        self._looks.clear()
        missing = dict.fromkeys((*COLLECTED, *ON_REQUEST), NOT_ASKED)
        if not self.own_network:
            shared = (*tcp.EXTENDED, *tcp.PLAIN, "time_wait", *HOP_NAMES)
            missing |= dict.fromkeys(shared, SHARED_NETWORK)
        missing |= self._absent
        told = seen_beside(drive, self.name, [look.evidence for look in looks], missing)
        return replace(told, notes=(*drive.notes, *self._notes(looks)))

    def _notes(self, looks: Sequence[RemoteLook]) -> list[str]:
        """How busy its host was with all that runs there."""
        seconds = looks[-1].up_s - looks[0].up_s
        if seconds <= 0:
            return []
        busy = max(0.0, looks[-1].busy_s - looks[0].busy_s) / seconds
        return [
            f"{busy:.2f} of the {self.host_cores} cores of {self.attached.host} were busy "
            f"meanwhile, those of {self.name} included"
        ]


def _counted(folders: cgroup.CgroupFolders) -> list[Path]:
    """Files that `counters_of` reads."""
    files = [folders.cpu / "cpu.stat", folders.memory / "memory.stat"]
    if folders.version == "v1":
        return [*files, folders.cpuacct / "cpuacct.usage", folders.memory / "memory.usage_in_bytes"]
    return [*files, folders.memory / "memory.current"]


def counters_of(folders: cgroup.CgroupFolders, seen: RemoteTexts) -> cgroup.CgroupCounters:
    """The counters of a group. Raises `OSError` once it is gone."""
    cpu_stat = seen.text(folders.cpu / "cpu.stat")
    memory_stat = seen.optional(folders.memory / "memory.stat")
    if folders.version == "v1":
        return cgroup.counters_v1(
            cpu_stat,
            seen.text(folders.cpuacct / "cpuacct.usage"),
            seen.optional(folders.memory / "memory.usage_in_bytes"),
            memory_stat,
        )
    return cgroup.counters_v2(
        cpu_stat, seen.optional(folders.memory / "memory.current"), memory_stat
    )


def _evidence(folders: cgroup.CgroupFolders) -> list[Path]:
    """Files of a group that tell more than usage."""
    if folders.version == "v1":
        return [folders.memory / name for name in ("memory.oom_control", "memory.failcnt")]
    pressures = [folders.cpu / f"{file}.pressure" for file in PRESSURE_FILES.values()]
    return [folders.memory / "memory.events", *pressures]


def memory_events_of(folders: cgroup.CgroupFolders, seen: RemoteTexts) -> dict[str, float]:
    """Faults, reclaim at the limit and what was ended for lack of memory, so far."""
    memory = folders.memory
    version_1 = folders.version == "v1"
    events = seen.optional(memory / ("memory.oom_control" if version_1 else "memory.events"))
    hits = seen.optional(memory / "memory.failcnt").strip()
    return cgroup.memory_events(
        folders.version, seen.optional(memory / "memory.stat"), events, hits
    )
