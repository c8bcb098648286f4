"""`hosts.yaml`: the lab hosts that share a campaign."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from workbench.descriptors.certificates import not_held_now
from workbench.descriptors.document import printable, read_document
from workbench.descriptors.fields import InstanceName, Port, Summary
from workbench.descriptors.library import library_for
from workbench.descriptors.reading import Described, Descriptor, DescriptorReading, Located
from workbench.descriptors.units import shown
from workbench.domain.attaching import MOST_PORT
from workbench.domain.counts import counted
from workbench.domain.errors import DescriptorError, UsageError
from workbench.domain.fleets import (
    Fleet,
    FleetPorts,
    HostKind,
    LabHost,
    NamedScheduler,
    SlurmRequest,
)
from workbench.paths import Workspace

MOST_HOSTS = 1000
PORTS = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")
LARGEST_CERTIFICATE = 2**20
DAY_S = 86400.0
Factor = Annotated[float, Field(gt=0, le=100)]
PathText = Annotated[str, Field(min_length=1, max_length=4096)]  # as long as Linux takes a path
OWN_KEYS: Mapping[HostKind, frozenset[str]] = {
    "simulated": frozenset({"speed", "noise", "clock"}),
    "ssh": frozenset({"address", "port", "user", "python", "folder"}),
    "dask": frozenset(),
    "slurm": frozenset({"python", "folder", "job"}),
}
"""Keys that only hosts of some kinds have."""
ENCRYPTED = "tls://"


class SlurmText(Described):
    """What a host that is a job asks Slurm for."""

    queue: Annotated[str, Field(pattern=r"^\S*$", max_length=64)] = ""
    memory: Annotated[str, Field(pattern=r"^[0-9]+ ?[KMGT]i?B$", max_length=20)] = "2GB"
    walltime: Annotated[str, Field(pattern=r"^[0-9:-]*$", max_length=20)] = Field(
        default="", description="As sbatch --time takes it"
    )
    cores: int = Field(default=2, ge=1, le=4096)
    directives: list[Annotated[str, Field(pattern=r"^-[^\n\r]*$", max_length=200)]] = Field(
        default=["--exclusive"], max_length=50, description="Further options of sbatch"
    )

    def resolved(self) -> SlurmRequest:
        return SlurmRequest(
            self.queue, self.memory, self.walltime, self.cores, tuple(self.directives)
        )


class HostText(Described):
    """One lab host. `speed`, `noise` and `clock` are a simulated host's, the rest SSH's; one of
    kind dask is a worker that somebody else starts at a scheduler that exists, one of kind slurm
    a job."""

    kind: HostKind = "ssh"
    lab: Annotated[str, Field(max_length=500)] = Field(
        default="", description="As --lab of run; default: sim of a simulated host, else docker"
    )
    count: int = Field(default=1, ge=1, le=MOST_HOSTS, description="As many: NAME-1, NAME-2, ...")
    speed: Factor = Field(default=1.0, description="Of its cores, over the usual simulated host")
    noise: Factor = Field(default=1.0, description="Factor on the spread of what is luck there")
    clock: float = Field(
        default=0.0, ge=-DAY_S, le=DAY_S, description="Seconds that its clock is ahead"
    )
    address: Annotated[str, Field(max_length=253)] = Field(
        default="", description="Name or address; default: the host's name in this file"
    )
    port: Port | None = None
    user: Annotated[str, Field(max_length=64)] = ""
    python: PathText = Field(default="python3", description="That has this workbench")
    folder: PathText = Field(default="workbench-fleet", description="Its workspace there")
    job: SlurmText | None = Field(default=None, description="Of a host of kind slurm")

    def mistakes(self) -> Iterator[Located]:
        foreign = frozenset[str]().union(*OWN_KEYS.values()) - OWN_KEYS[self.kind]
        for name in sorted(self.model_fields_set & foreign):
            others = " and ".join(kind for kind, own in OWN_KEYS.items() if name in own)
            yield (name,), f"belongs to hosts of kind {others}, this one is {self.kind}"
        if self.kind == "simulated" and self.lab.partition(":")[0] not in ("", "sim"):
            yield ("lab",), f"is {shown(self.lab)}, but a simulated host has the lab sim"

    def resolved(self, name: str) -> Iterator[LabHost]:
        for number in range(1, self.count + 1):
            own = name if self.count == 1 else f"{name}-{number}"
            yield LabHost(
                own,
                self.kind,
                self.lab,
                self.speed,
                self.noise,
                self.address or own if self.kind == "ssh" else "",
                self.port or 0,
                self.user,
                self.python,
                self.folder,
                self.clock,
                (self.job or SlurmText()).resolved() if self.kind == "slurm" else None,
            )


class CertificatesText(Described):
    """Files in PEM that a scheduler that exists, and the workers at it, know one another by."""

    authority: PathText = Field(description="Certificate of who signed the scheduler's")
    certificate: PathText = Field(description="By which this host and its workers are known")
    key: PathText


class PortsText(Described):
    """TCP ports that firewalls let through."""

    scheduler: Port | None = Field(
        default=None, description="Of the fleet's own scheduler, on this host; default: any"
    )
    workers: Annotated[str, Field(max_length=11)] = Field(
        default="", description="FIRST-LAST: of the worker of each host; default: any"
    )

    def mistakes(self) -> Iterator[Located]:
        if "workers" in self.model_fields_set and not self.range:
            yield (
                ("workers",),
                f"is {shown(self.workers)}, must be FIRST-LAST, two ports of 1 to {MOST_PORT} such "
                "as 9000-9099",
            )

    @property
    def range(self) -> range:
        """Of workers; empty where none is given, or what is given is none."""
        found = PORTS.fullmatch(self.workers)
        first, last = (int(found[1]), int(found[2])) if found else (0, 0)
        return range(first, last + 1) if 0 < first <= last <= MOST_PORT else range(0)

    def resolved(self) -> FleetPorts:
        first, last = (self.range[0], self.range[-1]) if self.range else (0, 0)
        return FleetPorts(self.scheduler or 0, first, last)


class HostsText(Descriptor):
    """Lab hosts by name, and where they reach this host."""

    kind: Literal["hosts"] = "hosts"
    summary: Summary = ""
    listen: Annotated[str, Field(min_length=1, max_length=253)] = Field(
        default="127.0.0.1", description="Address of this host at which the others reach it"
    )
    scheduler: Annotated[str, Field(max_length=260)] = Field(
        default="", description="One that exists, as tls://HOST:PORT; default: the fleet's own"
    )
    certificates: CertificatesText | None = Field(
        default=None, description="Of that scheduler; relative to this file"
    )
    ports: PortsText = Field(
        default=PortsText(), description="That the fleet keeps to; default: any that are free"
    )
    hosts: dict[InstanceName, HostText] = Field(min_length=1, max_length=MOST_HOSTS)

    @classmethod
    def checks(cls, reading: DescriptorReading) -> Iterator[Located]:
        from workbench.own_names import is_loopback  # the web server behind it takes time

        hosts: dict[str, HostText] = reading.valid.get("hosts", {})
        found = [host.name for name, text in hosts.items() for host in text.resolved(name)]
        if len(found) > MOST_HOSTS:
            yield ("hosts",), f"are {len(found)}, at most {MOST_HOSTS} are allowed"
        for name in sorted({name for name in found if found.count(name) > 1}):
            yield ("hosts", name), "is also one of the hosts that a count makes"
        scheduler = reading.valid.get("scheduler", "")
        if scheduler and (wrong := wrong_address(scheduler)):
            yield ("scheduler",), wrong
        if scheduler and reading.valid.get("certificates") is None:
            yield ("scheduler",), "has no certificates; name them on top under certificates"
        yield from _short_of_ports(reading, hosts)
        listen = reading.valid.get("listen", "127.0.0.1")
        for name, text in hosts.items():
            away = text.kind == "slurm" or (
                text.kind == "ssh" and not is_loopback(text.address or name)
            )
            if is_loopback(listen) and away and not scheduler:
                yield (
                    ("hosts", name),
                    f"is another host, but this one listens at {listen} only; "
                    "write on top under listen: at which address others reach it",
                )

    def resolved(self, path: Path, scheduler: str) -> Fleet:
        hosts = tuple(h for key, text in self.hosts.items() for h in text.resolved(str(key)))
        named, files = None, self.certificates
        if scheduler and files is not None:
            beside = path.absolute().parent
            own = (files.authority, files.certificate, files.key)
            named = NamedScheduler(scheduler, *(str(beside / Path(f).expanduser()) for f in own))
        return Fleet(path.stem, hosts, self.listen, named, self.ports.resolved(), str(path))


def _short_of_ports(reading: DescriptorReading, hosts: Mapping[str, HostText]) -> Iterator[Located]:
    """Ports that nobody listens at, or fewer than what listens on this host."""
    ports: PortsText = reading.valid.get("ports", PortsText())
    if ports.scheduler is not None and reading.valid.get("scheduler", ""):
        yield (
            ("ports", "scheduler"),
            "is of the fleet's own scheduler, and this file names one that exists",
        )
    here = sum(text.count for text in hosts.values() if text.kind == "simulated")
    if ports.range and here > len(ports.range):
        yield (
            ("ports", "workers"),
            f"is {shown(ports.workers)}, {counted(len(ports.range), 'port')}, but the "
            f"{counted(here, 'simulated host')} of this host listen at one each",
        )


def out_of_time(path: Path, text: HostsText) -> Iterator[Located]:
    """That the certificate which a file names does not hold now: whoever checks the file is told,
    and a fleet that is up can be ended all the same. One that is on another host is not read."""
    if text.certificates is None:
        return
    place = path.absolute().parent / Path(text.certificates.certificate).expanduser()
    try:
        with place.open(encoding="utf-8") as file:
            why = not_held_now(file.read(LARGEST_CERTIFICATE))
    except (OSError, UnicodeDecodeError):
        return
    except ValueError:
        why = "is no certificate in PEM"
    if why:
        yield ("certificates", "certificate"), f"{shown(text.certificates.certificate)} {why}"


def wrong_address(scheduler: str) -> str:
    """What is wrong with the address of a scheduler, as a mistake says it; empty: nothing."""
    host, _, port = scheduler.removeprefix(ENCRYPTED).rpartition(":")
    if not scheduler.startswith(ENCRYPTED):
        return (
            f"is {shown(scheduler)}, must begin with {ENCRYPTED}: a fleet uses no scheduler that "
            "is not encrypted"
        )
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 2**16:
        return f"is {shown(scheduler)}, must be {ENCRYPTED}HOST:PORT"
    return ""


def wrong_listen(listen: str) -> str:
    """Why nothing here can listen at an address, as a mistake says it; empty: it can."""
    wanted = f"is {shown(listen)}, must be an address of this host at which the others reach it"
    try:
        found = socket.getaddrinfo(listen, 0, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, address in found[:1]:
            with socket.socket(family, kind, protocol) as own:
                own.bind(address)
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no name of a host is like that"
        return f"{wanted}: {why}"
    return ""


def load_fleet(
    path: Path, *, workspace: Workspace, scheduler: str = "", is_started: bool = False
) -> Fleet:
    """The fleet that a hosts file describes.

    Parameters
    ----------
    scheduler : one that exists, instead of the one that the file names.
    is_started : the fleet is to be started here, so that `listen` has to be this host's; a file
        may be checked, or its fleet ended, on any host and at any time.

    Raises
    ------
    DescriptorError
        With all mistakes of the file.
    UsageError
        If `scheduler` cannot be used with this file.
    """
    library = library_for(workspace, beside=path)
    text = library.read(path, HostsText)
    if text is None or library.mistakes:
        raise DescriptorError(library.mistakes)
    if scheduler and (wrong := wrong_address(scheduler)):
        raise UsageError(wrong, where="--scheduler")
    if scheduler and text.certificates is None:
        raise UsageError(
            "needs the certificates of that scheduler",
            where="--scheduler",
            remedy=f"Name them in {path} under certificates: authority, certificate and key",
        )
    if scheduler and text.ports.scheduler is not None:
        raise UsageError(
            f"names a scheduler that exists, and {path} a port for the fleet's own: "
            f"{text.ports.scheduler}",
            where="--scheduler",
            remedy="Take `scheduler` off `ports` there (that scheduler has a port of its own), or "
            "leave out --scheduler",
        )
    if is_started and not (scheduler or text.scheduler) and (wrong := wrong_listen(text.listen)):
        document = read_document(path, printable(path))
        document.note(("listen",), wrong)
        raise DescriptorError(document.mistakes)
    return text.resolved(path, scheduler or text.scheduler)
