"""Why an operating point is as it is: causes, the evidence for each, rivals, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from workbench.domain.parameters import Configuration

BoundBy = Literal["quota", "cpu", "cpu wait", "memory", "disk", "peer or network"]


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
    """

    cause: str
    component: str
    strength: float
    sentence: str
    evidence: tuple[str, ...]
    remedy: str
    rival: str
    tells_apart: str


@dataclass(frozen=True)
class EvidenceRow:
    """One figure of one component, stand-alone beside chained.

    None: not collected, or this host has none (`note` says which).
    """

    component: str
    what: str
    unit: str
    alone: float | None
    chained: float | None
    note: str = ""


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
class Diagnosis:
    """One operating point of a target, explained.

    Attributes
    ----------
    sentence : the answer in one: the first verdict's, or that nothing stands out, or that nobody
        can tell and what would.
    measured_ms, alone_ms : mean response time, and the sum of the functions' own at the same
        carried rate; None where unknown.
    verdicts : the strongest first.
    agree, samples : in how many samples of the target the first verdict's cause is found.
    missing : observations that rules asked for and that are not there, with the reason.
    failed : rules that raised, with what they raised.
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
