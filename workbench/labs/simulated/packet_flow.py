"""Packets through a simulated target: queue, service and drops of each hop, packet by packet.

Nothing answers a packet. Each hop serves them in order, under its quota, and drops what finds its
queue full; what a hop lets through arrives at the next. Gaps and bursts
are those of the load.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.domain.errors import LabError
from workbench.domain.parameters import LoadModel
from workbench.domain.topology import Series, Vnf
from workbench.labs.simulated.scene import Scene
from workbench.labs.simulated.stretch import CONNTRACK_LIMIT, Chance
from workbench.measuring.cycles import planned_times
from workbench.measuring.delays import smoothed_jitter
from workbench.measuring.records import ComponentCounters, Counters, PacketCounts
from workbench.queues.stations import PERIOD_S, REFUSED, Consumption, Station, open_server
from workbench.traffic.spreads import draw

Floats = NDArray[np.float64]

FLOWS = "flows"
HEADERS_BYTES = 42
INTERVAL_S = 0.5
QUEUE = 256
"""Packets that wait at a hop, where its stand-in does not say: the ring of a container's link."""


@dataclass(frozen=True)
class PacketFlow:
    """A stretch of packets from time 0 on, as it went.

    Attributes
    ----------
    due_s : when the source was to send, rising.
    sent_s : when each left the source, shape (n,).
    arrived_s : when each was counted at the sink, shape (n,); NaN for what was dropped.
    reached_s : by component, when packets came to it, in order.
    left_s : by component, when packets left it.
    used : by component, what it burnt.
    dropped : by component, how many found its queue full.
    size_bytes : payload, on average.
    """

    due_s: Floats
    sent_s: Floats
    arrived_s: Floats
    reached_s: tuple[Floats, ...]
    left_s: tuple[Floats, ...]
    used: tuple[Consumption, ...]
    dropped: Mapping[str, int]
    size_bytes: float


def send(
    scene: Scene, load: LoadModel, rate_pps: float, seconds: float, chance: Chance
) -> PacketFlow:
    """Send packets through the components of a scene, from an idle target on.

    Raises `LabError` for a target that is no series of functions.
    """
    parts = scene.target.graph.parts if isinstance(scene.target.graph, Series) else ()
    if not (isinstance(scene.target.graph, Vnf) or all(isinstance(p, Vnf) for p in parts)):
        raise LabError(
            "packets are simulated through functions in series only",
            where=f"target {scene.target.name}",
            remedy="Profile its branches as targets of their own",
        )
    at = _due(scene, load, rate_pps, seconds, chance)
    due_s, number = at, np.arange(at.size)
    reached, left, used = [], [], []
    dropped: dict[str, int] = {}
    crowding = scene.crowding_of_packets(rate_pps)
    sent_s = at
    for index, component in enumerate(scene.components):
        own = chance.stream(f"packets {component.name}")
        last = index == len(scene.components) - 1
        works = component.service.draw(own, at.size) * crowding * component.waits
        if index > 0 and not last:
            works *= math.exp(chance.log_factors.get(component.name, 0.0))
        station = Station(
            component.name,
            component.usable_cores,
            1,
            float(own.uniform(-PERIOD_S, 0.0)),
            None if index == 0 else int(component.part.buffer) or QUEUE,
        )
        server = open_server(station)
        each = zip(at.tolist(), works[: at.size].tolist(), strict=True)
        ends = np.array([server.serve(*packet) for packet in each])
        kept = ends != REFUSED
        if index == 0:
            kept = ends <= seconds  # what it has not sent by then it does not send
            sent_s, number = ends[kept], number[kept]
        elif not kept.all():
            dropped[f"{component.name}: queue"] = int((~kept).sum())
        reached.append(at)
        if index:
            number = number[kept]
        at = ends[kept]
        left.append(at)
        used.append(server.consumption())
    arrived = np.full(sent_s.size, np.nan)
    arrived[number] = at
    return PacketFlow(
        due_s,
        sent_s,
        arrived,
        tuple(reached),
        tuple(left),
        tuple(used),
        dropped,
        scene.answer_bytes,
    )


def _due(scene: Scene, load: LoadModel, rate_pps: float, seconds: float, chance: Chance) -> Floats:
    """When the source is to send, rising."""
    shape = load.shaped(scene.configuration)
    if shape is not None:
        return planned_times(shape, rate_pps, seconds)
    count = math.ceil(rate_pps * seconds)
    if load.arrivals == "constant":
        return np.arange(count) / rate_pps
    gaps = draw(load.arrivals, count, chance.stream("gaps")) / rate_pps
    at = np.cumsum(gaps) - gaps[0]
    return np.asarray(at[at < seconds])


def counts(
    flow: PacketFlow,
    begin_s: float,
    seconds: float,
    *,
    cycle_s: float = 0.0,
    timed: bool = False,
) -> PacketCounts:
    """What source and sink count by the half second, or by whole cycles; numbers count to when they
    were sent. `timed` packets are stamped."""
    every = cycle_s * math.ceil(INTERVAL_S / cycle_s - 1e-6) if cycle_s else INTERVAL_S
    start = np.arange(0.0, seconds - every / 2, every)
    end = np.minimum(start + every, seconds)
    edges = np.append(start, end[-1])
    arrived = np.isfinite(flow.arrived_s)
    sent = np.histogram(flow.sent_s, edges)[0].astype(float)
    received = np.histogram(flow.sent_s[arrived], edges)[0].astype(float)
    delay = (flow.arrived_s - flow.sent_s)[arrived]
    jitter = smoothed_jitter(delay)
    places = np.searchsorted(flow.sent_s[arrived], edges[1:], side="right") - 1
    known = np.where(places >= 0, jitter[np.maximum(places, 0)] if jitter.size else 0.0, 0.0)
    return PacketCounts(
        start_s=begin_s + start,
        end_s=begin_s + end,
        planned=np.histogram(flow.due_s, edges)[0].astype(float),
        sent=sent,
        numbered=sent,
        received=received,
        lost=sent - received,
        jitter_s=known,
        out_of_order=0,
        size_bytes=round(flow.size_bytes),
        dropped_by_sink=flow.dropped.get("sink: queue", 0),
        exact=(int(flow.sent_s.size), int(arrived.sum())),
        dropped_at={k: v for k, v in flow.dropped.items() if k != "sink: queue"},
        delays=(begin_s + flow.sent_s[arrived], delay) if timed else None,
    )


def counters(
    scene: Scene, flow: PacketFlow, begin_s: float, seconds: float, idle_cores: float
) -> tuple[Counters, ...]:
    """All counters at the begin, each second after it and the stop; they count from the begin."""
    at = np.unique(np.append(np.arange(0.0, seconds, 1.0), seconds))
    frame = flow.size_bytes + HEADERS_BYTES
    table: dict[str, list[ComponentCounters]] = {}
    busy = idle_cores * at
    for index, component in enumerate(scene.components):
        used = flow.used[index]
        cpu = used.cpu_until(at) / component.waits
        busy = busy + cpu
        periods, throttled = used.periods_until(at)
        throttled_s = used.throttled_until(at)
        limited = component.cores < 1.0
        into = np.searchsorted(flow.reached_s[index], at, side="right") if index else 0 * at
        out = np.searchsorted(flow.left_s[index], at, side="right")
        out = out if index < len(scene.components) - 1 else 0 * at
        table[component.name] = [
            ComponentCounters(
                cpu_s=float(cpu[row]),
                periods=int(periods[row]) if limited else 0,
                throttled_periods=int(throttled[row]),
                throttled_s=float(throttled_s[row]),
                memory_bytes=component.part.memory_mb * 1e6,
                rx_bytes=float(into[row] * frame),
                tx_bytes=float(out[row] * frame),
                rx_packets=float(into[row]),
                tx_packets=float(out[row]),
                threads_cpu_s=(float(cpu[row]),),
            )
            for row in range(at.size)
        ]
    flows = int(scene.configuration.parameter(FLOWS, 1.0))
    return tuple(
        Counters(
            at_s=begin_s + float(at[row]),
            components={name: column[row] for name, column in table.items()},
            host_busy_s=float(min(busy[row], scene.options.host_cores * at[row])),
            conntrack_used=flows,
            conntrack_limit=CONNTRACK_LIMIT,
        )
        for row in range(at.size)
    )
