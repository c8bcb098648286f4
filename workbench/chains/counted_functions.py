"""A function of a chain by what others take of its cores and by its own load.

What a competitor really took is counted in every sample beside it (its true intensity), and so is
what a function takes of the CPU. Both are shares of cores: a model that has learned the one answers
for the other, so that competitors, neighbours on shared cores and the chain are one prediction.
SLOMO (Manousis et al. 2020) calls that the contention vector; here it has a share for each kind of
competitor, and neighbours count as `cpu`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from workbench.chains.composition import CARRIED
from workbench.chains.neighbours import BesideNeighbours, Contention, by_load
from workbench.domain.competitors import COMPETITOR, NONE, Competitor, competitor_of
from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, ParameterValue
from workbench.models.base import Floats
from workbench.models.counter_rows import CounterRows
from workbench.models.counter_watch import CounterWatch
from workbench.models.forecast import Forecast, Forecaster, Points
from workbench.models.interpolation import LogInterpolation

LOAD = "load"
CPU_KIND = "cpu"
"""Under which neighbours count: what they do to caches and memory is not known."""
LEAST_LEFT = 0.01
"""Share of its cores that a function is left at least: a logarithm needs more than nothing."""
BESIDE_FORM = "left beside {}"


@dataclass(frozen=True)
class BesideWindow:
    """A window of one function alone, or beside a competitor.

    Attributes
    ----------
    experiment : what a model has seen whole or not at all.
    configuration : of the function alone, with its `competitor`.
    wl : its load.
    share : of the competitor's cores that it really used, 0 to 1; 0 where nobody competed.
    kpis : in their units, each above 0.
    carried : whether the function carried its load; else it has no steady response time.
    """

    experiment: str
    configuration: Configuration
    wl: float
    share: float
    kpis: Mapping[str, float]
    carried: bool = True


def contention_kind(rival: Competitor) -> str:
    """What tells competitors apart whose shares are one figure."""
    return rival.kind if rival.place == "function" else f"{rival.kind}@{rival.place}"


@dataclass(frozen=True)
class CountedLayout:
    """The columns of a function's rows: its load, what else varied, and what each kind left it.

    Attributes
    ----------
    varied : keys of parameters that have several numbers. `fixed` : all others, with their value.
    kinds : of competitors.
    taken : by configuration, the loads of its windows, rising, and the share that the competitor
        used at each.
    """

    varied: tuple[str, ...]
    fixed: Mapping[str, ParameterValue]
    kinds: tuple[str, ...]
    taken: Mapping[str, tuple[Floats, Floats]] = field(repr=False)

    @classmethod
    def of(cls, windows: Sequence[BesideWindow]) -> CountedLayout:
        """Raises `DataError` where a parameter other than the competitor varies by name."""
        values: dict[str, set[ParameterValue]] = {}
        for window in windows:
            for key, value in _given(window.configuration).items():
                values.setdefault(key, set()).add(value)
        varied = tuple(sorted(key for key, known in values.items() if len(known) > 1))
        for key in varied:
            if any(isinstance(value, str) for value in values[key]):
                raise DataError(
                    f"was measured at {', '.join(sorted(map(str, values[key])))}, and models from "
                    "counters know numbers alone",
                    where=key,
                    remedy="Measure the functions at one of them, in a session of its own",
                )
        fixed = {key: known.pop() for key, known in values.items() if len(known) == 1}
        rivals = (competitor_of(window.configuration) for window in windows)
        kinds = tuple(sorted({contention_kind(rival) for rival in rivals if rival}))
        at: dict[str, list[tuple[float, float]]] = {}
        for window in windows:
            at.setdefault(window.configuration.key, []).append((window.wl, window.share))
        return cls(varied, fixed, kinds, {key: by_load(some) for key, some in at.items()})

    @property
    def features(self) -> tuple[str, ...]:
        return (LOAD, *self.varied, *(BESIDE_FORM.format(kind) for kind in self.kinds))

    def shares(self, configuration: Configuration, wl: float) -> dict[str, float]:
        """What the configuration's competitor takes, by kind; nothing where nobody competes.

        Raises `DataError` for a competitor that the function was not measured beside.
        """
        rival = competitor_of(configuration)
        if rival is None:
            return {}
        known = self.taken.get(configuration.key)
        if known is None:
            raise DataError(
                f"was not measured beside {rival.text} at this allocation",
                where=COMPETITOR,
                remedy=f"Measure it alone with {COMPETITOR}: [{NONE}, '{rival.text}']",
            )
        loads, shares = known
        return {contention_kind(rival): float(np.interp(np.log(wl), np.log(loads), shares))}

    def row(
        self, configuration: Configuration, wl: float, shares: Mapping[str, float]
    ) -> list[float]:
        """Figures of the columns. Raises `DataError` for a value that was never measured."""
        given = _given(configuration)
        for key, value in self.fixed.items():
            if given.get(key, value) != value:
                raise DataError(
                    f"was measured at {value} alone, and is asked at {given[key]}",
                    where=key,
                    remedy="Measure the function alone at that as well",
                )
        if missing := [key for key in self.varied if key not in given]:
            raise DataError("is not said, and was measured at several", where=missing[0])
        numbers = [float(given[key]) for key in self.varied]
        left = (max(1.0 - shares.get(kind, 0.0), LEAST_LEFT) for kind in self.kinds)
        return [wl, *numbers, *left]


class CountedForecaster:
    """Implements `Forecaster`: a KPI over a function's load and what others take of its cores.

    The model is ours of counters (`OwnCounterModel`), with the interval of `CounterWatch`: as wide
    as experiments that were held out whole have missed nearby. What a competitor leaves is in its
    logarithm, as work lasts longer by that factor where cores are shared. Beyond all that was
    measured, in load or contention, it extrapolates.

    Parameters
    ----------
    windows : that state the KPI.
    ceiling : of the KPI, in its unit.

    Raises
    ------
    DataError
        If there are too few experiments to hold one out, or as `CountedLayout.of`.
    """

    def __init__(
        self, kpi: str, windows: Sequence[BesideWindow], ceiling: float, seed: int = 0
    ) -> None:
        self.kpi = kpi
        self.layout = CountedLayout.of(windows)
        x = np.array([self._own_row(window) for window in windows])
        y = np.array([min(window.kpis[kpi], ceiling) for window in windows])
        rivals = [str(w.configuration.workload.get(COMPETITOR, NONE)) for w in windows]
        names = tuple(dict.fromkeys((NONE, *rivals)))
        rows = CounterRows(
            self.layout.features,
            x,
            y,
            np.unique([w.experiment for w in windows], return_inverse=True)[1].reshape(-1),
            np.array([names.index(name) for name in rivals]),
            names,
        )
        self.watch = CounterWatch(rows, seed)
        self._columns = [self.layout.features.index(name) for name in self.watch.features]
        self._lowest = float(x[:, 0].min())
        self._hull = LogInterpolation().fit(_logs(x), np.log(y))

    def forecast(self, points: Points) -> Forecast:
        """Beside the competitor of each configuration, or alone.

        Raises `DataError` for a competitor or a value that was never measured.
        """
        return self._told(points, [self.layout.shares(c, wl) for c, wl in points])

    def at_share(self, points: Points, share: float) -> Forecast:
        """Where others use that share of its cores, whoever they are."""
        return self._told(points, [{CPU_KIND: share}] * len(points))

    def _own_row(self, window: BesideWindow) -> list[float]:
        rival = competitor_of(window.configuration)
        shares = {contention_kind(rival): window.share} if rival else {}
        return self.layout.row(window.configuration, window.wl, shares)

    def _told(self, points: Points, shares: Sequence[Mapping[str, float]]) -> Forecast:
        if not len(points):
            nothing = np.empty(0)
            return Forecast(nothing, nothing, nothing, np.empty(0, dtype=bool))
        asked = zip(points, shares, strict=True)
        x = np.array([self.layout.row(c, wl, taken) for (c, wl), taken in asked])
        value, half = self.watch.said(x[:, self._columns])
        mean = np.log(value)
        # What the function before it is forecast to carry of a load counts as that load.
        lowest = self._lowest
        x[:, 0] = np.where(x[:, 0] >= lowest * CARRIED, np.maximum(x[:, 0], lowest), x[:, 0])
        return Forecast(mean, mean - half, mean + half, self._hull.extrapolates(_logs(x)))


class BesideCounted(BesideNeighbours):
    """A function where others take a share of its cores that lies between two that were measured.

    What it is expected to be its model says, which has learned over the share; the interval is that
    of `BesideNeighbours`, which holds what is known of both.
    """

    def __init__(self, alone: CountedForecaster, contention: Contention) -> None:
        super().__init__(alone, contention)
        self._learned = alone

    def _expected(self, points: Points, told: Mapping[str, Forecast]) -> Floats:
        del told  # the levels around it say the interval alone
        return self._learned.at_share(points, self._contention.share.value).mean


def read_beside(alone: Forecaster, contention: Contention) -> Forecaster:
    """What a function is at a contention: by what it has learned of others, where it has."""
    if isinstance(alone, CountedForecaster):
        return BesideCounted(alone, contention)
    return BesideNeighbours(alone, contention)


def _given(configuration: Configuration) -> dict[str, ParameterValue]:
    """All parameters but the competitor."""
    every = {**configuration.resources, **configuration.workload}
    return {key: value for key, value in every.items() if key != COMPETITOR}


def _logs(x: Floats) -> Floats:
    """Of figures that may be 0, such as a number of rules."""
    return np.asarray(np.log(np.maximum(x, 1e-9)))
