"""The figures that are shown of a diagnosis: function by function, stand-alone beside chained."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import mean
from typing import Protocol

from workbench.diagnosis import behaviour
from workbench.diagnosis.base import Case
from workbench.diagnosis.deviating import (
    FEWEST_POINTS,
    sigmas_from,
    suspects,
    without_outliers,
)
from workbench.diagnosis.readings import Reading
from workbench.domain.deviations import CARRIED, MOST_SIGMAS, SAME_LOAD
from workbench.domain.diagnoses import EvidenceRow, Suspect
from workbench.domain.parameters import Configuration

MOST_LOADS = 24
"""Loads of a curve; more would be no plainer in a line of a screen."""
ALIKE = 0.05
"""Relative difference in rate up to which samples count as of one load."""


class ValueOf(Protocol):
    """From a sample and a component to a figure; None where it is not known."""

    def __call__(self, seen: Reading, name: str) -> float | None: ...


PER_REQUEST = (
    ("connections_opened", "new connections", "per request"),
    ("delayed_acks", "late acknowledgements", "per request"),
    ("retransmitted", "segments sent again", "per request"),
    ("voluntary_switches", "context switches, voluntary", "per request"),
    ("involuntary_switches", "context switches, not", "per request"),
    ("rx_packets", "packets in", "per request"),
    ("tx_packets", "packets out", "per request"),
    ("major_faults", "major faults", "per request"),
)
"""Observations that a table shows function by function: name, words, unit."""


def rows(
    case: Case, chained: Sequence[Reading], alone: Mapping[str, Sequence[Reading]]
) -> Iterator[EvidenceRow]:
    """Function by function: stand-alone beside chained (paper A, section 6).

    `chained` and `alone`, the latter by function under its name in the chain, are the samples at
    other loads, of which the curves are.
    """
    for name in (*case.order, *case.passive):
        for what, unit, value in _FIGURES:
            yield _row(case, name, (what, unit, value), chained, alone)
        for observed, what, unit in PER_REQUEST:
            value = _per_request(observed)
            row = _row(case, name, (what, unit, value), chained, alone)
            if row.chained is None:
                row = replace(row, note=case.seen.why_absent(name, observed))
            yield row
        traced = [(one, name) for one in (case.seen, *case.alone.get(name, ()))]
        for figure in behaviour.figures(traced):
            yield _row(case, name, figure, chained, alone)


def _row(
    case: Case,
    name: str,
    figure: tuple[str, str, ValueOf],
    chained: Sequence[Reading],
    alone: Mapping[str, Sequence[Reading]],
) -> EvidenceRow:
    what, unit, value = figure
    known = [v for one in case.alone.get(name, ()) if (v := value(one, name)) is not None]
    here = value(case.seen, name)
    note = ""
    if value is _cpu_by_second and (kept := without_outliers(case.seen.by_second.get(name, ()))):
        seconds = len(kept.dropped) + kept.count
        values = ", ".join(f"{one:.3g}" for one in kept.dropped)
        note = f"{len(kept.dropped)} of {seconds} seconds left out: {values}" if values else ""
    return EvidenceRow(
        name,
        what,
        unit,
        mean(known) if known else None,
        here,
        note,
        by_load(alone.get(name, ()), name, value),
        by_load(chained, name, value),
        None if here is None else _bounded(sigmas_from(here, known)),
        len(known),
    )


def _bounded(sigmas: float | None) -> float | None:
    """A number that crosses the link: where the samples alone do not differ it is infinite."""
    return None if sigmas is None else min(MOST_SIGMAS, max(-MOST_SIGMAS, sigmas))


def influential(
    own: Sequence[Reading], seen: Reading, order: Sequence[str]
) -> tuple[tuple[Suspect, ...], str]:
    """Configurations that move the line through all of a target's at about the same load (paper E,
    section 6.2), and of how many that was said, or why of none."""
    point = seen.sample.point
    by_configuration: dict[Configuration, list[Reading]] = {}
    for one in own:
        near = one.sample.point.wl > 0 and point.wl > 0
        near = near and abs(math.log(one.sample.point.wl / point.wl)) <= math.log(SAME_LOAD)
        if near and (one.sample.valid or one is seen):
            by_configuration.setdefault(one.sample.point.configuration, []).append(one)
    chosen = list(by_configuration)
    if len(chosen) < FEWEST_POINTS:
        return (
            (),
            f"{FEWEST_POINTS} configurations at about this load are needed, not {len(chosen)}",
        )
    groups = list(by_configuration.values())
    features = {}
    for what, value in _features(order):
        values = [[v for one in group if (v := value(one)) is not None] for group in groups]
        if all(values):
            features[what] = [mean(found) for found in values]
    loads = [mean(one.sample.point.wl for one in group) for group in groups]
    ranked = suspects(loads, features)
    note = f"of {len(chosen)} configurations by {len(features)} features, over 4/n"
    found = tuple(Suspect(chosen[r.point], r.mean_distance, r.beyond) for r in ranked)
    return found, note


def _features(order: Sequence[str]) -> Iterator[tuple[str, Callable[[Reading], float | None]]]:
    """Those of the target as a whole once, then each function's own."""
    whole = {CARRIED, "mean response time"}
    for what, _, value in _FIGURES:
        if what in whole:
            yield what, partial(value, name="")
    per_request = [(what, _per_request(observed)) for observed, what, _ in PER_REQUEST]
    for name in order:
        for what, value in [*((w, v) for w, _, v in _FIGURES if w not in whole), *per_request]:
            yield f"{what} of {name}", partial(value, name=name)


def by_load(
    readings: Sequence[Reading], name: str, value: ValueOf
) -> tuple[tuple[float, float], ...]:
    """Carried rate (1/s) and figure, by rising rate; the mean where samples are of one load.

    At most `MOST_LOADS`, spread evenly over those there are.
    """
    found = sorted(
        (one.rate, figure)
        for one in readings
        if one.rate > 0 and (figure := value(one, name)) is not None
    )
    loads: list[list[tuple[float, float]]] = []
    for rate, figure in found:
        if loads and rate <= loads[-1][0][0] * (1 + ALIKE):
            loads[-1].append((rate, figure))
        else:
            loads.append([(rate, figure)])
    if len(loads) > MOST_LOADS:
        last = MOST_LOADS - 1
        loads = [loads[round(i * (len(loads) - 1) / last)] for i in range(MOST_LOADS)]
    return tuple((mean(r for r, _ in one), mean(f for _, f in one)) for one in loads)


def _per_request(observed: str) -> ValueOf:
    def value(seen: Reading, name: str) -> float | None:
        return seen.per_request(name, observed)

    return value


def _answered(seen: Reading, name: str) -> float | None:
    del name
    return seen.rate


def _mean_ms(seen: Reading, name: str) -> float | None:
    del name
    return None if seen.mean_s is None else 1e3 * seen.mean_s


def _cpu_ms(seen: Reading, name: str) -> float | None:
    used = seen.usage(name)
    return None if used is None or not seen.rate else 1e3 * used.cpu_cores / seen.rate


def _cpu_by_second(seen: Reading, name: str) -> float | None:
    """The mean over the seconds that an interquartile filter leaves (paper E, section 6.1)."""
    kept = without_outliers(seen.by_second.get(name, ()))
    return None if kept is None else kept.mean


def _usage(seen: Reading, name: str) -> float | None:
    used = seen.usage(name)
    return None if used is None else 100 * used.cpu_share


def _throttled(seen: Reading, name: str) -> float | None:
    used = seen.usage(name)
    return None if used is None else 100 * used.throttled_share


def _wait_ms(seen: Reading, name: str) -> float | None:
    waited = seen.per_request(name, "cpu_wait_s")
    return None if waited is None else 1e3 * waited


def _size_in(seen: Reading, name: str) -> float | None:
    return _ratio(seen.amount(name, "rx_bytes"), seen.amount(name, "rx_packets"))


def _size_out(seen: Reading, name: str) -> float | None:
    return _ratio(seen.amount(name, "tx_bytes"), seen.amount(name, "tx_packets"))


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


_FIGURES: tuple[tuple[str, str, ValueOf], ...] = (
    (CARRIED, "requests/s", _answered),
    ("mean response time", "ms", _mean_ms),
    ("CPU usage of its allocation", "%", _usage),
    ("throttled periods", "%", _throttled),
    ("CPU", "ms per request", _cpu_ms),
    ("CPU by the second, no outliers", "cores", _cpu_by_second),
    ("waiting for CPU", "ms per request", _wait_ms),
    ("mean packet in", "bytes", _size_in),
    ("mean packet out", "bytes", _size_out),
)
