"""What was measured after the campaign: how the events of trials fold into a session's view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from workbench.domain import canaries
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.configurations import SamplePoint
from workbench.domain.counts import counted
from workbench.domain.event_log import Line, because, by_whom
from workbench.domain.events import TrialsFinished, TrialsStarted
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import Configuration
from workbench.domain.samples import TrialPurpose
from workbench.domain.sessions import TrialsOutcome
from workbench.domain.topology import VnfTemplate

REPEATS = 5
"""Samples at most of one deployment that is tried, if they say on which side of a limit it is."""


@dataclass(frozen=True)
class TrialPoint:
    """A sample of a trial, with the place that a sample of a configuration has by itself."""

    target: str
    configuration: Configuration
    sample: SamplePoint


@dataclass
class TrialsView:
    """Points that somebody had measured after the campaign, one after the other."""

    purpose: TrialPurpose
    by: str
    at: float
    """When they began, in seconds since the epoch."""
    budget_s: float | None = None
    plans: tuple[TargetPlan, ...] = ()
    """Targets and allocations that the campaign does not have."""
    templates: tuple[VnfTemplate, ...] = ()
    samples: list[TrialPoint] = field(default_factory=list)
    lab_s: float = 0.0
    outcome: TrialsOutcome = "running"
    note: str = ""

    @property
    def invalid(self) -> int:
        return sum(not taken.sample.valid for taken in self.samples)


class _View(Protocol):
    """What of a session's view is folded and read here."""

    campaign: Campaign | None
    host: HostFacts | None
    lab_s: float
    besides_s: float
    deployed_s: float
    trials: list[TrialsView]
    canaries: list[canaries.CanaryView]

    @property
    def samples_taken(self) -> int: ...
    @property
    def trials_s(self) -> float: ...


def usual_samples(view: _View) -> int:
    """Samples that an allocation which is tried usually takes: as many as are worth what they cost,
    where they say on which side of a limit it is (`verification_steps.worth_repeating`)."""
    each_s = sample_s(view)
    if each_s is None:
        return 1
    return next((n for n in range(1, REPEATS, 2) if n * each_s >= view.deployed_s), REPEATS)


def usual_s(view: _View) -> float | None:
    """Lab seconds of one more allocation that is tried, deployment and samples: what the last one
    took, else as session and rule have it; None where nothing was measured."""
    last = next((t for t in reversed(view.trials) if t.purpose == "verification" and t.lab_s), None)
    if last is not None:
        return last.lab_s
    each_s = sample_s(view)
    return None if each_s is None else view.deployed_s + usual_samples(view) * each_s


def sample_s(view: _View) -> float | None:
    """Lab seconds of a sample, as the campaign's took; None where it has none."""
    spent_s = view.lab_s - view.trials_s - view.besides_s
    return spent_s / view.samples_taken if view.samples_taken and spent_s > 0.0 else None


def under_way(trials: Sequence[TrialsView]) -> TrialsView | None:
    """The trials that are under way."""
    return next((t for t in trials[-1:] if t.outcome == "running"), None)


def cut_off(trials: Sequence[TrialsView]) -> None:
    """Trials without an end: their engine died."""
    if (open_trials := under_way(trials)) is not None:
        open_trials.outcome = "interrupted"


def fold(view: _View, fact: TrialsStarted | TrialsFinished, at: float) -> Line:
    """Bring a view up to date; what the event log says of it."""
    match fact:
        case TrialsStarted():
            cut_off(view.trials)
            if fact.purpose != "canary":
                canaries.cut_off(view.canaries)
            view.trials.append(
                TrialsView(fact.purpose, fact.by, at, fact.budget_s, fact.plans, fact.templates)
            )
            if view.host is not None:
                digests = {**fact.image_digests, **view.host.image_digests}
                view.host = replace(view.host, image_digests=digests)
            return "info", f"{fact.purpose} started{by_whom(fact.by)}", ""
        case TrialsFinished():
            if (trials := under_way(view.trials)) is not None:
                trials.outcome, trials.note = fact.outcome, fact.note
                view.lab_s += max(0.0, fact.lab_s - trials.lab_s)
                trials.lab_s = max(trials.lab_s, fact.lab_s)
            level = "error" if fact.outcome == "failed" else "info"
            text = f"{trials.purpose if trials else 'trials'} {fact.outcome}: "
            text += f"{counted(fact.samples, 'sample')}, {fact.invalid} invalid"
            return level, text + because(fact.note), ""
