"""Tables as the command line prints them."""

from __future__ import annotations


def table(headings: list[str], rows: list[list[str]]) -> str:
    """Columns that line up; what Rich would print without its colours, wide or piped."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = [headings, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
