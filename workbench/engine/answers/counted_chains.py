"""A chain's KPI by models of its functions from counters: others on their cores, and own load.

No model is trained on the chain: what its functions were measured at alone, or beside competitors,
is composed by the rules of chains, and held against what was measured of it, if anything was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from workbench.chains.base import family_of, functions_of
from workbench.chains.composition import CARRIED, ChainForecaster
from workbench.chains.counted_functions import BesideWindow, CountedForecaster, read_beside
from workbench.chains.demand import cpu_demand
from workbench.chains.function_profiles import Part, parts_of
from workbench.chains.neighbours import ChainOnSharedCores
from workbench.chains.usage import ExpectedUsage
from workbench.domain import kpis
from workbench.domain.chains import NeighbourCost
from workbench.domain.competitors import COMPETITOR, NONE, competitor_of
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, ParameterValue, PrimaryWorkload
from workbench.domain.sample_review import SampleDetail
from workbench.domain.samples import Estimate, Sample
from workbench.domain.topology import Target
from workbench.engine.answers.chain_profiles import kpis_of
from workbench.measuring.window_counters import SPOILED, kpi_of
from workbench.models.counter_watch import OUTSIDE
from workbench.models.forecast import Forecaster

LOADS = 6
"""Of a chain that nobody has measured, evenly in logs over what its functions were measured at."""
MOST_POINTS = 60
"""Of one answer; each takes tenths of a second."""


@dataclass(frozen=True)
class CountedFunction:
    """One function of which a session has counters alone.

    Attributes
    ----------
    target, vnf, template : as profiled; see `Part`.
    samples : of it alone, whatever was found in them.
    windows : of these, that have its KPIs and the CPU that it used.
    """

    target: str
    vnf: str
    template: str
    primary: PrimaryWorkload
    samples: tuple[Sample, ...]
    windows: tuple[BesideWindow, ...]

    @property
    def learned_beside(self) -> tuple[str, ...]:
        """Competitors, `none` among them."""
        asked = (str(w.configuration.workload.get(COMPETITOR, NONE)) for w in self.windows)
        return tuple(dict.fromkeys(asked))


@dataclass(frozen=True)
class CountedPoint:
    """A chain at one operating point.

    Attributes
    ----------
    value : of its KPI, with its 95 % interval; None where `why` says why nothing is known.
    apart : the same as if each function had cores of its own.
    outside : whether a function that matters is asked beyond what it has learned, in load or in
        what others take; also where nothing is said.
    overloaded : the function that does not carry its load, or wants more of its cores than others
        leave it; empty where there is none.
    neighbours : what functions on the same cores cost each other.
    measured : of the chain there, each sample's KPI; empty where nobody measured it.
    """

    configuration: Configuration
    wl: float
    value: Estimate | None
    apart: Estimate | None
    outside: bool
    why: str
    overloaded: str
    neighbours: tuple[NeighbourCost, ...]
    measured: tuple[float, ...]

    @property
    def told(self) -> bool:
        """Whether it is a claim: inside of what was learned, where the KPI has a figure."""
        return self.value is not None and not self.outside and not self.overloaded


def counted_function(
    target: Target, taken: Iterable[SampleDetail], primary: PrimaryWorkload, kpi: str
) -> CountedFunction:
    """What a session has to teach of a function in chains.

    Raises
    ------
    DataError
        If no sample has the KPIs that a chain's `kpi` is composed of, and the CPU that the function
        and whoever competed with it used.
    """
    (vnf,) = target.vnfs
    details = list(taken)
    needed = needed_kpis(kpi, details[0].sample.load_model)
    windows: list[BesideWindow] = []
    for one in details:
        windows += _windows(one, vnf.name, needed)
    if not windows:
        raise DataError(
            f"none of {len(details)} samples has {', '.join(needed)} with the CPU that it used",
            where=target.name,
            remedy="Measure it alone, with and without competitors, on a lab that counts CPU",
        )
    samples = tuple(one.sample for one in details)
    return CountedFunction(target.name, vnf.name, vnf.template, primary, samples, tuple(windows))


def needed_kpis(kpi: str, load_model: str) -> tuple[str, ...]:
    """KPIs that every function has to state: those of the rule, and what it carries."""
    packets = family_of(load_model) == "packets"
    rate = kpis.carried("packets" if packets else "requests")
    return tuple(dict.fromkeys((*kpis_of(kpi, load_model), rate)))


def _windows(one: SampleDetail, vnf: str, needed: Sequence[str]) -> list[BesideWindow]:
    sample = one.sample
    configuration = sample.point.configuration
    others = sample.usage.get(COMPETITOR)
    counted = vnf in sample.usage and sample.usage[vnf].cpu_cores > 0.0
    if not SPOILED.isdisjoint(finding.reason for finding in sample.findings) or not counted:
        return []
    if others is None and competitor_of(configuration) is not None:
        return []
    share = others.cpu_share if others is not None else 0.0
    experiment = f"{configuration.key}/{sample.block}"
    overloaded = "overloaded" in sample.labels
    found = []
    for window in one.windows:
        figures = {name: value for name in needed if (value := kpi_of(window, name)) is not None}
        if len(figures) == len(needed):
            carried = window.completed >= CARRIED * window.planned and not overloaded
            found.append(
                BesideWindow(experiment, configuration, sample.point.wl, share, figures, carried)
            )
    return found


class CountedChain:
    """A chain composed of models from counters.

    Parameters
    ----------
    chain : of which each function has one of `functions`, by its template.
    cores : by function of the chain, those that it is pinned to.
    ceiling : of the KPI.
    learning : told before each model is learned.

    Raises
    ------
    DataError
        If a function has too few experiments, or functions do not belong together.
    UsageError
        If no rule composes the KPI.
    """

    def __init__(
        self,
        chain: Target,
        functions: Sequence[CountedFunction],
        kpi: str,
        cores: Mapping[str, frozenset[int]],
        ceiling: float,
        learning: Callable[[str], None] = lambda _: None,
    ) -> None:
        alone, demands = [], dict[str, Forecaster]()
        for one in functions:
            alone.append(_part(one, kpi, ceiling, learning))
            demands[one.target] = cpu_demand(one.target, one.vnf, one.samples, one.primary)
        self.functions = tuple(functions)
        self.kpi = kpi
        parts = parts_of(chain.graph, alone)
        self.composed = ChainForecaster(chain.graph, parts, kpi, kpi_max=ceiling)
        self._neighbours: ChainOnSharedCores | None = None
        if len({*cores.values()}) < len(cores):
            usage = ExpectedUsage(chain.graph, parts, demands)
            samples = [sample for one in functions for sample in one.samples]
            self._neighbours = ChainOnSharedCores(
                self.composed, usage, cores, samples, read_beside
            )  # fmt: skip

    @property
    def shares_cores(self) -> bool:
        """Whether any two functions run on the same cores."""
        return self._neighbours is not None

    def at(
        self, configuration: Configuration, wl: float, measured: Sequence[float]
    ) -> CountedPoint:
        """The chain at one operating point, with what was measured of it there."""
        costs: tuple[NeighbourCost, ...] = ()
        starved: tuple[str, ...] = ()
        try:
            if self._neighbours is None:
                said = apart = self.composed.outlook([(configuration, wl)])
            else:
                told = self._neighbours.outlook(configuration, wl)
                said, apart, costs, starved = told.beside, told.alone, told.costs, told.starved
        except DataError as error:
            why, alone = f"{OUTSIDE}: {error}", self._apart(configuration, wl)
            return CountedPoint(configuration, wl, None, alone, True, why, "", (), tuple(measured))
        outside = bool(said.chain.extrapolates[0])
        slow = ""
        if kpis.of(self.kpi).kind == "response_time":
            slow = said.overload.worst(0) or "".join(starved[:1])
        return CountedPoint(
            configuration,
            wl,
            said.chain.estimate(),
            apart.chain.estimate(),
            outside,
            f"{OUTSIDE}: a load, or what others take" if outside else "",
            slow,
            costs,
            tuple(measured),
        )

    def _apart(self, configuration: Configuration, wl: float) -> Estimate | None:
        """As if each function had cores of its own; None where that is not known either."""
        try:
            return self.composed.forecast([(configuration, wl)]).estimate()
        except DataError:
            return None


def _part(one: CountedFunction, kpi: str, ceiling: float, learning: Callable[[str], None]) -> Part:
    used = [sample for sample in one.samples if sample.valid]
    if not used:
        raise DataError("has no valid sample", where=one.target, remedy="Measure it first")
    load_model = used[0].load_model
    told: dict[str, Forecaster] = {}
    reach: dict[str, tuple[float, float]] = {}
    for name in needed_kpis(kpi, load_model):
        timed = kpis.of(name).kind == "response_time"
        # Where a load is not carried, a response time grows for as long as one watches.
        used_for = [window for window in one.windows if window.carried or not timed]
        learning(f"{one.target}: {name} from {len(used_for)} windows")
        most = ceiling if timed else np.inf
        if not used_for:
            what = "was overloaded in every window"
            raise DataError(what, where=one.target, remedy="Measure it at lower loads")
        reach[name] = min(w.wl for w in used_for), max(w.wl for w in used_for)
        told[name] = CountedForecaster(name, used_for, most)
    return Part(
        one.target,
        one.vnf,
        one.template,
        load_model,
        one.primary.name,
        min(low for low, _ in reach.values()),
        told,
        loads=reach,
        path_ms=min((s.bypass.mean_ms for s in used if s.bypass), default=0.0),
    )


Measured = Mapping[tuple[Configuration, float], Sequence[float]]
"""Of a chain: its KPI in each sample, by operating point."""


def measured_of(samples: Iterable[Sample], kpi: str) -> Measured:
    """By configuration and load, what valid samples of a chain state."""
    found: dict[tuple[Configuration, float], list[float]] = {}
    for sample in samples:
        if sample.valid and kpi in sample.kpis:
            at = sample.point.configuration, sample.point.wl
            found.setdefault(at, []).append(sample.kpis[kpi].value)
    return dict(sorted(found.items(), key=lambda one: (one[0][0].key, one[0][1])))


def points_for(chain: Target, functions: Sequence[CountedFunction]) -> Measured:
    """Operating points of a chain that nobody has measured: its functions' allocations, what all
    of them were given, and loads that all of them had.

    Raises `DataError` where they had no load, or nothing given, in common.
    """
    by_template = {one.template: one for one in functions}
    low = max(min(w.wl for w in one.windows) for one in functions)
    high = min(max(w.wl for w in one.windows) for one in functions)
    given = [
        {_key(w.configuration.workload): w.configuration.workload for w in one.windows}
        for one in functions
    ]
    common = [workload for key, workload in given[0].items() if all(key in one for one in given)]
    if low > high or not common:
        raise DataError(
            "its functions were measured at no common load, or with no workload in common",
            where=f"chain {chain.name}",
            remedy="Measure them alone under the same workload, at loads that overlap",
        )
    allotted = []
    for vnf in functions_of(chain.graph):
        one = by_template[vnf.template]
        own = {_key(w.configuration.resources): w.configuration.resources for w in one.windows}
        allotted.append([_renamed(some, one.vnf, vnf.name) for some in own.values()])
    loads = np.unique(np.geomspace(low, high, LOADS).round(6))
    if functions[0].primary.integer:
        loads = np.unique(loads.round())
    found: dict[tuple[Configuration, float], Sequence[float]] = {}
    for chosen, workload in product(product(*allotted), common):
        resources = {key: value for one in chosen for key, value in one.items()}
        for wl in loads.tolist():
            found[Configuration(resources, workload), wl] = ()
    return found


def _key(values: Mapping[str, ParameterValue]) -> str:
    return Configuration({}, values).key


def _renamed(
    resources: Mapping[str, ParameterValue], old: str, new: str
) -> dict[str, ParameterValue]:
    return {f"{new}.{key.removeprefix(f'{old}.')}": value for key, value in resources.items()}


@dataclass(frozen=True)
class CountedScore:
    """How predictions of a chain were off what was measured; shares are of 1.

    Attributes
    ----------
    samples : of the chain. `outside` : at points outside of what was learned. `overloaded` : at
        points where a function is overloaded. `judged` : all others.
    coverage : of these, within the 95 % interval. `width` : median of (upper / lower - 1) of
        these intervals. `median_error` : of them. `apart_error` : the same of what is predicted as
        if each function had cores of its own. None where there are none.
    """

    samples: int
    outside: int
    overloaded: int
    judged: int
    coverage: float | None
    width: float | None
    median_error: float | None
    apart_error: float | None


def score_of_chain(points: Sequence[CountedPoint]) -> CountedScore | None:
    """None where nobody has measured the chain."""
    of = sum(len(one.measured) for one in points)
    if not of:
        return None
    outside = sum(len(one.measured) for one in points if one.outside)
    slow = sum(len(one.measured) for one in points if one.overloaded and not one.outside)
    within, wide, off, apart = [], [], [], []
    for one in points:
        if not one.told or one.value is None or one.apart is None:
            continue
        for true in one.measured:
            within.append(one.value.low <= true <= one.value.high)
            wide.append(one.value.high / one.value.low - 1.0)
            off.append(abs(one.value.value / true - 1.0))
            apart.append(abs(one.apart.value / true - 1.0))
    if not within:
        return CountedScore(of, outside, slow, 0, None, None, None, None)
    medians = (float(np.median(some)) for some in (wide, off, apart))
    return CountedScore(of, outside, slow, len(within), float(np.mean(within)), *medians)
