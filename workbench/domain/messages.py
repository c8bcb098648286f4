"""Everything that crosses the link besides events: commands, queries, replies, the hello.

Commands change something, queries do not; both are *requests* (`workbench.domain.requests`), name
the class of their one reply, and get that, or `Failed`. In JSON every message carries its class
name (`workbench.domain.codec`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.domain import (
    drafts,
    export_requests,
    fleet_requests,
    function_watches,
    housekeeping,
    lab,
    questions,
    sample_review,
    timeline,
)
from workbench.domain.durations import duration
from workbench.domain.events import Event
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Difference, HostFactor
from workbench.domain.projection import SessionView
from workbench.domain.requests import Command as Command
from workbench.domain.requests import Done as Done
from workbench.domain.requests import Failed as Failed
from workbench.domain.requests import Query as Query
from workbench.domain.requests import Request as Request
from workbench.domain.requests import RunAccepted as RunAccepted
from workbench.domain.requests import requests_in
from workbench.domain.samples import Sample
from workbench.domain.sessions import Plan, SessionSummary
from workbench.domain.topology import Target

Role = Literal["operator", "observer"]
"""Operators may run, accept and delete; observers see everything and change nothing."""

PROTOCOL_VERSION = 5
"""Raised with every change of a message that an older peer would misread."""

# --------------------------------------------------------------------------- replies


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
    host_held_by: str = ""
    """Who measures on this host in another workspace: session, workspace, process; empty if nobody
    does."""
    http: str = ""
    loop_lag_p99_ms: float = 0.0
    host_measuring: str = ""
    """What `MeasureHost` is doing, as a sentence; empty where nobody asked for it."""
    scoring: str = ""
    """What is computed for a question that takes seconds: which model, of which target; empty where
    nobody asked."""
    preparing: str = ""
    """What a run waits for that is being started, as `SESSION: WHAT`, such as an image that is
    built; empty where none is."""
    idle_work: str = ""
    """What is made for later sessions while nothing is measured, such as oha; empty where nothing
    is."""
    scoring_s: float = 0.0
    scoring_eta_s: float = 0.0
    """Since when it is computed, and about how long still; 0 where nobody knows."""

    @property
    def computing(self) -> str:
        """What is computed for a question, and about how long it still takes."""
        return ", ".join(filter(None, (self.scoring, self.to_go)))

    @property
    def to_go(self) -> str:
        """About how long it still takes, after a second; empty where nobody knows."""
        if not self.scoring or self.scoring_s < 1.0 or self.scoring_eta_s < 1.0:
            return ""
        return f"about {duration(self.scoring_eta_s)} to go"


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
    warnings: tuple[str, ...] = ()
    """What is damaged or lost of the session's file, as sentences."""


@dataclass(frozen=True)
class EventPage:
    events: tuple[Event, ...]
    last_seq: int
    """Of the session, not of the page."""


@dataclass(frozen=True)
class Planned:
    plan: Plan


@dataclass(frozen=True)
class ChainsGenerated:
    chains: tuple[Target, ...]


@dataclass(frozen=True)
class Exported:
    path: str
    files: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """What is damaged or lost of the session's file, and that it was simulated, as sentences."""


@dataclass(frozen=True)
class Compared:
    """Two sessions, figure by figure; `floor` is what neither host can tell apart."""

    first: str
    second: str
    differences: tuple[Difference, ...]
    warnings: tuple[str, ...]
    factors: tuple[HostFactor, ...] = ()
    """Between sessions of different hosts or labs, whose figures are no differences."""


# --------------------------------------------------------------------------- commands


@dataclass(frozen=True)
class RunCampaign(Command[RunAccepted]):
    """Start (or queue) a campaign: a template's name or an absolute path. Reply: `RunAccepted`."""

    campaign: str
    session: str | None = None
    """None: the campaign's name and a counter."""
    lab: str | None = None
    """`docker`, `sim`, `recorded:NAME`; None: docker where an engine answers, else sim."""
    seed: int = 1
    budget_s: float | None = None
    oversubscribe: bool = False
    fit: bool = False
    """Only what this host can give, thinned until the plan keeps within the budget."""
    pace: float | None = None
    """Simulated lab only: lab seconds per second; None is as fast as it goes."""


@dataclass(frozen=True)
class ResumeSession(Command[RunAccepted]):
    """Go on with an interrupted or stopped session. Reply: `RunAccepted`."""

    session: str
    budget_s: float | None = None
    pace: float | None = None


@dataclass(frozen=True)
class PauseRun(Command[Done]):
    session: str
    by: str = ""


@dataclass(frozen=True)
class ContinueRun(Command[Done]):
    session: str
    by: str = ""


@dataclass(frozen=True)
class StopRun(Command[Done]):
    session: str
    abort: bool = False
    by: str = ""


@dataclass(frozen=True)
class SkipConfiguration(Command[Done]):
    """Take no more samples of a configuration; None: the one being measured."""

    session: str
    target: str | None = None
    configuration: Configuration | None = None


@dataclass(frozen=True)
class AskControl(Command[Done]):
    """Ask for control of a campaign that somebody else drives (`events.ControlLock`).

    Reply: `Done`.

    It is given at once where its driver is not connected, else when the driver answers, or does
    not answer for a while.
    """

    session: str


@dataclass(frozen=True)
class AnswerControl(Command[Done]):
    """The driver's word to who asks; without anybody who asks, `give` lets go. Reply: `Done`."""

    session: str
    give: bool = True


@dataclass(frozen=True)
class ImportBundle(Command[RunAccepted]):
    """Make a session of a bundle. Reply: `RunAccepted` with its name."""

    path: str
    session: str | None = None


@dataclass(frozen=True)
class StopEngine(Command[Done]):
    """End the engine; a running campaign is interrupted and can be resumed."""


# --------------------------------------------------------------------------- queries


@dataclass(frozen=True)
class GetStatus(Query[EngineStatus]):
    """Reply: `EngineStatus`."""


@dataclass(frozen=True)
class ListSessions(Query[SessionList]):
    """Reply: `SessionList`."""


@dataclass(frozen=True)
class ListCampaigns(Query[CampaignList]):
    """Reply: `CampaignList`: what `RunCampaign` can be given by name."""


@dataclass(frozen=True)
class ViewSession(Query[Viewed]):
    """The projection of a session now, or as of the event `until`. Reply: `Viewed`.

    Of a session of very many samples some are left out; of the configuration `focus` (its key;
    empty: the one that was measured then) as few as a plot can do without.
    """

    session: str
    until: int | None = None
    focus: str = ""


@dataclass(frozen=True)
class ListSamples(Query[SamplePage]):
    """A page of samples in the order they were taken. Reply: `SamplePage`."""

    session: str
    offset: int = 0
    limit: int = 1000


@dataclass(frozen=True)
class ListEvents(Query[EventPage]):
    """A page of events after `after`. Reply: `EventPage`."""

    session: str
    after: int = 0
    limit: int = 1000
    kinds: tuple[str, ...] = ()
    """Only these, by the names of their classes; none: all."""


@dataclass(frozen=True)
class PlanCampaign(Query[Planned]):
    """What a campaign would cost. Reply: `Planned`."""

    campaign: str
    lab: str | None = None
    seed: int = 1
    budget_s: float | None = None
    """Only for `fit`."""
    fit: bool = False
    samplers: bool = False
    """What each registered sampler would cost, too; that takes seconds."""
    only: tuple[str, ...] = ()
    """Of the samplers, where not all are asked for."""
    chosen: bool = False
    """Of the samplers, what the campaign's own would cost, and no other."""
    most_hosts: int = 0
    """Up to how many hosts of a fleet; 0: nobody asks."""


@dataclass(frozen=True)
class GenerateChains(Query[ChainsGenerated]):
    """Every chain that obeys a chain policy (`descriptors.policies`). Reply: `ChainsGenerated`.

    More than `limit` chains are a mistake: a list that is cut would pass for the whole.
    """

    policy: str
    """As `firewall > router & (snort | suricata)`."""
    free: tuple[str, ...] = ()
    """VNFs that may stand anywhere in a chain, or be left out."""
    limit: int = 200


@dataclass(frozen=True)
class ExportSession(Query[Exported]):
    """Write a session in a format of `workbench.exports`. Reply: `Exported`."""

    session: str
    format: str
    destination: str | None = None
    """Absolute path; None: the workspace's exports folder."""


@dataclass(frozen=True)
class CompareSessions(Query[Compared]):
    """Where two sessions differ by more than chance and the host's A/A floor. Reply: `Compared`."""

    first: str
    second: str


@dataclass(frozen=True)
class ExportRecommendation(Query[Exported]):
    """Write a stored recommendation for those who deploy. Reply: `Exported`."""

    session: str
    recommendation: str
    """Its id: `r1`."""
    format: str
    """Of `workbench.recommendation_exports`."""
    destination: str | None = None
    """Absolute path of a folder, or of the file where there is but one; None: the workspace's
    exports folder."""


@dataclass(frozen=True)
class Subscribe(Query[Viewed]):
    """Reply: `Viewed` at sequence N; then every event after N, and ticks, until `Unsubscribe`."""

    session: str


@dataclass(frozen=True)
class Unsubscribe(Query[Done]):
    session: str


@dataclass(frozen=True)
class Cancel(Query[Done]):
    """Nobody waits any more for the answer to a request of this connection: what is computed for it
    ends, and it is not answered. What it changes or measures goes on (`StopRun` ends that).
    Reply: `Done`.
    """

    asked: int
    """The `id` of the line that asked."""


REQUESTS = requests_in(
    (
        sys.modules[__name__],
        sample_review,
        drafts,
        fleet_requests,
        function_watches,
        export_requests,
        housekeeping,
        lab,
        questions,
        timeline,
    )
)
"""Every request; a message that crosses is one of these, a reply to one, a hello or a tick."""


# --------------------------------------------------------------------------- hello


@dataclass(frozen=True)
class Hello:
    """First line in both directions. A client of another protocol version is refused politely."""

    protocol: int
    version: str
    identity: str
    role: Role = "operator"
    workspace: str = ""
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_remote(self) -> bool:
        """Whether somebody came in by SSH or a browser, and not from an account on this host."""
        return "door" in self.details
