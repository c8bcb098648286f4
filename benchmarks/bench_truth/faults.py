"""Faults injected: who is blamed, and does anything of it get into a model? (METHOD.md 4, 11)

Every fault is visited at loads where it is what limits or disturbs, under twenty seeds. A visit
is *blamed* if its first finding (or its label, where METHOD.md 4 says that the fault is no reason
to throw a sample away) is the expected one; *clean* if it is valid and its figures are those of
the same visit without the fault; *wrong* if another is blamed; *missed* otherwise.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from bench_truth.families import BY_NAME, Family
from bench_truth.playing import bench_of, conclude, play, visit
from bench_truth.truths import Known
from workbench.domain.campaign import Campaign
from workbench.domain.parameters import OperatingPoint
from workbench.domain.profiles import Breakpoint, BreakpointState
from workbench.domain.samples import Label, Reason, Sample
from workbench.engine.learning.sampler_worker import terms
from workbench.labs.simulated import SimulatedLab, SimulationOptions
from workbench.measuring.judging import first_drive_s

Verdict = Literal["blamed", "clean", "wrong", "missed"]
REPETITIONS = 20
HARMLESS = 0.25
"""Log difference of throughput, and of p95 twice that, within which a visit shows no harm:
five standard deviations of a window (METHOD.md 6)."""
SPOILT = 10.0
"""Factor on the figures of invalid samples that no breakpoint may notice."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes
    ----------
    options : of the simulated lab, beside the family's.
    reason, labels : what has to be said; one of the labels.
    loads : shares of the true capacity at which it is what one sees.
    states : answers of the rule `capacity` that do not rest on the fault.
    """

    name: str
    options: str = ""
    reason: Reason | None = None
    labels: tuple[Label, ...] = ()
    loads: tuple[float, ...] = (0.5,)
    states: tuple[BreakpointState, ...] = ("unresolved",)
    family: Family = BY_NAME["default"]
    timeout_s: float = 30.0
    calm_bypass: bool = False
    """The bypass curve was measured before, as it is once in a session."""

    def campaign(self) -> Campaign:
        campaign = self.family.campaign()
        return replace(campaign, windows=replace(campaign.windows, timeout_s=self.timeout_s))

    def lab_options(self, seed: int, *, injected: bool = True) -> str:
        options = self.family.lab_options(seed)
        return f"{options},{self.options}" if injected and self.options else options


FAULTS: tuple[Fault, ...] = (
    Fault("source cap 70 %", "source_cap=0.7", "source_saturated", loads=(0.85, 1.5)),
    Fault("sink cap 80 %", "sink_cap=0.8", "sink_saturated", loads=(0.95, 1.5)),
    Fault("one-thread client", "client_cap=0.7", "source_saturated", loads=(0.85, 1.5)),
    Fault(
        "host stall of 2 s", "hangs_per_hour=300,hang_s=2", "unsteady", loads=(0.3, 0.7),
        states=("found", "unresolved"),
        calm_bypass=True,
    ),
    Fault("noisy neighbour", "neighbour_cores=4", "host_saturated", loads=(0.5, 1.5)),
    Fault("conntrack nearly full", "conntrack_share=0.9", "conntrack_full", loads=(0.5, 1.5)),
    Fault(
        "quota gap",
        labels=("quota_jump", "throttled"),
        loads=(0.9,),
        states=("found",),
        family=BY_NAME["poisson"],
    ),
    Fault(
        "fast 503s", "function.sheds=1,function.buffer=8", "errors", loads=(1.3, 2.0),
        states=("unresolved",),
    ),
    Fault(
        "windows too short", reason="too_few", loads=(0.1,), timeout_s=4.0,
        states=("found", "unresolved"),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Visit:
    """One visit to a faulty lab."""

    fault: str
    verdict: Verdict
    said: str


@dataclass(frozen=True)
class Played:
    """One campaign on a faulty lab."""

    fault: str
    state: BreakpointState
    allowed: bool
    """The state does not rest on the fault."""
    untouched: bool
    """The breakpoints stay what they are when the figures of invalid samples are spoilt."""


def visits(fault: Fault, seed: int, known: Known) -> list[Visit]:
    """The fault at each of its loads."""
    campaign = fault.campaign()
    (plan,) = campaign.targets
    configuration = campaign.configurations(plan)[-1]
    capacity = known.of(fault.family, seed)[configuration.key]["capacity"].wl
    assert capacity is not None
    found = []
    for load in fault.loads:
        point = OperatingPoint(
            plan.target.name, configuration, float(f"{load * capacity:.4g}"), seed
        )
        options = fault.lab_options(seed)
        calm = fault.lab_options(seed, injected=False)
        before = calm if fault.calm_bypass else options
        sample = asyncio.run(_alone(campaign, point, seed, options, before))
        said = sample.reason or ", ".join(sample.labels)
        if fault.reason and sample.reason == fault.reason:
            verdict: Verdict = "blamed"
        elif sample.valid and not set(fault.labels).isdisjoint(sample.labels):
            verdict = "blamed"
        elif not sample.valid:
            verdict = "wrong"
        else:
            usual = asyncio.run(_alone(campaign, point, seed, calm, calm))
            verdict = "clean" if fault.reason and _alike(sample, usual) else "missed"
        found.append(Visit(fault.name, verdict, said))
    return found


async def _alone(
    campaign: Campaign, point: OperatingPoint, seed: int, options: str, before: str
) -> Sample:
    """A visit to a fresh deployment; `before` are the options while the bypass was measured."""
    bench = bench_of(campaign, seed, SimulationOptions.parse(before))
    await bench.lab.open()
    (plan,) = campaign.targets
    await bench.deploy(plan.target, point.configuration)
    await bench.measure_bypass(point)
    await bench.undeploy()
    cast(SimulatedLab, bench.lab).options = SimulationOptions.parse(options)
    return await visit(bench, plan, point, first_drive_s(point, terms(campaign)))


def _alike(sample: Sample, usual: Sample) -> bool:
    """Throughput and p95 are those of the other visit, but for the luck of a window."""
    for kpi, factor in (("throughput_rps", 1.0), ("p95_ms", 2.0)):
        one, other = sample.kpi(kpi), usual.kpi(kpi)
        if one is None or other is None or abs(math.log(one / other)) > factor * HARMLESS:
            return False
    return True


def played(fault: Fault, seed: int) -> list[Played]:
    """A campaign on a lab with the fault, from the first ask to the breakpoints."""
    campaign = fault.campaign()
    (plan,) = campaign.targets
    samples, _ = asyncio.run(play(campaign, plan, seed, fault.lab_options(seed)))
    spoilt = [s if s.valid else _spoilt(s) for s in samples]
    found = []
    for as_taken, as_spoilt in zip(
        conclude(campaign, plan, samples).values(),
        conclude(campaign, plan, spoilt).values(),
        strict=True,
    ):
        state = as_taken[0].state
        found.append(
            Played(
                fault.name, state, state in fault.states, _figures(as_taken) == _figures(as_spoilt)
            )
        )
    return found


def _spoilt(sample: Sample) -> Sample:
    """With figures that nobody measured."""
    kpis = {
        name: replace(e, value=e.value * SPOILT, low=e.low * SPOILT, high=e.high * SPOILT)
        for name, e in sample.kpis.items()
    }
    return replace(sample, kpis=kpis, p_sla=None)


def _figures(breakpoints: Sequence[Breakpoint]) -> list[object]:
    return [(b.rule, b.state, b.wl, b.low, b.high) for b in breakpoints]
