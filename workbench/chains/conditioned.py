"""A forecast that rests on samples: where something was measured, that is what is said.

What samples are off a forecast by is a Gaussian process in units of the forecast's own deviation
(Matérn 3/2 over log load, as in `chains.residual`): at a sample it follows the sample, with its
noise; far from all samples the forecast and its interval are left as they are.
"""

from __future__ import annotations

import math

import numpy as np

from workbench.chains.alignment import Measured
from workbench.chains.residual import kernel
from workbench.domain.parameters import Configuration
from workbench.models.base import Floats
from workbench.models.folds import Ints
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.models.scales import NORMAL_95

REACH = 1.0
"""In log load: how far a sample is heard."""
LEAST_SD = 0.03
"""Log standard deviation that a forecast is given at least: none is surer than a lab is steady."""
NEAR = 0.05
"""In log load: a sample of the same configuration that near was taken of the same thing."""
TRUSTED = 4.0
"""Samples' worth of trust in the forecast's own interval, before samples that miss it widen it."""


class ConditionedForecaster:
    """Implements `Forecaster`.

    Parameters
    ----------
    base : what is said without samples.
    seen : the samples; repetitions are points of their own.
    shared_sd : log standard deviation that samples of one deployment share: the next has another.
    at_most : what is known where nothing was measured. Samples that miss `base` by far make it less
        sure everywhere, but not less sure than this, unless they miss this, too.
    """

    def __init__(
        self,
        base: Forecaster,
        seen: Measured,
        *,
        shared_sd: float = 0.0,
        at_most: Forecaster | None = None,
    ) -> None:
        self.kpi, self.base = base.kpi, base
        y, noise = seen.table.y, seen.table.noise
        self._ceiling, self._shared_sd = seen.table.ceiling, shared_sd
        places: dict[tuple[Configuration, float], list[int]] = {}
        for place, point in enumerate(seen.points):
            places.setdefault(point, []).append(place)
        self._points = list(places)
        self._numbers: dict[Configuration, int] = {}
        for configuration, _ in self._points:
            self._numbers.setdefault(configuration, len(self._numbers))
        mean = np.array([float(np.mean(y[own])) for own in places.values()])
        self._least = np.array([float(np.min(y[own])) for own in places.values()])
        self._greatest = np.array([float(np.max(y[own])) for own in places.values()])
        variance = np.array(
            [float(np.mean(np.square(noise[own]))) / len(own) for own in places.values()]
        )
        said = base.forecast(self._points)
        gap = mean - said.mean
        sd = self._sd(said, gap)
        u = gap / sd
        covariance = self._kernel(self._points, self._points)
        jitter = (variance + LEAST_SD**2) / np.square(sd)
        self._wider = _wider(covariance, jitter, u)
        self._at_most, self._at_most_wider = at_most, 1.0
        if at_most is not None:
            widest = at_most.forecast(self._points)
            off = mean - widest.mean
            least = self._sd(widest, off)
            jitters = (variance + LEAST_SD**2) / np.square(least)
            self._at_most_wider = _wider(covariance, jitters, off / least)
        self._inverse = np.linalg.inv(covariance + np.diag(jitter / self._wider))
        self._alpha = self._inverse @ u

    def forecast(self, points: Points) -> Forecast:
        """What `base` says, moved to the samples. It extrapolates where no sample is heard."""
        said = self.base.forecast(points)
        if not len(points):
            return said
        cross = self._kernel(points, self._points)
        moved = cross @ self._alpha
        left = np.clip(1.0 - np.einsum("ij,jk,ik->i", cross, self._inverse, cross), 0.0, 1.0)
        mean = said.mean + moved * self._sd(said, moved)
        sides = [np.sqrt(left * self._wider) * np.maximum(side, LEAST_SD) for side in said.sd]
        if self._at_most is not None and self._wider > 1.0:
            widest = math.sqrt(self._at_most_wider)
            most = [widest * side for side in self._at_most.forecast(points).sd]
            sides = [np.minimum(side, end) for side, end in zip(sides, most, strict=True)]
        below, above = (np.hypot(side, self._shared_sd) for side in sides)
        lowest, highest = self._seen_near(points)
        known = set(self._points)
        measured = np.array([point in known for point in points], dtype=bool)
        return Forecast(
            np.minimum(mean, self._ceiling),
            np.minimum(np.minimum(mean - NORMAL_95 * below, lowest), self._ceiling),
            np.minimum(np.maximum(mean + NORMAL_95 * above, highest), self._ceiling),
            said.extrapolates & ~measured,
        )

    def _seen_near(self, points: Points) -> tuple[Floats, Floats]:
        """The least and the greatest that samples near each point have shown, of shape (m,).

        Samples of one load may disagree by more than their noise, at a knee: an interval that
        leaves one of them out would say that it cannot be.
        """
        numbers, loads = self._number(points), np.log([wl for _, wl in points])
        own = np.log([wl for _, wl in self._points])
        same = numbers[:, None] == self._number(self._points)[None, :]
        near = same & (np.abs(loads[:, None] - own[None, :]) <= NEAR)
        lowest = np.where(near, self._least[None, :], np.inf).min(axis=1)
        highest = np.where(near, self._greatest[None, :], -np.inf).max(axis=1)
        return lowest, highest

    def _sd(self, said: Forecast, gap: Floats) -> Floats:
        below, above = said.sd
        return np.asarray(np.maximum(np.where(gap < 0.0, below, above), LEAST_SD))

    def _kernel(self, points: Points, others: Points) -> Floats:
        return kernel(
            np.log([wl for _, wl in points]),
            self._number(points),
            np.log([wl for _, wl in others]),
            self._number(others),
            1.0,
            REACH,
        )

    def _number(self, points: Points) -> Ints:
        return np.array([self._numbers.get(c, -1) for c, _ in points], dtype=np.int64)


def _wider(covariance: Floats, jitter: Floats, u: Floats) -> float:
    """What all samples together miss a forecast by, over what its interval allows for."""
    if not len(u):
        return 1.0
    evidence = float(u @ np.linalg.solve(covariance + np.diag(jitter), u))
    return max(1.0, (TRUSTED + evidence) / (TRUSTED + len(u)))
