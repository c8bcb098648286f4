"""Samples of several hosts as one of them would have taken them, so that one model may learn from
all: the factor between hosts is a term of each logarithm, and its uncertainty in every interval.

A host that is s times as fast carries s times the load in 1/s of the time: a queue whose clock runs
s times as fast is the same queue. So loads and rates are divided by what the host carries over the
reference, and times by what they take over it, each by its own factor from the anchor points. Where
the two do not say the same, since part of a time is a delay of the network, the interval of a time
holds both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from workbench.domain import kpis
from workbench.domain.counts import counted
from workbench.domain.errors import DataError
from workbench.domain.fleets import HostsCompared, ShardFolded
from workbench.domain.profiles import HostFactor
from workbench.domain.samples import Estimate, Sample
from workbench.models.host_scatter import as_it_scatters, scatter_by_host
from workbench.models.selection import BOUND_LABELS, stated

STEEPEST = 20.0
"""Beyond such a slope of log KPI over log load the load says nothing of the KPI."""
SAME_LOAD = 1e-3
"""Logarithms of loads that differ by less are of one load."""


@dataclass(frozen=True)
class HostTerm:
    """What is subtracted from logarithms of a host, with half the width of its 95 % interval.

    Attributes
    ----------
    load, load_half : of loads and rates.
    time, time_half : of response times.
    """

    load: float
    load_half: float
    time: float
    time_half: float


def on_one_host(
    samples: Sequence[Sample],
    shards: Sequence[ShardFolded],
    compared: HostsCompared | None,
    kpi: str,
) -> tuple[Sample, ...]:
    """All samples, those of other hosts as the reference would have taken them; in their order.

    What is assumed of their scatter is what each host showed of it at the anchor points.

    Parameters
    ----------
    samples : of a folded session, ids and configurations stay.
    shards : which host measured which blocks.
    compared : what the anchor points said.
    kpi : the campaign's, which the factor of times is of.

    Raises
    ------
    DataError
        If a host measured samples that has no factor over the reference; the sentence says which.
        If samples of the campaign are of none of these hosts.
    """
    hosts = {
        (shard.target, block): shard.host
        for shard in shards
        for block in range(shard.first_block, shard.last_block + 1)
    }
    _refuse_strangers(samples, hosts)
    if len({shard.host for shard in shards}) < 2:
        return tuple(samples)
    terms = terms_of(compared, kpi)
    missing = sorted({shard.host for shard in shards if shard.samples} - terms.keys())
    if missing:
        raise DataError(
            f"several hosts measured it, and no anchor points tell how {', '.join(missing)} "
            "compare: no model learns from hosts as if they were one",
            remedy="Where the session is stopped, go on with it, which measures the anchor points "
            "that are missing or told nothing; else measure it again under another name, or by "
            "one host",
        )
    slopes, scatter = _slopes(samples), _scatter(samples, compared)
    carried = []
    for sample in samples:
        host = hosts.get((sample.point.target, sample.block))
        sample = as_it_scatters(sample, scatter.get(host or "", {}))
        term = terms[host] if host is not None else None
        if term is None or host == (compared and compared.reference):
            carried.append(sample)
        else:
            carried.append(_carried(sample, term, slopes.get(sample.id, {})))
    return tuple(carried)


def _refuse_strangers(samples: Sequence[Sample], hosts: Mapping[tuple[str, int], str]) -> None:
    """Trials are measured elsewhere, and no model learns from them. Raises `DataError`."""
    strange = [
        sample.id
        for sample in samples
        if sample.purpose == "profile" and (sample.point.target, sample.block) not in hosts
    ]
    if strange:
        raise DataError(
            f"no host of its fleet measured {counted(len(strange), 'sample')} of it, such as "
            f"{strange[0]}: it was gone on with elsewhere, and no factor says how that compares",
            remedy="Measure it again with the fleet, under another name",
        )


def _scatter(
    samples: Sequence[Sample], compared: HostsCompared | None
) -> dict[str, dict[str, float]]:
    """By host and KPI, see `scatter_by_host`."""
    found: dict[str, dict[str, float]] = {}
    for name in {name for sample in samples for name in sample.kpis}:
        for host, sd in scatter_by_host(compared.scatter if compared else (), name).items():
            found.setdefault(host, {})[name] = sd
    return found


def terms_of(compared: HostsCompared | None, kpi: str) -> dict[str, HostTerm]:
    """By host, the reference's among them; hosts whose factors say nothing are left out."""
    if compared is None:
        return {}
    own: dict[str, dict[str, HostFactor]] = {}
    for factor in compared.factors:
        if not factor.note:
            own.setdefault(factor.host, {})[factor.figure] = factor
    found = {compared.reference: HostTerm(0.0, 0.0, 0.0, 0.0)}
    for host, factors in own.items():
        rate = next((f for name, f in factors.items() if kpis.of(name).carried), None)
        time = factors.get(kpi) if kpis.of(kpi).unit == "ms" else None
        if time is None and rate is None:
            continue
        load, load_half = _logs(rate) if rate else (0.0, 0.0)
        if time is None:
            found[host] = HostTerm(load, load_half, -load, load_half)
            continue
        longer, half = _logs(time)
        if rate is None:
            found[host] = HostTerm(-longer, half, longer, half)
        else:
            found[host] = HostTerm(load, load_half, longer, max(half, abs(longer + load)))
    return found


def _logs(factor: HostFactor) -> tuple[float, float]:
    return math.log(factor.value), math.log(factor.high / factor.low) / 2.0


def _carried(sample: Sample, term: HostTerm, slopes: Mapping[str, float]) -> Sample:
    # Clients of a closed load are as many on any host.
    load = term.load if sample.load_model.startswith("open") else 0.0
    moved = {
        name: _moved(sample, name, term, slopes.get(name, 0.0) * term.load_half)
        for name in sample.kpis
    }
    point = replace(sample.point, wl=sample.point.wl * math.exp(-load))
    return replace(sample, point=point, kpis=moved, p_sla=None)


def _moved(sample: Sample, name: str, term: HostTerm, by_load: float) -> Estimate:
    own, kpi = sample.kpis[name], kpis.of(name)
    by, half = 0.0, 0.0
    if kpi.unit == "ms":
        by, half = term.time, term.time_half
    elif kpi.kind == "rate":
        by, half = term.load, term.load_half
    factor = math.exp(-by)
    value = own.value * factor
    more = half + by_load  # both factors are of the same starts: their errors go together
    if own.value <= 0.0 or not math.isfinite(own.value) or own.low <= 0.0:
        return Estimate(value, own.low * factor, own.high * factor)
    up = math.hypot(math.log(max(own.high, own.value) / own.value), more)
    is_bound = own.low >= own.value and not BOUND_LABELS.isdisjoint(sample.labels)
    down = 0.0 if is_bound else math.hypot(math.log(own.value / min(own.low, own.value)), more)
    return Estimate(value, value * math.exp(-down), value * math.exp(up))


def _slopes(samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """By sample and KPI: how fast log KPI changes with log load there, at most."""
    groups: dict[object, list[Sample]] = {}
    for sample in samples:
        if sample.valid:
            key = (sample.point.target, sample.point.configuration)
            groups.setdefault(key, []).append(sample)
    found: dict[str, dict[str, float]] = {}
    for group in groups.values():
        for name in {name for sample in group for name in sample.kpis}:
            own = [s for s in group if (e := stated(s, name)) is not None and e.value > 0.0]
            for sample, slope in zip(own, _steepness(own, name), strict=True):
                found.setdefault(sample.id, {})[name] = slope
    return found


def _steepness(samples: Sequence[Sample], name: str) -> list[float]:
    x = np.log([sample.point.wl for sample in samples])
    y = np.log([sample.kpis[name].value for sample in samples])
    places = np.round(x / SAME_LOAD)
    at, which = np.unique(places, return_inverse=True)
    if len(at) < 2:
        return [0.0] * len(samples)
    mean = np.bincount(which, y) / np.bincount(which)
    # Curves bend upwards: at the last load a difference to the one before would be too flat.
    steep = np.abs(np.gradient(mean, at * SAME_LOAD, edge_order=2 if len(at) > 2 else 1))
    chords = np.abs(np.diff(mean) / np.diff(at * SAME_LOAD))
    steep = np.maximum(steep, np.maximum(np.append(chords, 0.0), np.append(0.0, chords)))
    return [float(min(value, STEEPEST)) for value in steep[which]]
