"""A target under load as a queueing network, and what a stretch of load through it yields."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from workbench.domain.campaign import Campaign
from workbench.domain.parameters import Configuration, LoadModel
from workbench.domain.topology import Node, Parallel, Series, Target, Vnf
from workbench.labs.simulated import noise
from workbench.labs.simulated.options import SimulationOptions
from workbench.labs.simulated.stand_ins import StandIn, stand_in
from workbench.queues.laws import saturated_throughput, throughput_bound
from workbench.queues.network import Network, Offered, Passage, Route, Works
from workbench.queues.passage import pass_through
from workbench.queues.service import ServiceTime
from workbench.queues.stations import PERIOD_S, Station

Floats = NDArray[np.float64]

FILE_BYTES = 10_000.0
"""Answer size where the campaign has no `filesize_bytes`."""


@dataclass(frozen=True)
class Component:
    """The source, a function or the sink at one configuration.

    Attributes
    ----------
    name : VNF instance name, `source` or `sink`.
    cores : CPU allotment.
    service : CPU time per request.
    share : of all requests that pass through it.
    """

    name: str
    part: StandIn
    cores: float
    threads: int
    service: ServiceTime
    share: float = 1.0

    @property
    def demand_s(self) -> float:
        """Seconds of its time that one request of the target takes, on average."""
        return self.share * self.service.mean_s / min(self.cores, self.threads)


@dataclass(frozen=True)
class Scene:
    """A target at one configuration, before any load.

    Attributes
    ----------
    components : source first, sink last.
    routes : by indices into `components`.
    answer_bytes : body of every answer.
    """

    target: Target
    configuration: Configuration
    components: tuple[Component, ...]
    routes: tuple[Route, ...]
    answer_bytes: float
    options: SimulationOptions

    @property
    def functions(self) -> tuple[Component, ...]:
        return self.components[1:-1]

    @property
    def demands_s(self) -> list[float]:
        return [component.demand_s for component in self.components]

    @property
    def idle_s(self) -> float:
        """Pure delay of a request: its hops, and the delayed acknowledgements of its route."""
        return sum(
            route.share * (self.options.hop_us * 1e-6 * (len(route.stations) - 1))
            + route.share * sum(route.holds_s) * self.options.delayed_ack_share
            for route in self.routes
        )

    def expected_rps(self, load: LoadModel, wl: float) -> float:
        """Requests/s that will come through, by the operational bounds."""
        if load.kind == "open":
            return min(wl, saturated_throughput(self.demands_s))
        return throughput_bound(wl, self.demands_s, self.idle_s + load.think_time_s)

    def crowding(self, load: LoadModel, wl: float) -> float:
        """How much longer all CPU work takes because the components want more cores than the
        host has; 1 where they do not.

        A mean over the stretch, not a scheduler: it is such that the components together burn
        what the host has, and no more.
        """
        burnt_s = sum(c.share * c.service.mean_s for c in self.components)
        most_rps = self.options.host_cores / burnt_s
        if self.expected_rps(load, wl) <= most_rps:
            return 1.0
        return saturated_throughput(self.demands_s) / most_rps


def set_scene(
    campaign: Campaign, target: Target, configuration: Configuration, options: SimulationOptions
) -> Scene:
    """The target at that configuration. Raises `LabError` for stand-ins that cannot be."""
    answer_bytes = configuration.parameter("filesize_bytes", FILE_BYTES)
    ways = list(_ways(target.graph))
    functions = [
        _function(campaign, vnf, configuration, answer_bytes, _share_of(vnf, ways))
        for vnf in target.vnfs
    ]
    source = stand_in(campaign.template(target.source))
    sink = stand_in(campaign.template(target.sink))
    carried = saturated_throughput([f.demand_s for f in functions])

    def at_the_end(name: str, part: StandIn, cores: float, cap: float) -> Component:
        service = part.service(answer_bytes)
        if cap:
            cores = cap * carried * service.mean_s
        return Component(name, part, cores, part.threads_at(cores), service)

    components = (
        at_the_end("source", source, options.source_cores, options.source_cap),
        *functions,
        at_the_end("sink", sink, options.sink_cores, options.sink_cap),
    )
    index = {component.name: i for i, component in enumerate(components)}
    routes = tuple(
        _route([index[vnf.name] for vnf in way], share, components, options) for share, way in ways
    )
    return Scene(target, configuration, components, routes, answer_bytes, options)


def _function(
    campaign: Campaign, vnf: Vnf, configuration: Configuration, answer_bytes: float, share: float
) -> Component:
    template = campaign.template(vnf.template)
    part = stand_in(template)
    cores = configuration.vcpu(vnf.name) or template.default_vcpu
    service = part.service(answer_bytes)
    return Component(vnf.name, part, cores, part.threads_at(cores), service, share)


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


def _share_of(vnf: Vnf, ways: Sequence[tuple[float, tuple[Vnf, ...]]]) -> float:
    return sum(share for share, way in ways if vnf in way)


def _route(
    functions: Sequence[int],
    share: float,
    components: Sequence[Component],
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


@dataclass(frozen=True)
class Stretch:
    """A stretch of load from time 0 on, as it went.

    Attributes
    ----------
    due_s : planned times, shape (due,); None in a closed loop.
    connections : most requests in flight.
    route : of each request that was sent, shape (sent,).
    crowding : see `Scene.crowding`; work counts as that much longer than the CPU it burns.
    """

    due_s: Floats | None
    connections: int
    passage: Passage
    route: NDArray[np.int64]
    crowding: float


@dataclass(frozen=True)
class Chance:
    """Where the randomness of one drive comes from.

    Attributes
    ----------
    words : name the drive, for `noise.stream`.
    log_factors : slow factors on each function's service time, by name.
    """

    seed: int
    words: tuple[str | int, ...]
    log_factors: Mapping[str, float]

    def stream(self, what: str) -> np.random.Generator:
        return noise.stream(self.seed, what, *self.words)


def run(
    scene: Scene,
    load: LoadModel,
    wl: float,
    seconds: float,
    timeout_s: float,
    chance: Chance,
) -> Stretch:
    """Drive load through a scene, from an idle target on.

    Parameters
    ----------
    wl : requests/s (open loop) or clients (closed loop).
    """
    due = _due(load, wl, seconds, chance) if load.kind == "open" else None
    clients = load.connections if due is not None else max(1, round(wl))
    rate = scene.expected_rps(load, wl)
    # More than can be served in that time even if every noise goes the right way.
    most = int(rate * (seconds + PERIOD_S) * 1.5) + clients + 100
    rows = most if due is None else min(due.size, most)
    factors = np.exp(noise.window(scene.options, chance.stream("window"), rows, rate))
    crowding = scene.crowding(load, wl)
    in_phase = chance.stream("phase").uniform(-PERIOD_S, 0.0)
    works, stations = np.empty((len(scene.components), rows)), []
    for index, component in enumerate(scene.components):
        draws = component.service.draw(chance.stream(f"works {component.name}"), rows)
        if 0 < index < len(scene.components) - 1:
            draws *= factors * np.exp(chance.log_factors.get(component.name, 0.0))
        works[index] = draws * crowding
        own = chance.stream(f"phase {component.name}").uniform(-PERIOD_S, 0.0)
        stations.append(
            Station(
                component.name,
                component.cores,
                component.threads,
                float(in_phase if scene.options.in_phase else own),
                int(component.part.buffer) or None,
            )
        )
    shares = np.array([route.share for route in scene.routes])
    route = chance.stream("route").choice(len(shares), size=rows, p=shares / shares.sum())
    delay = noise.delay(scene.options, chance.stream("delay"))
    hop_s = scene.options.hop_us * 1e-6 * math.exp(delay)
    held = chance.stream("held").random(rows) < scene.options.delayed_ack_share
    passage = pass_through(
        Network(tuple(stations), scene.routes, hop_s),
        Works(works, route, held),
        Offered(due, clients, seconds, load.think_time_s, timeout_s),
    )
    return Stretch(due, clients, passage, np.resize(route, passage.start_s.size), crowding)


def _due(load: LoadModel, wl: float, seconds: float, chance: Chance) -> Floats:
    """Planned times: a grid from 0 on, or a Poisson process."""
    if load.arrivals == "constant":
        return np.asarray(np.arange(int(np.ceil(wl * seconds))) / wl)
    count = chance.stream("arrivals").poisson(wl * seconds)
    return np.sort(chance.stream("arrivals times").uniform(0.0, seconds, count))
