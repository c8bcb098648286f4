"""What all screens of the workbench share: their size classes, the line of keys, availability."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Static

from workbench.tui.actions import Action, Place, actions_of
from workbench.tui.widgets.keys import KeyLine

if TYPE_CHECKING:
    from workbench.tui.app import WorkbenchApp

SMALLEST = (60, 15)
RESUMABLE = ("interrupted", "stopped", "failed")
"""States that `ResumeSession` can go on from."""
WATCHED_PACE = 20.0
"""Lab seconds per second of a simulated run that is started to be watched."""
TOO_SMALL = f"terminal too small: needs {SMALLEST[0]}x{SMALLEST[1]}"


class WorkbenchScreen(Screen[None]):
    """A full screen; below `SMALLEST` it says so and draws nothing else."""

    PLACE: ClassVar[Place]
    AUTO_FOCUS = ""  # keys belong to the screen until a list or a line of input asks for them
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012  # Textual types it so
        (0, "-too-narrow"),
        (SMALLEST[0], "-narrow"),
        (80, "-medium"),
        (120, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012  # as above
        (0, "-too-low"),
        (SMALLEST[1], "-low"),
        (18, "-short"),
        (22, "-normal"),
        (34, "-tall"),
    ]

    @property
    def workbench(self) -> WorkbenchApp:
        return cast("WorkbenchApp", self.app)

    def on_screen_resume(self) -> None:
        """Size classes change by a resize, of which only the screen on top had heard."""
        self.post_message(Resize(self.app.size, self.app.size))

    @property
    def too_small(self) -> bool:
        return self.has_class("-too-narrow") or self.has_class("-too-low")

    def offered(self) -> tuple[Action, ...]:
        """The actions that can be done now."""
        return tuple(
            action
            for action in actions_of(self.PLACE)
            if action.place == "anywhere" or self.check_action(action.handler, ())
        )

    def explained(self) -> tuple[Action, ...]:
        """The actions that help lists: all that this screen can ever offer."""
        return actions_of(self.PLACE)

    def offer_keys(self) -> None:
        self.query_one(KeyLine).offer(self.offered())

    def too_small_note(self) -> Static:
        return Static(TOO_SMALL, id="too-small", markup=False)
