"""The line in which a list's filter is typed: shown while it is in use."""

from __future__ import annotations

from textual.widgets import Input


class FilterLine(Input):
    """All of its words must be in a line, in any order and case."""

    DEFAULT_CSS = """
    FilterLine, FilterLine:focus { border: none; height: 1; padding: 0 1; background: $panel; }
    """

    def __init__(self, what: str) -> None:
        super().__init__(placeholder=f"filter: {what}", id="filter")
        self.display = False

    @property
    def words(self) -> list[str]:
        return self.value.casefold().split()

    def open(self) -> None:
        self.display = True
        self.focus()

    def shut(self) -> None:
        """Everything is shown again."""
        self.value, self.display = "", False
