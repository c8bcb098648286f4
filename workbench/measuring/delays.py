"""One-way delays of packets: percentiles with intervals, and how much delays vary."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from workbench.domain import kpis
from workbench.domain.samples import Estimate
from workbench.measuring.floor import VarianceFloor
from workbench.measuring.intervals import log_interval
from workbench.measuring.records import Floats

JITTER_SHARE = 1.0 / 16.0
"""Of the newest difference (RFC 1889, A.8)."""
LEAST_BATCHES = 3
BEYOND = 5
"""Packets of a batch that lie beyond a percentile at least; with fewer, batches are joined."""


def smoothed_jitter(delay_s: Floats) -> Floats:
    """The smoothed variation of the delay after each packet, of shape (n,) (RFC 1889, A.8)."""
    from scipy.signal import lfilter  # takes time to import, and requests need none

    if delay_s.size < 2:
        return np.zeros(delay_s.size)
    changes = np.abs(np.diff(delay_s, prepend=delay_s[0]))
    smoothed: Floats = lfilter([JITTER_SHARE], [1.0, JITTER_SHARE - 1.0], changes)
    return smoothed


def state_delays(
    batches: Sequence[Floats], floor: VarianceFloor, windows: int, asked: Iterable[str]
) -> dict[str, Estimate]:
    """Mean and percentiles of the delay in ms, each with its interval.

    Of packets that arrived: what was dropped has no delay, and stands in `loss_pct`. A percentile
    is stated where at least `LEAST_BATCHES` batches have packets beyond it.

    Parameters
    ----------
    batches : delays in s of the packets that were sent in each interval, in order.
    asked : KPIs that are stated beside the usual ones: any percentile (`p90_ms`).
    """
    stated: dict[str, Estimate] = {}
    known = {name: kpis.of(name) for name in (*kpis.names("response_time"), *asked)}
    for name, kpi in known.items():
        mean = name == kpis.MEAN
        if kpi.measure is not None or (kpi.quantile is None and not mean):
            continue
        level = 0.5 if kpi.quantile is None else kpi.quantile
        groups = _joined(batches, BEYOND / (1.0 - level))
        if len(groups) < LEAST_BATCHES:
            continue
        every = np.concatenate(groups)
        figures = [float(g.mean() if mean else np.quantile(g, level)) for g in groups]
        value = float(every.mean() if mean else np.quantile(every, level))
        least = floor.half(name, windows)
        found = log_interval(1e3 * value, 1e3 * np.array(figures), least)
        if found is not None:
            stated[name] = found
    return stated


def _joined(batches: Sequence[Floats], least: float) -> list[Floats]:
    """The batches, neighbours joined until each has `least` packets; the rest goes to the last."""
    groups: list[Floats] = []
    waiting: list[Floats] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.size for part in waiting) >= least:
            groups.append(np.concatenate(waiting))
            waiting = []
    if waiting and groups:
        groups[-1] = np.concatenate([groups[-1], *waiting])
    return groups
