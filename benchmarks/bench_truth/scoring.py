"""How good intervals are: coverage, width and interval score over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from bench_truth.families import SCORED, Family
from bench_truth.long_runs import TrueBreakpoint
from bench_truth.playing import conclude
from bench_truth.stored import Seed
from bench_truth.truths import Known
from workbench.domain.profiles import Breakpoint, BreakpointRule

ALPHA = 0.05
"""Intervals are of 95 %."""
CERTAIN = 1e-4
"""A difference that chance makes less often than that is one."""
PUBLISHED = Path(__file__).parent.parent / "results" / "coverage.json"
"""`Counts` of the last full run."""


@dataclass(frozen=True)
class Outcome:
    """What one seed concluded on one configuration by one rule, and what is true."""

    family: str
    rule: BreakpointRule
    seed: int
    truth: TrueBreakpoint
    found: Breakpoint
    log_range: float
    """Of the primary workload: the width of knowing nothing."""

    @property
    def scored(self) -> bool:
        """There is a breakpoint, and an interval was stated."""
        return self.truth.wl is not None and self.found.state == "found"

    @property
    def covers(self) -> bool:
        wl, low, high = self.truth.wl, self.found.low, self.found.high
        return wl is not None and low is not None and high is not None and low <= wl <= high

    @property
    def error(self) -> float:
        return abs(math.log(_known(self.found.wl) / _known(self.truth.wl)))

    @property
    def width(self) -> float:
        """Of the interval, relative to the breakpoint found."""
        found = self.found
        return (_known(found.high) - _known(found.low)) / _known(found.wl)

    @property
    def interval_score(self) -> float:
        """Gneiting & Raftery 2007, equation 43, in logs; the range where nothing was stated."""
        if not self.scored:
            return self.log_range
        bounds = self.found.low, self.found.high, self.truth.wl
        low, high, wl = (math.log(_known(bound)) for bound in bounds)
        return high - low + 2 / ALPHA * (max(low - wl, 0.0) + max(wl - high, 0.0))


def _known(wl: float | None) -> float:
    """A load of a breakpoint that was found."""
    assert wl is not None
    return wl


def outcomes(family: Family, seeds: Iterable[Seed], known: Known) -> list[Outcome]:
    """All rules on all configurations of all seeds."""
    campaign = family.campaign()
    (plan,) = campaign.targets
    log_range = math.log(plan.primary.high / plan.primary.low)
    return [
        Outcome(
            family.name,
            answer.rule,
            stored.seed,
            known.of(family, stored.seed)[configuration.key][answer.rule],
            answer,
            log_range,
        )
        for stored in seeds
        for configuration, answers in conclude(campaign, plan, stored.samples).items()
        for answer in answers
        if answer.rule in SCORED
    ]


@dataclass(frozen=True)
class Cell:
    """Outcomes of a rule in a family where there is a breakpoint, or of a rule pooled."""

    stated: int
    """Intervals."""
    of: int
    """Breakpoints that there are."""
    covered: int
    error: float
    width: float
    score: float

    @property
    def coverage(self) -> float:
        return self.covered / self.stated if self.stated else math.nan

    @property
    def confidence(self) -> tuple[float, float]:
        """99 % interval of the coverage (Clopper & Pearson 1934)."""
        return binomial(self.covered, self.stated)


def cell(chosen: Sequence[Outcome]) -> Cell | None:
    """None where there is no breakpoint in any seed."""
    existing = [o for o in chosen if o.truth.wl is not None]
    if not existing:
        return None
    stated = [o for o in existing if o.scored]
    return Cell(
        stated=len(stated),
        of=len(existing),
        covered=sum(o.covers for o in stated),
        error=median([o.error for o in stated] or [math.nan]),
        width=median([o.width for o in stated] or [math.nan]),
        score=sum(o.interval_score for o in existing) / len(existing),
    )


def binomial(hits: int, trials: int, level: float = 0.99) -> tuple[float, float]:
    """Exact interval of a probability."""
    from scipy.stats import beta

    tail = (1 - level) / 2
    low = float(beta.ppf(tail, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, trials - hits)) if hits < trials else 1.0
    return low, high


class Counts(msgspec.Struct, frozen=True):
    """How often a rule was right in a family: what a shorter run is held against.

    Attributes
    ----------
    existing, stated, covered : breakpoints that there are, intervals stated for them, and those
        that hold the truth.
    absent, right : configurations without a breakpoint, and those of which that was said.
    """

    existing: int
    stated: int
    covered: int
    absent: int
    right: int


def counts(found: Sequence[Outcome]) -> dict[str, dict[BreakpointRule, Counts]]:
    """By family and rule."""
    by_cell: dict[str, dict[BreakpointRule, list[Outcome]]] = {}
    for outcome in found:
        by_cell.setdefault(outcome.family, {}).setdefault(outcome.rule, []).append(outcome)
    return {
        family: {rule: _counts(own) for rule, own in by_rule.items()}
        for family, by_rule in by_cell.items()
    }


def _counts(own: Sequence[Outcome]) -> Counts:
    stated = [o for o in own if o.scored]
    absent = [o for o in own if o.truth.wl is None]
    return Counts(
        existing=len(own) - len(absent),
        stated=len(stated),
        covered=sum(o.covers for o in stated),
        absent=len(absent),
        right=sum(o.found.state == o.truth.state for o in absent),
    )


def pooled(
    by_family: Mapping[str, Mapping[BreakpointRule, Counts]], rule: BreakpointRule
) -> Counts:
    """Of a rule, over all families."""
    own = [by_rule[rule] for by_rule in by_family.values() if rule in by_rule]
    return Counts(*(sum(getattr(one, name) for one in own) for name in Counts.__struct_fields__))


def agree(hits: int, trials: int, other_hits: int, other_trials: int) -> bool:
    """Whether two shares may be the same (Fisher's exact test, at one in ten thousand)."""
    from scipy.stats import fisher_exact

    table = [[hits, trials - hits], [other_hits, other_trials - other_hits]]
    return float(fisher_exact(table).pvalue) > CERTAIN
