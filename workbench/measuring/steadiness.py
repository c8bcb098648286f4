"""Does a stretch of load change while it is watched? (METHOD.md 6)"""

from __future__ import annotations

import numpy as np

from workbench.measuring.intervals import t_quantile
from workbench.measuring.records import Floats

THROUGHPUT_TREND = 0.10
"""Change of throughput between the halves of a window that makes it unsteady."""
IN_FLIGHT_TREND = 0.40
"""The same for the number in flight, which wanders more near saturation."""
_CONFIDENCE = 0.995
_MAX_CORRELATION = 0.97
_MOVES = 2.0
"""Standard errors by which a level has to move before it is taken for a random walk."""


def trend(batches: Floats, limit: float) -> float | None:
    """Relative change from the first half of a window to the second, if there is one.

    A change counts if it is larger than `limit` and significant at 1 %, as the difference of the
    halves (finds a step) or as the slope over the batches (finds a ramp, whose own variance hides
    it from the first test).

    Parameters
    ----------
    batches : array of shape (k,), one figure per batch
    limit : float, relative to the mean

    Returns
    -------
    float or None
        The change relative to the mean, None if none is shown (or fewer than four batches).
    """
    k = batches.size
    mean = float(batches.mean()) if k else 0.0
    if k < 4 or mean <= 0:
        return None
    quantile = t_quantile(k - 2, _CONFIDENCE)
    first, second = batches[: k // 2], batches[k - k // 2 :]
    step = float(second.mean() - first.mean())
    within = float(np.sum((first - first.mean()) ** 2) + np.sum((second - second.mean()) ** 2))
    step_error = np.sqrt(within / (2 * first.size - 2) * 2 / first.size)

    time = np.arange(k) - (k - 1) / 2
    slope = float(time @ batches / (time @ time))
    residual = batches - mean - slope * time
    slope_error = np.sqrt(float(residual @ residual) / (k - 2) / float(time @ time))

    shown = [
        change / mean
        for change, significant in (
            (step, abs(step) > quantile * step_error),
            (slope * k / 2, abs(slope) > quantile * slope_error),
        )
        if significant and abs(change) > limit * mean
    ]
    return shown[0] if shown else None


def growth(levels: Floats, step_s: float) -> tuple[float, float]:
    """Rate at which a level (the backlog of an open loop) grows, and its standard error.

    Least squares over all bins, rather than last minus first: it does not hang on the two
    instants at which the window happens to begin and end. The standard error is first that
    of a level which wanders about a line: of the residuals, widened for their lag-1 correlation.
    A level that moves by more than that is no such level but a random walk, as a queue beyond
    saturation is; then the steps between bins tell (least squares has 6/5 of the variance of last
    minus first, and the means of bins hide a third of that of the steps).

    Parameters
    ----------
    levels : array of shape (n,), means of equal bins
    step_s : float, length of a bin

    Returns
    -------
    tuple of float
        Per second. The error is infinite for fewer than four bins.
    """
    n = levels.size
    if n < 4:
        return 0.0, float("inf")
    time = (np.arange(n) - (n - 1) / 2) * step_s
    slope = float(time @ levels / (time @ time))
    residual = levels - levels.mean() - slope * time
    squares = float(residual @ residual)
    if squares <= 0:
        return slope, 0.0
    raw = float(residual[1:] @ residual[:-1]) / squares
    correlation = float(np.clip(raw + (2 + 4 * raw) / n, 0.0, _MAX_CORRELATION))
    inflation = (1 + correlation) / (1 - correlation)
    wandering = squares / (n - 2) / float(time @ time) * inflation
    walking = 1.2 * 1.5 * float(np.var(np.diff(levels), ddof=1)) / (n - 1) / step_s**2
    moves = slope**2 > _MOVES**2 * wandering
    return slope, float(np.sqrt(max(wandering, walking) if moves else wandering))
