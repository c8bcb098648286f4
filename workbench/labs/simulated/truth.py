"""Truth for benchmarks: long virtual runs without noise.

Truth of a breakpoint is the same rule on the noise-free curve (METHOD.md 7 and 11), found by
bisection over `wl` on such runs. Service times still vary from request to request: that is the
function's nature, not noise of the measurement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workbench.domain.campaign import Campaign
from workbench.domain.parameters import Configuration
from workbench.domain.topology import Target
from workbench.labs.simulated.options import SimulationOptions
from workbench.labs.simulated.scene import Chance, Scene, Stretch, run, set_scene
from workbench.queues.laws import saturated_throughput

Floats = NDArray[np.float64]

WARMUP_S = 2.0
"""Left out of every long run."""
PRECISION = 1e-3
"""Relative width at which a bisection stops."""
LEAST_SHARE = 1e-3
"""Share of the bottleneck's rate under which a target that still loses carries nothing."""


@dataclass(frozen=True)
class TruePoint:
    """Long-run figures at one operating point.

    Attributes
    ----------
    offered_rps, throughput_rps : requests/s due (open loop) or begun, and answered.
    loss : share of the due requests that the answers did not keep up with, at least 0.
    mean_ms, p50_ms, p95_ms, p99_ms : of the time from the planned (open loop) or the request's
        own start. Quantiles are over all requests of the run: unfinished and failed ones count as
        longer than all others, so a quantile among them is infinite. The mean is of the answered.
    """

    wl: float
    offered_rps: float
    throughput_rps: float
    loss: float
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float

    def kpi(self, name: str) -> float:
        """By the names of `domain.samples.KPI_UNITS`."""
        return self.loss * 100.0 if name == "loss_pct" else float(getattr(self, name))


class Truth:
    """What a configuration of a target really does.

    Parameters
    ----------
    options : of the lab that is to be judged; its noise is switched off.
    seconds : length of each run after the warm-up.
    """

    def __init__(
        self,
        campaign: Campaign,
        target: Target,
        configuration: Configuration,
        options: SimulationOptions | None = None,
        *,
        seconds: float = 20.0,
        seed: int = 0,
    ) -> None:
        quiet = replace(options or SimulationOptions(), noise=False)
        self._campaign = campaign
        self._scene: Scene = set_scene(campaign, target, configuration, quiet)
        self._seconds = seconds
        self._chance = Chance(seed, ("truth", target.name, configuration.key), {})

    def at(self, wl: float) -> TruePoint:
        """One long run; the same random numbers at every `wl`, so that curves are smooth."""
        load, timeout_s = self._campaign.load, self._campaign.windows.request_timeout_s
        stretch = run(self._scene, load, wl, WARMUP_S + self._seconds, timeout_s, self._chance)
        return _figures(wl, stretch, self._seconds)

    def curve(self, wls: Floats) -> tuple[TruePoint, ...]:
        return tuple(self.at(float(wl)) for wl in wls)

    def capacity(self) -> float:
        """By rule `capacity`, as `wl`.

        Open loop: the largest rate whose long-run loss stays within the campaign's goal. Closed
        loop: N* = (Z + R(1)) · X_max, with both measured (METHOD.md 2). 0 if nothing is carried
        within the goal.
        """
        nominal = saturated_throughput(self._scene.demands_s)
        if self._campaign.load.kind == "closed":
            think_s = self._campaign.load.think_time_s
            cycle_s = self.at(1).mean_ms * 1e-3 + think_s
            crowd = math.ceil(4.0 * nominal * cycle_s)
            return cycle_s * self.at(max(crowd, 64)).throughput_rps
        goal = self._campaign.loss_goal

        def carries(wl: float) -> bool:
            return self.at(wl).loss <= goal

        low, high = 0.5 * nominal, 1.5 * nominal
        # A small buffer or a crowded host loses long before the bottleneck is busy, and a goal
        # of a third and more is met well above it.
        while not carries(low):
            if low < LEAST_SHARE * nominal:
                return 0.0
            low, high = low / 2.0, low
        while carries(high):
            low, high = high, 2.0 * high
        return _largest(carries, low, high)

    def crossing(self, kpi: str, limit: float, low: float, high: float) -> float | None:
        """By rule `sla`: the `wl` where a KPI that grows crosses its limit; None if not in range.

        Parameters
        ----------
        kpi, limit : name and limit in the KPI's unit.
        low, high : range of `wl`.
        """
        if self.at(low).kpi(kpi) > limit or self.at(high).kpi(kpi) <= limit:
            return None
        return _largest(lambda wl: self.at(wl).kpi(kpi) <= limit, low, high)


def _largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that holds at `low` and not at `high` ceases to, by bisection in logs."""
    while high / low > 1.0 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return math.sqrt(low * high)


def _figures(wl: float, stretch: Stretch, seconds: float) -> TruePoint:
    passage = stretch.passage
    stop_s = WARMUP_S + seconds
    planned = passage.start_s if stretch.due_s is None else stretch.due_s
    end = np.full(planned.size, np.inf)
    end[: passage.end_s.size] = np.where(
        passage.failed | (passage.end_s > stop_s), np.inf, passage.end_s
    )
    offered = float(np.sum(planned >= WARMUP_S)) / seconds
    answered = float(np.sum((end >= WARMUP_S) & (end <= stop_s))) / seconds
    # Requests that are under way when the run stops are no backlog.
    due = planned >= WARMUP_S
    times_ms = np.sort((end - planned)[due]) * 1e3
    p50, p95, p99 = (_quantile(times_ms, share) for share in (0.50, 0.95, 0.99))
    finite = times_ms[np.isfinite(times_ms)]
    return TruePoint(
        wl=wl,
        offered_rps=offered,
        throughput_rps=answered,
        loss=max(0.0, 1.0 - answered / offered) if offered else 0.0,
        mean_ms=float(finite.mean()) if finite.size else math.inf,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
    )


def _quantile(ordered: Floats, share: float) -> float:
    if ordered.size == 0:
        return math.inf
    return float(ordered[min(math.ceil(share * ordered.size), ordered.size) - 1])
