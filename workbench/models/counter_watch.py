"""A KPI of a running function from what is counted of it: learned once, asked every second.

What it was not taught it does not answer: where counters lie outside of what was learned there is
a reason instead of a figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import stats

from workbench.domain.errors import DataError
from workbench.domain.parameters import Sla
from workbench.models.base import Floats
from workbench.models.counter_contention import AMONG
from workbench.models.counter_distance import LearnedPlaces, held_out_places
from workbench.models.counter_models import OwnCounterModel
from workbench.models.counter_rows import CounterRows, DroppedFeature, without_idle_features
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
OUTSIDE = "outside of what was learned"
RAISE_AFTER, CLEAR_AFTER = 2, 5
"""Looks that break the limit, among three with an answer (`AMONG`), before an alarm is raised;
looks in a row that hold it, before it is cleared. A neighbour that pauses spoils every other look.
"""
SURE = 0.8
"""Probability of a breach from which on a look counts towards an alarm, and below 0.5 towards its
end. A figure that is 25 % off would alarm of half of all windows that lie near their limit."""
_SDS_OF_HALF = float(stats.norm.ppf(0.975))
"""Half the width of an interval, in standard deviations."""
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

    def breach(self, sla: Sla) -> float | None:
        """Probability that the KPI breaks a limit, as far as the interval tells, in whose logs the
        KPI is taken for normal; above 0.5 where the figure itself does. None where nothing is said.
        """
        if self.value is None or self.low is None or self.high is None:
            return None
        if not 0.0 < self.low < self.high or sla.limit <= 0.0:
            return float(not sla.holds(self.value))
        sd = math.log(self.high / self.low) / 2.0 / _SDS_OF_HALF
        far = abs(math.log(self.value / sla.limit)) / sd
        return float(stats.norm.cdf(-far if sla.holds(self.value) else far))

    def held(self, sla: Sla, raised: bool = False) -> bool | None:
        """Whether a limit holds as far as an alarm of it goes; None where nothing is said.

        It is broken where that is `SURE`; while an alarm is `raised`, where the figure breaks it.
        """
        breach = self.breach(sla)
        if breach is None or self.value is None:
            return None
        return sla.holds(self.value) if raised else breach < SURE


@dataclass(frozen=True)
class AlarmRates:
    """How often a single look would have been wrong on experiments that were not seen.

    Attributes
    ----------
    rows, silent : held-out windows, and those outside of what was learned without their experiment.
    strayed : windows so far off that a function which stayed there would be told to drift.
    broken : of those that are not silent, windows whose KPI broke the limit; 0 without one.
    missed : of the broken, those not surely said to break it. `false` : of the others, those that
        are.
    """

    rows: int
    silent: int
    strayed: int
    broken: int = 0
    missed: int = 0
    false: int = 0


class CounterWatch:
    """Ours (`OwnCounterModel`) with an interval as wide as its neighbourhood is uncertain.

    A miss at a held-out row is divided by the mean miss of the nearest rows of other experiments
    (locally weighted conformal prediction: Lei et al., JASA 113, 2018); the reach of these shares
    is taken by experiment (`group_reach`). A look is outside where the nearest learned row is
    further away than it was for 99 % of the held-out rows (`LearnedPlaces`).

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
        self.learned = LearnedPlaces(kept)
        self.held_out = out_of_group(kept, OwnCounterModel, seed)
        misses = self._misses(seed)
        self._off = np.abs(misses)
        self._floor = max(0.25 * float(np.median(self._off)), 1e-6)
        scales = np.array([self._scale(row) for row in self.learned.between(kept.groups)])
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

    def _misses(self, seed: int) -> Floats:
        """Of held-out experiments; of held-out competitors where those are worse, and the counters
        beside them are not outside of what the others teach."""
        kept = self.rows
        misses = misses_of(kept.y, self.held_out)
        said = out_of_company(kept, OwnCounterModel, seed)
        if kept.beside is None or np.isnan(said).all():
            return misses
        others = self.learned.between(kept.beside).min(axis=1)
        told = np.isfinite(said) & (others <= self.learned.limit)
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
        apart = self.learned.apart(x)[0]
        share = float(apart.min()) / max(self.learned.limit, 1e-9)
        if share > 1.0:  # also where a figure is not finite
            return CounterLook(why=self._outside(x[0], int(apart.argmin())), apart=share)
        if more := self.learned.contention.why(x[0]):
            return CounterLook(why=f"{OUTSIDE}: {more}", apart=share)
        value = float(self.model.regressor_.predict(x)[0])
        half = self.reach * self._scale(apart)
        return CounterLook(
            value, value * float(np.exp(-half)), value * float(np.exp(half)), apart=share
        )

    def _idle(self, counted: Mapping[str, float]) -> str:
        """Why nothing is said of less traffic than was learned from; empty where it is enough."""
        name = self.learned.traffic
        if name is None or counted[name] >= self.learned.idle_below:
            return ""
        least = self.rows.x[:, self.features.index(name)].min()
        return f"{OUTSIDE}: {name} is {counted[name]:.3g}, learned from {least:.3g} on"

    def said(self, x: Floats) -> tuple[Floats, Floats]:
        """The KPI, and the half width of its interval in logs, each of shape (m,), wherever the
        counters lie: for who knows by other means what is outside of what was learned.

        Parameters
        ----------
        x : of shape (m, d), in the order of `features`.
        """
        half = [self.reach * self._scale(apart) for apart in self.learned.apart(x)]
        return self.model.predict(x), np.array(half)

    def rates(self, sla: Sla | None, allowance: float) -> AlarmRates:
        """How often single looks would have been wrong at held-out experiments.

        Parameters
        ----------
        allowance : standard deviations that a test of drift lets a mean be off.
        """
        silent, strayed = held_out_places(self.rows)
        found = AlarmRates(len(silent), int(silent.sum()), int((strayed > allowance).sum()))
        if sla is None:
            return found
        true = np.array([not sla.holds(float(value)) for value in self.rows.y])
        said = np.array([not look.held(sla) for look in self._looks])
        return replace(
            found,
            broken=int((true & ~silent).sum()),
            missed=int((true & ~said & ~silent).sum()),
            false=int((~true & said & ~silent).sum()),
        )

    def strayed(self, look: CounterLook) -> float | None:
        """`LearnedPlaces.strayed` of a look; None where a counter is missing."""
        return None if look.apart is None else self.learned.strayed(look.apart * self.learned.limit)

    def _outside(self, x: Floats, nearest: int) -> str:
        far = np.abs(self.learned.of(x[None])[0] - self.learned.places[nearest])
        column = int(np.nan_to_num(far, nan=np.inf).argmax())
        low, high = self.rows.x[:, column].min(), self.rows.x[:, column].max()
        name, value = self.features[column], x[column]
        told = f"{name} is {value:.3g}"
        if low <= value <= high:
            return f"{OUTSIDE}: no such mix of counters ({told})"
        return f"{OUTSIDE}: {told}, learned {low:.3g} to {high:.3g}"

    def _scale(self, apart: Floats) -> float:
        """How far off a prediction is among these rows, in logs; those at infinity are no part."""
        near = np.argpartition(apart, min(NEIGHBOURS, len(apart)) - 1)[:NEIGHBOURS]
        near = near[np.isfinite(apart[near])]
        return float(self._off[near].mean()) + self._floor


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
