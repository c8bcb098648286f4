"""What all screens of the workbench share: size classes, keys in force, availability, tabs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import ClassVar, TypeVar, cast

from textual.actions import parse
from textual.binding import BindingsMap
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.events import Key, Resize
from textual.geometry import Offset
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from workbench.tui.application import Application
from workbench.tui.commands.action import Action
from workbench.tui.commands.actions import in_places
from workbench.tui.commands.catalogue import Entry, entry
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.table import CursorTable
from workbench.tui.widgets.tabs import TabLine

SMALLEST = (60, 15)
TOO_SMALL = f"terminal too small: needs {SMALLEST[0]}x{SMALLEST[1]}"

SILENT = ("escape", "tab", "shift+tab")
"""Keys that are pressed to be sure."""
NO_ENGINE = "No engine answers now."
CONNECTING = "The engine has not answered yet."
CHECKING = "The draft is still being checked."
SOON = (CONNECTING, CHECKING)
"""Why a key cannot be obeyed yet, where it can within moments: it waits for that."""
MOST_WAITING, LONGEST_WAIT_S = 8, 20.0
"""Keys that wait, and for how long: who has turned to something else is not to be surprised. An
engine takes up to 15 s to start."""
OBSERVING = "Observers may watch, not change."
OF_THE_APPLICATION: Mapping[str, str] = {
    "undo": "There is nothing to take back.",
    "messages": "Nothing was said yet.",
    "copy": "There is nothing here to copy.",
    "picture": "Pictures have no folder here.",
    "plot_picture": "There is no plot here.",
    "tour": "The tour does not come by here.",
    "end_tour": "No tour is under way.",
}
"""Why what can be done on every screen cannot be done now, by method."""

MOST_LINES = 10**9

Target = tuple[Offset, Callable[[], object]]
"""A place on the screen that jump mode puts a letter on, and what the letter does."""

T = TypeVar("T")


class WorkbenchScreen(Screen[None]):
    """A full screen; below `SMALLEST` it says so and draws nothing else."""

    NAME: ClassVar[str]
    """Its name in the catalogue."""
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
    def workbench(self) -> Application:
        return cast(Application, self.app)

    @property
    def entry(self) -> Entry:
        return entry(self.NAME)

    failed = ""
    """What went wrong in it while another screen lay over it."""

    def __init__(self) -> None:
        super().__init__()
        self._typed_early: list[Key] = []
        """Keys that could not be obeyed yet, in their order."""
        self._obeyed_until = 0.0

    def on_mount(self) -> None:
        bind(self, self.own_actions())

    def on_screen_suspend(self) -> None:
        self._typed_early.clear()

    def on_screen_resume(self) -> None:
        """Size classes change by a resize, of which only the screen on top had heard."""
        self.post_message(Resize(self.app.size, self.app.size))

    @property
    def ready(self) -> bool:
        """Whether its widgets are there: a key may come before they are made, or after."""
        # Not by a query: with the hundreds of widgets of a form that takes as long as drawing.
        there = any(isinstance(child, KeyLine) for child in self.children)
        return self.is_mounted and there and not self._pruning

    @property
    def has_its_parts(self) -> bool:
        """Whether header and middle are there: the line of keys is there before what stands in
        containers is."""
        try:
            return self.query_one("#header").is_mounted and bool(self.query_one("#middle").children)
        except NoMatches:
            return False

    @property
    def in_sight(self) -> bool:
        """Whether it is the full screen that is shown, whatever dialog lies over it.

        Textual's `is_current` also holds for the screen below, however opaque the one on top is.
        """
        return self.workbench.full_screen is self

    def show_late(
        self, dialog: Screen[T], answered: Callable[[T | None], None] | None = None
    ) -> None:
        """A dialog that waited for an answer; not over another one that was opened meanwhile."""
        if self.app.screen is self:
            self.app.push_screen(dialog, answered)

    @property
    def unanswered(self) -> bool:
        """Whether it waits for something that the engine computes: no picture is taken then."""
        return False

    @property
    def too_small(self) -> bool:
        return self.has_class("-too-narrow") or self.has_class("-too-low")

    # ------------------------------------------------------------------------- actions

    def own_actions(self) -> tuple[Action, ...]:
        """Those that this screen carries out; the application carries out the others."""
        places = [place for place in self.entry.places if place != "anywhere"]
        return in_places(places, self.workbench.keymap.actions)

    def explained(self) -> tuple[Action, ...]:
        """All that this screen can ever offer, in the order of the registry."""
        return in_places(self.entry.places, self.workbench.keymap.actions)

    def offered(self) -> tuple[Action, ...]:
        """The actions that can be done now."""
        return tuple(action for action in self.explained() if self._possible(action))

    def _possible(self, action: Action) -> bool:
        node = self.app if action.place == "anywhere" else self
        _, method, parameters = parse(action.handler)
        if method == "go" and not self.workbench.can_go(str(parameters[0])):
            return False
        return bool(node.check_action(method, parameters))

    def why_not(self, method: str) -> str:
        """Why an action cannot be carried out now, as a sentence; empty: nothing more is known."""
        del method
        return ""

    def reason(self, action: Action) -> str:
        """`why_not` of an action; what the application carries out is the same everywhere."""
        if action.place == "anywhere":
            return OF_THE_APPLICATION.get(action.method, "")
        return self.why_not(action.method)

    def on_key(self, event: Key) -> None:
        """A key that is of no use now says why: what is silent looks broken."""
        if event.key in SILENT:
            self._typed_early.clear()
            return
        said, names = self._refusal(event.key)
        if said in SOON:
            said = f"{said.removesuffix('.')}: {names} waits for that; esc forgets it."
            self._let_wait(event)
        if said:
            self.workbench.say_shortly(said)

    def _refusal(self, key: str) -> tuple[str, str]:
        """Why a key does nothing now, as a sentence, and what it is called; empty where it does, or
        means nothing."""
        # Keys of screens say themselves what they need.
        meant = [a for a in self.explained() if key in a.keys and a.method != "go"]
        if not meant or any(self._possible(action) for action in meant):
            return "", ""
        reasons = (self.reason(action) for action in meant)
        names = " or ".join(dict.fromkeys(action.label for action in meant))
        return next(filter(None, reasons), f"{names} is not possible now."), names

    def _let_wait(self, event: Key) -> None:
        """A key that is held down, or pressed again in doubt, was meant once."""
        before = self._typed_early[-1].key if self._typed_early else ""
        if event.key != before and len(self._typed_early) < MOST_WAITING:
            self._typed_early.append(event)
        self._obeyed_until = time.monotonic() + LONGEST_WAIT_S

    def _obey_late(self) -> None:
        """Hand on the keys that waited, once there is what they waited for."""
        if not self._typed_early or self._refusal(self._typed_early[0].key)[0] in SOON:
            return
        waited, self._typed_early = self._typed_early, []
        if self.app.screen is not self or time.monotonic() > self._obeyed_until:
            return
        for event in waited:
            self.workbench.type_again(event)

    def key(self, id: str) -> str:
        """The key of an action as people write it, for empty states and messages."""
        return self.workbench.key(id)

    # ------------------------------------------------------------------------- drawing

    def draw(self) -> None:
        """Bring everything up to date. Called whenever something could have changed."""
        raise NotImplementedError

    def offer_keys(self) -> None:
        """The last lines of every `draw`: keys and tabs as they are now."""
        keys = self.query_one(KeyLine)
        keys.offer(self.offered())
        keys.say(self.workbench.said)
        self.query_one(TabLine).offer(self.workbench.tabs())
        self._obey_late()

    def too_small_note(self) -> Static:
        return Static(TOO_SMALL, id="too-small", markup=False)

    def on_tab_line_picked(self, message: TabLine.Picked) -> None:
        self.workbench.go(message.name)

    # ------------------------------------------------------------------------- what others ask

    @property
    def session_here(self) -> str:
        """The session that the cursor is on, where it is on one."""
        return ""

    def take_along(self, name: str) -> None:
        """Called before the screen of that name takes this one's place: what the cursor is on may
        be chosen for it."""

    def legend(self) -> tuple[str, ...]:
        """Lines on what the marks of this screen mean, for its help page."""
        return ()

    def copied(self) -> tuple[str, str]:
        """What `copy` takes along: its name, and its text. Empty text: there is nothing."""
        return "", ""

    def jump_targets(self) -> Iterator[Target]:
        """Everything that can be chosen: tabs, then what the screen adds, then what has focus."""
        try:
            tabs = self.query_one(TabLine)
        except NoMatches:
            return
        for column, name in tabs.places():
            yield tabs.region.offset + Offset(column, 0), partial(self.workbench.go, name)
        for widget in self.focus_chain:
            if isinstance(widget, Widget) and widget.display:
                yield widget.region.offset, widget.focus


class HasList(WorkbenchScreen):
    """A screen with a list; the keys of the place `list` move the cursor of `listing`."""

    def listing(self) -> CursorTable | Listing:
        """The list that the keys are for now."""
        raise NotImplementedError

    def jump_targets(self) -> Iterator[Target]:
        yield from super().jump_targets()
        yield from self.listing().jumps()

    def move_lines(self, by: int) -> None:
        """What the keys that move do, by lines."""
        self.listing().move(by)

    @property
    def page(self) -> int:
        """Lines that are seen at once."""
        return self.listing().page

    def action_cursor_down(self) -> None:
        self.move_lines(1)

    def action_cursor_up(self) -> None:
        self.move_lines(-1)

    def action_page_down(self) -> None:
        self.move_lines(self.page)

    def action_page_up(self) -> None:
        self.move_lines(-self.page)

    def action_scroll_top(self) -> None:
        self.move_lines(-MOST_LINES)

    def action_scroll_bottom(self) -> None:
        self.move_lines(MOST_LINES)


def bind(node: DOMNode, actions: tuple[Action, ...]) -> None:
    """Put these keys in force, instead of whatever the node's class says.

    Textual's own keymap cannot do it: there, binding one of two actions that share a key anew takes
    the key away from the other as well.
    """
    taken = {key for action in actions for key in action.keys}
    kept = [binding for key, binding in node._bindings if key not in taken]
    keys = BindingsMap(kept)
    for action in actions:
        if action.keys:
            keys.bind(",".join(action.keys), action.handler, action.label, show=False)
    node._bindings = keys


def made(entry: Entry) -> WorkbenchScreen:
    """The screen of an entry of the catalogue."""
    module, _, name = entry.made_by.partition(":")
    screen: WorkbenchScreen = getattr(import_module(f"workbench.tui.screens.{module}"), name)()
    return screen
