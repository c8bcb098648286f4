"""Tables as the command line prints them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.domain.answer_tables import AnswerTable


def _table(headings: list[str], rows: list[list[str]]) -> str:
    """Columns that line up; what Rich would print without its colours, wide or piped."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = [headings, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def lines_of(answer: AnswerTable) -> list[str]:
    """A table of an answer, line by line."""
    return whole(answer).splitlines()


def whole(answer: AnswerTable) -> str:
    """A table of an answer, however wide."""
    return _table(list(answer.headings), list(map(list, answer.texts)))


LEAST = 10
"""Characters that a column keeps which is cut."""


def terminal_columns() -> int | None:
    """How wide a table may be; None where it goes into a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitted(answer: AnswerTable, columns: int | None, first: Sequence[str]) -> str:
    """A table of an answer no wider than a terminal: nothing wraps.

    The columns called `first` are cut, in that order, then left out; the one at the very left is
    cut last.
    """
    headings, rows = list(answer.headings), list(map(list, answer.texts))
    if columns is None:
        return _table(headings, rows)
    shown = [list(column) for column in zip(headings, *rows, strict=True)]

    def over() -> int:
        widths = [max(map(len, column)) for column in shown]
        return sum(widths) + 2 * (len(widths) - 1) - columns

    def cut(column: list[str]) -> None:
        width = max(map(len, column))
        keep = max(LEAST, width - over())
        column[:] = [cell if len(cell) <= keep else f"{cell[: keep - 1]}…" for cell in column]

    for heading in first:
        for column in shown:
            if column[0] == heading and over() > 0:
                cut(column)
    for heading in reversed(first):
        if over() > 0:
            shown = [column for column in shown if column[0] != heading]
    if over() > 0:
        cut(shown[0])
    headings, *rows = (list(line) for line in zip(*shown, strict=True))
    return _table(headings, rows)
