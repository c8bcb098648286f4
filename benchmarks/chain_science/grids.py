"""Grids of samples of functions alone and chained, in two passes (`recordings.py`,
`worlds.py`).

The first pass teaches, the second judges; every pass is on deployments of its own, so that what a
start and drift do counts as error. Of what was measured once, the upper half judges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.models.selection import stated

FIRST = 0
"""The pass that teaches, by repetition."""
CANARIES = 10
"""Of each configuration, at most."""


@dataclass(frozen=True)
class Grid:
    """All samples of a campaign's targets."""

    name: str
    seed: int
    campaign: Campaign
    samples: tuple[Sample, ...]

    @property
    def functions(self) -> tuple[TargetPlan, ...]:
        return tuple(p for p in self.campaign.targets if len(p.target.vnfs) == 1)

    @property
    def judging(self) -> int:
        """The pass that judges: the last."""
        return self.campaign.sampling.repetitions - 1

    @property
    def twice(self) -> bool:
        """Whether it judges on deployments of its own."""
        return self.judging > FIRST

    @property
    def chains(self) -> tuple[TargetPlan, ...]:
        """Those that were measured in every pass."""
        return tuple(
            p
            for p in self.campaign.targets
            if len(p.target.vnfs) > 1 and self.of(p.target.name, self.judging)
        )

    def of(self, target: str, number: int) -> list[Sample]:
        """A pass over a target, by configuration and rising load."""
        own = (s for s in self.samples if s.point.target == target and s.valid)
        own = (s for s in own if s.point.repetition == number)
        return sorted(own, key=lambda s: (s.point.configuration.key, s.point.wl))


@dataclass(frozen=True)
class Split:
    """A chain's samples that state a KPI in every pass, by what they are for.

    The range of a configuration is that of the loads that it carries in every pass; the canary
    may go to the middle of it.

    Attributes
    ----------
    canary : the first pass's in the lower half.
    lower, upper : the last pass's there and above.
    noise : |log ratio| of both passes, by point of the upper half, as `upper` lies; of one pass it
        is not known.
    """

    canary: tuple[Sample, ...]
    lower: tuple[Sample, ...]
    upper: tuple[Sample, ...]
    noise: tuple[float, ...]


def split(grid: Grid, chain: str, kpi: str, canaries: int = CANARIES) -> Split:
    """At most `canaries` of each configuration, the lowest first."""
    passes = [
        {(s.point.configuration, s.point.wl): s for s in grid.of(chain, n) if stated(s, kpi)}
        for n in (FIRST, grid.judging)
    ]
    first, last = passes
    both = [point for point in first if point in last]
    taught: list[Sample] = []
    lower: list[Sample] = []
    upper: list[Sample] = []
    noise: list[float] = []
    for configuration in configurations(both):
        loads = sorted(wl for c, wl in both if c == configuration)
        edge = 0.5 * (loads[0] + loads[-1])
        taught += [first[configuration, wl] for wl in loads if wl <= edge][:canaries]
        lower += [last[configuration, wl] for wl in loads if wl <= edge]
        for wl in loads:
            if wl > edge:
                one, other = (p[configuration, wl].kpis[kpi].value for p in passes)
                upper.append(last[configuration, wl])
                if grid.twice:
                    noise.append(abs(math.log(other / one)))
    return Split(tuple(taught), tuple(lower), tuple(upper), tuple(noise))


def configurations(points: Sequence[tuple[Configuration, float]]) -> list[Configuration]:
    return list(dict.fromkeys(c for c, _ in points))
