"""`attach:` of a campaign: functions that run already, how each is found and what it may bear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, WithJsonSchema

from workbench.descriptors.fields import NonEmptyText
from workbench.descriptors.load_job_text import LoadJobText
from workbench.descriptors.reading import Described, Located
from workbench.descriptors.sla_text import parse_sla
from workbench.descriptors.units import PRIMARIES, shown
from workbench.domain import kpis
from workbench.domain.attaching import (
    ATTACH,
    KUBERNETES,
    LIBVIRT,
    LOCAL_LIBVIRT,
    VALUE,
    Attached,
    FoundBy,
    Means,
    OwnCommand,
    SshAddress,
    Unit,
)
from workbench.domain.errors import UsageError
from workbench.domain.parameters import Sla
from workbench.domain.topology import VnfTemplate

NO_GUARD = "none"
GUARDED = ("response_time", "share")
"""Kinds of KPI that requests beside the load can tell."""
FILE_SIZE = "{filesize}"
PLACES = ("{address}", FILE_SIZE)
"""What a URL may leave open."""

POD = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/[A-Za-z0-9][-A-Za-z0-9_./=,!() ]{0,400}$"
"""A namespace, and a selector as `kubectl get pods -l` takes it."""

DOMAIN = r"^(?:[A-Za-z_]|[0-9]+[A-Za-z_.+:@-])[A-Za-z0-9_.+:@-]{0,200}$"
"""Of what libvirt takes as a name: what needs no quotes, and no number, by which virsh means the
domain that has it now."""

_Load = Annotated[
    int | float | str,
    Field(union_mode="left_to_right"),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]


def _http(text: str) -> str:
    filled = text
    for place in PLACES:
        filled = filled.replace(place, "1")
    try:
        parts = urlsplit(filled)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme != "http" or not host or "{" in filled or any(c.isspace() for c in text):
        raise ValueError(f"is {shown(text)}, must be a URL such as http://127.0.0.1:8080/")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a name or a password; no request of the workbench carries them")
    return text


def _ssh_host(text: str) -> str:
    SshAddress.parse(text)
    return text


def _libvirt(text: str) -> str:
    if not LIBVIRT.fullmatch(text):
        raise ValueError(
            f"is {shown(text)}, must be a connection to libvirt such as {LOCAL_LIBVIRT} or "
            "qemu+ssh://root@lab-a/system; behind a ? may stand socket=/... or keyfile=/..."
        )
    return text


HttpUrl = Annotated[str, AfterValidator(_http)]


Argv = Annotated[list[NonEmptyText], Field(min_length=1)]


class OwnCommandText(Described):
    """Commands of one's own that set and read a resource: arguments, which no shell sees."""

    set_by: Argv = Field(alias="set", description="With {value} in one argument")
    read_by: Argv = Field(alias="read", description="Prints the value as `set` takes it")
    unit: Literal["cores", "percent", "bytes", "MiB"] | None = Field(
        None, description="Of the value; without it cores of vcpu, bytes of memory"
    )

    def mistakes(self) -> Iterator[Located]:
        if sum(word.count(VALUE) for word in self.set_by[1:]) != 1:
            yield ("set",), f"needs {VALUE} once, in an argument"
        if any(VALUE in word for word in self.read_by):
            yield ("read",), f"has {VALUE}, and is given none"
        for name, words in (("set", self.set_by), ("read", self.read_by)):
            if any("\n" in word or "\0" in word for word in words):
                yield (name,), "has an argument with a line break"


class AttachText(Described):
    """One function that runs already. Nothing is started, removed or configured."""

    pod: Annotated[str, Field(pattern=POD)] | None = Field(
        None, description="NAMESPACE/SELECTOR of the one pod that runs, such as shop/app=web"
    )
    context: NonEmptyText | None = Field(
        None, description="Of the kubeconfig, for a pod; without it the current one"
    )
    container: NonEmptyText | None = Field(
        None, description="Its name or id; beside `pod`, which of its containers"
    )
    label: Annotated[str, Field(pattern=r"^[^=\s]+=.*$")] | None = Field(
        None, description="KEY=VALUE of the one container that runs with it"
    )
    compose: NonEmptyText | None = Field(None, description="SERVICE, or PROJECT/SERVICE")
    pid: Annotated[int, Field(ge=2)] | None = None
    cgroup: Annotated[str, Field(pattern=r"^/.+")] | None = Field(
        None, description="As /proc/PID/cgroup names it, such as /system.slice/nginx.service"
    )
    domain: Annotated[str, Field(pattern=DOMAIN)] | None = Field(
        None, description="Name or UUID of a libvirt domain that runs"
    )
    connect: Annotated[str, AfterValidator(_libvirt)] | None = Field(
        None, description=f"To libvirt, for a domain; without it {LOCAL_LIBVIRT}"
    )
    host: Annotated[str, AfterValidator(_ssh_host)] | None = Field(
        None, description="user@name[:port], where it runs: reached by SSH"
    )
    program: NonEmptyText | None = Field(None, description="What its process must be called")
    url: HttpUrl | None = Field(None, description="Where load enters")
    past: HttpUrl | None = Field(
        None, description="Where load ends: spoken to past the functions, for the bypass"
    )
    max_load: _Load | None = Field(None, description="Load that is never passed")
    guard: str | None = Field(
        None, description="What the system has to hold while it is loaded: p95<=200ms, or none"
    )
    resources: (
        Literal["cgroup", "resize", "set-property", "schedinfo", "command", "fixed"] | None
    ) = Field(
        None,
        description="How they are set; without it resize for a pod, schedinfo for a domain, "
        "cgroup for others",
    )
    commands: dict[Literal["vcpu", "memory"], OwnCommandText] | None = Field(
        None, description="By resource, for `resources: command`"
    )
    job: LoadJobText | None = Field(
        None, description="Of a pod: the load that enters is sent by a Job in its cluster"
    )
    when_wrong: Literal["end", "wait"] = "end"

    def mistakes(self) -> Iterator[Located]:
        given = [name for name in WAYS if getattr(self, name) is not None]
        if self.pod is not None:
            given = [name for name in given if name != "container"]
        if not given:
            yield (), f"does not say how it is found; give one of: {', '.join(WAYS)}"
        yield from self._of_clusters()
        yield from self._of_domains()
        yield from self._of_other_hosts()
        yield from self._of_commands()
        for extra in given[1:]:
            yield (extra,), f"is given beside {given[0]}; one of them must go"
        if self.url is None:
            for name in ("past", "max_load", "guard", "job"):
                if getattr(self, name) is not None:
                    yield (name,), "belongs to a function that load enters, and this has no url"
            return
        if self.max_load is None:
            yield ("max_load",), "is missing: load that may never be passed, such as 500/s"
        if self.guard is None:
            yield (
                ("guard",),
                "is missing: what the system has to hold meanwhile, such as p95<=200ms; or none",
            )

    def _of_clusters(self) -> Iterator[Located]:
        """What belongs to pods alone, and what they have not."""
        if self.pod is None:
            if self.context is not None:
                yield ("context",), "belongs to a pod, and this is none"
            if self.job is not None:
                yield ("job",), "belongs to a pod: a Job sends load in a cluster"
            if self.resources == "resize":
                yield ("resources",), "is resize, which pods know"
            return
        if self.program is not None:
            yield ("program",), "belongs to a process of this host, and a pod's is not seen"
        if self.resources == "cgroup":
            yield ("resources",), "is cgroup, which lies on the pod's node; use resize or fixed"

    def _of_domains(self) -> Iterator[Located]:
        """What belongs to libvirt's domains alone, and what they have not."""
        if self.domain is None:
            if self.connect is not None:
                yield ("connect",), "belongs to a domain of libvirt, and this is none"
            if self.resources == "schedinfo":
                yield ("resources",), "is schedinfo, which domains of libvirt know"
            return
        if self.host is not None:
            yield ("host",), "belongs to `connect`, such as qemu+ssh://root@lab-a/system"
        if self.program is not None:
            yield ("program",), "belongs to a process, and a domain's are not seen"
        if self.resources not in (None, "schedinfo", "fixed"):
            yield ("resources",), f"is {self.resources}; of a domain allowed: schedinfo, fixed"

    def _of_other_hosts(self) -> Iterator[Located]:
        if self.host is None:
            return
        from workbench.own_names import is_loopback  # the web server behind it takes time

        if self.pod is not None:
            yield (
                ("host",),
                "belongs to a container, process or group; a pod is found by its API",
            )
        name = urlsplit(self.url or "").hostname or ""
        if is_loopback(name) and not is_loopback(SshAddress.parse(self.host).name):
            yield ("url",), f"is this host's own, and it runs on {self.host}; write {{address}}"

    def _of_commands(self) -> Iterator[Located]:
        if self.resources in BY_COMMAND and (self.host is not None or self.pod is not None):
            yield ("resources",), f"is {self.resources}, which is run on this host alone"
        if self.resources == "set-property" and self.pid is None and self.cgroup is None:
            yield ("resources",), "is set-property; give the pid or the cgroup of its unit"
        if self.resources == "command" and not self.commands:
            yield ("commands",), "is missing: how each resource is set and read"
        if self.resources != "command" and self.commands is not None:
            yield ("commands",), "belongs to `resources: command`"
        for resource, text in (self.commands or {}).items():
            if text.unit is not None and text.unit not in UNITS[resource]:
                units = ", ".join(UNITS[resource])
                yield ("commands", resource, "unit"), f"is {text.unit}; allowed here: {units}"

    @property
    def means(self) -> Means:
        """How its resources are set."""
        own: Means = "schedinfo" if self.domain is not None else "cgroup"
        return self.resources or (own if self.pod is None else "resize")

    @property
    def found_by(self) -> FoundBy:
        return next(name for name in WAYS if getattr(self, name) is not None)


BY_COMMAND = ("set-property", "command")
UNITS: dict[str, tuple[Unit, ...]] = {"vcpu": ("cores", "percent"), "memory": ("bytes", "MiB")}
"""By resource, the first where nobody says."""
WAYS: tuple[FoundBy, ...] = ("pod", "container", "label", "compose", "pid", "cgroup", "domain")


def templates(attach: Mapping[str, AttachText]) -> dict[str, VnfTemplate]:
    """What stands in a template's place: nothing of these functions is deployed."""
    return {name: VnfTemplate(name, summary="runs already", default_vcpu=0.0) for name in attach}


def resolved(attach: Mapping[str, AttachText], primary: str) -> tuple[Attached, ...]:
    """The functions as the lab wants them; `attach` has no mistakes."""
    return tuple(
        Attached(
            name=name,
            found_by=text.found_by,
            found_at=str(getattr(text, text.found_by)),
            url=text.url or "",
            past=text.past or "",
            max_load=0.0 if text.max_load is None else load_of(text.max_load, primary),
            guard=guard_of(text.guard, primary),
            resources=text.means,
            commands=tuple(
                OwnCommand(name, tuple(own.set_by), tuple(own.read_by), own.unit or UNITS[name][0])
                for name, own in (text.commands or {}).items()
            ),
            program=text.program or "",
            container=(text.container or "") if text.pod else "",
            context=text.context or "",
            host=text.host or "",
            connect=(text.connect or LOCAL_LIBVIRT) if text.domain else "",
            job=text.job.resolved() if text.job else None,
            when_wrong=text.when_wrong,
        )
        for name, text in attach.items()
    )


def load_of(given: Any, primary: str) -> float:
    """A load in the unit of the primary workload parameter. Raises `ValueError`."""
    value = PRIMARIES[primary].read(given)
    if value <= 0:
        raise ValueError(f"is {shown(given)}, must be over 0")
    return value


def guard_of(text: str | None, primary: str) -> Sla | None:
    """What the system has to hold; None for no guard. Raises `ValueError`."""
    if text is None or text == NO_GUARD:
        return None
    try:
        sla = parse_sla(text, primary)
    except UsageError as error:
        raise ValueError(error.what) from None
    if "@" in text:
        raise ValueError(f"is {shown(text)}: it holds at every load, so nothing stands behind an @")
    if kpis.of(sla.kpi).kind not in GUARDED or kpis.of(sla.kpi).more_is_better:
        raise ValueError(f"limits {sla.kpi}; a guard limits a response time, loss or errors")
    return sla


def lab_of(attach: Mapping[str, AttachText]) -> str:
    """The lab that such functions need; empty where there are none."""
    if not attach:
        return ""
    return KUBERNETES if any(text.pod for text in attach.values()) else ATTACH
