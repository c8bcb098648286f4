"""What people decide about single samples, and points that they ask for besides the sampler's.

A decision is an event; the sample stays as it was measured. Wherever samples are read, the decision
in force is put on them (`in_force`): one that is rejected is not valid, and so is never fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from workbench.domain.observations import Observation
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.requests import Command, Done, Query, RunAccepted
from workbench.domain.samples import Finding, Sample, UsageSecond, Window

SampleVerdict = Literal["rejected", "pinned", "open"]
"""`pinned`: worth looking at again, always kept in sight; `open`: nothing, or taken back."""


@dataclass(frozen=True)
class SampleDecided:
    """Somebody judged a sample; the last decision on it is in force."""

    sample: str
    """Its id."""
    verdict: SampleVerdict
    by: str
    why: str = ""


@dataclass(frozen=True)
class PointRequested:
    """Somebody wants a point measured that the sampler did not ask for."""

    target: str
    configuration: Configuration
    wl: float
    repetition: int
    by: str

    @property
    def point(self) -> OperatingPoint:
        return OperatingPoint(self.target, self.configuration, self.wl, self.repetition)


@dataclass(frozen=True)
class BudgetExtended:
    """The running campaign has a longer budget; `budget_s` is the whole of it from now on."""

    budget_s: float
    by: str


@dataclass(frozen=True)
class SampleDetail:
    sample: Sample
    """As it counts."""
    windows: tuple[Window, ...]
    decision: SampleDecided | None
    decided_at: float | None
    """When, in seconds since the epoch."""
    observations: tuple[Observation, ...] = ()
    """None at all: nobody collected any."""
    series: tuple[UsageSecond, ...] = ()


@dataclass(frozen=True)
class DecideSample(Command[Done]):
    """Reject or pin a stored sample, or take that back. Reply: `Done`.

    The curve of its configuration is fitted anew.
    """

    session: str
    sample: str
    """Its id."""
    verdict: SampleVerdict
    why: str = ""
    by: str = ""


@dataclass(frozen=True)
class RequestPoint(Command[Done | RunAccepted]):
    """Measure one more point of a configuration, or one more repetition. Reply: `Done`.

    A campaign that runs measures it next; one that has ended is resumed for it (`RunAccepted`).
    """

    session: str
    target: str
    configuration: Configuration
    wl: float
    """In the range of the target's campaign; at one that was measured: one more repetition."""
    by: str = ""
    pace: float | None = None
    """Simulated lab only, where the campaign is resumed."""


@dataclass(frozen=True)
class ExtendBudget(Command[Done]):
    """Let a running campaign take longer. Reply: `Done`."""

    session: str
    more_s: float
    by: str = ""


@dataclass(frozen=True)
class GetSample(Query[SampleDetail]):
    """A stored sample with its windows. Reply: `SampleDetail`."""

    session: str
    sample: str
    """Its id."""


def as_measured(sample: Sample) -> Sample:
    """The sample without what anybody decided."""
    if sample.reason != "rejected":
        return sample
    findings = sample.findings[1:]
    return replace(sample, valid=not findings, findings=findings)


def in_force(sample: Sample, decisions: Mapping[str, SampleDecided]) -> Sample:
    """The sample as it counts: one that is rejected is not valid, and says who did that and why."""
    decision = decisions.get(sample.id)
    plain = as_measured(sample)
    if decision is None or decision.verdict != "rejected":
        return plain
    evidence = f"by {decision.by}" + (f": {decision.why}" if decision.why else "")
    finding = Finding("rejected", 0.0, 0.0, evidence)
    return replace(plain, valid=False, findings=(finding, *plain.findings))
