"""What `/metrics` says of the session that is being measured: its samples, its functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from workbench.domain.container_metrics import CONTAINER_METRICS, LABELS, lab_of
from workbench.domain.events import Progress, UsageTick
from workbench.domain.projection import SessionView
from workbench.engine.sessions.channel import Channel


def run_metrics(channel: Channel) -> Iterator[Metric]:
    """Everything of one session, each figure only where it is known."""
    view = channel.view
    about = GaugeMetricFamily(
        "workbench_session_info",
        "What is measured, and where: the lab `sim` is a simulation.",
        labels=("session", "campaign", "lab"),
    )
    campaign = view.campaign.name if view.campaign else ""
    about.add_metric((view.session, campaign, lab_of(view)), 1)
    yield about
    yield from _samples(view)
    yield from _moment(channel)
    yield from _breakpoints(channel)
    yield from _containers(channel)


def _samples(view: SessionView) -> Iterator[Metric]:
    session = view.session
    samples = CounterMetricFamily("workbench_samples", "Samples taken.", labels=("session",))
    samples.add_metric((session,), view.samples_taken + view.trial_samples)
    yield samples

    invalid = CounterMetricFamily(
        "workbench_invalid_samples", "Samples that are not valid.", labels=("session", "reason")
    )
    reasons: Counter[str] = Counter()
    for configuration in view.configurations:
        reasons.update(configuration.left_out_reasons)
    points = [point for c in view.configurations for point in c.samples]
    points += [trial.sample for trials in view.trials for trial in trials.samples]
    reasons.update(point.reason for point in points if not point.valid)
    for reason, count in sorted(reasons.items()):
        invalid.add_metric((session, reason), count)
    yield invalid

    valid = GaugeMetricFamily("workbench_valid_samples", "Valid samples.", labels=("session",))
    valid.add_metric((session,), view.samples_taken + view.trial_samples - reasons.total())
    yield valid


def _moment(channel: Channel) -> Iterator[Metric]:
    view = channel.view
    session = view.session
    progress, usage = channel.last_ticks.get(Progress), channel.last_ticks.get(UsageTick)
    lab = GaugeMetricFamily("workbench_lab_seconds", "Lab time spent.", labels=("session",))
    lab.add_metric((session,), progress.lab_s if isinstance(progress, Progress) else view.lab_s)
    yield lab

    wl = GaugeMetricFamily("workbench_wl", "Load being offered.", labels=("session", "target"))
    if isinstance(progress, Progress) and progress.wl is not None:
        wl.add_metric((session, progress.target), progress.wl)
    yield wl

    kpis = GaugeMetricFamily(
        "workbench_kpi", "KPIs of a target's last sample.", labels=("session", "target", "kpi")
    )
    for target, taken in channel.last_samples.items():
        for name, estimate in taken.kpis.items():
            kpis.add_metric((session, target, name), estimate.value)
    yield kpis

    cpu = GaugeMetricFamily(
        "workbench_cpu_cores", "CPU in use, in cores.", labels=("session", "component")
    )
    if isinstance(usage, UsageTick):
        for component, figures in usage.usage.items():
            cpu.add_metric((session, component), figures.cpu_cores)
    yield cpu


def _breakpoints(channel: Channel) -> Iterator[Metric]:
    labels = ("session", "target", "configuration", "rule", "kpi")
    load = GaugeMetricFamily("workbench_breakpoint", "Load of a breakpoint.", labels=labels)
    found = GaugeMetricFamily(
        "workbench_breakpoint_timestamp_seconds", "When it was found at first.", labels=labels
    )
    for configuration in channel.view.configurations:
        for one in configuration.breakpoints:
            if one.state != "found" or one.wl is None:
                continue
            key = (one.target, one.configuration.key, one.rule, one.kpi)
            load.add_metric((channel.view.session, *key), one.wl)
            if key in channel.found_at:
                found.add_metric((channel.view.session, *key), channel.found_at[key])
    yield load
    yield found


def _containers(channel: Channel) -> Iterator[Metric]:
    figures = channel.totals.figures()
    for metric in CONTAINER_METRICS:
        made = CounterMetricFamily if metric.is_counter else GaugeMetricFamily
        family = made(metric.name, metric.says, labels=LABELS)
        for (target, component), known in figures.items():
            if metric.figure in known:
                labels = (channel.view.session, target, component, lab_of(channel.view))
                family.add_metric(labels, known[metric.figure])
        if family.samples:
            yield family
