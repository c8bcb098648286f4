"""`python benchmarks/collecting_cost.py [--pairs 20] [--of perf]`: what collecting evidence costs.

One target of the Docker lab (haproxy before tinyproxy), pairs of drives beside each other at one
load, with evidence and without, which comes first drawn anew for each pair: all that is collected
anyway, or only what a campaign asks for besides (`--of perf`). `--of in-band` is what evidence is
an alternative to: every packet at haproxy is copied to a program that reads it (netsniff-ng, on any
core), as monitoring by mirrored packets does. Said of each figure: the ratio of with to without
with its 95 % interval, and beside it the spread of the drives without (the A/A floor). Issue: under
3 % of a core, and no KPI beyond the floor. `--keep` puts what was measured into
`results/collecting_cost.json`, `--publish` writes the tables of docs/evidence.md from there. Needs
an engine; `in-band` root and netsniff-ng, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args
from unittest import mock

import numpy as np
from doc_blocks import BEGIN, with_blocks
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
KPIS = ("mean_ms", "p50_ms", "p95_ms", "p99_ms", "throughput_rps")
RESULTS = Path(__file__).parent / "results" / "collecting_cost.json"
PAGE = Path(__file__).parents[1] / "docs" / "evidence.md"
COLLECTING = "collecting, cores"
"""CPU time of the collecting thread, of the drives with it."""
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


def figures_of(found: Sequence[tuple[bool, Measurement]]) -> dict[str, list[list[float]]]:
    """Of each figure its pairs, with and without, in the order in which they were driven; of
    `COLLECTING` each drive that had it."""
    figures: dict[str, list[list[float]]] = {}
    with_, without = ([m for wanted, m in found if wanted is which] for which in (True, False))
    for pair in zip(with_, without, strict=True):
        samples = [one.sample for one in pair]
        for name in KPIS:
            if all(name in one.kpis for one in samples):
                figures.setdefault(name, []).append([float(one.kpi(name) or 0) for one in samples])
        for name in CHAIN:
            cores = [float(one.usage[name].cpu_cores) for one in samples]
            figures.setdefault(f"CPU of {name}, cores", []).append(cores)
    figures[COLLECTING] = [
        [o.value] for m in with_ for o in m.observations if o.name == "collecting_cores" and o.value
    ]
    return figures


def table(figures: Mapping[str, Sequence[Sequence[float]]]) -> str:
    """Ratios of with to without over the pairs."""
    pairs = max(len(of) for name, of in figures.items() if name != COLLECTING)
    lines = [
        f"| figure ({pairs} pairs) | without | with / without, 95 % | spread of those without |",
        "|---|---|---|---|",
    ]
    for name, of in figures.items():
        if name == COLLECTING:
            continue
        logs = np.log(np.array(of, dtype=float)).T
        ratios = logs[0] - logs[1]
        middle, error = float(ratios.mean()), float(stats.sem(ratios))
        low, high = np.exp(stats.t.interval(0.95, ratios.size - 1, middle, error))
        spread = float(logs[1].std(ddof=1))
        lines.append(
            f"| {name} | {np.exp(logs[1].mean()):.4g} | {np.exp(middle):.3f} ({low:.3f} to "
            f"{high:.3f}) | {spread:.1%} |"
        )
    if cores := [one for (one,) in figures.get(COLLECTING, ())]:
        lines += ["", f"Collecting took {np.mean(cores):.4f} of a core, {max(cores):.4f} at most."]
    return "\n".join(lines)


def read_costs(path: Path | None = None) -> dict[str, Any]:
    """What is kept, by what was collected; empty where nothing is."""
    path = path or RESULTS
    return dict(json.loads(path.read_text())) if path.is_file() else {}


def keep_costs(
    collected: str, figures: Mapping[str, Sequence[Sequence[float]]], path: Path | None = None
) -> None:
    """In place of what is kept of the same."""
    kept = read_costs(path) | {collected: figures}
    (path or RESULTS).write_text(json.dumps(kept, indent=1) + "\n")


def published_costs(page: str, kept: Mapping[str, Any]) -> str:
    """The page with a table of each that is kept and that it has a place for."""
    tables = {f"cost: {name}": table(of) for name, of in kept.items()}
    return with_blocks(page, {n: of for n, of in tables.items() if BEGIN.format(n) in page})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--of", choices=[*get_args(EvidenceKind), IN_BAND], default="kernel")
    parser.add_argument("--keep", action="store_true", help="put it into the results, too")
    parser.add_argument("--publish", action="store_true", help="write docs/evidence.md, and end")
    given = parser.parse_args()
    if given.publish:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(published_costs(page, read_costs()), encoding="utf-8")
        return
    figures = figures_of(asyncio.run(drives(given.pairs, given.seed, given.of)))
    if given.keep:
        keep_costs(given.of, figures)
    print(table(figures))


if __name__ == "__main__":
    main()
