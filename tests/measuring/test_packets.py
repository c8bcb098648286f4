"""Packet samples: KPIs with intervals, blame in METHOD's order, what the quota does not catch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from workbench.domain.campaign import WindowPlan
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, LoadModel, OperatingPoint
from workbench.domain.samples import Sample
from workbench.measuring.floor import METHOD_FLOOR
from workbench.measuring.judging import Judgement, Terms, judge
from workbench.measuring.records import (
    ComponentCounters,
    Counters,
    Drive,
    PacketCounts,
    RequestRecords,
)

LOAD = LoadModel("open", unit="packets")
TERMS = Terms(load=LOAD, windows=WindowPlan(), sla=None, kpi="loss_pct")
BEGIN_S = 50.0
BATCH_S = 0.5


def drive(
    rate: float = 10_000.0,
    *,
    seconds: float = 5.0,
    loss: float | np.ndarray = 0.0,
    sent: float = 1.0,
    dropped: int | None = 0,
    cpu: Mapping[str, float] | None = None,
    source_thread: float = 0.2,
    softirq: float = 0.05,
    host: float = 0.5,
    noise: float = 0.01,
) -> Drive:
    """Counts by the half second; `loss` and `sent` are shares, `cpu` in cores by component."""
    k = round(seconds / BATCH_S)
    rng = np.random.default_rng(7)
    left = np.round(rate * BATCH_S * sent * np.ones(k))
    lost = np.round(left * np.clip(loss * (1 + noise * rng.standard_normal(k)), 0, 1))
    nothing = np.zeros(0)
    empty = nothing.astype(np.int64)
    starts = BEGIN_S + BATCH_S * np.arange(k)
    used = {"source": 0.2, "router": 0.1, "sink": 0.1, **(cpu or {})}
    counters = tuple(
        Counters(
            at_s=BEGIN_S + t,
            components={
                name: ComponentCounters(
                    cores * t, threads_cpu_s=(source_thread * t,) if name == "source" else ()
                )
                for name, cores in used.items()
            },
            host_busy_s=host * t,
            softirq_s=softirq * t,
        )
        for t in np.append(np.arange(0.0, seconds), seconds)
    )
    return Drive(
        BEGIN_S,
        BEGIN_S + seconds,
        RequestRecords(nothing, nothing, nothing, nothing, empty, empty),
        counters,
        "iperf3 3.12",
        "none",
        0,
        {"source": 2.0, "router": 0.25, "sink": 2.0, "host": 2.0},
        {"router": 0},
        packets=PacketCounts(
            start_s=starts,
            end_s=starts + BATCH_S,
            planned=rate * BATCH_S * np.ones(k),
            sent=left,
            numbered=left,
            received=left - lost,
            lost=lost,
            jitter_s=1e-5 * (1 + 0.1 * rng.standard_normal(k)),
            out_of_order=0,
            size_bytes=512,
            dropped_by_sink=dropped,
        ),
        routers=("router",),
    )


def judged(*drives: Drive) -> Judgement:
    point = OperatingPoint("router", Configuration({"router.vcpu": 0.25}, {}), 10_000.0)
    return judge(drives, point, TERMS, started_at=0.0, lab_s=5.0)


def sample_of(*drives: Drive) -> Sample:
    return judged(*drives).measurement.sample


def test_a_sample_without_loss_is_valid_and_settled() -> None:
    judgement = judged(drive())
    sample = judgement.measurement.sample
    assert (sample.valid, judgement.settled) == (True, True)
    assert sample.load_model == "packets-constant"
    assert (sample.kpi_definition, sample.batches) == ("none", 8)
    assert sample.kpi("throughput_pps") == pytest.approx(10_000)
    assert sample.kpi("goodput_mbps") == pytest.approx(10_000 * 512 * 8e-6)
    loss = sample.kpis["loss_pct"]
    assert loss.value == 0.0
    assert 0.0 < loss.high < 0.1, "none seen in 40,000 packets is not none at all"
    assert "p95_ms" not in sample.kpis
    assert judgement.measurement.windows[0].start_s == pytest.approx(1.0)


def test_loss_is_stated_with_an_interval_over_batches() -> None:
    sample = sample_of(drive(loss=0.30, noise=0.1))
    assert sample.valid
    loss = sample.kpis["loss_pct"]
    assert loss.low < 30 < loss.high
    assert loss.high - loss.low > 1.0, "40,000 independent packets would claim less than that"
    assert "overloaded" in sample.labels
    throughput = sample_of(drive(loss=0.30, noise=0.0)).kpis["throughput_pps"]
    floor = METHOD_FLOOR.half("throughput_pps", 1)
    assert floor == pytest.approx(1.96 * 0.05, rel=1e-3)
    assert throughput.high == pytest.approx(throughput.value * math.exp(floor)), (
        "95 % of what the router sets, not one standard deviation"
    )
    assert sample.unfinished + sample.completed == pytest.approx(sample.planned, abs=10)


@pytest.mark.parametrize(
    ("bad", "reason", "evidence"),
    [
        (drive(sent=0.9), "source_saturated", "were due"),
        (drive(source_thread=0.95), "source_saturated", "thread 1 of the source ran 95%"),
        (drive(loss=0.02, dropped=900), "sink_saturated", "RcvbufErrors"),
        (drive(cpu={"sink": 1.9}), "sink_saturated", "95% of its allocation"),
        (drive(host=1.9), "host_saturated", "95% of what it has"),
        (drive(rate=30.0), "too_few", "120 packets"),
    ],
)
def test_blame_has_its_evidence(bad: Drive, reason: str, evidence: str) -> None:
    sample = sample_of(bad)
    assert (sample.valid, sample.reason) == (False, reason)
    assert evidence in sample.findings[0].evidence


def test_a_sink_that_drops_little_of_what_is_lost_is_not_blamed() -> None:
    assert sample_of(drive(loss=0.30, dropped=900)).valid


def test_the_source_is_blamed_before_sink_and_host() -> None:
    sample = sample_of(drive(sent=0.9, dropped=900, host=1.9))
    assert [found.reason for found in sample.findings] == [
        *("source_saturated", "sink_saturated", "host_saturated"),
    ]
    assert "overloaded" not in sample.labels, "what the source did is not put down to the router"


def test_what_drifts_is_driven_on_and_then_unsteady() -> None:
    ramp = np.linspace(0.0, 0.6, 10)
    first = judged(drive(loss=ramp))
    assert first.measurement.sample.reason == "unsteady"
    assert not first.settled
    assert first.next_s > 4.0
    steady = judged(drive(loss=ramp), drive(loss=0.3))
    assert steady.settled
    assert steady.measurement.sample.valid
    assert steady.measurement.sample.windows == 1


def test_the_share_that_the_quota_does_not_catch_is_told() -> None:
    uncharged = sample_of(drive(cpu={"router": 0.0}, softirq=0.5)).remarks[-1]
    assert (uncharged.label, uncharged.figure) == ("uncharged_cpu", 1.0)
    assert "router was charged 0.000 cores, 0.000 of them" in uncharged.evidence
    half = sample_of(drive(cpu={"router": 0.1}, softirq=0.1)).remarks[-1]
    assert half.figure == pytest.approx(0.5)
    beyond = sample_of(drive(cpu={"router": 0.5}, softirq=0.0001)).remarks[-1]
    assert beyond.figure == pytest.approx(0.5, abs=0.001), "0.25 of 0.5 cores are within the quota"
    none = sample_of(drive(softirq=0.0))
    assert "uncharged_cpu" not in none.labels


def test_a_drive_without_anything_after_its_warm_up_is_refused() -> None:
    with pytest.raises(DataError, match="nothing after its warm-up"):
        judged(drive(seconds=1.0))


def test_full_loss_is_a_sample_without_jitter() -> None:
    sample = sample_of(drive(loss=1.0, noise=0.0))
    assert sample.valid
    assert sample.kpi("loss_pct") == 100.0
    assert sample.kpi("throughput_pps") == 0.0
    assert "jitter_ms" not in sample.kpis


def test_where_nobody_counted_the_sinks_drops_nothing_is_held_against_it() -> None:
    counted = drive(loss=0.02)
    assert counted.packets is not None
    unknown = replace(counted, packets=replace(counted.packets, dropped_by_sink=None))
    assert sample_of(unknown).valid
