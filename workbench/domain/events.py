"""Events are facts: past tense, numbered, committed before anyone sees them. Ticks are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.chains import PartModel
from workbench.domain.fleets import FleetSeen, HostsCompared, ShardFolded
from workbench.domain.lab import BypassCurve, HostFacts, HostNoise
from workbench.domain.logs import ComponentLog
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import (
    Breakpoint,
    Curve,
    FittedModel,
    ModelScore,
    ParameterInfluence,
    TargetModel,
)
from workbench.domain.recommendations import GreedyRun, Recommendation, Trend, Verification
from workbench.domain.retraining import (
    CanaryAsk,
    CanaryPlan,
    CanaryRun,
    CanaryStep,
    Decision,
    Drift,
    Proposal,
    Rollback,
)
from workbench.domain.sample_review import BudgetExtended, PointRequested, SampleDecided
from workbench.domain.samples import Sample, TrialPurpose, Usage
from workbench.domain.sessions import ConfigurationOutcome, DescriptorText, Outcome, Plan
from workbench.domain.topology import VnfTemplate


@dataclass(frozen=True)
class SessionCreated:
    campaign: Campaign
    descriptors: tuple[DescriptorText, ...]
    lab: str
    seed: int
    host: HostFacts
    tool_version: str
    noise: HostNoise | None = None
    """What `doctor --measure` last saw on this lab; None where it was never run."""


@dataclass(frozen=True)
class CampaignPlanned:
    plan: Plan


@dataclass(frozen=True)
class RunStarted:
    resumed: bool
    budget_s: float | None


@dataclass(frozen=True)
class TargetDeployed:
    target: str
    generator: str
    keep_alive: bool
    path: str
    """What the pre-flight saw, as a sentence."""
    lab_s: float = 0.0
    """What it cost."""
    block: int = 0


@dataclass(frozen=True)
class BypassMeasured:
    curve: BypassCurve
    lab_s: float
    """What it cost."""


@dataclass(frozen=True)
class ConfigurationStarted:
    target: str
    configuration: Configuration


@dataclass(frozen=True)
class PointAsked:
    """The sampler wants this point next; `low`-`high` is the interval that it bisects."""

    target: str
    configuration: Configuration
    wl: float
    repetition: int
    low: float
    high: float
    why: str


@dataclass(frozen=True)
class SampleTaken:
    sample: Sample


@dataclass(frozen=True)
class ModelFitted:
    target: str
    configuration: Configuration
    curve: Curve | None
    """None as long as there are too few valid samples to fit."""
    breakpoints: tuple[Breakpoint, ...]
    model: FittedModel | None
    fit_cpu_s: float
    """What the fit burned in the worker pool."""


@dataclass(frozen=True)
class ConfigurationFinished:
    target: str
    configuration: Configuration
    outcome: ConfigurationOutcome
    samples: int
    invalid: int
    note: str = ""


@dataclass(frozen=True)
class PauseRequested:
    """The run pauses after the sample that is being measured; `RunContinued` takes it back."""

    by: str


@dataclass(frozen=True)
class RunPaused:
    by: str


@dataclass(frozen=True)
class RunContinued:
    by: str


@dataclass(frozen=True)
class StopRequested:
    """The run ends after the sample that is being measured; `abort` does not wait for it."""

    by: str
    abort: bool


@dataclass(frozen=True)
class Noted:
    """A line for the event log: a warning of the lab, a retry, a stray that was removed."""

    level: Literal["info", "warning", "error"]
    text: str


@dataclass(frozen=True)
class LogWritten:
    """What a component of the deployed target wrote during a visit, or while it came up."""

    target: str
    log: ComponentLog
    sample: str = ""
    """Id of the visit's sample; empty: there is none, the target came up or failed."""


@dataclass(frozen=True)
class RunFinished:
    outcome: Outcome
    samples: int
    invalid: int
    wall_s: float
    measured_s: float
    """Lab time: deployment, allocation, warm-up and windows."""
    breakpoints: tuple[Breakpoint, ...]
    note: str = ""
    waited_s: float = 0.0
    """Where others kept the host busy to the end: how long it waited in vain, which is none of its
    budget when it is resumed."""


@dataclass(frozen=True)
class TrialsStarted:
    """Somebody measures points of his own choice, in a session whose campaign has ended.

    Samples up to `TrialsFinished` are of that purpose. Where the engine died in between there is
    none: the next `TrialsStarted` or `RunStarted` tells.
    """

    purpose: TrialPurpose
    by: str
    budget_s: float | None
    """Of these trials, as a campaign's."""
    plans: tuple[TargetPlan, ...] = ()
    """Targets and allocations that the campaign does not have."""
    templates: tuple[VnfTemplate, ...] = ()
    """Of their functions, as far as the campaign has none of that name."""
    image_digests: Mapping[str, str] = field(default_factory=dict)
    """Of these templates."""


@dataclass(frozen=True)
class TrialsFinished:
    outcome: Outcome
    samples: int
    invalid: int
    wall_s: float
    lab_s: float
    """Of these trials: deployment, bypass, allocation, warm-up and windows."""
    note: str = ""


@dataclass(frozen=True)
class TargetModelled:
    """The model of a KPI of a target was chosen and fitted to all its samples: a new version."""

    model: TargetModel
    scores: tuple[ModelScore, ...]
    """By which it was chosen, the best first."""
    fit_cpu_s: float
    note: str = ""
    """Why it is not the method that was wanted, as a sentence."""


@dataclass(frozen=True)
class InfluenceMeasured:
    influence: ParameterInfluence


@dataclass(frozen=True)
class RecommendationIssued:
    """Somebody asked which allocation carries an SLA, and this was the answer."""

    recommendation: Recommendation
    templates: Mapping[str, str]
    """By function, from the source's side; balancers that it may need are among them."""
    trends: tuple[Trend, ...]
    """Of the chosen (else the closest) allocation, then of the next cheaper one."""


@dataclass(frozen=True)
class RecommendationVerified:
    """What was recommended was measured on the lab, and maybe other allocations beside it.

    `lab_iterations` are all allocations that were tried, `lab_s` their seconds; None: of the
    verified one alone.
    """

    recommendation: str
    """Its id."""
    verified: Verification
    by: str
    lab_iterations: int = 1
    lab_s: float | None = None


@dataclass(frozen=True)
class GreedyScaled:
    """Greedy scaling was run on the lab, to be put beside a recommendation."""

    recommendation: str
    """Its id."""
    greedy: GreedyRun
    by: str


@dataclass(frozen=True)
class CanaryStarted:
    """A real chain is about to be loaded step by step, as soon as the lab is free.

    Attributes
    ----------
    kpi : what the model says; a guard may be on another.
    version : of the model in force, 0 for the profiles; `in_force` is what it says of the KPI from
        the lowest load to the SLA's, None where it has nothing to say.
    """

    plan: CanaryPlan
    kpi: str
    version: int
    in_force: Curve | None
    ask: CanaryAsk
    by: str


@dataclass(frozen=True)
class CanaryStepped:
    """A measurement of the canary under way was judged.

    Attributes
    ----------
    ask : what is measured next, None where nothing is left.
    learned : what the model of all kept samples says over the same loads as `in_force`.
    """

    step: CanaryStep
    ask: CanaryAsk | None
    learned: Curve | None


@dataclass(frozen=True)
class CanaryEnded:
    """A real chain was loaded step by step, and there are no more steps."""

    canary: CanaryRun
    by: str


@dataclass(frozen=True)
class ModelProposed:
    """The model of a chain was retrained; it is in force once somebody accepts it."""

    proposal: Proposal
    profiles: tuple[PartModel, ...]
    """Those of the functions that it rests on."""
    in_force: Curve | None = None
    """What it is to replace, where most of its samples are; `learned` is what it says itself."""
    learned: Curve | None = None


@dataclass(frozen=True)
class DriftSeen:
    """Later samples do not fit the accepted model of a chain any more."""

    drift: Drift


@dataclass(frozen=True)
class ProposalDecided:
    decision: Decision


@dataclass(frozen=True)
class ModelRolledBack:
    rollback: Rollback


Fact = (
    SessionCreated
    | CampaignPlanned
    | RunStarted
    | TargetDeployed
    | BypassMeasured
    | ConfigurationStarted
    | PointAsked
    | SampleTaken
    | ModelFitted
    | ConfigurationFinished
    | PauseRequested
    | RunPaused
    | RunContinued
    | StopRequested
    | Noted
    | LogWritten
    | RunFinished
    | TrialsStarted
    | TrialsFinished
    | TargetModelled
    | InfluenceMeasured
    | RecommendationIssued
    | RecommendationVerified
    | GreedyScaled
    | CanaryStarted
    | CanaryStepped
    | CanaryEnded
    | ModelProposed
    | DriftSeen
    | ProposalDecided
    | ModelRolledBack
    | SampleDecided
    | PointRequested
    | BudgetExtended
    | ShardFolded
    | HostsCompared
    | FleetSeen
)


@dataclass(frozen=True)
class Event:
    """A fact with its place: `seq` counts from 1 in a session, `at` is seconds since the epoch."""

    seq: int
    at: float
    session: str
    fact: Fact


@dataclass(frozen=True)
class UsageTick:
    session: str
    at: float
    usage: Mapping[str, Usage]


@dataclass(frozen=True)
class Progress:
    session: str
    phase: Literal[
        "queued",
        "deploying",
        "allocating",
        "warming_up",
        "measuring",
        "fitting",
        "paused",
        "waiting",
    ]
    """`paused` by a user; `waiting` for what `note` says, such as a busy host or a full disk."""
    target: str
    configuration: Configuration | None
    wl: float | None
    samples: int
    samples_planned: int
    lab_s: float
    """Spent so far."""
    eta_s: float | None
    """Lab seconds to go, at most."""
    note: str = ""
    wall_s: float = 0.0
    """By the clock, since this run's turn came."""
    eta_wall_s: float | None = None
    """What `eta_s` is by the clock: longer on a host that is measured, since fitting takes time;
    simulated as fast as the host computes. None until something was measured."""


@dataclass(frozen=True)
class ControlLock:
    """Who drives a campaign: one operator at a time, by name."""

    session: str
    driver: str
    """Empty: nobody; whoever commands next does."""
    asked_by: str = ""
    """Who asks for it; empty: nobody."""
    passes_at: float | None = None
    """Seconds since the epoch when it passes to who asks, unless the driver answers."""


Tick = UsageTick | Progress | ControlLock
