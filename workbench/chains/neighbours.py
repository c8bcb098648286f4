"""What functions of a chain cost each other on shared cores, from what each was beside competitors.

SLOMO (Manousis et al. 2020) and its heirs predict a function beside others from the contention that
these make. Here that is the share of the function's cores that its neighbours use. The function's
KPIs at that contention lie between those of its own samples at `competitor=none` and beside `cpu`
competitors on its cores, of which the share is measured that they really used.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.chains.composition import CARRIED, ChainForecaster, Outlook
from workbench.chains.function_profiles import Part
from workbench.chains.usage import ExpectedUsage
from workbench.domain.chains import NeighbourCost, SharedCores
from workbench.domain.competitors import COMPETITOR, FULL, NONE, Competitor, competitor_of
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration
from workbench.domain.samples import Estimate, Sample
from workbench.models.base import Floats
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.models.scales import figure

SCATTER = 1.1
"""By which what a function leaves to others may be more than they took, and still be the same:
both are counted, in samples that scatter."""
_ROUNDING = 1e-9
"""Loads go through logarithms and back."""


@dataclass(frozen=True)
class ContentionLevel:
    """What a competitor took of a function's cores at one load.

    Attributes
    ----------
    competitor : as configurations have it.
    share : of its cores that it really used, 0 to 1.
    """

    competitor: str
    share: float


@dataclass(frozen=True)
class Contention:
    """The share of a function's cores that its neighbours use, and where that was measured.

    Attributes
    ----------
    share : with its 95 % interval.
    below, above : the measured levels around the expected share.
    around : all levels that the interval reaches into, `below` and `above` among them.
    beyond : whether the interval reaches past all that was measured.
    """

    share: Estimate
    below: ContentionLevel
    above: ContentionLevel
    around: tuple[str, ...]
    beyond: bool

    @property
    def weight(self) -> float:
        """Of `above`, 0 to 1."""
        apart = self.above.share - self.below.share
        return (self.share.value - self.below.share) / apart if apart > 0.0 else 0.0


ContentionReader = Callable[[Forecaster, Contention], Forecaster]
"""What is known of a KPI of a function alone, and its contention: what the KPI is there."""


@dataclass(frozen=True)
class OutlookBeside:
    """A chain at one operating point: on shared cores, as if each function had its own, what
    these cost each other, and those that want more of their cores than they are left with."""

    beside: Outlook
    alone: Outlook
    costs: tuple[NeighbourCost, ...]
    starved: tuple[str, ...] = ()


class BesideNeighbours:
    """Implements `Forecaster`: a function's KPI at a contention between two that were measured.

    Logs are interpolated over the share. The interval holds what is known of every level that the
    share's own interval reaches into: between two of them nothing was measured but that a figure
    gets worse from the one to the other.
    """

    def __init__(self, alone: Forecaster, contention: Contention) -> None:
        self.kpi, self._alone, self._contention = alone.kpi, alone, contention

    def forecast(self, points: Points) -> Forecast:
        """Raises `DataError` for what was never profiled."""
        at = self._contention
        told = {name: self._alone.forecast(_beside(points, name)) for name in at.around}
        mean = self._expected(points, told)
        low = np.min([one.low for one in told.values()], axis=0)
        high = np.max([one.high for one in told.values()], axis=0)
        extrapolates = np.any([one.extrapolates for one in told.values()], axis=0) | at.beyond
        return Forecast(mean, np.minimum(low, mean), np.maximum(high, mean), extrapolates)

    def _expected(self, points: Points, told: Mapping[str, Forecast]) -> Floats:
        """Log of the KPI, of shape (m,), from what is told of the levels around the share."""
        del points  # the levels were asked at them
        at = self._contention
        below, above = told[at.below.competitor], told[at.above.competitor]
        return (1.0 - at.weight) * below.mean + at.weight * above.mean


class ChainOnSharedCores:
    """Implements `Forecaster` for a chain some of whose functions run on the same cores.

    Neighbours use their CPU per request times what reaches them (`ExpectedUsage`), as if nobody
    were beside them: while all is carried, waiting for a core changes no CPU.

    Parameters
    ----------
    chain : from stand-alone profiles.
    usage : of the same chain.
    cores : numbers of cores, by function; two have all of them in common or none, and who is
        missing shares with nobody.
    samples : of the profiled targets, valid or not.
    read : makes of what is known of a KPI alone what it is at a contention. None: profiles are
        read off between two competitors, and none may be in the chain besides. With a reader a
        competitor for the CPU of the functions' own cores counts as one more neighbour.
    """

    def __init__(
        self,
        chain: ChainForecaster,
        usage: ExpectedUsage,
        cores: Mapping[str, frozenset[int]],
        samples: Sequence[Sample],
        read: ContentionReader | None = None,
    ) -> None:
        self.kpi, self._chain, self._usage = chain.kpi, chain, usage
        self._cores, self._samples = cores, samples
        self._read, self._rivals = read or BesideNeighbours, read is not None
        self._neighbours = {
            name: tuple(other for other in cores if other != name and cores[other] == own)
            for name, own in cores.items()
        }

    def forecast(self, points: Points) -> Forecast:
        """Raises as `at`."""
        told = [self.outlook(configuration, wl).beside.chain for configuration, wl in points]
        return Forecast(
            np.concatenate([one.mean for one in told]),
            np.concatenate([one.low for one in told]),
            np.concatenate([one.high for one in told]),
            np.concatenate([one.extrapolates for one in told]),
        )

    def at(self, configuration: Configuration, wl: float) -> SharedCores:
        """The chain's KPI, and what its neighbours cost each function.

        Raises
        ------
        DataError
            Where a function was not measured beside a competitor that takes as much of its cores
            as its neighbours do, at that allocation and load.
        """
        told = self.outlook(configuration, wl)
        said = told.beside.chain
        return SharedCores(said.estimate(), told.costs, bool(said.extrapolates[0]))

    def outlook(self, configuration: Configuration, wl: float) -> OutlookBeside:
        """The same with what the functions contribute there. Raises as `at`."""
        rival = competitor_of(configuration)
        if rival is not None and not (self._rivals and _for_cpu(rival)):
            raise DataError(
                "neighbours and a competitor at once were not measured",
                where=COMPETITOR,
                remedy=f"Ask at {COMPETITOR}={NONE}",
            )
        points = _beside([(configuration, wl)], rival.text if rival else NONE)
        alone = self._chain.outlook(points)
        cores = self._usage.forecast(points)
        parts, found, starved = dict(self._chain.parts), {}, []
        for name, others in self._neighbours.items():
            if others:
                load, many = float(alone.loads[name][0]), len(self._cores[name])
                levels = self._levels(name, configuration, load)
                taken = _taken([cores[other] for other in others], many)
                if rival is not None:
                    taken = _with_rival(rival.text, taken, levels, cores[name], many)
                found[name] = contention_at(name, taken, levels)
                wanted = [float(np.exp(cores[one].mean[0])) for one in (name, *others)]
                if rival is not None:
                    wanted.append(many * rival.intensity / FULL)
                if fair_shares(wanted, many)[0] < wanted[0]:
                    starved.append(name)
                parts[name] = _part_beside(parts[name], found[name], self._read)
        beside = self._chain.of_parts(parts).outlook(points)
        costs = tuple(
            NeighbourCost(
                name,
                self._neighbours[name],
                len(self._cores[name]),
                at.share,
                (at.below.competitor, at.above.competitor),
                alone.functions[name].estimate(),
                beside.functions[name].estimate(),
            )
            for name, at in found.items()
        )
        return OutlookBeside(beside, alone, costs, tuple(starved))

    def _levels(
        self, name: str, configuration: Configuration, load: float
    ) -> list[ContentionLevel]:
        part = self._chain.parts[name]
        ((nobody, _),) = _beside([(configuration, load)], NONE)
        own = part.configuration(nobody, name)
        return levels_at(part, own, load, self._samples, len(self._cores[name]))


def levels_at(
    part: Part, own: Configuration, load: float, samples: Sequence[Sample], cores: int
) -> list[ContentionLevel]:
    """By rising share, what was measured of a function at that allocation, with loads around it.

    Raises
    ------
    DataError
        If there is nothing, or if competitors had another number of cores.
    """
    seen: dict[str, list[tuple[float, float]]] = {}
    counts: set[int] = set()
    for sample in samples:
        rival = competitor_of(sample.point.configuration)
        used = sample.usage.get(COMPETITOR)
        if sample.point.target != part.target or not sample.valid or used is None or rival is None:
            continue
        alike = _beside([(sample.point.configuration, 0.0)], NONE)[0][0] == own
        if alike and _for_cpu(rival) and used.cpu_share > 0.0:
            counts.add(round(used.cpu_cores / used.cpu_share))
            seen.setdefault(rival.text, []).append((sample.point.wl, used.cpu_share))
    if not seen:
        raise DataError(
            f"{part.target} was not measured beside a competitor for its cores at this allocation",
            where="shared cores",
            remedy=f"Profile it with {COMPETITOR}: [{NONE}, cpu, 'cpu:25']",
        )
    if counts != {cores}:
        raise DataError(
            f"{part.target} was measured beside a competitor on {_listed(counts)} of its cores, "
            f"and shares {cores}",
            where="shared cores",
            remedy="Pin it to as many cores when it is profiled (managers.NAME.cpuset)",
        )
    found = [ContentionLevel(NONE, 0.0)]
    for text, at in seen.items():
        loads, shares = by_load(at)
        # What the function before it is forecast to carry of a load counts as that load.
        if loads[0] * CARRIED <= load <= loads[-1] * (1.0 + _ROUNDING):
            found.append(
                ContentionLevel(text, float(np.interp(np.log(load), np.log(loads), shares)))
            )
    return sorted(found, key=lambda level: level.share)


def contention_at(name: str, share: Estimate, levels: Sequence[ContentionLevel]) -> Contention:
    """Where a share lies among the levels that were measured, by rising share, 0 first.

    Raises
    ------
    DataError
        If it is larger than all of them.
    """
    most = levels[-1]
    if share.value > most.share:
        measured = f"at most {figure(most.share)} were measured ({most.competitor})"
        if most.competitor == NONE:
            measured = "at that load it was measured beside no competitor"
        raise DataError(
            f"neighbours take {figure(share.value)} of its cores, and {measured}",
            where=name,
            remedy="Profile it beside a stronger competitor up to that load, or ask for less load",
        )
    shares = [level.share for level in levels]
    below, above = _around(shares, share.value)
    places = (below, above, *_around(shares, share.low), *_around(shares, share.high))
    return Contention(
        share,
        levels[below],
        levels[above],
        tuple(level.competitor for level in levels[min(places) : max(places) + 1]),
        share.high > most.share,
    )


def _around(shares: Sequence[float], share: float) -> tuple[int, int]:
    """Places of the last that is not above it and the first that is not below, or the nearest."""
    below, above = bisect_right(shares, share) - 1, bisect_left(shares, share)
    return max(below, 0), min(above, len(shares) - 1)


def fair_shares(wanted: Sequence[float], cores: int) -> list[float]:
    """What each gets of cores that are shared by groups of one weight, as the kernel schedules them
    (max-min fairness): who wants less than an equal part gets it, and the others share the rest.

    Parameters
    ----------
    wanted : cores that each would use, if it had them to itself.
    """
    found, left = [0.0] * len(wanted), float(cores)
    for rank, place in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        found[place] = min(wanted[place], left / (len(wanted) - rank))
        left -= found[place]
    return found


def _taken(neighbours: Sequence[Forecast], cores: int) -> Estimate:
    """The share of that many cores; neighbours are wrong together, which is the widest."""
    value, low, high = (
        sum(float(np.exp(getattr(one, end)[0])) for one in neighbours) / cores
        for end in ("mean", "low", "high")
    )
    return Estimate(value, low, high)


def _with_rival(
    text: str,
    neighbours: Estimate,
    levels: Sequence[ContentionLevel],
    own: Forecast,
    cores: int,
) -> Estimate:
    """The share of a competitor and of neighbours together.

    One that takes all that it can get had that beside the function alone: neighbours take it from
    the competitor then, and all others together have no more than the function leaves.
    """
    rival = next((level.share for level in levels if level.competitor == text), None)
    if rival is None:
        raise DataError(
            f"was not measured beside {text} at that load",
            where="shared cores",
            remedy=f"Profile it with {COMPETITOR}: [{NONE}, '{text}'] up to that load",
        )
    most = max(rival, 1.0 - float(np.exp(own.mean[0])) / cores)
    ends = [min(rival + end, most) for end in (neighbours.value, neighbours.low, neighbours.high)]
    known = levels[-1].share
    return Estimate(*(known if known < end <= known * SCATTER else end for end in ends))


def _for_cpu(rival: Competitor) -> bool:
    """Whether it takes CPU of the functions' own cores, as neighbours do."""
    return rival.kind == "cpu" and rival.place == "function"


def _part_beside(part: Part, contention: Contention, read: ContentionReader) -> Part:
    beside = {kpi: read(one, contention) for kpi, one in part.forecasters.items()}
    return replace(part, forecasters=beside)


def _beside(points: Points, competitor: str) -> list[tuple[Configuration, float]]:
    return [
        (Configuration(c.resources, {**c.workload, COMPETITOR: competitor}), wl) for c, wl in points
    ]


def by_load(at: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    """Loads, rising, and the mean share at each."""
    loads, place = np.unique([load for load, _ in at], return_inverse=True)
    shares = np.bincount(place, [share for _, share in at]) / np.bincount(place)
    return loads, shares


def _listed(counts: set[int]) -> str:
    return " and ".join(str(count) for count in sorted(counts))
