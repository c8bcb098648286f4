"""What a model says of operating points, and where it only guesses: what chains and SLAs build on.

A stand-alone profile, the composition of several and a retrained chain model all answer the same
question, so that each can stand where another stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from workbench.domain import kpis
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Estimate
from workbench.models.base import Floats, ProfileModel
from workbench.models.interpolation import LogInterpolation
from workbench.models.scales import NORMAL_95
from workbench.models.table import Table

Bools = NDArray[np.bool_]
Points = Sequence[tuple[Configuration, float]]
"""Configurations and their loads, in the unit of the primary workload."""
MOST_KEPT = 100_000
"""Operating points whose forecasts are kept at most, of each model: 5 MB."""


@dataclass(frozen=True)
class Forecast:
    """One KPI at m operating points; all of shape (m,).

    Attributes
    ----------
    mean, low, high : log of the long-run KPI in its unit, and its 95 % interval.
    extrapolates : where no samples surround the point (configuration or load).
    """

    mean: Floats
    low: Floats
    high: Floats
    extrapolates: Bools

    @property
    def sd(self) -> tuple[Floats, Floats]:
        """Standard deviations of the log below and above the mean, each of shape (m,)."""
        return (self.mean - self.low) / NORMAL_95, (self.high - self.mean) / NORMAL_95

    def estimate(self, place: int = 0) -> Estimate:
        """At one of the points: the KPI with its 95 % interval, in the KPI's unit."""
        logs = (self.mean[place], self.low[place], self.high[place])
        return Estimate(*(float(np.exp(log)) for log in logs))

    def probability_below(self, limit: float) -> Floats:
        """P(log KPI <= `limit`) of shape (m,); normal on either side, 0.5 where nothing is known.

        Half of the mass lies on each side of the mean, with that side's own deviation.
        """
        below, above = self.sd
        gap = limit - self.mean
        sd = np.where(gap < 0.0, below, above)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(sd > 0.0, gap / sd, np.sign(gap) * np.inf)
        return np.asarray(ndtr(np.where(np.isnan(z), 0.0, z)))

    def draws(self, z: Floats) -> Floats:
        """Log KPI of shape (k, m) for standard normal deviates `z` of shape (k,).

        One deviate moves the whole curve: what a profile got wrong, it got wrong at neighbouring
        points alike. Independent deviates would average out along a chain's curve.
        """
        below, above = self.sd
        scale = np.where(z[:, None] < 0.0, below[None, :], above[None, :])
        return np.asarray(self.mean[None, :] + z[:, None] * scale)


class Forecaster(Protocol):
    """Says a KPI of a target at any operating point."""

    kpi: str

    def forecast(self, points: Points) -> Forecast:
        """Raises `DataError` for a parameter or category that was never profiled."""
        ...


class ProfileForecaster:
    """A fitted model of one KPI of one target, with the table that it was fitted to.

    Where no samples surround a point, a formula may say anything: there the interval also holds
    what the model says at the nearest place that samples do surround, and above the loads that
    were profiled no response time and no loss is forecast below that.

    What was asked before is told again: who holds out one load after the other, or looks along
    the loads of an allocation, comes back to most points.

    Parameters
    ----------
    table : Table
        The samples; they also say where the model extrapolates.
    model : ProfileModel
        Fitted to `table`.
    """

    def __init__(self, table: Table, model: ProfileModel) -> None:
        self.kpi = table.kpi
        self.table = table
        self.model = model
        self._hull = LogInterpolation(categorical=table.categorical).fit(table.X, table.y)
        self._told: dict[bytes, Forecast] = {}
        self._kept = 0
        """Operating points in `_told`."""

    def forecast(self, points: Points) -> Forecast:
        X = self.table.rows(points)
        if not len(X):
            nothing = np.empty(0)
            return Forecast(nothing, nothing, nothing, np.empty(0, dtype=bool))
        key = X.tobytes()
        told = self._told.get(key)
        if told is None:
            if self._kept + len(X) > MOST_KEPT:
                self._told.clear()
                self._kept = 0
            told = self._told[key] = self._anew(X)
            self._kept += len(X)
            for figures in (told.mean, told.low, told.high, told.extrapolates):
                figures.setflags(write=False)  # who changed them would change later answers
        return told

    def _anew(self, X: Floats) -> Forecast:
        """At rows `X` of the table's columns."""
        mean, low, high = self._said(X)
        outside = self._hull.extrapolates(X)
        if outside.any():
            rows = X[outside]
            moved = self._hull.nearest(rows)
            known, least, most = self._said(moved)
            # Beyond what was profiled it rises with the load.
            if not kpis.of(self.kpi).more_is_better:
                above = rows[:, -1] > moved[:, -1]
                mean[outside] = np.where(above, np.maximum(mean[outside], known), mean[outside])
            low[outside] = np.minimum(low[outside], least)
            high[outside] = np.maximum(high[outside], most)
        return Forecast(mean, np.minimum(low, mean), np.maximum(high, mean), outside)

    def _said(self, X: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean and band of the model, at most the ceiling, each of shape (m,)."""
        low, high = self.model.predict_band(X)
        mean, low, high = (
            np.minimum(bound, self.table.ceiling) for bound in (self.model.predict(X), low, high)
        )
        return mean, low, high
