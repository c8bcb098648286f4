"""What chains have done that no profile of their functions could know: the risk of the hand-over.

A chain that nobody has measured may do what chains did that were: take some tens of milliseconds
more for every request (a delayed acknowledgement), and be off by a factor besides. How far is read
off the chains of the recordings that ship: `cd benchmarks && python -m chain_science --parts risk`
prints `MEASURED`, and how much of each chain an interval covers that the others give
(docs/chain-science.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from workbench.domain import kpis
from workbench.models.base import Floats
from workbench.models.forecast import Forecast, Forecaster, Points

TELLING = 3
"""Canaries that tell what a chain adds: at fewer operating points none can be held out."""
USEFUL = 10.0
"""Times the lower end of an interval up to which it says something: beyond an order of magnitude
an allocation can be neither chosen nor ruled out by it."""
AT_MS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Predicted times at which the risk is told. It goes by them: what adds tens of milliseconds to an
idle chain adds nothing that counts to one that takes a second."""


@dataclass(frozen=True)
class HandoverRisk:
    """What a measured KPI of a chain may differ by from what the profiles say.

    Attributes
    ----------
    added : at most so much is added by the hand-over, in the KPI's unit.
    below, above : log ratios beside that, at most: what is measured lies between
        exp(below)·predicted and exp(above)·(predicted + added). Where `at` has figures, one for
        each of these predicted figures, in between by their logs; else one.
    """

    added: float
    below: tuple[float, ...]
    above: tuple[float, ...]
    at: tuple[float, ...] = ()

    def ends(self, predicted: Floats) -> tuple[Floats, Floats]:
        """Log KPI that is measured at least and at most, for predicted log KPI, of that shape."""
        below, above = (self._along(each, predicted) for each in (self.below, self.above))
        return predicted + below, np.asarray(np.log(np.exp(predicted) + self.added) + above)

    def _along(self, each: tuple[float, ...], predicted: Floats) -> Floats:
        if not self.at:
            return np.full(predicted.shape, each[0])
        return np.asarray(np.interp(predicted, np.log(self.at), each))


MEASURED: Mapping[str, HandoverRisk] = {
    "mean_ms": HandoverRisk(
        42.68,
        (-0.367, -0.425, -1.051, -3.512, -3.592, -3.561, -3.415),
        (0.656, 0.651, 0.636, 0.624, 0.619, 0.600, 0.504),
        AT_MS,
    ),
    "p50_ms": HandoverRisk(
        42.58,
        (-0.568, -0.577, -0.727, -4.464, -5.300, -5.669, -5.782),
        (0.614, 0.616, 0.634, 0.666, 0.676, 0.654, 0.584),
        AT_MS,
    ),
    "p95_ms": HandoverRisk(
        46.25,
        (-0.974, -0.999, -1.047, -2.332, -3.022, -3.186, -3.341),
        (1.110, 1.110, 1.096, 0.949, 0.680, 0.498, 0.429),
        AT_MS,
    ),
    "p99_ms": HandoverRisk(
        47.52,
        (-1.488, -1.559, -1.740, -2.122, -2.491, -2.597, -2.602),
        (1.238, 1.236, 1.142, 1.071, 0.731, 0.664, 0.493),
        AT_MS,
    ),
    "throughput_rps": HandoverRisk(0.0, (-0.647,), (0.220,)),
}
"""Of the chains of all recordings that ship, by KPI."""


class HandoverForecaster:
    """A prediction of a chain that nobody has measured; its interval holds the risk."""

    def __init__(self, prediction: Forecaster, risk: HandoverRisk) -> None:
        self.kpi, self._prediction, self._risk = prediction.kpi, prediction, risk

    def forecast(self, points: Points) -> Forecast:
        said = self._prediction.forecast(points)
        low, high = self._risk.ends(said.mean)
        # What profiles were unsure of is in the risk already.
        return Forecast(
            said.mean,
            np.maximum(np.minimum(said.low, low), np.log(kpis.SMALLEST)),
            np.maximum(said.high, high),
            said.extrapolates,
        )


def with_handover(
    prediction: Forecaster, risks: Mapping[str, HandoverRisk] | None = None
) -> Forecaster:
    """The prediction with the risk of its KPI, as it is where there is none.

    `risks` are by KPI; by default those that recordings show.
    """
    risk = (MEASURED if risks is None else risks).get(prediction.kpi)
    return prediction if risk is None else HandoverForecaster(prediction, risk)


def says_nothing(low: float, high: float) -> bool:
    """Whether an interval is too wide to be of use."""
    return high > USEFUL * low
