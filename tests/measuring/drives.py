"""Synthetic drives: a first-come-first-served function, driven in virtual time.

Small enough to be obviously right: the judge is tested against it, not against itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from workbench.domain.campaign import WindowPlan
from workbench.domain.lab import BypassCurve, BypassPoint
from workbench.domain.parameters import Configuration, LoadModel, OperatingPoint, Sla
from workbench.measuring.floor import VarianceFloor
from workbench.measuring.judging import Judgement, Terms, judge
from workbench.measuring.records import ComponentCounters, Counters, Drive, RequestRecords

CORES = {"haproxy": 0.25, "source": 0.5, "sink": 0.5, "host": 2.0}
OPEN = LoadModel("open")
CLOSED = LoadModel("closed")


def point(wl: float, repetition: int = 0) -> OperatingPoint:
    configuration = Configuration({"haproxy.vcpu": 0.25}, {"filesize_bytes": 10000.0})
    return OperatingPoint("haproxy", configuration, wl, repetition)


def terms(
    load: LoadModel = OPEN,
    *,
    sla: Sla | None = None,
    floor: float = 0.0,
    kpi: str = "p95_ms",
    bypass: BypassCurve | None = None,
    **windows: float,
) -> Terms:
    plan = replace(WindowPlan(), **windows)
    return Terms(load, plan, sla, kpi, floor_of(floor), bypass)


def bypass_curve(*points: BypassPoint) -> BypassCurve:
    return BypassCurve("synthetic 1", "open-constant", True, {"filesize_bytes": 1e4}, points)


def floor_of(sd: float) -> VarianceFloor:
    """The proportions of METHOD.md 6: p95 scatters 2.4 times as much as the others."""
    scatter = {"throughput_rps": sd, "mean_ms": sd, "p95_ms": 2.4 * sd}
    return VarianceFloor(scatter, scatter, {})


def judged(drives: Drive | Sequence[Drive], wl: float, given: Terms) -> Judgement:
    drives = [drives] if isinstance(drives, Drive) else drives
    lab_s = sum(d.stop_s - d.begin_s for d in drives)
    return judge(drives, point(wl), given, started_at=1.7e9, lab_s=lab_s)


def records(
    planned: Sequence[float] | np.ndarray,
    start: Sequence[float] | np.ndarray,
    end: Sequence[float] | np.ndarray,
    *,
    status: int | np.ndarray = 200,
    body: int = 10_000,
) -> RequestRecords:
    planned, start, end = (np.asarray(x, dtype=float) for x in (planned, start, end))
    answered = np.isfinite(end)
    statuses = np.where(answered, status, 0)
    return RequestRecords(
        planned,
        start,
        np.full(planned.size, np.nan),
        end,
        statuses.astype(np.int64),
        np.where(answered & (statuses > 0), body, 0).astype(np.int64),
    )


def drive(
    rows: RequestRecords,
    seconds: float,
    *,
    begin_s: float = 100.0,
    cpu: Mapping[str, float] | None = None,
    threads: Mapping[str, Sequence[float]] | None = None,
    throttled: float = 0.0,
    host_cores: float = 0.6,
    connections: int = 64,
    definition: str = "planned",
    conntrack: Sequence[float] = (),
    frozen: tuple[float, float] = (0.0, 0.0),
) -> Drive:
    """`cpu` is in cores by component, `threads` in cores by thread, `throttled` a share.

    `conntrack` is the share of the connection table in use at each reading, `frozen` the stretch
    of time in which nobody burns CPU.
    """

    def awake(at: float) -> float:
        """Seconds since the begin in which CPU was burned."""
        since = at - begin_s
        return since - min(max(0.0, since - frozen[0]), frozen[1] - frozen[0])

    used = {"haproxy": 0.1, "source": 0.1, "sink": 0.05, **(cpu or {})}
    instants = begin_s + np.append(np.arange(0.0, seconds, 1.0), seconds)
    counters = tuple(
        Counters(
            at_s=float(at),
            components={
                name: ComponentCounters(
                    cpu_s=5 + cores * awake(float(at)),
                    periods=int(10 * (at - begin_s)) if name == "haproxy" else 0,
                    throttled_periods=(
                        int(throttled * 10 * (at - begin_s)) if name == "haproxy" else 0
                    ),
                    throttled_s=0.05 * throttled * 10 * (at - begin_s),
                    memory_bytes=2e7,
                    rx_bytes=1e6 * (at - begin_s),
                    tx_bytes=2e6 * (at - begin_s),
                    threads_cpu_s=tuple(
                        share * (at - begin_s) for share in (threads or {}).get(name, ())
                    ),
                )
                for name, cores in used.items()
            },
            host_busy_s=50 + host_cores * awake(float(at)),
            conntrack_used=int(1000 * conntrack[i]) if conntrack else 0,
            conntrack_limit=1000 if conntrack else 0,
        )
        for i, at in enumerate(instants)
    )
    shifted = replace(
        rows,
        planned_s=rows.planned_s + begin_s,
        start_s=rows.start_s + begin_s,
        first_byte_s=rows.first_byte_s + begin_s,
        end_s=rows.end_s + begin_s,
    )
    return Drive(
        begin_s=begin_s,
        stop_s=begin_s + seconds,
        records=shifted,
        counters=counters,
        generator="synthetic 1",
        kpi_definition=definition,  # type: ignore[arg-type]  # a Literal, given as text by tests
        connections=connections,
        allotted_cores=CORES,
        threads={"haproxy": 1},
    )


def service_times(mean_s: float, size: int, seed: int, sigma: float = 0.3) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0.0, sigma, size) if sigma else np.zeros(size)
    return mean_s * np.exp(noise - sigma**2 / 2)


def open_loop(
    rate: float,
    service_s: float,
    seconds: float = 4.5,
    *,
    connections: int = 64,
    source_rps: float = np.inf,
    seed: int = 1,
    sigma: float = 0.3,
) -> RequestRecords:
    """Constant rate to one server; the source sends at most `source_rps`, in order."""
    planned = np.arange(0.0, seconds, 1 / rate)
    service = service_times(service_s, planned.size, seed, sigma)
    start, end = np.empty(planned.size), np.empty(planned.size)
    for i, due in enumerate(planned):
        start[i] = due
        if i:
            start[i] = max(due, start[i - 1] + 1 / source_rps)
        if i >= connections:
            start[i] = max(start[i], end[i - connections])
        end[i] = max(start[i], end[i - 1] if i else 0.0) + service[i]
    start[start >= seconds] = np.nan
    end[(end >= seconds) | np.isnan(start)] = np.nan
    return records(planned, start, end)


def closed_loop(
    clients: int,
    service_s: float,
    seconds: float = 4.5,
    *,
    think_s: float = 0.0,
    idle_s: float = 0.0,
    servers: int = 1,
    seed: int = 1,
    sigma: float = 0.3,
) -> RequestRecords:
    """Clients on `servers` servers; `idle_s` is time that a lame source loses between requests."""
    service = iter(
        service_times(service_s, int(4 * servers * seconds / service_s) + 99, seed, sigma)
    )
    ready = [(0.0, client) for client in range(clients)]
    heapq.heapify(ready)
    free = [0.0] * servers
    rows = []
    while ready and ready[0][0] < seconds:
        begun, client = heapq.heappop(ready)
        ended = max(begun, heapq.heappop(free)) + next(service)
        heapq.heappush(free, ended)
        rows.append((begun, ended if ended < seconds else np.nan))
        heapq.heappush(ready, (ended + think_s + idle_s, client))
    begun, ended = np.array(rows).T
    return records(begun, begun, ended)
