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
    short: str
    here: bool
    """It is the one on the screen."""
    open: bool
    """It can be gone to: some need an open session."""
    always: bool = True
    """Else it stands there while it is the one on the screen."""


class TabLine(Rows):
    """Names every screen: with room around the names, without, or by short ones.

    Where even those do not fit it has keys alone, and the name of this screen.
    """

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
        spans: list[Span] = []
        self._starts = []
        at = 0
        shown = tuple(tab for tab in self.tabs if tab.always or tab.here)
        for tab, (key, name) in zip(shown, self._labels(shown), strict=True):
            self._starts.append((at, tab.name))
            at += len(key + name)
            if tab.here:
                spans.append((key + name, "badge"))
            elif tab.open:
                spans += [(key, "accent"), (name, "")]
            else:
                spans.append((key + name, "dim"))
        self.show([tuple(spans)])

    def _labels(self, shown: tuple[Tab, ...]) -> list[tuple[str, str]]:
        """Key and name of each tab, as wide as there is room for."""
        ways = (
            [(f" {tab.key}", f" {tab.title} ") for tab in shown],
            [(tab.key, f"{tab.title} ") for tab in shown],
            [(tab.key, f"{tab.short} ") for tab in shown],
            [(f" {tab.key}", f" {tab.title} " if tab.here else " ") for tab in shown],
            [(tab.key, f" {tab.title} " if tab.here else " ") for tab in shown],
        )
        fitting = (way for way in ways if sum(map(_width, way)) <= self.size.width)
        return next(fitting, ways[-1])

    def on_click(self, event: events.Click) -> None:
        before = [name for start, name in self._starts if start <= event.x]
        if before and event.x < sum(len(text) for row in self.rows for text, _ in row):
            self.post_message(self.Picked(before[-1]))


def _width(label: tuple[str, str]) -> int:
    key, name = label
    return len(key) + len(name)
