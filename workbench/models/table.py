"""From samples to the table that every model learns from, and from points to its rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from workbench.domain.errors import DataError
from workbench.domain.parameters import Configuration, ParameterValue, PrimaryWorkload
from workbench.domain.samples import Sample
from workbench.models.base import Floats, ProfileModel
from workbench.models.scales import log_kpi, log_sd, log_wl
from workbench.models.selection import capped_log_kpi, must_be_alike, must_share_a_unit, stated

METHOD_VERSION = 1
"""Raised by hand when samples become another table: benchmarks keep results by it."""
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """A column of the table. Numbers above zero are in logs; names are codes, places in `names`."""

    key: str
    kind: Literal["resource", "workload", "primary"]
    log: bool = True
    names: tuple[str, ...] = ()

    def encode(self, value: ParameterValue) -> float:
        """A value as X holds it. Raises `DataError` for what was never seen or has no logarithm."""
        if self.names:
            if value not in self.names:
                raise DataError(
                    f"{value!r} was not profiled",
                    where=self.key,
                    remedy=f"Choose one of: {', '.join(self.names)}",
                )
            return float(self.names.index(str(value)))
        if isinstance(value, str):
            raise DataError(f"{value!r} is not a number", where=self.key)
        if not self.log:
            return float(value)
        if value <= 0.0:
            raise DataError(
                f"{value:g} has no logarithm; only values above 0 were profiled", where=self.key
            )
        return math.log(value)


@dataclass(frozen=True)
class Table:
    """Samples of one target and KPI, ready to fit.

    Attributes
    ----------
    columns : parameters that vary or do not, sorted by key, then the primary workload.
    X : shape (n, len(columns)).
    y : log KPI, shape (n,), at most `ceiling`.
    noise : standard deviation of each y, from its 95 % interval.
    points : of shape (n,), the number of the operating point: repetitions share it.
    configurations : of shape (n,), the number of the configuration.
    ceiling : log of the KPI ceiling; inf where there is none.
    """

    target: str
    kpi: str
    columns: tuple[Column, ...]
    X: Floats
    y: Floats
    noise: Floats
    points: Ints
    configurations: Ints
    sample_ids: tuple[str, ...]
    ceiling: float

    def __len__(self) -> int:
        return int(self.y.size)

    @property
    def categorical(self) -> tuple[int, ...]:
        return tuple(place for place, column in enumerate(self.columns) if column.names)

    def rows(self, points: Iterable[tuple[Configuration, float]]) -> Floats:
        """X of configurations and loads, of shape (m, d). Raises `DataError`: not profiled."""
        return rows_of(self.columns, points)

    def take(self, chosen: NDArray[np.bool_] | Ints) -> Table:
        """The chosen samples only."""
        places = np.arange(len(self))[chosen]
        return Table(
            self.target, self.kpi, self.columns, self.X[places], self.y[places],
            self.noise[places], self.points[places], self.configurations[places],
            tuple(self.sample_ids[place] for place in places), self.ceiling,
        )  # fmt: skip


def table_of(
    target: str,
    samples: Sequence[Sample],
    *,
    kpi: str,
    kpi_max: float,
    primary: PrimaryWorkload,
) -> Table:
    """The table of a target: valid samples that state the KPI, in the order they are given.

    Invalid and censored samples are not used as values (METHOD.md 4); above the ceiling a KPI is
    at it, as in the papers.

    Raises
    ------
    DataError
        If no sample can be used, if samples of different load models, definitions of latency,
        units or parameters meet, or if a figure is not finite; the sentence says what is missing.
    """
    own = [s for s in samples if s.point.target == target]
    if not own:
        raise DataError("has no samples", where=target, remedy="Measure some first")
    used = [s for s in own if stated(s, kpi)]
    if not used:
        raise DataError(
            f"none of {len(own)} samples states {kpi}: {_why_unused(own, kpi)}",
            where=target,
            remedy="Measure at loads that the function carries, or choose another KPI",
        )
    # Those that lack the KPI, too: packets beside requests must not leave a model of one half.
    must_be_alike([s for s in own if s.valid])
    must_share_a_unit(own, kpi)
    _finite(used, kpi)
    columns = (*columns_of(s.point.configuration for s in used), Column(primary.name, "primary"))
    ceiling = log_kpi(kpi, kpi_max)
    configurations = [s.point.configuration for s in used]
    X = rows_of(columns, zip(configurations, (s.point.wl for s in used), strict=True))
    return Table(
        target,
        kpi,
        columns,
        X,
        np.array([capped_log_kpi(s, kpi, ceiling) for s in used]),
        np.array([log_sd(kpi, s.kpis[kpi]) for s in used]),
        _numbered(X),
        _numbered(X[:, :-1]),
        tuple(s.id for s in used),
        ceiling,
    )


def part_said(target: str, samples: Sequence[Sample], kpi: str) -> str:
    """Of how many samples of a target its table is a part, and why of no more; empty: it is all."""
    own = [s for s in samples if s.point.target == target]
    if all(stated(s, kpi) for s in own):
        return ""
    return f" of {len(own)} that states {kpi} ({_why_unused(own, kpi)})"


def _why_unused(own: Sequence[Sample], kpi: str) -> str:
    invalid = sum(not s.valid for s in own)
    bound = sum(s.valid and not stated(s, kpi) for s in own)
    return f"{invalid} are invalid, {bound} only bound it or lack it"


def columns_of(configurations: Iterable[Configuration]) -> tuple[Column, ...]:
    """Columns for all parameters, by key. Raises `DataError` if configurations do not agree."""
    seen = list(dict.fromkeys(configurations))
    columns: list[Column] = []
    for kind in ("resource", "workload"):
        values = [dict(c.resources if kind == "resource" else c.workload) for c in seen]
        keys = {key for one in values for key in one}
        for key in sorted(keys):
            if any(key not in one for one in values):
                raise DataError(
                    "is set in some samples and absent in others",
                    where=key,
                    remedy="Samples of one table are taken under the same parameters",
                )
            column = [one[key] for one in values]
            texts = sorted({v for v in column if isinstance(v, str)})
            if texts and len(texts) < len(set(column)):
                raise DataError("mixes names and numbers", where=key)
            numbers = [v for v in column if not isinstance(v, str)]
            columns.append(
                Column(
                    key,
                    kind,
                    not texts and min(numbers, default=1.0) > 0.0,
                    tuple(texts),
                )
            )
    return tuple(columns)


def rows_of(columns: Sequence[Column], points: Iterable[tuple[Configuration, float]]) -> Floats:
    """X of shape (m, len(columns)): configurations and their loads."""
    rows = []
    for configuration, wl in points:
        values = {**configuration.resources, **configuration.workload}
        for column in columns[:-1]:
            if column.key not in values:
                raise DataError("is not given", where=column.key)
        rows.append([*(c.encode(values[c.key]) for c in columns[:-1]), log_wl(wl)])
    return np.array(rows, dtype=float).reshape(-1, len(columns))


def fitted_to(model: ProfileModel, table: Table) -> ProfileModel:
    """Set what a model can be told of the table (see `workbench.models.base`); not fitted yet."""
    ceiling = table.ceiling if math.isfinite(table.ceiling) else None
    known: dict[str, object] = {"categorical": table.categorical, "ceiling": ceiling}
    if hasattr(model, "get_params"):
        offered = model.get_params(deep=True)
        # A meta-estimator (Conformal, PerConfiguration) passes on what its own estimator takes.
        wanted = {
            name: value
            for full, value in known.items()
            for name in offered
            if name == full or name.endswith(f"__{full}")
        }
        model.set_params(**wanted)  # type: ignore[attr-defined]  # scikit-learn's own protocol
    return model


def _finite(samples: Sequence[Sample], kpi: str) -> None:
    for sample in samples:
        if not math.isfinite(sample.kpis[kpi].value):
            raise DataError(
                f"{kpi} is {sample.kpis[kpi].value}",
                where=f"sample {sample.id}",
                remedy="Import the data set again without it",
            )


def _numbered(rows: Floats) -> Ints:
    """Equal rows get equal numbers, from 0; no columns means that all are equal."""
    if rows.shape[1] == 0:
        return np.zeros(len(rows), dtype=np.int64)
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
