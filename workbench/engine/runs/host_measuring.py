"""`doctor --measure`: what source and sink carry, and what a host's own noise is worth.

One shipped function at a fixed allocation is deployed again and again. On each deployment it is
visited twice at a moderate rate (response times) and twice far above its capacity (throughput),
the pair's order turning over from one deployment to the next: A B, B A, A B, ... Every visit is
measured and judged as a campaign's is, so that the noise is that of a campaign's samples.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import cast

from workbench.domain import kpis
from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.errors import EngineError, LabError, UsageError
from workbench.domain.lab import (
    HOST_NOISE,
    BypassCurve,
    Check,
    CheckState,
    HostMeasured,
    HostNoise,
    MeasureHost,
)
from workbench.domain.parameters import (
    Configuration,
    LoadModel,
    OperatingPoint,
    Parameter,
    PrimaryWorkload,
)
from workbench.domain.samples import Sample, Usage
from workbench.domain.topology import Target, Vnf
from workbench.engine.learning.pool import Pool
from workbench.engine.runs import noises
from workbench.engine.runs.measurement import LabDriver
from workbench.engine.runs.opening import SIMULATED, choose_lab, made_lab
from workbench.engine.runs.strays import reap_lab
from workbench.engine.sessions.library import Library
from workbench.labs.base import DrivingLab, LabSettings
from workbench.locks import FileLock, own
from workbench.log import logger
from workbench.measuring.floor import METHOD_FLOOR

FUNCTION, VCPU, SIZE_BYTES = "haproxy", 0.125, 10_000.0
"""A target that METHOD.md was settled on; so small that source and sink are far from their limit
while it is at its own."""
RATES = PrimaryWorkload("rate", 1000.0, 24_000.0, "log", "requests/s")
"""From what any host carries up to more than two busy cores do."""
MODERATE, SATURATING = 0.4, 1.5
"""Shares of the capacity: under it no quota gap is met, and above it all the time is spent."""
NOT_SATURATED = 0.95
"""Share of the offered rate from which the function is not called saturated."""
LATE = 0.99
"""Share of the plan under which the generator is late (METHOD.md 4)."""
FEWEST_PAIRS, MOST_PAIRS = 4, 1000
BYPASS_HEADROOM = 0.7
"""Share of what source and sink carry from which a sample is `bypass_limited` (METHOD.md 4)."""

log = logger("engine.host")


class HostMeasuring:
    """Measures the host when asked to, in turn with campaigns.

    Attributes
    ----------
    doing : a sentence while it measures; empty otherwise.
    """

    def __init__(
        self, library: Library, pool: Pool, slot: asyncio.Lock, host_lock: FileLock
    ) -> None:
        self.doing = ""
        self._library = library
        self._pool = pool
        self._slot = slot
        self._host_lock = host_lock
        self._task: asyncio.Task[HostMeasured] | None = None
        self._stopped = False

    @property
    def busy(self) -> bool:
        return self._task is not None

    async def measure(self, request: MeasureHost) -> HostMeasured:
        """Measure, keep what was found, and say it. Raises `WorkbenchError`."""
        if self._task is not None:
            raise UsageError("the host is being measured already", where=self.doing)
        if not FEWEST_PAIRS <= request.pairs <= MOST_PAIRS:
            why = "are too few to tell noise" if request.pairs < FEWEST_PAIRS else "take for ever"
            raise UsageError(
                f"{request.pairs} pairs {why}",
                where="--pairs",
                remedy=f"Give from {FEWEST_PAIRS} to {MOST_PAIRS}",
            )
        self._stopped = False
        self._task = asyncio.create_task(self._measure(request), name=HOST_NOISE)
        try:
            return await self._task
        except asyncio.CancelledError:
            if self._stopped:
                raise EngineError(
                    "was stopped; what was kept of this host before is kept", where=HOST_NOISE
                ) from None
            raise
        finally:
            self._task, self.doing = None, ""

    async def stop(self) -> None:
        """End it at once and tear down; idempotent."""
        if self._task is not None:
            self._stopped = True
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _measure(self, request: MeasureHost) -> HostMeasured:
        lab_name, why = await choose_lab(request.lab)
        kind, _, options = lab_name.partition(":")
        self.doing = "waiting for its turn"
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._slot)
            if kind not in SIMULATED:
                holder = own(self._library.workspace.root, HOST_NOISE)
                await stack.enter_async_context(self._host_lock.queue(holder))
                self._pool.give_way()
            campaign = await asyncio.to_thread(_campaign, self._library)
            settings = LabSettings(
                HOST_NOISE,
                request.seed,
                argument=options,
                own_cpu_s=self._pool.own_cpu_s,
                say=self._say,
            )
            lab = cast(DrivingLab, await made_lab(lab_name, campaign, settings))
            if not hasattr(type(lab), "drive"):  # on the class: a recording is not opened for it
                raise UsageError(
                    "no load can be driven there", where=lab_name, remedy="Choose another --lab"
                )
            stack.push_async_callback(lab.close)
            self.doing = "opening the lab"
            host = await lab.open()
            if kind not in SIMULATED:
                await reap_lab(type(lab), frozenset())
            run = _Run(lab, campaign, self._pool, request.pairs, self._say)
            measured = await run.execute(lab_name)
        if why:
            measured = HostMeasured(
                measured.noise, (Check("lab", "warning", why), *measured.checks)
            )
        noise = replace(measured.noise, cpu_model=host.cpu_model, cores=host.cores)
        path = await asyncio.to_thread(noises.keep, noise)
        log.info("host measured", lab=lab_name, path=str(path))
        return replace(measured, noise=noise)

    def _say(self, text: str) -> None:
        self.doing = text


def _campaign(library: Library) -> Campaign:
    """One configuration of one function; everything else as a campaign has it by default."""
    from workbench.descriptors.loading import load_vnf_templates

    target = Target(FUNCTION, Vnf(FUNCTION, FUNCTION))
    named = (FUNCTION, target.source, target.sink)
    templates = load_vnf_templates(workspace=library.workspace)
    return Campaign(
        HOST_NOISE,
        (
            TargetPlan(
                target,
                (Parameter(f"{FUNCTION}.vcpu", (VCPU,), "cores"),),
                RATES,
            ),
        ),
        tuple(template for template in templates if template.name in named),
        (Parameter("filesize_bytes", (SIZE_BYTES,), "B"),),
        LoadModel("open"),
    )


@dataclass
class _Series:
    """Visits at one rate: by deployment, in the order of their labels A, B."""

    kpis: tuple[str, ...]
    wl: float
    visits: dict[int, dict[int, Sample]] = field(default_factory=lambda: defaultdict(dict))
    refused: list[Sample] = field(default_factory=list)
    """Not valid, and taken again."""

    def complete(self, kpi: str) -> list[list[float]]:
        """The KPI on every deployment whose visits are all valid: a row each, A before B."""
        rows = [
            [sample.kpi(kpi) for _, sample in sorted(v.items()) if sample.valid]
            for _, v in sorted(self.visits.items())
        ]
        return [[x for x in row if x] for row in rows if len(row) == 2 and all(row)]


class _Run:
    """One measurement of a host, on an open lab."""

    def __init__(
        self,
        lab: DrivingLab,
        campaign: Campaign,
        pool: Pool,
        pairs: int,
        say: Callable[[str], None],
    ) -> None:
        plan = campaign.targets[0]
        self._target = plan.target
        self._configuration: Configuration = campaign.configurations(plan)[0]
        self._campaign = campaign
        self._pool = pool
        self._pairs = pairs
        self._say = say
        self._phase = ""
        self._bench = LabDriver(lab, campaign, pool, self._on_phase, _ignore)
        self._visits: dict[float, int] = defaultdict(int)

    async def execute(self, lab_name: str) -> HostMeasured:
        self._phase = "Generator against the bare sink"
        deployment = await self._bench.deploy(self._target, self._configuration, 0)
        curve = await self._bench.measure_bypass(self._point(RATES.low))
        self._phase = "Capacity of the function"
        capacity = await self._capacity(curve)
        series = (
            _Series((kpis.THROUGHPUT,), _rounded(SATURATING * capacity)),
            _Series((kpis.MEAN, kpis.P95), _rounded(MODERATE * capacity)),
        )
        for number in range(self._pairs):
            self._phase = f"A/A run, deployment {number + 1} of {self._pairs}"
            if number:
                await self._bench.deploy(self._target, self._configuration, number)
            for label in (0, 1) if number % 2 == 0 else (1, 0):
                for one in series:
                    one.visits[number][label] = await self._valid_visit(one)
        await self._bench.undeploy()
        figures = {kpi: one.complete(kpi) for one in series for kpi in one.kpis}
        for one in series:
            _check_enough(one, self._pairs)
        found = await self._pool.run(_components, figures)
        deployments = min(len(rows) for rows in figures.values())
        noise = HostNoise(
            lab=lab_name,
            generator=deployment.generator,
            measured_at=time.time(),
            samples=2 * deployments,
            deployments=deployments,
            window_sd={kpi: f.window_sd for kpi, f in found.items()},
            restart_sd={kpi: f.restart_sd for kpi, f in found.items()},
            drift_sd={kpi: f.drift_sd for kpi, f in found.items()},
            smallest_difference={kpi: f.smallest_difference for kpi, f in found.items()},
            source_limit_rps=max((p.throughput_rps for p in curve.points), default=0.0)
            if curve
            else 0.0,
        )
        checks = [
            *_bypass_checks(curve, capacity, deployment.generator),
            *(_series_check(one, self._pairs) for one in series),
            *(
                Check(
                    f"null pairs of {kpi}",
                    "ok" if f.claims <= 0.05 * f.pairs else "warning",
                    f"{f.claims} of {f.pairs} claimed different",
                )
                for kpi, f in found.items()
            ),
        ]
        return HostMeasured(noise, tuple(checks))

    async def _capacity(self, curve: BypassCurve | None) -> float:
        """What the function carries far above its capacity."""
        carried = max((p.throughput_rps for p in curve.points), default=0.0) if curve else 0.0
        wl = _rounded(min(RATES.high, carried)) if carried else RATES.high
        sample = await self._visit(wl)
        throughput = sample.kpi(kpis.THROUGHPUT) or 0.0
        if not 0 < throughput < NOT_SATURATED * wl:
            limits = "; ".join(finding.evidence for finding in sample.findings)
            raise LabError(
                f"{FUNCTION} at {VCPU:.1%} of a core answers {throughput:.0f} of {wl:.0f} "
                "requests/s: this host's source cannot saturate it",
                where=limits or None,
                remedy="Free the host of other work, and see `workbench doctor`",
            )
        return throughput

    async def _valid_visit(self, series: _Series) -> Sample:
        """A visit; once more where the first is not valid: a host has other work now and then."""
        sample = await self._visit(series.wl)
        if sample.valid:
            return sample
        series.refused.append(sample)
        return await self._visit(series.wl)

    async def _visit(self, wl: float) -> Sample:
        point = self._point(wl, self._visits[wl])
        self._visits[wl] += 1
        first_s = await self._pool.run(_first_s, self._campaign, point)
        return (await self._bench.measure(point, first_s, METHOD_FLOOR)).sample

    def _point(self, wl: float, repetition: int = 0) -> OperatingPoint:
        return OperatingPoint(self._target.name, self._configuration, wl, repetition)

    def _on_phase(self, phase: str, point: OperatingPoint | None, note: str = "") -> None:
        del note
        at = f" at {point.wl:g} requests/s" if point else ""
        self._say(f"{self._phase}: {phase}{at}")


def _ignore(usage: Mapping[str, Usage]) -> None:
    """Nobody watches the usage of a host that is only measured."""


@dataclass(frozen=True)
class _Found:
    window_sd: float
    restart_sd: float
    drift_sd: float
    smallest_difference: float
    claims: int
    pairs: int


def _components(figures: Mapping[str, list[list[float]]]) -> dict[str, _Found]:
    """In the worker: what takes numpy and scipy."""
    import numpy as np

    from workbench.measuring.noise import components, null_claims

    found = {}
    for kpi, rows in figures.items():
        visits = np.array(rows)
        parts = components(visits)
        smallest = parts.smallest_difference
        found[kpi] = _Found(
            parts.window_sd,
            parts.restart_sd,
            parts.drift_sd,
            smallest,
            *null_claims(visits, smallest),
        )
    return found


def _first_s(campaign: Campaign, point: OperatingPoint) -> float:
    from workbench.engine.learning.sampler_worker import terms
    from workbench.measuring.judging import first_drive_s

    return first_drive_s(point, terms(campaign))


def _rounded(rate: float) -> float:
    return float(f"{rate:.2g}")


def _check_enough(series: _Series, pairs: int) -> None:
    """Raises `LabError` where too few deployments have two valid visits."""
    from workbench.measuring.noise import FEWEST_DEPLOYMENTS

    complete = min(len(series.complete(kpi)) for kpi in series.kpis)
    if complete >= FEWEST_DEPLOYMENTS:
        return
    why = sorted({finding.evidence for s in series.refused for finding in s.findings[:1]})
    raise LabError(
        f"only {complete} of {pairs} deployments have two valid samples at {series.wl:g} "
        "requests/s" + (f": {'; '.join(why[:3])}" if why else ""),
        where=HOST_NOISE,
        remedy="Free the host of other work and measure again",
    )


def _bypass_checks(curve: BypassCurve | None, capacity: float, generator: str) -> tuple[Check, ...]:
    """What the self-test found of generator and bare sink."""
    if curve is None:
        found = "the lab has no path past the functions: what they carry is not known"
        return (Check("source and sink", "warning", found),)
    most = max(curve.points, key=lambda p: p.throughput_rps)
    limited = next((p for p in curve.points if p.limited_by), None)
    found = f"{generator} and the bare sink carry {most.throughput_rps:.0f} requests/s"
    found += f"; limit: {limited.limited_by}" if limited else " and more"
    short = capacity > BYPASS_HEADROOM * most.throughput_rps
    remedy = (
        f"{FUNCTION} at {VCPU:.1%} of a core carries {capacity:.0f}: samples near it are "
        "`bypass_limited` here; more cores, or a lighter generator"
    )
    punctual = [p for p in curve.points if not p.limited_by]
    late = [p for p in punctual if p.throughput_rps < LATE * p.wl]
    top = max((p.wl for p in punctual), default=0.0)
    return (
        Check("source and sink", "warning" if short else "ok", found, remedy if short else ""),
        Check(
            "send lag",
            "warning" if late or not punctual else "ok",
            f"at {late[0].wl:g}/s only {late[0].throughput_rps:.0f}/s were sent and answered"
            if late
            else f"what was planned was sent and answered up to {top:g}/s",
            "The generator is late before anything is saturated: free the host of other work"
            if late or not punctual
            else "",
        ),
    )


def _series_check(series: _Series, pairs: int) -> Check:
    """What became of the visits at one rate."""
    valid = sum(s.valid for visits in series.visits.values() for s in visits.values())
    found = f"{valid} of {2 * pairs} samples valid"
    if series.refused:
        first = series.refused[0]
        found += (
            f", {len(series.refused)} taken again; {first.reason}: {first.findings[0].evidence}"
        )
    state: CheckState = "ok" if valid == 2 * pairs else "warning"
    remedy = "" if state == "ok" else "Free the host of other work and measure again"
    return Check(f"A/A run at {series.wl:g}/s", state, found, remedy)
