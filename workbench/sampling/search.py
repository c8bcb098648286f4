"""Search for one breakpoint: the load at which long-run loss passes a goal, to a stated width.

Every trial is read as evidence, not as a verdict alone: in overload the share that was carried
reads the capacity directly, with a variance that falls with the trial's seconds; below it a trial
only says that the capacity is higher. A set of devices that the trials allow (`knees`) chooses the
load *and the seconds* of the next trial, and ends the search when nearly all of them break within
the width. Information floor of such a search: (1.96 sd / half width)^2 seconds at a relative sd
per second.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from workbench.domain.errors import DataError
from workbench.models.base import Floats
from workbench.sampling.knees import Knees

Outcome = Literal["found", "above range", "below range", "source limited", "unresolved"]

CONFIDENCE = 0.96
"""Share of the possible devices that must break within the width: the one beyond 95 is for devices
that no member of the family is like (docs/science.md says what is covered)."""
AGREEING = 3
"""Trials that must lie near the interval."""
SURE = 0.98
"""Share at which the breakpoint is said to lie outside the range."""
LEAST_GOAL = 1e-4
"""A goal of no loss at all means this: rare bursts lose a little at any load."""
UNSENT = 0.99
"""A source that sends less than this share of what is due is at its own limit."""
MOST_TRIALS = 200
SHARES = (1.0 / 12.0, 1.0 / 6.0, 1.0 / 3.0)
"""Seconds of the next trial as shares of what was spent: long searches are not cut into shreds, and
no trial decides alone."""
ENOUGH_SD = 2.1
"""Half widths in sd at which more precision is worth nothing: about `CONFIDENCE`."""
QUANTILES = (0.03, 0.2, 0.5, 0.8, 0.97)
OVERLOADS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3)
"""Loads that may be tried: at quantiles of the breakpoint, and over its middle, in logs."""


@dataclass(frozen=True)
class Trial:
    """Load (1/s), seconds, requests or packets sent and served."""

    load: float
    seconds: float
    sent: float
    ok: float


@dataclass(frozen=True)
class Found:
    """Where the breakpoint lies: a 95 % interval (1/s), of the width asked for where `found`."""

    outcome: Outcome
    low: float
    high: float
    seconds: float
    trials: int


class BreakpointSearch:
    """Ask for a trial, tell its counts, until `ask` has none.

    Parameters
    ----------
    low, high : float
        Range of the load, 1/s.
    width : float
        Relative width of the interval: (high - low) / low.
    goal : float
        Share of loss that the breakpoint stands for.
    overhead_s : float
        What a trial costs beyond its own seconds.
    shortest_s, longest_s : float
        Shortest and longest trial.
    prior : (float, float), optional
        A neighbour's breakpoint, 1/s, and its relative standard deviation as a guess of this one.
        One tenth of the prior stays spread over the whole range.
    alike : BreakpointSearch, optional
        A neighbour's search: how noisy it was, how soft and so on is expected here too.
    visits : bool
        Whether trials scatter by more than their seconds tell, as those of a lab do whose host has
        its luck with each of them: learned from how they differ.
    budget_s : float
        Trial seconds after which the search ends `unresolved`.

    Raises
    ------
    DataError
        If range, width or goal cannot be.
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        width: float = 0.05,
        goal: float = 0.005,
        overhead_s: float = 0.0,
        shortest_s: float = 1.0,
        longest_s: float = math.inf,
        prior: tuple[float, float] | None = None,
        alike: BreakpointSearch | None = None,
        visits: bool = False,
        budget_s: float = 1200.0,
    ) -> None:
        if not (0.0 < low < high and width > 0.0 and 0.0 <= goal < 0.5 and shortest_s > 0.0):
            raise DataError(
                f"range {low:g}-{high:g}, width {width:g}, goal {goal:g}, "
                f"shortest trial {shortest_s:g} s",
                where="breakpoint search",
                remedy="Give 0 < low < high, a width above 0, a goal from 0 to 0.5 and seconds",
            )
        self.low, self.high, self.width, self.goal = low, high, width, max(goal, LEAST_GOAL)
        self.overhead_s, self.budget_s = overhead_s, budget_s
        self.shortest_s, self.longest_s = shortest_s, longest_s
        self.prior = prior
        self.trials: list[Trial] = []
        self._lowest = low
        self._reach = high
        """Largest load that the source has been seen to send, or the range's end."""
        self._knees: Knees = Knees(
            math.log(low) - 0.5,
            math.log(high) + 0.5,
            self.goal,
            (math.log(prior[0]), prior[1]) if prior else None,
            alike._knees if alike else None,
            visits,
        )

    def tell(self, load: float, seconds: float, sent: float, ok: float) -> None:
        """Counts of a trial. Raises `DataError` if they cannot be."""
        if not (seconds > 0.0 and 0.0 <= ok <= sent and sent > 0.0):
            raise DataError(
                f"{ok:g} of {sent:g} sent in {seconds:g} s",
                where=f"trial at {load:g}/s",
                remedy="Count what was sent and what was served, in seconds above 0",
            )
        if sent < UNSENT * load * seconds:
            # The source's limit, not the function's: what it did send is the load of this trial.
            self._reach = min(self._reach, sent / seconds)
            load = sent / seconds
        at_s = self._middle_s(seconds)
        self.trials.append(Trial(load, seconds, sent, ok))
        self._knees.learn(math.log(load), seconds, at_s, sent, 1.0 - ok / sent)

    def bound(self, low: float, high: float) -> None:
        """From now on ask for loads between these only, 1/s, within the range: beyond is the
        source's own limit, or nothing valid can be measured."""
        self._reach = min(high, self.high)
        self.low = min(max(low, self._lowest), self._reach)

    def ask(self) -> tuple[float, float] | None:
        """Load (1/s) and seconds of the next trial; None at the end. Asking changes nothing."""
        if self._outcome() is not None:
            return None
        if not self.trials:
            guess = self.prior[0] if self.prior else math.inf
            return min(max(guess, self.low), self._reach), self.shortest_s
        places = self._knees.quantiles(QUANTILES, self._middle_s(self.shortest_s))
        loads = np.exp(np.append(places, places[len(places) // 2] + np.array(OVERLOADS)))
        loads = np.unique(np.clip(loads, self.low, self._reach))
        wanted = np.maximum(np.array(SHARES) * self.spent_s, self.shortest_s)
        seconds = np.unique(np.minimum(wanted, max(self.longest_s, self.shortest_s)))
        gains = self._gains(loads, seconds)
        row, column = np.unravel_index(int(np.argmax(gains)), gains.shape)
        return float(loads[row]), float(seconds[column])

    @property
    def found(self) -> Found | None:
        """The answer, None while there is more to ask."""
        outcome = self._outcome()
        return None if outcome is None else self._answer(outcome)

    @property
    def belief(self) -> tuple[float, float]:
        """Where 95 % of the possible breakpoints lie by now, 1/s."""
        low, high = self._knees.quantiles((0.025, 0.975), 0.5 * self.spent_s)
        return math.exp(low), math.exp(high)

    @property
    def spent_s(self) -> float:
        """Trial seconds, overhead included."""
        return sum(t.seconds + self.overhead_s for t in self.trials)

    def _middle_s(self, seconds: float) -> float:
        """Middle of the next trial on the search's clock."""
        return self.spent_s + self.overhead_s + 0.5 * seconds

    @property
    def _half(self) -> float:
        return 0.5 * math.log1p(self.width)

    # -------------------------------------------------------------------------- next trial

    def _gains(self, loads: Floats, seconds: Floats) -> Floats:
        """Precision of the breakpoint gained per second, shape (loads, seconds).

        The breakpoint of a device that drifts is that of the middle of the search, which a trial
        moves on: a trial long after the others says less of it.
        """
        weight, gains = self._knees.weight, np.empty((len(loads), len(seconds)))
        enough = (self._half / ENOUGH_SD) ** 2
        for column, length in enumerate(seconds):
            at_s = self._middle_s(length)
            place = self._knees.places(0.5 * (at_s + 0.5 * length))
            place = place - weight @ place
            variance = float(weight @ place**2)
            for row, load in enumerate(loads):
                lost, scale = self._knees.expected(math.log(load), length, at_s, load * length)
                lost = lost - weight @ lost
                told = float((weight @ (lost * place)) ** 2 / (weight @ (lost**2 + scale**2)))
                left = max(variance - told, min(enough, variance))
                gains[row, column] = (1.0 / left - 1.0 / variance) / (length + self.overhead_s)
        return gains

    # ------------------------------------------------------------------------------ the end

    def _outcome(self) -> Outcome | None:
        if not self.trials:
            return None
        weight, place = self._knees.weight, self._knees.places(0.5 * self.spent_s)
        above = float(weight @ (place > math.log(self._reach)))
        if above > SURE and self._is_good_at(self._reach):
            return "source limited" if self._reach < self.high else "above range"
        below = float(weight @ (place < math.log(self.low)))
        if below > SURE and min(t.load for t in self.trials) <= self.low * 1.001:
            return "below range"
        near = np.abs(place - weight @ place) <= self._half
        if float(weight @ near) >= CONFIDENCE and self._is_seen(float(weight @ place)):
            return "found"
        if sum(t.seconds for t in self.trials) >= self.budget_s or len(self.trials) >= MOST_TRIALS:
            return "unresolved"
        return None

    def _is_good_at(self, load: float) -> bool:
        return any(
            t.load >= 0.98 * load and t.ok >= (1.0 - self.goal) * t.sent for t in self.trials
        )

    def _is_seen(self, place: float) -> bool:
        """Enough trials are near the interval: few that agree may agree by luck, and a search that
        ends when its interval is narrow picks such luck (Chow, Robbins 1965)."""
        near = 4.0 * self._half
        return sum(abs(math.log(t.load) - place) <= near for t in self.trials) >= AGREEING

    def _answer(self, outcome: Outcome) -> Found:
        places = self._knees.places(0.5 * self.spent_s)
        middle = float(self._knees.weight @ places)
        low, high = math.exp(middle - self._half), math.exp(middle + self._half)
        if outcome == "unresolved":
            low, high = self.belief
        elif outcome in ("above range", "source limited"):
            low, high = self._reach, math.inf
        elif outcome == "below range":
            low, high = 0.0, self.low
        seconds = sum(t.seconds for t in self.trials)
        return Found(outcome, low, high, seconds, len(self.trials))
