"""How fast the simulated lab is: a campaign, or one small function at typical loads.

python benchmarks/simulation_speed.py demo        # and demo-closed, or a file
python benchmarks/simulation_speed.py --small     # drive and judge of a function of 250 requests/s
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import numpy as np

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.parameters import LoadModel, OperatingPoint, Parameter, PrimaryWorkload
from workbench.domain.topology import Target, Vnf, VnfTemplate
from workbench.engine.learning.sampler_worker import judge_drives
from workbench.labs.base import LabSettings
from workbench.labs.simulated import SimulatedLab
from workbench.paths import Workspace

SAMPLES = 10
DRIVE_S = 4.5
REPETITIONS = 15
SMALL: tuple[tuple[str, LoadModel, Mapping[str, float], tuple[float, ...]], ...] = (
    ("open loop", LoadModel("open"), {}, (50.0, 200.0, 260.0, 400.0, 1000.0)),
    ("open loop, 4 threads", LoadModel("open"), {"threads": 4.0}, (200.0, 400.0)),
    ("open loop, sheds", LoadModel("open"), {"buffer": 20.0, "sheds": 1.0}, (200.0, 400.0)),
    ("closed loop", LoadModel("closed"), {}, (1.0, 4.0, 64.0)),
    ("closed loop, Z 0.1 s", LoadModel("closed", 0.1), {}, (4.0, 64.0)),
)
"""Loads of a function that carries 250 requests/s."""


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


def small(load: LoadModel, stand_in: Mapping[str, float]) -> Campaign:
    plan = TargetPlan(
        Target("f", Vnf("f", "f")),
        (Parameter("f.vcpu", (0.25,)),),
        PrimaryWorkload("rate", 1.0, 1000.0),
    )
    return Campaign(
        name="small",
        targets=(plan,),
        templates=(
            VnfTemplate("f", simulated={"service_us": 1000.0, "per_kb_us": 0.0, **stand_in}),
            VnfTemplate("source", role="source"),
            VnfTemplate("sink", role="sink"),
        ),
        workload=(),
        load=load,
    )


async def drive_small() -> None:
    """Median CPU of a drive and of its judgement, in ms."""
    print(f"{'load':<24} {'wl':>6} {'drive':>8} {'judge':>8}   ms of CPU (target: 10 together)")
    for name, load, stand_in, wls in SMALL:
        campaign = small(load, stand_in)
        lab = SimulatedLab(campaign, LabSettings("speed"))
        (plan,) = campaign.targets
        configuration = campaign.configurations(plan)[0]
        await lab.deploy(plan.target, configuration)
        for wl in wls:
            costs = []
            for repetition in range(REPETITIONS):
                point = OperatingPoint("f", configuration, wl, repetition)
                begin = time.process_time()
                drive = await lab.drive(point, DRIVE_S, lambda _: None)
                driven = time.process_time()
                judge_drives(campaign, [drive], point, 0.0, 0.0)
                costs.append((driven - begin, time.process_time() - driven))
            driving, judging = (1e3 * median(column) for column in zip(*costs, strict=True))
            print(f"{name:<24} {wl:6.0f} {driving:8.1f} {judging:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("campaign", nargs="?", default="demo")
    parser.add_argument("--small", action="store_true", help="one function of 250 requests/s")
    given = parser.parse_args()
    if given.small:
        asyncio.run(drive_small())
        return
    campaign = load_campaign(given.campaign, workspace=Workspace(Path.cwd())).campaign
    asyncio.run(drive_all(campaign))


if __name__ == "__main__":
    main()
