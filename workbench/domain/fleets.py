"""Lab hosts that share a campaign: who they are, what each measures, what came of it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.domain import kpis
from workbench.domain.campaign import Campaign
from workbench.domain.counts import counted
from workbench.domain.durations import duration
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.profiles import Breakpoint, HostFactor
from workbench.domain.samples import Estimate
from workbench.domain.sessions import DescriptorText

HostKind = Literal["simulated", "ssh", "dask", "slurm"]
STARTED_ELSEWHERE = ("dask", "slurm")
"""Kinds of hosts whose worker knows no hosts file: it is told the lab with each order."""


@dataclass(frozen=True)
class SlurmRequest:
    """What a job is submitted with; empty: what the cluster, or Dask's configuration, says.

    Attributes
    ----------
    directives : further lines of `#SBATCH`, as `sbatch` takes them.
    """

    queue: str = ""
    memory: str = "2GB"
    walltime: str = ""
    cores: int = 2
    directives: tuple[str, ...] = ("--exclusive",)


@dataclass(frozen=True)
class LabHost:
    """A host of a fleet, as its hosts file describes it.

    Attributes
    ----------
    name : unique in the fleet.
    kind : `simulated`, a process on this host with the simulated lab; `ssh`, reached by SSH;
        `dask`, a worker that somebody else starts at a scheduler that exists; `slurm`, a job.
    lab : the lab that it measures with, options included; empty: the campaign's, or `docker`.
    speed : of a simulated host: of its cores, over that of the host that stand-ins describe.
    noise : of a simulated host: factor on the spread of everything that is luck there.
    clock_s : of a simulated host: how far its clock is ahead.
    address, port, user : of SSH; empty or 0: what `~/.ssh/config` says.
    python : interpreter that has this workbench, on the host.
    folder : its workspace on the host; relative to the home of the user.
    job : what a host of kind `slurm` asks Slurm for.
    """

    name: str
    kind: HostKind
    lab: str = ""
    speed: float = 1.0
    noise: float = 1.0
    address: str = ""
    port: int = 0
    user: str = ""
    python: str = "python3"
    folder: str = "workbench-fleet"
    clock_s: float = 0.0
    job: SlurmRequest | None = None


@dataclass(frozen=True)
class NamedScheduler:
    """A Dask scheduler that exists already.

    Attributes
    ----------
    address : `tls://HOST:PORT`.
    authority, certificate, key : files in PEM: who signed the scheduler's certificate, and with
        what this host and the workers that it starts show who they are.
    """

    address: str
    authority: str
    certificate: str
    key: str


@dataclass(frozen=True)
class FleetPorts:
    """TCP ports that a fleet keeps to; 0: any that is free.

    Attributes
    ----------
    scheduler : of the fleet's own, on this host.
    first_worker, last_worker : one of these, of each host that the fleet starts a worker on.
    """

    scheduler: int = 0
    first_worker: int = 0
    last_worker: int = 0

    @property
    def workers(self) -> str:
        """As Dask takes them; empty: any."""
        first, last = self.first_worker, self.last_worker
        return "" if not first else str(first) if first == last else f"{first}:{last}"


@dataclass(frozen=True)
class Fleet:
    """The hosts of a hosts file; `listen` is the address at which they reach this host.

    Attributes
    ----------
    scheduler : one that somebody else keeps; None: the fleet has its own.
    file : the hosts file as it was given, for commands that are named; empty: not known.
    """

    name: str
    hosts: tuple[LabHost, ...]
    listen: str = "127.0.0.1"
    scheduler: NamedScheduler | None = None
    ports: FleetPorts = FleetPorts()
    file: str = field(default="", compare=False)

    def command(self, name: str) -> str:
        """`workbench fleet NAME` of this fleet, as it is typed."""
        words = ["workbench", "fleet", name, *([self.file] if self.file else [])]
        return f"`{shlex.join(words)}`"


@dataclass(frozen=True)
class FleetRun:
    """A campaign that a fleet is asked for: a template's name or an absolute path.

    Attributes
    ----------
    lab : that every host measures with; None: as the hosts file says.
    size : configurations of a shard, at most; None: as many as suit the hosts.
    priority : campaigns of a higher one on the same fleet go first, from the next shard on.
    share : hosts that measure for it at the same time, at most; None: all.
    named : the campaign as a person named it.
    options : of `run`, as given: what belongs to the campaign.
    fleet_options : the same of what belongs to the fleet, the hosts file among them.
    workspace : as given; empty: the usual one.
    id : random, of the run, and part of its shards' keys: hosts hand over what they finished for
        this run, and of no other. Empty: a run that was begun before there were any.
    """

    campaign: str
    session: str | None = None
    lab: str | None = None
    seed: int = 1
    pace: float | None = None
    oversubscribe: bool = False
    size: int | None = None
    priority: int = 0
    share: int | None = None
    named: str = ""
    options: tuple[str, ...] = ()
    fleet_options: tuple[str, ...] = ("--fleet", "HOSTS")
    workspace: str = ""
    id: str = ""

    def command(self, session: str) -> str:
        """What goes on with it, to be typed."""
        own = ("--workspace", self.workspace) if self.workspace else ()
        words = (self.named or self.campaign, *self.fleet_options, "--session", session)
        return shlex.join(("workbench", *own, "run", *words, *self.options))


@dataclass(frozen=True)
class Shard:
    """Some configurations of one target, which one host measures into a session of its own.

    Attributes
    ----------
    key : 16 hex digits of what is to be measured and of the run that it is measured for: the same
        work for that run has the same key everywhere.
    campaign : with these configurations only.
    seed : of this shard, so that two shards of a host do not share the luck of their starts.
    """

    key: str
    campaign: Campaign
    seed: int

    @property
    def target(self) -> str:
        return self.campaign.targets[0].target.name

    @property
    def configurations(self) -> tuple[str, ...]:
        return self.campaign.targets[0].only


@dataclass(frozen=True)
class PlannedPoint:
    """A load of a configuration that was planned for all hosts in one place."""

    configuration: Configuration
    wl: float


@dataclass(frozen=True)
class ShardOrder:
    """A shard as it is sent to a host.

    Attributes
    ----------
    run : name of the session that all shards end in.
    lab : None: as the host's own description says.
    pace : of a simulated lab, lab seconds per second; None: as fast as it goes.
    points : that the host is to measure besides, into the session of the shard `goes_on`, which it
        has measured before; none: the shard as its campaign says.
    """

    run: str
    shard: Shard
    descriptors: tuple[DescriptorText, ...]
    lab: str | None = None
    pace: float | None = None
    oversubscribe: bool = False
    points: tuple[PlannedPoint, ...] = ()
    goes_on: str = ""

    @property
    def session(self) -> str:
        """Its session's name on the host."""
        return f"{self.run[:40]}.{self.goes_on or self.shard.key}"


@dataclass(frozen=True)
class ShardResult:
    """What a host says of a shard that it has measured and stored.

    Attributes
    ----------
    place : folder of the bundle on the host.
    digest : SHA-256 of the bundle's manifest, which has those of its tables; empty: it failed.
    samples, lab_s : of the shard, or of the planned points, whichever request measured them.
    taken : samples that this very request measured; 0 where all were there already.
    failure : why nothing came of it, as a sentence; empty where something did.
    is_measured : with a failure: all of it is measured and stored there, and only not handed over.
    wall_s : seconds on the clock that this very request took, from when it was the host's turn.
    """

    key: str
    host: str
    session: str
    place: str = ""
    digest: str = ""
    samples: int = 0
    taken: int = 0
    lab_s: float = 0.0
    failure: str = ""
    is_measured: bool = False
    wall_s: float = 0.0


@dataclass(frozen=True)
class ShardFolded:
    """Samples of the blocks `first_block` to `last_block` of a target were measured by this host.

    A shard is measured whole by one host, so that no two hosts share a configuration.
    """

    host: str
    facts: HostFacts
    key: str
    target: str
    configurations: tuple[str, ...]
    first_block: int
    last_block: int
    samples: int
    lab_s: float
    digest: str


@dataclass(frozen=True)
class CarriedBreakpoint:
    """A breakpoint that one host measured, divided by its factor over the reference: the variance
    of the factor is in the interval."""

    host: str
    own: Breakpoint
    carried: Breakpoint


@dataclass(frozen=True)
class HostScatter:
    """How much one host's own deployments differ at the lowest anchor load.

    Attributes
    ----------
    figure : KPI name.
    sd : standard deviation of its logarithm between deployments.
    degrees : of freedom that it rests on, deployments less one.
    """

    host: str
    figure: str
    sd: float
    degrees: int


@dataclass(frozen=True)
class AnchorSample:
    """What a host measured at an anchor point, as far as factors and scatter are made of it.

    Attributes
    ----------
    block : the host's own number of the deployment.
    kpis : the campaign's KPI and the rate carried, by name.
    """

    host: str
    point: OperatingPoint
    block: int
    started_at: float
    valid: bool
    kpis: Mapping[str, Estimate]


@dataclass(frozen=True)
class HostsCompared:
    """Every host measured the same anchor points, and this is how they differ."""

    reference: str
    factors: tuple[HostFactor, ...]
    unsteady: Mapping[str, str] = field(default_factory=dict)
    """Hosts that disagree with themselves, with the reason."""
    breakpoints: tuple[CarriedBreakpoint, ...] = ()
    """Of what other hosts measured, as the reference would have them."""
    scatter: tuple[HostScatter, ...] = ()
    """Of every host that measured anchor points, the reference among them, in the campaign's KPI;
    empty in sessions of before."""
    anchors: tuple[AnchorSample, ...] = ()
    """What all of this was made of; samples at anchor points are in no session else. Empty in
    sessions of before."""


HostDoes = Literal["starting", "queued", "idle", "measuring", "waiting", "lost", "held", "out"]
"""What a host of a fleet does now; `queued` by Slurm; `waiting` for its turn there, which somebody
else has, or behind a campaign that goes first; `held` by a person, so that the fleet leaves it
alone (in sessions of before behind such a campaign, too); `out`: it is given nothing because of
what came of it."""


@dataclass(frozen=True)
class HostSeen:
    """A host as the campaign that it measures for knows it.

    Attributes
    ----------
    shard : what it measures now, or is to, in words; empty where it measures nothing.
    since : seconds since the epoch when it was given that; None where it measures nothing.
    shards, samples, lab_s : what it has finished for this campaign, anchor points included.
    anchors, anchor_samples, anchor_lab_s : what of these was of anchor points; 0 in sessions of
        before.
    wall_s : seconds on the clock that this took; what it had finished before is not in it.
    measured_s : of `lab_s`, what was measured in these `wall_s`.
    noise : standard deviation of the logarithm of the KPI over its own deployments at the lowest
        anchor load; None before its anchor points are measured, and where there are none.
    note : why it is queued, lost, held or out, or whom it waits for, as a sentence.
    """

    name: str
    does: HostDoes
    shard: str = ""
    since: float | None = None
    shards: int = 0
    samples: int = 0
    lab_s: float = 0.0
    wall_s: float = 0.0
    measured_s: float = 0.0
    noise: float | None = None
    note: str = ""
    anchors: int = 0
    anchor_samples: int = 0
    anchor_lab_s: float = 0.0

    @property
    def pace(self) -> float | None:
        """Lab seconds per second on the clock; None before it has finished anything."""
        return self.measured_s / self.wall_s if self.wall_s > 0 else None


@dataclass(frozen=True)
class FleetSeen:
    """How a campaign over a fleet stands: stored whenever a host begins or ends something.

    Attributes
    ----------
    hosts : those of which something else was said before; all the others are as they were.
    shards : all that are to be measured, anchor points included; where they are planned in rounds,
        those of the rounds so far.
    measured, set_aside : how many of them are measured, or failed on every host that tried.
    eta_s : seconds on the clock to the end with the hosts that are there and given something;
        None where no host has finished anything yet, none is there, or more is planned in rounds.
    in_rounds : whether more is planned once this is measured: nobody knows how much is left.
    command : what goes on with the campaign, to be typed; empty: as it was said before.
    anchors, anchors_measured : what of `shards` and `measured` is of anchor points; 0 in sessions
        of before.
    run : its id (`FleetRun.id`), which the keys of its shards go by; empty: as it was said before.
    """

    hosts: tuple[HostSeen, ...]
    shards: int
    measured: int
    set_aside: int = 0
    eta_s: float | None = None
    in_rounds: bool = False
    anchors: int = 0
    anchors_measured: int = 0
    command: str = ""
    run: str = ""

    @property
    def lab_s(self) -> float:
        """Lab seconds of the campaign's own samples that are finished."""
        return sum(host.lab_s - host.anchor_lab_s for host in self.hosts)

    @property
    def so_far(self) -> str:
        """Shards that are measured, those of anchor points apart."""
        own = counted(self.shards - self.anchors, "shard")
        said = f"{self.measured - self.anchors_measured} of {own}"
        if self.anchors:
            said += f" and {self.anchors_measured} of {self.anchors} of anchor points"
        return f"{said} measured"

    @property
    def there(self) -> int:
        """Hosts that measure, or could."""
        return sum(host.does in ("idle", "measuring", "waiting") for host in self.hosts)


def told(fact: ShardFolded | HostsCompared) -> str:
    """One of these facts as a sentence."""
    if isinstance(fact, ShardFolded):
        return (
            f"{fact.target}, {counted(len(fact.configurations), 'configuration')}: measured by "
            f"{fact.host} in {duration(fact.lab_s)} of lab time, {counted(fact.samples, 'sample')}"
        )
    said = [_compared(each) for each in fact.factors]
    said += [f"{host} disagrees with itself: {why}" for host, why in fact.unsteady.items()]
    return f"hosts compared with {fact.reference}: " + ("; ".join(said) or "nothing to compare")


def _compared(factor: HostFactor) -> str:
    """What a figure of a host is beside the same of the reference, as a sentence."""
    kpi = kpis.of(factor.figure)
    how = "long" if kpi.kind == "response_time" else "high"
    said = (
        f"{kpi.short} of {factor.host} is {factor.value:.3f} times as {how} "
        f"({factor.low:.3f} to {factor.high:.3f})"
    )
    return said + (f", which {factor.note}" if factor.note else "")
