"""A small session of two functions and their chains whose truth is a formula.

haproxy carries 4000/s for each vCPU, tinyproxy 2000/s; mean response times grow as those of one
server. Means of the chain `ha-tiny` are the sums; `tiny-ha` takes 44 ms more, as acknowledgements
do that are delayed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from session_making import EPOCH, WORKLOAD, campaign, created, measurement

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.events import RunFinished, SampleTaken
from workbench.domain.lab import HostFacts, HostNoise
from workbench.domain.parameters import Configuration, Parameter, PrimaryWorkload
from workbench.domain.samples import Estimate, Measurement, Remark
from workbench.domain.topology import Series, Target, Vnf
from workbench.store.session_file import SessionFile

SESSION, RIGHT, WRONG, UNMEASURED = "chains", "ha-tiny", "tiny-ha", "ha-tiny-alone"
TRIED = "tinyproxy-haproxy"
"""A template that the campaign does not have; canaries of it are like `tiny-ha`."""
LOADS = (50.0, 100.0, 200.0, 400.0)
TOO_MUCH = 3000.0
"""More than any function carries, of which response times are only bounded."""
HANDOVER_MS = 44.0

_CAPACITY = {"haproxy": 4000.0, "tinyproxy": 2000.0}
_SERVICE_MS = {"haproxy": 0.5, "tinyproxy": 1.0}
_RATE = PrimaryWorkload("rate", LOADS[0], TOO_MUCH, "log", "requests/s")
_HA, _TINY = Vnf("haproxy", "haproxy"), Vnf("tinyproxy", "tinyproxy")


def chain_campaign() -> Campaign:
    def vcpu(vnf: str, *values: float) -> Parameter:
        return Parameter(f"{vnf}.vcpu", values, "cores")

    def chain(name: str, *vnfs: Vnf) -> TargetPlan:
        own = tuple(vcpu(vnf.name, *((0.5,) if vnf is _HA else (0.25, 0.5))) for vnf in vnfs)
        return TargetPlan(Target(name, Series(vnfs)), own, _RATE)

    plans = (
        TargetPlan(Target("haproxy", _HA), (vcpu("haproxy", 0.25, 0.5),), _RATE),
        TargetPlan(Target("tinyproxy", _TINY), (vcpu("tinyproxy", 0.25, 0.5),), _RATE),
        chain(RIGHT, _HA, _TINY),
        chain(WRONG, _TINY, _HA),
        chain(UNMEASURED, _HA, _TINY),
    )
    sampling = replace(campaign().sampling, model="interpolation")
    return replace(
        campaign(),
        name=SESSION,
        targets=plans,
        workload=WORKLOAD,
        sampling=sampling,
        profile_model="interpolation",  # to find the best of all takes long, and is no matter
    )


def alone_ms(vnf: str, vcpu: float, wl: float) -> float:
    """Mean response time of a function."""
    return _SERVICE_MS[vnf] / (1.0 - min(wl / (_CAPACITY[vnf] * vcpu), 0.99))


def chain_ms(chain: str, configuration: Configuration, wl: float) -> float:
    parts = (alone_ms(v, configuration.vcpu(v), wl) for v in _CAPACITY)
    return sum(parts) + (HANDOVER_MS if chain == WRONG else 0.0)


def host(cpu_model: str = "EPYC") -> HostFacts:
    made = created().host
    assert made is not None
    return replace(made, cpu_model=cpu_model, image_digests={"haproxy": f"sha256:{cpu_model}"})


def _kpis(mean_ms: float, carried: float, wl: float) -> Mapping[str, Estimate]:
    values = {
        "mean_ms": mean_ms,
        "p50_ms": 0.7 * mean_ms,
        "p95_ms": 3.0 * mean_ms,
        "p99_ms": 4.6 * mean_ms,
        "throughput_rps": carried,
        "loss_pct": 100.0 * (1.0 - carried / wl),
    }
    return {kpi: Estimate(v, 0.98 * v, 1.02 * v) for kpi, v in values.items()}


def measured() -> Iterator[Measurement]:
    made = chain_campaign()
    for plan in made.targets:
        if plan.target.name == UNMEASURED:
            continue
        vnfs = [vnf.name for vnf in plan.target.vnfs]
        for configuration in made.configurations(plan):
            capacity = min(_CAPACITY[v] * configuration.vcpu(v) for v in vnfs)
            for wl in (*LOADS, TOO_MUCH):
                base = measurement(plan.target.name, configuration, wl)
                if len(vnfs) == 1:
                    mean = alone_ms(vnfs[0], configuration.vcpu(vnfs[0]), wl)
                else:
                    mean = chain_ms(plan.target.name, configuration, wl)
                kpis = dict(_kpis(mean, min(wl, capacity), wl))
                over = wl > capacity
                if over:  # known to be high, and nothing more
                    bounds = {k: e.value * 100.0 for k, e in kpis.items() if k.endswith("_ms")}
                    kpis |= {k: Estimate(v, v, 10.0 * v) for k, v in bounds.items()}
                remarks = (Remark("overloaded", 1.0, "backlog grows"),) if over else ()
                labels = tuple(remark.label for remark in remarks)
                sample = replace(
                    base.sample, kpis=kpis, remarks=remarks, labels=labels, bypass=None
                )
                yield replace(base, sample=sample)
                if plan.target.name == WRONG and not over:
                    point = replace(sample.point, target=TRIED)
                    tried = replace(sample, id=f"{TRIED}/{sample.id}", point=point)
                    yield replace(base, sample=replace(tried, purpose="canary"))


async def write_chain_session(
    path: Path, cpu_model: str = "EPYC", noise: HostNoise | None = None, *, only: str = ""
) -> None:
    """The session as a file, closed; of `only` one target, as who makes that function has it."""
    made, taken = chain_campaign(), list(measured())
    if only:
        made = replace(made, targets=(made.target_plan(only),))
        taken = [m for m in taken if m.sample.point.target == only]
    begun = replace(created(), campaign=made, host=host(cpu_model), noise=noise)
    file = await SessionFile.create(path, begun, at=EPOCH)
    stored = [file.append(SampleTaken(m.sample), at=EPOCH + 1.0, measurement=m) for m in taken]
    await asyncio.gather(*stored)  # one commit, or a few
    await file.append(RunFinished("done", len(taken), 0, 1.0, 1.0, ()), at=EPOCH + 2.0)
    await file.close()
