"""The line of screens: one tab each, with its key; the mouse works too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from textual import events
from textual.message import Message

from workbench.tui.widgets.rows import Rows, Span


@dataclass(frozen=True)
class Tab:
    """A screen as the line names it."""

    name: str
    key: str
    title: str
    here: bool
    """It is the one on the screen."""
    open: bool
    """It can be gone to: some need an open session."""


class TabLine(Rows):
    """Names every screen where there is room, else keys alone and the name of this one."""

    DEFAULT_CSS = "TabLine { height: 1; background: $panel; }"

    class Picked(Message):
        """A tab was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.tabs: tuple[Tab, ...] = ()
        self._starts: list[tuple[int, str]] = []

    def offer(self, tabs: tuple[Tab, ...]) -> None:
        self.tabs = tabs
        self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def places(self) -> Iterator[tuple[int, str]]:
        """Column and name of each tab that can be gone to, for jump mode."""
        able = {tab.name for tab in self.tabs if tab.open and not tab.here}
        yield from ((start, name) for start, name in self._starts if name in able)

    def _lay_out(self) -> None:
        full = sum(len(tab.key) + len(tab.title) + 3 for tab in self.tabs)
        named = full <= self.size.width
        spans: list[Span] = []
        self._starts = []
        at = 0
        title_of_here = next((len(tab.title) for tab in self.tabs if tab.here), -1) + 1
        roomy = sum(len(tab.key) + 2 for tab in self.tabs) + title_of_here <= self.size.width
        for tab in self.tabs:
            title = f" {tab.title}" if named or tab.here else ""
            label = f" {tab.key}{title} " if roomy else f"{tab.key}{title} "
            self._starts.append((at, tab.name))
            spans.append((label, "badge" if tab.here else "" if tab.open else "dim"))
            at += len(label)
        self.show([tuple(spans)])

    def on_click(self, event: events.Click) -> None:
        before = [name for start, name in self._starts if start <= event.x]
        if before and event.x < sum(len(text) for row in self.rows for text, _ in row):
            self.post_message(self.Picked(before[-1]))
