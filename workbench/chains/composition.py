"""A chain where a profile would do: stand-alone forecasts, composed by a rule, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from workbench.chains.base import (
    RATES,
    SHARES,
    ChainRule,
    LoadFamily,
    family_of,
    functions_of,
    think_ms_of,
)
from workbench.chains.deviates import uniforms
from workbench.chains.parts import Part, must_compose
from workbench.chains.rules import (
    BottleneckAndSum,
    LeastThroughput,
    default_rule,
    lost,
    must_apply,
)
from workbench.domain.parameters import Configuration
from workbench.domain.topology import Node, Parallel, Series, Vnf
from workbench.models.base import Floats
from workbench.models.forecast import Bools, Forecast, Points
from workbench.models.scales import SMALLEST_KPI, log_kpi

DRAWS = 400

WORSE = 1.1
"""How much worse each function is made in turn, to see which one limits."""
COLD = 1.4
"""How much slower a function may be below the lowest load that it was profiled at (METHOD.md 11:
R(1) = 1.4 R(4))."""
FAR_WORSE = 10.0
"""How much worse it may be anywhere else where its model extrapolates."""
MATTERS = 0.1
"""Log change of the chain's figure from which on it matters that a function may be that wrong."""
_NUDGES = 3

_INTERVAL = (0.025, 0.975)
_NODES = 5
_AT_ONCE = 200
_LEAST_PASSED = 1e-3


@dataclass(frozen=True)
class Worlds:
    """The rows of `Figures`: in what ways the profiles may be right or wrong.

    What is expected; each function made worse by `WORSE`, then each by `COLD`, then each by
    `FAR_WORSE`; draws.

    Attributes
    ----------
    expected : the number of rows before the draws.
    deviates : standard normal, by profile, shape (rows,): 0 before the draws.
    worse : factors on a function's figures, by instance name, shape (rows,): 1 in draws.
    dependence : see `Figures`, shape (rows,).
    """

    expected: int
    deviates: Mapping[str, Floats]
    worse: Mapping[str, Floats]
    dependence: Floats

    @classmethod
    def of(
        cls,
        parts: Mapping[str, Part],
        names: Sequence[str],
        kpi: str,
        family: LoadFamily,
        draws: int,
        seed: int,
    ) -> Worlds:
        profiles = tuple(dict.fromkeys(parts[name].target for name in names))
        expected = 1 + _NUDGES * len(names)
        u = uniforms(draws, len(profiles) + 1, seed)
        still = np.zeros(expected)
        # Of a planned load that is lower than any profiled, no more is known to be carried.
        cold = 1.0 if _is_carried(kpi, family) else COLD
        worse = {}
        for place, name in enumerate(names):
            worse[name] = np.ones(expected + draws)
            for turn, factor in enumerate((WORSE, cold, FAR_WORSE)):
                row = 1 + turn * len(names) + place
                worse[name][row] = 1.0 / factor if kpi in RATES else factor
        return cls(
            expected,
            {p: np.concatenate([still, ndtri(u[:, place])]) for place, p in enumerate(profiles)},
            worse,
            np.concatenate([still, u[:, -1]]),
        )


@dataclass(frozen=True)
class Outlook:
    """What a rule makes of stand-alone profiles at m operating points, function by function.

    Attributes
    ----------
    chain : the chain's KPI.
    functions : each function's own, at the load that is expected to reach it.
    loads : that load, shape (m,).
    effects : log change of the chain's KPI for a log change by `WORSE` of the function's, as a
        share of it, shape (m,).
    """

    chain: Forecast
    functions: Mapping[str, Forecast]
    loads: Mapping[str, Floats]
    effects: Mapping[str, Floats]


class ChainForecaster:
    """Implements `Forecaster` for a chain.

    The mean is the rule applied to the functions' means. That is what can be checked by hand, what
    the papers' rule means by itself, and for a chain of one its profile. Under a maximum fewer than
    half of the draws are below it; decisions at 95 % rest on the ends, which are of draws.

    One deviate moves all of a profile, all its KPIs and operating points: two instances of one
    template are wrong together. The load behind a function that loses follows its drawn loss.

    Parameters
    ----------
    graph : Node
        The chain.
    parts : mapping of str to Part
        By instance name.
    kpi : str
    rule : ChainRule, optional
        By default the one for the KPI and the load that the parts were profiled under.
    draws : int, default=400
    seed : int, default=0
    kpi_max : float, default=inf
        Ceiling of the KPI in its unit.

    Raises
    ------
    DataError
        If parts or their KPIs are missing, or if they do not belong together (`must_compose`).
    UsageError
        If the rule does not apply.
    """

    def __init__(
        self,
        graph: Node,
        parts: Mapping[str, Part],
        kpi: str,
        rule: ChainRule | None = None,
        *,
        draws: int = DRAWS,
        seed: int = 0,
        kpi_max: float = math.inf,
    ) -> None:
        self.graph, self.parts, self.kpi = graph, parts, kpi
        self.load_model = must_compose(graph, parts, ())
        family = family_of(self.load_model)
        if rule is None:
            rule = default_rule(kpi, family)
        must_apply(rule, kpi, family)
        must_compose(graph, parts, rule.needs(kpi))
        self.rule = rule
        self.vnfs = functions_of(graph)
        self._limits = (
            log_kpi(kpi, 0.0),
            math.log(min(kpi_max, 100.0 if kpi in SHARES else math.inf)),
        )
        names = [vnf.name for vnf in self.vnfs]
        self._worlds = Worlds.of(parts, names, kpi, family, draws, seed)

    @property
    def family(self) -> LoadFamily:
        return family_of(self.load_model)

    def forecast(self, points: Points) -> Forecast:
        """The chain's KPI. Raises `DataError` for what was never profiled."""
        said = [
            self.outlook(points[start : start + _AT_ONCE]).chain
            for start in range(0, max(len(points), 1), _AT_ONCE)
        ]
        return Forecast(
            np.concatenate([one.mean for one in said]),
            np.concatenate([one.low for one in said]),
            np.concatenate([one.high for one in said]),
            np.concatenate([one.extrapolates for one in said]),
        )

    def outlook(self, points: Points) -> Outlook:
        """The same with what the functions contribute, all points at once."""
        if not len(points):
            nothing, nowhere = np.empty(0), np.empty(0, dtype=bool)
            none = Forecast(nothing, nothing, nothing, nowhere)
            names = [vnf.name for vnf in self.vnfs]
            each = dict.fromkeys(names, nothing)
            return Outlook(none, dict.fromkeys(names, none), each, each)
        figures = self.figures(points)
        rows = self.rule.compose(self.graph, self.kpi, figures)
        logs = np.clip(np.log(np.maximum(rows, 1e-300)), *self._limits)
        mean = logs[0]
        drawn = logs[self._worlds.expected :]
        low, high = np.quantile(drawn, _INTERVAL, axis=0, method="hazen")
        slower, colder, far_worse = np.abs(logs[1 : self._worlds.expected] - mean).reshape(
            _NUDGES, len(self.vnfs), -1
        )
        functions = {vnf.name: figures.alone(vnf.name, self.kpi) for vnf in self.vnfs}
        beyond = np.stack([functions[vnf.name].extrapolates for vnf in self.vnfs])
        aside = np.stack([figures.aside(vnf.name, self.kpi) for vnf in self.vnfs])
        unknown = beyond & (np.where(aside, far_worse, colder) >= MATTERS)
        chain = Forecast(
            mean, np.minimum(low, mean), np.maximum(high, mean), np.asarray(unknown.any(axis=0))
        )
        loads = {vnf.name: figures.loads[vnf.name][0] for vnf in self.vnfs}
        return Outlook(
            chain,
            functions,
            loads,
            {vnf.name: slower[place] / math.log(WORSE) for place, vnf in enumerate(self.vnfs)},
        )

    def figures(self, points: Points) -> StandAlone:
        """What the rule is given at these points."""
        return StandAlone(self.graph, self.parts, self._worlds, self.family, points)


class TwoTerms:
    """The terms of `BottleneckAndSum` apart, as retraining learns κ and Δ on them.

    Raises as `ChainForecaster`.
    """

    def __init__(self, graph: Node, parts: Mapping[str, Part], kpi: str) -> None:
        self._rule = BottleneckAndSum()
        self._chain = ChainForecaster(graph, parts, kpi, self._rule, draws=1)
        self.think_ms = think_ms_of(self._chain.load_model)
        highest = (part.loads.get(kpi, (0.0, math.inf))[1] for part in parts.values())
        self._highest = min(highest)

    def bottleneck(self, points: Points) -> Floats:
        """Log of max_i R_i, of shape (m,).

        Where clients think, above the highest load that all functions were profiled at: what they
        carry there is taken for their capacity X, so that each client more takes 1/X (METHOD.md 2).
        """
        if not self.think_ms:
            return np.asarray(np.log(self._of(points)[0]))
        within = [(c, min(wl, self._highest)) for c, wl in points]
        figures = self._chain.figures(within)
        slowest = self._rule.terms(self._chain.graph, self._chain.kpi, figures)[0][0]
        more = np.array([wl for _, wl in points]) - np.array([wl for _, wl in within])
        return np.asarray(np.log(slowest + more * self._client_ms(figures, slowest, within)))

    def _client_ms(self, figures: StandAlone, slowest: Floats, points: Points) -> Floats:
        """1/X, of shape (m,): of what the slowest carries, else by Little's law."""
        vnfs = self._chain.vnfs
        if all(figures.states(vnf.name, "throughput_rps") for vnf in vnfs):
            rule = LeastThroughput()
            carried = rule.compose(self._chain.graph, "throughput_rps", figures)[0]
            return np.asarray(1e3 / carried)
        return np.asarray((slowest + self.think_ms) / np.array([wl for _, wl in points]))

    def unloaded_sum(self, points: Points) -> Floats:
        """Σ_i R_i(1) in the KPI's unit, of shape (m,); above zero, whatever the path takes away."""
        return np.maximum(self._of(points)[1], SMALLEST_KPI)

    def _of(self, points: Points) -> tuple[Floats, Floats]:
        figures = self._chain.figures(points)
        slowest, added = self._rule.terms(self._chain.graph, self._chain.kpi, figures)
        return slowest[0], added[0]


class StandAlone:
    """`Figures` from the parts' forecasts. Of a planned load, what one loses spares the next.

    Instances that share a profile, an allocation and a load are asked about once.

    Attributes
    ----------
    loads : by function, of shape (rows, m), or (1, m) where all rows have the same.
    """

    def __init__(
        self,
        graph: Node,
        parts: Mapping[str, Part],
        worlds: Worlds,
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
        return self._forecast(vnf, kpi, self.loads[vnf][0])

    def aside(self, vnf: str, kpi: str) -> Bools:
        """Where a function extrapolates even at the lowest load that states its KPI, shape (m,)."""
        lowest = self._parts[vnf].loads.get(kpi, (0.0, 0.0))[0]
        return self._forecast(vnf, kpi, np.maximum(self.loads[vnf][0], lowest)).extrapolates

    def own(self, vnf: str) -> list[Configuration]:
        """Its configurations, under the names of its profile."""
        if vnf not in self._own:
            part = self._parts[vnf]
            self._own[vnf] = [part.configuration(c, vnf) for c, _ in self._points]
        return self._own[vnf]

    def _twin(self, vnf: str) -> str:
        """The first function that was asked about of those which nothing tells from this one."""
        if vnf not in self._twins:
            target, own, load = self._parts[vnf].target, self.own(vnf), self.loads[vnf]
            self._twins[vnf] = next(
                (
                    other
                    for other in dict.fromkeys(self._twins.values())
                    if self._parts[other].target == target
                    and self.own(other) == own
                    and np.array_equal(self.loads[other], load)
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
        if self.states(vnf, "loss_pct"):
            passed = load * (1.0 - lost(self._at(vnf, "loss_pct", idle=False), "loss_pct"))
        else:
            rate = next((kpi for kpi in RATES[:2] if self.states(vnf, kpi)), None)
            if rate is None:
                return load
            passed = np.minimum(load, self._at(vnf, rate, idle=False))
        # Something always passes: a load of zero has no logarithm.
        passed = np.maximum(passed, _LEAST_PASSED * load)
        return passed[:1] if np.ptp(passed, axis=0).max() == 0.0 else passed

    def _nudged(self, vnf: str, kpi: str, figures: Floats) -> Floats:
        factors = self._worlds.worse[vnf][:, None]
        if kpi not in SHARES:
            return figures * factors
        # A loss at its floor is none, and a little more than none is none.
        none = (lost(figures, kpi) == 0.0) & (factors < FAR_WORSE)
        return np.asarray(np.where(none, figures, np.minimum(figures * factors, 100.0)))

    def _at(self, vnf: str, kpi: str, idle: bool) -> Floats:
        """A KPI of a function, of shape (rows, m), as drawn."""
        vnf = self._twin(vnf)
        key = vnf, kpi, idle
        if key not in self._told:
            part = self._parts[vnf]
            z = self._worlds.deviates[part.target]
            load = self.loads[vnf]
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
    return family != "closed" and kpi in RATES[:2]
