"""The first-run tour: five steps in a line above the keys. It never takes a key from the screen."""

from __future__ import annotations

from collections.abc import Callable

from workbench.tui.text import wrapped
from workbench.tui.widgets.rows import Row

STEPS: tuple[str, ...] = (
    "This lists sessions: what was measured here. {session.new} starts a campaign from a template; "
    "a recording can be opened without any lab.",
    "{session.open} opens a session on the screen Live: samples, fit, breakpoints. {view.freeze} "
    "holds the drawing, {go.back} comes back here.",
    "The tabs above are the screens, with their keys; {go.events} shows what happened, line by "
    "line. The mouse works everywhere.",
    "{app.help} explains the screen that you are on and lists its keys; {app.palette} searches "
    "everything that can be done now.",
    "{app.theme} changes the colours, {app.undo} takes back what was lost. Closing the workbench "
    "never stops a run.",
)
"""Ids of actions in braces become the keys in force."""


class Tour:
    """Which of the steps is shown; 0 where no tour is under way."""

    def __init__(self) -> None:
        self.step = 0

    def begin(self) -> None:
        self.step = 1

    def next(self) -> None:
        """The next step; after the last one it is over."""
        self.step = (self.step + 1) % (len(STEPS) + 1)

    def end(self) -> None:
        self.step = 0

    def rows(self, key: Callable[[str], str], width: int) -> list[Row]:
        """The step in two lines and what to press; nothing where no tour is under way."""
        if not self.step:
            return []
        words = STEPS[self.step - 1]
        for id in _ids(words):
            words = words.replace(f"{{{id}}}", key(id))
        following = "next" if self.step < len(STEPS) else "done"
        head = f" Tour {self.step}/{len(STEPS)}  {key('app.tour')} {following}  "
        head += f"{key('app.end_tour')} skip "
        return [((head, "badge"),), *(((f" {line}", ""),) for line in wrapped(words, width - 2))]


def _ids(words: str) -> list[str]:
    return [part.partition("}")[0] for part in words.split("{")[1:]]
