"""A session of a target under the noise of METHOD.md 11, sample by sample, with known breakpoints.

Every configuration is a server of capacity C that carries all below it and C (less what overload
costs it) above. What a visit meets is C·exp(u): u is the sum of a window's own luck, of its
deployment's, and of a slow Ornstein-Uhlenbeck drift of the host that all configurations share.
Microseconds per sample: thousands of sessions can be had.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from synthetic_function import LATENCY_SLA, OPEN, RATE, TARGET, make_sample

from workbench.domain.parameters import Configuration
from workbench.domain.samples import Sample
from workbench.sampling.base import Ask, Space

DEPLOY_S, VISIT_S, WINDOW_S = 5.0, 6.0, 4.0
LOSS_GOAL = 0.005
KPI_MAX = 1000.0
CONFIGURATIONS = tuple(
    Configuration({"haproxy.vcpu": v}, {"filesize_bytes": 1e4}) for v in (0.25, 0.5)
)


@dataclass(frozen=True)
class Trap:
    """One family: how large each kind of noise is, of what law, and what the function does.

    `law` is that of a window: `normal`, `t4` (Student, scaled to `window_sd`), `outliers` (5 % of
    the windows carry half), `band` (10 % of the windows carry a fifth less).
    `decay` is the share of capacity lost at twice the load; `recovers` the load, as a share of C,
    under which a deployment that was overloaded finds back (0: at once).
    """

    window_sd: float = 0.05
    restart_sd: float = 0.0
    drift_sd: float = 0.0
    drift_s: float = 300.0
    law: str = "normal"
    decay: float = 0.0
    recovers: float = 0.0
    response_ms: float = 1.0
    exponent: float = 1.0
    """Response time is response_ms / (1 - load/C)^exponent below C; 0 is flat up to C."""
    plateau: float = 0.97


@dataclass
class Session:
    """The lab of one session: capacities are drawn log-uniform in 150-1500/s, off every grid."""

    trap: Trap
    seed: int
    low: float = 150.0
    high: float = 1500.0
    capacities: dict[Configuration, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        for configuration in CONFIGURATIONS:
            drawn = self._random.uniform(math.log(self.low), math.log(self.high))
            self.capacities[configuration] = math.exp(drawn)
        self._clock = 0.0
        self._block = -1
        self._restart = 0.0
        self._drift = float(self._random.normal(0.0, self.trap.drift_sd))
        self._hurt = False

    def space(self) -> Space:
        return Space(
            TARGET,
            CONFIGURATIONS,
            RATE,
            OPEN,
            "p95_ms",
            KPI_MAX,
            LOSS_GOAL,
            LATENCY_SLA,
            self.seed,
        )

    def truth(self, configuration: Configuration) -> dict[str, float]:
        """`capacity` and `sla` of the long run without noise."""
        capacity = self.capacities[configuration]
        low, high = 0.1 * capacity, 1.2 * capacity
        for _ in range(60):
            middle = math.sqrt(low * high)
            under = self._p95(middle, capacity) <= LATENCY_SLA.limit
            low, high = (middle, high) if under else (low, middle)
        return {"capacity": capacity / (1.0 - LOSS_GOAL), "sla": low}

    def measure(self, ask: Ask) -> Sample:
        """An open-loop sample, on the deployment that it asks for."""
        if ask.block != self._block:
            self._block = ask.block
            self._pass(DEPLOY_S)
            self._restart = float(self._random.normal(0.0, self.trap.restart_sd))
            self._hurt = False
        self._pass(VISIT_S)
        wl = ask.wl
        carries = self.capacities[ask.configuration] * math.exp(
            self._window() + self._restart + self._drift
        )
        full = carries
        if self.trap.recovers and self._hurt and wl > self.trap.recovers * carries:
            carries *= self.trap.recovers
        if wl > carries and self.trap.decay:
            carries *= (wl / carries) ** (math.log1p(-self.trap.decay) / math.log(2.0))
        self._hurt = wl > full or (self._hurt and wl > self.trap.recovers * full)
        overloaded = wl > carries
        rate = min(wl, carries) * math.exp(self._random.normal(0.0, 0.002))
        kpis = {
            "throughput_rps": rate,
            "loss_pct": max(100.0 * (1.0 - carries / wl), 0.0),
            "p95_ms": self._p95(wl, carries) * math.exp(self._random.normal(0.0, 0.05)),
        }
        return make_sample(
            wl,
            kpis,
            share=min(wl / carries, 1.0)
            * self.trap.plateau
            * math.exp(self._random.normal(0.0, 0.01)),
            configuration=ask.configuration,
            repetition=ask.repetition,
            overloaded=overloaded and wl > 1.02 * carries,
            p_sla=self._within(wl, carries),
            block=ask.block,
        )

    def _pass(self, seconds: float) -> None:
        self._clock += seconds
        if self.trap.drift_sd:
            kept = math.exp(-seconds / self.trap.drift_s)
            new = self._random.normal(0.0, self.trap.drift_sd * math.sqrt(1.0 - kept * kept))
            self._drift = kept * self._drift + float(new)

    def _window(self) -> float:
        own = float(self._random.normal(0.0, self.trap.window_sd))
        match self.trap.law:
            case "t4":
                drawn = float(self._random.standard_t(4)) / math.sqrt(2.0)
                return self.trap.window_sd * drawn
            case "outliers":
                return own - (math.log(2.0) if self._random.random() < 0.05 else 0.0)
            case "band":
                return own - (math.log(1.25) if self._random.random() < 0.10 else 0.0)
        return own

    def _mean_ms(self, wl: float, carries: float) -> float:
        left = max(1.0 - wl / carries, 1e-9)
        return min(self.trap.response_ms / left**self.trap.exponent, 100.0)

    def _p95(self, wl: float, carries: float) -> float:
        backlog_ms = max(wl / carries - 1.0, 0.0) * WINDOW_S * 1e3
        return 3.0 * self._mean_ms(wl, carries) + 0.95 * backlog_ms

    def _within(self, wl: float, carries: float) -> float:
        backlog_ms = max(wl / carries - 1.0, 0.0) * WINDOW_S * 1e3
        limit = LATENCY_SLA.limit
        if backlog_ms > limit:
            return limit / backlog_ms * 0.9
        return 1.0 - math.exp(-(limit - backlog_ms) / self._mean_ms(wl, carries))
