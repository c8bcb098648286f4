"""What a screen remembers from one day to the next: theme, tour, workspaces, columns, and on what
terms a draft is to be run.

It is a small JSON file. Without one, or with one that cannot be read, everything is as on the first
day; where it cannot be written, nothing is remembered. Neither is worth a message.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench import files

MOST_WORKSPACES = 20
MOST_DRAFTS = 100


class Memory:
    """A file of settings that screens change themselves; `None` forgets when the screen closes."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._values = _read(path)

    @property
    def theme(self) -> str:
        """By the name that a user knows; empty where none was chosen."""
        return _text(self._values.get("theme"))

    @theme.setter
    def theme(self, name: str) -> None:
        self._put("theme", name)

    @property
    def toured(self) -> bool:
        return self._values.get("toured") is True

    @toured.setter
    def toured(self, done: bool) -> None:
        self._put("toured", done)

    @property
    def workspaces(self) -> tuple[str, ...]:
        """Folders that were opened, the latest first."""
        found = self._values.get("workspaces")
        return tuple(w for w in found if isinstance(w, str)) if isinstance(found, list) else ()

    def opened(self, workspace: str) -> None:
        others = [known for known in self.workspaces if known != workspace]
        self._put("workspaces", [workspace, *others][:MOST_WORKSPACES])

    def columns(self, table: str) -> dict[str, Any]:
        """What was chosen of the columns of a list; empty where nothing was."""
        return _mapping(_mapping(self._values.get("columns")).get(table))

    def arranged(self, table: str, columns: dict[str, Any]) -> None:
        self._put("columns", _mapping(self._values.get("columns")) | {table: columns})

    def terms(self, draft: str) -> dict[str, str]:
        """On what a draft was to be run last; `draft` names its workspace, too."""
        found = _mapping(_mapping(self._values.get("terms")).get(draft))
        return {key: value for key, value in found.items() if isinstance(value, str)}

    def keep_terms(self, draft: str, terms: dict[str, str]) -> None:
        """Of the drafts that were changed last; none are forgotten terms."""
        known = _mapping(self._values.get("terms"))
        kept = {name: known[name] for name in known if name != draft}
        if terms:
            kept[draft] = terms
        self._put("terms", dict([*kept.items()][-MOST_DRAFTS:]))

    def _put(self, key: str, value: Any) -> None:
        if self._values.get(key) == value:
            return
        self._values[key] = value
        if self.path is None:
            return
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Another screen may have remembered something meanwhile.
            self._values = _read(self.path) | {key: value}
            files.write_whole(self.path, json.dumps(self._values))


def _read(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return _mapping(found)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
