"""Text of a chain for a terminal of any width."""

from __future__ import annotations

import shutil
import textwrap

from workbench.domain.chain_figures import (
    allocation,
    amount,
    figure,
    interval,
    model,
    shown_allocation,
)

__all__ = [
    "allocation", "amount", "columns", "figure", "interval", "model", "shown_allocation", "wrapped",
]  # fmt: skip

COLUMNS = 80
"""Of what is no terminal."""


def columns() -> int:
    return max(40, shutil.get_terminal_size((COLUMNS, 24)).columns)


def wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, columns(), subsequent_indent="  ", break_on_hyphens=False)
