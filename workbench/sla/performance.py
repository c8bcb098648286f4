"""What is predicted of a deployment, and how far that is from a limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, ParameterValue, Sla
from workbench.domain.recommendations import Deployment
from workbench.models.base import Floats
from workbench.models.forecast import Bools, Forecast, Forecaster, Points
from workbench.models.scales import log_kpi
from workbench.sla.sla_query import Question

_LEAST_SD = 1e-9
"""In place of 0, so that of two sure figures the one nearer to the limit can still be told."""


class Performance(Protocol):
    """f(wl, res) = perf of paper A, Eq. 1, for deployments with and without replicas.

    Optional: `inverse(kpi, deployments, limit, probability)`, for a KPI with an upper limit
    (its log): the largest loads, of shape (m,), up to which P(KPI <= limit) is at least
    `probability` at every load; NaN where it cannot say.
    """

    @property
    def kpis(self) -> tuple[str, ...]:
        """That forecasts can be made of."""
        ...

    def forecast(self, kpi: str, deployments: Sequence[Deployment], wl: Floats) -> Forecast:
        """The KPI of each deployment at its own load of `wl`, shape (m,)."""
        ...

    def usage(self, deployments: Sequence[Deployment], wl: float) -> Sequence[Mapping[str, float]]:
        """Expected CPU of each function as a share of its allocation; empty where unknown."""
        ...


class UsageForecaster(Protocol):
    """Says the cores that each function uses (`workbench.chains.usage.ExpectedUsage`)."""

    def forecast(self, points: Points) -> Mapping[str, Forecast]:
        """By instance name, log of the cores."""
        ...


class ProfilePerformance:
    """Performance from a forecaster of each KPI; it knows nothing of replicas.

    Parameters
    ----------
    forecasters : by KPI. One that also has `inverse(configurations, limit, probability)` spares
        the bisection; see `Performance`.
    workload : values of all workload parameters but `wl`.
    usage : of the functions, if it is known.
    """

    def __init__(
        self,
        forecasters: Mapping[str, Forecaster],
        workload: Mapping[str, ParameterValue],
        usage: UsageForecaster | None = None,
    ) -> None:
        self._forecasters = forecasters
        self._workload = workload
        self._usage = usage

    @property
    def kpis(self) -> tuple[str, ...]:
        return tuple(self._forecasters)

    def forecast(self, kpi: str, deployments: Sequence[Deployment], wl: Floats) -> Forecast:
        points = list(zip(self._configurations(deployments), wl.tolist(), strict=True))
        return self._forecasters[kpi].forecast(points)

    def inverse(
        self, kpi: str, deployments: Sequence[Deployment], limit: float, probability: float
    ) -> Floats:
        inverse = getattr(self._forecasters[kpi], "inverse", None)
        if inverse is None:
            return np.full(len(deployments), np.nan)
        return np.asarray(inverse(self._configurations(deployments), limit, probability))

    def usage(self, deployments: Sequence[Deployment], wl: float) -> Sequence[Mapping[str, float]]:
        return shares(self._usage, self._configurations(deployments), wl)

    def _configurations(self, deployments: Sequence[Deployment]) -> list[Configuration]:
        for deployment in deployments:
            if any(count > 1 for count in deployment.replicas.values()):
                raise DataError("a profile of single instances says nothing of replicas")
        return [Configuration(one.allocation, self._workload) for one in deployments]


def shares(
    usage: UsageForecaster | None, configurations: Sequence[Configuration], wl: float
) -> list[dict[str, float]]:
    """CPU of each function as a share of its allocation, one mapping for each configuration."""
    if usage is None:
        return [{} for _ in configurations]
    told = usage.forecast([(configuration, wl) for configuration in configurations])
    return [
        {
            vnf: float(np.exp(cores.mean[place])) / configuration.vcpu(vnf)
            for vnf, cores in told.items()
            if configuration.vcpu(vnf) > 0.0
        }
        for place, configuration in enumerate(configurations)
    ]


def margins(forecast: Forecast, sla: Sla, window_sd: float = 0.0) -> Floats:
    """Standard deviations by which a KPI holds its limit, of shape (m,); negative where it fails.

    P(the limit holds) is Φ of that. The deviation is that of the side on which the limit lies
    (`Forecast.probability_below`), widened by that of a window.
    """
    limit = log_kpi(sla.kpi, sla.limit)
    below, above = forecast.sd
    sd = np.hypot(np.where(limit < forecast.mean, below, above), window_sd)
    gap = limit - forecast.mean if sla.direction == "<=" else forecast.mean - limit
    return np.asarray(np.nan_to_num(gap / np.maximum(sd, _LEAST_SD), nan=0.0))


def joint(each: Floats) -> Floats:
    """Margin at which all limits hold, of shape (m,), from those of each, shape (m, n).

    P(all hold) >= 1 - Σ P(one fails), whatever the dependence (Fréchet 1935). KPIs of one run are
    far from independent, and how far is not known; the bound is exact for one limit and close
    where one of them decides.
    """
    if each.shape[1] == 1:
        return each[:, 0]
    failing = np.sum(ndtr(-each), axis=1)
    return np.asarray(-ndtri(np.minimum(failing, 1.0)))


def judged(
    question: Question,
    performance: Performance,
    deployments: Sequence[Deployment],
    wl: Floats,
    limits: Sequence[Sla],
) -> tuple[Floats, Bools]:
    """Margins of each limit, shape (m, n), and where a forecast extrapolates, shape (m,)."""
    each = np.empty((len(deployments), len(limits)))
    unknown = np.zeros(len(deployments), dtype=bool)
    told: dict[str, Forecast] = {}
    for place, sla in enumerate(limits):
        if sla.kpi not in told:
            told[sla.kpi] = performance.forecast(sla.kpi, deployments, wl)
        forecast = told[sla.kpi]
        each[:, place] = margins(forecast, sla, question.window_sd.get(sla.kpi, 0.0))
        unknown |= forecast.extrapolates
    return each, unknown
