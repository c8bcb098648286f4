"""What a profile plot shows, as plain data, and how it is drawn on a canvas.

Nothing here knows Textual: `draw` is a function from a `Figure` and a size to cells, which is what
the tests and the benchmark call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from workbench.tui.plots.canvas import Axis, Canvas, Glyphs, LineStyle, between, inked
from workbench.tui.text import number


@dataclass(frozen=True)
class Mark:
    """A sample. `y` is None where the KPI could not be stated; that is drawn at the top edge."""

    x: float
    y: float | None
    low: float | None
    high: float | None
    valid: bool
    chosen: bool = False
    """The user went to it: it stands between brackets."""
    other: bool = False
    """Of a second series, which has a mark of its own."""
    pinned: bool = False
    """Somebody wants it looked at."""


@dataclass(frozen=True)
class Fit:
    """A curve with its band; all four of one length, `x` ascending. Without `low` and `high` there
    is no band.

    `look` is its colour and kind of band, `line` tells it from others where there is no colour, and
    `label` is what the key of the plot calls it.
    """

    x: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    line: LineStyle = "solid"
    look: Literal["curve", "second", "third"] = "curve"
    label: str = ""


@dataclass(frozen=True)
class Asked:
    """The interval that is being bisected and the point in it."""

    x: float
    low: float
    high: float


@dataclass(frozen=True)
class BreakpointLine:
    """A breakpoint: a vertical line with its interval and a label."""

    x: float
    low: float
    high: float
    label: str


@dataclass(frozen=True)
class Limit:
    """An SLA limit: a horizontal line with its text."""

    y: float
    label: str


@dataclass(frozen=True)
class AxisStretch:
    """A part of the axis of `wl` with a name, such as the function that limits there."""

    low: float
    high: float
    label: str
    sure: bool = True


@dataclass(frozen=True)
class Figure:
    """One KPI over `wl`, ready to draw."""

    x_range: tuple[float, float] | None = None
    marks: tuple[Mark, ...] = ()
    fit: Fit | None = None
    asked: Asked | None = None
    lines: tuple[BreakpointLine, ...] = ()
    """The most important first: a low plot has room for two only."""
    limit: Limit | None = None
    log_x: bool = True
    log_y: bool = True
    empty: str = ""
    """What stands in the plot as long as there is nothing to draw."""
    counts: bool = False
    """The axis of x counts things: only whole numbers stand there."""
    more: tuple[Fit, ...] = ()
    """Other curves, the least important first: they lie under `fit`."""
    along: tuple[AxisStretch, ...] = ()
    """Names along the axis, in a row of their own."""
    series: tuple[str, ...] = ()
    """What marks are of, for the key: the first series, then the other."""
    y_range: tuple[float, float] | None = None
    """What the axis of y spans at least, such as what stands in the plots beside."""

    off: frozenset[str] = frozenset()
    """Names of series that somebody switched off: the key says so, and they are not drawn."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all series that can be switched off: those of marks, then the curves of the key."""
        curves = reversed((*self.more, *((self.fit,) if self.fit else ())))
        return (*self.series, *(curve.label for curve in curves if curve.label))

    @property
    def curves(self) -> tuple[Fit, ...]:
        """All that are on, as they are drawn: the most important last."""
        found = (*self.more, *((self.fit,) if self.fit else ()))
        return tuple(curve for curve in found if curve.label not in self.off)

    @property
    def shown_marks(self) -> tuple[Mark, ...]:
        """Those whose series is on."""
        off = [name in self.off for name in self.series]
        first, other = (*off, False, False)[:2]
        return tuple(m for m in self.marks if not (other if m.other else first))

    def key(self, glyphs: Glyphs) -> Iterator[str]:
        """What its marks and curves are, the most important first; nothing if nobody named them."""
        if off := [name for name in self.names if name in self.off]:
            yield f"off: {', '.join(off)}"
        signs = (glyphs.valid, glyphs.other)
        for sign, name in zip(signs, self.series, strict=False):
            if name not in self.off:
                yield f"{sign} {name}"
        for curve in reversed(self.curves):
            if curve.label:
                yield f"{glyphs.line(curve.line)} {curve.label}"


def draw(figure: Figure, width: int, height: int, glyphs: Glyphs) -> Canvas:
    """The figure on `width` by `height` cells, axes included."""
    canvas = Canvas(width, height, glyphs)
    if width < 16 or height < 4:
        return canvas
    axes = _axes(figure)
    if axes is None:
        text = figure.empty[:width]
        canvas.text((width - len(text)) // 2, height // 2, text, "note")
        return canvas
    x, y = axes
    rows = height - 2 - bool(figure.along)
    y = _with_room(y, figure, rows)
    ticks = _ticks(y, figure, rows)
    gutter = max((len(number(t)) for t in ticks), default=1) + 1
    inner = Canvas(width - gutter, rows, glyphs)
    _Painter(inner, x, y, figure).paint()
    for row, cells in enumerate(inner.cells):
        canvas.cells[row][gutter:] = cells
    _draw_axes(canvas, x, y, ticks, gutter, figure)
    if figure.along:
        _draw_along(canvas, x, gutter, figure.along)
    return canvas


def _axes(figure: Figure) -> tuple[Axis, Axis] | None:
    marks = figure.marks
    xs = [*(m.x for m in marks), *(figure.x_range or ())]
    if figure.asked:
        xs += [figure.asked.low, figure.asked.high]
    if not xs:
        return None
    x = _axis(min(xs), max(xs), figure.log_x, margin=0.0)
    ys = [*_values(figure, x.high), *(figure.y_range or ())]
    if not ys:
        ys = [figure.limit.y] if figure.limit else [1.0, 10.0]
    low, high = min(ys), max(ys)
    if figure.limit and low / 5 <= figure.limit.y <= high * 5:
        low, high = min(low, figure.limit.y), max(high, figure.limit.y)
    return x, _axis(low, high, figure.log_y, margin=0.06)


def _with_room(y: Axis, figure: Figure, rows: int) -> Axis:
    """The same axis, with a row beyond the limit where there is something beyond it."""
    limit, values = figure.limit, _values(figure, math.inf)
    if limit is None or not y.low <= limit.y <= y.high or rows < 3 or not values:
        return y
    row = _cell(1 - y.at(limit.y), rows)
    above = row == 0 and max(values) > limit.y
    below = row == rows - 1 and min(values) < limit.y
    more = 1.1 / (rows - 1)
    return y.wider(more * below, more * above)


def _ticks(y: Axis, figure: Figure, rows: int) -> list[float]:
    """Round values, each in a row of its own; the limit's very value in its row."""
    taken: dict[int, float] = {}
    if figure.limit is not None and y.low <= figure.limit.y <= y.high:
        taken[_cell(1 - y.at(figure.limit.y), rows)] = figure.limit.y
    for tick in y.ticks(max(2, rows // 2)):
        taken.setdefault(_cell(1 - y.at(tick), rows), tick)
    return sorted(taken.values())


def _values(figure: Figure, x_high: float) -> list[float]:
    """All that marks and curves say up to `x_high`."""
    ys = [v for m in figure.shown_marks for v in (m.y, m.low, m.high) if v is not None]
    for curve in figure.curves:
        ys += [v for at, v in zip(curve.x, curve.mean, strict=True) if at <= x_high]
    return [v for v in ys if math.isfinite(v)]


def on_one_scale(figures: Sequence[Figure]) -> list[Figure]:
    """Figures of one KPI that stand side by side, with one axis of y: heights can be compared."""
    ys = [v for f in figures for v in _values(f, f.x_range[1] if f.x_range else math.inf)]
    if not ys:
        return list(figures)
    return [replace(figure, y_range=(min(ys), max(ys))) for figure in figures]


def _axis(low: float, high: float, log: bool, margin: float) -> Axis:
    if log:
        high = max(high, 1e-9)
        low = max(low, high * 1e-6)
        low, high = (low, high) if high > low * 1.05 else (low / 1.5, high * 1.5)
        room = (high / low) ** margin
        return Axis(low / room, high * room, log=True)
    low = min(low, 0.0) if margin else low
    high = high if high > low else low + 1.0
    return Axis(low, high + margin * (high - low), log=False)


def _draw_axes(
    canvas: Canvas, x: Axis, y: Axis, ticks: Sequence[float], gutter: int, figure: Figure
) -> None:
    asked, glyphs = figure.asked, canvas.glyphs
    rows, columns = canvas.height - 2, canvas.width - gutter
    for row in range(rows):
        canvas.put(gutter - 1, row, glyphs.axis_y, "axis")
    for tick in ticks:
        row = _cell(1 - y.at(tick), rows - bool(figure.along))
        label = number(tick)
        canvas.put(gutter - 1, row, glyphs.tick_y, "axis")
        canvas.text(gutter - 1 - len(label), row, label, "tick")
    canvas.put(gutter - 1, rows, glyphs.corner, "axis")
    canvas.text(gutter, rows, glyphs.axis_x * columns, "axis")
    taken = 0
    for tick in x.ticks(max(2, columns // 8)):
        if figure.counts and tick != round(tick):
            continue
        column = gutter + _cell(x.at(tick), columns)
        label = number(tick)
        start = min(max(column - len(label) // 2, taken), canvas.width - len(label))
        if start < taken:
            continue
        canvas.put(column, rows, glyphs.tick_x, "axis")
        canvas.text(start, rows + 1, label, "tick")
        taken = start + len(label) + 1
    if asked is not None:
        # On the axis itself: the interval is one of `wl`, and covers no sample there.
        left, at, right = (
            gutter + _cell(x.at(value), columns) for value in (asked.low, asked.x, asked.high)
        )
        canvas.text(left, rows, glyphs.ask * (right - left + 1), "asked")
        canvas.put(left, rows, glyphs.ask_left, "asked")
        canvas.put(right, rows, glyphs.ask_right, "asked")
        canvas.put(at, rows, glyphs.asked, "asked")
        text = " next "
        # Beside the interval where there is room, else on it: the axis of y is no room.
        starts = (right + 1, left - len(text), at + 2, at - 1 - len(text))
        fits = (s for s in starts if gutter <= s and s + len(text) <= canvas.width)
        canvas.text(next(fits, gutter), rows, text, "asked")


def _draw_along(canvas: Canvas, x: Axis, gutter: int, along: Sequence[AxisStretch]) -> None:
    """Between plot and axis: each stretch from its end to the next, its name as far as it fits."""
    glyphs, row, columns = canvas.glyphs, canvas.height - 3, canvas.width - gutter
    for stretch in along:
        left, right = (gutter + _cell(x.at(end), columns) for end in (stretch.low, stretch.high))
        line = glyphs.axis_x if stretch.sure else glyphs.unsure
        canvas.text(left, row, line * (right - left + 1), "axis")
        canvas.put(left, row, glyphs.span_left, "along")
        canvas.put(right, row, glyphs.span_right, "along")
        room = right - left - 1
        guess = "" if stretch.sure else "?"
        names = (f" {said} {guess}".rstrip() + " " for said in _shorter(stretch.label))
        name = next((said for said in names if len(said) <= room), "")
        if not name:
            kept = stretch.label[: max(room - 1 - len(guess), 0)]
            name = f"{kept}…{guess}" if kept else guess[:room]
        canvas.text(left + 1, row, name, "along")


def _shorter(label: str) -> tuple[str, ...]:
    """A name, and what stands before its last colon: `overload` of what grows without bound."""
    subject = label.rpartition(": ")[0] or label
    return (label, subject) if subject != label else (label,)


def _cell(share: float, cells: int) -> int:
    return min(max(math.floor(share * cells), 0), cells - 1)


class _Painter:
    """Draws the parts of a figure, from the background to the foreground."""

    def __init__(self, canvas: Canvas, x: Axis, y: Axis, figure: Figure) -> None:
        self.canvas, self.x, self.y, self.figure = canvas, x, y, figure
        self.glyphs = canvas.glyphs
        limit = figure.limit
        self._limit_at = 1 - y.at(limit.y) if limit and y.low <= limit.y <= y.high else None

    def paint(self) -> None:
        if self.figure.limit:
            self._limit(self.figure.limit)
        curves = [curve for curve in self.figure.curves if len(curve.x) > 1]
        for curve in curves:
            self._band(curve)
        for curve in curves:
            self._curve(curve)
        lines = self.figure.lines[: max(2, self.canvas.height // 5)]
        for line in lines:
            self._vertical(line)
        marks = self.figure.shown_marks
        for mark in marks:
            self._error_bar(mark)
        # Valid samples last: where both lie in one cell, the invalid one still has its entry in
        # the list, while a hidden valid one would make the curve look unsupported.
        for mark in sorted(marks, key=lambda m: (m.chosen, m.valid)):
            self._mark(mark)
        if self.figure.limit:
            self._limit_label(self.figure.limit)
        for line in lines:
            self._label(line)

    def column(self, x: float) -> int:
        return _cell(self.x.at(x), self.canvas.width)

    def row(self, y: float) -> int:
        return self._place(1 - self.y.at(y))

    def _place(self, share: float, per: int = 1) -> int:
        """The row, or the dot of `per` in a row, at that share from the top.

        What is no limit itself never stands in the row of the limit: there it would look as if it
        were at the limit, and what holds as if it did not.
        """
        rows = self.canvas.height
        cell = _cell(share, rows * per)
        if self._limit_at is None or abs(share - self._limit_at) < 1e-9:
            return cell
        limit = _cell(self._limit_at, rows)
        if cell // per != limit:
            return cell
        moved = limit * per - 1 if share < self._limit_at else (limit + 1) * per
        return moved if 0 <= moved < rows * per else cell

    def _band(self, fit: Fit) -> None:
        if not fit.low or not fit.high:
            return
        at = [self.x.at(v) for v in fit.x]
        low, high = ([1 - self.y.at(v) for v in values] for values in (fit.low, fit.high))
        rows, glyphs = self.canvas.height, self.glyphs
        own = glyphs.band if fit.look == "curve" else glyphs.other_band
        bands = (glyphs.band, glyphs.other_band, glyphs.both_bands)
        for column in range(self.canvas.width):
            centre = (column + 0.5) / self.canvas.width
            if not at[0] <= centre <= at[-1]:
                continue
            top = self._place(max(between(at, high, centre), 0.0))
            bottom = min(self._place(min(between(at, low, centre), 1.0)), rows - 1)
            for row in range(top, bottom + 1):
                glyph = glyphs.both_bands if self.canvas.cells[row][column][0] in bands else own
                self.canvas.put(column, row, glyph, "band")

    def _curve(self, fit: Fit) -> None:
        across, down = self.glyphs.dots
        at = [self.x.at(v) for v in fit.x]
        mean = [1 - self.y.at(v) for v in fit.mean]
        before: int | None = None
        for column in range(self.canvas.width * across):
            centre = (column + 0.5) / (self.canvas.width * across)
            share = between(at, mean, centre) if at[0] <= centre <= at[-1] else -1.0
            if not 0 <= share <= 1:
                before = None
                continue
            dot = self._place(share, down)
            start = dot if before is None else before + (dot > before) - (dot < before)
            before = dot
            if not inked(fit.line, column, across):
                continue
            for y in range(min(start, dot), max(start, dot) + 1):
                self.canvas.dot(column, y)
        whole = {"dashed": self.glyphs.dashed, "dotted": self.glyphs.dotted}.get(fit.line, "")
        self.canvas.flush(fit.look, whole)

    def _vertical(self, line: BreakpointLine) -> None:
        if self.x.low <= line.x <= self.x.high:
            for row in range(self.canvas.height):
                self.canvas.put(self.column(line.x), row, self.glyphs.vertical, "vertical")

    def _limit(self, limit: Limit) -> None:
        if self.y.low <= limit.y <= self.y.high:
            line = self.glyphs.limit * self.canvas.width
            self.canvas.text(0, self.row(limit.y), line, "threshold")

    def _limit_label(self, limit: Limit) -> None:
        """On the line, where it covers nothing if there is such a place; at the edge if outside."""
        label, row = f" {limit.label} ", self.row(limit.y)
        if limit.y > self.y.high:
            label += f"{self.glyphs.up} "
        elif limit.y < self.y.low:
            label += f"{self.glyphs.down} "
        starts = range(1, max(2, self.canvas.width - len(label)))
        free = (
            (start, at)
            for at in (row, row - 1, row + 1)
            for start in starts
            if self.canvas.free(start, at, len(label))
        )
        start, at = next(free, (1, row))
        self.canvas.text(start, at, label, "limit")

    def _error_bar(self, mark: Mark) -> None:
        if mark.y is None or mark.low is None or mark.high is None:
            return
        column, top, bottom = self.column(mark.x), self.row(mark.high), self.row(mark.low)
        if top == bottom:
            return
        style = "bar" if mark.valid else "invalid"
        for row in range(top + 1, bottom):
            self.canvas.put(column, row, self.glyphs.bar, style)
        self.canvas.put(column, top, self.glyphs.bar_top, style)
        self.canvas.put(column, bottom, self.glyphs.bar_bottom, style)

    def _mark(self, mark: Mark) -> None:
        row = 0 if mark.y is None else self.row(mark.y)
        own = self.glyphs.other if mark.other else self.glyphs.valid
        glyph = own if mark.valid else self.glyphs.invalid
        glyph = self.glyphs.pinned if mark.pinned else glyph
        valid = "other" if mark.other else "sample"
        style = "chosen" if mark.chosen else valid if mark.valid else "invalid"
        self.canvas.put(self.column(mark.x), row, glyph, style)
        if mark.chosen:
            self.canvas.put(self.column(mark.x) - 1, row, self.glyphs.ask_left, style)
            self.canvas.put(self.column(mark.x) + 1, row, self.glyphs.ask_right, style)

    def _label(self, line: BreakpointLine) -> None:
        """The interval and the label in the first row from the top where both are free."""
        if not self.x.low <= line.x <= self.x.high:
            return
        left, right = self.column(line.low), self.column(line.high)
        label = f" {line.label} "
        for row in range(self.canvas.height - 1):
            for start in (right + 1, left - len(label)):
                first, last = min(left, start), max(right, start + len(label) - 1)
                if self.canvas.free(first, row, last - first + 1):
                    if right > left:
                        span = self.glyphs.span * (right - left - 1)
                        span = f"{self.glyphs.span_left}{span}{self.glyphs.span_right}"
                        self.canvas.text(left, row, span, "breakpoint")
                        here = self.column(line.x)
                        self.canvas.put(here, row, self.glyphs.vertical, "breakpoint")
                    self.canvas.text(start, row, label, "breakpoint")
                    return
