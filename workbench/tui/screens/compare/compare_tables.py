"""The tables of the screen Compare: read-out, scores, KPI buckets, functions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from statistics import median

from workbench.domain import comparison_tables, departures
from workbench.domain.chains import ChainChart, CpuContrast
from workbench.domain.configurations import SamplePoint
from workbench.domain.questions import ChainCompared
from workbench.domain.retraining import ChainComparison
from workbench.domain.samples import Estimate, is_unbounded
from workbench.tui import text
from workbench.tui.answer_rows import laid_out
from workbench.tui.screens.compare.compare_figures import limits_text, place_of, predicted_as
from workbench.tui.screens.compare.compare_lines import NARROW, CompareLine
from workbench.tui.widgets.rows import Row, Span, fit

BOUNDS = frozenset({"overloaded", "censored"})
"""Labels of samples some of whose response times are lower bounds."""
CPU_APART = 1.2
"""Factor of CPU, chained over alone, from which on it is marked."""


def loads_of(samples: Sequence[SamplePoint], kpi: str) -> list[float]:
    """The loads that can be read out: those with a valid sample that states the KPI."""
    return sorted({s.wl for s in samples if s.valid and kpi in s.kpis})


def default_load(line: CompareLine | None, loads: Sequence[float]) -> float | None:
    """Where the departure is largest, else the highest load."""
    if line is not None and line.worst is not None:
        return line.worst.wl
    return loads[-1] if loads else None


def limits_row(chart: ChainChart | None, width: int) -> Row:
    """Of which allocation and by what: who limits one of them says nothing of another, and where
    an accepted model predicts, recommendations rest on that."""
    if chart is None:
        return ()
    vnfs = tuple(function.vnf for function in chart.functions)
    of = text.shares(chart.configuration, vnfs)
    by = "by the profiles alone" if chart.profiles is not None else ""
    place = ", ".join(filter(None, (f"at {of}" if of else "", by)))
    words = f"{place}: {limits_text(chart)}" if place else limits_text(chart)
    return ((" limits ", "dim"), (fit(words, max(0, width - 9)), ""))


def readout(
    chart: ChainChart | None,
    samples: Sequence[SamplePoint],
    kpi: str,
    at: float | None,
    width: int,
) -> Row:
    """The load under the cursor: predicted, measured, their ratio, who limits there."""
    if at is None:
        return ((" no sample states this KPI here", "dim"),)
    wide = width >= NARROW
    spans: list[Span] = [(f" at {text.number(at)} ", "strong")]
    here = [s for s in samples if s.wl == at and s.valid and kpi in s.kpis]
    predicted = _predicted(chart, at) if chart else None
    if predicted is not None and chart is not None:
        spans.append((f" {predicted_as(chart)} " if wide else " ", "dim"))
        spans.append((text.estimate(predicted), ""))
    if here:
        values = [s.kpis[kpi] for s in here]
        bound = any(_is_bound(s, kpi) for s in here)
        middle = median(v.value for v in values)
        said = text.estimate(values[0]) if len(values) == 1 else _spread(values)
        said = f"at least {text.number(values[0].value)}" if bound else said
        spans += [("  measured " if wide else " → ", "dim"), (said, "")]
        if predicted is not None and predicted.value > 0 and not predicted.unbounded:
            said = departures.than_predicted(kpi, middle / predicted.value, at_least=bound)
            spans.append((f"  {said}", "strong"))
    if chart is not None:
        limiting = chart.predicted.limiting[place_of(chart, at)]
        words = f"  ▸{text.plain(limiting)}" if limiting else "  nothing limits"
        if sum(len(part) for part, _ in spans) + len(words) <= width:
            spans.append((words, "accent" if limiting else "dim"))
    return tuple(spans)


def _is_bound(sample: SamplePoint, kpi: str) -> bool:
    """Whether a figure only says how high it was when last seen (METHOD.md 4)."""
    estimate = sample.kpis[kpi]
    return estimate.low >= estimate.value and not BOUNDS.isdisjoint(sample.labels)


def _predicted(chart: ChainChart, at: float) -> Estimate | None:
    """Between the points of the curve: at the nearest one it would contradict the scores, which
    are of the load itself."""
    curve = chart.predicted
    if not curve.wl[0] <= at <= curve.wl[-1]:
        return None
    right = min(max(bisect_left(curve.wl, at), 1), len(curve.wl) - 1)
    left = right - 1
    first, last = curve.wl[max(left, 0)], curve.wl[right]
    if last <= first or any(is_unbounded(curve.mean[i]) for i in (left, right)):
        place = place_of(chart, at)
        return Estimate(curve.mean[place], curve.low[place], curve.high[place])
    share = (at - first) / (last - first)

    def between(values: Sequence[float]) -> float:
        here, there = values[left], values[right]
        if here == there or share in (0.0, 1.0):
            return there if share == 1.0 else here
        return here + share * (there - here)

    return Estimate(between(curve.mean), between(curve.low), between(curve.high))


def _spread(values: Sequence[Estimate]) -> str:
    """Repetitions: their median and range."""
    found = sorted(v.value for v in values)
    return f"{text.number(median(found))} {text.interval(found[0], found[-1])} of {len(found)}"


# ----------------------------------------------------------------------------- errors


def score_rows(compared: ChainCompared, width: int) -> list[Row]:
    """Paper A's Table 4: the prediction, what it is held against, and the direct model."""
    laid = laid_out(comparison_tables.scores(compared), width - 1)
    rows: list[Row] = [((f" {laid.heading}", "dim"),)]
    for place, cells in enumerate(laid.lines):
        rows.append(((f" {''.join(cells)}", "" if place else "strong"),))
    return rows


def bucket_rows(found: ChainComparison, width: int) -> list[Row]:
    """The error by decade of the measured KPI (paper A, Fig. 12), as bars; then of all samples."""
    laid = laid_out(comparison_tables.by_bucket(found), width - 1)
    rows: list[Row] = [((f" {laid.heading}", "dim"),)]
    most = max((b.mape for b in found.buckets), default=0.0)
    bar = max(0, min(40, width - len(laid.heading) - 4))
    mapes = [*(bucket.mape for bucket in found.buckets), found.mape][: len(laid.lines)]
    for mape, cells in zip(mapes, laid.lines, strict=True):
        full = round(bar * mape / most) if most > 0 else 0
        figures = f" {''.join(cells)}  "
        rows.append(((figures, ""), ("█" * full, "accent"), ("·" * (bar - full), "dim")))
    return rows


# ----------------------------------------------------------------------------- functions


def function_rows(chart: ChainChart | None, at: float | None, kpi: str, width: int) -> list[Row]:
    """Each function alone against chained, at the load under the cursor."""
    if chart is None:
        return []
    place = place_of(chart, at) if at is not None else len(chart.predicted.wl) // 2
    wl = chart.predicted.wl[place] if at is None else at
    name = max(10, min(18, width - 69))
    unit = text.kpi_name(kpi)
    alone = 21 if width >= NARROW else 11
    head = f" {fit(f'at {text.number(wl)}', name)}{'load':>7}  {fit(f'alone {unit}', alone)}"
    cpu = f"{'CPU alone':>11}{'chained':>9}" if width >= NARROW else ""
    head += f"{'counts':>7}{cpu}{'CPU ratio':>11}"
    rows: list[Row] = [((head, "dim"),)]
    for function in chart.functions:
        value = Estimate(function.mean[place], function.low[place], function.high[place])
        limits = function.vnf == chart.predicted.limiting[place]
        line = f"{fit(text.plain(function.vnf), name)}{text.number(function.wl[place]):>7}"
        said = text.estimate(value) if width >= NARROW else text.number(value.value)
        line += f"  {fit(said, alone)}{text.percent(function.effect[place]):>7}"
        spans: list[Span] = [("▸" if limits else " ", "accent"), (line, "strong" if limits else "")]
        rows.append((*spans, *_cpu(chart, function.vnf, at, width >= NARROW)))
    return rows


def _cpu(chart: ChainChart, vnf: str, at: float | None, wide: bool) -> tuple[Span, ...]:
    """CPU at that load in per cent of a core, and their ratio there."""
    own = [contrast for contrast in chart.cpu if contrast.vnf == vnf]
    if not own:
        return (((f"{'–':>11}{'–':>9}" if wide else "") + f"{'–':>11}", "dim"),)
    here: CpuContrast = min(own, key=lambda c: abs(c.wl - at)) if at is not None else own[-1]
    figures = f"{text.percent(here.alone.value):>11}{text.percent(here.chained):>9}"
    if here.alone.value <= 0:
        return ((figures if wide else "", ""), (f"{'–':>11}", "dim"))
    ratio = here.chained / here.alone.value
    apart = ratio > CPU_APART or ratio < 1 / CPU_APART
    said = f"{ratio:>9.2f}×{'!' if apart else ' '}"
    return ((figures if wide else "", ""), (said, "warn" if apart else ""))
