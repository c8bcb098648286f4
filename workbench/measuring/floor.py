"""The variance floor: how far one visit to a point scatters, whatever its batches agree on.

Batches of one visit share its luck: the start of the function, the minute, the state of the host.
Only visits tell what that is worth, and no point has enough of them; so their scatter is pooled
over the campaign (METHOD.md 6), in logs, for throughput, mean and p95 apart.

Two components (Searle, Casella & McCulloch, Variance Components, 1992, ch. 3): `window_sd` is
between visits on one deployment, what another window averages out; `visit_sd` is between visits
on different deployments and holds both. Each is pooled over the pairs of its kind and shrunk to
what was known before: to the host's own A/A run, else to METHOD.md 6.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from workbench.domain.kpis import BUILT_IN, THROUGHPUT, of
from workbench.domain.lab import HostNoise
from workbench.domain.parameters import OperatingPoint
from workbench.domain.samples import Sample
from workbench.measuring.intervals import NORMAL, t_quantile

METHOD_SD = {name: kpi.window_sd for name, kpi in BUILT_IN.items() if kpi.window_sd is not None}
"""Log-sd of one window of 2-3 s (METHOD.md 6), where nothing else is known."""
METHOD_DEGREES = 2.0
"""Degrees of freedom that these figures are worth: they come from other functions."""
HOST_DEGREES = 10.0
"""The most that the host's own A/A run is worth: it is of another point."""
_BOUNDS = frozenset({"overloaded", "censored"})


@dataclass(frozen=True)
class VarianceFloor:
    """Log-sd that a sample's KPI has at least.

    Attributes
    ----------
    window_sd, visit_sd : by KPI (`throughput_rps`, `mean_ms`, `p95_ms`); `visit_sd` is of a visit
        with one window, and at least `window_sd`.
    degrees : by KPI whose scatter was seen to exceed the prior: the degrees of freedom that
        `visit_sd` rests on, the prior's included. It is an estimate then, and pays as one.
    """

    window_sd: Mapping[str, float]
    visit_sd: Mapping[str, float]
    degrees: Mapping[str, float]

    def sd(self, kpi: str, windows: int) -> float:
        """Of a KPI of a visit with so many windows; 0 for one that is no figure on a log scale."""
        kind = of(kpi).scatters_as
        window, visit = self.window_sd.get(kind, 0.0), self.visit_sd.get(kind, 0.0)
        return math.sqrt(max(0.0, visit**2 - window**2) + window**2 / windows)

    def half(self, kpi: str, windows: int) -> float:
        """Half width, in logs, that the KPI's 95 % interval has at least."""
        degrees = self.degrees.get(of(kpi).scatters_as)
        quantile = t_quantile(int(degrees)) if degrees else NORMAL
        return quantile * self.sd(kpi, windows)


METHOD_FLOOR = VarianceFloor(METHOD_SD, METHOD_SD, {})


def variance_floor(samples: Sequence[Sample], noise: HostNoise | None = None) -> VarianceFloor:
    """The floor as the samples of a session tell it so far.

    Repetitions of a point count, if they are valid. Half the mean squared difference of their
    logs is their variance: over pairs of one block for `window_sd`, of different blocks for
    `visit_sd`. With one sample per block the latter is the usual unbiased variance. A visit of w
    windows has a w-th of the variance between windows: pairs of one block are scaled to one window
    each, and to pairs of different blocks the part that their windows averaged out is added.

    Parameters
    ----------
    samples : sequence of Sample, in any order; those of other points than repeated ones are free.
    noise : HostNoise, optional: what `doctor --measure` saw on this lab.
    """
    window_sd: dict[str, float] = {}
    visit_sd: dict[str, float] = {}
    degrees: dict[str, float] = {}
    for kpi in METHOD_SD:
        within, between = _Pooled(), _Pooled()
        window, visit, worth = _prior(kpi, noise)
        repeated = list(_repetitions(samples, kpi).values())
        for visits in repeated:
            alike = [(a, b) for a, b in combinations(visits, 2) if a.block == b.block]
            halves = [(a.log - b.log) ** 2 / (a.share + b.share) for a, b in alike]
            within.add(halves, len(visits) - len({visit.block for visit in visits}))
        window_sd[kpi] = within.shrunk(window, worth)
        for visits in repeated:
            apart = [(a, b) for a, b in combinations(visits, 2) if a.block != b.block]
            halves = [
                (a.log - b.log) ** 2 / 2 + window_sd[kpi] ** 2 * (1 - (a.share + b.share) / 2)
                for a, b in apart
            ]
            between.add(halves, len({visit.block for visit in visits}) - 1)
        visit_sd[kpi] = max(window_sd[kpi], between.shrunk(visit, worth))
        if visit_sd[kpi] > max(window, visit):
            degrees[kpi] = worth + max(within.degrees, between.degrees)
    return VarianceFloor(window_sd, visit_sd, degrees)


class _Pooled:
    """A variance pooled over points by their degrees of freedom."""

    def __init__(self) -> None:
        self.degrees = 0.0
        self._squares = 0.0

    def add(self, halves: Sequence[float], degrees: int) -> None:
        """Half the squared differences of the pairs of one point."""
        if halves:
            self.degrees += degrees
            self._squares += degrees * sum(halves) / len(halves)

    def shrunk(self, prior_sd: float, worth: float) -> float:
        """The pooled standard deviation, drawn to a prior that is worth so many degrees."""
        return math.sqrt((worth * prior_sd**2 + self._squares) / (worth + self.degrees))


@dataclass(frozen=True)
class _Visit:
    """A sample that states the KPI; `share` of a window's variance that it has."""

    block: int
    log: float
    share: float


def _repetitions(samples: Sequence[Sample], kpi: str) -> Mapping[object, list[_Visit]]:
    """The samples that state the KPI, by operating point."""
    found: dict[object, list[_Visit]] = defaultdict(list)
    for sample in samples:
        value = sample.kpi(kpi)
        if sample.valid and value and value > 0 and _varies(sample, kpi):
            visit = _Visit(sample.block, math.log(value), 1.0 / max(1, sample.windows))
            found[_place(sample.point)].append(visit)
    return found


def _place(point: OperatingPoint) -> object:
    return point.target, point.configuration, point.wl


def _varies(sample: Sample, kpi: str) -> bool:
    """Whether the function sets the figure: not the plan, and not the time it was watched."""
    if kpi == THROUGHPUT:
        return sample.load_model.startswith("closed") or "overloaded" in sample.labels
    return _BOUNDS.isdisjoint(sample.labels)


def _prior(kpi: str, noise: HostNoise | None) -> tuple[float, float, float]:
    """Log-sd of a window and of a visit, and the degrees of freedom that they are worth."""
    if noise is None or kpi not in noise.window_sd:
        return METHOD_SD[kpi], METHOD_SD[kpi], METHOD_DEGREES
    window = noise.window_sd[kpi]
    more = (noise.restart_sd.get(kpi, 0.0), noise.drift_sd.get(kpi, 0.0))
    worth = min(HOST_DEGREES, max(1.0, noise.samples - noise.deployments))
    return window, math.hypot(window, *more), worth
