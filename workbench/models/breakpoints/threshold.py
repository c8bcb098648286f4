"""A load at which something flips, seen through noise.

Each sample i has its own threshold θ_i = θ + noise: the function carries a little more in one
window than in the next. A sample that flipped may tell θ_i itself (its throughput *is* its
capacity) or only that θ_i lies below its load; one that did not flip says that θ_i lies above.
This is a Tobit regression without slope (Tobin 1958) with Student-t noise of four degrees, which
METHOD.md 11 finds in windows, and a prior on its scale, so that three samples that happen to
agree do not make an interval of zero width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.models.base import Floats
from workbench.models.scales import NORMAL_95

_SCALE_SPREAD = 0.5
_SCALES = np.exp(_SCALE_SPREAD * np.linspace(-2.5, 2.5, 8))
_SCALE_PRIOR = -0.5 * np.linspace(-2.5, 2.5, 8) ** 2

_DECAYS = np.array([-0.1, -0.03, 0.0, 0.03, 0.1, 0.25, 0.5, 0.9, 1.4])
_DECAY_PRIOR = np.log([0.03, 0.1, 0.4, 0.1, 0.08, 0.08, 0.08, 0.07, 0.06])
"""How much log capacity falls per unit of log overload: mostly not at all, but functions exist
that lose 20-60 % at twice the load and some that gain (METHOD.md 11)."""

_COARSE, _FINE = 121, 161
_WORTH_LOOKING = 14.0
"""Log posterior below the best at which the coarse grid may be cut."""


@dataclass(frozen=True)
class Evidence:
    """What samples say about a threshold; all in natural logs of `wl`.

    `exact` holds (load, threshold as measured there, its own standard deviation, scatter): the
    scatter between samples that it carries is 1 for a single one, less for a mean of several.
    """

    above: Sequence[float] = ()
    """The threshold lay above these loads."""
    below: Sequence[float] = ()
    """The threshold lay below these loads."""
    exact: Sequence[tuple[float, float, float, float]] = ()


@dataclass(frozen=True)
class Located:
    """Posterior median and 95 % interval of the threshold, in logs."""

    centre: float
    low: float
    high: float


def locate(evidence: Evidence, sd: float, shared: float = 0.0) -> Located:
    """Posterior of θ under a flat prior; scale and decay are integrated out on a grid.

    The evidence must bound θ on both sides (an exact value does). `sd` is the log standard
    deviation from sample to sample that is thought likely, `shared` what all of them share, which
    widens every interval.
    """
    points = [*evidence.above, *evidence.below, *(value for _, value, _, _ in evidence.exact)]
    grid = np.linspace(min(points) - 1.0, max(points) + 1.0, _COARSE)
    log_posterior = _marginal(grid, evidence, sd * _SCALES)
    likely = grid[log_posterior > log_posterior.max() - _WORTH_LOOKING]
    step = grid[1] - grid[0]
    grid = np.linspace(likely[0] - step, likely[-1] + step, _FINE)
    log_posterior = _marginal(grid, evidence, sd * _SCALES)
    weights = np.exp(log_posterior - log_posterior.max())
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (weights[1:] + weights[:-1]))])
    low, centre, high = np.interp(np.array([0.025, 0.5, 0.975]) * cumulative[-1], cumulative, grid)
    shared *= NORMAL_95
    return Located(
        float(centre),
        float(centre - np.hypot(centre - low, shared)),
        float(centre + np.hypot(high - centre, shared)),
    )


def _marginal(grid: Floats, evidence: Evidence, scales: Floats) -> Floats:
    """Log posterior over `grid`, of its shape."""
    theta = grid[:, None]
    total = np.broadcast_to(_SCALE_PRIOR, (grid.size, scales.size)).copy()
    for load in evidence.above:
        total += np.log(_t4_distribution((theta - load) / scales))
    for load in evidence.below:
        total += np.log(_t4_distribution((load - theta) / scales))
    if evidence.exact:
        decaying = np.broadcast_to(_DECAY_PRIOR, (grid.size, scales.size, _DECAYS.size)).copy()
        for load, value, sd, scatter in evidence.exact:
            overload = np.maximum(load - grid, 0.0)
            expected = grid[:, None] - overload[:, None] * _DECAYS
            scale = np.hypot(scatter * scales, sd)[:, None]
            z = (value - expected)[:, None, :] / scale
            decaying += -2.5 * np.log1p(0.25 * z * z) - np.log(scale)
        total += np.logaddexp.reduce(decaying, axis=2)
    marginal: Floats = np.logaddexp.reduce(total, axis=1)
    return marginal


def _t4_distribution(z: Floats) -> Floats:
    """Distribution function of Student's t with four degrees of freedom, in closed form."""
    u = 1.0 + 0.25 * z * z
    probability: Floats = 0.5 + 0.375 * z / np.sqrt(u) * (1.0 - z * z / (12.0 * u))
    return np.maximum(probability, 1e-12)
