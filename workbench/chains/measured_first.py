"""What is said of a chain: what was measured of it first, then what its profiles let expect.

- Samples of the chain are canaries that were taken already, whatever they were taken for. What
  they teach (`chains.correction`) is used where it predicts samples that it was not fitted to
  better than the profiles do, and every answer rests on them (`chains.conditioned`).
- A chain without samples carries the risk that measured chains have shown (`chains.handover`).
- Where a function is loaded beyond what it carries, or the chain was seen to be, a response time
  grows for as long as one watches: the forecast is `UNBOUNDED`, never a plateau.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.chains.alignment import Measured
from workbench.chains.composition import ChainForecaster
from workbench.chains.conditioned import NEAR, ConditionedForecaster
from workbench.chains.correction import SHARED_SD
from workbench.chains.handover import HandoverRisk, with_handover
from workbench.chains.proposal import Method
from workbench.domain import kpis
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import UNBOUNDED, Sample
from workbench.models.forecast import Bools, Forecast, Forecaster, Points
from workbench.models.selection import stated

MOST_TAUGHT = 48
"""Samples that a correction learns from; every one of more is still rested on."""
OVERLOADED = "overloaded"
_UNBOUNDED = math.log(UNBOUNDED)


class MeasuredFirst:
    """Implements `Forecaster`.

    Parameters
    ----------
    chain : what the profiles say.
    accepted : a retrained model in force; None where the profiles are.
    samples : of the session, or of the chain; those of other targets are not looked at.
    seen : those of the chain that state the KPI; None where none does.
    method : by which samples of the chain teach what it adds.
    target : the chain's name, as in its samples.
    risks : of the hand-over, by KPI, that a chain carries that nobody has measured; by default
        what recordings have shown.

    Attributes
    ----------
    law : what the samples taught; None where nothing, or nothing that held on left-out samples.
    rests_on : the number of samples of the chain.
    """

    def __init__(
        self,
        chain: ChainForecaster,
        accepted: Forecaster | None,
        samples: Sequence[Sample],
        seen: Measured | None,
        method: Method,
        *,
        target: str,
        risks: Mapping[str, HandoverRisk] | None = None,
    ) -> None:
        self.kpi, self.chain, self.accepted = chain.kpi, chain, accepted
        self.rests_on = 0 if seen is None else len(seen)
        self.law = None
        if accepted is None and seen is not None and len(chain.vnfs) > 1:
            self.law = _law(seen, method)
        told = accepted or self.law
        if len(chain.vnfs) == 1:  # of one function nothing is handed over
            risks = {}
        unmeasured = with_handover(chain, risks)
        self._base: Forecaster = told or unmeasured
        if seen is not None:
            self._base = ConditionedForecaster(
                _Within(told, unmeasured) if told else unmeasured,
                seen,
                shared_sd=SHARED_SD,
                at_most=unmeasured,
            )
        self._target, self._samples = target, samples
        self._carried, self._overloads = _seen_to_carry(target, samples, self.kpi)
        self._drowned = {
            c: min(above)
            for c, loads in self._overloads.items()
            if (above := [wl for wl in loads if wl > self._carried.get(c, 0.0)])
        }

    @property
    def unmeasured(self) -> bool:
        """Whether nothing but its functions was measured."""
        return not self.rests_on and self.accepted is None

    def carries(self, points: Points) -> Bools:
        """Where the chain itself was seen to carry the load, or a larger one, of shape (m,)."""
        is_time = kpis.of(self.kpi).kind == "response_time"
        seen = [is_time and wl <= self._carried.get(c, 0.0) for c, wl in points]
        return np.array(seen, dtype=bool)

    def limits(self, points: Points) -> list[str]:
        """By point, the function that keeps the chain from carrying its load; else empty."""
        over, expected = self.overloaded(points), self.chain.overload(points)
        return [
            expected.worst(place) or busiest(self._target, self._samples, points[place][0])
            if over[place]
            else ""
            for place in range(len(points))
        ]

    def forecast(self, points: Points) -> Forecast:
        said = self._base.forecast(points)
        over = self.overloaded(points)
        doubted = over | self._grew_near(points)
        if not doubted.any():
            return said
        return Forecast(
            np.where(over, _UNBOUNDED, said.mean),
            said.low,
            np.where(doubted, _UNBOUNDED, said.high),
            said.extrapolates & ~over,
        )

    def _grew_near(self, points: Points) -> Bools:
        """Where the chain was seen to be overloaded, though it carried more another time, (m,)."""
        near = np.zeros(len(points), dtype=bool)
        if kpis.of(self.kpi).kind != "response_time" or self.chain.family == "closed":
            return near
        for place, (configuration, wl) in enumerate(points):
            loads = self._overloads.get(configuration, ())
            near[place] = any(abs(math.log(wl / load)) <= NEAR for load in loads)
        return near

    def overloaded(self, points: Points) -> Bools:
        """Where a response time grows without bound, of shape (m,); nowhere for other KPIs.

        What was seen of the chain itself goes before what its functions let expect.
        """
        if (
            kpis.of(self.kpi).kind != "response_time"
            or self.chain.family == "closed"
            or not len(points)
        ):
            return np.zeros(len(points), dtype=bool)
        expected, carries = self.chain.overload(points).expected, self.carries(points)
        drowns = np.array([wl >= self._drowned.get(c, math.inf) for c, wl in points])
        return np.asarray((expected & ~carries) | drowns)


class _Within:
    """A correction within its reach; beyond it is as unsure as if nothing had been measured.

    Nor is it anywhere less sure than that: what canaries say of CPU asks profiles at loads at which
    nobody took them, and their own interval there knows nothing of chains.
    """

    def __init__(self, told: Forecaster, unmeasured: Forecaster) -> None:
        self.kpi, self._told, self._unmeasured = told.kpi, told, unmeasured

    def forecast(self, points: Points) -> Forecast:
        told, wide = self._told.forecast(points), self._unmeasured.forecast(points)
        beyond = told.extrapolates & ~wide.extrapolates
        least = np.minimum(wide.low, told.mean - (wide.mean - wide.low))
        most = np.maximum(wide.high, told.mean + (wide.high - wide.mean))
        low = np.where(wide.extrapolates, told.low, np.maximum(told.low, least))
        high = np.where(wide.extrapolates, told.high, np.minimum(told.high, most))
        return Forecast(
            told.mean,
            np.where(beyond, np.minimum(told.low, wide.low), low),
            np.where(beyond, np.maximum(told.high, wide.high), high),
            np.where(beyond, wide.extrapolates, told.extrapolates),
        )


def _law(seen: Measured, method: Method) -> Forecaster | None:
    """What samples teach, None where too few do or where left-out ones do not bear it out."""
    if len(seen) > MOST_TAUGHT:
        chosen = np.zeros(len(seen), dtype=bool)
        order = np.lexsort((seen.table.X[:, -1], seen.table.configurations))
        chosen[order[np.linspace(0, len(seen) - 1, MOST_TAUGHT).astype(int)]] = True
        seen = seen.take(chosen)
    try:
        learned = method.learned(seen)
    except DataError:
        return None
    return None if learned is method.prediction else learned


def _seen_to_carry(
    target: str, samples: Sequence[Sample], kpi: str
) -> tuple[dict[Configuration, float], dict[Configuration, list[float]]]:
    """By configuration, the highest load that states the KPI, and all that were overloads."""
    carried: dict[Configuration, float] = {}
    overloads: dict[Configuration, list[float]] = {}
    for sample in samples:
        if sample.point.target != target or not sample.valid:
            continue
        c, wl = sample.point.configuration, sample.point.wl
        if stated(sample, kpi) is not None:
            carried[c] = max(wl, carried.get(c, wl))
        elif OVERLOADED in sample.labels:
            overloads.setdefault(c, []).append(wl)
    return carried, overloads


def busiest(target: str, samples: Sequence[Sample], configuration: Configuration) -> str:
    """Of a configuration that was seen to be overloaded, the function that used most of its CPU.

    Empty where no sample says it.
    """
    shares: dict[str, list[float]] = {}
    for sample in samples:
        own = sample.point.target == target and sample.point.configuration == configuration
        if own and sample.valid and OVERLOADED in sample.labels:
            for vnf, usage in sample.usage.items():
                if configuration.vcpu(vnf):
                    shares.setdefault(vnf, []).append(usage.cpu_cores / configuration.vcpu(vnf))
    middle = {vnf: float(np.median(found)) for vnf, found in shares.items()}
    return max(middle, key=lambda vnf: middle[vnf], default="")
