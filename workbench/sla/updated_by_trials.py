"""What the lab says of a few allocations, for those that were not tried.

A chain does what its limiting function lets it (paper A, Eq. 4), so that forecasts of allocations
are wrong alike where the same function with the same allotment limits, and apart where others do.
That is drawn: every draw is a way in which the functions' forecasts may be wrong, and counts as
much as it explains what was measured (docs/recommendation.md).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from workbench.domain.lab import HostNoise
from workbench.domain.parameters import Sla
from workbench.domain.recommendations import Deployment
from workbench.domain.samples import Estimate
from workbench.models.base import Floats
from workbench.models.folds import Ints
from workbench.models.forecast import Forecast
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD, log_kpi
from workbench.sla.performance import Performance
from workbench.sla.sla_query import Question

DRAWS = 4096
START_SD = 0.05
"""Log standard deviation of a deployment's luck where the host's own is not known (METHOD.md 11):
its sample has it, the long run does not."""
GUESSED_AS = 2.0
"""Starts that this is worth beside those of `doctor --measure`, as in `models.breakpoints.scatter`:
a host whose few starts happened to agree is not without luck."""
LEAST_SD = 0.03
"""Log standard deviation that every forecast is given: none is surer than a lab is steady."""
ALIKE = 0.5
"""Share of its variance that a function's error has in common over all its allotments."""
TAIL = 8.0
"""Degrees of freedom of what was measured around the long run: windows have four (METHOD.md 11),
and medians of several tails that are lighter."""
WIDER, WIDER_ODDS = (1.0, 2.0, 4.0, 8.0), (0.8, 0.1, 0.06, 0.04)
"""By how much forecasts may be less sure than they say, and how likely that is beforehand."""
_ENDS = (0.025, 0.5, 0.975)
_EVEN = 5
"""Seed of the draws: the same question has the same answer."""


def start_sds(noise: HostNoise | None) -> dict[str, float]:
    """`Question.start_sd` of a host, by KPI: what a restart and the minutes between two add."""
    if noise is None:
        return {}
    seen = float(noise.deployments)
    return {
        kpi: math.sqrt(
            (GUESSED_AS * START_SD**2 + seen * (restart**2 + noise.drift_sd.get(kpi, 0.0) ** 2))
            / (GUESSED_AS + seen)
        )
        for kpi, restart in noise.restart_sd.items()
    }


@dataclass(frozen=True)
class Tried:
    """A deployment that was measured at the asked load.

    Attributes
    ----------
    kpis : as measured, in the KPIs' units; what it does not state teaches nothing.
    bounds : KPIs that are known only to be at least that, of a deployment that drowns.
    """

    deployment: Deployment
    kpis: Mapping[str, Estimate]
    bounds: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TrialOutlook:
    """What trials of m deployments would show, as probabilities.

    A trial *confirms* a deployment if its sample makes it sure that all limits hold: it is so far
    on the right side that luck does not explain it.

    Attributes
    ----------
    confirmed : by deployment, shape (m,).
    both : that two are, each tried, shape (m, m).
    """

    confirmed: Floats
    both: Floats


class PerformanceUpdatedByTrials:
    """A performance that knows what was tried; it takes the place of the one that it is made of.

    Parameters
    ----------
    performance : what the models say.
    question : at whose load was tried.
    candidates : whose forecasts are moved by what was tried; others are left as they are.
    tried : deployments that were measured.
    """

    def __init__(
        self,
        performance: Performance,
        question: Question,
        candidates: Sequence[Deployment],
        tried: Sequence[Tried],
    ) -> None:
        self._performance, self._question, self._tried = performance, question, tuple(tried)
        every = {one.key: one for one in (*candidates, *(t.deployment for t in tried))}
        self._place = {key: place for place, key in enumerate(every)}
        self._known = tuple(every.values())
        self._worlds: dict[str, _ForecastDraws] = {}

    @property
    def kpis(self) -> tuple[str, ...]:
        return self._performance.kpis

    def usage(self, deployments: Sequence[Deployment], wl: float) -> Sequence[Mapping[str, float]]:
        return self._performance.usage(deployments, wl)

    def forecast(self, kpi: str, deployments: Sequence[Deployment], wl: Floats) -> Forecast:
        """The models' forecasts, each moved by as many of its deviations as at the asked load."""
        said = self._performance.forecast(kpi, deployments, wl)
        limited = any(sla.kpi == kpi for sla in self._question.limits)
        if not limited or not any(kpi in one.kpis for one in self._tried):
            return said
        place = np.array([self._place.get(one.key, -1) for one in deployments], dtype=np.int64)
        below, above = (np.maximum(side, LEAST_SD) for side in said.sd)
        low, mean, high = (
            said.mean + z * np.where(z < 0.0, below, above)
            for z in self._of(kpi).moved_by[:, place]
        )
        known = place >= 0
        return Forecast(
            np.where(known, mean, said.mean),
            np.where(known, low, said.low),
            np.where(known, high, said.high),
            said.extrapolates,
        )

    def outlook(self, deployments: Sequence[Deployment]) -> TrialOutlook:
        """What trials of m deployments would show. All must be among the candidates.

        Of several limits at least that (Fréchet 1935).
        """
        place = np.array([self._place[one.key] for one in deployments], dtype=np.int64)
        failing = np.zeros(len(place)), np.zeros((len(place), len(place)))
        for sla in self._question.limits:
            said = self._of(sla.kpi).outlook(sla, self._question.confidence, place)
            for sum_, own in zip(failing, said, strict=True):
                sum_ += 1.0 - own
        return TrialOutlook(*(np.maximum(1.0 - sum_, 0.0) for sum_ in failing))

    def _of(self, kpi: str) -> _ForecastDraws:
        if kpi not in self._worlds:
            at = np.full(len(self._known), self._question.wl)
            said = self._performance.forecast(kpi, self._known, at)
            more_is_worse = any(
                sla.direction == "<=" for sla in self._question.limits if sla.kpi == kpi
            )
            seen = [
                (self._place[one.deployment.key], one) for one in self._tried if kpi in one.kpis
            ]
            self._worlds[kpi] = _ForecastDraws(
                kpi,
                self._known,
                said,
                1.0 if more_is_worse else -1.0,
                seen,
                self._question.start_sd.get(kpi, START_SD),
            )
        return self._worlds[kpi]


class _ForecastDraws:
    """Draws of a KPI's long run for k deployments at one load.

    What a function's allotment makes of the chain at best is its own figure there; the chain's is
    the worst of its functions'. `sign` is 1 where more is worse.
    """

    def __init__(
        self,
        kpi: str,
        deployments: Sequence[Deployment],
        said: Forecast,
        sign: float,
        seen: Sequence[tuple[int, Tried]],
        start_sd: float,
    ) -> None:
        self._said, self._sign, self._start_sd = said, sign, start_sd
        self._sd = tuple(np.maximum(side, LEAST_SD) for side in said.sd)
        self._own, self._best = _allotments(deployments, sign * said.mean)
        worlds = [self._drawn(factor) for factor in WIDER]
        logs = np.zeros((len(WIDER), DRAWS))
        for place, one in seen:
            for number, drawn in enumerate(worlds):
                logs[number] += _likelihood(kpi, one, drawn[:, place], start_sd)
        odds = [
            math.log(prior) + math.log(np.mean(np.exp(own - own.max()))) + own.max()
            for prior, own in zip(WIDER_ODDS, logs, strict=True)
        ]
        chosen = int(np.argmax(odds)) if seen else 0
        self._drawn_logs = worlds[chosen]
        weight = np.exp(logs[chosen] - logs[chosen].max())
        self._weight = weight / weight.sum()

    @cached_property
    def moved_by(self) -> Floats:
        """Ends of the 95 % interval and median, in deviations of the forecast, of shape (3, k)."""
        gap = self._drawn_logs - self._said.mean
        below, above = self._sd
        z = gap / np.where(gap < 0.0, below, above)
        order = np.argsort(z, axis=0, kind="stable")
        mass = np.cumsum(self._weight[order], axis=0) - 0.5 * self._weight[order]
        ordered = np.take_along_axis(z, order, axis=0)
        columns = range(z.shape[1])
        low, median, high = (
            np.array([np.interp(end, mass[:, k], ordered[:, k]) for k in columns]) for end in _ENDS
        )
        return np.stack([low, median, high])

    def outlook(self, sla: Sla, confidence: float, place: Ints) -> tuple[Floats, Floats]:
        """`TrialOutlook` of one limit; luck is each trial's own."""
        limit = log_kpi(sla.kpi, sla.limit)
        sign = 1.0 if sla.direction == "<=" else -1.0
        luck = math.hypot(self._start_sd, LEAST_SD)  # of the start, and of the sample itself
        room = sign * (limit - self._drawn_logs[:, place]) / luck - float(ndtri(confidence))
        chance = ndtr(room) * ~self._said.extrapolates[place]
        weighted = self._weight[:, None] * chance
        return weighted.sum(axis=0), weighted.T @ chance

    def _drawn(self, factor: float) -> Floats:
        """Log KPI of shape (DRAWS, k), all forecasts less sure by a factor."""
        below, above = self._sd
        worst = np.full((DRAWS, self._own.shape[1]), -np.inf)
        expected = np.full(self._own.shape[1], -np.inf)
        random = np.random.default_rng(_EVEN)
        for own, best in zip(self._own, self._best, strict=True):
            shared = random.standard_normal((DRAWS, 1))
            apart = random.standard_normal((DRAWS, len(best)))
            z = factor * (math.sqrt(ALIKE) * shared + math.sqrt(1.0 - ALIKE) * apart)
            error = z * np.where(z < 0.0, below[best], above[best])
            figures = self._sign * (self._said.mean[best] + error)
            there = own >= 0
            worst[:, there] = np.maximum(worst[:, there], figures[:, own[there]])
            mean = self._sign * self._said.mean[best]
            expected[there] = np.maximum(expected[there], mean[own[there]])
        return np.asarray(self._said.mean + self._sign * (worst - expected))


def _allotments(deployments: Sequence[Deployment], badness: Floats) -> tuple[Ints, list[Ints]]:
    """By function, the number of its allotment in each deployment (-1: it is not there), of shape
    (functions, k), and the deployment that does best with each allotment."""
    numbers: dict[str, dict[Hashable, int]] = {}
    own: list[dict[str, int]] = []
    for deployment in deployments:
        placed = {}
        for vnf, resources in deployment.functions.items():
            option = (*sorted(resources.items()), deployment.instances(vnf))
            known = numbers.setdefault(vnf, {})
            placed[vnf] = known.setdefault(option, len(known))
        own.append(placed)
    table = np.array([[one.get(vnf, -1) for one in own] for vnf in numbers], dtype=np.int64)
    best = []
    for row, known in zip(table, numbers.values(), strict=True):
        least = [np.where(row == number, badness, np.inf).argmin() for number in range(len(known))]
        best.append(np.array(least, dtype=np.int64))
    return table, best


def _likelihood(kpi: str, tried: Tried, drawn: Floats, start_sd: float) -> Floats:
    """Log likelihood of what was measured, by draw; its interval may reach farther on one side."""
    measured = tried.kpis[kpi]
    gap = drawn - log_kpi(kpi, measured.value)
    if kpi in tried.bounds:  # the draws that are above it explain it alike
        gap = np.minimum(gap, 0.0)
    below, above = (math.hypot(start_sd, side) for side in _sides(kpi, measured))
    sd = np.where(gap < 0.0, below, above)
    # Divided by the mean of both sides, not by its own: the density has no step at the middle.
    return np.asarray(
        -0.5 * (TAIL + 1.0) * np.log1p(np.square(gap / sd) / TAIL) - math.log(0.5 * (below + above))
    )


def _sides(kpi: str, measured: Estimate) -> tuple[float, float]:
    """Standard deviations of a measured log KPI below and above its value, from its interval."""
    low, middle, high = (
        log_kpi(kpi, figure) for figure in (measured.low, measured.value, measured.high)
    )
    if not math.isfinite(high - low) or high <= low:
        return UNKNOWN_LOG_SD, UNKNOWN_LOG_SD
    return (middle - low) / NORMAL_95, (high - middle) / NORMAL_95
