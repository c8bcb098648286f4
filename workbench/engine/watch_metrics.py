"""What `/metrics`, or a textfile, says of running functions that `workbench watch` tells of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import write_to_textfile
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from workbench.domain.function_watches import FunctionLook, WatchedFunction
from workbench.engine.function_watching import ReportedWatches

HEARD_S = 10.0
"""Whose watch was silent for longer has no figures: they would be old ones."""
LABELS = ("session", "function", "kpi", "place")
_FIGURES: Mapping[str, tuple[str, Callable[[FunctionLook], float | bool | None]]] = {
    "value": ("KPI from counters, in its unit.", lambda look: look.value),
    "low": ("Lower end of its 95 % interval.", lambda look: look.low),
    "high": ("Upper end of its 95 % interval.", lambda look: look.high),
    "silent": ("1 while there is no figure.", lambda look: look.value is None),
    "alarm": ("1 while the SLA is broken.", lambda look: look.alarm),
    "contention": ("1 while others' load slows it.", lambda look: look.contention),
    "times": ("The clearest sign of others' load over what traffic explains.", lambda o: o.times),
    "drift": ("1 once its counters left what was learned.", lambda look: look.drifted),
}


def watch_metrics(watches: ReportedWatches, now: float) -> Iterator[Metric]:
    """The last look of every watch that was heard of lately; `now` in seconds since the epoch."""
    yield from _metrics(watches.latest(now - HEARD_S))


def write_look(path: Path, watched: WatchedFunction, look: FunctionLook) -> None:
    """The same of one look for the textfile collector of a node exporter, whole or not at all.

    Raises `OSError` where it cannot be written.
    """
    write_to_textfile(str(path), _OneLook(watched, look))


@dataclass(frozen=True)
class _OneLook(Collector):
    watched: WatchedFunction
    look: FunctionLook

    def collect(self) -> Iterator[Metric]:
        return _metrics([(self.watched, self.look)])


def _metrics(told: Iterable[tuple[WatchedFunction, FunctionLook]]) -> Iterator[Metric]:
    looks = {_labels(watched): look for watched, look in told}
    for name, (says, figure_of) in _FIGURES.items():
        family = GaugeMetricFamily(f"workbench_watch_{name}", says, labels=LABELS)
        for labels, look in looks.items():
            if (figure := figure_of(look)) is not None:
                family.add_metric(labels, float(figure))
        if family.samples:
            yield family


def _labels(watched: WatchedFunction) -> tuple[str, str, str, str]:
    return watched.session, watched.function, watched.kpi, watched.place
