"""What one sample says of its components, pooled over its windows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from workbench.domain.competitors import COMPETITOR
from workbench.domain.observations import is_level
from workbench.domain.samples import LatencyHistogram, Measurement, Sample, Usage
from workbench.measuring.histograms import centres_s, position_of
from workbench.measuring.records import Floats
from workbench.measuring.usage import HOST, NOT_FUNCTIONS, OWN


@dataclass(frozen=True)
class ComponentFigures:
    """Of one component: amounts over all windows, means of levels.

    Attributes
    ----------
    values : by name; what has details (cores, threads, kinds) is summed up here.
    details : by name and detail.
    absent : names that were looked for and not found, with the reason.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)


NOTHING = ComponentFigures()


@dataclass(frozen=True)
class Reading:
    """One sample with its evidence.

    Attributes
    ----------
    seconds, requests : of all windows.
    counts : answers by bucket of their time from the request's own start (`measuring.histograms`),
        shape (buckets,): a source that is late blurs no mode in them.
    lateness_s : what a request waits on average before it is sent; 0 in a closed loop.
    """

    sample: Sample
    seconds: float
    requests: int
    counts: Floats
    lateness_s: float
    components: Mapping[str, ComponentFigures]
    by_second: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """CPU of each component in cores, second by second."""

    @property
    def collected(self) -> bool:
        """Whether anybody collected evidence when it was taken; what competed is no evidence."""
        return bool(self.components.keys() - {COMPETITOR})

    @property
    def functions(self) -> tuple[str, ...]:
        return tuple(name for name in self.sample.usage if name not in NOT_FUNCTIONS)

    @property
    def rate(self) -> float:
        """Requests per second that were answered."""
        return self.requests / self.seconds if self.seconds else 0.0

    @property
    def mean_s(self) -> float | None:
        mean = self.sample.kpi("mean_ms")
        return None if mean is None else mean / 1e3

    def usage(self, component: str) -> Usage | None:
        return self.sample.usage.get(component)

    def amount(self, component: str, name: str) -> float | None:
        """In its unit over all windows (a level: its mean); None where it is not known."""
        return self.components.get(component, NOTHING).values.get(name)

    def details(self, component: str, name: str) -> Mapping[str, float]:
        return self.components.get(component, NOTHING).details.get(name, {})

    def per_request(self, component: str, name: str) -> float | None:
        amount = self.amount(component, name)
        return None if amount is None or not self.requests else amount / self.requests

    def per_second(self, component: str, name: str) -> float | None:
        amount = self.amount(component, name)
        return None if amount is None or not self.seconds else amount / self.seconds

    def why_absent(self, component: str, name: str) -> str:
        """Why something is not known; empty where it is."""
        evidence = self.components.get(component)
        if evidence is not None and name in evidence.values:
            return ""
        on_host = self.components.get(HOST, NOTHING).absent.get(name, "")
        return (evidence.absent.get(name, "") if evidence else "") or on_host or "not collected"

    def allotted(self, component: str) -> float:
        """Cores that it may use; 0 where nobody says."""
        used = self.usage(component)
        return used.cpu_cores / used.cpu_share if used is not None and used.cpu_share else 0.0

    def share_between(self, low_s: float, high_s: float) -> float:
        """Share of the answers that took so long from their start; buckets are cut evenly."""
        total = float(self.counts.sum())
        if not total:
            return 0.0
        below = np.concatenate(([0.0], np.cumsum(self.counts)))
        places = [position_of(edge) for edge in (low_s, high_s)]
        low, high = np.interp(places, np.arange(below.size), below)
        return float(high - low) / total

    @cached_property
    def host_cores(self) -> float:
        used = self.usage(HOST)
        return used.cpu_cores / used.cpu_share if used is not None and used.cpu_share else 0.0


def read(measurement: Measurement) -> Reading:
    """Pool the windows of a sample: amounts are added, levels weighted by the windows' lengths.

    An observation that one window lacks is absent as a whole: a part of it would pass for all.
    """
    windows = measurement.windows
    lengths = [window.duration_s for window in windows]
    sums: dict[tuple[str, str, str], float] = defaultdict(float)
    absent: dict[str, dict[str, str]] = defaultdict(dict)
    for seen in measurement.observations:
        if seen.value is None:
            absent[seen.component].setdefault(seen.name, seen.detail)
            continue
        weight = 1.0
        if is_level(seen.name) and seen.window < len(lengths):
            weight = lengths[seen.window] / sum(lengths)
        sums[seen.component, seen.name, seen.detail] += weight * seen.value
    details: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for (component, name, detail), value in sums.items():
        if name not in absent.get(component, {}):
            details[component][name][detail] = value
    evidence = {
        component: ComponentFigures(
            {name: sum(found.values()) for name, found in details[component].items()},
            {name: found for name, found in details[component].items() if set(found) != {""}},
            absent.get(component, {}),
        )
        for component in {*details, *absent}
    }
    by_second: dict[str, list[float]] = defaultdict(list)
    for second in measurement.series:
        by_second[second.component].append(second.cpu_cores)
    return Reading(
        measurement.sample,
        sum(lengths),
        sum(window.completed for window in windows),
        service := _added([window.service for window in windows]),
        max(0.0, _mean_s(_added([window.response for window in windows])) - _mean_s(service)),
        evidence,
        {component: tuple(cores) for component, cores in by_second.items()},
    )


def _added(histograms: Sequence[LatencyHistogram]) -> Floats:
    most = max((max(one.buckets, default=-1) for one in histograms), default=-1)
    counts = np.zeros(most + 1)
    for one in histograms:
        np.add.at(counts, list(one.buckets), list(one.counts))
    return counts


def _mean_s(counts: Floats) -> float:
    total = float(counts.sum())
    return float(counts @ centres_s(counts.size)) / total if total else 0.0


def busiest(reading: Reading) -> tuple[str, float]:
    """Who used most CPU beside the workbench's own processes: name and cores; empty for nobody.

    Of those outside the lab the busiest group or process, else source, sink or a function.
    """
    burners = reading.details(HOST, "burner_cores")
    lab = {n: u.cpu_cores for n, u in reading.sample.usage.items() if n not in (HOST, OWN)}
    everybody = {**lab, **burners}
    if not everybody:
        return "", 0.0
    name = max(everybody, key=lambda one: everybody[one])
    return name, everybody[name]
