"""The list of configurations: rows, a cursor, and the part of them that fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.heading: Row = ()
        self.selected = 0
        self.top = 0

    def show_list(self, heading: Row, rows: Sequence[Row], selected: int) -> None:
        top = self._top_for(selected, len(rows))
        moved = (heading, selected, top) != (self.heading, self.selected, self.top)
        self.heading, self.selected, self.top = heading, selected, top
        if moved or len(rows) != len(self.rows):
            self.rows = tuple(rows)
            self.refresh()
        else:
            self._show_changed(rows)

    def _show_changed(self, rows: Sequence[Row]) -> None:
        before, self.rows = self.rows, tuple(rows)
        for index, (old, new) in enumerate(zip(before, self.rows, strict=True)):
            if old != new:
                self.refresh_line(1 + index - self.top)

    def _top_for(self, selected: int, count: int) -> int:
        room = max(1, self.size.height - 1)
        top = min(max(self.top, selected - room + 1), selected)
        return max(0, min(top, count - room))

    def on_resize(self) -> None:
        self.top = 0
        self.top = self._top_for(self.selected, len(self.rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self.strip(self.heading)
        index = self.top + y - 1
        return self.strip(self.rows[index]) if index < len(self.rows) else self.strip(())

    def refresh_line(self, y: int) -> None:
        if 0 < y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def visible_rows(self) -> Iterator[tuple[int, int]]:
        """Line and index of every row that is seen, for jump mode."""
        room = min(self.size.height - 1, len(self.rows) - self.top)
        yield from ((line + 1, self.top + line) for line in range(max(0, room)))

    def on_click(self, event: events.Click) -> None:
        index = self.top + event.y - 1
        if event.y > 0 and index < len(self.rows):
            self.post_message(self.Picked(index))

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        self._scroll(event, 1)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        self._scroll(event, -1)

    def _scroll(self, event: events.MouseEvent, step: int) -> None:
        event.stop()
        room = max(1, self.size.height - 1)
        self.top = max(0, min(self.top + step, len(self.rows) - room))
        self.refresh()
