"""A log of which only the lines that are seen are made, however fast others come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from workbench.domain.event_log import LogLine
from workbench.tui.widgets.rows import Look, shortened

Words = Callable[[LogLine], tuple[str, Look]]
"""A line as it is written, and how it looks."""


class LogLines(ScrollView, can_focus=True):
    """Keeps the last line in sight, unless somebody who has the focus scrolled away from it."""

    STYLES: ClassVar[dict[Look, Style]] = {
        "": Style(),
        "strong": Style(bold=True),
        "alert": Style(bold=True, reverse=True),
    }
    DEFAULT_CSS = "LogLines { color: $foreground; overflow-y: scroll; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.lines: tuple[LogLine, ...] = ()
        self._words: Words = lambda line: (line.text, "")

    def show(self, lines: Sequence[LogLine], words: Words) -> None:
        """Draw these lines from now on; the same lines again cost nothing."""
        self._words = words
        same = len(lines) == len(self.lines) and (not lines or lines[-1] is self.lines[-1])
        if same:
            return
        follows = not self.has_focus or self.scroll_offset.y >= self.max_scroll_y
        self.lines = tuple(lines)
        widest = max((len(self._words(line)[0]) for line in self._seen_last()), default=0)
        self.virtual_size = Size(max(widest, self.virtual_size.width), len(self.lines))
        if follows:
            self._to_end()
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        del event
        if not self.has_focus:
            self._to_end()

    def _seen_last(self) -> tuple[LogLine, ...]:
        return self.lines[-max(1, self.size.height) :]

    def _to_end(self) -> None:
        self.scroll_to(y=max(0, len(self.lines) - self.size.height), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        x, top = self.scroll_offset
        width, plain = self.size.width, self.rich_style
        index = top + y
        if index >= len(self.lines):
            return Strip.blank(width, plain)
        words, look = self._words(self.lines[index])
        strip = Strip([Segment(words, plain + self.STYLES[look])]).crop(x)
        return shortened(strip, width).adjust_cell_length(width, plain)
