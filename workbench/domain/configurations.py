"""What a screen shows of one configuration: its samples, its curve, what is asked next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from workbench.domain.events import PointAsked
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Breakpoint, Curve
from workbench.domain.sample_review import SampleVerdict, as_measured
from workbench.domain.samples import Estimate, Sample, Usage

ENDED = ("converged", "max_samples", "skipped", "unusable")
"""States in which its sampling is over, however a run ends; one that a run left is sampled on."""
FEWEST_POINTS = 8
"""Of one configuration, however many there are."""


@dataclass(frozen=True)
class SamplePoint:
    """What a plot and a list need of a sample."""

    id: str
    wl: float
    repetition: int
    kpis: Mapping[str, Estimate]
    usage: Mapping[str, Usage]
    valid: bool
    reason: str
    labels: tuple[str, ...]
    throttled_share: float
    verdict: SampleVerdict = "open"
    """What somebody decided about it."""
    measured: str = ""
    """Why it was not valid before that; empty: it was."""

    def decided(self, verdict: SampleVerdict) -> SamplePoint:
        """The same with a decision in force."""
        reason = "rejected" if verdict == "rejected" else self.measured
        return replace(self, verdict=verdict, reason=reason, valid=not reason)

    @classmethod
    def of(cls, sample: Sample) -> SamplePoint:
        plain = as_measured(sample)
        return cls(
            sample.id,
            sample.point.wl,
            sample.point.repetition,
            sample.kpis,
            sample.usage,
            sample.valid,
            sample.reason,
            sample.labels,
            sample.throttled_share,
            "rejected" if sample.reason == "rejected" else "open",
            plain.reason or ("" if plain.valid else "unknown"),
        )


@dataclass
class ConfigurationView:
    """One configuration of one target: its samples, its curve, what is asked next."""

    target: str
    configuration: Configuration
    state: str = "planned"
    """`planned`, `sampling`, or its `ConfigurationOutcome`."""
    samples: list[SamplePoint] = field(default_factory=list)
    """In the order they were taken; of a very long session some are left out."""
    left_out: int = 0
    left_out_reasons: Mapping[str, int] = field(default_factory=dict)
    """Of those left out, the invalid ones by their reason."""
    curve: Curve | None = None
    breakpoints: tuple[Breakpoint, ...] = ()
    asked: PointAsked | None = None
    """The point being measured or to be measured next; None when nothing is asked."""
    note: str = ""

    @cached_property
    def key(self) -> str:
        return f"{self.target}/{self.configuration.key}"

    @property
    def ended(self) -> bool:
        """Whether its sampling is over."""
        return self.state in ENDED

    @property
    def taken(self) -> int:
        """Samples, those that are left out included."""
        return len(self.samples) + self.left_out

    @property
    def invalid(self) -> int:
        return sum(not s.valid for s in self.samples) + sum(self.left_out_reasons.values())

    def thin(self) -> int:
        """Leave out every other sample but the last, and none that is pinned; how many."""
        if len(self.samples) <= FEWEST_POINTS:
            return 0
        out = [sample for sample in self.samples[-2::-2] if sample.verdict != "pinned"]
        gone = set(map(id, out))
        self.samples = [sample for sample in self.samples if id(sample) not in gone]
        self.left_out += len(out)
        reasons = Counter(self.left_out_reasons)
        reasons.update(sample.reason for sample in out if not sample.valid)
        self.left_out_reasons = dict(reasons)  # a copy: snapshots share the one before
        return len(out)
