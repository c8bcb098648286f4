"""Simulated devices for breakpoint search: the same black box for everybody (research/peers.md 4).

A trial offers a load for some seconds and counts what was sent and what came back. The truth is
the load at which the long-run share of what is lost crosses the goal, under the device's own noise;
`passing_half` is the answer to another question, that of MLRsearch: the load at which half of all
trials of some seconds lose no more than the goal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from science.families import Floats

Kind = Literal["hard knee", "soft knee", "collapse", "drift", "quota"]
KINDS: tuple[Kind, ...] = ("hard knee", "soft knee", "collapse", "drift", "quota")
Fault = Literal["", "generator cap", "sink cap", "stall"]
FAULTS: tuple[Fault, ...] = ("generator cap", "sink cap", "stall")

GOAL = 0.005
"""Share that may be lost in the long run."""
LOW, HIGH = 137.0, 91_000.0
"""The range that every search is given, in requests per second."""
CAPACITIES = (2_000.0, 40_000.0)
"""Drawn log-uniform between these, so that no grid meets them."""
SOFT = 0.08
"""Log standard deviation of a soft knee."""
PER_MINUTE = 0.01
"""Drift of the capacity, up or down."""
PERIOD_S, CARRIED = 0.1, 0.2
"""A quota's period, and the share of one period's work that may wait for the next."""
BURSTS_PER_S, BURST = 0.02, 5.0
PLAYED_TRIALS = 4001
"""Trials whose median is where half of them pass: their luck scatters it by 0.06 % at most."""


@dataclass(frozen=True)
class Noise:
    """Capacity of a second scatters by `sd`; bursts lose a few requests at any load."""

    name: str
    sd: float
    bursts: bool = False


NOISES = (Noise("none", 0.0), Noise("1 %", 0.01), Noise("3 % and bursts", 0.03, True))


@dataclass
class Device:
    """A black box with a clock of its own; every trial costs `overhead_s` before it.

    Attributes
    ----------
    trials, load_s, wall_s : what was spent so far.
    """

    kind: Kind
    noise: Noise
    capacity: float
    seed: int
    overhead_s: float = 0.0
    fault: Fault = ""
    trials: int = 0
    load_s: float = 0.0
    wall_s: float = 0.0
    _rng: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng([self.seed, KINDS.index(self.kind)])
        self._rising = 1.0 if self._rng.random() < 0.5 else -1.0
        self._stall_at = float(self._rng.uniform(2.0, 20.0))

    def trial(self, load: float, seconds: float) -> tuple[int, int]:
        """What was sent and what was answered."""
        self.trials += 1
        self.wall_s += self.overhead_s
        begin = self.load_s
        self.load_s += seconds
        offered = load
        if self.fault == "generator cap":
            offered = min(load, 0.7 * self.capacity)
        sent = offered * seconds
        answered = self._answered(offered, seconds)
        self.wall_s += seconds
        if self.noise.bursts:
            answered -= BURST * self._rng.poisson(BURSTS_PER_S * seconds)
        if self.fault == "stall" and begin <= self._stall_at < begin + seconds:
            answered -= offered * min(2.0, seconds)
        if self.fault == "sink cap":
            answered = min(answered, 0.8 * self.capacity * seconds)
        return round(sent), max(min(round(answered), round(sent)), 0)

    def _answered(self, load: float, seconds: float) -> float:
        if self.kind == "quota":
            count = max(round(seconds / PERIOD_S), 1)
            luck = self._rng.standard_normal(count)
            return _through_quota(load / self.capacity, self.noise.sd, luck) * load * seconds
        lengths = np.full(math.ceil(seconds), 1.0)
        lengths[-1] = seconds - (lengths.size - 1)
        luck = self._rng.standard_normal(lengths.size) / np.sqrt(lengths)
        x = np.full(lengths.size, load / self.capacity)
        if self.kind == "drift":
            # In a long trial too: each second meets the capacity of its own middle.
            at_s = self.wall_s + np.cumsum(lengths) - 0.5 * lengths
            x /= np.exp(self._rising * PER_MINUTE * at_s / 60.0)
        lost = _lost(self.kind, x, self.noise.sd, luck)
        return float(np.sum((1.0 - lost) * lengths) * load)

    @property
    def truth(self) -> float:
        """The load that the goal allows; of a device that drifts, the mean over the search."""
        ratio, slope = truth_ratio(self.kind, self.noise.sd)
        if self.noise.bursts:
            # What bursts lose is part of the goal (1 % of it at 2,000/s): so little that the
            # loss may be taken as straight there.
            ratio -= BURST * BURSTS_PER_S / self.capacity / slope
        return self.capacity * ratio * self._drifted

    def passing_half(self, seconds: float) -> float:
        """The load at which half of all trials of so many seconds pass, as `truth` otherwise."""
        bursting = self.capacity if self.noise.bursts else math.inf
        ratio = half_ratio(self.kind, self.noise.sd, seconds, bursting)
        return self.capacity * ratio * self._drifted

    @property
    def _drifted(self) -> float:
        """By which factor the capacity moved, the mean over the search."""
        if self.kind != "drift":
            return 1.0
        return math.exp(self._rising * PER_MINUTE * self.wall_s / 120.0)


def device(
    kind: Kind, noise: Noise, seed: int, overhead_s: float = 0.0, fault: Fault = ""
) -> Device:
    """A device whose capacity only its seed knows."""
    low, high = CAPACITIES
    capacity = low * (high / low) ** float(np.random.default_rng([seed, 7]).random())
    return Device(kind, noise, capacity, seed, overhead_s, fault)


def _lost(kind: Kind, x: Floats | float, sd: float, luck: Floats) -> Floats:
    """Shares that are lost at `x` times the nominal capacity, of shape (n,)."""
    factor = np.maximum(1.0 + sd * luck, 0.01) / x
    if kind == "soft knee":
        from science.families import excess

        return excess(-np.log(factor), SOFT) / 100.0
    carried = factor**2 if kind == "collapse" else factor
    return np.asarray(np.clip(1.0 - np.where(factor < 1.0, carried, 1.0), 0.0, 1.0), dtype=float)


def _through_quota(x: float, sd: float, luck: Floats) -> float:
    """Share that is answered: each period serves what it can, little waits for the next."""
    can = np.maximum(1.0 + sd * luck / math.sqrt(PERIOD_S), 0.0)
    waiting = served = 0.0
    for most in can:
        due = x + waiting
        done = min(due, most)
        waiting = min(due - done, CARRIED)
        served += done
    return float(min((served + waiting) / (x * can.size), 1.0))


@cache
def truth_ratio(kind: Kind, sd: float) -> tuple[float, float]:
    """Load over nominal capacity at which the long-run loss is the goal, and the slope of the loss
    there."""
    if kind == "quota":
        luck = np.random.default_rng(1).standard_normal(200_000)

        def lost(x: float) -> float:
            return 1.0 - _through_quota(x, sd, luck)

    else:
        nodes, weights = np.polynomial.hermite_e.hermegauss(201)
        weights = weights / weights.sum()

        def lost(x: float) -> float:
            return float(weights @ _lost(kind, x, sd, nodes))

    ratio = float(brentq(lambda x: lost(x) - GOAL, 0.5, 1.5, xtol=1e-5))
    return ratio, (lost(1.001 * ratio) - lost(0.999 * ratio)) / (0.002 * ratio)


@cache
def half_ratio(kind: Kind, sd: float, seconds: float, bursting: float) -> float:
    """Load over nominal capacity at which half of all trials pass, by playing `PLAYED_TRIALS`.

    With the same luck a higher load loses more, so that each trial has a load up to which it
    passes; half of them pass at the median of these.

    Parameters
    ----------
    bursting : float
        Nominal capacity (1/s) of a device with bursts; infinite for one without.
    """
    rng = np.random.default_rng(2)
    periods = round(seconds / PERIOD_S) if kind == "quota" else round(seconds)
    luck = rng.standard_normal((PLAYED_TRIALS, periods))
    if periods == 1:
        # Quantiles instead of draws: nothing is left to chance.
        luck[:, 0] = norm.ppf((np.arange(PLAYED_TRIALS) + 0.5) / PLAYED_TRIALS)
    bursts = BURST * rng.poisson(BURSTS_PER_S * seconds, PLAYED_TRIALS)
    low, high = np.full(PLAYED_TRIALS, 0.3), np.full(PLAYED_TRIALS, 2.0)
    for _ in range(24):
        x = np.sqrt(low * high)
        if kind == "quota":
            lost = 1.0 - _through_quotas(x, sd, luck)
        else:
            lost = _lost(kind, x[:, np.newaxis], sd, luck).mean(axis=1)
        passed = lost + bursts / (x * bursting * seconds) <= GOAL
        low, high = np.where(passed, x, low), np.where(passed, high, x)
    return float(np.median(np.sqrt(low * high)))


def _through_quotas(x: Floats, sd: float, luck: Floats) -> Floats:
    """`_through_quota` of trials at `x` of shape (n,) with luck of shape (n, periods)."""
    waiting, served = np.zeros(x.size), np.zeros(x.size)
    for column in luck.T:
        most = np.maximum(1.0 + sd * column / math.sqrt(PERIOD_S), 0.0)
        due = x + waiting
        done = np.minimum(due, most)
        waiting = np.minimum(due - done, CARRIED)
        served += done
    return np.asarray(np.minimum((served + waiting) / (x * luck.shape[1]), 1.0))
