"""A session's plots: what was fitted to a configuration, and a chain beside its prediction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from workbench.domain.chains import ChainChart, ChainCurve
from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.parameters import Sla
from workbench.domain.profiles import Breakpoint, Curve
from workbench.domain.samples import Estimate, is_unbounded
from workbench.exports.recommendation.axis import PixelAxis
from workbench.exports.recommendation.markup import element
from workbench.exports.recommendation.naming import one_line
from workbench.exports.recommendation.plot import axes, framed, legend, trend
from workbench.exports.recommendation.provenance import limit_text

Row = tuple[float, float, float, float]
"""Load, figure, and the ends of its interval."""


@dataclass(frozen=True)
class CurvePlot:
    """What is drawn of a KPI over the load.

    Attributes
    ----------
    curves : one or two by name.
    samples : valid ones; those that do not state the KPI are left out.
    limit : None without an SLA on this KPI.
    """

    kpi: str
    wl_label: str
    curves: Sequence[tuple[str, Curve | ChainCurve]]
    samples: Sequence[SamplePoint] = ()
    breakpoints: Sequence[Breakpoint] = ()
    limit: Sla | None = None

    def svg(self, number: int) -> Element:
        """The plot that is the `number`th of its page."""
        rows = [(name, _finite(curve)) for name, curve in self.curves]
        stated = [(s.wl, s.kpis[self.kpi]) for s in self.samples if s.valid and self.kpi in s.kpis]
        seen = [(wl, e) for wl, e in stated if not e.unbounded and math.isfinite(e.value)]
        uprights = [(b.rule, b.wl) for b in self.breakpoints if b.wl is not None]
        level = [self.limit.limit] if self.limit else []
        loads = [row[0] for _, found in rows for row in found] + [wl for wl, _ in seen]
        levels = [row[1] for _, found in rows for row in found] + [e.value for _, e in seen]
        across, up = axes([*loads, *(wl for _, wl in uprights)], [*levels, *level])
        shapes = [
            shape
            for (_, found), kind in zip(rows, ("first", "second"), strict=False)
            if found
            for shape in trend(found, kind, across, up)
        ]
        shapes += [shape for wl, e in seen for shape in _sample(across.at(wl), e, up)]
        shapes += _uprights(uprights, across, up)
        shapes += _level(self.limit, across, up) if self.limit else []
        shapes += legend([one_line(name) for name, _ in rows], bool(seen))
        return framed(shapes, (across, up), (self.wl_label, self.kpi), self._told(), number)

    def _told(self) -> str:
        names = " and ".join(name for name, _ in self.curves)
        at = ", ".join(f"{b.rule} at {b.wl:.4g}" for b in self.breakpoints if b.wl is not None)
        return one_line(f"{names} over the load{f'; {at}' if at else ''}.")


def profile_plot(view: ConfigurationView, wl_label: str, limit: Sla | None) -> CurvePlot | None:
    """None where nothing was fitted to this configuration."""
    curve = view.curve
    if curve is None:
        return None
    level = limit if limit is not None and limit.kpi == curve.kpi else None
    found = [b for b in view.breakpoints if b.state == "found"]
    return CurvePlot(curve.kpi, wl_label, [(curve.model, curve)], view.samples, found, level)


def chain_plot(
    chart: ChainChart, samples: Sequence[SamplePoint], kpi: str, wl_label: str
) -> CurvePlot:
    """A chain's prediction, what was fitted to its own samples, and these."""
    curves: list[tuple[str, Curve | ChainCurve]] = [("predicted", chart.predicted)]
    if chart.measured is not None:
        curves.append(("measured", chart.measured))
    return CurvePlot(kpi, wl_label, curves, samples)


def _finite(curve: Curve | ChainCurve) -> list[Row]:
    rows = zip(curve.wl, curve.mean, curve.low, curve.high, strict=True)
    return [row for row in rows if all(map(math.isfinite, row)) and not is_unbounded(row[1])]


def _sample(x: float, seen: Estimate, up: PixelAxis) -> tuple[Element, Element]:
    return (
        element("line", x1=x, x2=x, y1=up.at(seen.low), y2=up.at(seen.high), class_="sample"),
        element("circle", cx=x, cy=up.at(seen.value), r=2.5, class_="sample"),
    )


def _uprights(
    found: Iterable[tuple[str, float]], across: PixelAxis, up: PixelAxis
) -> list[Element]:
    """Breakpoints, each with the rule that found it."""
    shapes = []
    for place, (rule, wl) in enumerate(found):
        x, y = across.at(wl), up.end + 14 * (place + 1)
        shapes.append(element("line", x1=x, x2=x, y1=up.start, y2=up.end, class_="asked"))
        before = x > (across.start + across.end) / 2  # else the words run over the frame
        anchor = "end" if before else "start"
        shapes.append(element("text", rule, x=x - 5 if before else x + 5, y=y, text_anchor=anchor))
    return shapes


def _level(limit: Sla, across: PixelAxis, up: PixelAxis) -> list[Element]:
    y = up.at(limit.limit)
    return [
        element("line", x1=across.start, x2=across.end, y1=y, y2=y, class_="limit"),
        element("text", limit_text(limit), x=across.start + 8, y=y - 6),
    ]
