"""The first-run tour: five steps in a line above the keys. It never takes a key from the screen.

It begins on whichever screen is seen first, the list of sessions or Live, and tells of that first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from workbench.tui.text import wrapped
from workbench.tui.widgets.rows import Row

_EVERYWHERE = (
    "The tabs above are the screens, with their keys; {go.events} shows what happened, line by "
    "line. The mouse works everywhere.",
    "{app.help} explains the screen that you are on and lists its keys; {app.palette} searches "
    "everything that can be done now.",
    "{app.theme} changes the colours, {app.undo} takes back what was lost. Closing the workbench "
    "never stops a run.",
)
STEPS: Mapping[str, tuple[str, ...]] = {
    "sessions": (
        "This lists sessions: what was measured here. {session.new} starts a campaign from a "
        "template; a recording can be looked at without any lab.",
        "{session.open} opens a session on the screen Live: samples, fit, breakpoints. "
        "{view.freeze} freezes what is shown, {go.back} comes back here.",
        *_EVERYWHERE,
    ),
    "live": (
        "This is Live: samples, fit and breakpoints of one configuration. {select.next} shows the "
        "next one, {view.freeze} freezes what is shown while measuring goes on.",
        "{go.back} leads to the list of sessions: {session.open} opens one, {session.replay} "
        "plays it again, {session.new} starts a campaign from a template.",
        *_EVERYWHERE,
    ),
}
"""By the screen that it is shown on; ids of actions in braces become the keys in force."""


class Tour:
    """Which of the steps is shown, and on which screen; 0 where no tour is under way."""

    def __init__(self) -> None:
        self.step = 0
        self.place = ""

    def begin(self, place: str) -> None:
        self.step, self.place = 1, place

    def next(self, place: str) -> None:
        """The next step on this screen, or its first; after the last one the tour is over."""
        if place != self.place:
            self.begin(place)
        else:
            self.step = (self.step + 1) % (len(STEPS[place]) + 1)

    def end(self) -> None:
        self.step = 0

    def rows(self, place: str, key: Callable[[str], str], width: int) -> list[Row]:
        """The step in two lines and what to press; nothing where no tour is under way."""
        if not self.step or place != self.place:
            return []
        steps = STEPS[place]
        words = steps[self.step - 1]
        for id in _ids(words):
            words = words.replace(f"{{{id}}}", key(id))
        following = "next" if self.step < len(steps) else "done"
        head = f" Tour {self.step}/{len(steps)}  {key('app.tour')} {following}  "
        head += f"{key('app.end_tour')} skip "
        return [((head, "badge"),), *(((f" {line}", ""),) for line in wrapped(words, width - 2))]


def _ids(words: str) -> list[str]:
    return [part.partition("}")[0] for part in words.split("{")[1:]]
