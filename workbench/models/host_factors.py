"""How hosts differ, by the anchor points that each of them measured.

A host's figure at an anchor is the mean of the logarithms over its blocks, since samples of a block
share the luck of one start. The factor between two hosts is the ratio of the geometric means, its
interval Welch's (Welch 1947, Biometrika 34, 28-35). Of what hosts carry both are of the mixed model
by which breakpoints are read (`breakpoints/scatter.py`), which has what a few starts within minutes
cannot show: the host's drift until it measures its shards.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from workbench.domain import kpis
from workbench.domain.counts import counted
from workbench.domain.fleets import AnchorSample, CarriedBreakpoint, HostScatter, HostsCompared
from workbench.domain.parameters import Configuration
from workbench.domain.profiles import Breakpoint, BreakpointRule, HostFactor
from workbench.domain.samples import Sample
from workbench.models.breakpoints.overload import PLAIN
from workbench.models.breakpoints.scatter import CapacityReading, centre
from workbench.models.selection import rate_kpi

Floats = NDArray[np.float64]
LEAST_BLOCKS = 2
SATURATED = 0.95
"""Share of the offered load under which what is carried is the host's, and not the load's."""
UNLOADED = "carried all that was offered, so that this says nothing of the host"
UNSTEADY_SD, UNSTEADY_TIMES = 0.05, 4.0
"""A host disagrees with itself where the log scatter of its own blocks is over the first, and that
many times the median of the other hosts'."""


def compare_hosts(anchors: Mapping[str, Sequence[Sample]], kpi: str) -> HostsCompared | None:
    """Every host over the first one, in the KPI at the lowest anchor load and in the rate that it
    carries at the highest.

    Parameters
    ----------
    anchors : samples of the same points, by host.
    kpi : the campaign's, unit by name.

    Returns
    -------
    None where fewer than two hosts have enough valid samples.
    """
    figures = {host: _figures(samples, kpi) for host, samples in anchors.items()}
    usable = {host: found for host, found in figures.items() if found}
    if len(usable) < 2:
        return None
    reference = next(iter(usable))
    loaded = {host: _is_saturated(samples) for host, samples in anchors.items()}
    factors = [
        HostFactor(
            name,
            *(_carried_factor if kpis.of(name).carried else _factor)(
                own[name], usable[reference][name]
            ),
            len(own[name]),
            note=""
            if not kpis.of(name).carried or (loaded[host] and loaded[reference])
            else UNLOADED,
            host=host,
        )
        for host, own in usable.items()
        if host != reference
        for name in own
        if name in usable[reference]
    ]
    scatter = tuple(
        HostScatter(host, kpi, float(own[kpi].std(ddof=1)), len(own[kpi]) - 1)
        for host, own in usable.items()
        if kpi in own
    )
    kept = tuple(_kept(host, sample, kpi) for host, own in anchors.items() for sample in own)
    return HostsCompared(reference, tuple(factors), _unsteady(usable), (), scatter, kept)


def _kept(host: str, sample: Sample, kpi: str) -> AnchorSample:
    names = {kpi, rate_kpi(sample) or kpi}
    return AnchorSample(
        host, sample.point, sample.block, sample.started_at, sample.valid,
        {name: sample.kpis[name] for name in sorted(names & sample.kpis.keys())},
    )  # fmt: skip


def _is_saturated(samples: Sequence[Sample]) -> bool:
    """Whether no start of a host carried what the highest anchor load offered it."""
    most = max((sample.point.wl for sample in samples), default=0.0)
    own = [s for s in samples
           if s.valid and s.point.wl == most and s.load_model.startswith("open")]  # fmt: skip
    return all(s.kpis[rate].value < SATURATED * most for s in own if (rate := rate_kpi(s)))


def _figures(samples: Sequence[Sample], kpi: str) -> dict[str, Floats]:
    """Log figures by name, of shape (blocks,); those that rest on too few blocks are left out."""
    loads = sorted({sample.point.wl for sample in samples})
    if not loads:
        return {}
    found: dict[str, dict[int, float]] = {}
    is_carried = kpis.of(kpi).carried  # what is carried tells of a host where it is all it can
    for sample in samples:
        wl, rate = sample.point.wl, rate_kpi(sample)
        if not is_carried and wl == loads[0] and sample.valid and (sample.kpi(kpi) or 0.0) > 0.0:
            found.setdefault(kpi, {})[sample.block] = math.log(sample.kpis[kpi].value)
        if wl == loads[-1] and sample.valid and rate and sample.kpis[rate].value > 0.0:
            found.setdefault(rate, {})[sample.block] = math.log(sample.kpis[rate].value)
    return {
        name: np.array(list(by_block.values()))
        for name, by_block in found.items()
        if len(by_block) >= LEAST_BLOCKS
    }


def _factor(own: Floats, reference: Floats) -> tuple[float, float, float]:
    """The factor and the ends of its 95 % interval."""
    difference = float(own.mean() - reference.mean())
    parts = [float(x.var(ddof=1)) / len(x) for x in (own, reference)]
    variance = sum(parts)
    if variance <= 0.0:  # such as a simulation without noise
        value = math.exp(difference)
        return value, value, value
    freedom = variance**2 / sum(
        part**2 / (len(x) - 1) for part, x in zip(parts, (own, reference), strict=True)
    )
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(variance)
    return math.exp(difference), math.exp(difference - half), math.exp(difference + half)


def _carried_factor(own: Floats, reference: Floats) -> tuple[float, float, float]:
    """As `_factor`, of a rate that hosts carry, with the drift of both.

    They are taken to scatter alike: of as many starts each, the variance of a difference is the
    same for unequal ones.
    """
    if not (own.var() or reference.var()):
        return _factor(own, reference)
    hosts = Configuration({}, {"host": 0.0}), Configuration({}, {"host": 1.0})
    readings = [
        CapacityReading(host, start + drifted, value, value)
        for host, logs, drifted in zip(hosts, (own, reference), (0, _FOREIGN), strict=True)
        for start, value in enumerate(logs.tolist())
    ]
    levels = centre(readings, shapes=PLAIN)
    here, there = (levels[host].quantiles((0.025, 0.5, 0.975)) for host in hosts)
    down = math.hypot(here[1] - here[0], there[2] - there[1])
    up = math.hypot(here[2] - here[1], there[1] - there[0])
    difference = float(here[1] - there[1])
    return math.exp(difference), math.exp(difference - down), math.exp(difference + up)


_FOREIGN = 1_000_000
"""Starts between those of two hosts, whose drifts have nothing to do with each other."""


CARRIED: tuple[BreakpointRule, ...] = ("capacity",)
"""Rules whose breakpoint is in proportion to what a host carries."""


def on_reference(
    compared: HostsCompared, found: Mapping[str, Sequence[Breakpoint]]
) -> HostsCompared:
    """The same with the breakpoints of the other hosts as the reference would have them.

    The factor is a term of the logarithm: log wl - log factor, with the variances of both, so that
    the interval is the wider the less the anchor points say.

    Parameters
    ----------
    found : breakpoints by the host that measured them.
    """
    factors = {f.host: f for f in compared.factors if kpis.of(f.figure).carried and not f.note}
    carried = tuple(
        CarriedBreakpoint(host, own, _divided(own, factors[host], host, compared.reference))
        for host, breakpoints in found.items()
        if host in factors
        for own in breakpoints
        if own.rule in CARRIED and own.state == "found" and own.wl and own.low and own.high
    )
    return replace(compared, breakpoints=carried)


def _divided(own: Breakpoint, factor: HostFactor, host: str, reference: str) -> Breakpoint:
    assert own.wl is not None
    assert own.low is not None
    assert own.high is not None
    value = own.wl / factor.value
    down = math.hypot(math.log(own.wl / own.low), math.log(factor.high / factor.value))
    up = math.hypot(math.log(own.high / own.wl), math.log(factor.value / factor.low))
    return replace(
        own,
        wl=value,
        low=value * math.exp(-down),
        high=value * math.exp(up),
        note=f"measured on {host}, which carries {factor.value:.3g} times as much as {reference}",
    )


def short_of_anchors(anchors: Sequence[Sample]) -> str:
    """How few samples of a host's anchor points are valid, in words, where at an end of the range
    they are of too few starts for a factor; empty: they are enough, and measured again they would
    tell no more."""
    loads = sorted({sample.point.wl for sample in anchors})
    valid = [sample for sample in anchors if sample.valid]
    starts = [{s.block for s in valid if s.point.wl == wl} for wl in loads[:1] + loads[-1:]]
    if loads and all(len(blocks) >= LEAST_BLOCKS for blocks in starts):
        return ""
    reasons = Counter(sample.reason for sample in anchors if not sample.valid and sample.reason)
    why = "".join(f": {reason}" for reason, _ in reasons.most_common(1))
    return f"{len(valid)} of {counted(len(anchors), 'sample')} valid{why}"


def own_noise(anchors: Sequence[Sample], kpi: str) -> float | None:
    """How much the starts of one host scatter: standard deviation of the logarithm of the KPI at
    the lowest anchor load; None where too few of its samples are valid."""
    found = _figures(anchors, kpi).get(kpi)
    return None if found is None else float(found.std(ddof=1))


def _unsteady(figures: Mapping[str, Mapping[str, Floats]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in sorted({name for own in figures.values() for name in own}):
        spreads = {h: float(own[name].std(ddof=1)) for h, own in figures.items() if name in own}
        for host, spread in spreads.items():
            others = [other for h, other in spreads.items() if h != host]
            if not others:
                continue
            usual = float(np.median(others))  # with its own, a host of two would never be over it
            if spread > max(UNSTEADY_SD, UNSTEADY_TIMES * usual):
                found[host] = (
                    f"{name} of its own deployments scatters by {spread:.0%}, "
                    f"of the other hosts' by {usual:.0%}"
                )
    return found
