"""From cumulative counters to usage over a window and per second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from workbench.domain.competitors import COMPETITOR
from workbench.domain.errors import DataError
from workbench.domain.samples import Usage, UsageSecond
from workbench.measuring.records import ComponentCounters, Drive, Floats

HOST = "host"
SOURCE = "source"
SINK = "sink"
OWN = "workbench"
"""The workbench's own processes, where they run on the host that is measured."""
NOT_FUNCTIONS = frozenset({SOURCE, SINK, COMPETITOR, HOST, OWN})

_FIELDS = ("cpu_s", "periods", "throttled_periods", "throttled_s", "rx_bytes", "tx_bytes")
_MEGABIT = 1e6 / 8


class Meter:
    """The counters of one drive as columns, checked to only ever grow.

    Attributes
    ----------
    at_s : instants of reading, shape (instants,), seconds on the lab's clock.
    components : names of what was counted, the host apart.

    Raises
    ------
    DataError
        If there are fewer than two instants, a component is missing in some of them, or a counter
        went backwards (its container was started again in between).
    """

    def __init__(self, drive: Drive) -> None:
        counters = drive.counters
        if len(counters) < 2:
            raise DataError(
                f"a drive came with {len(counters)} instants of counters, two are the least",
                remedy="Report this as a fault of the lab",
            )
        self._drive = drive
        self.at_s = np.array([c.at_s for c in counters])
        _must_grow(self.at_s, "clock", self.at_s, "at_s")
        self.components = tuple(counters[0].components)
        self._columns: dict[str, Floats] = {}
        self._memory: dict[str, Floats] = {}
        self._threads: dict[str, Floats] = {}
        for name in self.components:
            if any(name not in c.components for c in counters):
                raise DataError(
                    f"the counters of {name} vanish while load is driven",
                    remedy="Measure the point again; look whether the container ended",
                )
            rows = [c.components[name] for c in counters]
            self._columns[name] = np.array([[getattr(row, f) for f in _FIELDS] for row in rows])
            for field, column in zip(_FIELDS, self._columns[name].T, strict=True):
                _must_grow(column, name, self.at_s, field)
            self._memory[name] = np.array([row.memory_bytes for row in rows])
            self._threads[name] = _thread_columns(rows)
        self._host = np.array([c.host_busy_s for c in counters])
        _must_grow(self._host, HOST, self.at_s, "host_busy_s")

    def usage(self, start_s: float, end_s: float) -> dict[str, Usage]:
        """Usage of every component and the host between two instants of the drive.

        Counters are read about once a second; between readings they are taken to grow evenly.
        """
        duration = end_s - start_s
        usage = {name: self._component(name, start_s, end_s) for name in self.components}
        busy = float(np.diff(np.interp((start_s, end_s), self.at_s, self._host))[0]) / duration
        usage[HOST] = Usage(busy, self._share(HOST, busy))
        return usage

    def cpu_s(self, name: str) -> Floats:
        """CPU seconds of a component at each instant of `at_s`, shape (instants,)."""
        column: Floats = self._columns[name][:, _FIELDS.index("cpu_s")]
        return column

    def busiest_thread(self, name: str, start_s: float, end_s: float) -> tuple[int, float] | None:
        """Number (from 1) and cores of a component's busiest thread; None where none is counted."""
        threads = self._threads.get(name)
        if threads is None or not threads.shape[1]:
            return None
        spent = [
            float(np.diff(np.interp((start_s, end_s), self.at_s, column))[0])
            for column in threads.T
        ]
        busiest = int(np.argmax(spent))
        return busiest + 1, spent[busiest] / (end_s - start_s)

    def seconds(self, origin_s: float) -> list[UsageSecond]:
        """Usage between each two readings; `second` counts from `origin_s`."""
        series: list[UsageSecond] = []
        for begin, end in zip(self.at_s[:-1], self.at_s[1:], strict=True):
            if end > begin:
                second = round(float(begin) - origin_s, 3)
                series.extend(
                    UsageSecond(
                        second,
                        name,
                        used.cpu_cores,
                        used.throttled_share,
                        used.memory_bytes,
                        used.rx_mbps,
                        used.tx_mbps,
                    )
                    for name, used in self.usage(float(begin), float(end)).items()
                )
        return series

    def _component(self, name: str, start_s: float, end_s: float) -> Usage:
        duration = end_s - start_s
        spent = [
            float(np.diff(np.interp((start_s, end_s), self.at_s, column))[0])
            for column in self._columns[name].T
        ]
        cpu, periods, throttled_periods, throttled, received, sent = spent
        within = (self.at_s >= start_s) & (self.at_s <= end_s)
        memory = self._memory[name][within] if within.any() else self._memory[name][-1:]
        return Usage(
            cpu_cores=cpu / duration,
            cpu_share=self._share(name, cpu / duration),
            throttled_share=min(1.0, throttled_periods / periods) if periods else 0.0,
            throttled_s=throttled,
            memory_bytes=float(memory.mean()),
            rx_mbps=received / _MEGABIT / duration,
            tx_mbps=sent / _MEGABIT / duration,
            threads=self._drive.threads.get(name, 0),
        )

    def _share(self, name: str, cores: float) -> float:
        allotted = self._drive.allotted_cores
        # A source or sink without a quota of its own may use what the host has.
        limit = allotted.get(name) or allotted.get(HOST) or 0.0
        return cores / limit if limit else 0.0


def pooled(parts: Sequence[tuple[Mapping[str, Usage], float]]) -> dict[str, Usage]:
    """Usage over several windows: rates weighted by their durations, throttled time added."""
    total = sum(duration for _, duration in parts)

    def mean(name: str, field: str) -> float:
        weighted = (getattr(usage[name], field) * duration for usage, duration in parts)
        return float(sum(weighted)) / total

    return {
        name: Usage(
            cpu_cores=mean(name, "cpu_cores"),
            cpu_share=mean(name, "cpu_share"),
            throttled_share=mean(name, "throttled_share"),
            throttled_s=sum(usage[name].throttled_s for usage, _ in parts),
            memory_bytes=mean(name, "memory_bytes"),
            rx_mbps=mean(name, "rx_mbps"),
            tx_mbps=mean(name, "tx_mbps"),
            threads=last.threads,
        )
        for name, last in parts[-1][0].items()
    }


class Metered(Protocol):
    """A stretch of a drive, and the counters that were read in it."""

    @property
    def drive(self) -> Drive: ...

    @property
    def meter(self) -> Meter: ...

    @property
    def start_s(self) -> float: ...

    @property
    def end_s(self) -> float: ...

    @property
    def duration_s(self) -> float: ...


class UsagePool:
    """What was used in the stretches of one visit."""

    stretches: Sequence[Metered]

    @cached_property
    def usage(self) -> dict[str, Usage]:
        return pooled([(s.meter.usage(s.start_s, s.end_s), s.duration_s) for s in self.stretches])

    @cached_property
    def functions(self) -> dict[str, Usage]:
        return {name: used for name, used in self.usage.items() if name not in NOT_FUNCTIONS}

    @cached_property
    def throttled_share(self) -> float:
        return max((used.throttled_share for used in self.functions.values()), default=0.0)


def _thread_columns(rows: Sequence[ComponentCounters]) -> Floats:
    """CPU seconds per instant and thread; a thread that does not exist yet has spent none."""
    most = max(len(row.threads_cpu_s) for row in rows)
    columns = np.zeros((len(rows), most))
    for i, row in enumerate(rows):
        columns[i, : len(row.threads_cpu_s)] = row.threads_cpu_s
    return np.maximum.accumulate(columns, axis=0)


def _must_grow(column: Floats, component: str, at_s: Floats, field: str) -> None:
    falls = np.flatnonzero(np.diff(column) < -1e-9)
    if falls.size:
        i = int(falls[0])
        raise DataError(
            f"counter {field} of {component} went back from {column[i]:g} to {column[i + 1]:g} "
            f"between {at_s[i]:.2f} s and {at_s[i + 1]:.2f} s",
            remedy="Measure the point again; a component that restarts in mid-drive cannot "
            "be judged",
        )
