"""`hosts.yaml`: the lab hosts that share a campaign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from workbench.descriptors.fields import InstanceName, NonEmptyText, Port, Summary
from workbench.descriptors.library import library_for
from workbench.descriptors.reading import Described, Descriptor, DescriptorReading, Located
from workbench.descriptors.units import shown
from workbench.domain.errors import DescriptorError
from workbench.domain.fleets import Fleet, HostKind, LabHost
from workbench.paths import Workspace

MOST_HOSTS = 1000
DAY_S = 86400.0
Factor = Annotated[float, Field(gt=0, le=100)]
SIMULATED, REMOTE = ("speed", "noise", "clock"), ("address", "port", "user", "python", "folder")


class HostText(Described):
    """One lab host. `speed`, `noise` and `clock` are a simulated host's, the rest SSH's."""

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
    python: NonEmptyText = Field(default="python3", description="That has this workbench")
    folder: NonEmptyText = Field(default="workbench-fleet", description="Its workspace there")

    def mistakes(self) -> Iterator[Located]:
        foreign = REMOTE if self.kind == "simulated" else SIMULATED
        for name in sorted(self.model_fields_set & set(foreign)):
            other = "ssh" if self.kind == "simulated" else "simulated"
            yield (name,), f"belongs to hosts of kind {other}, this one is {self.kind}"
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
                "" if self.kind == "simulated" else self.address or own,
                self.port or 0,
                self.user,
                self.python,
                self.folder,
                self.clock,
            )


class HostsText(Descriptor):
    """Lab hosts by name, and where they reach this host."""

    kind: Literal["hosts"] = "hosts"
    summary: Summary = ""
    listen: Annotated[str, Field(min_length=1, max_length=253)] = Field(
        default="127.0.0.1", description="Address of this host at which the others reach it"
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
        listen = reading.valid.get("listen", "127.0.0.1")
        for name, text in hosts.items():
            away = text.kind == "ssh" and not is_loopback(text.address or name)
            if is_loopback(listen) and away:
                yield (
                    ("hosts", name),
                    f"is reached by SSH, but this host listens at {listen} only; "
                    "write on top under listen: at which address it reaches this one",
                )

    def resolved(self, name: str) -> Fleet:
        hosts = tuple(h for key, text in self.hosts.items() for h in text.resolved(str(key)))
        return Fleet(name, hosts, self.listen)


def load_fleet(path: Path, *, workspace: Workspace) -> Fleet:
    """The fleet that a hosts file describes. Raises `DescriptorError` with all its mistakes."""
    library = library_for(workspace, beside=path)
    text = library.read(path, HostsText)
    if text is None or library.mistakes:
        raise DescriptorError(library.mistakes)
    return text.resolved(path.stem)
