"""A chain where a profile would do: stand-alone forecasts, composed by a rule, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from workbench.chains.base import (
    ChainRule,
    LoadFamily,
    family_of,
    functions_of,
    think_ms_of,
)
from workbench.chains.capacity import CpuScale
from workbench.chains.function_profiles import Part, must_compose
from workbench.chains.rules import BottleneckAndSum, LeastThroughput, default_rule, must_apply
from workbench.chains.standalone import NUDGES, WORSE, ForecastDraws, StandAlone
from workbench.domain import kpis
from workbench.domain.topology import Node
from workbench.models.base import Floats
from workbench.models.forecast import Bools, Forecast, Points
from workbench.models.scales import log_kpi

DRAWS = 400
MATTERS = 0.1
"""Log change of the chain's figure from which on it matters that a function may be that wrong."""

CARRIED = 0.97
"""Share of an open load under which a function does not carry it: it is overloaded."""

_INTERVAL = (0.025, 0.975)
_AT_ONCE = 200
_NO_SCALES: Mapping[str, CpuScale] = MappingProxyType({})


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
    overload : see `Overload`.
    """

    chain: Forecast
    functions: Mapping[str, Forecast]
    loads: Mapping[str, Floats]
    effects: Mapping[str, Floats]
    overload: Overload


@dataclass(frozen=True)
class Overload:
    """What the functions carry of the open loads that reach them, at m operating points.

    Beyond its capacity a function has no steady response time: it grows for as long as one watches.

    Attributes
    ----------
    shares : by function, what it is expected to carry of what reaches it, shape (m,); 1 in a closed
        loop, where nothing is planned, and where nothing is known of it.
    sure : where even the upper end of that says that some function is overloaded, shape (m,).
    """

    shares: Mapping[str, Floats]
    sure: Bools

    @property
    def expected(self) -> Bools:
        """Where some function is expected to be overloaded, shape (m,)."""
        return np.asarray(np.min(list(self.shares.values()), axis=0) < CARRIED)

    def worst(self, place: int) -> str:
        """The function that carries least of its load at a point; empty where all carry it."""
        name = min(self.shares, key=lambda vnf: float(self.shares[vnf][place]))
        return name if self.shares[name][place] < CARRIED else ""


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
    scales : mapping of str to CpuScale, optional
        By instance name, CPU per request in the chain over that alone: the function is asked at
        the load at which it was that busy alone. None for those that need what they need alone.

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
        scales: Mapping[str, CpuScale] = _NO_SCALES,
    ) -> None:
        self.graph, self.parts, self.kpi, self.scales = graph, parts, kpi, scales
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
            math.log(min(kpi_max, 100.0 if kpis.of(kpi).kind == "share" else math.inf)),
        )
        self.kpi_max = kpi_max
        self._made_with = draws, seed
        names = [vnf.name for vnf in self.vnfs]
        self._worlds = ForecastDraws.of(parts, names, kpi, family, draws, seed, scales)

    def scaled(self, scales: Mapping[str, CpuScale]) -> ChainForecaster:
        """The same chain, its functions asked by their CPU per request in it."""
        return self._with(self.parts, scales)

    def of_parts(self, parts: Mapping[str, Part]) -> ChainForecaster:
        """The same chain of functions of which something else is known."""
        return self._with(parts, self.scales)

    def _with(self, parts: Mapping[str, Part], scales: Mapping[str, CpuScale]) -> ChainForecaster:
        draws, seed = self._made_with
        return ChainForecaster(
            self.graph, parts, self.kpi, self.rule,
            draws=draws, seed=seed, kpi_max=self.kpi_max, scales=scales,
        )  # fmt: skip

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
            return Outlook(none, dict.fromkeys(names, none), each, each, Overload(each, nowhere))
        figures = self.figures(points)
        rows = self.rule.compose(self.graph, self.kpi, figures)
        logs = np.clip(np.log(np.maximum(rows, 1e-300)), *self._limits)
        mean = logs[0]
        drawn = logs[self._worlds.expected :]
        low, high = np.quantile(drawn, _INTERVAL, axis=0, method="hazen")
        slower, colder, far_worse = np.abs(logs[1 : self._worlds.expected] - mean).reshape(
            NUDGES, len(self.vnfs), -1
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
            self._overload(figures, len(points)),
        )

    def overload(self, points: Points) -> Overload:
        """Which functions are loaded beyond what they carry."""
        return self._overload(self.figures(points), len(points))

    def _overload(self, figures: StandAlone, count: int) -> Overload:
        shares, sure = {}, np.zeros(count, dtype=bool)
        for vnf in self.vnfs:
            shares[vnf.name] = np.ones(count)
            rate = next((k for k in kpis.all_carried() if figures.states(vnf.name, k)), None)
            if self.family == "closed" or rate is None or not count:
                continue
            told, load = figures.most(vnf.name, rate), figures.loads[vnf.name][0]
            shares[vnf.name] = np.exp(told.mean) / load
            sure |= np.exp(told.high) < CARRIED * load
        return Overload(shares, sure)

    def figures(self, points: Points) -> StandAlone:
        """What the rule is given at these points."""
        return StandAlone(self.graph, self.parts, self._worlds, self.family, points)


class TwoTerms:
    """The terms of `BottleneckAndSum` apart, as retraining learns κ and Δ on them.

    Raises as `ChainForecaster`.
    """

    def __init__(
        self,
        graph: Node,
        parts: Mapping[str, Part],
        kpi: str,
        scales: Mapping[str, CpuScale] = _NO_SCALES,
    ) -> None:
        self._rule = BottleneckAndSum()
        self._chain = ChainForecaster(graph, parts, kpi, self._rule, draws=1, scales=scales)
        self.think_ms = think_ms_of(self._chain.load_model)
        self._highest = min(
            part.loads.get(kpi, (0.0, math.inf))[1] / (scales[name].factor if name in scales else 1)
            for name, part in parts.items()
        )

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
        if all(figures.states(vnf.name, kpis.THROUGHPUT) for vnf in vnfs):
            rule = LeastThroughput()
            carried = rule.compose(self._chain.graph, kpis.THROUGHPUT, figures)[0]
            return np.asarray(1e3 / carried)
        return np.asarray((slowest + self.think_ms) / np.array([wl for _, wl in points]))

    def unloaded_sum(self, points: Points) -> Floats:
        """Σ_i R_i(1) in the KPI's unit, of shape (m,); above zero, whatever the path takes away."""
        return np.maximum(self._of(points)[1], kpis.SMALLEST)

    def _of(self, points: Points) -> tuple[Floats, Floats]:
        figures = self._chain.figures(points)
        slowest, added = self._rule.terms(self._chain.graph, self._chain.kpi, figures)
        return slowest[0], added[0]
