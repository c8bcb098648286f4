"""A canvas of terminal cells: dots finer than a cell for curves, characters for everything else."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

GlyphSet = Literal["braille", "block", "ascii"]
LineStyle = Literal["solid", "dashed", "dotted"]


@dataclass(frozen=True)
class Glyphs:
    """The characters of a plot. No meaning hangs on colour, so each thing has a shape."""

    dots: tuple[int, int]
    """Dots per cell, across and down."""
    valid: str = "●"
    other: str = "◆"
    """A valid sample of a second series."""
    invalid: str = "×"
    pinned: str = "★"
    asked: str = "◇"
    band: str = "░"
    other_band: str = "▒"
    both_bands: str = "▓"
    curve: str = "─"
    dashed: str = ""
    """In place of `curve` where dots are whole cells; elsewhere dots are left out."""
    dotted: str = ""
    bar: str = "│"
    bar_top: str = "┬"
    bar_bottom: str = "┴"
    vertical: str = "┊"
    limit: str = "╌"
    span: str = "─"
    span_left: str = "├"
    span_right: str = "┤"
    ask: str = "━"
    ask_left: str = "┝"
    ask_right: str = "┥"
    axis_x: str = "─"
    axis_y: str = "│"
    corner: str = "└"
    tick_x: str = "┬"
    tick_y: str = "┤"
    up: str = "↑"
    down: str = "↓"
    rising: str = "▲"
    falling: str = "▼"
    """In the heading of a column that lines are sorted by."""
    unsure: str = "╌"
    """A stretch of the axis that is a guess."""

    def line(self, style: LineStyle) -> str:
        """A curve of that style as a key shows it, four cells wide."""
        if style == "solid":
            return self.curve * 4
        if self.dots == (1, 1):
            return (self.dashed if style == "dashed" else self.dotted) * 4
        return f"{self.curve * 2} {self.curve}" if style == "dashed" else f"{self.curve} " * 2


GLYPHS: dict[GlyphSet, Glyphs] = {
    "braille": Glyphs((2, 4), curve="⠤"),
    "block": Glyphs((1, 2), curve="▀"),
    "ascii": Glyphs(
        dots=(1, 1),
        valid="o",
        other="@",
        invalid="x",
        pinned="#",
        asked="?",
        band=":",
        other_band=";",
        both_bands="%",
        curve="*",
        dashed="=",
        dotted=".",
        bar="|",
        bar_top="|",
        bar_bottom="|",
        vertical="!",
        limit="-",
        span="-",
        span_left="<",
        span_right=">",
        ask="=",
        ask_left="[",
        ask_right="]",
        axis_x="-",
        axis_y="|",
        corner="+",
        tick_x="+",
        tick_y="+",
        up="^",
        down="v",
        rising="^",
        falling="v",
        unsure="~",
    ),
}

_BRAILLE_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_HALVES = {1: "▀", 2: "▄", 3: "█"}

_ASCII = str.maketrans("≤≥–…", "<>-~")

Cell = tuple[str, str]
"""A character and the name of its style."""

BLANK: Cell = (" ", "")


@dataclass
class Canvas:
    """Cells in rows from the top. What is drawn later covers what was drawn before."""

    width: int
    height: int
    glyphs: Glyphs
    cells: list[list[Cell]] = field(init=False)
    _bits: dict[tuple[int, int], int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.cells = [[BLANK] * self.width for _ in range(self.height)]

    def put(self, x: int, y: int, character: str, style: str) -> None:
        if 0 <= x < self.width and 0 <= y < self.height:
            self.cells[y][x] = (character, style)

    def text(self, x: int, y: int, text: str, style: str) -> None:
        if self.glyphs.dots == (1, 1):
            text = text.translate(_ASCII)
        for offset, character in enumerate(text):
            self.put(x + offset, y, character, style)

    def dot(self, x: int, y: int) -> None:
        """Set one dot; dots become characters with `flush`."""
        across, down = self.glyphs.dots
        cell = (x // across, y // down)
        bit = _BRAILLE_BITS[y % 4][x % 2] if down == 4 else 1 << (y % down)
        self._bits[cell] = self._bits.get(cell, 0) | bit

    def flush(self, style: str, whole: str = "") -> None:
        """Draw the dots that were set since the last flush, by `whole` where dots are cells."""
        down = self.glyphs.dots[1]
        for (x, y), bits in self._bits.items():
            if down == 4:
                character = chr(0x2800 + bits)
            else:
                character = _HALVES[bits] if down == 2 else whole or self.glyphs.curve
            self.put(x, y, character, style)
        self._bits.clear()

    def free(self, x: int, y: int, length: int) -> bool:
        """Whether a text of that length fits there without covering a mark, a curve or a text."""
        if x < 0 or x + length > self.width or not 0 <= y < self.height:
            return False
        return all(style not in _TEXTS for _, style in self.cells[y][x : x + length])


_TEXTS = frozenset(
    {"breakpoint", "limit", "sample", "other", "invalid", "note", "curve", "second", "third"}
)


@dataclass(frozen=True)
class Axis:
    """A range of values on a number of cells, linear or logarithmic."""

    low: float
    high: float
    log: bool

    def at(self, value: float) -> float:
        """Where a value lies: 0 at the low end, 1 at the high end."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        value = max(value, self.low * 1e-6)
        return math.log(value / self.low) / math.log(self.high / self.low)

    def wider(self, below: float, above: float) -> Axis:
        """The same with more room at its ends, as shares of it."""
        if not self.log:
            span = self.high - self.low
            return Axis(self.low - below * span, self.high + above * span, log=False)
        ratio = self.high / self.low
        return Axis(self.low / ratio**below, self.high * ratio**above, log=True)

    def ticks(self, most: int) -> tuple[float, ...]:
        """At most `most` round values in the range."""
        most = max(1, most)
        return self._log_ticks(most) if self.log else self._linear_ticks(most)

    def _linear_ticks(self, most: int) -> tuple[float, ...]:
        step = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(step))
        step = next(power * m for m in (1, 2, 5, 10, 20) if power * m >= step * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return tuple(i * step for i in range(first, last + 1))

    def _log_ticks(self, most: int) -> tuple[float, ...]:
        """Of 1, 2, 5, 10, ... as many as fit, two at least: one tick says nothing of a scale."""
        first = math.floor(math.log10(self.low))
        last = math.ceil(math.log10(self.high))
        found: tuple[float, ...] = ()
        for mantissas, stride in (((1, 2, 5), 1), ((1, 5), 1), ((1,), 1), ((1,), 2), ((1,), 3)):
            ticks = tuple(
                m * 10.0**power
                for power in range(first, last + 1)
                if power % stride == 0
                for m in mantissas
                if self.low * 0.999 <= m * 10.0**power <= self.high * 1.001
            )
            if len(ticks) < 2:
                break
            found = ticks
            if len(ticks) <= most:
                break
        finer = (self._linear_ticks(most + more) for more in range(6))
        return found or next((ticks for ticks in finer if len(ticks) > 1), ())


def inked(line: LineStyle, dot: int, across: int) -> bool:
    """Whether a curve of that style has ink at a column of dots. Where dots are whole cells, the
    character tells styles apart."""
    if line == "solid" or across == 1:
        return line == "solid" or dot % 3 < (2 if line == "dashed" else 1)
    return dot % 6 < 4 if line == "dashed" else dot % 3 == 0


def between(at: Sequence[float], values: Sequence[float], x: float) -> float:
    """Linear interpolation; `x` lies in the range of `at`."""
    right = min(bisect_right(at, x), len(at) - 1)
    left = right - 1
    width = at[right] - at[left]
    share = (x - at[left]) / width if width > 0 else 0.0
    return values[left] + share * (values[right] - values[left])
