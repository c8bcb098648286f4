"""Where the steady part of a drive begins, and how long a drive should be (METHOD.md 1 and 6)."""

from __future__ import annotations

import numpy as np

from workbench.domain.campaign import WindowPlan
from workbench.domain.parameters import LoadModel
from workbench.measuring.flow import PERIOD_S, Flow, period_edges
from workbench.measuring.records import Floats

MIN_WARMUP_S = 1.0
WARMUP_RESPONSES = 3
MIN_WINDOW_S = 3.0
WINDOW_RESPONSES = 10
MIN_COMPLETIONS = 200
COMPLETIONS_PER_CLIENT = 3
MSER_GAIN = 0.5
"""MSER has to fall below this share of its value before a later start is believed."""
THROUGHPUT_TRANSIENT = 0.05
"""Relative difference between what is discarded and what is kept that makes it worth it."""
IN_FLIGHT_TRANSIENT = 0.20


def warmup_s(plan: WindowPlan, response_s: float | None) -> float:
    """Seconds to discard at least: max(1 s, 3 R), and what the campaign asks for."""
    return max(MIN_WARMUP_S, plan.warmup_s, WARMUP_RESPONSES * (response_s or 0.0))


def completions_needed(load: LoadModel, wl: float) -> int:
    """200, and three for each client of a closed loop; of players only these, whom movies pace."""
    clients = int(wl) if load.kind == "closed" else 0
    least = 1 if load.unit == "streams" else MIN_COMPLETIONS
    return max(least, COMPLETIONS_PER_CLIENT * clients)


def window_s(plan: WindowPlan, response_s: float | None) -> float:
    """Steady seconds to gather: max(3 s, 10 R), and what the campaign asks for (METHOD.md 1).

    Three seconds hold 20 quota periods, and six batches of half a second.
    """
    return max(MIN_WINDOW_S, plan.window_s, WINDOW_RESPONSES * (response_s or 0.0))


def mser5(values: Floats, material: float) -> int:
    """How many leading observations to discard: MSER-5 (White 1997; METHOD.md 6).

    Means of five observations are formed; the truncation d (at most half of them) minimises the
    squared standard error of what is left, sum (Y - mean)^2 / (n - d)^2. On the few points that a
    window of seconds has, the minimum wanders even where nothing changes; so a later start is
    taken only if it lowers the statistic to `MSER_GAIN` of its value at d = 0 and if what it
    discards is materially different: a start-up transient is both, noise hardly ever.

    Parameters
    ----------
    values : array of shape (n,)
    material : float
        Least difference between the means of what is discarded and of what is kept, relative to
        the latter.

    Returns
    -------
    int
        A multiple of five; 0 if nothing needs to go.
    """
    means = values[: values.size // 5 * 5].reshape(-1, 5).mean(axis=1)
    if means.size < 4:
        return 0
    statistics = np.array(
        [np.var(means[d:]) / (means.size - d) for d in range(means.size // 2 + 1)]
    )
    best = int(np.argmin(statistics))
    if statistics[best] >= MSER_GAIN * statistics[0]:
        return 0
    kept, discarded = float(means[best:].mean()), float(means[:best].mean())
    return 5 * best if kept > 0 and abs(discarded - kept) > material * kept else 0


def steady_from(flow: Flow, least_s: float) -> float:
    """Instant from which throughput and the number in flight are steady.

    Starts `least_s` after the drive's begin, a whole number of quota periods, later if MSER-5
    says so for either series.
    """
    drive = flow.drive
    start = drive.begin_s + PERIOD_S * np.ceil(least_s / PERIOD_S - 1e-6)
    edges = period_edges(start, drive.stop_s)
    if edges.size < 2:
        return float(start)
    dropped = max(
        mser5(flow.ended_in(edges), THROUGHPUT_TRANSIENT),
        mser5(flow.in_flight(edges), IN_FLIGHT_TRANSIENT),
    )
    return float(edges[dropped])
