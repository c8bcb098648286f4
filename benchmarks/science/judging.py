"""How far a model is from an independent second draw.

RMSE of log KPI decides, both sides clipped to the floor (METHOD.md 8: 0.1 % loss, 1 ms) and to the
KPI's ceiling, as paper B evaluates below 30 % only. The median of |log error| stands beside it but
cannot decide: two thirds of every grid lie on the flat piece or at the ceiling, so that the median
ignores the breakpoint. RMSE in the KPI's unit is the papers' own figure.
"""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from science.surfaces import Surface
from workbench import plugins
from workbench.domain.parameters import Configuration, PrimaryWorkload
from workbench.domain.samples import Sample
from workbench.models.base import Floats, ProfileModel
from workbench.models.scales import NORMAL_95, UNKNOWN_LOG_SD, log_kpi
from workbench.models.table import Column, Ints, Table, columns_of, fitted_to, rows_of, table_of
from workbench.sampling.base import Costs, Space

METHOD_VERSION = 1
"""Raised by hand when the same model on the same samples is judged otherwise."""


class Problem(Protocol):
    """A surface or a recording: what a sampler asks of, and a second draw to be judged by."""

    @property
    def name(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def kpi(self) -> str: ...

    @property
    def kpi_max(self) -> float: ...

    @property
    def primary(self) -> PrimaryWorkload: ...

    @property
    def costs(self) -> Costs: ...

    @property
    def matched(self) -> bool: ...

    @property
    def note(self) -> str: ...

    @property
    def configurations(self) -> tuple[Configuration, ...]: ...

    def space(self, seed: int, configurations: tuple[Configuration, ...] = ()) -> Space: ...

    def measure(
        self,
        configuration: Configuration,
        wl: float,
        *,
        draw: str,
        repetition: int = 0,
        block: int = 0,
    ) -> Sample: ...

    def grid_loads(self) -> tuple[float, ...]: ...

    def drawn(self, draw: str) -> tuple[Sample, ...]: ...


class Score(msgspec.Struct, frozen=True):
    """Errors of a model on the test draw; infinite where it could not be fitted.

    Attributes
    ----------
    rmse : of log KPI, clipped; the one that decides.
    median : of |log error|, clipped.
    rmse_kpi : in the KPI's unit, clipped at the ceiling.
    fit_s : seconds of CPU to fit and predict.
    trouble : why there is none.
    """

    rmse: float
    median: float
    rmse_kpi: float
    fit_s: float
    trouble: str = ""

    @property
    def sane(self) -> bool:
        return not self.trouble


Point = tuple[Configuration, float, int]
"""Configuration, load, repetition."""


@dataclass
class Judge:
    """The test draw of a problem as a table, and the columns that all its tables share.

    Attributes
    ----------
    rows : the configurations as those columns hold them, of shape (configurations, d - 1).
    """

    problem: Problem
    columns: tuple[Column, ...]
    rows: Floats
    test: Table = field(init=False)

    def table(self, points: Sequence[Point], draw: str) -> Table:
        """What was measured there, as the models of this problem see it: every column that the
        problem has, also where values of it were not measured yet."""
        problem = self.problem
        place = {c: number for number, c in enumerate(problem.configurations)}
        numbers = np.array([place[configuration] for configuration, *_ in points])
        if isinstance(problem, Surface):
            return self._observed(problem, numbers, points, draw)
        samples = [
            problem.measure(configuration, wl, draw=draw, repetition=repetition)
            for configuration, wl, repetition in points
        ]
        found = table_of(
            problem.target, samples, kpi=problem.kpi, kpi_max=problem.kpi_max,
            primary=problem.primary,
        )  # fmt: skip
        where = {s.id: (s.point.configuration, s.point.wl) for s in samples}
        rows = rows_of(self.columns, (where[i] for i in found.sample_ids))
        return replace(found, columns=self.columns, X=rows)

    def _observed(
        self, surface: Surface, numbers: Ints, points: Sequence[Point], draw: str
    ) -> Table:
        """As `table_of` makes it of samples, without making 22,000 of them (a test holds both
        together)."""
        wl = np.array([point[1] for point in points])
        repetition = np.array([point[2] for point in points])
        seen = np.empty((3, len(points)))
        for number in np.unique(numbers):
            own = np.flatnonzero(numbers == number)
            seen[:, own] = surface.observe(
                surface.configurations[number], wl[own], draw=draw, repetition=repetition[own]
            )
        floor, ceiling = log_kpi(surface.kpi, 0.0), log_kpi(surface.kpi, surface.kpi_max)
        logs = np.maximum(np.log(np.maximum(seen, 1e-300)), floor)
        width = (logs[2] - logs[1]) / (2.0 * NORMAL_95)
        X = np.column_stack([self.rows[numbers], np.log(wl)])
        return Table(
            surface.target,
            surface.kpi,
            self.columns,
            X,
            np.minimum(logs[0], ceiling),
            np.where(width > 0.0, np.clip(width, 0.01, 1.0), UNKNOWN_LOG_SD),
            np.unique(X, axis=0, return_inverse=True)[1].reshape(-1),
            numbers,
            tuple(map(str, range(len(points)))),
            ceiling,
        )

    def score(self, model: ProfileModel, table: Table) -> Score:
        """Fit and hold against the test draw; what a model raises is its trouble, not ours."""
        begin = time.process_time()
        try:
            with warnings.catch_warnings(), threadpool_limits(1):
                warnings.simplefilter("ignore")
                fitted_to(model, table).fit(table.X, table.y, table.noise)
                predicted = model.predict(self.test.X)
        except Exception as error:  # noqa: BLE001 - any model of any package
            trouble = f"{type(error).__name__}: {error}"[:300]
            return Score(math.inf, math.inf, math.inf, time.process_time() - begin, trouble)
        return self.errors(predicted, time.process_time() - begin)

    def errors(self, predicted: Floats, fit_s: float = 0.0) -> Score:
        """Of log KPIs at the rows of the test draw."""
        if not np.all(np.isfinite(predicted)):
            return Score(math.inf, math.inf, math.inf, fit_s, "predicts what is not finite")
        floor, ceiling = log_kpi(self.problem.kpi, 0.0), self.test.ceiling
        error = np.clip(predicted, floor, ceiling) - self.test.y
        kpi = np.exp(np.clip(predicted, floor, ceiling)) - np.exp(self.test.y)
        return Score(
            float(np.sqrt(np.mean(error**2))),
            float(np.median(np.abs(error))),
            float(np.sqrt(np.mean(kpi**2))),
            fit_s,
        )


def judge_of(problem: Problem, draw: str = "test") -> Judge:
    """Reads or draws the second data set once."""
    columns = (*columns_of(problem.configurations), Column(problem.primary.name, "primary"))
    rows = rows_of(columns, ((c, 1.0) for c in problem.configurations))[:, :-1]
    judge = Judge(problem, columns, rows)
    judge.test = judge.table(whole_grid(problem, draw), draw)
    return judge


def whole_grid(problem: Problem, draw: str) -> list[Point]:
    """All points of a draw, once."""
    if isinstance(problem, Surface):
        return [(c, wl, 0) for c in problem.configurations for wl in problem.grid_loads()]
    return [(s.point.configuration, s.point.wl, 0) for s in problem.drawn(draw)]


@cache
def factory(name: str) -> Callable[[], ProfileModel]:
    """Makes the model registered under that name, as `workbench models` does."""
    return plugins.load("models", name)  # type: ignore[no-any-return]


def model_module(name: str) -> str:
    """Where a model is written."""
    return _module(plugins.load("models", name))


def sampler_module(name: str) -> str:
    return _module(plugins.load("samplers", name))


def _module(part: Any) -> str:
    module = inspect.getmodule(part)
    return module.__name__ if module else str(part.__module__)


def models() -> tuple[str, ...]:
    """Names of all registered models that fit a table here."""
    return tuple(name for name in plugins.names("models") if _loads("models", name))


def samplers() -> tuple[str, ...]:
    return tuple(name for name in plugins.names("samplers") if _loads("samplers", name))


def _loads(group: Any, name: str) -> bool:
    try:
        if group == "models":
            factory(name)()
        else:
            plugins.load(group, name)
    except Exception as error:  # noqa: BLE001 - a broken part is named and set aside
        print(f"{group} {name}: {type(error).__name__}: {error}", flush=True)
        return False
    return True
