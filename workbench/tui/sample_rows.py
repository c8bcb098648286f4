"""A single sample: what the cursor reads off, all that is known of it, and a closer look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from workbench.domain.configurations import SamplePoint
from workbench.domain.sample_review import SampleDetail
from workbench.tui.evidence_rows import evidence_lines
from workbench.tui.plots.figure import Figure
from workbench.tui.text import (
    clock,
    estimate,
    kpi_name,
    number,
    percent,
    plain,
    plain_lines,
    sentence,
)

CLOSER = 0.5
"""Share of the range of loads that is left by one step closer."""
CLOSEST = 0.02
"""Share of the whole below which a closer look shows nothing more."""

Span = tuple[float, float]


def in_order(samples: Sequence[SamplePoint]) -> list[SamplePoint]:
    """As the cursor goes over the plot: by load, repetitions as they were taken."""
    return sorted(samples, key=lambda s: (s.wl, s.repetition))


def neighbour(samples: Sequence[SamplePoint], id: str, step: int) -> SamplePoint | None:
    """The next sample on the plot; from nowhere, the last one taken."""
    if not samples:
        return None
    ordered = in_order(samples)
    at = next((i for i, sample in enumerate(ordered) if sample.id == id), None)
    if at is None:
        return samples[-1]
    return ordered[min(max(at + step, 0), len(ordered) - 1)]


def closer(span: Span | None, whole: Span, at: float, factor: float, log: bool) -> Span | None:
    """A smaller (`factor` < 1) or larger part of the range of loads around `at`; None: all."""
    if log and whole[0] > 0:
        logs = None if span is None else (math.log(span[0]), math.log(span[1]))
        inner = closer(logs, (math.log(whole[0]), math.log(whole[1])), math.log(at), factor, False)
        return None if inner is None else (math.exp(inner[0]), math.exp(inner[1]))
    low, high = span or whole
    width = (high - low) * factor
    if width >= (whole[1] - whole[0]) * 0.999:
        return None
    width = max(width, (whole[1] - whole[0]) * CLOSEST)
    begin = min(max(at - width / 2, whole[0]), whole[1] - width)
    return begin, begin + width


def within(figure: Figure, span: Span | None) -> Figure:
    """Only what lies in a part of the range of loads."""
    if span is None:
        return figure
    low, high = span
    fit = figure.fit
    if fit is not None:
        kept = [i for i, x in enumerate(fit.x) if low <= x <= high]
        # One point more on each side, so that the curve goes to the edges.
        kept = list(range(max(0, kept[0] - 1), min(len(fit.x), kept[-1] + 2))) if kept else []
        parts = (fit.x, fit.mean, fit.low, fit.high)
        x, mean, below, above = (tuple(v[i] for i in kept) for v in parts)
        fit = replace(fit, x=x, mean=mean, low=below, high=above) if len(kept) > 1 else None
    asked = figure.asked
    if asked is not None and not low <= asked.x <= high:
        asked = None
    if asked is not None:
        asked = replace(asked, low=max(low, asked.low), high=min(high, asked.high))
    return replace(
        figure,
        x_range=span,
        marks=tuple(mark for mark in figure.marks if low <= mark.x <= high),
        fit=fit,
        asked=asked,
        lines=tuple(line for line in figure.lines if low <= line.x <= high),
    )


def detail_text(detail: SampleDetail, kpi: str) -> str:
    """All that is known of a sample, for a dialog."""
    sample = detail.sample
    point = sample.point
    lines = [
        f"{point.target}  {point.configuration.key.replace(',', ', ')}",
        f"load {number(point.wl)}  repetition {point.repetition}  block {sample.block}  "
        f"begun {clock(sample.started_at)}",
        "",
    ]
    names = sorted(sample.kpis, key=lambda name: name != kpi)
    label = max((len(kpi_name(name)) for name in names), default=0)
    lines += [f"{kpi_name(name):<{label}} {estimate(sample.kpis[name])}" for name in names]
    lines += ["", "valid" if sample.valid else "not valid"]
    lines += [f"  {f.reason}: {sentence(f.evidence)}" for f in sample.findings]
    lines += [f"  {r.label}: {sentence(r.evidence)}" for r in sample.remarks]
    if detail.decision is not None and detail.decided_at is not None:
        decision = detail.decision
        why = f": {decision.why}" if decision.why else ""
        words = {"open": "counts as measured"}.get(decision.verdict, decision.verdict)
        lines.append(f"  {words} by {decision.by} at {clock(detail.decided_at)}{why}")
    lines += ["", f"throttled {percent(sample.throttled_share)} of quota periods"]
    for name, used in sample.usage.items():
        throttled = f"  throttled {percent(used.throttled_share)}" * (used.throttled_share > 0)
        lines.append(
            f"  {name:<16} {used.cpu_cores:.3f} cores  {percent(used.cpu_share):>6}{throttled}"
        )
    lines += [
        "",
        f"{sample.generator}, {sample.load_model}, latency from the {sample.kpi_definition} time",
        f"planned {sample.planned}  answered {sample.completed}  errors {sample.errors}  "
        f"unfinished {sample.unfinished}",
        f"{len(detail.windows)} windows, {sample.batches} batches, {sample.measured_s:.1f} s "
        f"steady of {sample.lab_s:.1f} s of lab time",
    ]
    for window in detail.windows:
        lines.append(
            f"  from {window.start_s:.1f} s for {window.duration_s:.1f} s: {window.completed} of "
            f"{window.planned}, {window.errors} errors, {window.unfinished} unfinished"
        )
    lines += ["", *evidence_lines(detail.observations, detail.windows)]
    return plain_lines("\n".join(lines))


def short_name(sample: SamplePoint) -> str:
    """A sample in a question: `load 760, repetition 1`."""
    return plain(f"load {number(sample.wl)}, repetition {sample.repetition}")
