"""A target at one configuration as a queueing network, before any load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np

from workbench.domain.campaign import Campaign
from workbench.domain.competitors import without_competitor
from workbench.domain.parameters import Configuration, LoadModel, settings_of
from workbench.domain.resources import known
from workbench.domain.topology import Node, Parallel, Series, Target, Vnf, VnfTemplate
from workbench.labs.simulated.capacity import efficiency, under_load, usable_cores
from workbench.labs.simulated.component_models import ComponentModel, stand_in
from workbench.labs.simulated.options import SimulationOptions
from workbench.queues.laws import saturated_throughput, throughput_bound
from workbench.queues.network import Route
from workbench.queues.service import ServiceTime

Ways = Sequence[tuple[float, tuple[Vnf, ...]]]
"""Every way through a target's functions with its share of the traffic."""

FILE_BYTES = 10_000.0
"""Answer size where the campaign has no `filesize_bytes`."""
PACKET_BYTES, IMIX_BYTES = 512.0, 320.0
"""Payload of a packet where the campaign has no `packetsize_bytes`; mean of the Internet mix."""
USUAL_QUALITY_MBPS, SEGMENT_S = 1.0, 1.0
"""Bit rate of a movie where the campaign has no `quality_mbps`; what a segment of it lasts."""
HEADER_BYTES = 250
"""Of an answer, on the wire."""
CLIENT_CORES = 2.0
"""Least allotment of a source of one thread that shall not be short of its allotment."""


@dataclass(frozen=True)
class SimulatedComponent:
    """The source, a function or the sink at one configuration.

    Attributes
    ----------
    name : VNF instance name, `source` or `sink`.
    cores, threads : CPU allotment and worker threads, as configured.
    service : CPU time per request.
    usable_cores, servers : of them, what can be used: a quota binds where it is less than the
        servers, which work on one request each.
    held : seconds for which a CPU second occupies a server; more than 1 where something else
        than CPU limits.
    share : of all requests that pass through it.
    waits : how much longer work lasts because somebody competes for its cores.
    """

    name: str
    part: ComponentModel
    cores: float
    threads: int
    service: ServiceTime
    usable_cores: float
    servers: int
    held: float = 1.0
    share: float = 1.0
    waits: float = 1.0

    @property
    def demand_s(self) -> float:
        """Seconds of its time that one request of the target takes, on average."""
        lasts_s = self.service.mean_s * self.held * self.waits
        return self.share * lasts_s / min(self.usable_cores, self.servers)


@dataclass(frozen=True)
class Scene:
    """A target at one configuration, before any load.

    Attributes
    ----------
    components : source first, sink last.
    routes : by indices into `components`.
    answer_bytes : body of every answer.
    path_s : pure delay of the path without the functions, beside its hops.
    ends : source and sink as they are without caps. Caps are shares of what the functions carry
        at this configuration, and the path without functions knows neither.
    """

    target: Target
    configuration: Configuration
    components: tuple[SimulatedComponent, ...]
    routes: tuple[Route, ...]
    answer_bytes: float
    options: SimulationOptions
    ends: tuple[SimulatedComponent, SimulatedComponent]
    path_s: float = 0.0

    @property
    def functions(self) -> tuple[SimulatedComponent, ...]:
        return self.components[1:-1]

    @property
    def demands_s(self) -> list[float]:
        return [component.demand_s for component in self.components]

    @property
    def idle_s(self) -> float:
        """Pure delay of a request: its hops, and the delayed acknowledgements of its route."""
        return self.path_s + sum(
            route.share * (self.options.hop_us * 1e-6 * (len(route.stations) - 1))
            + route.share * sum(route.holds_s) * self.options.delayed_ack_share
            for route in self.routes
        )

    @property
    def usual_s(self) -> float:
        """Response time at idle."""
        return self.idle_s + sum(
            c.share * c.service.mean_s * c.held * c.waits for c in self.components
        )

    @property
    def bypass(self) -> Scene:
        """Source and sink without what lies between them."""
        return replace(
            self,
            configuration=without_competitor(self.configuration),
            components=self.ends,
            routes=(Route((0, 1), (0.0, 0.0)),),
        )

    def loads(self, load: LoadModel, wl: float) -> list[float]:
        """Offered load over nominal capacity at each component (closed loop: n/N*)."""
        cycle_s = sum(self.demands_s) + self.idle_s + load.think_time_s
        rate = wl if load.kind == "open" else wl / cycle_s
        return [rate * demand_s for demand_s in self.demands_s]

    def slowness(self, load: LoadModel, wl: float, degraded: bool = False) -> list[float]:
        """How much longer each component needs under that load than at idle."""
        return [
            1.0 / under_load(component.part, offered, degraded)
            for component, offered in zip(self.components, self.loads(load, wl), strict=True)
        ]

    def expected_rps(self, load: LoadModel, wl: float) -> float:
        """Requests/s that will come through, by the operational bounds."""
        if load.kind == "open":
            return min(wl, saturated_throughput(self.demands_s))
        return throughput_bound(wl, self.demands_s, self.idle_s + load.think_time_s)

    def crowding(self, load: LoadModel, wl: float, neighbour_cores: float = 0.0) -> float:
        """How much longer all CPU work takes because the components and a neighbour want more
        cores than the host has; 1 where they do not.

        A mean over the stretch, not a scheduler: it is such that the components together burn
        what the host has, or what their share of it is beside the neighbour.
        """
        burnt_s = sum(c.share * c.service.mean_s for c in self.components)
        wanted = self.expected_rps(load, wl) * burnt_s
        cores = float(self.options.host_cores)
        if wanted + neighbour_cores <= cores:
            return 1.0
        most_rps = cores * wanted / (wanted + neighbour_cores) / burnt_s
        return saturated_throughput(self.demands_s) / most_rps

    def crowding_of_packets(self, rate_pps: float) -> float:
        """The same of packets, of which every component works on each that comes to it."""
        wanted = sum(min(rate_pps * c.service.mean_s, c.usable_cores, 1.0) for c in self.components)
        return max(1.0, wanted / self.options.host_cores)

    def cold_s(self, load: LoadModel, wl: float) -> float:
        """Delay of the answers of a target that is slow while it has little to do."""
        factor = max((c.part.cold_factor for c in self.functions), default=1.0)
        if factor <= 1.0:
            return 0.0
        if load.kind == "open":
            used = max(self.loads(load, wl))
            return (factor - 1.0) * self.usual_s * max(0.0, 1.0 - used / 0.25)
        four_s = max(self.usual_s, 4.0 * max(self.demands_s) - load.think_time_s)
        away = 1.0 - math.log(max(wl, 1.0)) / math.log(4.0)
        return (factor * four_s - self.usual_s) * max(0.0, away)


def set_scene(
    campaign: Campaign, target: Target, configuration: Configuration, options: SimulationOptions
) -> Scene:
    """The target at that configuration. Raises `LabError` for stand-ins that cannot be."""
    if campaign.load.unit == "packets":
        answer_bytes = payload_of(configuration)
    elif campaign.load.unit == "streams":
        answer_bytes = segment_bytes(configuration)
    else:
        answer_bytes = configuration.parameter("filesize_bytes", FILE_BYTES)
    ways = list(_ways(target.graph))
    functions = [
        _function(
            campaign,
            vnf,
            configuration,
            options,
            answer_bytes,
            ways,
        )
        for vnf in target.vnfs
    ]
    source = stand_in(campaign.template(target.source))
    sink = stand_in(campaign.template(target.sink))
    closing = {f.name for f in functions if f.part.closes}
    opened = {
        "source": sum(share for share, way in ways if way[0].name in closing),
        "sink": sum(share for share, way in ways if way[-1].name in closing),
    }
    carried = saturated_throughput([f.demand_s for f in functions])

    def at_the_end(name: str, part: ComponentModel, cores: float, cap: float) -> SimulatedComponent:
        service = part.service(answer_bytes, opened[name])
        service = replace(service, mean_s=service.mean_s / options.host_speed)
        if cap:
            cores = cap * carried * service.mean_s
        threads = part.threads_at(cores)
        return SimulatedComponent(name, part, cores, threads, service, cores, threads)

    ends = (
        at_the_end("source", source, options.source_cores, 0.0),
        at_the_end("sink", sink, options.sink_cores, 0.0),
    )
    first = at_the_end("source", source, options.source_cores, options.source_cap)
    if options.client_cap:
        busy = ServiceTime(1.0 / (options.client_cap * carried), source.cv)
        cores = max(options.source_cores, CLIENT_CORES)
        first = SimulatedComponent("source", source, cores, 1, busy, 1.0, 1)
    components = (
        first,
        *functions,
        at_the_end("sink", sink, options.sink_cores, options.sink_cap),
    )
    index = {component.name: i for i, component in enumerate(components)}
    routes = tuple(
        _route([index[vnf.name] for vnf in way], share, components, options) for share, way in ways
    )
    scene = Scene(target, configuration, components, routes, answer_bytes, options, ends)
    if options.bypass_share:
        path_s = scene.bypass.usual_s
        rest_s = scene.usual_s - path_s
        missing_s = options.bypass_share / (1.0 - options.bypass_share) * rest_s - path_s
        scene = replace(scene, path_s=max(0.0, missing_s))
    return scene


def _function(
    campaign: Campaign,
    vnf: Vnf,
    configuration: Configuration,
    options: SimulationOptions,
    answer_bytes: float,
    ways: Ways,
) -> SimulatedComponent:
    template = campaign.template(vnf.template)
    part = stand_in(template, options.functions)
    share = _share_of(vnf, ways)
    beside = [
        (of_all, other)
        for of_all, way in ways
        for pair in pairwise(way)
        if vnf in pair
        for other in pair
        if other != vnf
    ]
    connections = sum(
        of_all / share
        for of_all, other in beside
        if stand_in(campaign.template(other.template), options.functions).closes
    )
    cores = configuration.vcpu(vnf.name) or template.default_vcpu
    service = part.service(answer_bytes, connections)
    service = replace(service, mean_s=service.mean_s + _of_settings(template, vnf, configuration))
    factor = efficiency(options, part, vnf.name, configuration.key, cores) * options.host_speed
    if any(vnf in way[1:] for _, way in ways):
        factor *= options.coalescing
    service = replace(service, mean_s=service.mean_s / factor)
    usable, threads = usable_cores(part, cores), part.threads_at(cores)
    servers = threads if usable == cores else min(threads, max(1, math.ceil(usable)))
    held = 1.0
    if part.plateau < 1.0:
        held, usable = servers / (part.plateau * usable), float(servers)
    serial_s = _serial_s(configuration, vnf, answer_bytes + HEADER_BYTES)
    if serial_s > service.mean_s * held / min(usable, servers):
        held, usable, servers = serial_s / service.mean_s, 1.0, 1
    return SimulatedComponent(vnf.name, part, cores, threads, service, usable, servers, held, share)


def _serial_s(configuration: Configuration, vnf: Vnf, answer_bytes: float) -> float:
    """Of a request where it is served one after the other, on a wire or a disk; the slowest binds.
    0 without one."""
    given = (
        (resource, configuration.resource(f"{vnf.name}.{key}")) for key, resource in known().items()
    )
    return max(
        (r.simulated_s(amount, answer_bytes) for r, amount in given if amount and r.simulated_s),
        default=0.0,
    )


def _of_settings(template: VnfTemplate, vnf: Vnf, configuration: Configuration) -> float:
    """CPU seconds that a function's settings add to each request or packet."""
    given = settings_of(configuration, vnf.name)
    values = [(p, given.get(p.name, p.default)) for p in template.function_parameters]
    return sum(1e-6 * p.simulated_us * float(v) for p, v in values if not isinstance(v, str))


def payload_of(configuration: Configuration) -> float:
    """Payload of a packet in bytes, on average."""
    size = configuration.workload.get("packetsize_bytes", PACKET_BYTES)
    return IMIX_BYTES if isinstance(size, str) else float(size)


def segment_bytes(configuration: Configuration) -> float:
    """What a segment of a movie has, on average."""
    mbps = configuration.parameter("quality_mbps", USUAL_QUALITY_MBPS)
    return mbps * 1e6 / 8 * SEGMENT_S


def _ways(node: Node) -> Iterator[tuple[float, tuple[Vnf, ...]]]:
    """Every way through a graph with its share of the traffic."""
    match node:
        case Vnf():
            yield 1.0, (node,)
        case Series(parts):
            for ways in product(*(tuple(_ways(part)) for part in parts)):
                share = float(np.prod([share for share, _ in ways]))
                yield share, tuple(vnf for _, way in ways for vnf in way)
        case Parallel(branches, shares):
            for branch, of_all in zip(branches, shares, strict=True):
                for share, way in _ways(branch):
                    yield of_all * share, way


def _share_of(vnf: Vnf, ways: Ways) -> float:
    return sum(share for share, way in ways if vnf in way)


def _route(
    functions: Sequence[int],
    share: float,
    components: Sequence[SimulatedComponent],
    options: SimulationOptions,
) -> Route:
    """Through the functions; a pair of which one splits its writes and the next delays its
    acknowledgement holds the answer (METHOD.md 9)."""
    stations = (0, *functions, len(components) - 1)
    holds = [0.0] * len(stations)
    for position, (one, other) in enumerate(pairwise(stations)):
        if options.delayed_ack and components[one].part.split_writes:
            holds[position] = components[other].part.delayed_ack_ms * 1e-3
    return Route(stations, tuple(holds), share)
