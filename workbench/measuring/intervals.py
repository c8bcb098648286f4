"""95 % intervals from batches (METHOD.md 6).

Sectioning (Asmussen & Glynn, Stochastic Simulation, 2007, III.5): a figure is computed from the
pooled requests, its interval from the same figure of each batch. Requests within a batch share
their fate (a quota gap stops them all), so they are never counted as independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from workbench.domain.samples import Estimate
from workbench.measuring.records import Floats

RESOLUTION = 0.005
"""Half a histogram bucket: no log interval is narrower on either side."""
WIDEST = math.log(10)
"""Half width, in logs, beyond which no log interval goes: a factor of ten either way."""
NORMAL = 1.959964
_LEVEL = 0.975
_HEAVIEST = 0.5
"""Index from which a tail has no variance; then batches say nothing either."""


@lru_cache(maxsize=256)
def t_quantile(degrees: float, level: float = _LEVEL) -> float:
    """Quantile of Student's t."""
    from scipy.special import stdtrit  # takes 0.3 s, and only labs that drive load need it

    return float(stdtrit(degrees, level))


class UpperSide(NamedTuple):
    """What is added to the upper half width of an interval, and what it has at least, in logs."""

    added: float = 0.0
    least: float = 0.0


@dataclass(frozen=True)
class Tail:
    """The upper tail of response times, as far as independent requests have shown it.

    Where few of them are independent a mean and a percentile are too low more often than too
    high: what is rare and large has mostly not come yet, and the batches do not know of it.

    Attributes
    ----------
    index : float, of a tail x^(-1/index), from the largest requests (Hill, Ann. Stat. 3, 1975).
    share : float, of the requests, that told it.
    largest : float, the largest request over the mean.
    alone : float, as how many independent requests they count.
    """

    index: float
    share: float
    largest: float
    alone: float

    @property
    def heaviest(self) -> float:
        """What the index may be: the error of Hill's estimate is its own size over the root."""
        return min(self.index * (1 + NORMAL / math.sqrt(self.share * self.alone)), _HEAVIEST)

    def upper(self, quantile: float | None) -> UpperSide:
        """Of the mean, where it is no quantile."""
        if quantile is None:
            return UpperSide(added=self.above_mean())
        return UpperSide(least=self.above_quantile(quantile))

    def above_mean(self) -> float:
        """By how much the mean may be too low, in logs, for what has not come yet.

        The one in n beyond the largest lies index/(1-index) times as far beyond it again; twice
        that is added, since the largest is itself a lucky or unlucky draw.
        """
        index = self.heaviest
        return math.log1p(2 * self.largest / self.alone * index / (1 - index))

    def above_quantile(self, q: float) -> float:
        """Half width, in logs, that the upper side of a percentile has at least.

        By the delta method: index times the relative error of the share beyond it.
        """
        return self.heaviest * NORMAL / math.sqrt(self.alone * (1 - q))


def log_interval(
    value: float,
    batches: Floats,
    least: float,
    factor: float = 1.0,
    independent: float | None = None,
    upper: UpperSide | None = None,
) -> Estimate | None:
    """Interval of a positive figure whose errors are relative.

    Parameters
    ----------
    value : float, from the pooled requests
    batches : array of shape (k,), the figure of each batch; NaN where it has none
    least : float
        Half width, in logs, that the interval has at least (`VarianceFloor.half`): what the batches
        of one visit cannot see of the difference between visits, and a guard against batches that
        agree by chance.
    factor : float
        On what the batches say: 1, or `narrowing.FACTOR` where they were looked at repeatedly.
    independent : float, optional
        How many independent batches they are worth (`correlation.independent`); k if not given.
    upper : UpperSide, optional
        What is known of it besides.

    Returns
    -------
    Estimate or None
        None if fewer than two batches have the figure: then its spread is unknown.
    """
    stated = batches[np.isfinite(batches) & (batches > 0)]
    k = stated.size
    if k < 2 or value <= 0:
        return None
    worth = min(float(k), independent or float(k))
    error = log_error(value, stated, worth)
    said = factor * t_quantile(worth - 1) * error
    low = min(max(said, least, RESOLUTION), WIDEST)
    beyond = upper or UpperSide()
    high = min(max(said + beyond.added, beyond.least, least, RESOLUTION), WIDEST)
    return Estimate(value, value * math.exp(-low), value * math.exp(high))


def log_error(value: float, stated: Floats, worth: float) -> float:
    """Standard error of a figure in logs, from its batches that count as `worth` ones.

    Around the pooled value, not around the batches' mean: that also pays for the bias which a
    percentile of few requests has.
    """
    deviation = np.log(stated / value)
    return float(np.sqrt(deviation @ deviation / stated.size / (worth - 1)))


def log_half(estimate: Estimate) -> float:
    """Half width of an interval below its value, in logs; infinite where it goes down to zero."""
    return math.log(estimate.value / estimate.low) if estimate.low > 0 else math.inf


def count_interval(count: int, batches: Floats, duration_s: float) -> Estimate:
    """Interval of a rate per second from few events: t over batches, but at least Poisson's.

    For batches without any event, where logs fail. Zero events still leave 3/T open above.
    """
    rate = count / duration_s
    error = NORMAL * np.sqrt(count + 1) / duration_s
    k = batches.size
    if k >= 2:
        error = max(error, t_quantile(k - 1) * float(np.std(batches, ddof=1)) / np.sqrt(k))
    return Estimate(rate, max(0.0, rate - float(error)), rate + max(float(error), 3 / duration_s))


def share_interval(share: float, requests: int, batches: Floats) -> Estimate:
    """Wilson's interval of a share, with as many independent requests as the batches betray.

    Parameters
    ----------
    share : float in 0-1, from the pooled requests
    requests : int, what it is a share of; at least 1
    batches : array of shape (k,), the share in each batch; NaN where it has none

    Notes
    -----
    The effective number is p(1-p) over the squared standard error of the batches, at most
    `requests`. A share of exactly 0 or 1 keeps an open side.
    """
    effective, quantile = _effective(share, requests, batches)
    z2 = quantile**2 / effective
    centre = (share + z2 / 2) / (1 + z2)
    half = float(np.sqrt(z2 * share * (1 - share) + z2**2 / 4)) / (1 + z2)
    return Estimate(share, max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)))


def exact_share_interval(share: float, packets: int, batches: Floats) -> Estimate:
    """Clopper and Pearson's interval of a share, exact for independent packets.

    Packets that are lost together, as when a queue overflows, tell less than as many single ones:
    the number of packets is then the one that their batches betray, as in `share_interval`. Of n
    packets none of which was lost the upper end is 1 - 0.025^(1/n), about 3.7/n, and never 0.

    Parameters
    ----------
    share : float in 0-1, from the pooled packets
    packets : int, what it is a share of; at least 1
    batches : array of shape (k,), the share in each batch; NaN where it has none

    Notes
    -----
    Clopper & Pearson, Biometrika 26 (1934), 404: quantiles of Beta(x, n-x+1) and Beta(x+1, n-x).
    Few batches know their own spread badly: n is divided by (t/z)^2 then.
    """
    from scipy.special import betaincinv  # takes 0.3 s, and only labs that drive load need it

    effective, quantile = _effective(share, packets, batches)
    n = max(1.0, effective * (NORMAL / quantile) ** 2)
    x, tail = share * n, 1.0 - _LEVEL
    low = float(betaincinv(x, n - x + 1.0, tail)) if share > 0.0 else 0.0
    high = float(betaincinv(x + 1.0, n - x, 1.0 - tail)) if share < 1.0 else 1.0
    return Estimate(share, min(low, share), max(high, share))


def _effective(share: float, requests: int, batches: Floats) -> tuple[float, float]:
    """So many independent requests, and the quantile that belongs to how that is known."""
    stated = batches[np.isfinite(batches)]
    k = stated.size
    if k >= 2:
        squared_error = float(np.sum((stated - share) ** 2)) / (k - 1) / k
        variance = max(share * (1 - share), 1 / requests)  # a share of 0 or 1 is not certain
        if squared_error > variance / requests:
            return max(1.0, variance / squared_error), t_quantile(k - 1)
    return float(requests), NORMAL
