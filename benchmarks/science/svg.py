"""Small clean SVG figures: lines with bands, and boxes. No library, no script, reads in any browser
and on paper: every series has its own dash and marker beside its colour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b8860b", "#4a4e69", "#008080", "#a23b72")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "", "6 3", "2 3", "8 3 2 3")
WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 66, 170, 34, 50
FONT = "font-family='system-ui, sans-serif' font-size='12' fill='#222'"


@dataclass(frozen=True)
class Series:
    """A line, by rising x; `low` and `high` make a band around it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True)
class Axis:
    """From the least to the largest figure; in logs where asked and possible."""

    low: float
    high: float
    log: bool
    first: float
    last: float
    """Where its ends lie, in pixels."""

    def at(self, value: float) -> float:
        low, high, v = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, v = math.log(low), math.log(high), math.log(v)
        return self.first + (v - low) / ((high - low) or 1.0) * (self.last - self.first)

    def ticks(self) -> list[float]:
        """Round figures, at most nine."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1, 2, 5) if len(decades) <= 3 else (1,)
            marks = [s * 10.0**d for d in decades for s in steps]
        else:
            step = 10.0 ** math.floor(math.log10((self.high - self.low or 1.0) / 2.0))
            while (self.high - self.low) / step > 8.0:
                step *= 2.0 if not math.log10(step).is_integer() else 2.5
            marks = [step * i for i in range(math.ceil(self.low / step), 400)]
        inside = [m for m in marks if self.low * (1 - 1e-9) <= m <= self.high * (1 + 1e-9)]
        return inside[:: max(1, len(inside) // 9)]


def lines(
    title: str,
    x_label: str,
    y_label: str,
    series: Sequence[Series],
    *,
    log_x: bool = True,
    log_y: bool = True,
    limit: tuple[str, float] | None = None,
) -> str:
    """A figure of lines; `limit` is a named horizontal one."""
    shown = [_finite(one) for one in series]
    shown = [one for one in shown if one.x]
    xs = [v for one in shown for v in one.x]
    ys = [v for one in shown for v in (*one.y, *one.low, *one.high)]
    ys += [limit[1]] if limit else []
    across = _axis(xs, log_x, LEFT, WIDTH - RIGHT)
    up = _axis(ys, log_y, HEIGHT - BOTTOM, TOP)
    parts = _frame(title, x_label, y_label, across, up)
    if limit:
        y = up.at(limit[1])
        parts.append(
            f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{y:.1f}' y2='{y:.1f}' stroke='#888' "
            f"stroke-dasharray='3 3'/><text x='{WIDTH - RIGHT + 6}' y='{y + 4:.1f}' {FONT}>"
            f"{escape(limit[0])}</text>"
        )
    for number, one in enumerate(shown):
        parts += _line(one, number, across, up)
    return _document(parts)


def boxes(
    title: str, y_label: str, groups: Mapping[str, Sequence[float]], *, log_y: bool = True
) -> str:
    """A box from quartile to quartile with the median in it, whiskers to the extremes."""
    finite = {
        name: sorted(v for v in values if math.isfinite(v)) for name, values in groups.items()
    }
    finite = {name: values for name, values in finite.items() if values}
    up = _axis([v for values in finite.values() for v in values], log_y, HEIGHT - BOTTOM, TOP)
    across = Axis(0.0, float(len(finite)), False, LEFT, WIDTH - 20)
    parts = _frame(title, "", y_label, None, up, right=20)
    for number, (name, values) in enumerate(finite.items()):
        middle = across.at(number + 0.5)
        colour = COLOURS[number % len(COLOURS)]
        low, q1, q2, q3, high = (
            up.at(values[round(share * (len(values) - 1))]) for share in (0, 0.25, 0.5, 0.75, 1)
        )
        half = 0.28 * (across.at(1.0) - across.at(0.0))
        parts += [
            f"<line x1='{middle:.1f}' x2='{middle:.1f}' y1='{low:.1f}' y2='{high:.1f}' "
            f"stroke='{colour}'/>",
            f"<rect x='{middle - half:.1f}' y='{q3:.1f}' width='{2 * half:.1f}' "
            f"height='{max(q1 - q3, 1.0):.1f}' fill='white' stroke='{colour}' stroke-width='1.5'/>",
            f"<line x1='{middle - half:.1f}' x2='{middle + half:.1f}' y1='{q2:.1f}' y2='{q2:.1f}' "
            f"stroke='{colour}' stroke-width='2.5'/>",
            f"<text x='{middle:.1f}' y='{HEIGHT - BOTTOM + 18}' text-anchor='middle' {FONT}>"
            f"{escape(name)}</text>",
        ]
    return _document(parts)


def _finite(one: Series) -> Series:
    kept = [i for i, (x, y) in enumerate(zip(one.x, one.y, strict=True)) if math.isfinite(x + y)]
    band = bool(one.low) and all(math.isfinite(one.low[i] + one.high[i]) for i in kept)
    return Series(
        one.name,
        [one.x[i] for i in kept],
        [one.y[i] for i in kept],
        [one.low[i] for i in kept] if band else (),
        [one.high[i] for i in kept] if band else (),
    )


def _axis(values: Sequence[float], log: bool, first: float, last: float) -> Axis:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    log = log and low > 0.0
    if log:
        margin = (high / low) ** 0.04 if high > low else 1.5
        return Axis(low / margin, high * margin, True, first, last)
    margin = 0.05 * (high - low) or 0.5
    return Axis(
        low - margin if low < 0.0 else max(low - margin, 0.0), high + margin, False, first, last
    )


def _frame(
    title: str, x_label: str, y_label: str, across: Axis | None, up: Axis, right: int = RIGHT
) -> list[str]:
    bottom, edge = HEIGHT - BOTTOM, WIDTH - right
    parts = [
        f"<text x='{LEFT}' y='20' {FONT} font-weight='bold'>{escape(title)}</text>",
        f"<text x='{(LEFT + edge) / 2}' y='{HEIGHT - 10}' text-anchor='middle' {FONT}>"
        f"{escape(x_label)}</text>",
        f"<text transform='translate(16 {(TOP + bottom) / 2}) rotate(-90)' text-anchor='middle' "
        f"{FONT}>{escape(y_label)}</text>",
    ]
    for mark in up.ticks():
        y = up.at(mark)
        parts.append(
            f"<line x1='{LEFT}' x2='{edge}' y1='{y:.1f}' y2='{y:.1f}' stroke='#e3e3e3'/>"
            f"<text x='{LEFT - 6}' y='{y + 4:.1f}' text-anchor='end' {FONT}>{mark:g}</text>"
        )
    for mark in across.ticks() if across else ():
        x = across.at(mark) if across else 0.0
        parts.append(
            f"<line x1='{x:.1f}' x2='{x:.1f}' y1='{TOP}' y2='{bottom}' stroke='#e3e3e3'/>"
            f"<text x='{x:.1f}' y='{bottom + 16}' text-anchor='middle' {FONT}>{mark:g}</text>"
        )
    parts.append(
        f"<rect x='{LEFT}' y='{TOP}' width='{edge - LEFT}' height='{bottom - TOP}' fill='none' "
        "stroke='#888'/>"
    )
    return parts


def _line(one: Series, number: int, across: Axis, up: Axis) -> list[str]:
    colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
    points = [(across.at(x), up.at(y)) for x, y in zip(one.x, one.y, strict=True)]
    parts = []
    if one.low:
        edge = [(across.at(x), up.at(y)) for x, y in zip(one.x, one.high, strict=True)]
        edge += [(across.at(x), up.at(y)) for x, y in zip(one.x, one.low, strict=True)][::-1]
        parts.append(f"<polygon points='{_path(edge)}' fill='{colour}' fill-opacity='0.14'/>")
    parts.append(
        f"<polyline points='{_path(points)}' fill='none' stroke='{colour}' stroke-width='1.8' "
        f"stroke-dasharray='{dash}'/>"
    )
    parts += [_marker(number, x, y, colour) for x, y in points]
    y = TOP + 12 + 18 * number
    x = WIDTH - RIGHT + 10
    parts.append(
        f"<line x1='{x}' x2='{x + 22}' y1='{y}' y2='{y}' stroke='{colour}' stroke-width='1.8' "
        f"stroke-dasharray='{dash}'/>{_marker(number, x + 11, y, colour)}"
        f"<text x='{x + 28}' y='{y + 4}' {FONT}>{escape(one.name)}</text>"
    )
    return parts


def _marker(number: int, x: float, y: float, colour: str) -> str:
    kind = number % 4
    if kind == 0:
        return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2.8' fill='{colour}'/>"
    if kind == 1:
        return (
            f"<rect x='{x - 2.6:.1f}' y='{y - 2.6:.1f}' width='5.2' height='5.2' fill='{colour}'/>"
        )
    turned = (
        [(0, -3.6), (3.4, 2.6), (-3.4, 2.6)]
        if kind == 2
        else [(0, -3.6), (3.6, 0), (0, 3.6), (-3.6, 0)]
    )
    return f"<polygon points='{_path([(x + dx, y + dy) for dx, dy in turned])}' fill='{colour}'/>"


def _path(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _document(parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' "
        f"width='{WIDTH}' height='{HEIGHT}'>\n<rect width='100%' height='100%' fill='white'/>\n"
        f"{body}\n</svg>\n"
    )
