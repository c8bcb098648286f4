"""Everything that crosses the link besides events: commands, queries, replies, the hello.

Commands change something, queries do not; both are *requests* and get one reply, or `Failed`.
In JSON every message carries its class name (`workbench.domain.codec`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.domain.errors import Mistake
from workbench.domain.events import Event
from workbench.domain.lab import Check
from workbench.domain.parameters import Configuration
from workbench.domain.projection import SessionView
from workbench.domain.samples import Sample
from workbench.domain.sessions import Plan, SessionSummary

PROTOCOL_VERSION = 1
"""Raised with every change of a message that an older peer would misread."""

# --------------------------------------------------------------------------- commands


@dataclass(frozen=True)
class RunCampaign:
    """Start (or queue) a campaign: a template's name or an absolute path. Reply: `RunAccepted`."""

    campaign: str
    session: str | None = None
    """None: the campaign's name and a counter."""
    lab: str | None = None
    """`docker`, `sim`, `recorded:NAME`; None: docker where an engine answers, else sim."""
    seed: int = 1
    budget_s: float | None = None
    oversubscribe: bool = False
    pace: float | None = None
    """Simulated lab only: lab seconds per second; None is as fast as it goes."""


@dataclass(frozen=True)
class ResumeSession:
    """Go on with an interrupted or stopped session. Reply: `RunAccepted`."""

    session: str
    budget_s: float | None = None
    pace: float | None = None


@dataclass(frozen=True)
class PauseRun:
    session: str
    by: str = ""


@dataclass(frozen=True)
class ContinueRun:
    session: str
    by: str = ""


@dataclass(frozen=True)
class StopRun:
    session: str
    abort: bool = False
    by: str = ""


@dataclass(frozen=True)
class SkipConfiguration:
    """Take no more samples of a configuration; None: the one being measured."""

    session: str
    target: str | None = None
    configuration: Configuration | None = None


@dataclass(frozen=True)
class ImportBundle:
    """Make a session of a bundle. Reply: `RunAccepted` with its name."""

    path: str
    session: str | None = None


@dataclass(frozen=True)
class ReapStrays:
    """Remove containers and networks of dead sessions. Reply: `Reaped`."""


@dataclass(frozen=True)
class StopEngine:
    """End the engine; a running campaign is interrupted and can be resumed."""


# --------------------------------------------------------------------------- queries


@dataclass(frozen=True)
class GetStatus:
    """Reply: `EngineStatus`."""


@dataclass(frozen=True)
class ListSessions:
    """Reply: `SessionList`."""


@dataclass(frozen=True)
class ListCampaigns:
    """Reply: `CampaignList`: what `RunCampaign` can be given by name."""


@dataclass(frozen=True)
class ViewSession:
    """The projection of a session now, or as of the event `until`. Reply: `Viewed`."""

    session: str
    until: int | None = None


@dataclass(frozen=True)
class ListSamples:
    """A page of samples in the order they were taken. Reply: `SamplePage`."""

    session: str
    offset: int = 0
    limit: int = 1000


@dataclass(frozen=True)
class ListEvents:
    """A page of events after `after`. Reply: `EventPage`."""

    session: str
    after: int = 0
    limit: int = 1000


@dataclass(frozen=True)
class PlanCampaign:
    """What a campaign would cost. Reply: `Planned`."""

    campaign: str
    lab: str | None = None
    seed: int = 1


@dataclass(frozen=True)
class ExportSession:
    """Write a session in a format of `workbench.exports`. Reply: `Exported`."""

    session: str
    format: str
    destination: str | None = None
    """Absolute path; None: the workspace's exports folder."""


@dataclass(frozen=True)
class RunDoctor:
    """Reply: `Examined`."""


@dataclass(frozen=True)
class Subscribe:
    """Reply: `Viewed` at sequence N; then every event after N, and ticks, until `Unsubscribe`."""

    session: str


@dataclass(frozen=True)
class Unsubscribe:
    session: str


Command = (
    RunCampaign
    | ResumeSession
    | PauseRun
    | ContinueRun
    | StopRun
    | SkipConfiguration
    | ImportBundle
    | ReapStrays
    | StopEngine
)
Query = (
    GetStatus
    | ListSessions
    | ListCampaigns
    | ViewSession
    | ListSamples
    | ListEvents
    | PlanCampaign
    | ExportSession
    | RunDoctor
    | Subscribe
    | Unsubscribe
)
Request = Command | Query

# --------------------------------------------------------------------------- replies


@dataclass(frozen=True)
class Done:
    """The command was carried out; `note` says what happened, as a sentence."""

    note: str = ""


@dataclass(frozen=True)
class RunAccepted:
    session: str
    queued_behind: str = ""
    """The session that holds the host's measuring lock, if any."""


@dataclass(frozen=True)
class Reaped:
    removed: tuple[str, ...]


@dataclass(frozen=True)
class EngineStatus:
    version: str
    workspace: str
    pid: int
    started_at: float
    running: str
    """Session that is measuring; empty if none."""
    queued: tuple[str, ...]
    clients: int
    http: str = ""
    loop_lag_p99_ms: float = 0.0


@dataclass(frozen=True)
class SessionList:
    sessions: tuple[SessionSummary, ...]


@dataclass(frozen=True)
class CampaignChoice:
    name: str
    summary: str
    path: str


@dataclass(frozen=True)
class CampaignList:
    campaigns: tuple[CampaignChoice, ...]


@dataclass(frozen=True)
class Viewed:
    view: SessionView


@dataclass(frozen=True)
class SamplePage:
    samples: tuple[Sample, ...]
    offset: int
    total: int


@dataclass(frozen=True)
class EventPage:
    events: tuple[Event, ...]
    last_seq: int
    """Of the session, not of the page."""


@dataclass(frozen=True)
class Planned:
    plan: Plan


@dataclass(frozen=True)
class Exported:
    path: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Examined:
    checks: tuple[Check, ...]


@dataclass(frozen=True)
class Failed:
    """A `WorkbenchError` that crossed the link."""

    error: str
    """Class name (`errors.BY_NAME`)."""
    what: str
    where: str | None = None
    remedy: str | None = None
    mistakes: tuple[Mistake, ...] = ()


Reply = (
    Done
    | RunAccepted
    | Reaped
    | EngineStatus
    | SessionList
    | CampaignList
    | Viewed
    | SamplePage
    | EventPage
    | Planned
    | Exported
    | Examined
    | Failed
)

# --------------------------------------------------------------------------- hello


@dataclass(frozen=True)
class Hello:
    """First line in both directions. A client of another protocol version is refused politely."""

    protocol: int
    version: str
    identity: str
    role: Literal["operator", "observer"] = "operator"
    workspace: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
