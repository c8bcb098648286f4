"""Jump mode: a letter on everything that can be chosen; pressing it chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from workbench.tui.screens.base import Target

LETTERS = "asdfghjklqwertyuiopzxcvbnm"


def labels(count: int) -> list[str]:
    """As many labels, of one letter where these are enough, of two where not."""
    if count <= len(LETTERS):
        return list(LETTERS[:count])
    return ["".join(pair) for pair in product(LETTERS, repeat=2)][:count]


class JumpScreen(ModalScreen[Callable[[], object] | None]):
    """Lies over a screen and puts labels where its targets are; a key that begins none ends it."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss(None)", "Cancel")]
    DEFAULT_CSS = """
    JumpScreen > .jump-label {
        position: absolute; width: auto; height: 1; text-style: bold reverse; color: $warning;
    }
    """

    def __init__(self, targets: Sequence[Target]) -> None:
        super().__init__()
        self.targets = dict(zip(labels(len(targets)), targets, strict=False))
        self._typed = ""

    def compose(self) -> ComposeResult:
        for label, (offset, _) in self.targets.items():
            static = Static(label, classes="jump-label", markup=False)
            static.styles.offset = (offset.x, offset.y)
            yield static

    def on_key(self, event: events.Key) -> None:
        if event.key == "escape":
            return
        event.stop()
        self._typed += (event.character or " ").lower()
        if self._typed in self.targets:
            self.dismiss(self.targets[self._typed][1])
        elif not any(label.startswith(self._typed) for label in self.targets):
            self.dismiss(None)
