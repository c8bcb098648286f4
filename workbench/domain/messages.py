"""Everything that crosses the link besides events: commands, queries, replies, the hello.

Commands change something, queries do not; both are *requests* and get one reply, or `Failed`.
In JSON every message carries its class name (`workbench.domain.codec`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.domain.curation import CurationCommand, GetSample, SampleDetail
from workbench.domain.drafts import DraftCommand, DraftQuery, DraftReply
from workbench.domain.durations import duration
from workbench.domain.errors import Mistake
from workbench.domain.events import Event
from workbench.domain.handing_on import HandingQuery, Previewed, RecommendOptions
from workbench.domain.housekeeping import HousekeepingCommand, Trashed
from workbench.domain.lab import Examined, HostCommand, HostMeasured, Reaped, RunDoctor
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Difference
from workbench.domain.projection import SessionView
from workbench.domain.questions import (
    CanaryPlanned,
    ChainCharted,
    ChainCompared,
    ChainPredicted,
    ChainRetrained,
    ChartChain,
    CompareChain,
    DecideProposal,
    Diagnose,
    Diagnosed,
    ExplainModel,
    ModelExplained,
    ModelsScored,
    PlanCanary,
    PredictChain,
    Recommend,
    Recommended,
    RetrainChain,
    RollBackModel,
    ScoreModels,
    VerifyRecommendation,
)
from workbench.domain.samples import Sample
from workbench.domain.sessions import Plan, SessionSummary
from workbench.domain.timeline import Moment, TimeLine, TimeLineQuery
from workbench.domain.topology import Target

Role = Literal["operator", "observer"]
"""Operators may run, accept and delete; observers see everything and change nothing."""

PROTOCOL_VERSION = 3
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
    fit: bool = False
    """Only what this host can give, thinned until the plan keeps within the budget."""
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
class AskWheel:
    """Ask for the wheel of a campaign that somebody else drives (`events.Wheel`). Reply: `Done`.

    It is given at once where its driver is not connected, else when the driver answers, or does
    not answer for a while.
    """

    session: str


@dataclass(frozen=True)
class AnswerWheel:
    """The driver's word to who asks; without anybody who asks, `give` lets go. Reply: `Done`."""

    session: str
    give: bool = True


@dataclass(frozen=True)
class ImportBundle:
    """Make a session of a bundle. Reply: `RunAccepted` with its name."""

    path: str
    session: str | None = None


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
    """The projection of a session now, or as of the event `until`. Reply: `Viewed`.

    Of a session of very many samples some are left out; of the configuration `focus` (its key;
    empty: the one that was measured then) as few as a plot can do without.
    """

    session: str
    until: int | None = None
    focus: str = ""


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
    kinds: tuple[str, ...] = ()
    """Only these, by the names of their classes; none: all."""


@dataclass(frozen=True)
class PlanCampaign:
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


@dataclass(frozen=True)
class GenerateChains:
    """Every chain that obeys a chain policy (`descriptors.policies`). Reply: `ChainsGenerated`.

    More than `limit` chains are a mistake: a list that is cut would pass for the whole.
    """

    policy: str
    """As `firewall > router & (snort | suricata)`."""
    free: tuple[str, ...] = ()
    """VNFs that may stand anywhere in a chain, or be left out."""
    limit: int = 200


@dataclass(frozen=True)
class ExportSession:
    """Write a session in a format of `workbench.exports`. Reply: `Exported`."""

    session: str
    format: str
    destination: str | None = None
    """Absolute path; None: the workspace's exports folder."""


@dataclass(frozen=True)
class CompareSessions:
    """Where two sessions differ by more than chance and the host's A/A floor. Reply: `Compared`."""

    first: str
    second: str


@dataclass(frozen=True)
class ExportRecommendation:
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
class Subscribe:
    """Reply: `Viewed` at sequence N; then every event after N, and ticks, until `Unsubscribe`."""

    session: str


@dataclass(frozen=True)
class Unsubscribe:
    session: str


@dataclass(frozen=True)
class Cancel:
    """Nobody waits any more for the answer to a request of this connection: what is computed for it
    ends, and it is not answered. What it changes or measures goes on (`StopRun` ends that).
    Reply: `Done`.
    """

    asked: int
    """The `id` of the line that asked."""


Command = (
    RunCampaign
    | ResumeSession
    | PauseRun
    | ContinueRun
    | StopRun
    | SkipConfiguration
    | AskWheel
    | AnswerWheel
    | ImportBundle
    | HostCommand
    | StopEngine
    | VerifyRecommendation
    | RetrainChain
    | DecideProposal
    | RollBackModel
    | DraftCommand
    | HousekeepingCommand
    | CurationCommand
)
Query = (
    GetStatus
    | ListSessions
    | ListCampaigns
    | ViewSession
    | ListSamples
    | ListEvents
    | TimeLineQuery
    | GetSample
    | PlanCampaign
    | GenerateChains
    | ExportSession
    | RunDoctor
    | CompareSessions
    | ScoreModels
    | Diagnose
    | PredictChain
    | CompareChain
    | ChartChain
    | Recommend
    | PlanCanary
    | ExplainModel
    | Cancel
    | ExportRecommendation
    | HandingQuery
    | DraftQuery
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
    | TimeLine
    | Moment
    | SampleDetail
    | Planned
    | ChainsGenerated
    | Exported
    | Examined
    | HostMeasured
    | Compared
    | ModelsScored
    | Diagnosed
    | ChainPredicted
    | ChainCompared
    | ChainCharted
    | Recommended
    | RecommendOptions
    | Previewed
    | ChainRetrained
    | CanaryPlanned
    | ModelExplained
    | DraftReply
    | Trashed
    | Failed
)

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
