"""True breakpoints of a campaign on the simulated lab: the same rules on noise-free long runs.

python benchmarks/truth.py demo                   # and demo-closed, or a file
python benchmarks/truth.py demo --options function.knee_width=0.3,world=4
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench_truth.long_runs import TrueBreakpoint, Truth

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import BreakpointRule
from workbench.labs.simulated.options import SimulationOptions
from workbench.paths import Workspace

RULES: tuple[BreakpointRule, ...] = ("capacity", "knee", "cpu", "sla")


@dataclass(frozen=True)
class TrueBreakpoints:
    """What one configuration really does, by rule."""

    plan: TargetPlan
    configuration: Configuration
    by_rule: Mapping[BreakpointRule, TrueBreakpoint]


def true_breakpoints(
    campaign: Campaign, options: SimulationOptions | None = None, *, seconds: float = 24.0
) -> Iterator[TrueBreakpoints]:
    """For every configuration of a campaign; what was found before is not sought again."""
    for plan in campaign.targets:
        for configuration in campaign.configurations(plan):
            truth = Truth(campaign, plan.target, configuration, options, seconds=seconds)
            yield TrueBreakpoints(plan, configuration, truth.breakpoints())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaign", nargs="?", default="demo")
    parser.add_argument("--options", default="", help="as after `sim:`")
    parser.add_argument("--seconds", type=float, default=24.0, help="virtual length of each figure")
    given = parser.parse_args()
    campaign = load_campaign(given.campaign, workspace=Workspace(Path.cwd())).campaign
    options = SimulationOptions.parse(given.options)
    columns = " ".join(f"{rule:>14}" for rule in RULES)
    print(f"{'target':<20} {'configuration':<60} {columns} {'wall s':>7}")
    begin = time.perf_counter()
    for found in true_breakpoints(campaign, options, seconds=given.seconds):
        now = time.perf_counter()
        answers = (found.by_rule.get(rule) for rule in RULES)
        figures = " ".join(
            f"{'-':>14}" if a is None else f"{a.state if a.wl is None else f'{a.wl:.4g}':>14}"
            for a in answers
        )
        name, key = found.plan.target.name, found.configuration.key
        print(f"{name:<20} {key:<60} {figures} {now - begin:7.2f}")
        begin = now


if __name__ == "__main__":
    main()
