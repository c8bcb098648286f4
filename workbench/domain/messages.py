"""Everything that crosses the link besides events: commands, queries, replies, the hello.

Commands change something, queries do not; both are *requests* and get one reply, or `Failed`.
In JSON every message carries its class name (`workbench.domain.codec`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.domain.chains import ChainPrediction, PartModel
from workbench.domain.errors import Mistake
from workbench.domain.events import Event
from workbench.domain.housekeeping import HousekeepingCommand, Trashed
from workbench.domain.lab import Check, HostNoise
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import (
    Difference,
    ModelScore,
    ModelVersion,
    ParameterInfluence,
)
from workbench.domain.projection import SessionView
from workbench.domain.recommendations import ComparisonRow, Recommendation
from workbench.domain.retraining import (
    CanaryRun,
    ChainComparison,
    Decision,
    Drift,
    Proposal,
)
from workbench.domain.samples import Sample
from workbench.domain.sessions import Plan, SessionSummary

HOST_NOISE = "host-noise"
"""What stands in a session's place while `MeasureHost` holds the host."""

Role = Literal["operator", "observer"]
"""Operators may run, accept and delete; observers see everything and change nothing."""

PROTOCOL_VERSION = 2
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
class ReapStrays:
    """Remove containers and networks of dead sessions. Reply: `Reaped`."""


@dataclass(frozen=True)
class StopEngine:
    """End the engine; a running campaign is interrupted and can be resumed."""


@dataclass(frozen=True)
class RetrainChain:
    """Load a real chain carefully, learn what it adds to its prediction, decide what comes of it.

    Reply: `ChainRetrained`. It takes minutes on a real lab; `EngineStatus.scoring` says how far it
    is, and `StopRun` ends it. With a `decision`, the latest proposal that is stored is decided, and
    only where there is none something is measured first; what nobody has seen yet is accepted only
    if it is better on held-out points.
    """

    session: str
    chain: str | None = None
    """A target of the campaign, or the name of a chain's descriptor; None: the only one."""
    kpi: str | None = None
    """What the model says; None: the SLA's, else the campaign's."""
    sla: str = ""
    """Empty: the campaign's, if it has one."""
    share: float = 0.5
    """Of the SLA's load, without one of the campaign's range, up to which the chain is loaded."""
    steps: int = 10
    """0: nothing is measured, the model is retrained with what is stored."""
    guards: tuple[str, ...] = ()
    """Limits that stop it, as `p95<=200ms`; none: the SLA's."""
    budget_s: float | None = None
    """Lab time."""
    allocation: str = ""
    """As `haproxy=25%, tinyproxy=50%`; empty: the largest of the campaign's."""
    online: bool = False
    """Random loads, as production brings them, not rising ones."""
    method: str = ""
    """Empty: what the chain adds to its prediction. `trend`: the method that says the predicted
    trend best, trained with the chain's samples alone (paper A); or the name of one."""
    decision: Literal["", "accept", "reject"] = ""
    why: str = ""
    by: str = ""


@dataclass(frozen=True)
class RollBackModel:
    """Put another version of a chain's retrained model in force. Reply: `Done`."""

    session: str
    version: int
    """0: the stand-alone profiles as they are."""
    chain: str | None = None
    """None: the only one that has versions; `kpi` likewise."""
    kpi: str | None = None
    why: str = ""
    by: str = ""


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
    budget_s: float | None = None
    """Only for `fit`."""
    fit: bool = False
    samplers: bool = False
    """What each registered sampler would cost, too; that takes seconds."""


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
class MeasureHost:
    """Generator self-test and A/A run; what it finds is kept for every later session on this lab.

    Reply: `HostMeasured`. It holds the host's measuring lock and takes minutes; `EngineStatus`
    says how far it is, and `StopRun(HOST_NOISE)` ends it.
    """

    lab: str | None = None
    seed: int = 1
    pairs: int = 10


@dataclass(frozen=True)
class CompareSessions:
    """Where two sessions differ by more than chance and the host's A/A floor. Reply: `Compared`."""

    first: str
    second: str


@dataclass(frozen=True)
class ScoreModels:
    """How well each registered model predicts samples that it has not seen. Reply: `ModelsScored`.

    All targets where `target` is None, the campaign's KPI where `kpi` is None. `by` is what folds
    are made of: points, or whole configurations that a model has not seen. `methods` are all where
    there are none; `short` among them stands for the short list (`engine.scoring`).

    A comparison by points that leaves out neither the short list nor the method in force chooses
    each target's model anew: what changed is stored, unless an observer asks.
    """

    session: str
    target: str | None = None
    kpi: str | None = None
    by: Literal["point", "configuration"] = "point"
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class PredictChain:
    """What stand-alone profiles say of a chain. Reply: `ChainPredicted`.

    Models of the functions that are made for it are stored, unless an observer asks.
    """

    session: str
    chain: str
    """A target of the campaign, or the name of a chain's descriptor."""
    at: str
    """As `rate=300/s, filesize=10kB`."""
    kpi: str | None = None
    """None: the campaign's."""
    rule: str = ""
    """Empty: the default for the KPI and the load."""
    allocation: str = ""
    """As `haproxy=25%, tinyproxy=50%`. Empty: every one of the campaign, or every combination of
    what the functions were profiled at."""
    profiles: str | None = None
    """The session that has the functions; None: the same."""
    insist: bool = False
    """Take profiles of another host, too; the answer is marked."""


@dataclass(frozen=True)
class CompareChain:
    """A chain's samples against what stand-alone profiles say. Reply: `ChainCompared`.

    Fields are those of `PredictChain`.
    """

    session: str
    chain: str
    kpi: str | None = None
    rule: str = ""
    profiles: str | None = None
    insist: bool = False


@dataclass(frozen=True)
class Recommend:
    """The cheapest allocation that carries SLAs. Reply: `Recommended`.

    It is stored, as are models that are made for it, unless an observer asks. An observer may not
    ask for what is measured.
    """

    session: str
    slas: tuple[str, ...]
    """Each as `p95<=200ms @ rate=300/s, filesize=10kB`."""
    chain: str | None = None
    """A target of the campaign, or the name of a chain's descriptor; None: the only chain, or the
    only target."""
    confidence: float = 0.95
    cost: str = "vcpu-hours"
    """A plugin's name, or a price table's name or absolute path."""
    greedy: bool = False
    """Run greedy scaling, too: on the model, or on the lab."""
    on_lab: bool = False
    """Greedy scaling runs on the session's lab."""
    verify: bool = False
    """Measure what is recommended, on the session's lab."""
    budget_s: float | None = None
    """Lab time of both, after which no new sample is begun."""
    oversubscribe: bool = False
    """Measure deployments that need more cores than the host has, too."""
    by: str = ""


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
    | ReapStrays
    | MeasureHost
    | StopEngine
    | RetrainChain
    | RollBackModel
    | HousekeepingCommand
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
    | CompareSessions
    | ScoreModels
    | PredictChain
    | CompareChain
    | Recommend
    | ExportRecommendation
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
class HostMeasured:
    noise: HostNoise
    checks: tuple[Check, ...]
    """What the generator self-test found."""


@dataclass(frozen=True)
class ModelsScored:
    """By target, the best first; failed ones last."""

    scores: tuple[ModelScore, ...]
    models: tuple[ModelVersion, ...] = ()
    """The versions in force, of the targets asked for."""
    influences: tuple[ParameterInfluence, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences on what could not be computed or stored."""


@dataclass(frozen=True)
class ChainPredicted:
    """One prediction for each allocation, in the order of the campaign's grid."""

    predictions: tuple[ChainPrediction, ...]
    models: tuple[PartModel, ...]
    notes: tuple[str, ...] = ()
    """Sentences on what was left out, is marked, or could not be stored."""


@dataclass(frozen=True)
class ChainCompared:
    """`weakest_link` is the papers' rule on the same samples: None where it is the rule that was
    asked for, or does not apply. `profiles` are the profiles alone where an accepted model is
    compared, by the rule that it corrects."""

    comparison: ChainComparison
    weakest_link: ChainComparison | None
    models: tuple[PartModel, ...]
    notes: tuple[str, ...] = ()
    profiles: ChainComparison | None = None


@dataclass(frozen=True)
class Recommended:
    """`rows` put what is recommended beside greedy scaling, where that was asked for."""

    recommendation: Recommendation
    """Without id where it was not stored."""
    rows: tuple[ComparisonRow, ...]
    notes: tuple[str, ...] = ()
    """Sentences on what is marked, or could not be stored."""


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


@dataclass(frozen=True)
class ChainRetrained:
    """What a canary came to, and what was decided.

    Attributes
    ----------
    version : of the model in force now; 0 are the stand-alone profiles.
    canary : None where nothing was measured.
    proposal : None where none could be made; `notes` say why.
    decision : None while the proposal waits for one.
    drift : later samples against the model that was in force before; None without one.
    """

    chain: str
    kpi: str
    version: int
    canary: CanaryRun | None
    proposal: Proposal | None
    decision: Decision | None
    drift: Drift | None
    notes: tuple[str, ...] = ()


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
    | HostMeasured
    | Compared
    | ModelsScored
    | ChainPredicted
    | ChainCompared
    | Recommended
    | ChainRetrained
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
