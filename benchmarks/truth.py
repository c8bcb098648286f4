"""True breakpoints of a campaign on the simulated lab: the same rules on noise-free long runs.

python benchmarks/truth.py demo                   # and demo-closed, or a file
python benchmarks/truth.py demo --options source_cap=0.7
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.parameters import Configuration
from workbench.labs.simulated.options import SimulationOptions
from workbench.labs.simulated.truth import Truth
from workbench.paths import Workspace


@dataclass(frozen=True)
class TrueBreakpoints:
    """What one configuration really does, as `wl`.

    `capacity` may lie outside the campaign's range; `sla` is None where its limit is not crossed
    within that range.
    """

    plan: TargetPlan
    configuration: Configuration
    capacity: float
    sla: float | None


def true_breakpoints(
    campaign: Campaign, options: SimulationOptions | None = None, *, seconds: float = 20.0
) -> Iterator[TrueBreakpoints]:
    """For every configuration of a campaign."""
    for plan in campaign.targets:
        for configuration in campaign.configurations(plan):
            truth = Truth(campaign, plan.target, configuration, options, seconds=seconds)
            low, high, sla = plan.primary.low, plan.primary.high, campaign.sla
            crossing = truth.crossing(sla.kpi, sla.limit, low, high) if sla else None
            yield TrueBreakpoints(plan, configuration, truth.capacity(), crossing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaign", nargs="?", default="demo")
    parser.add_argument("--options", default="", help="as after `sim:`")
    parser.add_argument("--seconds", type=float, default=20.0, help="virtual length of each run")
    given = parser.parse_args()
    campaign = load_campaign(given.campaign, workspace=Workspace(Path.cwd())).campaign
    options = SimulationOptions.parse(given.options)
    print(f"{'target':<20} {'configuration':<60} {'capacity':>10} {'sla':>10} {'wall s':>7}")
    begin = time.perf_counter()
    for found in true_breakpoints(campaign, options, seconds=given.seconds):
        now = time.perf_counter()
        figures = " ".join(
            f"{'none':>10}" if wl is None else f"{wl:10.2f}" for wl in (found.capacity, found.sla)
        )
        name, key = found.plan.target.name, found.configuration.key
        print(f"{name:<20} {key:<60} {figures} {now - begin:7.2f}")
        begin = now


if __name__ == "__main__":
    main()
