"""An alarm when later samples leave the model that was accepted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from workbench.domain.counts import counted
from workbench.domain.errors import DataError
from workbench.domain.retraining import Drift
from workbench.domain.samples import Sample
from workbench.models.base import Floats
from workbench.models.forecast import Forecaster
from workbench.models.scales import log_kpi, log_sd
from workbench.models.selection import stated

SAMPLES_PER_FALSE_ALARM = 500.0
ALLOWANCE = 0.5
"""Standard deviations that a mean may be off before it counts: half of the shift that is found
fastest."""
CLIPPED = 3.0
"""Standard deviations that a single sample counts for at most: one stall is no drift."""


def drift(
    chain: str,
    samples: Sequence[Sample],
    forecaster: Forecaster,
    *,
    kpi_max: float,
    shared_sd: float = 0.0,
    samples_per_false_alarm: float = SAMPLES_PER_FALSE_ALARM,
) -> Drift:
    """Whether later samples leave an accepted model, by a two-sided CUSUM of log residuals.

    A residual is over its standard deviation (the model's, the sample's, `shared_sd`) and counts
    for three at most. The threshold gives the stated number of samples until a false alarm
    (Siegmund 1985, Sequential Analysis, ch. 2: (exp(2kb) - 2kb - 1) / (2k²) with b = h + 1.166 and
    allowance k, half of that for two sides). The first alarm ends the watch.

    A sample that only bounds its KPI from below counts as its bound where that lies above the
    model: a chain that is suddenly overloaded drifts, whatever its response time may be.

    Raises
    ------
    DataError
        If no sample of the chain is valid and has the KPI.
    """
    kpi = forecaster.kpi
    own = [s for s in samples if s.point.target == chain and s.valid and kpi in s.kpis]
    if not own:
        raise DataError(
            f"no sample says how {kpi} is now", where=chain, remedy="Measure the chain again"
        )
    own.sort(key=lambda s: s.started_at)
    said = forecaster.forecast([(s.point.configuration, s.point.wl) for s in own])
    ceiling = log_kpi(kpi, kpi_max)
    gap = np.array([min(log_kpi(kpi, s.kpis[kpi].value), ceiling) for s in own]) - said.mean
    noise = np.array([log_sd(kpi, s.kpis[kpi]) for s in own])
    model = np.where(gap < 0.0, *said.sd)
    z = np.clip(gap / np.sqrt(model**2 + noise**2 + shared_sd**2), -CLIPPED, CLIPPED)
    says = np.array([stated(s, kpi) is not None for s in own]) | (gap > 0.0)
    own = [s for s, yes in zip(own, says, strict=True) if yes]
    z, gap = z[says], gap[says]

    rate, limit = 1.0 / samples_per_false_alarm, threshold(samples_per_false_alarm)
    above, below = _alarm(z, limit), _alarm(-z, limit)
    alarm = min(filter(None, (above, below)), key=lambda run: run[1], default=None)
    if alarm is None:
        note = f"the model agrees with {counted(len(own), 'sample')}"
        return Drift(chain, kpi, len(own), "", None, 0.0, rate, note)
    run, direction = slice(*alarm), _direction(alarm == above)
    count = alarm[1] - alarm[0]
    note = (
        f"{kpi} has drifted {direction} the model: the last {count} samples are "
        f"{math.exp(float(gap[run].mean())):.2f} times what it says"
    )
    last = own[alarm[1] - 1].id
    return Drift(chain, kpi, alarm[1], direction, last, float(z[run].mean()), rate, note)


def threshold(samples_per_false_alarm: float, sides: int = 2) -> float:
    """h of a CUSUM of one or two sides with so many samples until a false alarm."""

    def until(h: float) -> float:
        b = 2.0 * ALLOWANCE * (h + 1.166)
        return (math.exp(b) - b - 1.0) / (2.0 * sides * ALLOWANCE**2)

    low, high = 0.0, 50.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if until(middle) < samples_per_false_alarm else (low, middle)
    return high


def _direction(above: bool) -> Literal["above", "below"]:
    return "above" if above else "below"


def _alarm(z: Floats, limit: float) -> tuple[int, int] | None:
    """Where the sum was last zero, and how many samples it took to pass the limit; or None."""
    run = Cusum(limit)
    for value in z:
        if run.add(float(value)):
            return run.since, run.taken
    return None


@dataclass
class Cusum:
    """One side of the test, value by value, for as long as one watches.

    Attributes
    ----------
    limit : of `threshold`.
    since : how many values had come when the sum was last zero.
    taken : how many have come.
    """

    limit: float
    total: float = 0.0
    since: int = 0
    taken: int = 0

    def add(self, value: float) -> bool:
        """Take in a residual in standard deviations; whether the sum is past its limit now."""
        self.taken += 1
        self.total += max(-CLIPPED, min(CLIPPED, value)) - ALLOWANCE
        if self.total <= 0.0:
            self.total, self.since = 0.0, self.taken
        return self.total > self.limit
