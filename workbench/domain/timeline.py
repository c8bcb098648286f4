"""Where a replay can go: from when to when a session lasted, and what was decided in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from workbench.domain.events import (
    CanaryEnded,
    Fact,
    ModelProposed,
    ModelRolledBack,
    ProposalDecided,
    RecommendationIssued,
    RecommendationVerified,
    RunFinished,
    RunPaused,
    RunStarted,
    StopRequested,
    TargetModelled,
    TrialsStarted,
)
from workbench.domain.parameters import Configuration

MarkKind = Literal[
    "begun",
    "paused",
    "stopped",
    "ended",
    "modelled",
    "canary",
    "proposed",
    "accepted",
    "rejected",
    "rolled_back",
    "recommended",
    "verified",
]


@dataclass(frozen=True)
class TimeMark:
    """Something that somebody decided, or the campaign came to."""

    seq: int
    at: float
    """Seconds since the epoch."""
    kind: MarkKind
    text: str
    """As the event log says it."""


@dataclass(frozen=True)
class TimeLine:
    started_at: float
    ended_at: float
    """Seconds since the epoch: of the first and of the last event."""
    last_seq: int
    samples: int
    marks: tuple[TimeMark, ...]
    """In the order of the events."""


@dataclass(frozen=True)
class GetTimeLine:
    """From when to when a session lasted, and its marks. Reply: `TimeLine`."""

    session: str


@dataclass(frozen=True)
class FindMoment:
    """The event at a place that a user names; exactly one is given. Reply: `Moment`.

    Attributes
    ----------
    at : seconds since the epoch: the last event that happened until then.
    sample_after, sample_before : an event: the next sample after it, the last one before it.
    sample : the n-th sample of the session, counted from 1.
    target, configuration : its first sample; what is asked just before.
    """

    session: str
    at: float | None = None
    sample_after: int | None = None
    sample_before: int | None = None
    sample: int | None = None
    target: str | None = None
    configuration: Configuration | None = None


@dataclass(frozen=True)
class Moment:
    seq: int
    """0: before everything."""
    at: float


TimeLineQuery = GetTimeLine | FindMoment
MARKED: dict[type, MarkKind] = {
    RunStarted: "begun",
    TrialsStarted: "begun",
    RunPaused: "paused",
    StopRequested: "stopped",
    RunFinished: "ended",
    TargetModelled: "modelled",
    CanaryEnded: "canary",
    ModelProposed: "proposed",
    ModelRolledBack: "rolled_back",
    RecommendationIssued: "recommended",
    RecommendationVerified: "verified",
}


def mark_of(fact: Fact) -> MarkKind | None:
    """What kind of mark a fact is; None for the many that are not marked."""
    if isinstance(fact, ProposalDecided):
        return "accepted" if fact.decision.accepted else "rejected"
    return MARKED.get(type(fact))


MARKED_EVENTS = tuple(kind.__name__ for kind in (*MARKED, ProposalDecided))
"""As the store calls them."""
