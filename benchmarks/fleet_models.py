"""Do models of a folded session hold on unequal hosts? `python benchmarks/fleet_models.py`.

Each trial is a fleet of three simulated hosts, the first as fast as the stand-ins describe, the
others of speeds between 0.5 and 2, each with a spread of its own (`--noise`). Each measures its
anchor points and two of six configurations, by the engine of a lab host and no process in between.
One model learns from all samples by the factor between hosts, one from the same taken to scatter by
what is assumed of any host instead of by what its own deployments at the anchor points did, one
from the samples as they are, and one from what the first host alone measured of all six. Two more
are told the scatter that the samples really have, which nobody knows but who knows the truth. Their
forecasts, and the allocation that each would recommend, are held against the truth of the first
host.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from bench_truth.long_runs import Truth
from fleet_factors import NOISE, drawn, measured

from workbench.descriptors.loading import load_campaign
from workbench.domain.campaign import Campaign
from workbench.domain.fleets import LabHost, ShardFolded
from workbench.domain.samples import Sample
from workbench.engine.core import Engine
from workbench.engine.learning.refitting import fitted
from workbench.engine.learning.scoring import table_for
from workbench.fleet.folding import ShardSession
from workbench.models.host_factors import compare_hosts
from workbench.models.host_scatter import as_it_scatters
from workbench.models.host_terms import on_one_host
from workbench.models.table import Table
from workbench.paths import Workspace
from workbench.sampling.shards import anchor, split

CAMPAIGN = """
kind: campaign
targets:
  - vnf: tinyproxy
    resource_parameters:
      - {vnf: tinyproxy, name: vcpu, values: [20%, 25%, 30%, 40%, 50%, 60%]}
workload_parameters:
  - {name: filesize, values: [10 kB]}
primary_workload_parameter: {name: rate, range: [50/s, 2000/s], scale: log}
load: {kind: open, arrivals: constant, connections: 32}
kpi: p95
sampling: {method: uniform, max_samples: 10, repetitions: 1}
windows: {warmup: 1 s, window: 3 s}
lab: sim
"""
HOSTS = ("one", "two", "three")
LOADS = 6
OF_CAPACITY = 0.9
"""Forecasts are asked up to that share of what a configuration carries: beyond, a response time
grows for as long as one watches."""
SLA_AT = (0.3, 0.6, 0.9)
"""The rates of the questions, as shares of what the largest allocation carries."""
SLA_TIMES = 2.0
"""Their limit, over the response time of the largest allocation at that rate."""
GOAL = (0.93, 0.97)


@dataclass
class Tally:
    """What came of one way to learn, by trial."""

    inside: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)
    asked: int = 0
    held: int = 0
    cheapest: int = 0

    def figures(self) -> dict[str, float]:
        inside = np.array(self.inside)
        return {
            "coverage": round(float(inside.mean()), 4),
            "standard error": round(float(inside.std(ddof=1) / math.sqrt(len(inside))), 4),
            "median error": round(float(np.median(self.errors)), 4),
            "median half width": round(float(np.median(self.widths)), 4),
            "noise that models are told": round(float(np.median(self.noise)), 4),
            "recommendations": self.asked,
            "hold": self.held,
            "the cheapest that holds": self.cheapest,
        }


class Truths:
    """Response times of the first host, at the loads that forecasts are asked for."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        (plan,) = campaign.targets
        self.target = plan.target.name
        self.configurations = campaign.configurations(plan)
        self.points, p95_ms = [], []
        own = [Truth(campaign, plan.target, c, seconds=24.0) for c in self.configurations]
        carried = [truth.capacity() for truth in own]
        self._own = dict(zip(self.configurations, zip(own, carried, strict=True), strict=True))
        for configuration, truth, most in zip(self.configurations, own, carried, strict=True):
            for wl in np.geomspace(plan.primary.low, OF_CAPACITY * most, LOADS):
                self.points.append((configuration, float(wl)))
                p95_ms.append(truth.at(float(wl)).p95_ms)
        self.p95_ms = np.array(p95_ms)
        self.slas = []
        for share in SLA_AT:
            rate = share * carried[-1]
            times = [t.at(rate).p95_ms if rate < most else math.inf
                     for t, most in zip(own, carried, strict=True)]  # fmt: skip
            self.slas.append((rate, SLA_TIMES * times[-1], times))

    def scatter(self, samples: Sequence[Sample]) -> float:
        """Root mean square of the errors of log p95, where the forecasts are asked for."""
        errors = []
        for sample in samples:
            truth, most = self._own[sample.point.configuration]
            if sample.valid and sample.point.wl <= OF_CAPACITY * most:
                errors.append(
                    math.log(sample.kpis["p95_ms"].value / truth.at(sample.point.wl).p95_ms)
                )
        return float(np.sqrt(np.mean(np.square(errors))))


def judge(tally: Tally, truths: Truths, table: Table, method: str) -> None:
    tally.noise.append(float(np.median(table.noise)))
    forecaster = fitted(table, method)
    said = forecaster.forecast(truths.points)
    truth = np.log(truths.p95_ms)  # forecasts are of logarithms
    inside = (said.low <= truth) & (truth <= said.high)
    tally.inside.append(float(inside.mean()))
    tally.errors += list(np.abs(said.mean - truth))
    tally.widths += list((said.high - said.low) / 2.0)
    for rate, limit, times in truths.slas:
        said = forecaster.forecast([(c, rate) for c in truths.configurations])
        tally.asked += 1
        chosen = next((i for i, high in enumerate(said.high) if high <= math.log(limit)), None)
        best = next(i for i, true in enumerate(times) if true <= limit)
        tally.held += chosen is not None and times[chosen] <= limit
        tally.cheapest += chosen == best


async def trial(
    engine: Engine, truths: Truths, number: int, hosts: Sequence[LabHost]
) -> dict[str, tuple[Sample, ...]]:
    campaign = truths.campaign
    run, anchors, pieces = f"m{number}", {}, []
    for host in hosts:
        shard = anchor(campaign, host=host.name, run=run, lab="sim", seed=number)
        anchors[host.name] = (await measured(engine, host, shard, run)).samples
    size = -(-6 // len(hosts))
    for shard in split(campaign, 3, run=run, lab="sim", seed=number, size=size):
        pieces.append(await measured(engine, hosts[len(pieces)], shard, run))
    alone = [
        await measured(engine, hosts[0], shard, f"a{number}")
        for shard in split(campaign, 3, run=f"a{number}", lab="sim", seed=number, size=size)
    ]
    samples, shards = folded(pieces)
    compared = compare_hosts(anchors, campaign.kpi)
    assert compared is not None
    one = folded(alone)[0]
    bare = replace(compared, scatter=())
    known = {"p95_ms": truths.scatter(one)}
    as_known = [as_it_scatters(sample, known) for sample in samples]
    return {
        "by the factor": on_one_host(samples, shards, compared, campaign.kpi),
        "by the factor, scatter assumed": on_one_host(samples, shards, bare, campaign.kpi),
        "by the factor, scatter known": on_one_host(as_known, shards, bare, campaign.kpi),
        "as they are": samples,
        "one host": one,
        "one host, scatter known": tuple(as_it_scatters(sample, known) for sample in one),
    }


def folded(pieces: Sequence[ShardSession]) -> tuple[tuple[Sample, ...], tuple[ShardFolded, ...]]:
    """Samples with blocks that no two shards share, as `workbench.fleet.folding` has them."""
    samples, shards, first = [], [], 0
    for piece in pieces:
        shard, result = piece.gathered.order.shard, piece.gathered.result
        last = first + max(sample.block for sample in piece.samples)
        samples += [replace(sample, block=sample.block + first) for sample in piece.samples]
        shards.append(
            ShardFolded(piece.host, piece.created.host, shard.key, shard.target,
                        shard.configurations, first, last, len(piece.samples), result.lab_s, "")
        )  # fmt: skip
        first = last + 1
    return tuple(samples), tuple(shards)


async def trials(given: argparse.Namespace) -> dict[str, Tally]:
    rng, tallies, began = np.random.default_rng(given.seed), dict[str, Tally](), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="models-") as name:
        path = Path(name) / "models.yaml"
        path.write_text(CAMPAIGN)
        engine = Engine(Workspace(Path(name) / "w"))
        await engine.start()
        try:
            campaign = load_campaign(str(path), workspace=engine.workspace).campaign
            truths = await asyncio.to_thread(Truths, campaign)
            for number in range(given.first, given.first + given.trials):
                if time.monotonic() - began > 60.0 * given.minutes:
                    break
                speeds = (1.0, *np.exp(rng.uniform(math.log(0.5), math.log(2.0), 2)))
                noises = drawn(given.noise, number, len(HOSTS))
                hosts = [
                    LabHost(name, "simulated", speed=speed, noise=noise)
                    for name, speed, noise in zip(HOSTS, speeds, noises, strict=True)
                ]
                for way, samples in (await trial(engine, truths, number, hosts)).items():
                    table = table_for(campaign, truths.target, samples, "p95_ms")
                    judge(tallies.setdefault(way, Tally()), truths, table, given.method)
                inside = {way: round(tally.inside[-1], 2) for way, tally in tallies.items()}
                told = [f"{host.speed:.2f} x{host.noise:.1f}" for host in hosts]
                print(number, told, inside, flush=True)
        finally:
            await engine.close()
    return tallies


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--trials", type=int, default=100)
    asked.add_argument("--minutes", type=float, default=30.0)
    asked.add_argument("--method", default="pooled")
    asked.add_argument("--seed", type=int, default=240, help="of the speeds")
    asked.add_argument("--noise", default=NOISE, help="of hosts: LOW,HIGH, or one factor for all")
    asked.add_argument("--first", type=int, default=0, help="seed of the first fleet's samples")
    asked.add_argument("--results", type=Path)
    given = asked.parse_args()
    tallies = asyncio.run(trials(given))
    figures = {way: tally.figures() for way, tally in tallies.items()}
    count = len(next(iter(tallies.values())).inside)
    told = {"trials": count, "method": given.method, "noise": given.noise, "goal": GOAL, **figures}
    print(json.dumps(told, indent=2))
    if given.results is not None:
        given.results.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
