"""How fast the simulated lab is: every configuration of a campaign at ten loads each.

python benchmarks/simulation_speed.py demo        # and demo-closed, or a file
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

import numpy as np

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.parameters import OperatingPoint
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab
from workbench.paths import Workspace

SAMPLES = 10
DRIVE_S = 4.5


async def drive_all(campaign: Campaign) -> None:
    """Ten drives of each configuration, log-spaced over its range of `wl`."""
    lab = SimulatedLab(campaign, LabSettings("speed"))
    await lab.open()
    samples = requests = 0
    begin, cpu = time.perf_counter(), time.process_time()
    for plan in campaign.targets:
        await lab.deploy(plan.target, campaign.configurations(plan)[0])
        for configuration in campaign.configurations(plan):
            await lab.allocate(configuration)
            started = time.perf_counter()
            for wl in np.geomspace(plan.primary.low, plan.primary.high, SAMPLES):
                point = OperatingPoint(plan.target.name, configuration, float(wl))
                drive = await lab.drive(point, DRIVE_S, lambda _: None)
                samples += 1
                requests += int(np.isfinite(drive.records.start_s).sum())
            took = time.perf_counter() - started
            print(f"{plan.target.name:<20} {configuration.key:<60} {took:6.2f} s")
    took, burnt = time.perf_counter() - begin, time.process_time() - cpu
    print(
        f"{samples} samples, {requests} requests, {lab.clock():.0f} lab seconds "
        f"in {took:.2f} s ({burnt:.2f} s CPU; target: 8 s for demo)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaign", nargs="?", default="demo")
    given = parser.parse_args()
    campaign = load_campaign(given.campaign, workspace=Workspace(Path.cwd())).campaign
    asyncio.run(drive_all(campaign))


if __name__ == "__main__":
    main()
