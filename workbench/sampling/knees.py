"""What a device may be, given its trials: a set of possible knees, each with what it would lose.

A trial at a load lambda meets, second by second, a capacity C that is log-normal. Of what is sent
E[(1 - (C / lambda)^a)+] is lost: a is 1 where overload carries all it can and more where it
collapses. That has a closed form, and its variance nearly one, so that a set of some hundred
possible devices is read against a trial in a fraction of a millisecond. The set follows the
posterior by tempering (Del Moral, Doucet, Jasra 2006): a new trial is let in by steps that leave
half of the set its weight, and after each the set is redrawn and moved by the affine invariant
stretch (Goodman, Weare 2010), which needs no tuning and follows the ridges that trials leave.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from workbench.models.base import Floats

SIZE = 800
"""Devices in the set: its sd is good to 4 %."""
SWEEPS = 4
"""Moves of each after a redraw."""

# Latent variables are normal (0, 1), except the place of the breakpoint.
PLACE, NOISE, SOFTNESS, COLLAPSE, DRIFT, BACKLOG, VISIT = range(7)
"""The last one only where visits have a luck of their own."""
NOISES = math.log(0.02), 1.2
"""Relative standard deviation of the capacity of one second: middle and sd of its log."""
SOFTNESSES = math.log(0.015), 1.5
"""Softness of the knee beyond that of the noise, which softens it too: what a second loses is
decided by the capacity of that second."""
COLLAPSES = 0.8
"""Sd of what the power of the overload has beyond 1: nothing in half of the devices."""
DRIFTS = 0.006 / 60.0
"""Drift of the log capacity per second (sd)."""
BACKLOGS = math.log(0.007), 1.0
"""Seconds of work that may wait and are answered after the trial: middle and sd of the log."""
VISITS = math.log(0.03), 0.8
"""Luck of a whole trial, of sd as a log: what a lab's host and its windows of seconds scatter by,
however long the trial (METHOD.md 6: 0.05 in windows of 2 to 3 s)."""
KINSHIP = 0.4
"""Standard deviation, of 1 among all devices, by which those of one grid differ."""
TAIL = 4.0
"""Degrees of freedom of a trial's noise, and one more for each of its seconds, whose mean is nearly
normal: a burst or a stall in a short trial is an outlier, not a verdict."""
STRAY = 3e-4
"""Share lost in a second for reasons that have nothing to do with the load (sd)."""
MISFIT = 0.03
"""No device is exactly of this family: what is lost beyond the goal is known to this share (sd).
It makes far overload a hint and trials near the breakpoint the evidence."""


class Knees:
    """The set, as it stands after some trials.

    Parameters
    ----------
    low, high : float
        Logs of the loads between which breakpoints are spread.
    goal : float
        Share of loss that a breakpoint stands for.
    prior : (float, float), optional
        Log of a guess and its standard deviation; a tenth of the belief stays spread.
    alike : Knees, optional
        Of a device of the same kind: noise, softness, collapse, drift and backlog are like its.
    visits : bool
        Whether a whole trial may meet a capacity that is moved by the luck of its visit, beside the
        noise of its seconds. The breakpoint is that of a visit without luck.

    Attributes
    ----------
    latent : Floats, shape (SIZE, 6), or 7 with visits
    weight : Floats, shape (SIZE,), adds to 1
    """

    def __init__(
        self,
        low: float,
        high: float,
        goal: float,
        prior: tuple[float, float] | None = None,
        alike: Knees | None = None,
        visits: bool = False,
    ) -> None:
        self._low, self._high, self._goal, self._prior = low, high, goal, prior
        count = VISIT + visits
        self._character = np.zeros(count - 1), np.ones(count - 1)
        """Middle and sd of the latent variables but the place, before any trial."""
        if alike is not None:
            self._character = alike.character
        self._rng = np.random.default_rng(SIZE)
        self._trials: list[tuple[float, ...]] = []
        latent = self._rng.standard_normal((SIZE, count))
        spread = self._rng.uniform(low, high, SIZE)
        if prior is not None:
            near = np.clip(prior[0] + prior[1] * latent[:, PLACE], low, high)
            spread = np.where(self._rng.random(SIZE) < 0.9, near, spread)
        latent[:, PLACE] = spread
        latent[:, NOISE:] = self._character[0] + self._character[1] * latent[:, NOISE:]
        self.latent = latent
        self.weight = np.full(SIZE, 1.0 / SIZE)
        self._old = np.zeros(SIZE)
        """Log-likelihood of each under the trials so far."""

    def learn(self, load: float, seconds: float, at_s: float, sent: float, lost: float) -> None:
        """A trial: log load, its seconds, its middle on the search's clock, what it lost."""
        self._trials.append((load, seconds, at_s, sent, lost))
        new = self._log_likelihood(self.latent, self._trials[-1:])
        share = 0.0
        log_weight = np.log(np.maximum(self.weight, 1e-300))
        while True:
            step = self._step(log_weight, new, 1.0 - share)
            share += step
            log_weight = log_weight + step * new
            self.weight = _weights(log_weight)
            if 1.0 / np.sum(self.weight**2) >= 0.5 * SIZE and share >= 1.0:
                self._old = self._old + new
                return
            chosen = self._redrawn()
            self.latent, self._old, new = self.latent[chosen], self._old[chosen], new[chosen]
            new = self._move(new, share)
            log_weight = np.zeros(SIZE)
            self.weight = np.full(SIZE, 1.0 / SIZE)
            if share >= 1.0:
                self._old = self._old + new
                return

    @property
    def character(self) -> tuple[Floats, Floats]:
        """What a device like this one may be, its place aside: middle and sd of each latent
        variable, widened, since it is another device, but not beyond what is always so."""
        rest = self.latent[:, NOISE:]
        middle = np.asarray(self.weight @ rest)
        variance = self.weight @ (rest - middle) ** 2 + KINSHIP**2
        return middle, np.sqrt(np.minimum(variance, 1.0))

    def places(self, at_s: float) -> Floats:
        """Log breakpoints at a time of the search, shape (SIZE,)."""
        return np.asarray(self.latent[:, PLACE] + DRIFTS * self.latent[:, DRIFT] * at_s)

    def quantiles(self, shares: Sequence[float], at_s: float) -> Floats:
        """Of the log breakpoints at a time of the search."""
        places = self.places(at_s)
        order = np.argsort(places)
        below = np.cumsum(self.weight[order]) - 0.5 * self.weight[order]
        return np.asarray(np.interp(shares, below, places[order]))

    def expected(
        self, load: float, seconds: float, at_s: float, sent: float
    ) -> tuple[Floats, Floats]:
        """Share lost in a trial and its standard deviation, by every device: shapes (SIZE,)."""
        trial = (load, seconds, at_s, sent, 0.0)
        mean, scale, *_ = _expected(self.latent, [trial], self._goal)
        return mean[:, 0], scale[:, 0]

    # ------------------------------------------------------------------------------ the set

    def _step(self, log_weight: Floats, new: Floats, most: float) -> float:
        """Share of the new trial that leaves the set half of its weight."""
        low, high = 0.0, most
        if _effective(log_weight + most * new) >= 0.5 * SIZE:
            return most
        for _ in range(30):
            middle = 0.5 * (low + high)
            if _effective(log_weight + middle * new) >= 0.5 * SIZE:
                low = middle
            else:
                high = middle
        return max(low, 1e-3 * most)

    def _redrawn(self) -> NDArray[np.intp]:
        """Places in the set by weight, evenly (systematic resampling), in random order."""
        at = (self._rng.random() + np.arange(SIZE)) / SIZE
        chosen = np.minimum(np.searchsorted(np.cumsum(self.weight), at), SIZE - 1)
        return np.asarray(self._rng.permutation(chosen), dtype=np.intp)

    def _move(self, new: Floats, share: float) -> Floats:
        """Stretch moves under all earlier trials and a share of the last; its log-likelihood."""
        half = SIZE // 2
        density = self._log_prior(self.latent) + self._old + share * new
        for sweep in range(2 * SWEEPS):
            mine = slice(0, half) if sweep % 2 else slice(half, SIZE)
            others = self.latent[half:] if sweep % 2 else self.latent[:half]
            partner = others[self._rng.permutation(half)]
            stretch = (1.0 + self._rng.random(half)) ** 2 / 2.0
            proposed = partner + stretch[:, None] * (self.latent[mine] - partner)
            old = self._log_likelihood(proposed, self._trials[:-1])
            last = self._log_likelihood(proposed, self._trials[-1:])
            then = self._log_prior(proposed) + old + share * last
            ratio = (proposed.shape[1] - 1) * np.log(stretch) + then - density[mine]
            taken = np.log(self._rng.random(half)) < ratio
            for kept, fresh in (
                (self._old, old), (new, last), (density, then), (self.latent, proposed)
            ):  # fmt: skip
                kept[mine][taken] = fresh[taken]
        return new

    def _log_prior(self, latent: Floats) -> Floats:
        place = latent[:, PLACE]
        inside = (place >= self._low) & (place <= self._high)
        log_place = np.zeros(len(latent))
        if self._prior is not None:
            guess, doubt = self._prior
            z = (place - guess) / doubt
            near = np.exp(-0.5 * z**2) / (doubt * math.sqrt(2.0 * math.pi))
            log_place = np.log(0.9 * near + 0.1 / (self._high - self._low))
        middle, sd = self._character
        rest = -0.5 * np.sum(((latent[:, NOISE:] - middle) / sd) ** 2, axis=1)
        return np.asarray(np.where(inside, log_place + rest, -np.inf))

    def _log_likelihood(self, latent: Floats, trials: list[tuple[float, ...]]) -> Floats:
        if not trials:
            return np.zeros(len(latent))
        mean, scale, calm, still = _expected(latent, trials, self._goal)
        lost = np.array([t[-1] for t in trials])
        # Given that some second lost: the moments of the rest, so that both together are as said.
        some = np.maximum(1.0 - calm, 1e-9)
        rest = mean / some
        scale = np.sqrt(np.maximum((scale**2 + mean**2) / some - rest**2, still**2))
        tail = TAIL + np.array([t[1] for t in trials])
        each = calm * _student(lost, still, tail) + some * _student(lost - rest, scale, tail)
        return np.asarray(np.log(np.maximum(each, 1e-300)).sum(axis=1))


def _expected(
    latent: Floats, trials: list[tuple[float, ...]], goal: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Shares lost, their standard deviations and the probability that no second met a capacity
    below the load, shapes (devices, trials); sd of what such a trial loses, shape (trials,).

    Short trials near a noisy knee lose nothing or much. Without the probability of nothing, a trial
    without loss would speak for a device that is calmer and breaks later.
    """
    load, seconds, at_s, sent, _ = np.array(trials).T
    # Beyond the limits no device is, but a stretch may try: what is computed must stay finite.
    noise = np.minimum(np.exp(NOISES[0] + NOISES[1] * latent[:, NOISE]), 0.5)[:, None]
    soft = np.minimum(np.exp(SOFTNESSES[0] + SOFTNESSES[1] * latent[:, SOFTNESS]), 0.8)[:, None]
    knee = np.hypot(noise, soft)
    visit = _visit_sd(latent)
    power = np.minimum(1.0 + COLLAPSES * np.maximum(latent[:, COLLAPSE], 0.0)[:, None], 6.0)
    backlog = np.exp(BACKLOGS[0] + BACKLOGS[1] * np.minimum(latent[:, BACKLOG], 5.0))[:, None]
    place = latent[:, PLACE, None] + DRIFTS * latent[:, DRIFT, None] * at_s
    u = load - place + crossing(knee, power, goal)
    wide = np.hypot(knee, visit)
    z = np.maximum(u / wide, -8.0)
    over, left = ndtr(z), _excess_left(z, wide, power)
    lost = np.clip(over - left, 0.0, 1.0)
    # Variance of what a second or a visit loses: that of (z + normal)+ where all softness is noise,
    # that of a slope where it is not.
    density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
    most = np.maximum((1.0 + z**2) * over + z * density - (z * over + density) ** 2, 0.0)
    slope = power * left
    full = power * np.exp(-power * np.maximum(u, 0.0))
    luck = noise**2 + visit**2
    own = luck / wide**2
    jitter = slope**2 + own * full**2 * np.maximum(most - over**2, 0.0)
    variance = (noise**2 / seconds + visit**2) * jitter + STRAY**2 / seconds
    variance = variance + lost * (1.0 - lost) / np.maximum(sent, 1.0)
    variance = variance + (MISFIT * (lost - goal)) ** 2
    hidden = backlog / seconds * over
    # Seconds of one visit share its luck: they count as fewer that are independent.
    apart = 1.0 + np.maximum(seconds - 1.0, 0.0) * noise**2 / luck
    calm = own * (1.0 - over) ** apart
    still = np.sqrt(STRAY**2 / seconds + 1.0 / np.maximum(sent, 1.0) ** 2)
    return np.maximum(lost - hidden, 0.0), np.sqrt(variance), calm, still


def _visit_sd(latent: Floats) -> Floats:
    """Of the log capacity from visit to visit, shape (devices, 1)."""
    if latent.shape[1] <= VISIT:
        return np.zeros((len(latent), 1))
    return np.minimum(np.exp(VISITS[0] + VISITS[1] * latent[:, VISIT]), 0.3)[:, None]


def _student(error: Floats, scale: Floats, tail: Floats) -> Floats:
    """Density up to a constant."""
    far = np.log1p((error / scale) ** 2 / tail)
    return np.asarray(np.exp(-0.5 * (tail + 1.0) * far) / scale)


def _excess_left(z: Floats, knee: Floats, power: Floats) -> Floats:
    """E[(C / lambda)^a; C < lambda], C log-normal of width `knee`, z = log(lambda / C) / knee."""
    spread = power * knee
    return np.asarray(np.exp(spread * (0.5 * spread - z)) * ndtr(z - spread))


_KNEES = np.linspace(math.log(1e-4), math.log(1.0), 240)
_POWERS = np.linspace(1.0, 6.0, 41)


def crossing(knee: Floats, power: Floats, goal: float) -> Floats:
    """log(load / capacity) at which the loss passes the goal, read from a table."""
    table = _crossings(goal)
    row = (np.log(knee) - _KNEES[0]) / (_KNEES[1] - _KNEES[0])
    column = (power - 1.0) / (_POWERS[1] - _POWERS[0])
    row = np.clip(row, 0.0, len(_KNEES) - 1.001)
    column = np.clip(column, 0.0, len(_POWERS) - 1.001)
    i, j = row.astype(int), column.astype(int)
    s, t = row - i, column - j
    low = (1.0 - t) * table[i, j] + t * table[i, j + 1]
    high = (1.0 - t) * table[i + 1, j] + t * table[i + 1, j + 1]
    return np.asarray((1.0 - s) * low + s * high)


@cache
def _crossings(goal: float) -> Floats:
    """By knee and power: 80 ms once for a goal, so that no move has to solve for it."""
    knee, power = np.exp(_KNEES)[:, None], _POWERS[None, :]
    low = np.broadcast_to(-8.0 * knee, (len(_KNEES), len(_POWERS)))
    high = np.broadcast_to(8.0 * knee - math.log1p(-goal) + 8.0 * knee**2 * power, low.shape)
    for _ in range(60):
        middle = 0.5 * (low + high)
        z = middle / knee
        under = ndtr(z) - _excess_left(z, knee, power) < goal
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    return np.asarray(0.5 * (low + high))


def _weights(log_weight: Floats) -> Floats:
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())


def _effective(log_weight: Floats) -> float:
    return float(1.0 / np.sum(_weights(log_weight) ** 2))
