"""A finished session under the names of `/metrics`, each figure with its time, for a Prometheus."""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from workbench import files
from workbench.domain.container_metrics import CONTAINER_METRICS, LABELS, Place, lab_of
from workbench.domain.observations import OBSERVABLES, Observation
from workbench.domain.projection import SessionView
from workbench.domain.samples import Measurement, Sample, Usage
from workbench.exports.base import ExportSource, file_in, measurement_pages

TICK_S: Final = 0.001
"""A Prometheus tells times to the millisecond."""
NOT_CONTAINERS: Final = ("host", "workbench")
BYTES_PER_MEGABIT: Final = 1e6 / 8

OWN: Final[Mapping[str, tuple[str, str]]] = {
    "workbench_session_info": ("gauge", "What was measured; the lab sim is a simulation."),
    "workbench_samples_total": ("counter", "Samples taken."),
    "workbench_valid_samples": ("gauge", "Valid samples."),
    "workbench_invalid_samples_total": ("counter", "Samples that are not valid."),
    "workbench_wl": ("gauge", "Load that was offered."),
    "workbench_kpi": ("gauge", "KPIs of a sample, at its end."),
    "workbench_cpu_cores": ("gauge", "CPU in use, in cores, from then on."),
    "workbench_breakpoint": ("gauge", "Load of a breakpoint."),
    "workbench_breakpoint_timestamp_seconds": (
        "gauge",
        "End of the last sample of its configuration.",
    ),
}  # fmt: skip
"""Kind and meaning of our own figures."""
KINDS: Final[Mapping[str, tuple[str, str]]] = {
    **OWN,
    **{m.name: ("counter" if m.is_counter else "gauge", m.says) for m in CONTAINER_METRICS},
}

Labels = tuple[tuple[str, str], ...]


async def export_openmetrics(source: ExportSource, destination: Path) -> tuple[Path, ...]:
    """OpenMetrics: the figures of `/metrics` with their times, for promtool.

    Writes `NAME.openmetrics` into the folder `destination`, or the file of that name.
    Counters have what each sample's windows hold, and stand still between samples.
    """
    path = await asyncio.to_thread(file_in, destination, source.name, ".openmetrics")
    history = SessionHistory(await source.view())
    async for page in measurement_pages(source):
        await asyncio.to_thread(history.extend, page)
    history.conclude()
    await asyncio.to_thread(_write, path, history)
    return (path,)


def _write(path: Path, history: SessionHistory) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.whole(path) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(history.lines())


class SessionHistory:
    """Series of a session, filled in the order in which its samples were taken.

    The simulated lab's seconds are not the clock's: a sample begins when the one before has ended.
    """

    def __init__(self, view: SessionView) -> None:
        self._view = view
        self._lab = lab_of(view)
        self._until = 0.0
        self._series: dict[str, dict[Labels, tuple[array[float], array[float]]]] = {}
        self._sums: dict[tuple[str, Place], float] = {}
        self._samples: Counter[str] = Counter()
        """By the reason for which they are not valid; empty: they are."""
        self._ended: dict[tuple[str, str], float] = {}
        """When the last sample of a configuration was over."""

    def extend(self, measurements: tuple[Measurement, ...]) -> None:
        for measurement in measurements:
            self._take(measurement)

    def conclude(self) -> None:
        """Add what holds for all of it: what it is, and where its targets saturate."""
        view = self._view
        if not self._until:
            return
        about = {
            "session": view.session,
            "campaign": view.campaign.name if view.campaign else "",
            "lab": self._lab,
        }
        self._add("workbench_session_info", about, self._until, 1.0)
        for configuration in view.configurations:
            at = self._ended.get((configuration.target, configuration.configuration.key))
            for one in configuration.breakpoints:
                if one.state != "found" or one.wl is None or at is None:
                    continue
                labels = {
                    "session": view.session,
                    "target": one.target,
                    "configuration": one.configuration.key,
                    "rule": one.rule,
                    "kpi": one.kpi,
                }
                self._add("workbench_breakpoint", labels, at, one.wl)
                self._add("workbench_breakpoint_timestamp_seconds", labels, at, round(at, 3))

    def lines(self) -> Iterator[str]:
        """The text, line by line: series by series, each in the order of time."""
        for name, (kind, says) in KINDS.items():
            if name not in self._series:
                continue
            family = name.removesuffix("_total") if kind == "counter" else name
            yield f"# TYPE {family} {kind}\n"
            yield f"# HELP {family} {says}\n"
            for labels, (times, values) in self._series[name].items():
                told = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels)
                for at, value in zip(times, values, strict=True):
                    yield f"{name}{{{told}}} {value!r} {at:.3f}\n"
        yield "# EOF\n"

    # ------------------------------------------------------------------ one sample

    def _take(self, measurement: Measurement) -> None:
        sample = measurement.sample
        self._samples[sample.reason] += 1
        if sample.reason == "not_measured":
            return
        begin = max(sample.started_at, self._until + TICK_S)
        end = begin + max(TICK_S, _length_s(measurement))
        self._until = end
        self._ended[sample.point.target, sample.point.configuration.key] = end
        self._count(end)
        of = {"session": self._view.session, "target": sample.point.target}
        for at in (begin, end):
            self._add("workbench_wl", of, at, sample.point.wl)
        for kpi, estimate in sample.kpis.items():
            self._add("workbench_kpi", {**of, "kpi": kpi}, end, estimate.value)
        for second in measurement.series:
            component = {"session": self._view.session, "component": second.component}
            self._add("workbench_cpu_cores", component, begin + second.second, second.cpu_cores)
        by_component = _by_component(measurement.observations)
        for component_name, usage in sample.usage.items():
            if component_name not in NOT_CONTAINERS:
                seen = by_component.get(component_name, {})
                known = _figures(sample, component_name, usage, seen)
                self._use((sample.point.target, component_name), known, begin, end)

    def _count(self, at: float) -> None:
        session = {"session": self._view.session}
        self._add("workbench_samples_total", session, at, float(self._samples.total()))
        self._add("workbench_valid_samples", session, at, float(self._samples[""]))
        for reason, count in self._samples.items():
            if reason:
                labels = {**session, "reason": reason}
                self._add("workbench_invalid_samples_total", labels, at, float(count))

    def _use(self, place: Place, known: Mapping[str, float], begin: float, end: float) -> None:
        labels = dict(zip(LABELS, (self._view.session, *place, self._lab), strict=True))
        for metric in CONTAINER_METRICS:
            amount = known.get(metric.figure)
            if amount is None:
                continue
            if not metric.is_counter:
                self._add(metric.name, labels, end, amount)
                continue
            before = self._sums.get((metric.name, place), 0.0)
            self._add(metric.name, labels, begin, before)
            self._sums[metric.name, place] = before + amount
            self._add(metric.name, labels, end, before + amount)

    def _add(self, name: str, labels: Mapping[str, str], at: float, value: float) -> None:
        of = self._series.setdefault(name, {})
        times, values = of.setdefault(tuple(labels.items()), (array("d"), array("d")))
        at = round(at, 3)
        if not times or at > times[-1]:
            times.append(at)
            values.append(value)


def _length_s(measurement: Measurement) -> float:
    """From when the load began until the last thing that was seen of it."""
    ends = [window.start_s + window.duration_s for window in measurement.windows]
    return max([*ends, *(second.second for second in measurement.series)], default=0.0)


def _by_component(observations: tuple[Observation, ...]) -> dict[str, dict[str, float | None]]:
    """Amounts over all windows, levels of the last; None for what one of the windows lacks."""
    found: dict[str, dict[str, float | None]] = {}
    for one in observations:
        if one.name not in OBSERVABLES or (one.value is not None and one.detail):
            continue
        own = found.setdefault(one.component, {})
        before = own.get(one.name, 0.0)
        if one.value is None or before is None:
            own[one.name] = None
        elif OBSERVABLES[one.name].kind == "level":
            own[one.name] = one.value
        else:
            own[one.name] = before + one.value
    return found


def _figures(
    sample: Sample, component: str, usage: Usage, seen: Mapping[str, float | None]
) -> dict[str, float]:
    """What the windows of a sample hold, by `ContainerMetric.figure`.

    Usage has 0 for what nobody counts: that is left out, and so is what evidence says is missing.
    How many quota periods there were is not stored.
    """
    known = {"cpu_s": usage.cpu_cores * sample.measured_s}
    if sample.point.configuration.vcpu(component):
        known["throttled_s"] = usage.throttled_s
    if usage.memory_bytes:
        known["memory_bytes"] = usage.memory_bytes
    if usage.rx_mbps or usage.tx_mbps:
        known["rx_bytes"] = usage.rx_mbps * BYTES_PER_MEGABIT * sample.measured_s
        known["tx_bytes"] = usage.tx_mbps * BYTES_PER_MEGABIT * sample.measured_s
    known |= {name: value for name, value in seen.items() if value is not None}
    return {name: value for name, value in known.items() if seen.get(name, 0.0) is not None}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
