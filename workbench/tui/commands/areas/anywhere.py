"""In every list, and on every screen."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action
from workbench.tui.commands.catalogue import SCREENS

_list = partial(action, "list")
_anywhere = partial(action, "anywhere")

ACTIONS: tuple[Action, ...] = (
    _list("list.down", "j down", "cursor_down", "Down", 9, "One line down", plain="down"),
    _list("list.up", "k up", "cursor_up", "Up", 9, "One line up", plain="up"),
    _list("list.page_down", "ctrl+d pagedown", "page_down", "Page down", 9, "A page down",
          plain="pagedown"),
    _list("list.page_up", "ctrl+u pageup", "page_up", "Page up", 9, "A page up", plain="pageup"),
    _list("list.first", "g home", "scroll_top", "First", 9, "The first line", plain="home"),
    _list("list.last", "G end", "scroll_bottom", "Last", 9, "The last line", plain="end"),
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
    _anywhere("app.palette", "ctrl+p colon", "palette", "Commands", 9, "Search everything",
              plain="ctrl+p f2"),
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
