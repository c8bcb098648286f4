"""95 % intervals from batches (METHOD.md 6).

Sectioning (Asmussen & Glynn, Stochastic Simulation, 2007, III.5): a figure is computed from the
pooled requests, its interval from the same figure of each batch. Requests within a batch share
their fate (a quota gap stops them all), so they are never counted as independent.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from workbench.domain.samples import Estimate
from workbench.measuring.records import Floats

RESOLUTION = 0.005
"""Half a histogram bucket: no log interval is narrower on either side."""
NORMAL = 1.959964
_LEVEL = 0.975


@lru_cache(maxsize=256)
def t_quantile(degrees: int, level: float = _LEVEL) -> float:
    """Quantile of Student's t."""
    from scipy.special import stdtrit  # takes 0.3 s, and only labs that drive load need it

    return float(stdtrit(degrees, level))


def log_interval(
    value: float, batches: Floats, least: float, factor: float = 1.0
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

    Returns
    -------
    Estimate or None
        None if fewer than two batches have the figure: then its spread is unknown.
    """
    stated = batches[np.isfinite(batches) & (batches > 0)]
    k = stated.size
    if k < 2 or value <= 0:
        return None
    deviation = np.log(stated / value)
    # Around the pooled value, not around the batches' mean: that also pays for the bias which a
    # percentile of few requests has.
    error = float(np.sqrt(deviation @ deviation / (k - 1) / k))
    half = max(factor * t_quantile(k - 1) * error, least, RESOLUTION)
    return Estimate(value, value * float(np.exp(-half)), value * float(np.exp(half)))


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
    effective, quantile = float(requests), NORMAL
    stated = batches[np.isfinite(batches)]
    k = stated.size
    if k >= 2:
        squared_error = float(np.sum((stated - share) ** 2)) / (k - 1) / k
        variance = max(share * (1 - share), 1 / requests)  # a share of 0 or 1 is not certain
        if squared_error > variance / requests:
            effective, quantile = max(1.0, variance / squared_error), t_quantile(k - 1)
    z2 = quantile**2 / effective
    centre = (share + z2 / 2) / (1 + z2)
    half = float(np.sqrt(z2 * share * (1 - share) + z2**2 / 4)) / (1 + z2)
    return Estimate(share, max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half)))
