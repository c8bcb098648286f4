"""What a simulated competitor takes from whom, and functions on the same cores from each other: in
kind, no figure of it was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from workbench.domain.competitors import COMPETITOR, FULL, Competitor, competitor_of
from workbench.domain.parameters import LoadModel
from workbench.labs.simulated.scene import Scene, SimulatedComponent
from workbench.measuring.records import Competition, ComponentCounters, Counters, Drive

FAIR = 0.5
"""Of a core that two want whole each gets half, as the kernel's scheduler shares it out."""
TAKES: Mapping[str, float] = {"cpu": 1.0, "cache": 1.0, "memory": 1.0, "disk": 0.1}
"""CPU that each kind burns of its intensity: who thrashes caches or memory computes as well."""
SPOILS: Mapping[str, float] = {"cpu": 0.0, "cache": 0.15, "memory": 0.3, "disk": 0.0}
"""More CPU that a request takes beside each kind at full intensity, on any core of the host."""

Cores = frozenset[int]
"""Numbers of cores."""
_HALVINGS = 30


@dataclass(frozen=True)
class SimulatedRival:
    """Who competes at a configuration, and on how many cores."""

    competitor: Competitor
    cores: int

    @property
    def wanted_cores(self) -> float:
        return self.cores * TAKES[self.competitor.kind] * self.competitor.intensity / FULL

    def used_cores(self, beside_it: float) -> float:
        """What it gets on its cores, of which others use `beside_it`."""
        return min(self.wanted_cores, max(FAIR * self.cores, self.cores - beside_it))


def rival_of(scene: Scene) -> SimulatedRival | None:
    """None where nobody competes."""
    competitor = competitor_of(scene.configuration)
    if competitor is None:
        return None
    at_place = _at(scene, competitor)
    cores = sum(max(1, math.ceil(c.cores - 1e-9)) for c in at_place) or 1
    return SimulatedRival(competitor, cores)


def _at(scene: Scene, competitor: Competitor) -> Sequence[SimulatedComponent]:
    """Components whose cores it is on."""
    match competitor.place:
        case "function":
            return scene.functions
        case "neighbours":
            return (scene.components[0], scene.components[-1])
        case "others":
            return ()


def beside(scene: Scene) -> Scene:
    """The scene with what its competitor takes: work lasts longer on a core that is shared, and
    costs more CPU where caches and memory are."""
    competitor = competitor_of(scene.configuration)
    if competitor is None:
        return scene
    share = competitor.intensity / FULL
    left = max(FAIR, 1.0 - TAKES[competitor.kind] * share)
    costs = 1.0 + SPOILS[competitor.kind] * share
    hit = {component.name for component in _at(scene, competitor)}

    def met(component: SimulatedComponent) -> SimulatedComponent:
        longer = 1.0 / left if component.name in hit else 1.0
        service = replace(component.service, mean_s=component.service.mean_s * costs)
        return _waiting(replace(component, service=service), longer)

    return replace(scene, components=tuple(met(one) for one in scene.components))


def _waiting(component: SimulatedComponent, longer: float) -> SimulatedComponent:
    """A quota is of CPU, and work that waits for its core burns none of it meanwhile."""
    usable = min(component.usable_cores * longer, float(component.servers))
    usable = max(usable, component.usable_cores)
    return replace(component, usable_cores=usable, waits=component.waits * longer)


def sharing(scene: Scene, pins: Mapping[str, Cores], load: LoadModel, wl: float) -> Scene:
    """The scene with what functions on the same cores take from each other under that load.

    Work lasts as much longer as beside a competitor that uses what the others use, each evenly on
    its cores. What they use follows from what comes through, and that from how long work lasts:
    it is halved towards where the two agree.

    Parameters
    ----------
    pins : cores by function; those of who is missing are nobody else's.
    """
    if not any(pins[a] & pins[b] for a, b in combinations(pins, 2)):
        return scene
    low, high = 0.0, scene.expected_rps(load, wl)
    met = _shared(scene, pins, high)
    if met.expected_rps(load, wl) >= high:
        return met
    for _ in range(_HALVINGS):
        rate = 0.5 * (low + high)
        met = _shared(scene, pins, rate)
        low, high = (rate, high) if met.expected_rps(load, wl) > rate else (low, rate)
    return met


def _shared(scene: Scene, pins: Mapping[str, Cores], rate: float) -> Scene:
    used = {
        one.name: min(rate * one.share * one.service.mean_s, one.usable_cores)
        for one in scene.functions
    }

    def met(component: SimulatedComponent) -> SimulatedComponent:
        own = pins.get(component.name)
        if own is None:
            return component
        taken = sum(
            used[name] * len(own & cores) / len(cores)
            for name, cores in pins.items()
            if name != component.name
        )
        return _waiting(component, 1.0 / max(FAIR, 1.0 - taken / len(own)))

    return replace(scene, components=tuple(met(one) for one in scene.components))


def counted(scene: Scene, seen: Sequence[Counters]) -> tuple[Counters, ...]:
    """The counters of a drive with those of its competitor, if it has one."""
    rival = rival_of(scene)
    if rival is None:
        return tuple(seen)
    seconds = seen[-1].at_s - seen[0].at_s
    names = [component.name for component in _at(scene, rival.competitor)]
    burnt_s = sum(seen[-1].components[n].cpu_s - seen[0].components[n].cpu_s for n in names)
    cores = rival.used_cores(burnt_s / seconds)
    most = float(scene.options.host_cores)
    key = (COMPETITOR, "competitor_cpu_s", rival.competitor.text)
    found = []
    for one in seen:
        since_s = one.at_s - seen[0].at_s
        used_s = cores * since_s
        found.append(
            replace(
                one,
                components={**one.components, COMPETITOR: ComponentCounters(used_s)},
                host_busy_s=float(np.minimum(one.host_busy_s + used_s, most * since_s)),
                observed={**one.observed, key: used_s},
            )
        )
    return tuple(found)


def allotted(scene: Scene) -> dict[str, float]:
    """Cores of the competitor, by its name."""
    rival = rival_of(scene)
    return {COMPETITOR: float(rival.cores)} if rival else {}


def told(scene: Scene, drive: Drive) -> Drive:
    """The drive with who competed: from its begin to its end."""
    rival = rival_of(scene)
    if rival is None:
        return drive
    text, cores = rival.competitor.text, rival.cores
    competition = Competition(text, cores, drive.begin_s, drive.stop_s)
    return replace(
        drive,
        competition=competition,
        standing={**drive.standing, **competition.standing(drive)},
    )
