"""Search for one breakpoint: the load at which long-run loss passes a goal, to a stated width.

Every trial is read as evidence, not as a verdict alone: in overload the share that was carried
reads the capacity directly, with a variance that falls with the trial's seconds; below it a trial
only says that the capacity is higher. A posterior over capacity, noise, softness of the knee and
collapse beyond it chooses the load *and the seconds* of the next trial, and ends the search when
the interval is narrow enough. Information floor of such a search: (1.96 sd / half width)^2 seconds
at a relative sd per second.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from scipy.special import log_ndtr, ndtr

from workbench.domain.errors import DataError
from workbench.models.base import Floats

Outcome = Literal["found", "above range", "below range", "source limited", "unresolved"]

CONFIDENCE_SD = 2.4
"""Half width of the interval in posterior standard deviations: nominal 98 %, of which the devices
that fit the likelihood least leave 95 (tests/sampling/test_search.py)."""
SURE = 0.98
"""Probability at which the breakpoint is said to lie outside the range."""
NOISES = (0.001, 0.003, 0.01, 0.03, 0.08)
"""Relative standard deviations of the capacity over a second."""
KNEES = ((0.002, 0.0), (0.002, 1.0), (0.02, 1.0), (0.08, 1.0), (0.2, 1.0))
"""Log-normal widths of the knee, and how much of a second's noise softens it on top: with 1 the
capacity of every second decides its own loss, with 0 a trial meets its mean."""
COLLAPSES = (0.0, 0.5, 1.0)
"""Powers of the overload by which what is carried falls."""
LEAST_GOAL = 1e-4
"""A goal of no loss at all means this: rare bursts lose a little at any load."""
STRAY = 3e-4
"""Share that may be lost for reasons of its own (standard deviation)."""
TAIL = 5.0
"""Degrees of freedom of a trial's noise."""
UNSENT = 0.99
"""A source that sends less than this share of what is due is at its own limit."""
MOST_TRIALS = 200
_CELLS = 161
_COARSEST = 0.25
"""Posterior standard deviations to a cell of the grid; it is laid with a tenth."""
_EDGE, _AT_EDGES = 4, 1e-5
"""Cells at an end of the grid and the weight from which the posterior is said to reach it."""


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
    shortest_s : float
        Shortest trial.
    prior : (float, float), optional
        A neighbour's breakpoint, 1/s, and its relative standard deviation as a guess of this one.
        One tenth of the prior stays spread over the whole range.
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
        prior: tuple[float, float] | None = None,
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
        self.overhead_s, self.shortest_s, self.budget_s = overhead_s, shortest_s, budget_s
        self.prior = prior
        self.trials: list[Trial] = []
        self._reach = high
        """Largest load that the source has been seen to send, or the range's end."""
        combos = np.array(list(itertools.product(NOISES, range(len(KNEES)), COLLAPSES)))
        kind = combos[:, 1].astype(int)
        self._noise, self._fall = combos[:, :1], combos[:, 2:]
        soft, own = np.array(KNEES)[kind].T
        self._knee = np.hypot(soft, own * self._noise[:, 0])[:, None]
        # From the capacity to the load that crosses the goal, for each softness: in logs.
        self._offset = np.array([[_crossing(float(w), self.goal)] for w in self._knee[:, 0]])
        self._grid: Floats = np.empty(0)
        self._log_weight: Floats = np.empty((0, 0))
        self._weight: Floats = np.empty((0, 0))
        self._mean, self._sd = 0.0, math.inf
        self._update()

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
        self.trials.append(Trial(load, seconds, sent, ok))
        self._update()

    def ask(self) -> tuple[float, float] | None:
        """Load (1/s) and seconds of the next trial; None at the end. Asking changes nothing."""
        if self._outcome() is not None:
            return None
        if not self.trials:
            guess = self.prior[0] if self.prior else math.inf
            return min(max(guess, self.low), self.high), self.shortest_s
        loads = np.clip(self._candidates(), self.low, self._reach)
        gains = [self._gain(load) for load in loads]
        best = int(np.argmax([gain for gain, _ in gains]))
        return float(loads[best]), gains[best][1]

    @property
    def found(self) -> Found | None:
        """The answer, None while there is more to ask."""
        outcome = self._outcome()
        return None if outcome is None else self._answer(outcome)

    @property
    def spent_s(self) -> float:
        """Trial seconds, overhead included."""
        return sum(t.seconds + self.overhead_s for t in self.trials)

    # ------------------------------------------------------------------------- the posterior

    def _update(self) -> None:
        """Take the last trial into the weights over breakpoints b (columns) and combinations of
        nuisances (rows).

        The grid is laid anew, and all trials are read again on it, where the posterior has become
        too narrow for its cells or reaches its ends: a trial costs the same however many there
        were before it.
        """
        if self.trials and self._grid.size:
            self._log_weight = self._log_weight + self._log_likelihood(self.trials[-1], self._grid)
            self._weigh()
            over = self._weight.sum(axis=0)
            inside = over[:_EDGE].sum() + over[-_EDGE:].sum() < _AT_EDGES
            if inside and self._grid[1] - self._grid[0] <= _COARSEST * self._sd:
                return
        left, right = math.log(self.low) - 0.5, math.log(self.high) + 0.5
        for _ in range(4):
            self._grid = np.linspace(left, right, _CELLS)
            self._log_weight = self._log_prior(self._grid)[None, :] + np.zeros(
                (len(self._noise), 1)
            )
            for trial in self.trials:
                self._log_weight = self._log_weight + self._log_likelihood(trial, self._grid)
            self._weigh()
            left = max(left, self._mean - 8.0 * self._sd)
            right = min(right, self._mean + 8.0 * self._sd)

    def _weigh(self) -> None:
        """Weights that add to 1, mean and standard deviation of log b."""
        b = self._grid
        weight = np.exp(self._log_weight - self._log_weight.max())
        self._weight = weight / weight.sum()
        over = self._weight.sum(axis=0)
        self._mean = float(over @ b)
        self._sd = math.sqrt(max(float(over @ (b - self._mean) ** 2), (0.3 * (b[1] - b[0])) ** 2))

    def _log_prior(self, b: Floats) -> Floats:
        flat = 1.0 / (math.log(self.high / self.low) + 1.0)
        if self.prior is None:
            return np.full(len(b), math.log(flat))
        sd = self.prior[1]
        z = (b - math.log(self.prior[0])) / sd
        near = np.exp(-0.5 * z**2) / (sd * math.sqrt(2.0 * math.pi))
        return np.asarray(np.log(0.9 * near + 0.1 * flat))

    def _expected(self, load: float, b: Floats) -> tuple[Floats, Floats]:
        """Share lost and its derivative by log capacity, for (combinations, breakpoints)."""
        u = math.log(load) - (b[None, :] - self._offset)
        lost = _excess(u, self._knee)
        carried = (1.0 - lost) * np.exp(-self._fall * np.maximum(u, 0.0))
        return 1.0 - carried, carried * (ndtr(u / self._knee) + self._fall * (u > 0.0))

    def _scale(self, steep: Floats, lost: Floats, sent: float, seconds: float) -> Floats:
        count = np.maximum(lost * (1.0 - lost), 0.0) / max(sent, 1.0)
        return np.asarray(np.sqrt((self._noise * steep) ** 2 / seconds + count + STRAY**2))

    def _log_likelihood(self, trial: Trial, b: Floats) -> Floats:
        lost, steep = self._expected(trial.load, b)
        # Capacity is on trial, not its square: noise of a second reaches both ways of the knee.
        sudden = self._noise / math.sqrt(trial.seconds)
        u = math.log(trial.load) - (b[None, :] - self._offset)
        near = ndtr(u / np.hypot(self._knee, sudden))
        scale = self._scale(np.maximum(steep, near), lost, trial.sent, trial.seconds)
        z = (1.0 - trial.ok / trial.sent - lost) / scale
        return np.asarray(-0.5 * (TAIL + 1.0) * np.log1p(z**2 / TAIL) - np.log(scale))

    # -------------------------------------------------------------------------- next trial

    @property
    def _target_sd(self) -> float:
        return math.log1p(self.width) / (2.0 * CONFIDENCE_SD)

    def _candidates(self) -> Floats:
        reach = max(self._sd, self._target_sd)
        steps = np.array([-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0])
        return np.asarray(np.exp(self._mean + reach * steps))

    def _gain(self, load: float) -> tuple[float, float]:
        """Precision of the breakpoint gained per second, and the seconds of that trial."""
        lost, steep = self._expected(load, self._grid)
        mean = float(np.sum(self._weight * lost))
        spread = float(np.sum(self._weight * (lost - mean) ** 2))
        common = float(np.sum(self._weight * (lost - mean) * (self._grid[None, :] - self._mean)))
        noise = float(np.sum(self._weight * self._scale(steep, lost, load, 1.0) ** 2))
        variance = self._sd**2

        def left(seconds: float) -> float:
            return max(variance - common**2 / (spread + noise / seconds + 1e-12), 1e-3 * variance)

        seconds, longest = self.shortest_s, sum(t.seconds for t in self.trials) + self.overhead_s
        while left(seconds) > (0.9 * self._target_sd) ** 2 and 2.0 * seconds <= longest:
            seconds *= 2.0
        if left(seconds) < (0.9 * self._target_sd) ** 2 and seconds > self.shortest_s:
            seconds = max(0.75 * seconds, self.shortest_s)
        return (1.0 / left(seconds) - 1.0 / variance) / (seconds + self.overhead_s), seconds

    # ------------------------------------------------------------------------------ the end

    def _outcome(self) -> Outcome | None:
        if not self.trials:
            return None
        over = self._weight.sum(axis=0)
        top, bottom = math.log(self._reach), math.log(self.low)
        if float(over[self._grid > top].sum()) > SURE and self._is_good_at(self._reach):
            return "source limited" if self._reach < self.high else "above range"
        lowest = min(t.load for t in self.trials)
        if float(over[self._grid < bottom].sum()) > SURE and lowest <= self.low * 1.001:
            return "below range"
        if self._sd <= self._target_sd and self._is_seen():
            return "found"
        if sum(t.seconds for t in self.trials) >= self.budget_s or len(self.trials) >= MOST_TRIALS:
            return "unresolved"
        return None

    def _is_good_at(self, load: float) -> bool:
        return any(
            t.load >= 0.98 * load and t.ok >= (1.0 - self.goal) * t.sent for t in self.trials
        )

    def _is_seen(self) -> bool:
        """Two trials are near the interval: what only a far overload says may be wrong."""
        near = max(2.0 * math.log1p(self.width), 3.0 * self._sd)
        close = [t for t in self.trials if abs(math.log(t.load) - self._mean) <= near]
        return len(close) >= 2

    def _answer(self, outcome: Outcome) -> Found:
        half = 0.5 * math.log1p(self.width) if outcome == "found" else CONFIDENCE_SD * self._sd
        low, high = math.exp(self._mean - half), math.exp(self._mean + half)
        if outcome in ("above range", "source limited"):
            low, high = self._reach, math.inf
        elif outcome == "below range":
            low, high = 0.0, self.low
        return Found(outcome, low, high, sum(t.seconds for t in self.trials), len(self.trials))


def search_all(search: BreakpointSearch, trials: Sequence[Trial]) -> BreakpointSearch:
    """The search with stored trials told, in their order: a lost one is rebuilt."""
    for trial in trials:
        search.tell(trial.load, trial.seconds, trial.sent, trial.ok)
    return search


def _excess(u: Floats, width: Floats | float) -> Floats:
    """E[(1 - C'/load)+] with C' log-normal of `width` around C, u = log(load / C)."""
    return np.asarray(
        np.clip(
            ndtr(u / width) - np.exp(np.square(width) / 2.0 - u + log_ndtr(u / width - width)),
            0.0,
            1.0,
        )
    )


@cache
def _crossing(width: float, goal: float) -> float:
    """u at which the excess passes the goal."""
    left, right = -6.0 * width - 0.1, 6.0 * width + 2.0 * goal + 0.1
    for _ in range(60):
        middle = 0.5 * (left + right)
        if float(_excess(np.array([middle]), width)[0]) < goal:
            left = middle
        else:
            right = middle
    return 0.5 * (left + right)
