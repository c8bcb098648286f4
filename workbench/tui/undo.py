"""What was lost last, and how it comes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

MOST_UNDOS = 20


@dataclass(frozen=True)
class Undo:
    """One thing that can be taken back."""

    what: str
    """As a sentence begins with it: `Deleting night`."""
    take_back: Callable[[], Awaitable[str]]
    """Does it; says what is so again, as a sentence."""
    of: str = ""
    """What it writes over, where somebody else may have written there since."""


class Undos:
    """The latest first."""

    def __init__(self) -> None:
        self._done: list[Undo] = []

    def __bool__(self) -> bool:
        return bool(self._done)

    def add(self, undo: Undo) -> None:
        self._done.append(undo)
        del self._done[:-MOST_UNDOS]

    def drop(self, undo: Undo) -> None:
        """It is not offered any more."""
        if undo in self._done:
            self._done.remove(undo)

    def drop_all(self, of: str) -> None:
        """None of them is offered any more: they would write over what is somebody else's."""
        self._done = [undo for undo in self._done if undo.of != of]

    @property
    def top(self) -> Undo | None:
        """The one that `latest` would give."""
        return self._done[-1] if self._done else None

    def latest(self) -> Undo | None:
        """The one to take back now; it is not offered again."""
        return self._done.pop() if self._done else None
