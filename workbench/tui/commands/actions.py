"""The one registry of actions: it feeds keys, the line of keys, help, palette and docs/keys.md.

An action's `id` never changes; keys are bound anew by it (`keymap`). Two actions may share a key
where a screen never offers both at once (`run.pause` and `run.continue`). A *place* is where an
action belongs: `anywhere`, `session` (every screen of an open session), `draft` (every screen of
the open draft), `list` (every screen with a list and a cursor), or the name of a screen. A screen
names the places that it serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules

from workbench.tui.commands import areas
from workbench.tui.commands.action import Action, Place
from workbench.tui.commands.areas import anywhere_keys, draft_keys, session_keys
from workbench.tui.commands.catalogue import SCREENS

PLACES = ("anywhere", "session", "draft", "list", *(screen.name for screen in SCREENS))

PLACE_TITLES = {
    "list": "In a list",
    "session": "On every screen of a session",
    "draft": "On every screen of a draft",
    "anywhere": "On every screen",
}
"""As help and docs/keys.md call them; screens have their own titles."""

_SHARED = ("session_keys", "draft_keys", "anywhere_keys")


def _of_screens() -> Iterator[Action]:
    """Those of every other module of `areas`; which screen comes first makes no difference."""
    for module in sorted(module.name for module in iter_modules(areas.__path__)):
        if module not in _SHARED:
            yield from import_module(f"{areas.__name__}.{module}").ACTIONS


ACTIONS: tuple[Action, ...] = (
    *session_keys.ACTIONS,
    *_of_screens(),
    *draft_keys.ACTIONS,
    *anywhere_keys.ACTIONS,
)
"""In this order help and docs/keys.md tell them, and the line of keys those of one rank."""


def in_places(places: Iterable[Place], actions: Iterable[Action] = ACTIONS) -> tuple[Action, ...]:
    """The actions of these places, in the order of the registry."""
    wanted = set(places)
    return tuple(action for action in actions if action.place in wanted)
