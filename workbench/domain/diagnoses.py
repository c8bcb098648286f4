"""Why an operating point is as it is: causes, the evidence for each, rivals, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.domain.parameters import Configuration

BoundBy = Literal["quota", "cpu", "cpu wait", "memory", "disk", "peer or network"]


@dataclass(frozen=True)
class TrialRecord:
    """How often a cause was right where it was named first, in trials whose cause was known.

    Attributes
    ----------
    right, named : trials of `make bench-why`.
    low, high : 95 % interval of the share (Clopper-Pearson).
    """

    right: int
    named: int
    low: float
    high: float


@dataclass(frozen=True)
class Verdict:
    """One cause that the evidence speaks for.

    Attributes
    ----------
    component : where it acts: a function, `source`, `sink`, `host`.
    strength : 0-1, the share that it accounts for of what a request takes, or of the window, as the
        rule says; no probability.
    sentence : the cause with its figures.
    evidence : what it rests on, a sentence each.
    remedy : what to do.
    rival : the explanation that would look alike, and `tells_apart` what decides between them.
    trials : how often it was right; None: no trial has named it.
    """

    cause: str
    component: str
    strength: float
    sentence: str
    evidence: tuple[str, ...]
    remedy: str
    rival: str
    tells_apart: str
    trials: TrialRecord | None = None


@dataclass(frozen=True)
class EvidenceRow:
    """One figure of one component, stand-alone beside chained.

    None: not collected, or this host has none (`note` says which).

    Attributes
    ----------
    alone_by_load, chained_by_load : carried rate (1/s) and the figure there, by rising rate: of the
        configuration's other samples and of those that it is held against.
    sigmas : standard deviations of its stand-alone samples by which it is off their mean; None
        where there are fewer than three of them (`repetitions`); 999 at most.
    note : why it is null, or what an interquartile filter left out of it.
    """

    component: str
    what: str
    unit: str
    alone: float | None
    chained: float | None
    note: str = ""
    alone_by_load: tuple[tuple[float, float], ...] = ()
    chained_by_load: tuple[tuple[float, float], ...] = ()
    sigmas: float | None = None
    repetitions: int = 0


@dataclass(frozen=True)
class Bound:
    """What a function's time goes to at an operating point, as shares of the mean response time.

    `by` is the resource that limits, with the share that says so (USE and TSA methods, Gregg).
    """

    component: str
    by: BoundBy
    share: float
    ran: float
    """Computing, as a share of the mean response time."""
    waited: float | None
    """Waiting for CPU; None where it was not collected."""
    throttled: float
    """Share of quota periods in which it stood still."""


@dataclass(frozen=True)
class Suspect:
    """A configuration that alone moves the line through all of a target's at about the same load.

    Attributes
    ----------
    mean_distance : Cook's distance, the mean over all features.
    beyond : features in which it is over 4/n, the largest first.
    """

    configuration: Configuration
    mean_distance: float
    beyond: tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """One more sample, of a point that the campaign has, that would tell a cause from its rival.

    Attributes
    ----------
    what : the point, without its load.
    tells : what its result decides, as a sentence's end.
    """

    target: str
    configuration: Configuration
    wl: float
    what: str
    tells: str


@dataclass(frozen=True)
class Diagnosis:
    """One operating point of a target, explained.

    Attributes
    ----------
    sentence : the answer in one: the first verdict's, or that nothing stands out, or that nobody
        can tell and what would.
    measured_ms, alone_ms : mean response time, and the sum of the functions' own at the same
        carried rate and allocation; None where unknown.
    verdicts : the strongest first.
    agree, samples : in how many samples of the target the first verdict's cause is found.
    missing : observations that rules asked for and that are not there, with the reason.
    failed : rules that raised, with what they raised.
    suspects : of the target's configurations, the most influential first; `suspects_note` says of
        how many, or why none is named.
    experiments : what to measure to tell, the one that tells most first.
    """

    target: str
    configuration: Configuration
    wl: float
    sample: str
    sentence: str
    measured_ms: float | None
    alone_ms: float | None
    verdicts: tuple[Verdict, ...]
    rows: tuple[EvidenceRow, ...]
    bounds: tuple[Bound, ...]
    agree: int = 0
    samples: int = 1
    missing: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    suspects: tuple[Suspect, ...] = ()
    suspects_note: str = ""
    experiments: tuple[Experiment, ...] = ()

    @property
    def answered(self) -> bool:
        """Whether the sentence is the first verdict's."""
        first = self.verdicts[0].sentence if self.verdicts else ""
        return bool(first) and self.sentence[1:] == first[1:]

    @property
    def departure(self) -> float | None:
        """How many times as long as its functions alone."""
        if self.measured_ms is None or not self.alone_ms:
            return None
        return self.measured_ms / self.alone_ms
