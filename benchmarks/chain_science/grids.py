"""Grids of samples in two passes, of functions alone and chained: recorded, or simulated by seed.

The first pass teaches, the second judges; every pass is on deployments of its own, so that what a
start and drift do counts as error.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench_truth.playing import play

from chain_science.stored import LAB, ROOT, digest, kept
from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.events import SessionCreated
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.models.selection import stated
from workbench.paths import Workspace
from workbench.store.recordings import read_whole

FIRST, SECOND = 0, 1
"""Passes, by repetition."""
RECORDED = "science-open"

TRAPS = (
    "coalescing=1.15,restart_sd=0.02,freedom=4,outlier_share=0.05,outlier_factor=2,"
    "capacity_spread=1.6"
)
"""Beside the effects that are on by default (delayed acknowledgements, closed connections): a
function behind another needs less CPU, every seed has functions of another capacity, and noise
has heavy tails (docs/simulated-lab.md)."""


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
    def chains(self) -> tuple[TargetPlan, ...]:
        """Those that were measured in both passes."""
        return tuple(
            p
            for p in self.campaign.targets
            if len(p.target.vnfs) > 1 and self.of(p.target.name, SECOND)
        )

    def of(self, target: str, number: int) -> list[Sample]:
        """A pass over a target, by configuration and rising load."""
        own = (s for s in self.samples if s.point.target == target and s.valid)
        own = (s for s in own if s.point.repetition == number)
        return sorted(own, key=lambda s: (s.point.configuration.key, s.point.wl))


@dataclass(frozen=True)
class Split:
    """A chain's samples that state a KPI in both passes, by what they are for.

    The range of a configuration is that of the loads that it carries in both passes; the canary
    may go to the middle of it.

    Attributes
    ----------
    canary : the first pass's in the lower half.
    lower, upper : the second pass's there and above.
    noise : |log ratio| of both passes, by point of the upper half, as `upper` lies.
    """

    canary: tuple[Sample, ...]
    lower: tuple[Sample, ...]
    upper: tuple[Sample, ...]
    noise: tuple[float, ...]


def split(grid: Grid, chain: str, kpi: str, canaries: int) -> Split:
    """At most `canaries` of each configuration, the lowest first."""
    passes = [
        {(s.point.configuration, s.point.wl): s for s in grid.of(chain, n) if stated(s, kpi)}
        for n in (FIRST, SECOND)
    ]
    both = [point for point in passes[FIRST] if point in passes[SECOND]]
    taught: list[Sample] = []
    lower: list[Sample] = []
    upper: list[Sample] = []
    noise: list[float] = []
    for configuration in configurations(both):
        loads = sorted(wl for c, wl in both if c == configuration)
        edge = 0.5 * (loads[0] + loads[-1])
        taught += [passes[FIRST][configuration, wl] for wl in loads if wl <= edge][:canaries]
        lower += [passes[SECOND][configuration, wl] for wl in loads if wl <= edge]
        for wl in loads:
            if wl > edge:
                one, other = (p[configuration, wl].kpis[kpi].value for p in passes)
                upper.append(passes[SECOND][configuration, wl])
                noise.append(abs(math.log(other / one)))
    return Split(tuple(taught), tuple(lower), tuple(upper), tuple(noise))


def configurations(points: Sequence[tuple[Configuration, float]]) -> list[Configuration]:
    return list(dict.fromkeys(c for c, _ in points))


# ------------------------------------------------------------------------- where they come from


def recorded() -> Grid:
    """The bundle of a real lab; there is one, whatever the seed."""
    events, measurements = read_whole(ROOT / "sessions" / "recorded" / RECORDED)
    campaign = next(e.fact.campaign for e in events if isinstance(e.fact, SessionCreated))
    return Grid(RECORDED, 0, campaign, tuple(m.sample for m in measurements))


KEPT = "function.closes=0"
SIMULATED = {
    "simulated-open": ("science-open", ""),
    "simulated-closed": ("science-closed", ""),
    "simulated-kept": ("science-closed", KEPT),
}
"""Grids by the shipped campaign that they play, and options beside `TRAPS`. tinyproxy closes its
connections, so that haproxy beside it needs four times the CPU that it needs alone; where they are
kept, chains differ by what METHOD.md 9 names."""


def simulated(name: str, seed: int) -> Grid:
    """A shipped campaign on the simulated lab with files of one size, in the world of that seed."""
    workspace = Workspace(ROOT / ".cache" / "workspace")
    campaign = load_campaign(SIMULATED[name][0], workspace=workspace).campaign
    sizes = tuple(replace(p, values=p.values[:1]) for p in campaign.workload)
    campaign = replace(campaign, workload=sizes)
    options = options_of(name, seed)
    # Profiles learn from one pass; the chain is judged by a second.
    sampling = campaign.sampling
    single = replace(sampling, max_samples=sampling.max_samples // 2, repetitions=1)
    once = replace(campaign, sampling=single)

    def played() -> list[Sample]:
        found: list[Sample] = []
        for plan in campaign.targets:
            asked = once if len(plan.target.vnfs) == 1 else campaign
            found += asyncio.run(play(asked, plan, seed, options))[0]
        return found

    key = f"{seed}-{digest('grids.py', *LAB)}"
    return Grid(name, seed, campaign, tuple(kept(name, key, list[Sample], played)))


def options_of(name: str, seed: int) -> str:
    """Of the simulated lab: every seed is another world."""
    own = SIMULATED[name][1]
    return ",".join(part for part in (TRAPS, own, f"world={seed}") if part)
