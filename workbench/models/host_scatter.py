"""How much a host really scatters, by its own deployments at the anchor points, in place of what is
assumed of any host.

A sample of one window is stated to scatter by what METHOD.md 6 saw on other hosts, unless its own
batches say more, or repetitions or an A/A run were there when it was taken. The anchor points are
such repetitions. Three degrees of freedom are few: less than what is assumed is believed only as
far as `SURE` holds, and more than that is drawn to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scipy.stats import chi2

from workbench.domain import kpis
from workbench.domain.fleets import HostScatter
from workbench.domain.samples import Estimate, Sample
from workbench.models.scales import NORMAL_95

ASSUMED_DEGREES = 2.0
"""Degrees of freedom that what is assumed of any host is worth, as in the floor of a session."""
SURE = 0.8
"""Confidence with which a host scatters by less than is believed, where that is less than is
assumed."""
_SAME = 1e-3
"""Half widths that differ by less, relative, are the same one."""


def scatter_by_host(measured: Sequence[HostScatter], kpi: str) -> dict[str, float]:
    """By host, the log standard deviation that its samples of the KPI have at least; empty where
    the anchor points say nothing of that KPI, or nothing is assumed of it either."""
    assumed, kind = _assumed(kpi), kpis.of(kpi).scatters_as
    if assumed is None:
        return {}
    return {
        one.host: _believed(one.sd, one.degrees, assumed)
        for one in measured
        if one.degrees > 0 and kpis.of(one.figure).scatters_as == kind
    }


def _believed(sd: float, degrees: int, assumed: float) -> float:
    squares = degrees * sd**2
    shrunk = (ASSUMED_DEGREES * assumed**2 + squares) / (ASSUMED_DEGREES + degrees)
    most = squares / float(chi2.ppf(1.0 - SURE, degrees))
    return math.sqrt(min(most, max(shrunk, assumed**2)))


def as_it_scatters(sample: Sample, scatter: Mapping[str, float]) -> Sample:
    """The sample with intervals that rest on what its host scatters by.

    Ends that are as far away as is assumed come nearer, where the host scatters by less; those that
    say more by themselves stay, and so do those that say less, which had an A/A run or repetitions
    to rest on. Where the host scatters by more than is assumed all are at least that far away.

    Parameters
    ----------
    scatter : of its host, log standard deviations by KPI.
    """
    changed = {
        name: _restated(sample.kpis[name], name, sd, sample.windows)
        for name, sd in scatter.items()
        if name in sample.kpis and sample.valid
    }
    return replace(sample, kpis={**sample.kpis, **changed}) if changed else sample


def _assumed(kpi: str) -> float | None:
    kind = kpis.of(kpi).scatters_as
    return kpis.of(kind).window_sd if kind else None


def _restated(said: Estimate, kpi: str, sd: float, windows: int) -> Estimate:
    assumed = _assumed(kpi)
    if assumed is None or not 0.0 < said.low < said.value < said.high < math.inf:
        return said  # a bound, or nothing that has a logarithm
    usual, least = NORMAL_95 * assumed / math.sqrt(max(windows, 1)), NORMAL_95 * sd

    def half(own: float) -> float:
        if sd > assumed:
            return max(own, least)
        return min(own, least) if math.isclose(own, usual, rel_tol=_SAME) else own

    down, up = half(math.log(said.value / said.low)), half(math.log(said.high / said.value))
    return Estimate(said.value, said.value * math.exp(-down), said.value * math.exp(up))
