"""In the place of a screen that failed: what happened, and how to open it again."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, VerticalScroll
from textual.widgets import Static

from workbench.tui.commands.action import Action
from workbench.tui.commands.actions import in_places
from workbench.tui.commands.catalogue import Entry, entry
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.tabs import TabLine


class FailedScreen(WorkbenchScreen):
    """Draws nothing that could fail."""

    NAME: ClassVar[str] = ""  # so that the key of the screen that failed opens that again, too
    BINDINGS: ClassVar[list[BindingType]] = [
        ("enter", "again", "Open again"),
        ("escape", "back", "Sessions"),
    ]

    def __init__(self, of: str, said: str) -> None:
        super().__init__()
        self.of, self.said = of, said

    @property
    def entry(self) -> Entry:
        return entry(self.of)

    def compose(self) -> ComposeResult:
        yield self.too_small_note()
        with Container(id="top"):
            yield TabLine(id="tabs")
        with VerticalScroll(id="middle", can_focus=False):
            yield Static(self._text(), id="failure", markup=False)
        yield KeyLine(id="keys")

    def _text(self) -> str:
        back = "" if self.of == "sessions" else ", escape goes to the sessions"
        return (
            f"The screen {self.entry.title} failed, and nothing else: a run goes on.\n\n"
            f"{self.said} `workbench logs` shows it.\n\n"
            f"Press enter to open it again{back}."
        )

    def on_mount(self) -> None:
        super().on_mount()
        self.call_after_refresh(self.draw)

    def on_screen_resume(self) -> None:
        self.call_after_refresh(self.draw)

    def own_actions(self) -> tuple[Action, ...]:
        return ()

    def explained(self) -> tuple[Action, ...]:
        return in_places(["anywhere"], self.workbench.keymap.actions)

    def draw(self) -> None:
        if self.ready and not self.too_small:
            self.offer_keys()

    def action_again(self) -> None:
        self.workbench.go(self.of)

    def action_back(self) -> None:
        self.workbench.go("sessions")
