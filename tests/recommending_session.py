"""A session of two functions whose laws are known, for tests of recommendations.

Closed loop without think time: a function carries `PER_CORE` requests a second for each of its
cores, so that n clients wait n/X. tinyproxy has at most one core: of 100 clients on it none waits
less than a second. haproxy can balance.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from session_making import EPOCH, created, measurement

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.events import CampaignPlanned, Fact, RunFinished, RunStarted, SampleTaken
from workbench.domain.parameters import (
    Configuration,
    LoadModel,
    Parameter,
    PrimaryWorkload,
    Sla,
)
from workbench.domain.samples import Estimate, Measurement, Usage
from workbench.domain.sessions import Plan, PlannedConfiguration
from workbench.domain.topology import ConfigurationFile, Series, Target, Vnf, VnfTemplate
from workbench.paths import Workspace
from workbench.store.session_file import SessionFile

SESSION = "pair"
CHAIN = "haproxy-tinyproxy"
"""A shipped template, and no target of the campaign."""
PER_CORE = {"tinyproxy": 100.0, "haproxy": 1000.0}
CORES = {"tinyproxy": (0.25, 0.5, 0.75, 1.0), "haproxy": (0.25, 0.5, 1.0)}
LOADS = (4.0, 20.0, 100.0, 500.0)
LAB_S = 10.0
"""What a sample costs."""

FILES = (ConfigurationFile("/etc/own.cfg", "server s$upstream_number $upstream_host"),)
PRIMARY = PrimaryWorkload("concurrent", 4.0, 500.0, "log", "requests", integer=True)
SIZES = (Parameter("filesize_bytes", (10_000.0,), "bytes"),)


def campaign(*chains: Target) -> Campaign:
    """Both functions on their own, or these chains instead."""
    alone = tuple(Target(name, Vnf(name, name)) for name in PER_CORE)
    return Campaign(
        "pair",
        tuple(
            TargetPlan(
                target,
                tuple(Parameter(f"{v.name}.vcpu", CORES[v.template], "cores") for v in target.vnfs),
                PRIMARY,
            )
            for target in chains or alone
        ),
        (
            VnfTemplate("tinyproxy", image="tinyproxy"),
            VnfTemplate("haproxy", image="haproxy", files=FILES),
        ),
        SIZES,
        LoadModel("closed"),
        kpi_max=60_000.0,
        sla=Sla("p95_ms", 1000.0, "<=", 80.0),
        profile_model="interpolation",
    )


def measured_chain() -> Target:
    return Target(CHAIN, Series((Vnf("haproxy", "haproxy"), Vnf("tinyproxy", "tinyproxy"))))


def sample(plan: TargetPlan, configuration: Configuration, wl: float) -> Measurement:
    carries = dict.fromkeys(PER_CORE, 0.0)
    for v in plan.target.vnfs:  # instances share the load
        carries[v.template] += PER_CORE[v.template] * configuration.vcpu(v.name)
    rate = min(together for together in carries.values() if together)
    p95 = 1000.0 * wl / rate
    made = measurement(plan.target.name, configuration, wl)
    usage = {
        v.name: Usage(rate / PER_CORE[v.template], rate / carries[v.template])
        for v in plan.target.vnfs
    }
    kpis = {
        "p95_ms": Estimate(p95, p95 / 1.02, p95 * 1.02),
        "throughput_rps": Estimate(rate, rate / 1.02, rate * 1.02),
    }
    taken = replace(
        made.sample, kpis=kpis, usage=usage, load_model="closed", bypass=None, lab_s=LAB_S
    )
    return replace(made, sample=taken)


def make_workspace(root: Path, asked: Campaign | None = None) -> Workspace:
    """A workspace with the session in it, closed."""
    workspace = Workspace(root)
    workspace.sessions.mkdir(parents=True, exist_ok=True)
    asyncio.run(write_session(workspace.sessions / f"{SESSION}.duckdb", asked or campaign()))
    return workspace


async def write_session(path: Path, asked: Campaign) -> None:
    """The session as a file, closed."""
    points = [
        (plan, configuration, wl)
        for plan in asked.targets
        for configuration in asked.configurations(plan)
        for wl in LOADS
    ]
    planned = tuple(
        PlannedConfiguration(0, name, configuration, len(LOADS), LAB_S * len(LOADS))
        for name, configuration in dict.fromkeys((p.target.name, c) for p, c, _ in points)
    )
    lab_s = LAB_S * len(points)
    facts: list[tuple[Fact, Measurement | None]] = [
        (CampaignPlanned(Plan(asked.name, "sim", planned, len(points), lab_s)), None),
        (RunStarted(False, None), None),
        *((SampleTaken(taken.sample), taken) for taken in (sample(*point) for point in points)),
        (RunFinished("done", len(points), 0, 1.0, lab_s, ()), None),
    ]
    file = await SessionFile.create(path, replace(created(), campaign=asked), at=EPOCH)
    stored = [
        file.append(fact, at=EPOCH + number, measurement=taken)
        for number, (fact, taken) in enumerate(facts)
    ]
    await asyncio.gather(*stored)
    await file.close()
