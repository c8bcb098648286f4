"""Where measured configurations break a limit, and what that leaves to smaller allocations.

What carries a load with fewer resources carries it with more: a configuration that was measured to
break a limit at some load is an upper end of what it and every allocation that gives no function
more is said to carry, whatever a model makes of the samples around. Overload states no response
time, so that a model of it has no samples there and would only guess.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, Sla
from workbench.domain.recommendations import gives_at_least
from workbench.domain.samples import UNBOUNDED, Sample
from workbench.models.base import Floats
from workbench.models.breakpoints.case import RuleInputs, RuleTerms
from workbench.models.breakpoints.sla import sla as sla_rule
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.models.scales import NORMAL_95, log_kpi
from workbench.models.selection import must_be_alike

_PLENTY = 4.0
"""Standard deviations under a breakpoint at which it says nothing more (1 in 30,000)."""
_BEYOND_SD = 0.5
"""Log standard deviation of a response time beyond its limit, of which nothing else is known."""
_LEAST_SD = 1e-9


@dataclass(frozen=True)
class LimitCrossing:
    """The load at which a measured configuration crosses a limit.

    Attributes
    ----------
    centre : its log.
    below, above : its standard deviations, in logs.
    """

    configuration: Configuration
    centre: float
    below: float
    above: float

    def bounds(self, configuration: Configuration) -> bool:
        """Whether it is an upper end of what a configuration carries, which gives no more."""
        return self.configuration.workload == configuration.workload and gives_at_least(
            self.configuration.resources, configuration.resources
        )

    def room(self, wl: float) -> float:
        """Standard deviations by which `wl` lies under it; negative beyond."""
        gap = self.centre - math.log(wl)
        return gap / max(self.below if gap > 0.0 else self.above, _LEAST_SD)


def crossings(
    target: str, samples: Sequence[Sample], terms: RuleTerms, limit: Sla
) -> tuple[LimitCrossing, ...]:
    """Of every configuration of a target that was profiled to break an upper limit.

    It is the rule `sla` of docs/breakpoints.md, asked about this limit, so that nothing here
    contradicts the breakpoints that screens show. Nothing of other limits than those on response
    times, and nothing where samples are of several definitions of latency.
    """
    if limit.direction != "<=" or kpis.of(limit.kpi).kind != "response_time":
        return ()
    own = [s for s in samples if s.point.target == target and s.purpose == "profile"]
    with suppress(DataError):
        must_be_alike([s for s in own if s.valid and s.load_model == terms.load.key])
        asked = terms.sla
        if asked is None or (asked.kpi, asked.limit, asked.direction) != (
            limit.kpi,
            limit.limit,
            limit.direction,
        ):  # the share of requests within a limit is of the campaign's
            own = [replace(s, p_sla=None) for s in own]
        every = dict.fromkeys(s.point.configuration for s in own)
        return tuple(
            found
            for configuration in every
            if (found := _crossing(target, configuration, own, terms, limit)) is not None
        )
    return ()


def _crossing(
    target: str,
    configuration: Configuration,
    samples: Sequence[Sample],
    terms: RuleTerms,
    limit: Sla,
) -> LimitCrossing | None:
    said = sla_rule(RuleInputs.of(target, configuration, samples, terms), limit)
    if said.state == "below_range":
        return LimitCrossing(configuration, math.log(terms.primary.low), 0.0, 0.0)
    if said.wl is None or said.low is None or said.high is None:
        return None
    centre = math.log(said.wl)
    return LimitCrossing(
        configuration,
        centre,
        (centre - math.log(said.low)) / NORMAL_95,
        (math.log(said.high) - centre) / NORMAL_95,
    )


class LimitedByMeasured:
    """A forecaster that is nowhere surer of a limit than measured breakpoints are.

    Implements `Forecaster`. The chance that the limit holds is at most that the load lies under
    the breakpoint, of the configuration itself and of each that gives every function as much.
    Beyond one the samples around it say that the limit breaks, and nothing is extrapolated.
    """

    def __init__(self, told: Forecaster, limit: Sla, measured: Sequence[LimitCrossing]) -> None:
        self.kpi, self._told = told.kpi, told
        self._limit, self._measured = log_kpi(limit.kpi, limit.limit), tuple(measured)
        self._over: dict[Configuration, tuple[LimitCrossing, ...]] = {}

    def room(self, configuration: Configuration, wl: float) -> float:
        """Standard deviations that the breakpoints leave; infinite where there is none."""
        return min((one.room(wl) for one in self._above(configuration)), default=math.inf)

    def fails(self, configuration: Configuration, wl: float) -> bool:
        """Whether the configuration itself was measured to break the limit there."""
        own = (one for one in self._above(configuration) if one.configuration == configuration)
        return any(one.room(wl) < 0.0 for one in own)

    def forecast(self, points: Points) -> Forecast:
        said = self._told.forecast(points)
        room = np.array([self.room(configuration, wl) for configuration, wl in points])
        below, above = (np.maximum(side, _LEAST_SD) for side in said.sd)
        gap = self._limit - said.mean
        bound = (room < _PLENTY) & (room < gap / np.where(gap < 0.0, below, above))
        if not (bound | (room < 0.0)).any():
            return said
        mean, low, high = _at_most(said, room, self._limit)
        return Forecast(
            np.where(bound, mean, said.mean),
            np.where(bound, low, said.low),
            np.where(bound, high, said.high),
            said.extrapolates & (room >= 0.0),
        )

    def _above(self, configuration: Configuration) -> tuple[LimitCrossing, ...]:
        if configuration not in self._over:
            self._over[configuration] = tuple(
                one for one in self._measured if one.bounds(configuration)
            )
        return self._over[configuration]


def _at_most(said: Forecast, room: Floats, limit: float) -> tuple[Floats, Floats, Floats]:
    """Mean, low and high that hold `limit` by `room` standard deviations, each of shape (m,)."""
    over = room < 0.0
    short = np.minimum(np.abs(room), _PLENTY)
    mean = np.where(over, np.maximum(said.mean, limit + short * _BEYOND_SD), said.mean)
    gap = np.abs(limit - mean)
    sd = gap / np.maximum(np.abs(room), 1e-6)
    low = np.where(over, mean - NORMAL_95 * np.maximum(sd, _LEAST_SD), said.low)
    high = np.where(over, mean + NORMAL_95 * _BEYOND_SD, mean + NORMAL_95 * sd)
    top = math.log(UNBOUNDED)
    return mean, low, np.maximum(np.minimum(high, top), np.where(over, said.high, mean))
