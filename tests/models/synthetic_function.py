"""A function under open or closed load as closed formulas plus noise, with known breakpoints.

Deliberately not the simulated lab: the science rooms are tested against a second, independent
picture of a function (M/M/1 below saturation, a backlog above it).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench.domain.parameters import (
    Configuration,
    LoadModel,
    OperatingPoint,
    PrimaryWorkload,
    Sla,
)
from workbench.domain.samples import Estimate, Finding, Sample, Usage

TARGET = "haproxy"
CONFIGURATION = Configuration({"haproxy.vcpu": 0.25}, {"filesize_bytes": 10_000.0})
OPEN = LoadModel("open")
CLOSED = LoadModel("closed", think_time_s=0.1)
RATE = PrimaryWorkload("rate", 40.0, 4000.0, unit="/s")
CLIENTS = PrimaryWorkload("clients", 1.0, 256.0, integer=True)
LATENCY_SLA = Sla("p95_ms", 100.0)
WINDOW_S = 4.0


def make_sample(
    wl: float,
    kpis: dict[str, float],
    *,
    share: float | None = None,
    load: LoadModel = OPEN,
    configuration: Configuration = CONFIGURATION,
    reason: str = "",
    repetition: int = 0,
    p_sla: float | None = None,
    overloaded: bool = False,
    block: int = 0,
) -> Sample:
    """A sample as the engine would store it, with intervals of log sd 0.05.

    Response times of an overloaded one are lower bounds: their intervals begin at the value.
    """
    width = math.exp(1.96 * 0.05)
    usage = {"source": Usage(0.5, 0.5)}
    if share is not None:
        usage["haproxy"] = Usage(0.25 * share, share)
    return Sample(
        id=f"{TARGET}/{configuration.key}/{wl:g}/{repetition}",
        point=OperatingPoint(TARGET, configuration, wl, repetition),
        kpis={
            name: Estimate(value, value, 20_000.0)
            if overloaded and name.endswith("_ms")
            else Estimate(value, value / width, value * width)
            for name, value in kpis.items()
        },
        usage=usage,
        valid=not reason,
        findings=(Finding(reason, 1.0, 0.5, "test"),) if reason else (),
        labels=("overloaded",) if overloaded else (),
        load_model=load.key,
        kpi_definition="planned",
        generator="synthetic 1",
        planned=1000,
        completed=1000,
        errors=0,
        unfinished=0,
        windows=1,
        batches=6,
        throttled_share=0.0,
        straddle_share=0.0,
        started_at=0.0,
        measured_s=WINDOW_S,
        lab_s=6.0,
        p_sla=Estimate(p_sla, max(p_sla - 0.01, 0.0), min(p_sla + 0.01, 1.0))
        if p_sla is not None
        else None,
        block=block,
    )


@dataclass
class Function:
    """An M/M/1 queue of the given capacity whose figures scatter.

    `noise` is the log sd of capacity between samples (Student t4), `shared` what all samples of
    this function share, `decay` the log capacity lost per unit of log overload.
    """

    capacity: float
    seed: int = 0
    noise: float = 0.06
    shared: float = 0.03
    decay: float = 0.0
    response_ms: float = 1.0
    with_p_sla: bool = True

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._bias = self._random.normal(0.0, self.shared)

    def truth_sla(self, limit_ms: float) -> float:
        """The load at which the noise-free p95 meets the limit."""
        low, high = 1e-3 * self.capacity, 10.0 * self.capacity
        for _ in range(80):
            middle = math.sqrt(low * high)
            low, high = (
                (middle, high) if self._p95(middle, self.capacity) < limit_ms else (low, middle)
            )
        return low

    def measure(
        self, wl: float, configuration: Configuration = CONFIGURATION, repetition: int = 0
    ) -> Sample:
        """An open-loop sample."""
        scatter = self.noise * self._random.standard_t(4) / math.sqrt(2.0)
        carries = self.capacity * math.exp(self._bias + scatter)
        if wl > carries:
            carries *= (wl / carries) ** -self.decay
        rate = min(wl, carries) * math.exp(self._random.normal(0.0, 0.003))
        # A backlog that grows by less than this cannot be told from the gaps of the quota.
        overloaded = wl > 1.01 * carries
        kpis = {
            "throughput_rps": rate,
            "loss_pct": 100.0 * (1.0 - carries / wl) if overloaded else 0.0,
            "p95_ms": self._p95(wl, carries) * math.exp(self._random.normal(0.0, 0.12)),
        }
        return make_sample(
            wl,
            kpis,
            share=min(wl / carries, 1.0) * 0.97 * math.exp(self._random.normal(0.0, 0.02)),
            configuration=configuration,
            repetition=repetition,
            overloaded=overloaded,
            p_sla=self._p_within(wl, carries, LATENCY_SLA.limit) if self.with_p_sla else None,
        )

    def _mean_ms(self, wl: float, carries: float) -> float:
        # Capped where a window is too short for the queue to grow to its mean.
        return min(self.response_ms / max(1.0 - wl / carries, 1e-9), 250.0 * WINDOW_S / 10.0)

    def _p95(self, wl: float, carries: float) -> float:
        backlog_ms = max(wl / carries - 1.0, 0.0) * WINDOW_S * 1000.0
        return 3.0 * self._mean_ms(wl, carries) + 0.95 * backlog_ms

    def _p_within(self, wl: float, carries: float, limit_ms: float) -> float:
        """Share of responses within the limit."""
        backlog_ms = max(wl / carries - 1.0, 0.0) * WINDOW_S * 1000.0
        if backlog_ms > limit_ms:
            return limit_ms / backlog_ms * 0.9
        return 1.0 - math.exp(-(limit_ms - backlog_ms) / self._mean_ms(wl, carries))
