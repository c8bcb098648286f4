"""The one list of screens: name, key, title, one line for the palette, help text, how it is made.

A screen that stands here has its key, its tab, its palette entry and its help page; nothing else is
to be registered anywhere (`docs/screens.md` tells how to add one). Keys are digits in the order of
a day's work; a digit that is missing belongs to a screen that is not built yet.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.tui.screens.base import WorkbenchScreen


@dataclass(frozen=True)
class Entry:
    """A full screen of the workbench."""

    name: str
    """Stable: part of the action's id `go.NAME`, of `--screen NAME` and of file names."""
    key: str
    title: str
    """One or two words, for tab and palette."""
    summary: str
    about: str
    """What the screen is for and how it is used; the head of its help page."""
    make: Callable[[], WorkbenchScreen]
    """Imports lazily: a screen that nobody opens costs nothing."""
    of_session: bool = True
    """Whether it shows the open session, and so needs one."""
    has_list: bool = False
    """Whether a list with a cursor has the focus, which the keys of `list` move."""

    @property
    def places(self) -> tuple[str, ...]:
        """The places whose actions it offers, its own first."""
        own = [self.name] + ["list"] * self.has_list + ["session"] * self.of_session
        return (*own, "anywhere")


def _sessions() -> WorkbenchScreen:
    from workbench.tui.screens.sessions import SessionsScreen

    return SessionsScreen()


def _live() -> WorkbenchScreen:
    from workbench.tui.screens.live import LiveScreen

    return LiveScreen()


def _models() -> WorkbenchScreen:
    from workbench.tui.screens.models import ModelsScreen

    return ModelsScreen()


def _events() -> WorkbenchScreen:
    from workbench.tui.screens.events import EventsScreen

    return EventsScreen()


SCREENS: tuple[Entry, ...] = (
    Entry(
        "sessions",
        "1",
        "Sessions",
        "Everything that was measured in this workspace, and what can be",
        "A session is one run of a campaign with all its samples; it is one file. Enter opens the "
        "one under the cursor, whether it is being measured, finished or cut off. A session that "
        "is deleted goes to the trash of the workspace, and u brings it back.",
        _sessions,
        has_list=True,
        of_session=False,
    ),
    Entry(
        "live",
        "4",
        "Live",
        "The profile as it is measured: samples, fit, breakpoints, usage",
        "The plot shows one configuration: its samples with their intervals, the fitted curve with "
        "its band, and the point that is measured next. It follows what is being measured until "
        "you choose a configuration, by keys or mouse. Freezing holds the drawing of every screen "
        "while measuring goes on.",
        _live,
    ),
    Entry(
        "models",
        "6",
        "Models",
        "Methods and their scores, feature influence, versions",
        "Scores are cross-validated: each method predicts samples that it has not seen. A version "
        "is what `workbench models` or a retraining stored; the mark says which one is in force.",
        _models,
        has_list=True,
    ),
    Entry(
        "events",
        "9",
        "Events",
        "What happened, line by line; filter, follow, go to a sample",
        "Every line is an event that the session file holds. The list follows the latest one until "
        "you move the cursor; enter goes to the sample or configuration that a line is about.",
        _events,
        has_list=True,
    ),
)


def entry(name: str) -> Entry:
    """The screen of that name. Raises `KeyError` where there is none."""
    found = next((entry for entry in SCREENS if entry.name == name), None)
    if found is None:
        raise KeyError(name)
    return found
