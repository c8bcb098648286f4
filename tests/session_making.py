"""Small sessions as an engine would write them, for tests of the rooms that read them."""

from __future__ import annotations

import asyncio
import atexit
import functools
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from workbench.domain.campaign import Campaign, TargetPlan
from workbench.domain.events import (
    CampaignPlanned,
    ConfigurationFinished,
    ConfigurationStarted,
    Fact,
    ModelFitted,
    PointAsked,
    RunFinished,
    RunStarted,
    SampleTaken,
    SessionCreated,
    TargetDeployed,
)
from workbench.domain.lab import HostFacts
from workbench.domain.parameters import (
    Configuration,
    LoadModel,
    OperatingPoint,
    Parameter,
    PrimaryWorkload,
)
from workbench.domain.profiles import Breakpoint, Curve, FittedModel
from workbench.domain.samples import (
    Bypass,
    Estimate,
    Finding,
    LatencyHistogram,
    Measurement,
    Remark,
    Sample,
    Usage,
    UsageSecond,
    Window,
)
from workbench.domain.sessions import DescriptorText, Plan, PlannedConfiguration
from workbench.domain.topology import Series, Target, Vnf, VnfTemplate
from workbench.store.session_file import SessionFile

EPOCH = 1_790_000_000.0
WORKLOAD = (Parameter("filesize_bytes", (10_000.0,), "bytes"),)
WLS = (100.0, 200.0, 400.0, 800.0)


def campaign() -> Campaign:
    wl = PrimaryWorkload("rate_rps", 100.0, 800.0, "log", "requests/s")
    alone = Target("haproxy", Vnf("haproxy", "haproxy"))
    chain = Target("tiny-ha", Series((Vnf("tiny", "tinyproxy"), Vnf("ha", "haproxy"))))
    return Campaign(
        "small",
        (
            TargetPlan(alone, (Parameter("haproxy.vcpu", (0.125, 0.25), "cores"),), wl),
            TargetPlan(
                chain,
                (
                    Parameter("tiny.vcpu", (0.5,), "cores"),
                    Parameter("ha.flavor", ("small",), ""),
                ),
                wl,
            ),
        ),
        tuple(VnfTemplate(name, image=name) for name in ("haproxy", "tinyproxy")),
        WORKLOAD,
        LoadModel("open"),
    )


def created() -> SessionCreated:
    host = HostFacts(
        "sim", 2, 8 * 2**30, "6.1", "EPYC", "v2", "none", {"haproxy": "sha256:1"}, {"seed": "7"}
    )
    descriptors = (DescriptorText("small.yaml", "name: small\n"), DescriptorText("b.yaml", "é"))
    return SessionCreated(campaign(), descriptors, "sim", 7, host, "0.1.0")


def measurement(
    target: str, configuration: Configuration, wl: float, repetition: int = 0, valid: bool = True
) -> Measurement:
    """A sample whose p95 is `wl**1.5` ms divided by the cores, with two windows."""
    cores = sum(v for k, v in configuration.resources.items() if isinstance(v, float))
    p95 = wl**1.5 / cores / 1000 * (1 + 0.01 * repetition)
    share = min(1.0, wl / (3000 * cores))
    service = LatencyHistogram(1.01, (500, 501, 507), (10, 20, 3))
    response = LatencyHistogram(1.01, (502, 600), (30, 3), (700,), (2,))
    windows = tuple(Window(float(3 * i), 3.0, 35, 33, 0, 2, service, response) for i in range(2))
    series = tuple(
        UsageSecond(float(second), name, share * cores, 0.1, 5e6, 1.5, 80.25)
        for second in range(6)
        for name in ("source", *dict.fromkeys(k.split(".")[0] for k in configuration.resources))
    )
    functions = dict.fromkeys(key.split(".")[0] for key in configuration.resources)
    usage = {name: Usage(share * cores, share, 0.1, 0.25, 5e6, 1.5, 80.25, 1) for name in functions}
    finding = Finding("source_saturated", 0.93, 0.8, "thread 2 of oha was busy 93 % of the time")
    throttled = Remark("throttled", 0.1, "haproxy stood still in 10 % of its quota periods")
    remarks = (throttled,) if share > 0.5 else ()
    sample = Sample(
        id=f"{target}/{configuration.key}/{wl:g}/{repetition}",
        point=OperatingPoint(target, configuration, wl, repetition),
        kpis={
            "p50_ms": Estimate(p95 / 3, p95 / 3.3, p95 / 2.7),
            "p95_ms": Estimate(p95, p95 * 0.9, p95 * 1.1),
            "throughput_rps": Estimate(wl, wl * 0.99, wl * 1.01),
            "error_pct": Estimate(0.0, 0.0, 0.0),
        },
        usage={**usage, "source": Usage(0.1, 0.2), "host": Usage(0.7, 0.35)},
        valid=valid,
        findings=() if valid else (finding,),
        labels=tuple(remark.label for remark in remarks),
        load_model="open-constant",
        kpi_definition="planned",
        generator="simulated 1",
        planned=70,
        completed=66,
        errors=0,
        unfinished=4,
        windows=2,
        batches=12,
        throttled_share=0.1,
        straddle_share=0.02,
        started_at=EPOCH + wl,
        measured_s=6.0,
        lab_s=8.5,
        p_sla=Estimate(0.99, 0.98, 1.0),
        remarks=remarks,
        bypass=Bypass(2600.0, 0.4, 0.7) if target == "haproxy" else None,
        block=repetition,
    )
    return Measurement(sample, windows, series)


def facts() -> list[tuple[Fact, Measurement | None]]:
    """Everything after `created()`: 12 samples of three configurations, one of them not valid."""
    made: list[tuple[Fact, Measurement | None]] = []
    planned: list[PlannedConfiguration] = []
    blocks: list[tuple[str, Configuration]] = []
    for plan in campaign().targets:
        name = plan.target.name
        for configuration in campaign().configurations(plan):
            planned.append(PlannedConfiguration(0, name, configuration, len(WLS), 34.0))
            blocks.append((name, configuration))
    made.append((CampaignPlanned(Plan("small", "sim", tuple(planned), 12, 102.0)), None))
    made.append((RunStarted(False, None), None))
    breakpoints: list[Breakpoint] = []
    samples = 0
    for target, configuration in blocks:
        made.append((TargetDeployed(target, "simulated 1", True, "answers 10000 bytes"), None))
        made.append((ConfigurationStarted(target, configuration), None))
        ids = []
        for wl in WLS:
            invalid = target == "tiny-ha" and wl == WLS[-1]
            taken = measurement(target, configuration, wl, valid=not invalid)
            made.append((PointAsked(target, configuration, wl, 0, wl, wl, "an end"), None))
            made.append((SampleTaken(taken.sample), taken))
            ids.append(taken.sample.id)
            samples += 1
        found = Breakpoint(
            target, configuration, "capacity", "p95_ms", "found", 500.0, 450.0, 560.0
        )
        none = Breakpoint(target, configuration, "knee", "p95_ms", "none_in_range", note="flat")
        curve = Curve("p95_ms", "gaussian-process", WLS, WLS, WLS, WLS)
        model = FittedModel(
            "gaussian-process",
            {"length": 0.5, "kernel": "rbf", "restarts": 2, "warp": True, "random_state": None},
            tuple(ids),
            (1.5,),
        )
        fitted = ModelFitted(target, configuration, curve, (found, none), model, 0.2)
        made.append((fitted, None))
        made.append(
            (ConfigurationFinished(target, configuration, "max_samples", len(WLS), 0), None)
        )
        breakpoints += [found, none]
    finish = RunFinished("done", samples, 1, 3.5, 8.5 * samples + 6.0, tuple(breakpoints))
    made.append((finish, None))
    return made


async def make_session(path: Path, until: int | None = None) -> SessionFile:
    """A session file with `created()` and the first `until` of `facts()`, still open."""
    session = await SessionFile.create(path, created(), at=EPOCH)
    await append_all(session, facts()[:until])
    return session


async def append_all(
    session: SessionFile,
    facts: Iterable[Fact | tuple[Fact, Measurement | None]],
    at: float = EPOCH,
) -> None:
    """In order, a second apart. Stored in a few commits, each of which costs as much as its rows:
    whoever waits for each fact pays for one per fact."""
    each = (one if isinstance(one, tuple) else (one, None) for one in facts)
    await asyncio.gather(
        *(
            session.append(fact, at=at + number, measurement=taken)
            for number, (fact, taken) in enumerate(each)
        )
    )


@functools.cache
def _made() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="wb-made-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


async def closed_session(path: Path, until: int | None = None) -> Path:
    """The same, closed. Written once, as writing takes ten times as long as copying."""
    made = _made() / f"{until}.duckdb"
    if not made.exists():
        await (await make_session(made, until)).close()
    return shutil.copyfile(made, path)
