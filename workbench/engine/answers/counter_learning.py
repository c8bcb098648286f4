"""Evidence of a session's samples as rows that a model of counters learns from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from workbench.domain.errors import DataError
from workbench.domain.sample_review import SampleDetail
from workbench.domain.samples import Measurement
from workbench.measuring.window_counters import CountedWindow, counted_windows, hardly_counted
from workbench.models.counter_rows import CounterRows, DroppedFeature, rows_of


@dataclass(frozen=True)
class CountedRows:
    """What a session has to teach of one function's KPI.

    Attributes
    ----------
    window_s : median length of its windows, in seconds.
    samples : that have rows; `of` as many were looked at.
    """

    rows: CounterRows
    dropped: tuple[DroppedFeature, ...]
    window_s: float
    samples: int
    of: int


def counted_rows(
    taken: Iterable[Measurement | SampleDetail], function: str, kpi: str, ceiling: float
) -> CountedRows:
    """The windows of all samples of one function alone.

    Parameters
    ----------
    ceiling : above it a response time is told as this; infinite: none is (`Campaign.ceiling`).

    Raises
    ------
    DataError
        If no window has both the KPI and counters of the function.
    """
    windows: list[CountedWindow] = []
    looked = 0
    for one in taken:
        looked += 1
        windows += counted_windows(
            one.sample, one.windows, one.series, one.observations, function, kpi
        )
    if not windows:
        raise DataError(
            f"none of {looked} samples has {kpi} and counters of {function} beside it",
            where=function,
            remedy="Measure the function alone, on this host, with a workbench that keeps evidence",
        )
    return rows_of_windows(windows, kpi, ceiling, looked)


def rows_of_windows(
    windows: Sequence[CountedWindow], kpi: str, ceiling: float, looked: int
) -> CountedRows:
    """One row a window, over counters that are more than a few single events; there is a window.

    Parameters
    ----------
    looked : samples that they are from, and those of which none is.
    """
    rare = hardly_counted(windows)
    rows, dropped = rows_of(
        [{name: v for name, v in one.counted.items() if name not in rare} for one in windows],
        [min(one.kpi, ceiling) if kpi.endswith("_ms") else one.kpi for one in windows],
        [one.experiment for one in windows],
        [one.beside for one in windows],
    )
    return CountedRows(
        rows,
        (*dropped, *(DroppedFeature(name, "hardly ever counted") for name in sorted(rare))),
        median(one.seconds for one in windows),
        len({one.sample for one in windows}),
        looked,
    )
