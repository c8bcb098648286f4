"""Response times as distributions, made from the percentiles that profiles state."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from workbench.models.base import Floats

Z95, Z99 = (float(ndtri(p)) for p in (0.95, 0.99))

_BENDS = (0.25, 16.0)
_MIDDLE = (np.arange(48) + 0.5) / 48 * 0.45 + 0.5
"""Probabilities that stand for those from the median to the 95th percentile."""
_HALVINGS = 24


@dataclass(frozen=True)
class ResponseTimes:
    """Distributions of response times at m operating points, by their quantile functions.

    Log time over z, the normal quantile of the probability, goes through the three percentiles.
    Up to the median and beyond the 95th percentile it is a straight line, as in a log-normal law;
    beyond the 99th it rises no faster than from the median to there on the average. Between median
    and 95th percentile it is log p50 + log(p95/p50)·(z/z95)^bend: with a large bend the time stays
    near the median and then jumps, as under a quota (METHOD.md 5).

    Attributes
    ----------
    p50, p95, p99 : logs, of shape (m,), rising.
    bend : of shape (m,); 1 is log-normal.
    """

    p50: Floats
    p95: Floats
    p99: Floats
    bend: Floats

    @classmethod
    def of(
        cls, p50: Floats, p95: Floats, p99: Floats | None = None, mean: Floats | None = None
    ) -> ResponseTimes:
        """From percentiles and the mean in their unit, each of shape (m,).

        The bend is the one whose distribution has that mean, as far as any has. Without a mean it
        is 1; without a 99th percentile the log-normal law goes on.
        """
        middle, high = np.log(p50), np.log(np.maximum(p95, p50))
        if p99 is None:
            top = high + (high - middle) * (Z99 / Z95 - 1.0)
        else:
            top = np.maximum(np.log(p99), high)
        plain = cls(middle, high, top, np.ones_like(middle))
        return plain if mean is None else plain._with_mean(mean)

    @property
    def slopes(self) -> tuple[Floats, Floats, Floats]:
        """Log time per unit of z below the median, from p95 to p99, and beyond."""
        rise, tail = (self.p95 - self.p50) / Z95, (self.p99 - self.p95) / (Z99 - Z95)
        return np.minimum(rise, tail), tail, np.minimum(tail, (self.p99 - self.p50) / Z99)

    def quantiles(self, u: Floats) -> Floats:
        """Times of shape (m, n) at probabilities `u` of shape (n,)."""
        z = ndtri(u)[None, :]
        below, tail, beyond = (slope[:, None] for slope in self.slopes)
        p50, p95, p99 = self.p50[:, None], self.p95[:, None], self.p99[:, None]
        between = np.clip(z / Z95, 0.0, 1.0) ** self.bend[:, None]
        log = p50 + (p95 - p50) * between + below * np.minimum(z, 0.0)
        log = log + tail * np.clip(z - Z95, 0.0, Z99 - Z95) + beyond * np.maximum(z - Z99, 0.0)
        return np.asarray(np.exp(np.where(z > Z99, p99 + beyond * (z - Z99), log)))

    def mean(self) -> Floats:
        """Of shape (m,)."""
        below, tail, beyond = self.slopes
        between = np.exp(
            self.p50[:, None]
            + (self.p95 - self.p50)[:, None] * (ndtri(_MIDDLE) / Z95) ** self.bend[:, None]
        )
        return np.asarray(
            _part(self.p50, below, 0.0, -np.inf, 0.0)
            + 0.45 * between.mean(axis=1)
            + _part(self.p95, tail, Z95, Z95, Z99)
            + _part(self.p99, beyond, Z99, Z99, np.inf)
        )

    def _with_mean(self, mean: Floats) -> ResponseTimes:
        """The mean falls as the bend grows: halve the interval of its log."""
        low, high = (np.full_like(self.p50, np.log(end)) for end in _BENDS)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            bent = ResponseTimes(self.p50, self.p95, self.p99, np.exp(middle))
            too_large = bent.mean() > mean
            low, high = np.where(too_large, middle, low), np.where(too_large, high, middle)
        return ResponseTimes(self.p50, self.p95, self.p99, np.exp((low + high) / 2.0))


def _part(log: Floats, slope: Floats, at: float, start: float, end: float) -> Floats:
    """What z from `start` to `end` adds to the mean of exp(log + slope·(z - at))."""
    mass = ndtr(end - slope) - ndtr(start - slope)
    return np.asarray(np.exp(log - slope * at + slope**2 / 2.0) * mass)


@dataclass(frozen=True)
class Percentile:
    """A percentile of a sum of k times at m points, and what each of them is in it.

    Attributes
    ----------
    parts : shape (k, m); they add up to the percentile. Each is the mean of its time where the sum
        is at the percentile, which is the derivative of the percentile by a factor on that time
        (Tasche 2000, "Conditional expectation as quantile derivative", arXiv:math/0104190).
    """

    parts: Floats

    def scaled(self, factors: Floats) -> Floats:
        """The percentile if the times were longer by `factors` (k, rows, m), as (rows, m)."""
        return np.asarray(np.einsum("km,krm->rm", self.parts, factors))


def percentile_of_sum(times: Floats, p: float) -> Percentile:
    """The p-quantile of sums of drawn times (k, m, n): over k, among n draws.

    It is shared out by the sums around its rank, an eighth of those that are beyond it.
    """
    n, sums = times.shape[2], times.sum(axis=0)
    reach = max(1, min(int(n * min(p, 1.0 - p) / 8.0), n // 64))
    rank = p * n - 0.5
    first, last = max(math.ceil(rank - reach), 0), min(math.floor(rank + reach), n - 1)
    near = np.argpartition(sums, (first, last), axis=1)[:, first : last + 1]
    around = np.sort(np.take_along_axis(sums, near, axis=1), axis=1)
    left = math.floor(rank)
    lower, upper = around[:, left - first], around[:, min(left + 1, last) - first]
    percentile = lower + (rank - left) * (upper - lower)
    parts = np.take_along_axis(times, near[None, :, :], axis=2).mean(axis=2)
    return Percentile(parts * (percentile / parts.sum(axis=0)))
