"""What source and sink do without the functions, read off a measured curve (METHOD.md 4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.domain import kpis
from workbench.domain.lab import BypassCurve, BypassPoint
from workbench.domain.parameters import LoadModel
from workbench.domain.samples import Bypass


def bypass_at(curve: BypassCurve | None, load: LoadModel, wl: float) -> Bypass | None:
    """Throughput and response time of source and sink alone at `wl`.

    In an open loop the throughput is the curve's plateau, the most that it carried at any rate:
    measure it up to where it is limited, or a function that does more than 0.7 of its end is
    blamed. In a closed loop it is that of the same number of clients. Between points figures are
    interpolated in logs on both axes, beyond them the last one holds. Response times that an open
    loop measured where source or sink were saturated grow for as long as one watches: they are
    left out.

    Returns
    -------
    Bypass or None
        None without a curve, or where it states nothing.
    """
    points = [p for p in curve.points if p.throughput_rps > 0] if curve else []
    timed = [p for p in points if p.mean_ms > 0 and p.p95_ms > 0]
    if load.kind == "open":
        timed = [p for p in timed if not p.limited_by] or timed[:1]
    if not timed:
        return None
    most = (
        max(p.throughput_rps for p in points)
        if load.kind == "open"
        else _interpolated(points, kpis.THROUGHPUT, wl)
    )
    mean, p95 = (_interpolated(timed, field, wl) for field in (kpis.MEAN, kpis.P95))
    return Bypass(most, mean, p95)


def tells_the_most(curve: BypassCurve | None, load: LoadModel, wl: float) -> bool:
    """Whether the throughput of `bypass_at` is what source and sink can do at most.

    Not so where it comes from a point that a busy host limited: no sample is held against that.
    """
    points = [p for p in curve.points if p.throughput_rps > 0] if curve else []
    if load.kind == "open":
        return not any(p.busy_host for p in points)
    below = [p for p in points if p.wl <= wl][-1:]
    above = [p for p in points if p.wl >= wl][:1]
    return not any(p.busy_host for p in (*below, *above))


def _interpolated(points: Sequence[BypassPoint], field: str, wl: float) -> float:
    places, figures = ([getattr(p, name) for p in points] for name in ("wl", field))
    return float(np.exp(np.interp(np.log(wl), np.log(places), np.log(figures))))
