"""The list of configurations: rows, a cursor, and the part of them that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from workbench.tui.widgets.rows import Row, Rows


class ConfigurationList(Rows):
    """A heading and rows of which one is selected; it scrolls so that this one is seen."""

    class Picked(Message):
        """A row was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    class Resized(Message):
        """Its rows were made for another width."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.heading: Row = ()
        self.selected = 0
        self.top = 0
        self.count = 0
        self._row: Callable[[int], Row] = lambda _: ()

    def show_list(self, heading: Row, count: int, row: Callable[[int], Row], selected: int) -> None:
        """Show what fits of so many rows; there may be thousands, and only these are made."""
        top = self._top_for(selected, count)
        moved = (heading, selected, top) != (self.heading, self.selected, self.top)
        self.heading, self.selected, self.top = heading, selected, top
        self.count, self._row = count, row
        before, self.rows = self.rows, self._seen()
        if moved or len(before) != len(self.rows):
            self.refresh()
            return
        for line, (old, new) in enumerate(zip(before, self.rows, strict=True)):
            if old != new:
                self.refresh_line(line + 1)

    def _seen(self) -> tuple[Row, ...]:
        last = min(self.count, self.top + max(1, self.size.height - 1))
        return tuple(self._row(index) for index in range(self.top, last))

    def _top_for(self, selected: int, count: int) -> int:
        room = max(1, self.size.height - 1)
        top = min(max(self.top, selected - room + 1), selected)
        return max(0, min(top, count - room))

    def on_resize(self) -> None:
        self.top = 0
        self.top = self._top_for(self.selected, self.count)
        self.rows = self._seen()
        self.refresh()
        self.post_message(self.Resized())

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self.strip(self.heading)
        return self.strip(self.rows[y - 1] if y <= len(self.rows) else ())

    def refresh_line(self, y: int) -> None:
        if 0 < y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def visible_rows(self) -> Iterator[tuple[int, int]]:
        """Line and index of every row that is seen, for jump mode."""
        room = min(self.size.height - 1, len(self.rows))
        yield from ((line + 1, self.top + line) for line in range(max(0, room)))

    def on_click(self, event: events.Click) -> None:
        index = self.top + event.y - 1
        if event.y > 0 and index < self.count:
            self.post_message(self.Picked(index))

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._scroll(event, 1)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._scroll(event, -1)

    def _scroll(self, event: events.MouseEvent, step: int) -> None:
        event.stop()
        room = max(1, self.size.height - 1)
        self.top = max(0, min(self.top + step, self.count - room))
        self.rows = self._seen()
        self.refresh()
