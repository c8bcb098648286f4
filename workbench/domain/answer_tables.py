"""What an answer lays out once: tables of figures that terminal, page and file render alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workbench.domain.chain_figures import figure, interval
from workbench.domain.samples import Estimate

Cell = str | int | float | Estimate | None
"""None: the answer has no such figure."""


@dataclass(frozen=True)
class AnswerColumn:
    """A heading, and how its numbers are written.

    `format` is a format specification, as `.1%`; empty: three digits, without powers of ten.
    """

    title: str
    format: str = ""
    width: int = 0
    """Cells that a screen keeps for it, so that it stays in place as figures come."""
    falling: bool = False
    """Whether the greatest is the best."""
    spare: int = 0
    """Left out where a terminal has no room for all: the greatest first; 0: never."""
    wraps: bool = False
    """Whether its cells may take several lines there: words and not figures."""

    def text(self, cell: Cell) -> str:
        """A cell as it is read: `-` where there is no figure, an interval in brackets."""
        if cell is None:
            return "-"
        if isinstance(cell, str | int):
            return str(cell)
        if isinstance(cell, Estimate):
            return interval(cell)
        return format(cell, self.format) if self.format else figure(cell)


@dataclass(frozen=True)
class AnswerTable:
    """`columns` and every row are of one length; the first column names the row."""

    columns: tuple[AnswerColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(
        cls, titles: Iterable[str | AnswerColumn], rows: Iterable[Iterable[Cell]]
    ) -> AnswerTable:
        """A plain title is a column of texts, counts and figures of three digits."""
        columns = (AnswerColumn(t) if isinstance(t, str) else t for t in titles)
        return cls(tuple(columns), tuple(map(tuple, rows)))

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(column.title for column in self.columns)

    @property
    def texts(self) -> tuple[tuple[str, ...], ...]:
        """Every row as it is read."""
        return tuple(
            tuple(c.text(cell) for c, cell in zip(self.columns, row, strict=True))
            for row in self.rows
        )
