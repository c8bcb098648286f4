"""Events are facts: past tense, numbered, committed before anyone sees them. Ticks are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from workbench.domain.campaign import Campaign
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Breakpoint, Curve, FittedModel
from workbench.domain.samples import Sample, Usage
from workbench.domain.sessions import ConfigurationOutcome, DescriptorText, Outcome, Plan


@dataclass(frozen=True)
class SessionCreated:
    campaign: Campaign
    descriptors: tuple[DescriptorText, ...]
    lab: str
    seed: int
    host: HostFacts
    tool_version: str


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
class RunFinished:
    outcome: Outcome
    samples: int
    invalid: int
    wall_s: float
    measured_s: float
    """Lab time: deployment, allocation, warm-up and windows."""
    breakpoints: tuple[Breakpoint, ...]
    note: str = ""


Fact = (
    SessionCreated
    | CampaignPlanned
    | RunStarted
    | TargetDeployed
    | ConfigurationStarted
    | PointAsked
    | SampleTaken
    | ModelFitted
    | ConfigurationFinished
    | RunPaused
    | RunContinued
    | StopRequested
    | Noted
    | RunFinished
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
        "queued", "deploying", "allocating", "warming_up", "measuring", "fitting", "paused"
    ]
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


Tick = UsageTick | Progress
