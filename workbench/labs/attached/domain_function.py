"""A domain of libvirt that runs already, as a component: its CPU quota may change, nothing else."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from workbench.domain.attaching import Attached
from workbench.domain.errors import LabError
from workbench.domain.observations import ON_REQUEST
from workbench.domain.parameters import Configuration
from workbench.labs.attached.attached_functions import RunningFunction, seen_beside
from workbench.labs.attached.command_journal import CommandJournal, refuse_another_labs
from workbench.labs.attached.virsh import (
    PERIOD,
    QUOTA,
    UUID,
    VCPU_QUOTA,
    DomainLook,
    DomainQuota,
    asked,
    look_words,
)
from workbench.labs.components.watching import COLLECTED
from workbench.measuring.records import ComponentCounters, Drive
from workbench.probes.evidence import Absent, Seen

NANO = 1e-9
KIB = 1024
FRESH_S = 0.9
"""How old what was seen last may be for a look in passing: each costs virsh 20 ms of a core."""
MOST_KEPT = 100_000
"""Looks of one drive that are kept: a day's."""
LEAST_QUOTA_US = 1000
"""The kernel takes none below."""
OPENING = re.compile(r"<domain type='(?P<kind>[a-z]+)'(?: id='[0-9]+')?")
ADDRESS = re.compile(r"\bipv4\s+([0-9.]+)/")
SOURCES = ("lease", "arp", "agent")
EMULATING = ("qemu", "test")
"""Kinds of domain whose instructions are emulated, or that are none at all."""
UNTOLD = "libvirt does not tell it"
INSIDE = "it lies within the guest, which is not looked into"
THROTTLING = "libvirt does not tell how long a domain waited for its quota"
ALSO_TOLD = {
    "disk_bytes": ("block", "rd.bytes", "wr.bytes"),
    "disk_operations": ("block", "rd.reqs", "wr.reqs"),
    "rx_bytes": ("net", "rx.bytes"),
    "tx_bytes": ("net", "tx.bytes"),
    "rx_packets": ("net", "rx.pkts"),
    "tx_packets": ("net", "tx.pkts"),
    "rx_drops": ("net", "rx.drop"),
    "tx_drops": ("net", "tx.drop"),
}
"""Evidence, and the figures of which it is the sum."""


@dataclass(frozen=True)
class LibvirtHost:
    """What libvirt tells of the host that a domain runs on."""

    cores: int
    memory_bytes: int
    cpu_model: str

    @classmethod
    def of(cls, said: str) -> LibvirtHost:
        """Of what `virsh nodeinfo` prints. Raises `KeyError` or `ValueError`."""
        told = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
        model = f"{told['CPU model'].strip()}, {told['CPU frequency'].strip()}"
        return cls(int(told["CPU(s)"]), int(told["Memory size"].split()[0]) * KIB, model)


@dataclass(frozen=True)
class FoundDomain:
    """A domain as it ran when it was found."""

    place: str
    connect: str
    uuid: str
    look: DomainLook
    kind: str
    """`kvm`, or what emulates it."""
    host: LibvirtHost
    address: str = ""
    image: str = ""
    """Of no image."""

    @property
    def vcpus(self) -> int:
        return self.look.figures.get("vcpu.current", 1)

    @property
    def is_emulated(self) -> bool:
        return self.kind in EMULATING

    @property
    def own_network(self) -> bool:
        return self.look.total("net", "rx.bytes") is not None

    @property
    def quota(self) -> DomainQuota:
        return DomainQuota.new(self.place, self.connect, self.uuid, self.look.number)


async def find_domain(attached: Attached) -> FoundDomain:
    """Where a domain runs now. Raises `LabError` with what is not as the campaign says."""
    connect, place = attached.connect, attached.found
    try:
        uuid = attached.found_at.lower()
        if not UUID.fullmatch(uuid):
            uuid = (await asked(connect, "domuuid", attached.found_at)).strip()
        if not UUID.fullmatch(uuid):
            raise LabError(f"virsh says {uuid[:40]!r} for its UUID")
        look = DomainLook.of(await asked(connect, *look_words(uuid)))
        kind = OPENING.match(await asked(connect, "dumpxml", uuid))
        host = LibvirtHost.of(await asked(connect, "nodeinfo"))
    except (KeyError, ValueError):
        raise LabError("what libvirt tells of its host is not understood", where=place) from None
    except LabError as error:
        raise LabError(error.what, where=place, remedy=error.remedy) from error
    if not look.runs:
        raise LabError(
            f"it is {look.state or 'not running'}",
            where=place,
            remedy="Start or resume it; nothing is started here",
        )
    if "cpu.time" not in look.figures or kind is None:
        raise LabError("libvirt does not tell how much CPU it used", where=place)
    if attached.resources == "schedinfo" and QUOTA not in look.figures:
        raise LabError(await _why_no_quota(connect, uuid), where=place, remedy=FIXED)
    address = ""
    if "{address}" in attached.url + attached.past:
        address = await _address(connect, uuid)
        if not address:
            raise LabError(
                "libvirt knows no address of it, neither by lease nor by ARP nor by its agent",
                where=place,
                remedy="Write the guest's address into its url",
            )
    return FoundDomain(place, connect, uuid, look, kind["kind"], host, address)


FIXED = "Write `resources: fixed`, or see that libvirtd runs as root with the cpu controller"


async def _why_no_quota(connect: str, uuid: str) -> str:
    """What libvirt says of a domain whose quota it does not tell."""
    try:
        await asked(connect, "schedinfo", uuid, "--live")
    except LabError as error:
        return error.what
    return "its hypervisor knows no quota of CPU for a whole domain"


async def _address(connect: str, uuid: str) -> str:
    """Its first one, as whoever knows it tells; empty where nobody does."""
    for source in SOURCES:
        with suppress(LabError):
            said = await asked(connect, "domifaddr", uuid, "--source", source)
            for one in ADDRESS.findall(said):
                if not one.startswith("127."):
                    return str(one)
    return ""


@dataclass
class DomainFunction(RunningFunction):
    """What is done to it goes through virsh, and the journal of commands."""

    found: FoundDomain = field(kw_only=True)
    commands: CommandJournal = field(kw_only=True)
    _now: DomainLook = field(init=False)
    _seen_s: float = 0.0
    _expected: int = field(init=False)
    """What its quota is to be."""
    _wrong: LabError | None = None
    _looks: deque[Seen] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    _absent: Absent = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._now = self.found.look
        self._expected = self._now.figures.get(QUOTA, 0)

    @property
    def place(self) -> str:
        return self.found.place

    @property
    def own_network(self) -> bool:
        return self.found.own_network

    def claim(self) -> None:
        self._expected, self.cores = self.found.look.figures.get(QUOTA, 0), 0.0
        self._seen_s = 0.0  # what was seen while it was limited is not how it is
        refuse_another_labs(self.found.quota, self.commands, self.place)

    async def allocate(self, configuration: Configuration) -> None:
        if trouble := await self.death():
            raise trouble
        cores = configuration.vcpu(self.name)
        if cores and cores != self.cores:
            await self.limit_cpu(cores, ())
            self.cores = cores

    async def limit_cpu(self, cores: float, pinned: tuple[int, ...]) -> None:
        del pinned  # which cores it runs on is not ours to say
        quota = round(cores * self._now.figures.get(PERIOD, 0))
        if quota < LEAST_QUOTA_US:
            raise self._wrongly(f"{cores:g} cores are a quota of {quota} µs, and 1000 is the least")
        try:
            await self.commands.change(self.found.quota, str(quota))
        except LabError as error:
            of_each = self._now.figures.get(VCPU_QUOTA, -1)
            said = error.what
            if of_each > quota:
                said += (
                    f"; each of its vCPUs has a quota of its own ({of_each} µs), and control "
                    "groups of version 1 take none for the whole that is below"
                )
            raise self._wrongly(said, error.remedy) from error
        self._expected, self._seen_s = quota, 0.0

    async def limit_memory(self, memory_bytes: int) -> None:
        self.refuse("memory", str(memory_bytes))

    def allotted(self, host_cores: int) -> float:
        """Its quota; without one a core for each vCPU, beside which emulation may use others."""
        del host_cores
        most = float(min(self.found.vcpus, self.found.host.cores))
        return min(self.cores or self.found.look.cores or most, float(self.found.host.cores))

    # ------------------------------------------------------------------ is it still the same?

    def trouble(self) -> LabError | None:
        return self._wrong

    async def death(self) -> LabError | None:
        self._seen_s = 0.0
        return await self.look()

    async def look(self) -> LabError | None:
        if time.monotonic() - self._seen_s > FRESH_S:
            try:
                await self._see()
            except LabError as error:
                self._wrong = self._wrongly(error.what, error.remedy)
        return self._wrong

    async def _see(self) -> None:
        """Ask libvirt. Raises `LabError` where it does not answer."""
        look = DomainLook.of(await asked(self.found.connect, *look_words(self.found.uuid)))
        self._now, self._seen_s = look, time.monotonic()
        self._wrong = self._departed(look)

    def _departed(self, look: DomainLook) -> LabError | None:
        if look.number and look.number != self.found.look.number:
            return self._wrongly("it was started again, while it was measured")
        if not look.runs:
            return self._wrongly(f"it is {look.state or 'gone'}, while it was measured")
        quota = look.figures.get(QUOTA, 0)
        if quota != self._expected:
            return self._wrongly(
                f"somebody set {QUOTA} from {self._expected} to {quota} while it was measured; "
                "that stays"
            )
        return None

    def _wrongly(self, what: str, remedy: str | None = None) -> LabError:
        """As its campaign wants it taken: it waits, or ends."""
        error = self.as_wanted(what)
        return type(error)(what, where=self.place, remedy=remedy or error.remedy)

    # ------------------------------------------------------------------ counters

    async def counters(self) -> ComponentCounters:
        try:
            await self._see()
        except LabError as error:
            raise self._wrongly(error.what, error.remedy) from error
        if "cpu.time" not in self._now.figures:
            raise self._wrong or self._wrongly("libvirt does not tell how much CPU it used")
        told = self._now.figures
        self._looks.append(self._evidence(self._now))
        return ComponentCounters(
            told["cpu.time"] * NANO,
            memory_bytes=float(told.get("balloon.rss", 0) * KIB),
            rx_bytes=float(self._now.total("net", "rx.bytes") or 0),
            tx_bytes=float(self._now.total("net", "tx.bytes") or 0),
            rx_packets=float(self._now.total("net", "rx.pkts") or 0),
            tx_packets=float(self._now.total("net", "tx.pkts") or 0),
        )

    def _evidence(self, look: DomainLook) -> Seen:
        seen: Seen = {}
        waited = look.total("vcpu", "delay")
        if waited is not None:  # the run queue's, of threads that run the guest
            seen["cpu_wait_s", ""] = waited * NANO
        for name, (group, *figures) in ALSO_TOLD.items():
            if (amount := look.total(group, *figures)) is not None:
                seen[name, ""] = float(amount)
        return seen

    def told(self, drive: Drive) -> Drive:
        looks = list(self._looks)[-len(drive.counters) :]
        self._looks.clear()
        missing: Mapping[str, str] = {
            **dict.fromkeys((*COLLECTED, *ON_REQUEST), INSIDE),
            "cpu_wait_s": UNTOLD,
            **dict.fromkeys(ALSO_TOLD, UNTOLD),
            "throttled_s": THROTTLING,
        }
        return seen_beside(drive, self.name, looks, missing)
