"""An action: what a user can do, where, by which keys, and what does it."""

from __future__ import annotations

from dataclasses import dataclass

Place = str
"""Where an action belongs (`commands.actions`)."""


@dataclass(frozen=True)
class Action:
    """Something that a user can do on a screen; `action_<handler>` of that screen does it."""

    id: str
    keys: tuple[str, ...]
    """In force; those of the registry are the preset `plain`'s."""
    label: str
    help: str
    place: Place
    handler: str
    """As Textual runs it, arguments included: `go('live')`."""
    rank: int = 9
    """Which are named in the line of keys first; 9 is not named there."""
    vim: tuple[str, ...] | None = None
    """Keys of the preset `vim`, where they differ."""

    @property
    def area(self) -> str:
        return self.id.partition(".")[0]

    @property
    def method(self) -> str:
        """The handler without its arguments."""
        return self.handler.partition("(")[0]

    @property
    def key_text(self) -> str:
        return " ".join(map(key_name, self.keys)) or "–"

    @property
    def first_key(self) -> str:
        return key_name(self.keys[0]) if self.keys else "–"


_KEY_NAMES = {
    "question_mark": "?",
    "colon": ":",
    "semicolon": ";",
    "slash": "/",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "full_stop": ".",
    "comma": ",",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "escape": "esc",
    "enter": "⏎",
    "space": "space",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def key_name(key: str) -> str:
    """A key as people write it: `^p`, `?`, `⏎`."""
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+')}"
    return _KEY_NAMES.get(key, key)


def action(
    place: Place,
    id: str,
    keys: str,
    handler: str,
    label: str,
    rank: int,
    help: str,
    *,
    vim: str | None = None,
) -> Action:
    """One action; `keys` and `vim` are separated by spaces."""
    other = None if vim is None else tuple(vim.split())
    return Action(id, tuple(keys.split()), label, help, place, handler, rank, other)
