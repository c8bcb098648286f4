"""Windows of samples as rows for models of counters: a KPI, and what was counted meanwhile.

A counter has one name here, however it was read: an amount is told per second, so that a window of
two seconds and one second of a live function are rows of one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from workbench.domain import kpis
from workbench.domain.competitors import COMPETITOR, NONE
from workbench.domain.observations import (
    OBSERVABLES,
    THROTTLED_SHARE,
    TRACE,
    Observation,
    is_level,
)
from workbench.domain.samples import Sample, UsageSecond, Window
from workbench.measuring.censoring import Distribution

HOST = "host"
CPU, THROTTLED = "cpu_cores", THROTTLED_SHARE
"""Of the function's control group; they stand in a sample's usage and not in its evidence."""
GROUP_SAYS: Mapping[str, str] = {CPU: "CPU that it used", THROTTLED: "stopped by its own quota"}
LAYERS = frozenset({"cpu", "memory", "disk", "tcp", "hop"})
HOST_LAYERS = frozenset({"cpu", "kernel", "host"})
UNFIT = frozenset(
    {
        "thread_cpu_s",  # `CPU` has it whole
        "core_busy_s", "core_softirqs",  # which core it was is a matter of chance
        "time_wait", "conntrack_used", "conntrack_limit",  # they remember the minutes before
        "others_cores", "burner_cores",  # read twice in a drive, not once a second
        "branch_share",
        *TRACE,  # of two seconds, told apart by what a thread did
    }
)  # fmt: skip
"""Observations that no model learns from."""
HOUSEKEEPING = frozenset({"RCU", "BLOCK", "TASKLET", "IRQ_POLL", "HI"})
"""Softirqs that whatever else runs on a host makes, and a function hardly."""
FEW_EVENTS = 5.0
"""Of a counter, in the fullest of all windows: up to here its figures are chance."""
FEWEST_REQUESTS, FEWEST_BEYOND = 20, 5
"""Of a window, and of its requests beyond a percentile, below which that is chance: of 20 requests
p99 would be the longest, which of exponential times is 22 % too short."""
SPOILED = frozenset({"source_saturated", "sink_saturated", "bypass_limited", "conntrack_full",
                     "not_measured", "rejected", "errors", "mirror_lost", "competitor_failed",
                     "stream_failed"})  # fmt: skip
"""Findings with which a KPI is not the function's. A busy host is none of them: what neighbours
take is what counters are to tell."""


@dataclass(frozen=True)
class CountedWindow:
    """A KPI of one window and what was counted in it, by counter."""

    experiment: str
    """Configuration and pass, which a model has seen whole or not at all."""
    sample: str
    seconds: float
    kpi: float
    counted: Mapping[str, float]
    beside: str = NONE
    """Who competed with the function."""


def counter_name(of_host: bool, name: str, detail: str) -> str:
    """How tables call it; empty where no model is to learn from it."""
    known = OBSERVABLES.get(name)
    if name == "softirqs" and detail in HOUSEKEEPING:
        return ""
    if known is None or name in UNFIT or known.layer not in (HOST_LAYERS if of_host else LAYERS):
        return ""
    return " ".join(filter(None, (HOST if of_host else "", name, detail)))


def counter_says(called: str) -> str:
    """What a counter of that name stands for; empty of a name that is none of these."""
    own = called.removeprefix(f"{HOST} ")
    name, _, detail = own.partition(" ")
    known = OBSERVABLES.get(name)
    says = GROUP_SAYS.get(name, "" if known is None else known.says)
    if not says:
        return ""
    what = f"{says} ({detail})" if detail else says
    return what if own == called else f"host: {what}"


def hardly_counted(windows: Iterable[CountedWindow]) -> frozenset[str]:
    """Counters of single events, such as segments sent again, of which no window has more than a
    few: one more or less says nothing, and would rule every distance."""
    most: dict[str, float] = {}
    for window in windows:
        for name, rate in window.counted.items():
            most[name] = max(most.get(name, 0.0), rate * window.seconds)
    return frozenset(n for n, events in most.items() if events <= FEW_EVENTS and _is_count(n))


def _is_count(called: str) -> bool:
    known = OBSERVABLES.get(called.removeprefix(f"{HOST} ").partition(" ")[0])
    return known is not None and known.kind == "amount" and known.unit != "s"


def counted_windows(
    sample: Sample,
    windows: Sequence[Window],
    series: Iterable[UsageSecond],
    observed: Iterable[Observation],
    function: str,
    kpi: str,
) -> list[CountedWindow]:
    """Rows of one sample; none where its KPI is not the function's, or nothing was counted.

    Parameters
    ----------
    kpi : what gets through, in requests or packets per second, or a percentile: of the response
        time from the planned time, or of the one-way delay where packets are stamped.
    """
    if not SPOILED.isdisjoint(finding.reason for finding in sample.findings):
        return []
    seconds = [second for second in series if second.component == function]
    by_window: dict[int, list[Observation]] = {}
    for one in observed:
        if one.component in (function, HOST) and one.value is not None:
            by_window.setdefault(one.window, []).append(one)
    experiment = f"{sample.point.target}/{sample.point.configuration.key}/{sample.block}"
    beside = str(sample.point.configuration.workload.get(COMPETITOR, NONE))
    rows = []
    for number, window in enumerate(windows):
        value, seen = kpi_of(window, kpi), by_window.get(number, [])
        if value is None or not seen or window.duration_s <= 0.0:
            continue
        counted = _usage(seconds, window)
        for one in seen:
            assert one.value is not None
            of_host = one.component == HOST
            if name := counter_name(of_host, one.name, _kind(one)):
                over = 1.0 if is_level(one.name) else window.duration_s
                counted[name] = one.value / over
        rows.append(CountedWindow(experiment, sample.id, window.duration_s, value, counted, beside))
    return rows


def kpi_of(window: Window, kpi: str) -> float | None:
    """Of one window; None where it has none that says something.

    A percentile among requests that nobody answered is what it is at least.
    """
    known = kpis.find(kpi)
    if known is not None and known.carried:
        rate = window.completed / window.duration_s if window.duration_s > 0.0 else 0.0
        return rate or None
    if known is None or known.quantile is None:
        return None
    if window.planned < max(FEWEST_REQUESTS, FEWEST_BEYOND / (1.0 - known.quantile)):
        return None
    seconds = Distribution.of(window.response).quantile_floor(known.quantile)
    return None if seconds is None else seconds * 1e3


def _kind(one: Observation) -> str:
    """What a name is told apart by: softirqs by kind; of all else it is no part of the name."""
    return one.detail if one.name == "softirqs" else ""


def _usage(seconds: Sequence[UsageSecond], window: Window) -> dict[str, float]:
    """Means over the seconds that a window touches; they are known for whole seconds only."""
    end_s = window.start_s + window.duration_s
    within = [s for s in seconds if s.second + 1.0 > window.start_s and s.second < end_s]
    if not within:
        return {}
    shares = [min(s.second + 1.0, end_s) - max(s.second, window.start_s) for s in within]
    total = sum(shares)
    return {
        CPU: sum(s.cpu_cores * part for s, part in zip(within, shares, strict=True)) / total,
        THROTTLED: sum(s.throttled_share * part for s, part in zip(within, shares, strict=True))
        / total,
    }
