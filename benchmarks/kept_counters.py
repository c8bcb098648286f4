"""Counters of measured sessions, window by window, in one Parquet file that anybody can learn from.

A sample that gave no window is kept by the reason alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from workbench.domain import kpis
from workbench.domain.competitors import NONE
from workbench.domain.errors import DataError
from workbench.domain.samples import Measurement
from workbench.engine.answers.counter_learning import CountedRows, rows_of_windows
from workbench.measuring.window_counters import SPOILED, CountedWindow, counted_windows

KEPT = Path(__file__).parent / "results" / "counted_rows.parquet"
KPIS = (kpis.THROUGHPUT, "throughput_pps", kpis.P95)
"""Kept where windows have them."""
CEILING_MS = 1000.0
COLUMNS = (
    "function VARCHAR, session VARCHAR, sample INTEGER, number INTEGER, wl DOUBLE, "
    "experiment VARCHAR, beside VARCHAR, seconds DOUBLE, kind VARCHAR, name VARCHAR, value DOUBLE"
)
"""One row for each figure; `kind` is that of `name`: a KPI, a counter, or `set aside`, whose name
is the reason and which has no value."""
KPI, COUNTER, SET_ASIDE = "kpi", "counter", "set aside"

Row = tuple[str, str, int, int, float, str, str, float, str, str, float | None]


@dataclass(frozen=True)
class KeptWindow:
    """One window of a function alone.

    Attributes
    ----------
    session, sample, number : the session's name; of the sample in it, and of the window in that.
    wl : load of the sample, in the unit of its campaign.
    experiment : configuration and pass. `beside` : who competed.
    kpis, counted : by name; counters per second, as `CountedWindow` has them.
    """

    session: str
    sample: int
    number: int
    wl: float
    experiment: str
    beside: str
    seconds: float
    kpis: Mapping[str, float] = field(default_factory=dict)
    counted: Mapping[str, float] = field(default_factory=dict)

    def of(self, kpi: str) -> CountedWindow:
        """With one KPI, as models learn from it."""
        sample = f"{self.session}/{self.sample}"
        return CountedWindow(
            self.experiment, sample, self.seconds, self.kpis[kpi], self.counted, self.beside
        )


@dataclass(frozen=True)
class KeptFunction:
    """What sessions have of one function alone.

    Attributes
    ----------
    set_aside : samples without a window, by reason.
    """

    name: str
    windows: tuple[KeptWindow, ...]
    set_aside: Mapping[str, int] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        used = {(one.session, one.sample) for one in self.windows}
        return len(used) + sum(self.set_aside.values())

    @property
    def kpis(self) -> tuple[str, ...]:
        """Those that its windows have."""
        return tuple(kpi for kpi in KPIS if any(kpi in one.kpis for one in self.windows))

    @property
    def competitors(self) -> tuple[str, ...]:
        return tuple(sorted({one.beside for one in self.windows} - {NONE}))

    def having(self, kpi: str) -> tuple[KeptWindow, ...]:
        return tuple(one for one in self.windows if kpi in one.kpis)

    @property
    def fingerprint(self) -> str:
        """Of all figures: results that carry another are of other rows."""
        plain = [
            [one.session, one.sample, one.number, one.wl, one.experiment, one.beside, one.seconds,
             sorted(one.kpis.items()), sorted(one.counted.items())]
            for one in self.windows
        ]  # fmt: skip
        text = json.dumps([self.name, plain, sorted(self.set_aside.items())])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def rows_of_kept(windows: Sequence[KeptWindow], kpi: str) -> CountedRows:
    """As `counters` and `watch` learn from them. Raises `DataError` where there is none."""
    if not windows:
        raise DataError(f"no window has {kpi}", remedy="Measure the function alone")
    samples = len({(one.session, one.sample) for one in windows})
    return rows_of_windows([one.of(kpi) for one in windows], kpi, CEILING_MS, samples)


def taken_from(measured: Mapping[str, Sequence[Measurement]], function: str) -> KeptFunction:
    """What these sessions, by name, have of a function alone.

    Raises `DataError` where that is nothing.
    """
    windows: list[KeptWindow] = []
    aside: dict[str, int] = {}
    for session, all_of_it in measured.items():
        own = [one for one in all_of_it if one.sample.point.target == function]
        # A sample may lack a percentile that its windows have: it is what it is at least.
        asked = [kpi for kpi in KPIS if any(kpi in one.sample.kpis for one in own)]
        for number, one in enumerate(own):
            found = _windows(one, asked, session, number)
            windows += found
            if not found:
                reasons = sorted({f.reason for f in one.sample.findings} & SPOILED)
                why = ", ".join(reasons) or "no window has a KPI and counters"
                aside[why] = aside.get(why, 0) + 1
    if not windows:
        raise DataError(
            f"no sample of {function} alone has a KPI with counters beside it",
            where=", ".join(measured),
            remedy=f"Name a session of {function}; set aside: {aside or 'no sample at all'}",
        )
    return KeptFunction(function, tuple(windows), aside)


def _windows(one: Measurement, asked: Sequence[str], session: str, sample: int) -> list[KeptWindow]:
    """Windows of one sample of a function alone, each with all KPIs that it has."""
    found: dict[tuple[object, ...], KeptWindow] = {}
    function = one.sample.point.target
    for kpi in asked:
        for row in counted_windows(
            one.sample, one.windows, one.series, one.observations, function, kpi
        ):
            # Windows without this KPI are left out of these rows: one is known by its counters.
            key = (row.seconds, *sorted(row.counted.items()))
            known = found.get(key)
            number = len(found) if known is None else known.number
            told = {**(known.kpis if known else {}), kpi: float(row.kpi)}
            counted = {name: float(value) for name, value in row.counted.items()}
            found[key] = KeptWindow(
                session, sample, number, float(one.sample.point.wl),
                row.experiment, row.beside, float(row.seconds), told, counted,
            )  # fmt: skip
    return list(found.values())


def read_kept(path: Path | None = None) -> dict[str, KeptFunction]:
    """All functions of the file, by name; none where there is no file."""
    path = path or KEPT
    if not path.is_file():
        return {}
    with duckdb.connect(":memory:") as memory:
        rows: list[Any] = memory.execute(
            "SELECT * FROM read_parquet(?) ORDER BY function, session, sample, number, kind, name",
            [str(path)],
        ).fetchall()
    aside: dict[str, dict[str, int]] = {}
    figures: dict[str, dict[tuple[str, int, int], dict[str, dict[str, float]]]] = {}
    about: dict[tuple[str, str, int, int], tuple[Any, ...]] = {}
    for function, session, sample, number, *of_it, kind, name, value in rows:
        if value is None:
            reasons = aside.setdefault(function, {})
            reasons[name] = reasons.get(name, 0) + 1
            continue
        key = (session, sample, number)
        window = figures.setdefault(function, {}).setdefault(key, {KPI: {}, COUNTER: {}})
        window[kind][name] = value
        about[(function, *key)] = tuple(of_it)
    return {
        function: KeptFunction(
            function,
            tuple(
                KeptWindow(*key, *about[(function, *key)], window[KPI], window[COUNTER])
                for key, window in windows.items()
            ),
            aside.get(function, {}),
        )
        for function, windows in figures.items()
    }


def write_kept(functions: Iterable[KeptFunction], path: Path | None = None) -> None:
    """The file with these functions alone; it is whole or not there."""
    rows = [row for one in sorted(functions, key=lambda f: f.name) for row in _rows(one)]
    path = path or KEPT
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with duckdb.connect(":memory:") as memory:
            memory.execute(f"CREATE TABLE kept ({COLUMNS})")
            with memory.appender("kept") as appender:
                appender.append_rows(rows)
            target = str(partial).replace("'", "''")
            memory.execute(f"COPY kept TO '{target}' (FORMAT parquet, COMPRESSION zstd)")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _rows(one: KeptFunction) -> list[Row]:
    rows: list[Row] = []
    for w in one.windows:
        about = (one.name, w.session, w.sample, w.number, w.wl, w.experiment, w.beside, w.seconds)
        rows += [(*about, KPI, name, value) for name, value in sorted(w.kpis.items())]
        rows += [(*about, COUNTER, name, value) for name, value in sorted(w.counted.items())]
    sample = 0
    for why, many in sorted(one.set_aside.items()):
        for _ in range(many):
            rows.append((one.name, "", sample, -1, 0.0, "", "", 0.0, SET_ASIDE, why, None))
            sample += 1
    return rows


def keep(one: KeptFunction, path: Path | None = None) -> None:
    """Add a function's rows to the file, in place of those that it has of it."""
    write_kept((read_kept(path) | {one.name: one}).values(), path)
