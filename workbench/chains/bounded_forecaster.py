"""A profile's forecasts, checked against the samples around: no formula is surer than they allow.

Formulas are clipped: `Catalogue` and `CurveFit` follow a KPI to a hundredth of the smallest sample
of a configuration, no further, and none passes the KPI's ceiling. At such a clip the formula's own
error is nothing, and so is its band, just where it knows least.
"""

from __future__ import annotations

import numpy as np

from workbench.domain import kpis
from workbench.models.base import Floats
from workbench.models.forecast import Forecast, ProfileForecaster
from workbench.models.table import Table

_SAME = 1e-6
"""Logs that differ by less are the same figure."""
WINDOW_SD, RATE_SD = 0.12, 0.05
"""Log standard deviations by which windows scatter (METHOD.md 6), of times and shares, and of
rates: what a model misses its samples by beyond that, it misses."""
REACH = 0.4
"""In log load: how far from a sample the forecast still follows it."""


class BoundedForecaster(ProfileForecaster):
    """A fitted model of one KPI of one target, which says where its samples do not bear it out.

    Two things are looked at where samples surround a point, and in both the interval is made to
    hold what interpolating them says, with their noise:

    - An interval of no width, unless the samples around say that figure themselves, as they do
      where nothing is lost, or where all of them are at the ceiling.
    - An interval that lies beyond every sample of the table: of figures that nobody measured
      anywhere a formula cannot be sure. Such a point counts as extrapolated, too.

    What no samples surround is told as `ProfileForecaster` does.

    And it rests on its samples: where a model misses those of a configuration by more than windows
    scatter, what it misses them by is a Gaussian process over log load, so that at a load that was
    measured the forecast is what was measured, as far as that can be told from noise. Its
    covariance ends at `REACH` (Wendland 1995): between loads farther apart the model is left alone.
    """

    _missed: dict[bytes, tuple[Floats, Floats, float]] | None = None
    """By configuration: log loads that were measured, weights there, and the misfit's variance."""

    def _anew(self, X: Floats) -> Forecast:
        said = self._checked(X)
        if self._missed is None:
            self._missed = _missed(self.table, np.asarray(self.model.predict(self.table.X)))
        moved = np.zeros(len(X))
        for place, row in enumerate(X[:, :-1] + 0.0):
            if (own := self._missed.get(row.tobytes())) is not None:
                loads, weights, variance = own
                moved[place] = _kernel(X[place : place + 1, -1], loads, variance)[0] @ weights
        if not moved.any():
            return said
        ceiling = self.table.ceiling
        return Forecast(
            np.minimum(said.mean + moved, ceiling),
            np.minimum(said.low + moved, ceiling),
            np.minimum(said.high + moved, ceiling),
            said.extrapolates,
        )

    def _checked(self, X: Floats) -> Forecast:
        said = super()._anew(X)
        low, high = said.low, said.high
        y = self.table.y
        strange = ~said.extrapolates & ((high < y.min() - _SAME) | (low > y.max() + _SAME))
        doubtful = strange | (~said.extrapolates & (high - low < _SAME))
        if not doubtful.any():
            return said
        rows = X[doubtful]
        around = self._hull.predict(rows)
        least, most = self._hull.predict_band(rows)
        apart = np.abs(said.mean[doubtful] - around) > _SAME
        low, high = low.copy(), high.copy()
        low[doubtful] = np.where(apart, np.minimum(low[doubtful], least), low[doubtful])
        most = np.minimum(most, self.table.ceiling)
        high[doubtful] = np.where(apart, np.maximum(high[doubtful], most), high[doubtful])
        return Forecast(said.mean, low, high, said.extrapolates | strange)


def _missed(table: Table, said: Floats) -> dict[bytes, tuple[Floats, Floats, float]]:
    """What a model misses samples by, (n,) logs `said`, of configurations where that is clear."""
    scatter = RATE_SD if kpis.of(table.kpi).more_is_better else WINDOW_SD
    found: dict[bytes, tuple[Floats, Floats, float]] = {}
    _, numbers = np.unique(table.X[:, :-1], axis=0, return_inverse=True)
    for number in range(int(numbers.max(initial=-1)) + 1):
        own = numbers.reshape(-1) == number
        loads, place = np.unique(table.X[own, -1], return_inverse=True)
        count = np.bincount(place)
        gap = np.bincount(place, (table.y - said)[own]) / count
        noise = scatter**2 / count
        variance = float(np.mean(np.square(gap) - noise))
        if np.isfinite(variance) and variance > 0.0:
            covariance = _kernel(loads, loads, variance) + np.diag(noise)
            row = table.X[own][0, :-1] + 0.0
            weights = np.asarray(np.linalg.solve(covariance, gap), dtype=float)
            found[row.tobytes()] = loads, weights, variance
    return found


def _kernel(x: Floats, other: Floats, variance: float) -> Floats:
    apart = np.minimum(np.abs(x[:, None] - other[None, :]) / REACH, 1.0)
    return np.asarray(variance * (1.0 - apart) ** 4 * (4.0 * apart + 1.0))
