"""Percentiles and means of latencies of which some are only known to exceed a waited time.

A request that had not been answered when the load stopped, or that ran into its time-out, is
right-censored: its latency is at least what it had waited (METHOD.md 4). The product-limit
estimate (Kaplan & Meier, J. Am. Stat. Assoc. 53, 1958) uses it as exactly that. Without censored
requests it is the plain empirical distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.domain.samples import LatencyHistogram
from workbench.measuring.histograms import centres_s, position_of, seconds_at, to_dense
from workbench.measuring.records import Floats

UNKNOWN_TAIL = 0.05
"""Share of the mean that may lie in a censored tail before the mean is called unknown."""


@dataclass(frozen=True)
class Distribution:
    """Latencies by bucket (`histograms`).

    Attributes
    ----------
    finished, censored : counts of shape (buckets,).
    finished_sums_s, censored_sums_s : sum of the latencies and of the waited times, in seconds;
        so means are exact, not rounded to buckets.
    """

    finished: Floats
    censored: Floats
    finished_sums_s: Floats
    censored_sums_s: Floats

    @classmethod
    def of(cls, histogram: LatencyHistogram) -> Distribution:
        """From a stored histogram; sums are then those of the buckets' centres."""
        finished, censored = to_dense(histogram)
        centres = centres_s(finished.size)
        return cls(finished, censored, finished * centres, censored * centres)

    @property
    def requests(self) -> int:
        return int(self.finished.sum() + self.censored.sum())

    @cached_property
    def mass(self) -> Floats:
        """Probability of each bucket; what is missing to 1 lies beyond the last waited time."""
        counts = self.finished + self.censored
        at_risk = np.cumsum(counts[::-1])[::-1]
        # Within a bucket the answers come before the censorings, as Kaplan and Meier have it.
        survives = 1.0 - np.divide(
            self.finished, at_risk, out=np.zeros_like(at_risk, dtype=float), where=at_risk > 0
        )
        survival = np.concatenate(([1.0], np.cumprod(survives)))
        return survival[:-1] - survival[1:]

    def quantile(self, q: float) -> float | None:
        """The q-quantile in seconds, within one bucket; None if it lies in the censored mass."""
        return _quantile(self.mass, q)

    def quantile_floor(self, q: float) -> float | None:
        """What the q-quantile is at least: that of answered and waited times taken together."""
        counts = self.finished + self.censored
        total = counts.sum()
        return _quantile(counts / total, q) if total else None

    def mean(self) -> float | None:
        """Mean in seconds; None if more than `UNKNOWN_TAIL` of it may lie in the censored mass."""
        if not self.finished.any():
            return None
        held = self.finished > 0
        known = float(np.sum(self.mass[held] * self.finished_sums_s[held] / self.finished[held]))
        last = seconds_at(float(np.flatnonzero(self.finished + self.censored)[-1]))
        tail = max(0.0, 1.0 - float(self.mass.sum())) * last
        return None if tail > UNKNOWN_TAIL * (known + tail) else known + tail

    def mean_floor(self) -> float | None:
        """What the mean is at least: that of answered and waited times taken together."""
        if not self.requests:
            return None
        return float(self.finished_sums_s.sum() + self.censored_sums_s.sum()) / self.requests

    def share_within(self, limit_s: float) -> float | None:
        """P(latency <= limit), for the part of the distribution that is known; None if empty."""
        if not self.requests:
            return None
        position = position_of(limit_s)
        bucket = int(position)
        if bucket >= self.mass.size:
            return float(self.mass.sum())
        share = float(self.mass[bucket]) * (position - bucket)
        return float(self.mass[:bucket].sum()) + share


def _quantile(mass: Floats, q: float) -> float | None:
    below = np.cumsum(mass)
    if not below.size or below[-1] < q - 1e-9:
        return None
    bucket = int(np.searchsorted(below, min(q, below[-1]) - 1e-12))
    share = 1.0 - (below[bucket] - q) / mass[bucket]
    return seconds_at(bucket + float(np.clip(share, 0.0, 1.0)))
