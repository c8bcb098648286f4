"""What `/metrics`, or a textfile, says of running functions that `workbench watch` tells of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import write_to_textfile
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from workbench.domain.function_watches import FunctionLook, HeldOutRates, WatchedFunction
from workbench.engine.function_watching import ReportedWatches

HEARD_S = 10.0
"""Whose watch was silent for longer has no figures: they would be old ones."""
LABELS = ("session", "function", "kpi", "place")
_FIGURES: Mapping[str, tuple[str, Callable[[FunctionLook], float | bool | None]]] = {
    "value": ("KPI from counters, in its unit.", lambda look: look.value),
    "low": ("Lower end of its 95 % interval.", lambda look: look.low),
    "high": ("Upper end of its 95 % interval.", lambda look: look.high),
    "silent": ("1 while there is no figure.", lambda look: look.value is None),
    "alarm": (
        "1 while the SLA is predicted to break: raised by two looks of three that say so with "
        "a probability of 80 %, cleared by five in a row whose figure holds it.",
        lambda look: look.alarm,
    ),
    "breach": (
        "Probability that the KPI breaks the SLA, by its interval; above 0.5 the figure does, and "
        "up to 0.8 it raises no alarm.",
        lambda look: look.breach,
    ),
    "contention": ("1 while others take its cores, or slow it.", lambda look: look.contention),
    "times": ("The clearest sign of others' load over what traffic explains.", lambda o: o.times),
    "drift": (
        "1 once its counters were further from what was learned, for long, than nine of ten "
        "held-out windows are.",
        lambda look: look.drifted,
    ),
}
_SHARES: Mapping[str, Callable[[HeldOutRates], tuple[int | None, int | None]]] = {
    "silent": lambda rates: (rates.silent, rates.windows),
    "strayed": lambda rates: (rates.strayed, rates.windows),
    "missed": lambda rates: (rates.missed, rates.broken),
    "false": lambda rates: (rates.false, rates.held),
    "contention_missed": lambda rates: (rates.beside_missed, rates.beside),
    "contention_false": lambda rates: (rates.alone_contended, rates.alone),
}
"""Windows that were told wrongly, and how many there were."""


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


def _metrics(told: Sequence[tuple[WatchedFunction, FunctionLook]]) -> Iterator[Metric]:
    looks = {_labels(watched): look for watched, look in told}
    for name, (says, figure_of) in _FIGURES.items():
        family = GaugeMetricFamily(f"workbench_watch_{name}", says, labels=LABELS)
        for labels, look in looks.items():
            if (figure := figure_of(look)) is not None:
                family.add_metric(labels, float(figure))
        if family.samples:
            yield family
    yield from _held_out({_labels(watched): watched for watched, _ in told})


def _held_out(watches: Mapping[tuple[str, ...], WatchedFunction]) -> Iterator[Metric]:
    family = GaugeMetricFamily(
        "workbench_watch_held_out_share",
        "Share of windows of experiments held out that single looks would have told wrongly: "
        "without a figure, far enough for drift, the SLA's breaches missed or false, others' load "
        "missed or false.",
        labels=(*LABELS, "what"),
    )
    for labels, watched in watches.items():
        for what, counts_of in _SHARES.items():
            wrong, windows = counts_of(watched.rates) if watched.rates else (None, None)
            if wrong is not None and windows:
                family.add_metric((*labels, what), wrong / windows)
    if family.samples:
        yield family


def _labels(watched: WatchedFunction) -> tuple[str, str, str, str]:
    return watched.session, watched.function, watched.kpi, watched.place
