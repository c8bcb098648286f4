"""Where a replay can go: from when to when a session lasted, and what was decided in between."""

from __future__ import annotations

from bisect import bisect_right
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
from workbench.domain.requests import Query

LONGEST_GAP_S = 3.0
"""What nobody wants to wait for in a replay, such as the night between a run and its resumption."""

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
    played: tuple[tuple[float, float], ...] = ()
    """Times (seconds since the epoch) and after how many seconds a replay comes there, which cuts
    gaps to `LONGEST_GAP_S`; both ascend, from the first event to the last. In between it is about
    even. Empty: nothing was cut."""

    def share_at(self, at: float) -> float:
        """How much of the replay (0 to 1) has been played at a time (seconds since the epoch)."""
        knots = self._knots
        after = _after([time for time, _ in knots], at)
        (before_at, before_s), (after_at, after_s) = knots[after - 1], knots[after]
        part = (at - before_at) / (after_at - before_at) if after_at > before_at else 1.0
        played_s = before_s + min(1.0, max(0.0, part)) * (after_s - before_s)
        whole_s = knots[-1][1]
        return played_s / whole_s if whole_s > 0 else 0.0

    def at_share(self, share: float) -> float:
        """At what time (seconds since the epoch) a share (0 to 1) of the replay has been played."""
        knots = self._knots
        wanted_s = share * knots[-1][1]
        after = _after([played_s for _, played_s in knots], wanted_s)
        (before_at, before_s), (after_at, after_s) = knots[after - 1], knots[after]
        part = (wanted_s - before_s) / (after_s - before_s) if after_s > before_s else 1.0
        return before_at + min(1.0, max(0.0, part)) * (after_at - before_at)

    @property
    def _knots(self) -> tuple[tuple[float, float], ...]:
        if len(self.played) > 1:
            return self.played
        return ((self.started_at, 0.0), (self.ended_at, self.ended_at - self.started_at))


def _after(values: list[float], value: float) -> int:
    """The end of the piece that holds a value: 1 to the last."""
    return min(len(values) - 1, max(1, bisect_right(values, value)))


@dataclass(frozen=True)
class Moment:
    seq: int
    """0: before everything."""
    at: float


@dataclass(frozen=True)
class GetTimeLine(Query[TimeLine]):
    """From when to when a session lasted, and its marks. Reply: `TimeLine`."""

    session: str


@dataclass(frozen=True)
class FindMoment(Query[Moment]):
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
