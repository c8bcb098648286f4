"""What `/metrics` says of running functions that `workbench watch` tells of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

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
    "drift": ("1 once its counters left what was learned.", lambda look: look.drifted),
}


def watch_metrics(watches: ReportedWatches, now: float) -> Iterator[Metric]:
    """The last look of every watch that was heard of lately; `now` in seconds since the epoch."""
    looks = {_labels(watched): look for watched, look in watches.latest(now - HEARD_S)}
    for name, (says, figure_of) in _FIGURES.items():
        family = GaugeMetricFamily(f"workbench_watch_{name}", says, labels=LABELS)
        for labels, look in looks.items():
            if (figure := figure_of(look)) is not None:
                family.add_metric(labels, float(figure))
        if family.samples:
            yield family


def _labels(watched: WatchedFunction) -> tuple[str, str, str, str]:
    return watched.session, watched.function, watched.kpi, watched.place
