"""Settings: lines of a form that are read from a campaign's draft and written into it.

A draft may hold anything. What fits in no line is shown empty; what is typed goes into the draft as
it stands there, and the engine says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.domain.errors import Mistake

Document = dict[str, Any]
Key = str | int

_INTEGER = re.compile(r"[+-]?[0-9]{1,15}")
_FLOAT = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+)")


@dataclass(frozen=True)
class Setting:
    """One line of the form.

    Attributes
    ----------
    name : what the form knows it by.
    fields : of the descriptor, that it is about; mistakes in or below one of them are its own.
    read : the line's text for a document.
    write : puts a line's text into a document, which it changes.
    hint : what it means that the line is empty: the default, and an example.
    options : values to choose from; None for a line of text.
    here : whether it means anything in this document.
    rare : whether it is shown only where all settings are, or where it is wrong.
    unit : what its value is counted in, for those whose value does not say it.
    note : how the value is read, where that may be a surprise.
    """

    name: str
    label: str
    fields: tuple[str, ...]
    read: Callable[[Document], str]
    write: Callable[[Document, str], None]
    hint: str = ""
    options: tuple[str, ...] | None = None
    here: bool = True
    rare: bool = False
    unit: str = ""
    note: str = ""


def place(document: Any, *path: Key) -> Any:
    """What stands there; None where nothing does."""
    for key in path:
        try:
            document = document[key]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def entries(document: Any, *path: Key) -> list[Any]:
    """The list that stands there; an empty one where none does."""
    found = place(document, *path)
    return found if isinstance(found, list) else []


def put(document: Document, value: Any, *path: str) -> None:
    """Put a value into nested mappings, making those that are missing; None removes it."""
    *parents, last = path
    for key in parents:
        below = document.get(key)
        if not isinstance(below, dict):
            if value is None:
                return
            below = document[key] = {}
        document = below
    if value is None:
        document.pop(last, None)
    else:
        document[last] = value


def shown(value: Any) -> str:
    """A value as it would be typed; lists with commas."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(shown, value)))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value) if isinstance(value, int | str) else ""


def scalar(text: str) -> int | float | str | None:
    """What was typed as YAML has it: a number where it is one, nothing where nothing is."""
    text = text.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text or None


def scalars(text: str) -> list[int | float | str]:
    """Values with commas between them."""
    return [value for part in text.split(",") if (value := scalar(part)) is not None]


def at_path(
    name: str,
    label: str,
    path: str,
    *,
    hint: str = "",
    here: bool = True,
    rare: bool = False,
    unit: str = "",
) -> Setting:
    """A setting that is one value of the document, at a path such as `sampling.max_samples`."""
    keys = path.split(".")

    def write(document: Document, text: str) -> None:
        put(document, scalar(text), *keys)

    def read(document: Document) -> str:
        return shown(place(document, *keys))

    return Setting(name, label, (path,), read, write, hint, None, here, rare, unit)


def placed(
    mistakes: Iterable[Mistake], settings: Sequence[Setting]
) -> tuple[dict[str, str], tuple[Mistake, ...]]:
    """The first mistake of each setting, by its name; and the mistakes that belong to none.

    A mistake belongs to the setting that names the longest part of its field.
    """
    own: dict[str, str] = {}
    others: list[Mistake] = []
    for mistake in mistakes:
        fitting = [
            (len(field), setting.name)
            for setting in settings
            for field in setting.fields
            if _holds(field, mistake.field)
        ]
        if not fitting:
            others.append(mistake)
        else:
            own.setdefault(max(fitting)[1], mistake.message)
    return own, tuple(others)


def _holds(field: str, below: str) -> bool:
    return below == field or below.startswith((f"{field}.", f"{field}["))
