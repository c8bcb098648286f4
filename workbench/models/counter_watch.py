"""A KPI of a running function from what is counted of it: learned once, asked every second.

What it was not taught it does not answer: where counters lie outside of what was learned there is
a reason instead of a figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

from workbench.domain.errors import DataError
from workbench.models.base import Floats
from workbench.models.counter_contention import BEYOND, traffic_of
from workbench.models.counter_models import OwnCounterModel
from workbench.models.counter_rows import (
    CounterRows,
    DroppedFeature,
    least_above_0,
    without_idle_features,
)
from workbench.models.counter_scores import (
    FEWEST_GROUPS,
    CounterScore,
    group_reach,
    misses_of,
    out_of_company,
    out_of_group,
    score_of,
)
from workbench.models.estimator import seeded_subset

MOST_WATCHED = 2_000
"""Rows that are learned from, drawn evenly: distances are between each two of them."""
NEIGHBOURS = 10
"""Rows of other experiments whose misses say how far off a prediction among them is."""
INSIDE = 0.99
"""Share of held-out rows that count as inside of what was learned."""
LEAST_SPREAD = 0.02
"""Sd of a logarithm that is taken for 0: a counter that hardly varied would rule all others."""
OUTSIDE = "outside of what was learned"
RAISE_AFTER, AMONG, CLEAR_AFTER = 2, 3, 5
"""Looks that break the limit, among so many with an answer, before an alarm is raised; looks in a
row that hold it, before it is cleared. A neighbour that pauses spoils every other look."""
SURE = 0.8
"""Probability of a breach from which on a look counts towards an alarm, and below 0.5 towards its
end. A figure that is 25 % off would alarm of half of all windows that lie near their limit."""
_SURE_OF_HALF = float(stats.norm.ppf(SURE) / stats.norm.ppf(0.975))
"""Share of the interval's half width, in logs, by which a figure has to break a limit for that."""
FORGET_AFTER = 10
"""Looks in a row without an answer, after which an alarm is withdrawn."""


@dataclass(frozen=True)
class CounterLook:
    """What the counters of one look say.

    Attributes
    ----------
    value, low, high : of the KPI in its unit, with its 95 % interval; None where nothing is said.
    why : why nothing is said; empty where something is.
    apart : how far the counters are from what was learned, over how far held-out rows were; above
        1 they lie outside. None where one is missing.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""
    apart: float | None = None

    def held(self, holds: Callable[[float], bool], raised: bool = False) -> bool | None:
        """Whether a limit holds as far as an alarm of it goes; None where nothing is said.

        It is broken where that is `SURE`; while an alarm is `raised`, where the figure breaks it.
        """
        if self.value is None or self.low is None or self.high is None:
            return None
        if raised or holds(self.value):
            return holds(self.value)
        ends = (self.value * (end / self.value) ** _SURE_OF_HALF for end in (self.low, self.high))
        return any(holds(end) for end in ends)


@dataclass(frozen=True)
class AlarmRates:
    """How often a single look would have been wrong on experiments that were not seen.

    Attributes
    ----------
    rows, broken : held-out windows, and those whose KPI broke the limit.
    missed : of the broken, those not surely said to break it. `false` : of the others, those that
        are.
    silent : windows without an answer, which count in neither.
    """

    rows: int
    broken: int
    missed: int
    false: int
    silent: int


class CounterWatch:
    """Ours (`OwnCounterModel`) with an interval as wide as its neighbourhood is uncertain.

    A miss at a held-out row is divided by the mean miss of the nearest rows of other experiments
    (locally weighted conformal prediction: Lei et al., JASA 113, 2018); the reach of these shares
    is taken by experiment (`group_reach`). Distances are root mean squares over standardised logs
    of counters. A look is outside where the nearest learned row is further away than it was for
    `INSIDE` of the held-out rows.

    Raises
    ------
    DataError
        If there are fewer than four experiments, or no counter varies.
    """

    def __init__(self, rows: CounterRows, seed: int = 0) -> None:
        kept, self.dropped = _teaching(rows)
        if len(kept.y) > MOST_WATCHED:
            kept = kept.taken(np.sort(seeded_subset(len(kept.y), MOST_WATCHED, seed)))
        self.features, self.rows = kept.features, kept
        self._least = np.array([least_above_0(column) for column in kept.x.T])
        logs = self._logs(kept.x)
        self._centre = logs.mean(axis=0)
        self._spread = np.maximum(logs.std(axis=0), LEAST_SPREAD)
        self._places = (logs - self._centre) / self._spread
        self.held_out = out_of_group(kept, OwnCounterModel, seed)
        between = np.array([self._apart(p) for p in self._places])
        apart = np.where(kept.groups[:, None] == kept.groups, np.inf, between)
        self._nearest = apart.min(axis=1)
        self.limit = float(np.quantile(self._nearest, INSIDE))
        self.apart_sd = max(float(np.log(np.maximum(self._nearest, 1e-6)).std()), 0.1)
        misses = self._misses(between, seed)
        self._off = np.abs(misses)
        self._floor = max(0.25 * float(np.median(self._off)), 1e-6)
        scales = np.array([self._scale(row) for row in apart])
        shares = misses / scales
        self.reach = group_reach(shares, kept.groups, seed)
        # Misses of its own experiment are no part of a row's interval; models of others saw it.
        reaches = np.empty(len(kept.y))
        for group in np.unique(kept.groups):
            out = kept.groups == group
            reaches[out] = group_reach(shares[~out], kept.groups[~out], seed)
        half = reaches * scales
        band = self.held_out * np.exp(-half), self.held_out * np.exp(half)
        self._looks = [
            CounterLook(*figures) for figures in np.array([self.held_out, *band]).T.tolist()
        ]
        self.score: CounterScore = score_of("ours", kept.y, self.held_out, band)
        self.model = OwnCounterModel(seed).fit(kept.x, kept.y, kept.groups)
        self.chosen = self.model.chosen_

    def _misses(self, between: Floats, seed: int) -> Floats:
        """Of held-out experiments; of held-out competitors where those are worse, and the counters
        beside them are not outside of what the others teach."""
        kept = self.rows
        misses = misses_of(kept.y, self.held_out)
        said = out_of_company(kept, OwnCounterModel, seed)
        if kept.beside is None or np.isnan(said).all():
            return misses
        others = np.where(kept.beside[:, None] == kept.beside, np.inf, between).min(axis=1)
        told = np.isfinite(said) & (others <= self.limit)
        strange = np.where(told, misses_of(kept.y, np.where(told, said, kept.y)), 0.0)
        return np.where(np.abs(strange) > np.abs(misses), strange, misses)

    def look(self, counted: Mapping[str, float], missing: Mapping[str, str]) -> CounterLook:
        """What the KPI is where these counters are read, each per second.

        Parameters
        ----------
        missing : counters that could not be read, and why.
        """
        gone = [name for name in self.features if name not in counted]
        if gone:
            why = missing.get(gone[0], "it was not read")
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            return CounterLook(why=f"{gone[0]}{more} is missing: {why}")
        if why := self._idle(counted):
            return CounterLook(why=why)
        x = np.array([[counted[name] for name in self.features]])
        place = (self._logs(x)[0] - self._centre) / self._spread
        apart = self._apart(place)
        share = float(apart.min()) / max(self.limit, 1e-9)
        if not share <= 1.0:  # also where a figure is not finite
            return CounterLook(why=self._outside(x[0], place, int(apart.argmin())), apart=share)
        value = float(self.model.regressor_.predict(x)[0])
        half = self.reach * self._scale(apart)
        return CounterLook(
            value, value * float(np.exp(-half)), value * float(np.exp(half)), apart=share
        )

    def _idle(self, counted: Mapping[str, float]) -> str:
        """Why nothing is said of less traffic than was learned from; empty where there is enough.

        Logs are cut at the least figure, so that distances do not show it.
        """
        if (name := traffic_of(self.features)) is None:
            return ""
        learned = self.rows.x[:, self.features.index(name)]
        if counted[name] >= learned.min() * math.exp(-BEYOND):
            return ""
        return f"{OUTSIDE}: {name} is {counted[name]:.3g}, learned from {learned.min():.3g} on"

    def said(self, x: Floats) -> tuple[Floats, Floats]:
        """The KPI, and the half width of its interval in logs, each of shape (m,), wherever the
        counters lie: for who knows by other means what is outside of what was learned.

        Parameters
        ----------
        x : of shape (m, d), in the order of `features`.
        """
        places = (self._logs(x) - self._centre) / self._spread
        half = [self.reach * self._scale(self._apart(place)) for place in places]
        return self.model.predict(x), np.array(half)

    def rates(self, holds: Callable[[float], bool]) -> AlarmRates:
        """Misses and false alarms of single looks at held-out experiments."""
        silent = self._nearest > self.limit
        true = np.array([not holds(float(value)) for value in self.rows.y])
        said = np.array([not look.held(holds) for look in self._looks])
        return AlarmRates(
            len(true),
            int((true & ~silent).sum()),
            int((true & ~said & ~silent).sum()),
            int((~true & said & ~silent).sum()),
            int(silent.sum()),
        )

    def _outside(self, x: Floats, place: Floats, nearest: int) -> str:
        column = int(np.abs(place - self._places[nearest]).argmax())
        low, high = self.rows.x[:, column].min(), self.rows.x[:, column].max()
        name, value = self.features[column], x[column]
        told = f"{name} is {value:.3g}"
        if low <= value <= high:
            return f"{OUTSIDE}: no such mix of counters ({told})"
        return f"{OUTSIDE}: {told}, learned {low:.3g} to {high:.3g}"

    def _apart(self, place: Floats) -> Floats:
        """Distance of a place to every learned row, of shape (n,)."""
        return np.asarray(np.sqrt(np.square(self._places - place).mean(axis=1)))

    def _scale(self, apart: Floats) -> float:
        """How far off a prediction is among these rows, in logs; those at infinity are no part."""
        near = np.argpartition(apart, min(NEIGHBOURS, len(apart)) - 1)[:NEIGHBOURS]
        near = near[np.isfinite(apart[near])]
        return float(self._off[near].mean()) + self._floor

    def _logs(self, x: Floats) -> Floats:
        return np.asarray(np.log(np.maximum(x, self._least)))


def _teaching(rows: CounterRows) -> tuple[CounterRows, tuple[DroppedFeature, ...]]:
    kept, dropped = without_idle_features(rows) if len(rows.y) else (rows, ())
    if kept.group_count <= FEWEST_GROUPS or not kept.features:
        raise DataError(
            f"{kept.group_count} experiments with {len(kept.features)} counters that vary, where "
            f"{FEWEST_GROUPS + 1} and one are needed to say how sure a prediction is",
            remedy="Measure the function at more configurations, or in more passes (`repetitions`)",
        )
    return kept, dropped


@dataclass
class Alarm:
    """Raised by looks that break a limit, two of three; cleared by more that hold it, in a row.

    A look that says nothing does neither, and begins no row anew; `FORGET_AFTER` of them in a row
    withdraw an alarm, on which nothing rests any more.
    """

    raised: bool = False
    withdrawn: bool = False
    """The last change was that; nothing was seen to hold."""
    _held: list[bool] = field(default_factory=list, repr=False)
    """The last looks with an answer since the last change."""
    _silent: int = field(default=0, repr=False)

    def look(self, holds: bool | None) -> bool:
        """Take in whether the limit held, None for `?`; whether the alarm changed by it."""
        if holds is None:
            self._silent += 1
            if self._silent >= FORGET_AFTER:
                self._held = []  # what was seen before it is too long ago to count on
            changed = self.raised and self._silent >= FORGET_AFTER
        else:
            self._silent = 0
            self._held = [*self._held, holds][-CLEAR_AFTER:]
            if self.raised:
                changed = len(self._held) == CLEAR_AFTER and all(self._held)
            else:
                changed = self._held[-AMONG:].count(False) >= RAISE_AFTER
        if changed:
            self.withdrawn = holds is None
            self.raised, self._held, self._silent = not self.raised, [], 0
        return changed
