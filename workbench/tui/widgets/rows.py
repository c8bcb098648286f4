"""Rows of styled text, drawn without markup and only where they changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

Look = Literal["", "dim", "strong", "accent", "good", "warn", "bad", "badge", "alert"]
Span = tuple[str, Look]
Row = tuple[Span, ...]


class Rows(Widget):
    """Shows one row of spans a line; looks are words, colours come from the theme."""

    LOOKS: ClassVar[tuple[str, ...]] = (
        "dim", "strong", "accent", "good", "warn", "bad", "badge", "alert",
    )  # fmt: skip
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"rows--{look}" for look in LOOKS}
    DEFAULT_CSS = """
    Rows { height: 1; width: 1fr; }
    Rows > .rows--dim { color: $foreground 65%; }
    Rows > .rows--strong { text-style: bold; }
    Rows > .rows--accent { color: $primary; text-style: bold; }
    Rows > .rows--good { color: $success; }
    Rows > .rows--warn { color: $warning; }
    Rows > .rows--bad { color: $error; text-style: bold; }
    Rows > .rows--badge { text-style: bold reverse; }
    Rows > .rows--alert { color: $warning; text-style: bold reverse; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rows: tuple[Row, ...] = ()

    def show(self, rows: Sequence[Row]) -> None:
        """Draw these rows from now on; only lines that differ are drawn again."""
        before, self.rows = self.rows, tuple(rows)
        changed = [
            Region(0, y, self.size.width, 1)
            for y in range(max(len(before), len(self.rows)))
            if before[y : y + 1] != self.rows[y : y + 1]
        ]
        if changed:
            self.refresh(*changed)

    def show_all(self, rows: Sequence[Row]) -> None:
        """Be as high as these rows are many, and away where there are none."""
        self.display = bool(rows)
        self.styles.height = max(1, len(rows))
        self.show(rows)

    @property
    def text(self) -> str:
        return "\n".join("".join(text for text, _ in row) for row in self.rows)

    def render_line(self, y: int) -> Strip:
        row = self.rows[y] if y < len(self.rows) else ()
        return self.strip(row)

    def strip(self, row: Row) -> Strip:
        plain = self.rich_style
        segments = [
            Segment(text, self.get_component_rich_style(f"rows--{look}") if look else plain)
            for text, look in row
        ]
        width = self.size.width
        return shortened(Strip(segments), width).adjust_cell_length(width, plain)


def shortened(strip: Strip, width: int) -> Strip:
    """What there is room for: a figure or a name that is cut must not read as a whole one."""
    beyond = strip.crop(width).text if strip.cell_length > width > 0 else ""
    if not beyond.strip():
        return strip
    *_, last = strip
    return Strip([*strip.crop(0, width - 1), Segment("…", last.style)])


def fit(text: str, width: int) -> str:
    """Exactly `width` cells: padded, or cut with an ellipsis."""
    length = cell_len(text)
    if length <= width:
        return text + " " * (width - length)
    cut = text
    while cut and cell_len(cut) > width - 1:
        cut = cut[:-1]
    return (cut + "…").ljust(width) if width > 0 else ""


def spread(left: Row, right: Row, width: int) -> Row:
    """Two groups of spans at both ends of a line; the right one goes where there is no room."""
    used = sum(cell_len(text) for text, _ in left)
    wanted = sum(cell_len(text) for text, _ in right)
    if used + wanted + 1 > width:
        return left
    return (*left, (" " * (width - used - wanted), ""), *right)
