"""`python benchmarks/collecting_cost.py [--pairs 20] [--of perf]`: what collecting evidence costs.

One target of the Docker lab (haproxy before tinyproxy), pairs of drives beside each other at one
load, with evidence and without, which comes first drawn anew for each pair: all that is collected
anyway, or only what a campaign asks for besides (`--of perf`). `--of in-band` is what evidence is
an alternative to: every packet at haproxy is copied to a program that reads it (netsniff-ng, on any
core), as monitoring by mirrored packets does. Said of each figure: the ratio of with to without
with its 95 % interval, and beside it the spread of the drives without (the A/A floor). Issue: under
3 % of a core, and no KPI beyond the floor. Needs an engine; `in-band` root and netsniff-ng, too.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from tempfile import TemporaryDirectory
from typing import Literal, get_args
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
IN_BAND: Literal["in-band"] = "in-band"
Collected = EvidenceKind | Literal["in-band"]


@contextmanager
def packets_copied(pid: int) -> Iterator[None]:
    """Every packet of the network namespace that `pid` is in is copied, and counted by its end."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        argv = ["nsenter", "-t", str(pid), "-n", "netsniff-ng", "--in", "any", "--silent"]
        argv += ["--out", f"{folder}/copied.pcap"]
        copying = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            time.sleep(0.3)
            yield
        finally:
            copying.send_signal(signal.SIGINT)
            said = copying.communicate(timeout=30)[0].decode()
    if copying.returncode or "packets incoming" not in said:
        raise SystemExit(f"netsniff-ng copied nothing: {said.strip()}")


@contextmanager
def collecting(wanted: bool, evidence: EvidenceKind, copied: int | None) -> Iterator[None]:
    """Without: usage is read as ever, and nothing beside it, or only what is collected anyway.

    `copied` is the process whose packets are copied instead, with evidence on both sides.
    """
    if copied is not None:
        with packets_copied(copied) if wanted else nullcontext():
            yield
        return
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


async def drives(pairs: int, seed: int, collected: Collected) -> list[tuple[bool, Measurement]]:
    evidence: EvidenceKind = "kernel" if collected == IN_BAND else collected
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
        pid = lab._deployed.component(CHAIN[0]).pid if collected == IN_BAND else None
        for number in range(pairs):
            for wanted in order.sample([True, False], 2):
                with collecting(wanted, evidence, pid):
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
    parser.add_argument("--of", choices=[*get_args(EvidenceKind), IN_BAND], default="kernel")
    given = parser.parse_args()
    print(table(asyncio.run(drives(given.pairs, given.seed, given.of))))
