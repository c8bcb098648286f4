"""A profile's forecasts, checked against the samples around: no formula is surer than they allow.

Formulas are clipped: `Catalogue` and `CurveFit` follow a KPI to a hundredth of the smallest sample
of a configuration, no further, and none passes the KPI's ceiling. At such a clip the formula's own
error is nothing, and so is its band, just where it knows least.
"""

from __future__ import annotations

import numpy as np

from workbench.models.base import Floats
from workbench.models.forecast import Forecast, ProfileForecaster

_SAME = 1e-6
"""Logs that differ by less are the same figure."""


class CheckedForecaster(ProfileForecaster):
    """A fitted model of one KPI of one target, which says where its samples do not bear it out.

    Two things are looked at where samples surround a point, and in both the interval is made to
    hold what interpolating them says, with their noise:

    - An interval of no width, unless the samples around say that figure themselves, as they do
      where nothing is lost, or where all of them are at the ceiling.
    - An interval that lies beyond every sample of the table: of figures that nobody measured
      anywhere a formula cannot be sure. Such a point counts as extrapolated, too.

    What no samples surround is told as `ProfileForecaster` does.
    """

    def _anew(self, X: Floats) -> Forecast:
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
