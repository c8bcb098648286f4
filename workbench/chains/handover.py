"""What chains have done that no profile of their functions could know: the risk of the hand-over.

A chain that nobody has measured may do what chains did that were: take some tens of milliseconds
more for every request (a delayed acknowledgement), and be off by a factor besides. How far is read
off the chains of the recordings that ship: `cd benchmarks && python -m chain_science --parts risk`
prints `MEASURED`, and how much of each chain an interval covers that the others give
(docs/chain-science.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.chains.alignment import Measured
from workbench.models.base import Floats
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.models.scales import SMALLEST_KPI

TELLING = 3
"""Canaries that tell what a chain adds: at fewer operating points none can be held out."""
USEFUL = 10.0
"""Times the lower end of an interval up to which it says something: beyond an order of magnitude
an allocation can be neither chosen nor ruled out by it."""
LOW_QUARTER = 0.25
"""Of a configuration's loads: there the hand-over is seen, before anything queues."""
_ENDS = (0.025, 0.975)


@dataclass(frozen=True)
class HandoverRisk:
    """What a measured KPI of a chain may differ by from what the profiles say.

    Attributes
    ----------
    added : at most so much is added by the hand-over, in the KPI's unit.
    below, above : log ratios beside that, at most: what is measured lies between
        exp(below)·predicted and exp(above)·(predicted + added).
    """

    added: float
    below: float
    above: float


MEASURED: Mapping[str, HandoverRisk] = {
    "mean_ms": HandoverRisk(42.70, -1.682, 0.729),
    "p50_ms": HandoverRisk(42.51, -2.469, 0.701),
    "p95_ms": HandoverRisk(46.50, -1.569, 1.022),
    "p99_ms": HandoverRisk(46.59, -1.750, 1.120),
    "throughput_rps": HandoverRisk(0.0, -0.648, 0.224),
}
"""Of the chains of all recordings that ship, by KPI."""


@dataclass(frozen=True)
class Discrepancy:
    """What one chain has shown: of n samples log KPI as measured and predicted, shape (n,).

    `added` is the median of the difference in the KPI's unit at the lower loads.
    """

    measured: Floats
    predicted: Floats
    added: float

    @classmethod
    def of(cls, seen: Measured, said: Forecaster) -> Discrepancy:
        y, mean = seen.table.y, said.forecast(seen.points).mean
        loads = np.array([wl for _, wl in seen.points])
        low = np.zeros(len(seen), dtype=bool)
        for number in np.unique(seen.table.configurations):
            own = seen.table.configurations == number
            low |= own & (loads <= np.quantile(loads[own], LOW_QUARTER))
        return cls(y, mean, float(np.median(np.exp(y[low]) - np.exp(mean[low]))))


def risk_shown_by(chains: Sequence[Discrepancy], *, adds: bool = True) -> HandoverRisk:
    """The risk that measured chains show, each counted once, however often it was measured.

    Parameters
    ----------
    adds : whether a hand-over adds to the KPI: to response times, to nothing else.
    """
    added = max([0.0, *(one.added for one in chains)]) if adds else 0.0
    weight = np.concatenate([np.full(len(c.measured), 1.0 / len(c.measured)) for c in chains])
    ends = []
    for more, end in zip((0.0, added), _ENDS, strict=True):
        off = np.concatenate([c.measured - np.log(np.exp(c.predicted) + more) for c in chains])
        order = np.argsort(off)
        below = np.cumsum(weight[order]) - 0.5 * weight[order]
        ends.append(float(np.interp(end, below / weight.sum(), off[order])))
    return HandoverRisk(added, min(ends[0], 0.0), max(ends[1], 0.0))


class HandoverForecaster:
    """A prediction of a chain that nobody has measured; its interval holds the risk."""

    def __init__(self, prediction: Forecaster, risk: HandoverRisk) -> None:
        self.kpi, self._prediction, self._risk = prediction.kpi, prediction, risk

    def forecast(self, points: Points) -> Forecast:
        said, risk = self._prediction.forecast(points), self._risk
        low = said.mean + risk.below
        high = np.log(np.exp(said.mean) + risk.added) + risk.above
        # What profiles were unsure of is in the risk already.
        return Forecast(
            said.mean,
            np.maximum(np.minimum(said.low, low), np.log(SMALLEST_KPI)),
            np.maximum(said.high, high),
            said.extrapolates,
        )


def with_handover(prediction: Forecaster) -> Forecaster:
    """The prediction with the risk that recordings show of its KPI, as it is where they do not."""
    risk = MEASURED.get(prediction.kpi)
    return prediction if risk is None else HandoverForecaster(prediction, risk)


def says_nothing(low: float, high: float) -> bool:
    """Whether an interval is too wide to be of use."""
    return high > USEFUL * low
