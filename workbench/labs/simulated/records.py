"""From a stretch of simulated load to what every lab hands over: records and counters."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from workbench.domain.samples import Usage
from workbench.labs.simulated.scene import HEADER_BYTES, Scene
from workbench.labs.simulated.stretch import (
    CONNTRACK_LIMIT,
    LoadStretch,
    connections_per_request,
)
from workbench.measuring.records import (
    NO_STATUS,
    ComponentCounters,
    Counters,
    RequestRecords,
)

Floats = NDArray[np.float64]

TICK_S = 2.0**-30
"""Resolution of the lab's clock, about a nanosecond: sums and differences of such times are exact,
so a record does not depend on how late on the clock it was taken."""

REQUEST_BYTES = 120
SEGMENT_BYTES = 1448
"""Ethernet's 1500 less the headers of IP and TCP with time stamps."""
HANDSHAKE_PACKETS = 6
"""To open and to close a connection, both directions."""
CONNECTION_BYTES = 16_384
"""Memory that a request in flight holds."""
UNAVAILABLE = 503
"""HTTP status of what a function sheds."""
HOST_IDLE_CORES = 0.02
"""What the host burns for itself: a choice."""


def to_ticks(times_s: Floats | np.float64) -> Floats:
    """Times on the grid of the lab's clock."""
    return np.asarray(np.round(times_s / TICK_S) * TICK_S)


def request_records(
    scene: Scene, stretch: LoadStretch, begin_s: float, stop_s: float
) -> RequestRecords:
    """A row per request that was due (open loop) or begun (closed loop)."""
    passage = stretch.passage
    sent = passage.start_s.size
    planned = passage.start_s if stretch.due_s is None else stretch.due_s
    start, end = np.full((2, planned.size), np.nan)
    start[:sent] = begin_s + to_ticks(passage.start_s)
    end[:sent] = begin_s + to_ticks(passage.end_s)
    end[end > stop_s] = np.nan
    answered = np.isfinite(end)
    answered[:sent] &= ~passage.failed
    status = np.where(answered, 200, NO_STATUS).astype(np.int64)
    sheds = [component.part.sheds > 0.0 for component in scene.components]
    shed = np.append(sheds, False)[passage.refused_by]
    status[:sent][shed & np.isfinite(end[:sent])] = UNAVAILABLE
    return RequestRecords(
        planned_s=begin_s + to_ticks(planned),
        start_s=start,
        first_byte_s=np.full(planned.size, np.nan),
        end_s=end,
        status=status,
        bytes=np.where(answered, scene.answer_bytes, 0).astype(np.int64),
    )


def counters(
    scene: Scene, stretch: LoadStretch, begin_s: float, seconds: float
) -> tuple[Counters, ...]:
    """All counters at the begin, each second after it and the stop; they count from the begin.

    Nobody reads them while the host stands still: such an instant comes when that is over. The
    host counts that time as busy, as the kernel of a guest does whose cores were taken away.
    """
    hang = stretch.hang
    at = np.append(np.arange(0.0, seconds, 1.0), seconds)
    at = np.unique(np.where((at > hang.begin_s) & (at < hang.end_s), min(hang.end_s, seconds), at))
    passage = stretch.passage
    by_component = [
        _component_counters(scene, stretch, i, at) for i in range(len(scene.components))
    ]
    busy = sum(np.array([c.cpu_s for c in column]) for column in by_component) + (
        HOST_IDLE_CORES + stretch.neighbour_cores
    ) * hang.machine(at)
    cores = scene.options.host_cores
    busy = np.minimum(busy, cores * hang.machine(at)) + cores * (at - hang.machine(at))
    answered = _passed(passage.end_s, at)
    in_flight = _passed(passage.start_s, at) - answered
    others = scene.options.conntrack_share * CONNTRACK_LIMIT
    closed = connections_per_request(scene)
    return tuple(
        Counters(
            at_s=begin_s + float(at[row]),
            components={
                component.name: by_component[i][row] for i, component in enumerate(scene.components)
            },
            host_busy_s=float(busy[row]),
            conntrack_used=min(
                int(others + in_flight[row] * (len(scene.functions) + 1) + closed * answered[row]),
                CONNTRACK_LIMIT,
            ),
            conntrack_limit=CONNTRACK_LIMIT,
        )
        for row in range(at.size)
    )


def _passed(instants: Floats, at: Floats) -> NDArray[np.int64]:
    """How many instants, in any order, are not after each of the rising `at`, shape (at.size,)."""
    first = np.searchsorted(at, instants)
    return np.cumsum(np.bincount(first, minlength=at.size)[: at.size])


def _component_counters(
    scene: Scene, stretch: LoadStretch, index: int, at: Floats
) -> list[ComponentCounters]:
    component, consumption = scene.components[index], stretch.passage.consumption[index]
    through = np.isin(
        stretch.route, [r for r, route in enumerate(scene.routes) if index in route.stations]
    )
    requests = _passed(stretch.passage.start_s[through], at)
    answers = _passed(stretch.passage.end_s[through & ~stretch.passage.failed], at)
    at = stretch.hang.machine(at)
    cpu = consumption.cpu_until(at) * stretch.burnt[index]
    limited = component.cores < component.threads
    periods, throttled_periods = consumption.periods_until(at)
    throttled_s = consumption.throttled_until(at)
    answer_bytes = scene.answer_bytes + HEADER_BYTES
    packets = (
        math.ceil(answer_bytes / SEGMENT_BYTES) + HANDSHAKE_PACKETS / 2 * component.part.closes
    )
    # A function passes both on; the source sends requests only, the sink answers only.
    asks_in, answers_in = index > 0, index < len(scene.components) - 1
    asks_out, answers_out = answers_in, asks_in
    return [
        ComponentCounters(
            cpu_s=float(cpu[row]),
            periods=int(periods[row]) if limited else 0,
            throttled_periods=int(throttled_periods[row]),
            throttled_s=float(throttled_s[row]),
            memory_bytes=component.part.memory_mb * 1e6
            + CONNECTION_BYTES * max(0.0, float(requests[row] - answers[row])),
            rx_bytes=float(
                asks_in * requests[row] * REQUEST_BYTES + answers_in * answers[row] * answer_bytes
            ),
            tx_bytes=float(
                asks_out * requests[row] * REQUEST_BYTES + answers_out * answers[row] * answer_bytes
            ),
            rx_packets=float(asks_in * requests[row] + answers_in * answers[row] * packets),
            tx_packets=float(asks_out * requests[row] + answers_out * answers[row] * packets),
            threads_cpu_s=(float(cpu[row]) / component.threads,) * component.threads,
        )
        for row in range(at.size)
    ]


def usage_between(
    earlier: Counters, later: Counters, allotted: Mapping[str, float], threads: Mapping[str, int]
) -> Mapping[str, Usage]:
    """Usage of every component and of the host, for `on_usage`."""
    seconds = later.at_s - earlier.at_s
    usage = {}
    for name, now in later.components.items():
        before = earlier.components[name]
        periods = now.periods - before.periods
        cores = (now.cpu_s - before.cpu_s) / seconds
        usage[name] = Usage(
            cpu_cores=cores,
            cpu_share=cores / allotted[name],
            throttled_share=(now.throttled_periods - before.throttled_periods) / periods
            if periods
            else 0.0,
            throttled_s=now.throttled_s - before.throttled_s,
            memory_bytes=now.memory_bytes,
            rx_mbps=(now.rx_bytes - before.rx_bytes) * 8e-6 / seconds,
            tx_mbps=(now.tx_bytes - before.tx_bytes) * 8e-6 / seconds,
            threads=threads.get(name, 0),
        )
    busy = (later.host_busy_s - earlier.host_busy_s) / seconds
    usage["host"] = Usage(cpu_cores=busy, cpu_share=busy / allotted["host"])
    return usage
