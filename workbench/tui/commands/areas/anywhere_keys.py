"""In every list, and on every screen."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action
from workbench.tui.commands.catalogue import SCREENS

_list = partial(action, "list")
_anywhere = partial(action, "anywhere")

ACTIONS: tuple[Action, ...] = (
    _list("list.down", "down j", "cursor_down", "Down", 9, "One line down"),
    _list("list.up", "up k", "cursor_up", "Up", 9, "One line up"),
    _list("list.page_down", "pagedown", "page_down", "Page down", 9, "A page down",
          vim="ctrl+d pagedown"),
    _list("list.page_up", "pageup", "page_up", "Page up", 9, "A page up", vim="ctrl+u pageup"),
    _list("list.first", "home g", "scroll_top", "First", 9, "The first line"),
    _list("list.last", "end G", "scroll_bottom", "Last", 9, "The last line"),
    *(
        _anywhere(f"go.{s.name}", s.key, f"go('{s.name}')", s.title, 9, s.summary)
        for s in SCREENS
    ),
    _anywhere("app.undo", "u", "undo", "Undo", 1, "Take back what was lost last"),
    _anywhere("app.copy", "c", "copy", "Copy", 8, "Copy what is shown here, over SSH too (OSC 52)"),
    _anywhere("app.picture", "E", "picture", "Picture", 9, "Write this screen as SVG"),
    _anywhere("app.plot_picture", "P", "plot_picture", "Plot", 9, "Write the plot alone as SVG"),
    _anywhere("app.jump", "ctrl+o", "jump", "Jump", 9, "Letters on everything that can be chosen"),
    _anywhere("app.help", "question_mark f1", "help", "Help", 0, "Keys and marks of this screen"),
    _anywhere("app.palette", "ctrl+p colon f2", "palette", "Commands", 9, "Search everything"),
    _anywhere("app.theme", "t", "theme", "Theme", 9, "The next theme; the palette has all of them"),
    _anywhere("app.messages", "M", "messages", "Messages", 9, "What was said, the latest first"),
    _anywhere("app.places", "i", "places", "Places", 9, "Which files and settings are in use"),
    _anywhere("app.tour", "T", "tour", "Tour", 9, "Five steps through the workbench; again: next"),
    _anywhere("app.end_tour", "X", "end_tour", "End tour", 9, "Put the tour away"),
    _anywhere("app.quit", "q ctrl+c", "quit", "Quit", 0, "Close the screen; a run goes on"),
    _anywhere(
        "app.suspend", "ctrl+z", "suspend_process", "Suspend", 9, "To the shell; `fg` returns"
    ),
)  # fmt: skip
