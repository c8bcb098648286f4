"""Which keys are in force: a preset, and what the user's `keys.toml` binds anew.

```toml
preset = "vim"              # or "plain", which is the default

[keys]
"view.freeze" = ["f", "space"]
"run.abort" = []            # no key: the palette still has it
```

What cannot be used is left out and named in a sentence; nothing in the file stops the screen.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from textual.keys import Keys, _character_to_key

from workbench.domain.naming import nearest
from workbench.tui.commands.action import Action
from workbench.tui.commands.actions import ACTIONS
from workbench.tui.commands.catalogue import SCREENS
from workbench.tui.text import plain

Preset = Literal["plain", "vim"]

_NAMED = {key.value for key in Keys} | {"space"}
_FORMER_IDS = {
    **{f"wheel.{one}": f"control.{one}" for one in ("ask", "give", "keep")},
    **{f"grid.{one}": f"campaign.{one}" for one in ("edit", "target", "settings", "down", "up")},
    "go.grid": "go.campaign",
    "chain.grid": "chain.campaign",
}
"""As actions were called up to 0.3; a file that was written then is still understood."""
_MODIFIERS = ("ctrl+", "shift+", "alt+")


@dataclass(frozen=True)
class Keymap:
    """Every action with the keys in force, and what was wrong with the file."""

    actions: tuple[Action, ...]
    preset: Preset = "plain"
    problems: tuple[str, ...] = ()
    """Sentences; what they are about is not in force."""


def preset_actions(preset: Preset) -> tuple[Action, ...]:
    """The registry with the keys of a preset."""
    if preset == "plain":
        return ACTIONS
    return tuple(a if a.vim is None else replace(a, keys=a.vim) for a in ACTIONS)


def load(path: Path | None) -> Keymap:
    """The keymap of a file; the preset `plain` where there is none."""
    if path is None:
        return Keymap(ACTIONS)
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Keymap(ACTIONS)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return Keymap(ACTIONS, problems=(plain(f"{path.name} cannot be read: {reason}."),))
    return keymap_of(given, path.name)


def keymap_of(given: Mapping[str, Any], name: str) -> Keymap:
    """The keymap that a file's content asks for."""
    problems: list[str] = []
    unknown = sorted(set(given) - {"preset", "keys"})
    problems += [f"{name}: there is no setting {key!r}; use preset and [keys]." for key in unknown]
    preset: Preset = "plain"
    match given.get("preset", "plain"):
        case "plain" | "vim" as chosen:
            preset = chosen
        case other:
            problems.append(f"{name}: there is no preset {other!r}; use plain or vim.")
    actions = {action.id: action for action in preset_actions(preset)}
    table = given.get("keys", {})
    if not isinstance(table, Mapping):
        problems.append(f"{name}: keys must be a table: [keys].")
        table = {}
    wanted: dict[str, Action] = {}
    for written, value in table.items():
        id = _FORMER_IDS.get(written, written)
        if id not in actions:
            problems.append(f"{name}: there is no action {id!r}{_perhaps(id, list(actions))}.")
            continue
        keys = [value] if isinstance(value, str) else value
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            problems.append(f"{name}: {id} must be a key or a list of keys.")
            continue
        named = {key: key_of(key) for key in keys}
        problems += [
            f"{name}: {key!r}, for {id}, is not a key." for key, known in named.items() if not known
        ]
        found = tuple(known for known in named.values() if known)
        if found or not keys:
            wanted[id] = replace(actions[id], keys=found)
    problems += [f"{name}: {sentence}" for sentence in _settle(actions, wanted)]
    return Keymap(tuple((actions | wanted).values()), preset, tuple(map(plain, problems)))


def key_of(written: str) -> str:
    """The key as Textual calls it; empty where there is no such key."""
    text = written.strip()
    if text.startswith("^") and len(text) > 1:
        text = f"ctrl+{text[1:]}"
    for modifier in _MODIFIERS:
        if text.startswith(modifier):
            rest = key_of(text.removeprefix(modifier))
            return f"{modifier}{rest}" if rest else ""
    if len(text) == 1:
        return _character_to_key(text)
    if text.isidentifier() and text in {_character_to_key(c) for c in map(chr, range(33, 127))}:
        return text
    return text if text in _NAMED else ""


def _settle(actions: Mapping[str, Action], wanted: dict[str, Action]) -> list[str]:
    """Take those keys out of `wanted` that would mean two things in one place; say so."""
    problems = []
    for first, second in combinations([*actions], 2):
        one, other = (wanted.get(id, actions[id]) for id in (first, second))
        if first not in wanted and second not in wanted:
            continue
        clash = set(one.keys) & set(other.keys)
        allowed = set(actions[first].keys) & set(actions[second].keys)
        if not (clash - allowed) or allowed or not meet(one, other):
            continue
        loser = second if second in wanted else first
        keeper = first if loser == second else second
        kept = tuple(key for key in wanted[loser].keys if key not in clash)
        wanted[loser] = replace(wanted[loser], keys=kept or actions[loser].keys)
        for key in sorted(clash):
            problems.append(f"{key!r} would mean both {keeper} and {loser}; {keeper} has it.")
    return problems


def meet(one: Action, other: Action) -> bool:
    """Whether some screen offers both."""
    return any({one.place, other.place} <= set(screen.places) for screen in SCREENS)


def _perhaps(id: str, known: Sequence[str]) -> str:
    close = nearest(id, known)
    return f"; did you mean {close!r}" if close else ""
