"""Samples with evidence, made up: small enough that what a rule should say is plain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from workbench.diagnosis.explaining import Known
from workbench.diagnosis.readings import Reading, read
from workbench.domain.observations import Observation
from workbench.domain.parameters import Configuration, OperatingPoint
from workbench.domain.samples import Estimate, Finding, Measurement, Sample, Usage, Window
from workbench.domain.topology import Series, Target, Vnf
from workbench.measuring.histograms import build

SECONDS, RATE = 4.0, 100.0
REQUESTS = int(SECONDS * RATE)
CHAIN = Target("tiny-ha", Series((Vnf("tiny", "tinyproxy"), Vnf("ha", "haproxy"))))
HOST = {
    "others_cores": 0.05,
    "softirqs": 9000.0,
    "conntrack_used": 100.0,
    "conntrack_limit": 262144.0,
    "stolen_s": 0.0,
}
"""What every host here tells."""

Counts = Mapping[str, Mapping[str, float | None]]


def usage(cores: float, share: float, throttled: float = 0.0) -> Usage:
    return Usage(cores, share, throttled, throttled * SECONDS)


def measurement(
    target: str,
    functions: Mapping[str, Usage],
    answers_s: Sequence[float],
    counts: Counts,
    *,
    vcpu: float = 0.5,
    findings: tuple[Finding, ...] = (),
    host: Usage | None = None,
    details: Sequence[Observation] = (),
    repetition: int = 0,
    rate: float = RATE,
    late_s: Sequence[float] = (0.0,),
) -> Measurement:
    """A sample of one window; `answers_s` are repeated until there are `SECONDS * rate` answers.

    `late_s` is what passes before a request is sent, repeated likewise.
    """
    service = np.resize(np.array(answers_s), int(SECONDS * rate))
    every = service + np.resize(np.array(late_s), service.size)
    window = Window(0.0, SECONDS, every.size, every.size, 0, 0, build(service), build(every))
    resources = {f"{name}.vcpu": vcpu for name in functions}
    point = OperatingPoint(target, Configuration(resources, {}), rate, repetition)
    mean_ms = 1e3 * float(every.mean())
    sample = Sample(
        id=f"{target}/{vcpu:g}/{rate:g}/{repetition}",
        point=point,
        kpis={"mean_ms": Estimate(mean_ms, mean_ms, mean_ms)},
        usage={
            **functions,
            "source": Usage(0.1, 0.1),
            "sink": Usage(0.1, 0.1),
            "host": host or Usage(0.3 + sum(u.cpu_cores for u in functions.values()), 0.2),
        },
        valid=not findings,
        findings=findings,
        labels=(),
        load_model="open-constant",
        kpi_definition="planned",
        generator="made up",
        planned=every.size,
        completed=every.size,
        errors=0,
        unfinished=0,
        windows=1,
        batches=8,
        throttled_share=max(u.throttled_share for u in functions.values()),
        straddle_share=0.0,
        started_at=0.0,
        measured_s=SECONDS,
        lab_s=SECONDS,
    )
    seen = [
        Observation(0, component, name, value, "" if value is not None else "no such counter")
        for component, values in {"host": HOST, **counts}.items()
        for name, value in values.items()
    ]
    return Measurement(sample, (window,), (), (*seen, *details) if counts or details else ())


QUIET: Mapping[str, float] = {
    "cpu_wait_s": 0.01,
    "delayed_acks": 0.0,
    "connections_opened": 0.0,
    "connections_failed": 0.0,
    "time_wait": 0.0,
    "listen_overflows": 0.0,
    "tcp_timeouts": 0.0,
    "retransmitted": 0.0,
    "limit_hits": 0.0,
    "major_faults": 0.0,
    "oom_kills": 0.0,
    "rx_packets": 800.0,
    "rx_bytes": 800_000.0,
    "tx_packets": 800.0,
    "tx_bytes": 1_120_000.0,
    "zero_windows": 0.0,
    "threads": 2.0,
    "thread_cpu_s": 0.1,
    "pressure_io_s": 0.0,
    "disk_bytes": 0.0,
    "disk_operations": 0.0,
}
"""A function that has nothing."""


def chained(
    answers_s: Sequence[float] = (0.0012,),
    tiny: Mapping[str, float | None] | None = None,
    ha: Mapping[str, float | None] | None = None,
    **given: object,
) -> Reading:
    """A chain of which the functions have nothing but what is named."""
    functions = given.pop("functions", {"tiny": usage(0.05, 0.1), "ha": usage(0.02, 0.04)})
    counts = {"tiny": {**QUIET, **(tiny or {})}, "ha": {**QUIET, **(ha or {})}}
    return read(measurement(CHAIN.name, functions, answers_s, counts, **given))  # type: ignore[arg-type]


def alone(function: str, **counts: float) -> Reading:
    """A function by itself, 0.5 ms."""
    seen = {function: {**QUIET, **counts}}
    return read(measurement(function, {function: usage(0.04, 0.08)}, (0.0005,), seen))


def known(*own: Reading, tiny: Reading | None = None, ha: Reading | None = None) -> Known:
    beside = {"tiny": [tiny or alone("tiny")], "ha": [ha or alone("ha")]}
    return Known(CHAIN, own, beside, {"tiny": "tiny", "ha": "ha"})
