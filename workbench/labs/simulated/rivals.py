"""What a simulated competitor takes from whom: in kind, no figure of it was measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.domain.competitors import COMPETITOR, FULL, Competitor, competitor_of
from workbench.labs.simulated.scene import Scene, SimulatedComponent
from workbench.measuring.records import Competition, ComponentCounters, Counters, Drive

FAIR = 0.5
"""Of a core that two want whole each gets half, as the kernel's scheduler shares it out."""
TAKES: Mapping[str, float] = {"cpu": 1.0, "cache": 1.0, "memory": 1.0, "disk": 0.1}
"""CPU that each kind burns of its intensity: who thrashes caches or memory computes as well."""
SPOILS: Mapping[str, float] = {"cpu": 0.0, "cache": 0.15, "memory": 0.3, "disk": 0.0}
"""More CPU that a request takes beside each kind at full intensity, on any core of the host."""


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
        # A quota is of CPU, and work that waits for its core burns none of it meanwhile.
        usable = min(component.usable_cores * longer, float(component.servers))
        usable = max(usable, component.usable_cores)
        return replace(component, service=service, usable_cores=usable, waits=longer)

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
