"""The plots of the screen Compare: curves, errors as a sorted strip, functions beside the chain."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from workbench.domain.campaign import TargetPlan
from workbench.domain.chains import ChainChart, ChainCurve
from workbench.domain.configurations import SamplePoint
from workbench.domain.projection import SessionView
from workbench.domain.samples import OVERLOAD
from workbench.domain.topology import Target
from workbench.tui import profile_figure, text
from workbench.tui.plots.canvas import LineStyle
from workbench.tui.plots.figure import AxisStretch, Figure, Fit, Limit, Mark
from workbench.tui.screens.compare.compare_lines import CompareLine

NOTHING_LIMITS = "nothing limits"
STYLES: tuple[LineStyle, ...] = ("dashed", "dotted")
"""Of functions, in the order of the chain; with more than two they come again."""


@dataclass(frozen=True)
class Charted:
    """What is drawn of one configuration of a chain, whichever way.

    `at` is the load under the cursor; `log_x` is None where nobody chose.
    """

    view: SessionView
    chain: Target
    chart: ChainChart | None
    samples: Sequence[SamplePoint]
    kpi: str
    at: float | None
    log_x: bool | None
    log_y: bool

    def figure(self, fit: Fit | None, more: Sequence[Fit]) -> Figure:
        """Those curves over the samples; who limits stands along the axis."""
        plan = _plan(self.view, self.chain)
        x_range = (plan.primary.low, plan.primary.high) if plan else None
        if self.chart is not None:
            x_range = self.chart.predicted.wl[0], self.chart.predicted.wl[-1]
        log_x = plan is None or plan.primary.scale == "log" if self.log_x is None else self.log_x
        return Figure(
            x_range=x_range,
            marks=_marks(self.samples, self.kpi, self.at),
            fit=fit,
            more=tuple(more),
            along=tuple(stretches(self.chart)) if self.chart else (),
            series=("sample of the chain",),
            limit=profile_figure.sla_limit(self.view, self.kpi),
            log_x=log_x,
            log_y=self.log_y,
        )


def curves(given: Charted) -> Figure:
    """Predicted and measured over `wl`, with bands; who limits stands along the axis."""
    chart = given.chart
    if chart is None and not given.samples:
        return Figure(empty="nothing was measured or predicted here")
    measured = chart.measured if chart else None
    fits: list[Fit] = []
    if measured is not None:
        fits.append(
            Fit(measured.wl, measured.mean, measured.low, measured.high, "dashed", "second",
                "measured")
        )  # fmt: skip
    if chart is not None and chart.profiles is not None:
        p = chart.profiles
        fits.append(Fit(p.wl, p.mean, (), (), "dotted", "third", "profiles alone"))
    return given.figure(_fit(chart.predicted, predicted_as(chart)) if chart else None, fits)


def predicted_as(chart: ChainChart) -> str:
    """What its curve is called: what samples of the chain moved is not what they depart from."""
    return "predicted" if chart.profiles is None else "corrected"


def functions(given: Charted) -> Figure:
    """Each function alone at the load that reaches it, under the chain that they make."""
    chart = given.chart
    if chart is None:
        return Figure(empty="no curves yet")
    alone = [
        Fit(chart.predicted.wl, f.mean, (), (), STYLES[i % len(STYLES)],
            ("second", "third")[i % 2], f"{text.plain(f.vnf)} alone")
        for i, f in enumerate(chart.functions)
    ]  # fmt: skip
    return given.figure(_fit(chart.predicted, "chain predicted"), alone[::-1])


def strip(lines: Sequence[CompareLine], here: CompareLine | None, noise: float) -> Figure:
    """The error of every configuration in per cent, sorted (paper A, Fig. 8).

    `noise` is the error that the host's own noise may make.
    """
    scored = [(line, line.score) for line in lines if line.score is not None]
    scored.sort(key=lambda pair: pair[1].mape)
    if not scored:
        return Figure(empty="nothing was compared")
    marks = []
    for place, (line, score) in enumerate(scored, 1):
        error = 100.0 * score.mape
        direct = score.baseline_mape
        if direct is not None:
            marks.append(_error(place, 100.0 * direct, other=True))
        marks.append(_error(place, error, chosen=line is here))
    return Figure(
        x_range=(0.5, len(scored) + 0.5),
        marks=tuple(marks),
        series=("error of the prediction, %", "of a model trained directly"),
        limit=Limit(100.0 * noise, f"noise alone {text.percent(noise)}"),
        log_x=False,
        log_y=True,
        counts=True,
    )


def _error(place: int, error: float, chosen: bool = False, other: bool = False) -> Mark:
    return Mark(float(place), max(error, 0.01), None, None, True, chosen, other)


def stretches(chart: ChainChart) -> Iterator[AxisStretch]:
    """Who limits along the axis, each from where it takes over to the next."""
    curve = chart.predicted

    def over(wl: float) -> bool:
        return curve.overload is not None and wl >= curve.overload

    runs = [
        (key, [place for place, _ in run])
        for key, run in groupby(
            enumerate(zip(curve.limiting, curve.extrapolates, map(over, curve.wl), strict=True)),
            lambda e: e[1],
        )
    ]
    for (vnf, guess, overload), places in runs:
        last = min(places[-1] + 1, len(curve.wl) - 1)
        label = text.plain(vnf) if vnf else NOTHING_LIMITS
        if overload:
            label, guess = f"{text.plain(vnf) or 'the chain'}: {OVERLOAD}", False
        yield AxisStretch(curve.wl[places[0]], curve.wl[last], label, not guess)


def limits_text(chart: ChainChart) -> str:
    """The same as a sentence: `tinyproxy limits to 420, haproxy from there on`."""
    merged: list[AxisStretch] = []
    for stretch in stretches(chart):
        if merged and merged[-1].label == stretch.label:
            before = merged.pop()
            stretch = AxisStretch(before.low, stretch.high, before.label, before.sure)
        merged.append(stretch)
    if len(merged) == 1:
        only = merged[0].label
        return only if not _limits(only) else f"{only} limits at every load"
    return ", ".join(
        f"{s.label}{' limits' if place == 0 and _limits(s.label) else ''} "
        + (f"from {text.number(s.low)}" if place else f"to {text.number(s.high)}")
        + ("" if s.sure else " (a guess)")
        for place, s in enumerate(merged)
    )


def _limits(label: str) -> bool:
    return label != NOTHING_LIMITS and OVERLOAD not in label


def place_of(chart: ChainChart, wl: float) -> int:
    """The point of a chart's curves that is nearest to a load of the chain."""
    loads = chart.predicted.wl
    right = min(bisect_left(loads, wl), len(loads) - 1)
    left = max(right - 1, 0)
    return left if wl - loads[left] < loads[right] - wl else right


def _fit(curve: ChainCurve, label: str) -> Fit:
    """To where it grows without bound, if it does."""
    end = len(curve.wl)
    if curve.overload is not None:
        end = bisect_left(curve.wl, curve.overload)
    x, mean, low, high = (v[:end] for v in (curve.wl, curve.mean, curve.low, curve.high))
    return Fit(x, mean, low, high, "solid", "curve", label)


def _marks(samples: Sequence[SamplePoint], kpi: str, at: float | None) -> tuple[Mark, ...]:
    """All samples; the ones at the load that is read out stand between brackets."""
    chosen = [sample.wl == at for sample in samples]
    return tuple(
        profile_figure.mark(sample, kpi, sample.id if here else "")
        for sample, here in zip(samples, chosen, strict=True)
    )


def _plan(view: SessionView, chain: Target) -> TargetPlan | None:
    plans = view.campaign.targets if view.campaign else ()
    return next((plan for plan in plans if plan.target.name == chain.name), None)
