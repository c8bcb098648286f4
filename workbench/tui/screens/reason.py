"""Asks why, before something is decided."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from workbench.tui.screens.dialogs import Dialog

YES = ("y", "yes")


class ReasonScreen(Dialog[str | None]):
    """A line of text; None is nothing decided, an empty one a decision without a reason."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "dismiss(None)", "Cancel")]

    def __init__(self, question: str, consequence: str, *, needed: bool) -> None:
        super().__init__()
        self.question, self.consequence, self.needed = question, consequence, needed

    def compose(self) -> ComposeResult:
        hint = "reason (stored with the decision)" if self.needed else "reason (optional)"
        with Vertical(classes="dialog name"):
            yield Static(self.question, classes="dialog-title", markup=False)
            yield Static(self.consequence, markup=False)
            yield Input(placeholder=hint, id="name")
            yield Static("", id="missing", markup=False)
            yield Static("enter do it   esc cancel", classes="dialog-keys", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        why = event.value.strip()
        if self.needed and (not why or why.casefold() in YES):
            self.query_one("#missing", Static).update(
                "! Give a reason: whoever asks later finds it here."
            )
            return
        # Elsewhere y is yes: who types it here means that, too, and not a reason.
        self.dismiss("" if why.casefold() in YES else why)
