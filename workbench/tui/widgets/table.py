"""A table whose lines have keys: it changes only what differs and keeps cursor and scroll."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rich.text import Text
from textual.coordinate import Coordinate
from textual.geometry import Offset
from textual.widgets import DataTable

from workbench.tui.text import plain
from workbench.tui.widgets.rows import fit

Line = tuple[str, Sequence[str]]
"""Its key, and a text for each column."""
Heading = tuple[str, str, int]
"""Of a column: its key, what stands above it, and its width in cells."""


class CursorTable(DataTable[Text], inherit_bindings=False):
    """Columns have fixed widths, the last one at least its own and what is left; texts are drawn as
    they are, never as markup.

    Its keys are the registry's, at the place `list`, so that they can be bound anew.
    """

    DEFAULT_CSS = """
    CursorTable { height: 1fr; background: $background; scrollbar-size: 1 1; overflow-x: hidden; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, cursor_type="row", zebra_stripes=False, cell_padding=0)
        self.layout_of: tuple[Heading, ...] = ()
        self._was_on = ""

    def show_columns(self, headings: Sequence[Heading]) -> None:
        """Have these columns from now on; where they differ, lines are to be filled in anew."""
        layout = tuple((key, words, max(width, len(words)) + 1) for key, words, width in headings)
        if layout == self.layout_of:
            return
        self._was_on, self.layout_of = self.here or self._was_on, layout
        self.clear(columns=True)
        for key, words, width in layout:
            self.add_column(Text(words, no_wrap=True), key=key, width=width)
        self._widen_last()

    def on_resize(self) -> None:
        self._widen_last()

    def _widen_last(self) -> None:
        if self.layout_of:
            *others, (_, _, least) = self.layout_of
            left = self.size.width - sum(width for _, _, width in others)
            last, width = self.ordered_columns[-1], max(least, left)
            if last.width != width:
                last.width = width
                self.refresh()  # lines may be drawn before anybody hears of the size

    @property
    def here(self) -> str:
        """The key of the line under the cursor; empty where there is none."""
        if not self.is_valid_row_index(self.cursor_row):
            return ""
        return self.coordinate_to_cell_key(Coordinate(self.cursor_row, 0)).row_key.value or ""

    def keys(self) -> list[str]:
        return [row.key.value or "" for row in self.ordered_rows]

    def fill(self, lines: Sequence[Line]) -> None:
        """Show these lines; what stays where it was is drawn again only if it differs."""
        before, after = self.keys(), [key for key, _ in lines]
        if before and after[: len(before)] == before:
            self._update(lines[: len(before)])
            for key, cells in lines[len(before) :]:
                self.add_row(*self._texts(cells), key=key)
            return
        self._was_on, top = self.here or self._was_on, self.scroll_offset.y
        self.clear()
        for key, cells in lines:
            self.add_row(*self._texts(cells), key=key)
        here = self._was_on  # found again also after a filter that let nothing through
        row = after.index(here) if here in after else _nearest(here, before, after)
        if row is not None:
            self.move_cursor(row=row, scroll=False)
            self.scroll_to(y=top, animate=False)

    def _update(self, lines: Sequence[Line]) -> None:
        for key, cells in lines:
            for (column, *_), text in zip(self.layout_of, self._texts(cells), strict=True):
                if self.get_cell(key, column) != text:
                    self.update_cell(key, column, text, update_width=False)

    def _texts(self, cells: Sequence[str]) -> list[Text]:
        """Each ends before the next column begins; the last one where there is no more room."""
        *first, last = map(plain, cells)
        widths = (width - 1 for _, _, width in self.layout_of)
        cut = [fit(cell, width) for cell, width in zip(first, widths, strict=False)]
        return [Text(cell, no_wrap=True, overflow="ellipsis") for cell in (*cut, last)]

    @property
    def page(self) -> int:
        """Lines that are seen at once."""
        return max(1, self.size.height - self.header_height)

    def move(self, by: int) -> None:
        """Move the cursor, not beyond the ends."""
        self.move_cursor(row=max(0, min(self.cursor_row + by, self.row_count - 1)))

    def go_to(self, key: str) -> None:
        """Put the cursor on a line, and the focus on the table. Lines are replaced at any time:
        where that one is gone, the cursor stays where it is."""
        keys = self.keys()
        if key in keys:
            self.move_cursor(row=keys.index(key))
        self.focus()

    def jumps(self) -> Iterator[tuple[Offset, Callable[[], None]]]:
        """Place of every line that is seen, and what goes there, for jump mode."""
        if not self.display:
            return
        top = int(self.scroll_offset.y)
        for line, key in enumerate(self.keys()[top : top + self.page]):
            place = self.region.offset + Offset(0, self.header_height + line)
            yield place, partial(self.go_to, key)


def _nearest(gone: str, before: Sequence[str], after: Sequence[str]) -> int | None:
    """The row of what followed a line that is gone, else of what stood before it; None where
    nothing is left of what was there."""
    if gone not in before:
        return None
    place, rows = before.index(gone), {key: row for row, key in enumerate(after)}
    near = [*before[place + 1 :], *reversed(before[:place])]
    return next((rows[key] for key in near if key in rows), None)
