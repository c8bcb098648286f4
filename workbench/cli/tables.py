"""Tables as the command line prints them."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.domain.answer_tables import AnswerColumn, AnswerTable


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


def prose(words: str, columns: int | None) -> str:
    """A sentence in lines of whole words; in one where it goes into a file or a pipe."""
    if columns is None:
        return words
    return textwrap.fill(words, columns, subsequent_indent="  ", break_on_hyphens=False)


def laid_out(answer: AnswerTable, columns: int | None) -> str:
    """A table of an answer no wider than a terminal, whose lines do not wrap.

    Headings are folded, then cells of words; then columns are left out by how `spare` they are, and
    named below. Where that is not enough either the first column is cut.
    """
    if columns is None:
        return whole(answer)
    kept, left_out = list(range(len(answer.columns))), list[str]()
    by_spare = sorted(
        (i for i in kept if answer.columns[i].spare), key=lambda i: answer.columns[i].spare
    )
    while (widths := _widths(answer, kept, columns, LEAST_WORDS)) is None and by_spare:
        gone = by_spare.pop()
        kept.remove(gone)
        left_out.insert(0, answer.headings[gone])
    widths = widths or _widths(answer, kept, columns, LEAST)
    if widths is None:
        widths = _narrowest(answer, kept, LEAST)
        widths[0] = max(min(LEAST, widths[0]), widths[0] - (_total(widths) - columns))
    lines = _folded([answer.headings[i] for i in kept], widths)
    lines.append(["-" * width for width in widths])
    for row in answer.texts:
        lines += _folded(_cut([row[i] for i in kept], widths[0], answer.columns[0]), widths)
    shown = "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    if not left_out:
        return shown
    told = (
        f"(no room here for: {'; '.join(left_out)}. A wider terminal, a pipe and --json have them)"
    )
    return f"{shown}\n{prose(told, columns)}"


def _cut(cells: list[str], width: int, column: AnswerColumn) -> list[str]:
    """A row whose first cell, which names it, is no wider."""
    first, *others = cells
    if column.wraps or len(first) <= width:
        return cells
    return [f"{first[: width - 1]}…", *others]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _columns_of(answer: AnswerTable, kept: Sequence[int]) -> list[list[str]]:
    return [[row[i] for row in answer.texts] for i in kept]


def _narrowest(answer: AnswerTable, kept: Sequence[int], least: int) -> list[int]:
    """With headings folded as far as they go, and words to `least` cells a line."""
    found = []
    for i, cells in zip(kept, _columns_of(answer, kept), strict=True):
        widest = max(map(len, cells), default=0)
        if answer.columns[i].wraps:
            widest = min(widest, least)
        found.append(max(widest, *(len(word) for word in answer.headings[i].split())))
    return found


def _widths(answer: AnswerTable, kept: Sequence[int], columns: int, least: int) -> list[int] | None:
    """Of columns that fit, words as wide as there is room for; None where they do not."""
    natural = [
        max(map(len, (answer.headings[i], *cells)))
        for i, cells in zip(kept, _columns_of(answer, kept), strict=True)
    ]
    widths = _narrowest(answer, kept, least)
    left = columns - _total(widths)
    if left < 0:
        return None
    for place in sorted(range(len(kept)), key=lambda place: not answer.columns[kept[place]].wraps):
        more = min(left, natural[place] - widths[place])
        widths[place] += more
        left -= more
    return widths


def _folded(cells: Sequence[str], widths: Sequence[int]) -> list[list[str]]:
    """A row in as many lines as its longest cell takes."""
    parts = [
        textwrap.wrap(c, width, break_on_hyphens=False) or [""]
        for c, width in zip(cells, widths, strict=True)
    ]
    return [list(line) for line in zip_longest(*parts, fillvalue="")]


LEAST = 10
"""Characters that a column keeps which is cut."""
LEAST_WORDS = 24
"""Of a line of words in a table, as long as something else may be left out."""


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
