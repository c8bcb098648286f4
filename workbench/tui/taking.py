"""What a user takes along from a screen: its text to the clipboard, its picture as a file."""

from __future__ import annotations

import os
from abc import abstractmethod

from workbench.domain.errors import WorkbenchError
from workbench.tui.boundary import BoundedApp
from workbench.tui.plots import picture
from workbench.tui.plots.plot import ProfilePlot
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.text import plain

LONGEST_COPY = 100_000
"""Bytes; terminals ignore longer OSC 52 sequences without a word."""


class TakingApp(BoundedApp):
    """Copies and draws what is shown; `WorkbenchApp` says what that is."""

    @property
    @abstractmethod
    def full_screen(self) -> WorkbenchScreen | None:
        """The full screen that is shown, whatever dialog lies over it."""

    def action_copy(self) -> None:
        if isinstance(self.screen, WorkbenchScreen):
            self.copy_out(*self.screen.copied())

    def copy_out(self, what: str, text: str) -> None:
        """By OSC 52, which the user's own terminal carries out, wherever this runs."""
        if len(text.encode()) > LONGEST_COPY:
            self.say(f"Not copied: {what} is longer than terminals take. Export it.", "warning")
        elif os.environ.get("TERM") == "linux":
            self.say("Not copied: this console has no clipboard.", "warning")
        else:
            self.copy_to_clipboard(text)
            self.say(f"Copied {what}, if your terminal lets programs copy (OSC 52).")

    def action_picture(self) -> None:
        here = self.full_screen.NAME if self.full_screen is not None else ""
        self._write_picture(picture.of_screen(self, self._picture_title()), here)

    def action_plot_picture(self) -> None:
        if (plot := self.plot_shown()) is not None:
            self._write_picture(picture.of_widget(plot, self._picture_title()), "plot")

    def plot_shown(self) -> ProfilePlot | None:
        screen = self.full_screen
        plots = screen.query(ProfilePlot) if screen is not None else ()
        return next((plot for plot in plots if plot.display), None)

    def _picture_title(self) -> str:
        return plain(f"workbench {self.opened.session}".rstrip())

    def _write_picture(self, svg: str, what: str) -> None:
        assert self.files.pictures is not None
        try:
            path = picture.write(svg, self.files.pictures(), self.opened.session, what)
        except WorkbenchError as error:
            self.say(str(error), "error")
        else:
            self.say(f"Wrote {path}.")
