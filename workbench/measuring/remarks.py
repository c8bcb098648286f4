"""What is worth knowing of a sample and does not invalidate it (METHOD.md 4 and 5).

Each remark is a small function from the pooled windows to a `Remark` or None, with the figure
that earned it. What source, sink or host did is never put down to the function: `Look.blamed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

import numpy as np

from workbench.domain import kpis
from workbench.domain.samples import Bypass, Remark, Usage
from workbench.measuring.histograms import position_of
from workbench.measuring.kpis import Statement
from workbench.measuring.pool import WindowPool

BYPASS_SHARE_LABEL = 0.10
"""Share of the mean response time that source and sink take themselves."""
THROTTLED_LABEL = 0.05
"""Share of throttled quota periods; hardly any is less."""
PLATEAU = 0.90
"""Share of its allocation that a function uses where CPU is what limits it."""
BACKLOG_LABEL = 0.01
"""Share of requests that waited for a free connection."""
JUMP_RATIO, JUMP_MS = 2.0, 10.0
"""What a percentile moves by when the share of slow requests changes by a factor of two, where it
lies on a jump. Without one it is 1.6 for exponential and 1.7 for log-normal times (sigma 0.8)."""
STALL_LOW_S, STALL_HIGH_S = 0.19, 0.26
"""The least retransmission time-out of Linux is 200 ms; what comes on top is the rest of R."""
STALL_SHARE = 0.001
STALL_ERRORS = 4.0
"""Standard errors by which the mode must stand out; it is looked for in every sample."""
STALL_BATCHES = 3
"""Batches that show it: one pause delays many requests, and is no mode."""


@dataclass(frozen=True)
class Look:
    """What is looked at.

    Attributes
    ----------
    kpis : names of the percentiles that the campaign looks at.
    blamed : a finding says that source, sink, host or path, and not the functions, set the pace.
    looked_at : names of all KPIs that it looks at.
    """

    pool: WindowPool
    statement: Statement
    bypass: Bypass | None
    kpis: tuple[str, ...]
    blamed: bool
    looked_at: Set[str]


def remark(case: Look) -> tuple[Remark, ...]:
    """All that apply, in the order of METHOD.md 4 and then those of overload."""
    return tuple(found for label in LABELS if (found := label(case)) is not None)


def bypass_share(case: Look) -> Remark | None:
    """The path without the functions takes a part of what is measured."""
    mean = case.statement.kpis.get(kpis.MEAN)
    if case.bypass is None or mean is None or kpis.MEAN in case.statement.bounded:
        return None
    share = case.bypass.mean_ms / mean.value
    if share <= BYPASS_SHARE_LABEL:
        return None
    return Remark(
        "bypass_share",
        share,
        f"source and sink alone take {case.bypass.mean_ms:.3g} ms of the mean of "
        f"{mean.value:.3g} ms, {share:.0%}",
    )


def throttled(case: Look) -> Remark | None:
    name, used = _most(case.pool, "throttled_share")
    if used is None or used.throttled_share <= THROTTLED_LABEL:
        return None
    return Remark(
        "throttled",
        used.throttled_share,
        f"{name} stood still in {used.throttled_share:.0%} of its quota periods, "
        f"for {used.throttled_s:.2f} s in all",
    )


def not_cpu_limited(case: Look) -> Remark | None:
    """Overloaded, and the busiest function does not use its allocation up.

    In a closed loop one sample does not tell whether it is saturated: there the rule `cpu` says it
    of a knee.
    """
    name, used = _most(case.pool, "cpu_share")
    if used is None or not used.cpu_share or case.blamed or not case.pool.overloaded:
        return None
    if used.cpu_share >= PLATEAU or case.pool.throttled_share > THROTTLED_LABEL:
        return None
    return Remark(
        "not_cpu_limited",
        used.cpu_share,
        f"overloaded while {name}, the busiest function, used {used.cpu_cores:.2f} cores, "
        f"{used.cpu_share:.0%} of its allocation, throttled in "
        f"{case.pool.throttled_share:.0%} of its periods",
    )


def stall_200ms(case: Look) -> Remark | None:
    """A mode near 200 ms stands out from its neighbours, which are as wide on the log axis.

    The mean of the two neighbours is at least what a smooth density has between them, for every
    density that is convex there, such as any tail. A function that is throttled answers in whole
    quota periods: with it the band must also hold more than the one around 100 ms.
    """
    pool = case.pool
    middle = pool.response.quantile(0.5)
    width = STALL_HIGH_S / STALL_LOW_S
    if middle is None or middle > STALL_LOW_S / width:
        return None
    edges = [STALL_LOW_S * width**i for i in (-2, -1, 0, 1, 2)]
    batches = np.array([_between(d.finished, edges) for d in pool.responses])
    period, below, band, above = batches.sum(axis=0)
    expected, variance = (below + above) / 2, (below + above) / 4
    if pool.throttled_share > THROTTLED_LABEL and period > expected:
        expected = variance = period
    excess = band - expected
    total = pool.response.requests
    shown = (
        excess > STALL_ERRORS * np.sqrt(1 + expected + variance) and excess > STALL_SHARE * total
    )
    if not shown or np.count_nonzero(batches[:, 2]) < STALL_BATCHES:
        return None
    return Remark(
        "stall_200ms",
        float(excess / total),
        f"{band:.0f} of {total} answers took {STALL_LOW_S * 1e3:.0f}-{STALL_HIGH_S * 1e3:.0f} ms, "
        f"{max(expected, 0.0):.0f} would fit to those around: retransmission time-outs",
    )


def quota_jump(case: Look) -> Remark | None:
    """A percentile lies on the jump between the service time and the quota gap (METHOD.md 5).

    About n/(X·T) of the requests meet a gap. Where that is near the percentile's own tail, half
    and twice the tail lie on different sides of the jump.
    """
    pool = case.pool
    name, used = _most(pool, "throttled_share")
    if used is None or used.throttled_share <= THROTTLED_LABEL or pool.overloaded:
        return None
    for kpi in case.kpis:
        tail = 1 - (kpis.of(kpi).quantile or 0.0)
        low, high = (pool.response.quantile(1 - share) for share in (2 * tail, tail / 2))
        if low is None or high is None or pool.straddle_share < tail / 2:
            continue
        if high > JUMP_RATIO * low and (high - low) * 1e3 > JUMP_MS:
            return Remark(
                "quota_jump",
                pool.straddle_share,
                f"n/(X·T) is {pool.straddle_share:.1%}: {kpi.removesuffix('_ms')} lies on the "
                f"jump from {low * 1e3:.3g} ms to {high * 1e3:.3g} ms that the quota gaps of "
                f"{name} make",
            )
    return None


def backlog(case: Look) -> Remark | None:
    waited = sum(s.lag.waited_for_connection for s in case.pool.stretches)
    if case.blamed or waited <= BACKLOG_LABEL * case.pool.planned:
        return None
    connections = case.pool.stretches[0].drive.connections
    return Remark(
        "backlog",
        waited / case.pool.planned,
        f"{waited} of {case.pool.planned} planned requests waited until one of {connections} "
        "connections was free",
    )


def overloaded(case: Look) -> Remark | None:
    if case.blamed or not case.pool.overloaded:
        return None
    growth, _ = case.pool.backlog_rps
    planned = case.pool.planned / case.pool.duration_s
    return Remark(
        "overloaded",
        growth / planned,
        f"what is due and not answered grew by {growth:.1f} requests/s of {planned:.1f} planned",
    )


def censored(case: Look) -> Remark | None:
    """A response time is stated as a lower bound, and not since the function is overloaded."""
    bounded = case.statement.bounded
    if not bounded or (case.pool.overloaded and not case.blamed):
        return None
    if bounded == {kpis.RECOVERY}:
        return Remark(
            "censored",
            1.0,
            "after some spike response times were not back before the next one: only a lower "
            "bound is known of recovery",
        )
    unfinished = sum(s.unfinished for s in case.pool.stretches)
    names = ", ".join(name.removesuffix("_ms") for name in sorted(bounded))
    return Remark(
        "censored",
        unfinished / max(1, case.pool.planned),
        f"{unfinished} of {case.pool.planned} requests were not answered while they were watched: "
        f"only lower bounds are known of {names}",
    )


def correlated(case: Look) -> Remark | None:
    """An interval rests on batches that are too much alike to tell how far they scatter."""
    few = {kpi: case.statement.correlated.get(kpi) for kpi in sorted(case.looked_at)}
    kpi, worth = min(
        ((kpi, worth) for kpi, worth in few.items() if worth is not None),
        key=lambda item: item[1],
        default=("", None),
    )
    if worth is None:
        return None
    return Remark(
        "correlated",
        worth,
        f"neighbouring stretches of {kpi.removesuffix('_ms')} are so much alike that "
        f"{case.pool.k} batches are worth {worth:.1f}: only longer windows, or repetitions, tell "
        "how far it scatters",
    )


LABELS: tuple[Callable[[Look], Remark | None], ...] = (
    bypass_share,
    throttled,
    not_cpu_limited,
    stall_200ms,
    quota_jump,
    backlog,
    overloaded,
    censored,
    correlated,
)


def percentiles(*names: str) -> tuple[str, ...]:
    """Those among the names that have a tail to jump; p95 where there is none."""
    tails = tuple(dict.fromkeys(name for name in names if (kpis.of(name).quantile or 0.0) > 0.5))
    return tails or (kpis.P95,)


def _most(pool: WindowPool, field: str) -> tuple[str, Usage | None]:
    """The function with the largest figure."""
    functions: Iterator[tuple[str, Usage]] = iter(pool.functions.items())
    return max(functions, key=lambda item: getattr(item[1], field), default=("", None))


def _between(counts: np.ndarray, edges: list[float]) -> list[float]:
    """Requests between each two edges, which are in seconds; buckets are cut evenly."""
    below = np.concatenate(([0.0], np.cumsum(counts)))
    places = [position_of(edge) for edge in edges]
    return list(np.diff(np.interp(places, np.arange(below.size), below)))
