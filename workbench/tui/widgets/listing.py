"""A long list: any number of lines, of which only those that are seen are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual import events
from textual.geometry import Offset
from textual.message import Message
from textual.strip import Strip

from workbench.tui.widgets.rows import Row, Rows, spread

RowOf = Callable[[int, bool, int], Row]
"""From index, whether the cursor is there, and width to the spans of a line."""


class Listing(Rows):
    """A heading, lines, and a cursor that is always seen."""

    DEFAULT_CSS = "Listing { height: 1fr; }"

    class Moved(Message):
        """The cursor went to another line, by key or mouse."""

    class Opened(Message):
        """The line under the cursor was clicked."""

    def __init__(self, *, id: str | None = None, tells_place: bool = False) -> None:
        super().__init__(id=id)
        self._tells_place = tells_place
        """Whether the heading ends in which lines are seen, where these are not all."""
        self.heading: Row = ()
        self.count = 0
        self.cursor = 0
        self.top = 0
        self._row_of: RowOf = lambda *_: ()

    def show_lines(self, heading: Row, count: int, row_of: RowOf, cursor: int) -> None:
        """Draw these lines from now on, with the cursor on one of them."""
        self.heading, self.count, self._row_of = heading, count, row_of
        self.cursor = max(0, min(cursor, count - 1))
        self._keep_seen()
        self.refresh()

    @property
    def page(self) -> int:
        """Lines that are seen at once."""
        return max(1, self.size.height - 1)

    def move(self, by: int) -> None:
        """Move the cursor, not beyond the ends."""
        cursor = max(0, min(self.cursor + by, self.count - 1))
        if cursor != self.cursor:
            self.cursor = cursor
            self._keep_seen()
            self.refresh()
            self.post_message(self.Moved())

    def jumps(self) -> Iterator[tuple[Offset, Callable[[], None]]]:
        """Place of every line that is seen, and what goes there, for jump mode."""
        if not self.display:
            return
        for line in range(min(self.page, self.count - self.top)):
            by = self.top + line - self.cursor
            yield self.region.offset + Offset(0, line + 1), partial(self.move, by)

    def on_resize(self) -> None:
        self._keep_seen()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        if y == 0:
            return self.strip(self._headed())
        index = self.top + y - 1
        if index >= self.count:
            return self.strip(())
        return self.strip(self._row_of(index, index == self.cursor, self.size.width))

    def _headed(self) -> Row:
        if not self._tells_place or self.count <= self.page:
            return self.heading
        ends = f"{self.top + 1}–{self.top + self.page} of {self.count} "
        words = "".join(words for words, _ in self.heading).rstrip()
        look = self.heading[0][1] if self.heading else ""
        return spread(((words, look),), ((ends, look),), self.size.width)

    def _keep_seen(self) -> None:
        top = min(max(self.top, self.cursor - self.page + 1), self.cursor)
        self.top = max(0, min(top, self.count - self.page))

    def on_click(self, event: events.Click) -> None:
        index = self.top + event.y - 1
        if event.y > 0 and index < self.count:
            here = index == self.cursor
            self.move(index - self.cursor)
            if here:
                self.post_message(self.Opened())

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(3)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-3)
