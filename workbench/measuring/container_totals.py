"""What functions used over all stretches of load of a session: counters that only grow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from workbench.domain.container_metrics import CONTAINER_METRICS, Figures, Place
from workbench.domain.observations import OBSERVABLES
from workbench.measuring.records import ComponentCounters, Counters, Drive
from workbench.measuring.usage import HOST, OWN

LEVELS = ("memory_bytes", "threads")
OBSERVED = tuple(one.figure for one in CONTAINER_METRICS if one.figure in OBSERVABLES)


class ContainerTotals:
    """Sums over the drives that it is told of, whose own counters begin anew with each deployment.

    A counter that goes back within a drive was begun anew, and counts from 0. What a function uses
    between two drives is in none of them. Levels are the last ones of the target that was loaded
    last.
    """

    def __init__(self) -> None:
        self._sums: dict[Place, dict[str, float]] = {}
        self._levels: dict[Place, dict[str, float]] = {}

    def add(self, target: str, drive: Drive) -> None:
        """Count a stretch of load that has ended."""
        instants = drive.counters
        if not instants:
            return
        self._levels = {place: of for place, of in self._levels.items() if place[0] == target}
        for name in instants[-1].components:
            if name in (HOST, OWN):
                continue
            place = (target, name)
            for figure, read in _known(name, drive).items():
                if figure in LEVELS:
                    self._levels.setdefault(place, {})[figure] = read(instants[-1]) or 0.0
                else:
                    sums = self._sums.setdefault(place, {})
                    sums[figure] = sums.get(figure, 0.0) + _grown(instants, read)

    def figures(self) -> Mapping[Place, Figures]:
        """Sums and levels of each component; what nobody counted is not there."""
        places = (*self._sums, *(place for place in self._levels if place not in self._sums))
        return {
            place: {**self._sums.get(place, {}), **self._levels.get(place, {})} for place in places
        }


Reader = Callable[[Counters], float | None]
"""A figure at an instant; None where it was not read then."""


def _known(name: str, drive: Drive) -> dict[str, Reader]:
    """What was counted of a component. Counters have 0 for what nobody counts: quota periods
    without a quota, memory that was not asked for, a network that is shared with the host."""
    last = drive.counters[-1]
    counted = last.components[name]
    figures = ["cpu_s"]
    if counted.periods:
        figures += ["periods", "throttled_periods", "throttled_s"]
    if counted.memory_bytes:
        figures.append("memory_bytes")
    for pair in (("rx_bytes", "tx_bytes"), ("rx_packets", "tx_packets")):
        if any(getattr(counted, figure) for figure in pair):
            figures += pair
    readers: dict[str, Reader] = {
        figure: _observed(name, figure)
        for figure in OBSERVED
        if (name, figure, "") in last.observed
    }
    readers |= {figure: _counted(name, figure) for figure in figures}
    return {f: read for f, read in readers.items() if (name, f) not in drive.absent}


def _counted(name: str, figure: str) -> Reader:
    nothing = ComponentCounters(0.0)
    return lambda at: float(getattr(at.components.get(name, nothing), figure))


def _observed(name: str, figure: str) -> Reader:
    return lambda at: at.observed.get((name, figure, ""))


def _grown(instants: tuple[Counters, ...], read: Reader) -> float:
    known = [value for value in map(read, instants) if value is not None]
    return sum(later - earlier if later >= earlier else later for earlier, later in pairwise(known))
