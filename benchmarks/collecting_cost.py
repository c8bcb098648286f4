"""`python benchmarks/collecting_cost.py [--pairs 20] [--evidence perf|trace]`: what evidence costs.

One target of the Docker lab (haproxy before tinyproxy), pairs of drives beside each other at one
load, with evidence and without, which comes first drawn anew for each pair: all that is collected
anyway, or only what a campaign asks for besides (`--evidence`). Said of each figure:
the ratio of with to without with its 95 % interval, and beside it the spread of the drives without
(the A/A floor). Issue: under 3 % of a core, and no KPI beyond the floor.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import get_args
from unittest import mock

import numpy as np
from scipy import stats

from workbench.descriptors.loading import load_vnf_templates
from workbench.domain.campaign import Campaign, EvidenceKind, TargetPlan, WindowPlan
from workbench.domain.parameters import (
    Configuration,
    LoadModel,
    OperatingPoint,
    Parameter,
    PrimaryWorkload,
)
from workbench.domain.samples import Measurement
from workbench.domain.topology import Series, Target, Vnf
from workbench.labs.base import LabSettings
from workbench.labs.docker import DockerLab
from workbench.measuring.judging import Terms, judge
from workbench.paths import workspace
from workbench.probes import recorders
from workbench.probes.evidence import ComponentEvidence, HostEvidence

CHAIN = ("haproxy", "tinyproxy")
RATE, SIZE, VCPU, DRIVE_S = 200.0, 10_000.0, 0.5, 5.0
KPIS = ("mean_ms", "p50_ms", "p95_ms", "p99_ms")


@contextmanager
def collecting(wanted: bool, evidence: EvidenceKind) -> Iterator[None]:
    """Without: usage is read as ever, and nothing beside it, or only what is collected anyway."""
    if wanted:
        yield
        return
    if evidence != "kernel":
        with mock.patch.object(recorders, "asked_for", new=mock.AsyncMock(return_value=None)):
            yield
        return
    with (
        mock.patch.object(ComponentEvidence, "read", return_value={}),
        mock.patch.object(HostEvidence, "read", return_value={}),
        mock.patch.object(HostEvidence, "look_round", return_value={}),
    ):
        yield


async def drives(pairs: int, seed: int, evidence: EvidenceKind) -> list[tuple[bool, Measurement]]:
    parts = tuple(Vnf(name, name) for name in CHAIN)
    target, load = Target("-".join(CHAIN), Series(parts)), LoadModel("open")
    campaign = Campaign(
        "collecting",
        (TargetPlan(target, (), PrimaryWorkload("rate", 1, 10_000)),),
        tuple(load_vnf_templates(workspace=workspace(None))),
        (Parameter("filesize_bytes", (SIZE,), "B"),),
        load,
        generator="steady",
        evidence=evidence,
    )
    configuration = Configuration({f"{n}.vcpu": VCPU for n in CHAIN}, {"filesize_bytes": SIZE})
    point, terms = (
        OperatingPoint(target.name, configuration, RATE),
        Terms(load, WindowPlan(), None, "p95_ms"),
    )
    lab = DockerLab(campaign, LabSettings(f"collecting-{secrets.token_hex(4)}", oversubscribe=True))
    found, order = [], random.Random(seed)
    try:
        await lab.open()
        await lab.deploy(target, configuration)
        await lab.drive(point, DRIVE_S, lambda _: None)  # everything is warm after it
        for number in range(pairs):
            for wanted in order.sample([True, False], 2):
                with collecting(wanted, evidence):
                    began = time.time()
                    drive = await lab.drive(point, DRIVE_S, lambda _: None)
                one = judge([drive], point, terms, started_at=began, lab_s=DRIVE_S).measurement
                found.append((wanted, one))
            print(f"pair {number + 1} of {pairs}", flush=True)
    finally:
        await lab.close()
    return found


def _kpi(one: Measurement, name: str) -> float | None:
    return one.sample.kpi(name)


def _cores(one: Measurement, name: str) -> float | None:
    return one.sample.usage[name].cpu_cores


def table(found: list[tuple[bool, Measurement]]) -> str:
    """Ratios of with to without over the pairs, in the order in which they were driven."""
    lines = [
        "| figure | without | with / without | 95 % | spread of those without |",
        "|---|---|---|---|---|",
    ]
    with_, without = ([m for wanted, m in found if wanted is which] for which in (True, False))
    figures: dict[str, Callable[[Measurement], float | None]] = {
        name: partial(_kpi, name=name) for name in KPIS
    }
    figures |= {f"CPU of {name}, cores": partial(_cores, name=name) for name in CHAIN}
    for name, value in figures.items():
        logs = np.log(
            np.array([[value(m) for m in side] for side in (with_, without)], dtype=float)
        )
        ratios = logs[0] - logs[1]
        middle, error = float(ratios.mean()), float(stats.sem(ratios))
        low, high = stats.t.interval(0.95, ratios.size - 1, middle, error)
        spread = float(logs[1].std(ddof=1))
        lines.append(
            f"| {name} | {np.exp(logs[1].mean()):.4g} | {np.exp(middle):.3f} | "
            f"{np.exp(low):.3f} to {np.exp(high):.3f} | {spread:.1%} |"
        )
    cores = [
        o.value for m in with_ for o in m.observations if o.name == "collecting_cores" and o.value
    ]
    lines.append(f"\ncollecting: {np.mean(cores):.4f} cores on average, {max(cores):.4f} at most")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--evidence", choices=get_args(EvidenceKind), default="kernel")
    given = parser.parse_args()
    print(table(asyncio.run(drives(given.pairs, given.seed, given.evidence))))
