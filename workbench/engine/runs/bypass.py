"""The bypass curve: what source and sink carry between them, past the functions (METHOD.md 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from workbench.domain import kpis
from workbench.domain.campaign import Campaign
from workbench.domain.lab import BypassCurve, BypassPoint
from workbench.domain.load_shapes import whole
from workbench.domain.parameters import Configuration, LoadModel, ParameterValue, PrimaryWorkload
from workbench.domain.samples import Sample

POINTS = 5
"""Loads of a curve, one short drive each."""
DRIVE_S = 3.0
"""Seconds of each: a second of warm-up, and two of a path that knows no quota periods."""
HEADROOM = 2.0
"""How far above the targets' range a rate must be carried for no sample to be `bypass_limited`:
1 / 0.7, and what two seconds of Poisson arrivals may lack or have too many."""
CARRIED = 0.95
"""Share of the offered rate under which source and sink did not carry it."""
ENDS = ("source_saturated", "sink_saturated")
BUSY_HOST = "host_saturated"
LIMITS = (*ENDS, BUSY_HOST)
"""Findings that say who could not do more; others say that only if the rate was not carried."""


@dataclass(frozen=True)
class Kind:
    """What samples share that share a bypass curve."""

    generator: str
    load_model: str
    keep_alive: bool
    workload: Mapping[str, ParameterValue]

    def find(self, curves: list[BypassCurve]) -> BypassCurve | None:
        """The newest curve of this kind."""
        for curve in reversed(curves):
            if self == Kind(curve.generator, curve.load_model, curve.keep_alive, curve.workload):
                return curve
        return None

    def curve(self, points: list[BypassPoint]) -> BypassCurve:
        return BypassCurve(
            self.generator, self.load_model, self.keep_alive, self.workload, tuple(points)
        )


def drive_s(load: LoadModel, configuration: Configuration) -> float:
    """Seconds of a drive past the functions: of a rate that varies, whole cycles."""
    shape = load.shaped(configuration)
    if shape is None:
        return DRIVE_S
    # A second of warm-up and two that count, each in whole cycles.
    return whole(1.0, shape.cycle_s) + whole(DRIVE_S - 1.0, shape.cycle_s, least=2)


def span(campaign: Campaign) -> PrimaryWorkload:
    """From the lowest to the highest load of any target: they share the curves of their kinds.

    A curve that ended at one target's range would blame another, whose range goes on, on a source
    and sink that were never asked for more.
    """
    ranges = [plan.primary for plan in campaign.targets]
    return replace(ranges[0], low=min(r.low for r in ranges), high=max(r.high for r in ranges))


def loads(campaign: Campaign) -> Iterator[float]:
    """Loads of a curve, by rising `wl`: over the campaign's range, in an open loop on beyond it.

    A rate may go above the range, since what is to be known is how much more would be carried.
    Clients may not: at the top of the range source and sink show the most that they carry there.
    """
    primary, beyond = span(campaign), campaign.load.kind == "open"
    within = np.geomspace(primary.low, primary.high, POINTS - beyond).tolist()
    last = 0.0
    for wl in (*within, *([primary.high * HEADROOM] if beyond else [])):
        rounded = float(math.ceil(wl)) if primary.integer else float(f"{wl:.4g}")
        if rounded > last:
            yield (last := rounded)


def point_of(sample: Sample, load: LoadModel) -> BypassPoint | None:
    """A judged drive past the functions; None where it has no figures."""
    throughput = sample.kpi(kpis.THROUGHPUT)
    mean_ms, p95_ms = sample.kpi(kpis.MEAN), sample.kpi(kpis.P95)
    if throughput is None or mean_ms is None or p95_ms is None:
        return None
    wl = sample.point.wl
    limit, reasons = _limit(sample, throughput, load), {f.reason for f in sample.findings}
    busy_host = BUSY_HOST in reasons and reasons.isdisjoint(ENDS)
    return BypassPoint(wl, throughput, mean_ms, p95_ms, limit, busy_host)


def _limit(sample: Sample, throughput: float, load: LoadModel) -> str:
    for finding in sample.findings:
        if finding.reason in LIMITS:
            return finding.evidence
    # Poisson arrivals of two seconds may be a fifth fewer than asked for.
    wl = min(sample.point.wl, sample.planned / sample.measured_s)
    if load.kind == "open" and throughput < CARRIED * wl:
        first = f": {sample.findings[0].evidence}" if sample.findings else ""
        return f"{throughput:.0f} of {wl:.0f} requests/s were carried{first}"
    return ""
