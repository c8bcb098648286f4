"""The line of keys: what can be done here now, as many as fit; for some seconds what was said."""

from __future__ import annotations

from collections.abc import Iterable

from textual.keys import key_to_character

from workbench.tui.commands.action import Action, key_name
from workbench.tui.widgets.rows import Row, Rows, Span


class KeyLine(Rows):
    """Names actions by rank; `?` and `q` always have their place."""

    DEFAULT_CSS = "KeyLine { background: $panel; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._actions: list[Action] = []
        self._form: Row = ()
        self._said: Row = ()

    def say(self, said: Row) -> None:
        """A message before the keys, of which as many stay as fit; an empty one goes away."""
        self._said = said
        self._draw()

    def offer(self, actions: Iterable[Action]) -> None:
        self._actions, self._form = [a for a in actions if a.rank < 9], ()
        self._draw()

    def offer_form(self, does: Iterable[Action]) -> None:
        """The keys of a form while it is written, in which letters are text; `does`: what it is
        written for, where a key of it is none."""
        named = [(key, action.label) for action in does if (key := _beside_text(action))]
        keys = (("⏎", "Next"), *named, ("↓ ↑", "Field"), ("← →", "Choose"), ("esc", "Leave"))
        spans: list[Span] = []
        for key, label in keys:
            spans += [(f"{' ' * bool(spans)} {key}", "accent"), (f" {label}", "")]
        self._form = tuple(spans)
        self._draw()

    def _draw(self) -> None:
        room = self.size.width - sum(len(words) for words, _ in self._said)
        keys = self._form or self._row(self._actions, room - bool(self._said))
        gap: Row = ((" ", ""),) if self._said else ()
        self.show([(*self._said, *gap, *keys)])

    def _row(self, actions: list[Action], room: int) -> Row:
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


def _beside_text(action: Action) -> str:
    """Its first key that writes no character, and so works in a line of text; empty: none does."""
    return next((key_name(key) for key in action.keys if not _writes(key)), "")


def _writes(key: str) -> bool:
    """Whether it is a character, as `R`, `space` and `question_mark` are."""
    character = key_to_character(key)
    return character is not None and character.isprintable()
