"""Grids of the simulated lab: every seed is another world."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bench_truth.playing import play

from chain_science.grids import Grid
from chain_science.stored import LAB, ROOT, digest, kept
from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import TargetPlan
from workbench.domain.samples import Sample
from workbench.paths import Workspace

TRAPS = (
    "coalescing=1.15,restart_sd=0.02,freedom=4,outlier_share=0.05,outlier_factor=2,"
    "capacity_spread=1.6"
)
"""Beside the effects that are on by default (delayed acknowledgements, closed connections): a
function behind another needs less CPU, every seed has functions of another capacity, and noise
has heavy tails (docs/simulated-lab.md)."""

CAMPAIGN = "science-closed"
SIMULATED = {"simulated-closed": "", "simulated-kept": "function.closes=0"}
"""Grids by their options beside `TRAPS`. tinyproxy closes its connections, so that haproxy beside
it needs four times the CPU that it needs alone; where they are kept, chains differ by what
METHOD.md 9 names."""


def simulated(name: str, seed: int) -> Grid:
    """The campaign on the simulated lab with files of one size, in the world of that seed."""
    workspace = Workspace(ROOT / ".cache" / "workspace")
    campaign = load_campaign(CAMPAIGN, workspace=workspace).campaign
    sizes = tuple(replace(p, values=p.values[:1]) for p in campaign.workload)
    campaign = replace(campaign, workload=sizes)
    # Profiles learn from one pass; the chain is judged by a second.
    sampling = campaign.sampling
    single = replace(sampling, max_samples=sampling.max_samples // 2, repetitions=1)
    once = replace(campaign, sampling=single)
    options = options_of(name, seed)
    code = digest("worlds.py", f"templates/campaigns/{CAMPAIGN}.yaml", *LAB)

    def samples_of(plan: TargetPlan) -> list[Sample]:
        asked = once if len(plan.target.vnfs) == 1 else campaign
        key = f"{name}-{plan.target.name}", f"{seed}-{code}"
        return kept(*key, list[Sample], lambda: asyncio.run(play(asked, plan, seed, options))[0])

    samples = tuple(sample for plan in campaign.targets for sample in samples_of(plan))
    return Grid(name, seed, campaign, samples)


def options_of(name: str, seed: int) -> str:
    """Of the simulated lab."""
    return ",".join(part for part in (TRAPS, SIMULATED[name], f"world={seed}") if part)
