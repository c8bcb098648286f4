"""A stretch of load through a scene: what was sent, what came of it, what it burnt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from workbench.domain.load_shapes import LoadShape
from workbench.domain.parameters import LoadModel
from workbench.labs.simulated import noise
from workbench.labs.simulated.scene import Scene
from workbench.measuring.cycles import planned_times
from workbench.queues.network import Network, Offered, Passage, Works
from workbench.queues.simulation import simulate
from workbench.queues.stations import PERIOD_S, Station

Floats = NDArray[np.float64]

CONNTRACK_LIMIT = 262_144
"""Entries of the connection table (DESIGN.md)."""


@dataclass(frozen=True)
class Hang:
    """The host stood still from `begin_s` on for `length_s`; all else happens in machine time,
    which stands still meanwhile."""

    begin_s: float = math.inf
    length_s: float = 0.0

    @property
    def end_s(self) -> float:
        return self.begin_s + self.length_s

    def machine(self, at_s: Floats | np.float64) -> Floats:
        """Machine time at each instant."""
        return np.asarray(at_s - np.clip(at_s - self.begin_s, 0.0, self.length_s))

    def wall(self, machine_s: Floats) -> Floats:
        """The instant at which something happened, from its machine time."""
        return np.where(machine_s < self.begin_s, machine_s, machine_s + self.length_s)


@dataclass(frozen=True)
class LoadStretch:
    """A stretch of load from time 0 on, as it went.

    Attributes
    ----------
    due_s : planned times, shape (due,); None in a closed loop.
    connections : most requests in flight.
    passage : its starts and ends count from the begin, hang included; its consumption is in
        machine time.
    route : of each request that was sent, shape (sent,).
    burnt : CPU seconds per second of server time, by component.
    neighbour_cores : what somebody else on the host burnt.
    """

    due_s: Floats | None
    connections: int
    passage: Passage
    route: NDArray[np.int64]
    burnt: tuple[float, ...]
    neighbour_cores: float = 0.0
    hang: Hang = Hang()


@dataclass(frozen=True)
class Chance:
    """Where the randomness of one drive comes from, and what came before it.

    Attributes
    ----------
    words : name the drive, for `noise.stream`.
    log_factors : slow factors on each function's service time, by name.
    cold : the first drive of a visit.
    degraded : the target was overloaded and has not recovered.
    """

    seed: int
    words: tuple[str | int, ...]
    log_factors: Mapping[str, float] = field(default_factory=dict)
    cold: bool = False
    degraded: bool = False

    def stream(self, what: str) -> np.random.Generator:
        return noise.stream(self.seed, what, *self.words)


def run(
    scene: Scene,
    load: LoadModel,
    wl: float,
    seconds: float,
    timeout_s: float,
    chance: Chance,
) -> LoadStretch:
    """Drive load through a scene, from an idle target on.

    Parameters
    ----------
    wl : requests/s (open loop) or clients (closed loop).
    """
    options = scene.options
    shape = load.shaped(scene.configuration)
    due = _due(load, shape, wl, seconds, chance) if load.kind == "open" else None
    clients = load.connections if due is not None else max(1, round(wl))
    rate = scene.expected_rps(load, wl)
    # More than is served in that time unless noise is far out; then requests' works repeat.
    most = int(rate * (seconds + PERIOD_S) * 1.2) + clients + 100
    rows = most if due is None else min(due.size, most)
    luck = noise.luck(options, chance.stream("luck"), rows, rate)
    events = chance.stream("events")
    hang = _hang(scene, seconds, events)
    neighbour = options.neighbour_cores if events.random() < options.neighbour_share else 0.0
    crowding = scene.crowding(load, wl, neighbour)
    slowness = scene.slowness(load, wl, chance.degraded)
    factors = np.exp(luck.service) * _warm_up(scene, rows, rate, chance)
    in_phase = chance.stream("phase").uniform(-PERIOD_S, 0.0)
    works, stations = np.empty((len(scene.components), rows)), []
    for index, component in enumerate(scene.components):
        own = chance.stream(f"works {component.name}")
        phase_s = in_phase if options.in_phase else own.uniform(-PERIOD_S, 0.0)
        draws = component.service.draw(own, rows)
        if 0 < index < len(scene.components) - 1:
            draws *= factors * math.exp(chance.log_factors.get(component.name, 0.0))
        works[index] = draws * (crowding * slowness[index] * component.held * component.waits)
        stations.append(
            Station(
                component.name,
                component.usable_cores,
                component.servers,
                float(phase_s),
                int(component.part.buffer) or None,
                bool(component.part.blocks),
            )
        )
    paths = chance.stream("paths")
    route = np.zeros(rows, dtype=np.int64)
    if len(scene.routes) > 1:
        shares = np.array([route.share for route in scene.routes])
        route = paths.choice(len(shares), size=rows, p=shares / shares.sum())
    holds = any(any(way.holds_s) for way in scene.routes)
    held = paths.random(rows) < options.delayed_ack_share if holds else np.zeros(rows, bool)
    stalled = scene.answer_bytes >= options.stall_from_kb * 1e3 and options.stall_share > 0.0
    delay = np.full(rows, scene.path_s * math.exp(luck.hop) + scene.cold_s(load, wl))
    if stalled:
        delay += options.stall_ms * 1e-3 * (paths.random(rows) < options.stall_share)
    hop_s = options.hop_us * 1e-6 * math.exp(luck.hop)
    machine_due = None if due is None else hang.machine(due)
    machine_stop = float(hang.machine(np.float64(seconds)))
    passage = simulate(
        Network(tuple(stations), scene.routes, hop_s, scene.usual_s, luck.stretch, luck.lengthen),
        Works(works, route, held, delay, _kept(scene)),
        Offered(machine_due, clients, machine_stop, load.think_time_s, timeout_s),
    )
    passage = replace(passage, start_s=hang.wall(passage.start_s), end_s=hang.wall(passage.end_s))
    burnt = tuple(1.0 / (crowding * c.held * c.waits) for c in scene.components)
    route = np.resize(route, passage.start_s.size)
    return LoadStretch(due, clients, passage, route, burnt, neighbour, hang)


def connections_per_request(scene: Scene) -> float:
    """Entries that one request leaves in the connection table."""
    closing = sum(component.part.closes * component.share for component in scene.functions)
    return closing * (len(scene.functions) + 1)


def _kept(scene: Scene) -> float:
    """Requests until the connection table is full."""
    each = connections_per_request(scene)
    free = (1.0 - scene.options.conntrack_share) * CONNTRACK_LIMIT
    return free // each if each and scene.options.conntrack_share else math.inf


def _hang(scene: Scene, seconds: float, rng: np.random.Generator) -> Hang:
    options = scene.options
    happens, place = rng.random(2)
    if not happens < options.hangs_per_hour * seconds / 3600.0:
        return Hang()
    length_s = min(options.hang_s, seconds)
    return Hang(float(place) * (seconds - length_s), length_s)


def _warm_up(scene: Scene, rows: int, rate_rps: float, chance: Chance) -> Floats:
    """Factor on the service times of each request while the target is getting warm."""
    options = scene.options
    if not (chance.cold and options.warm_share):
        return np.ones(rows)
    at = np.arange(rows) / rate_rps
    return np.asarray(1.0 + options.warm_share * np.exp(-at / max(options.warm_s, 1e-3)))


def _due(
    load: LoadModel, shape: LoadShape | None, wl: float, seconds: float, chance: Chance
) -> Floats:
    """Planned times: a grid from 0 on, one that follows a shape, or a Poisson process."""
    if shape is not None:
        return planned_times(shape, wl, seconds)
    if load.arrivals == "constant":
        return np.asarray(np.arange(int(np.ceil(wl * seconds))) / wl)
    rng = chance.stream("arrivals")
    count = rng.poisson(wl * seconds)
    return np.sort(rng.uniform(0.0, seconds, count))
