"""The line of keys: what can be done here now, as many as fit."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.tui.commands.action import Action
from workbench.tui.widgets.rows import Row, Rows, Span


class KeyLine(Rows):
    """Names actions by rank; `?` and `q` always have their place."""

    DEFAULT_CSS = "KeyLine { background: $panel; }"

    def offer(self, actions: Iterable[Action]) -> None:
        self.show([self._row([a for a in actions if a.rank < 9])])

    def offer_form(self, enter: str) -> None:
        """The keys of a form while it is written, in which letters are text."""
        keys = (("⏎", enter), ("↓ ↑", "Field"), ("← →", "Choose"), ("esc", "Leave"))
        spans: list[Span] = []
        for key, label in keys:
            spans += [(f"{' ' * bool(spans)} {key}", "accent"), (f" {label}", "")]
        self.show([tuple(spans)])

    def _row(self, actions: list[Action]) -> Row:
        room = self.size.width
        chosen: list[Action] = []
        for action in sorted(actions, key=lambda a: a.rank):
            if (length := _length(action)) <= room:
                chosen.append(action)
                room -= length
        gap = "  " if room >= len(chosen) else " "
        spans: list[Span] = []
        for action in sorted(chosen, key=actions.index):
            spans += [(gap[1:] + f" {action.first_key}", "accent"), (f" {action.label}", "")]
        return tuple(spans)


def _length(action: Action) -> int:
    return len(action.first_key) + len(action.label) + 2
