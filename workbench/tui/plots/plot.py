"""The one plot widget: a KPI over `wl` with samples, fit, next interval, breakpoints and SLA.

It draws a `Figure` on our own canvas. Neither textual-plot nor textual-plotext draws what is needed
(log axes with unequal error bars, a band, labels on lines) in the time there is: see
docs/benchmarks-plot.md. Everything else in the workbench knows only `ProfilePlot.show`.
"""

from __future__ import annotations

import locale
import os
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.strip import Strip
from textual.widget import Widget

from workbench.tui.plots.canvas import GLYPHS, Cell, GlyphSet
from workbench.tui.plots.figure import Figure, draw

GLYPHS_VARIABLE = "WORKBENCH_GLYPHS"
"""Environment variable that chooses `braille`, `block` or `ascii` where the guess is wrong."""


def terminal_glyphs() -> GlyphSet:
    """What the terminal can draw: braille, blocks on the Linux console, else ASCII."""
    chosen = os.environ.get(GLYPHS_VARIABLE, "")
    for name in GLYPHS:
        if chosen == name:
            return name
    if "utf" not in locale.getpreferredencoding(False).lower():
        return "ascii"
    return "block" if os.environ.get("TERM") == "linux" else "braille"


class ProfilePlot(Widget):
    """Draws one figure; redraws only when the figure, the size or the theme changes."""

    STYLES: ClassVar[tuple[str, ...]] = (
        "axis", "tick", "band", "curve", "second", "third", "bar", "sample", "other", "invalid",
        "chosen", "asked", "vertical", "breakpoint", "limit", "threshold", "note", "along",
    )  # fmt: skip
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"plot--{name}" for name in STYLES}
    DEFAULT_CSS = """
    ProfilePlot { height: 1fr; width: 1fr; }
    ProfilePlot > .plot--axis { color: $foreground 50%; }
    ProfilePlot > .plot--tick { color: $foreground 80%; }
    ProfilePlot > .plot--band { color: $primary 45%; }
    ProfilePlot > .plot--curve { color: $primary; }
    ProfilePlot > .plot--second { color: $warning; }
    ProfilePlot > .plot--third { color: $success; }
    ProfilePlot > .plot--along { color: $foreground; text-style: bold; }
    ProfilePlot > .plot--bar { color: $foreground; }
    ProfilePlot > .plot--sample { color: $foreground; text-style: bold; }
    ProfilePlot > .plot--other { color: $secondary; text-style: bold; }
    ProfilePlot > .plot--invalid { color: $error; text-style: bold; }
    ProfilePlot > .plot--chosen { text-style: bold reverse; }
    ProfilePlot > .plot--asked { color: $warning; text-style: bold; }
    ProfilePlot > .plot--vertical { color: $success; }
    ProfilePlot > .plot--breakpoint { color: $success; text-style: bold; }
    ProfilePlot > .plot--limit { color: $secondary; }
    ProfilePlot > .plot--threshold { color: $secondary; }
    ProfilePlot > .plot--note { color: $foreground 70%; }
    """

    def __init__(self, *, glyphs: GlyphSet | None = None, id: str | None = None) -> None:
        super().__init__(id=id)
        self.glyphs = GLYPHS[glyphs or terminal_glyphs()]
        self.figure = Figure()
        self._title = ""
        self._strips: list[Strip] = []

    def show(self, figure: Figure, title: str = "") -> None:
        """Draw this figure from now on; the same figure again costs nothing."""
        if title != self._title:
            self._title = title
            self.border_title = Content(title)
        if figure != self.figure:
            self.figure = figure
            self._draw_key()
            self._redraw()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._redraw()

    def on_resize(self) -> None:
        self._draw_key()
        self._redraw()

    def _draw_key(self) -> None:
        """What marks and curves are, as far as there is room: the figure's own names, or those of
        a profile."""
        if key := list(self.figure.key(self.glyphs)):
            self.border_subtitle = self._fitting(key)
            return
        g = self.glyphs
        names = [f"{g.valid} valid", f"{g.invalid} not valid"]
        if self.size.width >= 64:
            names += [f"{g.curve * 2} fit", f"{g.band * 2} 95 % band"]
        else:
            names.append(f"{g.band} band")
        self.border_subtitle = self._fitting(
            [*names, f"{g.asked} next", f"{g.vertical} breakpoint"]
        )

    def _fitting(self, names: list[str]) -> Content:
        """As many as there is room for, none in part."""
        words = names[0]
        for name in names[1:]:
            words += f"  {name}" if len(words) + len(name) + 8 <= self.size.width else ""
        return Content(words)

    def render_line(self, y: int) -> Strip:
        if y < len(self._strips):
            return self._strips[y]
        return Strip.blank(self.size.width, self.rich_style)

    def _redraw(self) -> None:
        if not self.is_attached or not self.size:
            return
        canvas = draw(self.figure, self.size.width, self.size.height, self.glyphs)
        styles = {name: self.get_component_rich_style(f"plot--{name}") for name in self.STYLES}
        styles[""] = self.rich_style
        self._strips = [_strip(row, styles) for row in canvas.cells]
        self.refresh()


def _strip(row: list[Cell], styles: dict[str, Style]) -> Strip:
    """A row of cells with neighbours of one style joined."""
    segments: list[Segment] = []
    run, current = "", row[0][1]
    for character, style in row:
        if style != current:
            segments.append(Segment(run, styles[current]))
            run, current = "", style
        run += character
    segments.append(Segment(run, styles[current]))
    return Strip(segments, len(row))
