"""A KPI over the load as SVG: what the model says of the allocations, and what was asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from workbench.domain.kpis import of as kpi_of
from workbench.domain.parameters import Sla
from workbench.domain.profiles import Curve
from workbench.domain.samples import OVERLOAD, Estimate
from workbench.exports.recommendation.axis import PixelAxis
from workbench.exports.recommendation.markup import element
from workbench.exports.recommendation.naming import one_line
from workbench.exports.recommendation.provenance import limit_text

WIDTH, HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 24, 44, 56

# Okabe and Ito's colours, the lighter of a kind on dark ground; dashes tell them apart without.
# Plain properties rather than variables: drawing programs that open the SVG know no variables.
STYLE = """
.wb-plot{font:13px system-ui,sans-serif;max-width:100%;height:auto}
.wb-plot .paper{fill:#fff}.wb-plot text{fill:#1b1b1b}
.wb-plot .grid{stroke:#d9d9d9}.wb-plot .frame{stroke:#1b1b1b;fill:none}
.wb-plot .limit{stroke:#009E73;stroke-width:2;stroke-dasharray:2 3}
.wb-plot .asked{stroke:#1b1b1b;stroke-dasharray:6 4}
.wb-plot .sample{stroke:#1b1b1b;stroke-opacity:.45;fill:none}
.wb-plot .measured{stroke:#1b1b1b;fill:none;stroke-width:2}
.wb-plot .line{fill:none;stroke-width:2.5}.wb-plot .bar{stroke-width:2}
.wb-plot .first{stroke:#0072B2}.wb-plot .first.dot{fill:#0072B2}
.wb-plot .second{stroke:#D55E00}.wb-plot .second.dot{fill:#D55E00}
.wb-plot .second.line{stroke-dasharray:9 5}
.wb-plot .band{stroke:none;opacity:.22}
.wb-plot .first.band{fill:#0072B2}.wb-plot .second.band{fill:#D55E00}
@media (prefers-color-scheme:dark){
.wb-plot .paper{fill:#161616}.wb-plot text{fill:#ececec}.wb-plot .grid{stroke:#454545}
.wb-plot .frame,.wb-plot .asked,.wb-plot .measured,.wb-plot .sample{stroke:#ececec}
.wb-plot .limit{stroke:#2FC79B}
.wb-plot .first{stroke:#56B4E9}.wb-plot .first.dot,.wb-plot .first.band{fill:#56B4E9}
.wb-plot .second{stroke:#E69F00}.wb-plot .second.dot,.wb-plot .second.band{fill:#E69F00}
.wb-plot .band{stroke:none}
}
"""


@dataclass(frozen=True)
class PlottedAllocation:
    """One allocation in a plot: its name, its curve, and its KPI at the asked `wl`."""

    name: str
    curve: Curve
    expected: Estimate | None

    @property
    def drawn(self) -> Estimate | None:
        """What is expected, where that is a figure."""
        return None if self.expected is None or self.expected.unbounded else self.expected


def plot(
    lines: Sequence[PlottedAllocation],
    sla: Sla,
    wl_label: str,
    measured: Estimate | None = None,
    number: int = 1,
) -> Element:
    """The plot of one limit.

    Parameters
    ----------
    lines : one or two allocations; a curve without a finite point is left out.
    sla : its limit is a level, its `wl` an upright.
    measured : the KPI that the lab showed at that `wl`.
    number : of the plot on its page: two titles must not share an id.
    """
    drawn = [(line, kind) for line, kind in zip(lines, ("first", "second"), strict=False)]
    points = {kind: finite(line.curve) for line, kind in drawn}
    wls = [p[0] for found in points.values() for p in found]
    wls += [line.curve.overload for line, _ in drawn if line.curve.overload is not None]
    levels = [p[1] for found in points.values() for p in found]
    levels += [sla.limit, *(e.value for line, _ in drawn if (e := line.drawn))]
    asked = [sla.wl] if sla.wl is not None else []
    across, up = axes((*wls, *asked), (*levels, *([measured.value] if measured else [])))
    shapes = [
        *_overloads(drawn, across),
        *(
            shape
            for _, kind in drawn
            if points[kind]
            for shape in trend(points[kind], kind, across, up)
        ),
        *_asked(sla, across, up),
        *(
            shape
            for position, (line, kind) in enumerate(drawn)
            if line.drawn and sla.wl is not None
            for shape in _expected(line.drawn, kind, across.at(sla.wl) + 4 * position, up)
        ),
        *(_measured(measured, across.at(sla.wl) - 5, up) if measured and sla.wl else ()),
        *legend([one_line(line.name) for line, _ in drawn], measured is not None),
    ]
    told = _described(lines, sla, measured)
    return framed(shapes, (across, up), (wl_label, sla.kpi), told, number)


def axes(loads: Iterable[float], levels: Iterable[float]) -> tuple[PixelAxis, PixelAxis]:
    """Across and up, around all that is to be drawn."""
    return (
        PixelAxis.over(tuple(loads) or (0.0, 1.0), _LEFT, WIDTH - _RIGHT),
        PixelAxis.over(tuple(levels) or (0.0, 1.0), HEIGHT - _BOTTOM, _TOP),
    )


def framed(
    shapes: Sequence[Element],
    on: tuple[PixelAxis, PixelAxis],
    of: tuple[str, str],
    told: str,
    number: int,
) -> Element:
    """A plot with its axes: `of` a KPI over a load, named load first; `told` is read aloud."""
    across, up = on
    wl_label, kpi = map(one_line, of)
    unit = kpi_of(kpi).unit
    ids = f"wb-title-{number}", f"wb-desc-{number}"
    return element(
        "svg",
        element("title", f"{kpi} over {wl_label}", id=ids[0]),
        element("desc", told, id=ids[1]),
        element("style", STYLE),
        element("rect", width=WIDTH, height=HEIGHT, class_="paper"),
        *grid(across, up),
        *shapes,
        element(
            "text",
            wl_label + (", log scale" if across.log else ""),
            x=(_LEFT + WIDTH - _RIGHT) / 2,
            y=HEIGHT - 12,
            text_anchor="middle",
        ),
        element(
            "text",
            f"{kpi}{f' ({unit})' if unit else ''}{', log scale' if up.log else ''}",
            x=16,
            y=(_TOP + HEIGHT - _BOTTOM) / 2,
            text_anchor="middle",
            transform=f"rotate(-90 16 {(_TOP + HEIGHT - _BOTTOM) / 2:g})",
        ),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=WIDTH,
        height=HEIGHT,
        role="img",
        aria_labelledby=" ".join(ids),
        class_="wb-plot",
    )


def finite(curve: Curve) -> list[tuple[float, float, float, float]]:
    rows = zip(curve.wl, curve.mean, curve.low, curve.high, strict=True)
    return [row for row in rows if all(map(math.isfinite, row))]


def grid(across: PixelAxis, up: PixelAxis) -> list[Element]:
    shapes = []
    for tick in across.ticks:
        x = across.at(tick)
        shapes.append(element("line", x1=x, x2=x, y1=up.start, y2=up.end, class_="grid"))
        shapes.append(element("text", f"{tick:g}", x=x, y=up.start + 20, text_anchor="middle"))
    for tick in up.ticks:
        y = up.at(tick)
        shapes.append(element("line", x1=across.start, x2=across.end, y1=y, y2=y, class_="grid"))
        shapes.append(element("text", f"{tick:g}", x=across.start - 8, y=y + 4, text_anchor="end"))
    frame = element(
        "rect",
        x=across.start,
        y=up.end,
        width=across.end - across.start,
        height=up.start - up.end,
        class_="frame",
    )
    return [*shapes, frame]


def trend(
    points: Sequence[tuple[float, float, float, float]], kind: str, across: PixelAxis, up: PixelAxis
) -> tuple[Element, Element]:
    mean = [(across.at(wl), up.at(value)) for wl, value, _, _ in points]
    lower = [(across.at(wl), up.at(low)) for wl, _, low, _ in points]
    upper = [(across.at(wl), up.at(high)) for wl, _, _, high in points]
    return (
        element("path", d=_path([*upper, *reversed(lower)]) + "Z", class_=f"band {kind}"),
        element("path", d=_path(mean), class_=f"line {kind}"),
    )


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _asked(sla: Sla, across: PixelAxis, up: PixelAxis) -> list[Element]:
    y = up.at(sla.limit)
    shapes = [
        element("line", x1=across.start, x2=across.end, y1=y, y2=y, class_="limit"),
        element("text", limit_text(sla), x=across.start + 8, y=y + (18 if y < up.end + 24 else -6)),
    ]
    if sla.wl is not None:
        x = across.at(sla.wl)
        after = x < (across.start + across.end) / 2  # else the words run over the frame
        shapes.append(element("line", x1=x, x2=x, y1=up.start, y2=up.end, class_="asked"))
        shapes.append(
            element(
                "text",
                f"asked: {sla.wl:g}",
                x=x + 10 if after else x - 10,
                y=up.start - 8,
                text_anchor="start" if after else "end",
            )
        )
    return shapes


def _overloads(drawn: Sequence[tuple[PlottedAllocation, str]], across: PixelAxis) -> list[Element]:
    """Where a curve ends because it grows without bound: an upright, and the word."""
    shapes = []
    for position, (line, kind) in enumerate(drawn):
        if line.curve.overload is not None:
            x, y = across.at(line.curve.overload), _TOP + 14 * (position + 1)
            shapes.append(
                element("line", x1=x, x2=x, y1=_TOP, y2=HEIGHT - _BOTTOM, class_=f"{kind} bar")
            )
            shapes.append(element("text", OVERLOAD, x=x - 6, y=y, text_anchor="end"))
    return shapes


def _expected(estimate: Estimate, kind: str, x: float, up: PixelAxis) -> tuple[Element, Element]:
    low, high = up.at(estimate.low), up.at(estimate.high)
    return (
        element("line", x1=x, x2=x, y1=low, y2=high, class_=f"{kind} bar"),
        element("circle", cx=x, cy=up.at(estimate.value), r=5, class_=f"{kind} dot"),
    )


def _measured(estimate: Estimate, x: float, up: PixelAxis) -> tuple[Element, Element]:
    y = up.at(estimate.value)
    return (
        element("line", x1=x, x2=x, y1=up.at(estimate.low), y2=up.at(estimate.high),
                class_="measured"),
        element("path", d=f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6Z", class_="measured"),
    )  # fmt: skip


def legend(names: Sequence[str], measured: bool) -> list[Element]:
    shapes: list[Element] = []
    x = float(_LEFT)
    for name, kind in zip(names, ("first", "second"), strict=False):
        shapes.append(element("line", x1=x, x2=x + 34, y1=22, y2=22, class_=f"{kind} line"))
        shapes.append(element("text", name, x=x + 42, y=26))
        x += 70 + 8 * len(name)
    if measured:
        shapes.append(element("path", d=f"M{x + 8:.1f} 16l6 6l-6 6l-6 -6Z", class_="measured"))
        shapes.append(element("text", "measured", x=x + 22, y=26))
    return shapes


def _described(lines: Sequence[PlottedAllocation], sla: Sla, measured: Estimate | None) -> str:
    at = "" if sla.wl is None else f" at the asked load of {sla.wl:g}"
    said = [f"The limit is {limit_text(sla)}."]
    said += [
        f"{line.name.capitalize()}: {figure(line.expected)} expected{at}."
        for line in lines
        if line.expected
    ]
    said += [
        f"{line.name.capitalize()}: {OVERLOAD} from {line.curve.overload:g} on."
        for line in lines
        if line.curve.overload is not None
    ]
    if measured:
        said.append(f"Measured{at}: {figure(measured)}.")
    return one_line(" ".join(said))


def figure(estimate: Estimate) -> str:
    """`120 [110, 131]`: a figure and its 95 % interval."""
    if estimate.unbounded:
        return OVERLOAD
    return f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]"
