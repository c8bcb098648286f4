"""`Figures` of a chain's functions: their own forecasts, in all ways in which they may be wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from workbench.chains.base import LoadFamily
from workbench.chains.capacity import CpuScale
from workbench.chains.function_profiles import Part
from workbench.chains.quasi_random import uniforms
from workbench.chains.rules import lost
from workbench.domain import kpis
from workbench.domain.parameters import Configuration
from workbench.domain.topology import Node, Parallel, Series, Vnf
from workbench.models.base import Floats
from workbench.models.forecast import Bools, Forecast, Points

WORSE = 1.1
"""How much worse each function is made in turn, to see which one limits."""
COLD = 1.4
"""How much slower a function may be below the lowest load that it was profiled at (METHOD.md 11:
R(1) = 1.4 R(4))."""
FAR_WORSE = 10.0
"""How much worse it may be anywhere else where its model extrapolates."""
SPARED = 0.7
"""Share of its allocation under which a function is not slowed by what it carries."""
NUDGES = 3

_NODES = 5
_LEAST_PASSED = 1e-3


@dataclass(frozen=True)
class ForecastDraws:
    """The rows of `Figures`: in what ways the profiles may be right or wrong.

    What is expected; each function made worse by `WORSE`, then each by `COLD`, then each by
    `FAR_WORSE`; draws.

    Attributes
    ----------
    expected : the number of rows before the draws.
    deviates : standard normal, by profile, shape (rows,): 0 before the draws.
    worse : factors on a function's figures, by instance name, shape (rows,): 1 in draws.
    dependence : see `Figures`, shape (rows,).
    stretch : factors on the load that a function is asked at, by instance name, shape (rows,); only
        of those whose CPU per request is another one in the chain.
    """

    expected: int
    deviates: Mapping[str, Floats]
    worse: Mapping[str, Floats]
    dependence: Floats
    stretch: Mapping[str, Floats]

    @classmethod
    def of(
        cls,
        parts: Mapping[str, Part],
        names: Sequence[str],
        kpi: str,
        family: LoadFamily,
        draws: int,
        seed: int,
        scales: Mapping[str, CpuScale],
    ) -> ForecastDraws:
        profiles = tuple(dict.fromkeys(parts[name].target for name in names))
        expected = 1 + NUDGES * len(names)
        k = len(profiles)
        u = uniforms(draws, k + 1 + len(scales), seed)
        still = np.zeros(expected)
        # Of a planned load that is lower than any profiled, no more is known to be carried.
        cold = 1.0 if _is_carried(kpi, family) else COLD
        worse = {}
        for place, name in enumerate(names):
            worse[name] = np.ones(expected + draws)
            for turn, factor in enumerate((WORSE, cold, FAR_WORSE)):
                row = 1 + turn * len(names) + place
                worse[name][row] = 1.0 / factor if kpis.of(kpi).more_is_better else factor
        return cls(
            expected,
            {p: np.concatenate([still, ndtri(u[:, place])]) for place, p in enumerate(profiles)},
            worse,
            np.concatenate([still, u[:, k]]),
            {
                name: np.exp(
                    scale.log
                    + np.hypot(scale.sd, scale.spread)
                    * np.concatenate([still, ndtri(u[:, k + 1 + j])])
                )
                for j, (name, scale) in enumerate(scales.items())
            },
        )


class StandAlone:
    """`Figures` from the parts' forecasts. Of a planned load, what one loses spares the next.

    Instances that share a profile, an allocation and a load are asked about once. A function that
    needs s times the CPU per request is as busy at load x as it was alone at s·x, and carries 1/s
    of what it carried there. Of clients beyond those that it was profiled with, each takes 1/X
    more: what it carries there is its capacity (METHOD.md 2).

    Attributes
    ----------
    loads : by function, of shape (rows, m), or (1, m) where all rows have the same.
    """

    def __init__(
        self,
        graph: Node,
        parts: Mapping[str, Part],
        worlds: ForecastDraws,
        family: LoadFamily,
        points: Points,
    ) -> None:
        self._parts, self._worlds, self._family, self._points = parts, worlds, family, points
        self._own: dict[str, list[Configuration]] = {}
        self._twins: dict[str, str] = {}
        self._told: dict[tuple[str, str, bool], Floats] = {}
        self._asked: dict[tuple[str, str, bytes], Forecast] = {}
        self.dependence = worlds.dependence
        self.path_ms = min(part.path_ms for part in parts.values())
        self.loads: dict[str, Floats] = {}
        self._lead(graph, np.array([[wl for _, wl in points]]), last=True)

    def loaded(self, vnf: str, kpi: str) -> Floats:
        figures = self._at(vnf, kpi, idle=False)
        if _is_carried(kpi, self._family):
            # Below its lowest profiled load a model may know of no smaller throughput.
            figures = np.minimum(figures, self.loads[vnf])
        return self._nudged(vnf, kpi, figures)

    def unloaded(self, vnf: str, kpi: str) -> Floats:
        return self._nudged(vnf, kpi, self._at(vnf, kpi, idle=True))

    def states(self, vnf: str, kpi: str) -> bool:
        return kpi in self._parts[vnf].forecasters

    def alone(self, vnf: str, kpi: str) -> Forecast:
        """A function's own forecast at the loads that are expected to reach it."""
        told = self._forecast(vnf, kpi, self._asked_at(vnf, kpi)[0])
        if vnf not in self._worlds.stretch:
            return told
        more = np.log(self._longer(vnf, kpi)[0])
        if kpis.of(kpi).kind == "rate":
            more = more - np.log(self._worlds.stretch[vnf][0])
        return replace(told, mean=told.mean + more, low=told.low + more, high=told.high + more)

    def most(self, vnf: str, rate: str) -> Forecast:
        """What a function carries at most at these loads or higher ones, as logs of shape (m,).

        Between a load that is carried and one that is not, a model may know of less than either.
        """
        told, busy = self.alone(vnf, rate), self._asked_at(vnf, rate)[0]
        _, highest = self._parts[vnf].loads.get(rate, (0.0, 0.0))
        slower = np.log(self._worlds.stretch[vnf][0]) if vnf in self._worlds.stretch else 0.0
        mean, high = told.mean, told.high
        for share in np.linspace(1.0 / _NODES, 1.0, _NODES):
            there = busy ** (1.0 - share) * np.maximum(busy, highest) ** share
            beyond = self._forecast(vnf, rate, there)
            mean = np.maximum(mean, beyond.mean - slower)
            high = np.maximum(high, beyond.high - slower)
        return replace(told, mean=mean, high=high)

    def aside(self, vnf: str, kpi: str) -> Bools:
        """Where a function extrapolates even at the lowest load that states its KPI, shape (m,)."""
        lowest = self._parts[vnf].loads.get(kpi, (0.0, 0.0))[0]
        return self._forecast(
            vnf, kpi, np.maximum(self._asked_at(vnf, kpi)[0], lowest)
        ).extrapolates

    def own(self, vnf: str) -> list[Configuration]:
        """Its configurations, under the names of its profile."""
        if vnf not in self._own:
            part = self._parts[vnf]
            self._own[vnf] = [part.configuration(c, vnf) for c, _ in self._points]
        return self._own[vnf]

    def _busy(self, vnf: str) -> Floats:
        """The loads at which it was alone as busy as it is here, of shape (rows, m) or (1, m)."""
        load, stretch = self.loads[vnf], self._worlds.stretch.get(vnf)
        return load if stretch is None else _alike(load * stretch[:, None])

    def _asked_at(self, vnf: str, kpi: str) -> Floats:
        """Of these, what lies beyond both the chain's own load and those that it was profiled at
        is left out: clients are left to `_longer`, and what is planned does not slow a function
        that has CPU to spare."""
        busy = self._busy(vnf)
        if vnf not in self._worlds.stretch:
            return busy
        _, highest = self._parts[vnf].loads.get(kpi, (0.0, np.inf))
        most = np.maximum(self.loads[vnf], highest)
        if self._family != "closed":
            most = np.where(self._to_spare(vnf), most, np.inf)
        return np.minimum(busy, most)

    def _to_spare(self, vnf: str) -> Bools:
        """Where it is known to use less than `SPARED` of its allocation, of shape (m,)."""
        part, own = self._parts[vnf], self.own(vnf)
        allotted = np.array([c.vcpu(part.vnf) or 0.0 for c in own])
        if part.cpu is None:
            return np.zeros(len(own), dtype=bool)
        used = part.cpu.cores(list(zip(own, self._busy(vnf)[0].tolist(), strict=True)))
        return np.asarray(used < SPARED * allotted)

    def _longer(self, vnf: str, kpi: str) -> Floats:
        """By how many times response times are longer at the clients that are left out."""
        asked = self._asked_at(vnf, kpi)
        more = self._busy(vnf) - asked
        known = self._family == "closed" and self.states(vnf, kpis.THROUGHPUT)
        if kpis.of(kpi).kind != "response_time" or not known or not more.any():
            return np.ones((1, asked.shape[1]))
        carried = np.exp(self._forecast(vnf, kpis.THROUGHPUT, asked[0]).mean)
        there = np.exp(self._forecast(vnf, kpi, asked[0]).mean)
        return np.asarray(1.0 + more * 1e3 / carried / there)

    def _twin(self, vnf: str) -> str:
        """The first function that was asked about of those which nothing tells from this one."""
        if vnf not in self._twins:
            part, own, load = self._parts[vnf], self.own(vnf), self._busy(vnf)
            self._twins[vnf] = next(
                (
                    other
                    for other in dict.fromkeys(self._twins.values())
                    if self._parts[other].target == part.target
                    and self._parts[other].forecasters == part.forecasters
                    and self.own(other) == own
                    and np.array_equal(self._busy(other), load)
                    and np.array_equal(self.loads[other], self.loads[vnf])
                ),
                vnf,
            )
        return self._twins[vnf]

    def _lead(self, node: Node, load: Floats, last: bool) -> Floats:
        """Lead a load through the chain: what reaches each function, and what comes out.

        Nothing is asked of what comes out `last`.
        """
        match node:
            case Vnf(name):
                self.loads[name] = load
                return load if last or self._family == "closed" else self._passed(name, load)
            case Series(parts):
                for place, part in enumerate(parts):
                    load = self._lead(part, load, last and place == len(parts) - 1)
                return load
            case Parallel(branches, shares):
                split = zip(branches, shares, strict=True)
                passed = [self._lead(branch, share * load, last) for branch, share in split]
                return np.asarray(sum(np.broadcast_arrays(*passed), np.zeros(1)))

    def _passed(self, vnf: str, load: Floats) -> Floats:
        """What goes on to the next: all but what is lost, or, if that is not known, is carried."""
        if self.states(vnf, kpis.LOSS):
            passed = load * (1.0 - lost(self._at(vnf, kpis.LOSS, idle=False), kpis.LOSS))
        else:
            rate = next((k for k in kpis.all_carried() if self.states(vnf, k)), None)
            if rate is None:
                return load
            passed = np.minimum(load, self._at(vnf, rate, idle=False))
        # Something always passes: a load of zero has no logarithm.
        passed = np.maximum(passed, _LEAST_PASSED * load)
        return _alike(passed)

    def _nudged(self, vnf: str, kpi: str, figures: Floats) -> Floats:
        factors = self._worlds.worse[vnf][:, None]
        if kpis.of(kpi).kind != "share":
            return figures * factors
        # A loss at its floor is none, and a little more than none is none.
        none = (lost(figures, kpi) == 0.0) & (factors < FAR_WORSE)
        return np.asarray(np.where(none, figures, np.minimum(figures * factors, 100.0)))

    def _at(self, vnf: str, kpi: str, idle: bool) -> Floats:
        """A KPI of a function, of shape (rows, m), as drawn."""
        stretch = self._worlds.stretch.get(vnf)
        if stretch is None or idle:
            return self._as_alone(vnf, kpi, idle)
        if kpis.of(kpi).kind == "rate":
            return self._as_alone(vnf, kpi, idle) / stretch[:, None]
        return self._as_alone(vnf, kpi, idle) * self._longer(vnf, kpi)

    def _as_alone(self, vnf: str, kpi: str, idle: bool) -> Floats:
        vnf = self._twin(vnf)
        key = vnf, kpi, idle
        if key not in self._told:
            part = self._parts[vnf]
            z = self._worlds.deviates[part.target]
            load = self._asked_at(vnf, kpi)
            if idle:
                load = np.full((1, load.shape[1]), part.lowest_wl)
            told = self._forecast(vnf, kpi, load[0])
            drawn = told.draws(z) if len(load) == 1 else self._along(vnf, kpi, load, z)
            drawn[: self._worlds.expected] = told.mean
            self._told[key] = np.exp(drawn)
        return self._told[key]

    def _along(self, vnf: str, kpi: str, load: Floats, z: Floats) -> Floats:
        """Log KPI where every row has a load of its own.

        Asking the model for all of them would be hundreds of times dearer: it is asked at a few
        loads from the least to the largest of each point, and lines in logs do the rest.
        """
        logs = np.log(load)
        low = logs.min(axis=0)
        step = np.maximum(np.ptp(logs, axis=0), 1e-9) / (_NODES - 1)
        nodes = np.exp(low + np.arange(_NODES)[:, None] * step)
        told = self._forecast(vnf, kpi, nodes.ravel()).draws(z).reshape(-1, *nodes.shape)
        place = np.clip((logs - low) / step, 0.0, _NODES - 1)
        left = np.minimum(place.astype(np.int64), _NODES - 2)
        share = place - left
        lower, upper = (
            np.take_along_axis(told, node[:, None, :], axis=1)[:, 0, :] for node in (left, left + 1)
        )
        return np.asarray((1.0 - share) * lower + share * upper)

    def _forecast(self, vnf: str, kpi: str, loads: Floats) -> Forecast:
        """At loads of shape (c * m,), the configurations of the m points c times over."""
        vnf = self._twin(vnf)
        key = vnf, kpi, loads.tobytes()
        if key not in self._asked:
            own = self.own(vnf) * (len(loads) // len(self._points))
            points = list(zip(own, loads.tolist(), strict=True))
            self._asked[key] = self._parts[vnf].forecasters[kpi].forecast(points)
        return self._asked[key]


def _is_carried(kpi: str, family: LoadFamily) -> bool:
    """Whether a KPI is of the unit of a planned load, of which no more than all is carried."""
    return family != "closed" and kpis.of(kpi).carried


def _alike(load: Floats) -> Floats:
    """One row of loads of shape (rows, m) where all are the same."""
    return load[:1] if np.ptp(load, axis=0).max() == 0.0 else load
