"""Functions that run already: how each is found, and what may be done to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from workbench.domain.parameters import Sla

ATTACH = "attach"
"""The lab that measures functions that run already, on this host or on one reached by SSH."""
KUBERNETES = "kubernetes"
"""The lab that measures those that run already as pods of a cluster."""
ATTACHING = (ATTACH, KUBERNETES)
"""Labs that deploy nothing."""

FoundBy = Literal["pod", "container", "label", "compose", "pid", "cgroup", "domain"]
Means = Literal["cgroup", "resize", "set-property", "schedinfo", "command", "fixed"]
"""How resources are set: its control group is written to, its pod is resized in place, systemd is
asked, libvirt is asked, commands of the user's own are run, or they stay as they are."""
Unit = Literal["cores", "percent", "bytes", "MiB"]
"""Of the value that a command of the user's own takes."""
VALUE = "{value}"
"""Where it stands in an argument."""
WhenWrong = Literal["end", "wait"]
MOST_PORT = 65535
LOCAL_LIBVIRT = "qemu:///system"
"""The connection to libvirt where nobody names one."""
LIBVIRT = re.compile(
    r"(?:qemu|test)(?:\+(?:ssh|tls|tcp|unix))?://(?P<host>(?:[A-Za-z0-9_\[][A-Za-z0-9@._:\[\]-]{0,300})?)"
    r"/(?:system|session|default)(?:\?(?:socket|keyfile)=/[A-Za-z0-9/._-]{1,200})?"
)
"""A connection to libvirt, as `virsh --connect` takes it; of what may follow the `?` nothing that
names a program."""
SSH_HOST = re.compile(
    r"([A-Za-z0-9_][A-Za-z0-9._-]{0,63}@)?"
    r"([A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?"
)
"""A host that is reached by SSH: `user@name:port`, as `SshAddress.parse` takes it."""


@dataclass(frozen=True)
class SshAddress:
    """A host that is reached by SSH, with the user's keys, `~/.ssh/config` and `known_hosts`.

    A user or port that is not given, empty or 0, is what `~/.ssh/config` says.
    """

    name: str
    port: int = 0
    user: str = ""

    @classmethod
    def parse(cls, text: str) -> SshAddress:
        """Of `user@name:port`; an address of IPv6 stands in brackets. Raises `ValueError`."""
        given = SSH_HOST.fullmatch(text)
        if given is None:
            raise ValueError(f"{text!r} is no host for SSH; write it like root@lab-a:22")
        user, name, port = given.groups(default="")
        if port and not 0 < int(port[1:]) <= MOST_PORT:
            raise ValueError(f"{text!r} has port {port[1:]}; a port is 1 to {MOST_PORT}")
        return cls(name.strip("[]"), int(port[1:] or 0), user.rstrip("@"))

    @property
    def shown(self) -> str:
        """Its name, as it stands in a URL."""
        return f"[{self.name}]" if ":" in self.name else self.name

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        return user + self.shown + (f":{self.port}" if self.port else "")


@dataclass(frozen=True)
class OwnCommand:
    """How a resource of a function is set by commands of the user's own, and read. Arguments, and
    never a shell's text."""

    resource: str
    """`vcpu` or `memory`."""
    set_by: tuple[str, ...]
    """With `{value}` in an argument."""
    read_by: tuple[str, ...]
    """Prints the value as `set_by` takes it."""
    unit: Unit

    def value(self, amount: float) -> str:
        """What stands for `{value}`; `amount` is in cores or bytes."""
        divided = {"cores": 1.0, "percent": 0.01, "bytes": 1.0, "MiB": float(1 << 20)}[self.unit]
        return f"{amount / divided:.15g}"


@dataclass(frozen=True)
class LoadJob:
    """A Job of the cluster that sends the load from within, in place of a process on this host."""

    image: str
    """Of the user's own: holds the generator and curl."""
    namespace: str
    node_selector: tuple[tuple[str, str], ...] = ()
    """Labels of the nodes that it may run on; none: any."""
    cores: float = 1.0
    """Requested for the generator."""
    memory_bytes: int = 256 << 20


@dataclass(frozen=True)
class Attached:
    """One function of a system that runs already."""

    name: str
    """Of the function in this campaign."""
    found_by: FoundBy
    found_at: str
    """`NAMESPACE/SELECTOR` of a pod's labels, a container's name or id, a label `KEY=VALUE`, a
    service or `PROJECT/SERVICE` of Compose, a process id, a path below the mount of the control
    groups, the name or UUID of a libvirt domain."""
    url: str = ""
    """Where load enters; `{address}` is its container's, `{filesize}` what a configuration says."""
    past: str = ""
    """Where load ends, spoken to past the functions; empty: nowhere that is known."""
    max_load: float = 0.0
    """Load that is never passed, in the unit of the primary workload."""
    guard: Sla | None = None
    """What the running system has to hold while it is loaded; None: nothing is asked."""
    resources: Means = "cgroup"
    commands: tuple[OwnCommand, ...] = ()
    """By which resources are set, where `resources` is `command`."""
    program: str = ""
    """What its process must be called; empty: anything."""
    container: str = ""
    """Of a pod; empty: its only one."""
    context: str = ""
    """Of the kubeconfig, for a pod; empty: the current one."""
    host: str = ""
    """Reached by SSH, as `SshAddress` reads it; empty: this host."""
    connect: str = ""
    """To libvirt, for a domain, as `LIBVIRT` reads it."""
    job: LoadJob | None = None
    """Sends the load that enters here; None: this host does."""
    when_wrong: WhenWrong = "end"
    """Whether the campaign ends or waits where the function is gone, or another."""

    @property
    def found(self) -> str:
        """As a sentence names it: `container web`, `process 4711`."""
        noun = {
            "pod": "pod",
            "container": "container",
            "label": "the container labelled",
            "compose": "the Compose service",
            "pid": "process",
            "cgroup": "control group",
            "domain": "libvirt domain",
        }[self.found_by]
        return f"{noun} {self.found_at}" + (f" on {self.elsewhere}" if self.elsewhere else "")

    @property
    def elsewhere(self) -> str:
        """The host that it runs on, where that is another one; empty: this host."""
        if self.found_by != "domain":
            return self.host
        there = LIBVIRT.fullmatch(self.connect)
        return there["host"] if there else ""
