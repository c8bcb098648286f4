"""Tables of answers on a screen: the texts of command line and pages, as far as they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from rich.cells import cell_len

from workbench.domain.answer_tables import AnswerTable, Cell
from workbench.domain.samples import Estimate
from workbench.tui import text
from workbench.tui.columns import ListColumn
from workbench.tui.widgets.rows import fit

GAP = 2
"""Cells between columns."""
NAME = 12
"""Cells that the first column keeps, which is cut to a third of the width; and other texts."""
LEAST = 8
"""Cells of a last column of texts without which it is not shown; more, where it asks for more."""


@dataclass(frozen=True)
class LaidOut:
    """A table within a width. Of each line the figures, and the sentence that ends it."""

    shown: int
    """Columns that there is room for."""
    heading: str
    lines: tuple[tuple[str, str], ...]


def laid_out(table: AnswerTable, width: int, headings: Sequence[str] = ()) -> LaidOut:
    """Names to the left, figures to the right; where there is no room texts are cut, then columns
    at the right go.

    A last column of texts has what is left and is cut there. `headings` stand above in place of
    the columns' own.
    """
    rows = [[text.sentence(cell) for cell in row] for row in table.texts]
    columns = [list(column) for column in zip(headings or table.headings, *rows, strict=True)]
    right = [_is_of_figures(cells) for cells in zip(*table.rows, strict=True)]
    right = right or [False] * len(columns)
    widths = [
        max(column.width, *map(cell_len, cells))
        for column, cells in zip(table.columns, columns, strict=True)
    ]
    widths[0] = min(widths[0], max(NAME, width // 3))
    ends = len(columns) > 1 and not right[-1]
    count = len(columns) - ends
    least = min(widths[-1], max(LEAST, table.columns[-1].width))
    last = least + GAP if ends else 0
    texts = [i for i in range(1, count) if not right[i]]
    while (excess := sum(widths[:count]) + GAP * (count - 1) + last - width) > 0:
        widest = max(texts, key=widths.__getitem__, default=0)
        if widths[widest] <= NAME or not widest:
            break
        widths[widest] = max(NAME, widths[widest] - excess)
    while count > 1 and sum(widths[:count]) + GAP * (count - 1) > width:
        count -= 1
    room = width - sum(widths[:count]) - GAP * count
    ends = ends and count == len(columns) - 1 and room >= least

    def line(place: int) -> tuple[str, str]:
        cells = [_padded(columns[i][place], widths[i], to_the_right=right[i]) for i in range(count)]
        last = " " * GAP + fit(columns[-1][place], room) if ends else ""
        return (" " * GAP).join(cells), last

    return LaidOut(count + ends, "".join(line(0)), tuple(map(line, range(1, len(rows) + 1))))


def columns_of(table: AnswerTable) -> tuple[ListColumn[tuple[Cell, ...]], ...]:
    """What its rows can be sorted by: all columns without that of the names."""

    def column(place: int) -> ListColumn[tuple[Cell, ...]]:
        known = table.columns[place]

        def written(row: tuple[Cell, ...]) -> str:
            return known.text(row[place])

        return ListColumn(known.title, known.width, written, itemgetter(place), known.falling)

    return tuple(map(column, range(1, len(table.columns))))


def _is_of_figures(cells: Sequence[Cell]) -> bool:
    """Also where some are missing, or a word stands in place of one."""
    named = [cell for cell in cells if cell is not None]
    return not named or any(isinstance(cell, int | float | Estimate) for cell in named)


def _padded(words: str, width: int, *, to_the_right: bool) -> str:
    if not to_the_right:
        return fit(words, width)
    return " " * (width - cell_len(words)) + words
