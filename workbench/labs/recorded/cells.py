"""One row of a table as text, and how its cells are understood."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from workbench.domain.parameters import ParameterValue

Complain = Callable[[str, str], None]
"""Told the column and what is wrong with its cell."""


class Cells:
    """Cells by column name. A cell that cannot be used is complained about; its default goes on."""

    def __init__(self, texts: Mapping[str, str], complain: Complain) -> None:
        self._texts = texts
        self.complain = complain

    def has(self, column: str) -> bool:
        return bool(self.text(column))

    def text(self, column: str, default: str = "") -> str:
        return self._texts.get(column, "").strip() or default

    def number(
        self, column: str, default: float, *, least: float = 0.0, most: float = math.inf
    ) -> float:
        """A finite number from `least` to `most`."""
        text = self.text(column)
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            self.complain(column, f"is {text!r}, not a number")
            return default
        if not (math.isfinite(value) and least <= value <= most):
            allowed = f"{least:g} or more" if most == math.inf else f"{least:g} to {most:g}"
            self.complain(column, f"is {text}; allowed is a finite number, {allowed}")
            return default
        return value

    def whole(self, column: str, default: int) -> int:
        value = self.number(column, float(default))
        if value != int(value):
            self.complain(column, f"is {self.text(column)}, not a whole number")
        return int(value)

    def flag(self, column: str) -> bool:
        """True where nothing stands there."""
        text = self.text(column).lower()
        if text not in ("", "true", "false", "1", "0", "yes", "no"):
            self.complain(column, f"is {text!r}; allowed are true and false")
        return text in ("", "true", "1", "yes")

    def choice(self, column: str, allowed: tuple[str, ...], default: str) -> str:
        text = self.text(column, default)
        if text not in allowed:
            self.complain(column, f"is {text!r}; allowed are {', '.join(allowed)}")
            return default
        return text

    def value(self, column: str) -> ParameterValue:
        """A parameter's value: a number, or the name of a flavor."""
        text = self.text(column)
        try:
            number = float(text)
        except ValueError:
            return text
        return number if math.isfinite(number) else text
