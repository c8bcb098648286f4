"""The one registry of actions: it feeds keys, the line of keys, help, palette and docs/keys.md.

An action's `id` never changes; keys are bound anew by it (`keymap`). Two actions may share a key
where a screen never offers both at once (`run.pause` and `run.continue`). A *place* is where an
action belongs: `anywhere`, `session` (every screen of an open session), `list` (every screen with
a list and a cursor), or the name of a screen. A screen names the places that it serves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from workbench.tui.catalogue import SCREENS

Place = str

PLACES = ("anywhere", "session", "list", *(screen.name for screen in SCREENS))

PLACE_TITLES = {
    "list": "In a list",
    "session": "On every screen of a session",
    "anywhere": "On every screen",
}
"""As help and docs/keys.md call them; screens have their own titles."""


@dataclass(frozen=True)
class Action:
    """Something that a user can do on a screen; `action_<handler>` of that screen does it."""

    id: str
    keys: tuple[str, ...]
    """In force; those of the registry are the vim-like preset's."""
    label: str
    help: str
    place: Place
    handler: str
    """As Textual runs it, arguments included: `go('live')`."""
    rank: int = 9
    """Which are named in the line of keys first; 9 is not named there."""
    plain: tuple[str, ...] | None = None
    """Keys of the plain preset, where they differ."""

    @property
    def area(self) -> str:
        return self.id.partition(".")[0]

    @property
    def method(self) -> str:
        """The handler without its arguments."""
        return self.handler.partition("(")[0]

    @property
    def key_text(self) -> str:
        return " ".join(map(key_name, self.keys)) or "–"

    @property
    def first_key(self) -> str:
        return key_name(self.keys[0]) if self.keys else "–"


_KEY_NAMES = {
    "question_mark": "?",
    "colon": ":",
    "semicolon": ";",
    "slash": "/",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "escape": "esc",
    "enter": "⏎",
    "space": "space",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def key_name(key: str) -> str:
    """A key as people write it: `^p`, `?`, `⏎`."""
    if key.startswith("ctrl+"):
        return f"^{key.removeprefix('ctrl+')}"
    return _KEY_NAMES.get(key, key)


def _action(
    place: Place,
    id: str,
    keys: str,
    handler: str,
    label: str,
    rank: int,
    help: str,
    *,
    plain: str | None = None,
) -> Action:
    other = None if plain is None else tuple(plain.split())
    return Action(id, tuple(keys.split()), label, help, place, handler, rank, other)


_anywhere = partial(_action, "anywhere")
_session = partial(_action, "session")
_list = partial(_action, "list")
_sessions = partial(_action, "sessions")
_live = partial(_action, "live")
_models = partial(_action, "models")
_events = partial(_action, "events")

ACTIONS: tuple[Action, ...] = (
    _session("run.pause", "p", "pause", "Pause", 1, "Pause after this sample"),
    _session("run.continue", "p", "continue", "Continue", 1, "Go on measuring"),
    _session("run.stop", "s", "stop", "Stop", 1, "End the run after this sample; asks first"),
    _session("run.abort", "S", "abort", "Abort", 9, "End the run now, lose this sample; asks"),
    _live("run.skip", "x", "skip", "Skip", 2, "No more samples of the one shown; asks first"),
    _session("wheel.ask", "w", "ask_wheel", "Ask", 2, "Ask whoever drives the run for the wheel"),
    _session("wheel.give", "w", "give_wheel", "Give", 1, "Let whoever asks drive the run"),
    _session("wheel.keep", "W", "keep_wheel", "Keep", 1, "Drive on, though somebody asks"),
    _session("run.resume", "r", "resume", "Resume", 1, "Go on with this session"),
    _session("replay.pause", "p", "replay_pause", "Pause", 1, "Hold the replay"),
    _session("replay.play", "p", "replay_play", "Play", 1, "Go on with the replay"),
    _session("replay.faster", "plus equals_sign", "faster", "Faster", 1, "Replay twice as fast"),
    _session("replay.slower", "minus", "slower", "Slower", 1, "Replay half as fast"),
    _session("link.reconnect", "r", "reconnect", "Reconnect", 1, "Look for the engine again"),
    _live(
        "select.next", "j n down", "next_configuration", "Next", 6, "Show the next configuration",
        plain="down",
    ),
    _live(
        "select.previous", "k b up", "previous_configuration", "Previous", 9, "Show the one before",
        plain="up",
    ),
    _live("select.follow", "F", "follow", "Follow", 2, "Show whichever is being measured"),
    _session("view.freeze", "f", "freeze", "Freeze", 3, "Hold the drawing; measuring goes on"),
    _session("view.unfreeze", "f", "unfreeze", "Unfreeze", 1, "Draw what happens again"),
    _live("view.log", "l", "log_y", "Log", 4, "KPI axis: logarithmic or linear"),
    _live("view.log_wl", "L", "log_x", "Log wl", 9, "Workload axis: logarithmic or linear"),
    _live("view.kpi", "y", "kpi", "KPI", 4, "Show the next KPI"),
    _live("view.zoom", "z", "zoom", "Zoom", 5, "One panel alone: plot, list, usage, log; then all"),
    _session("go.back", "escape", "back", "Back", 3, "Back to the sessions; the run goes on"),
    _sessions("session.open", "enter", "open", "Open", 1, "Open the session under the cursor"),
    _sessions("session.new", "n", "new", "New", 1, "Start a campaign from a template"),
    _sessions("session.resume", "r", "resume", "Resume", 2, "Go on with one that was stopped"),
    _sessions("session.replay", "R", "replay", "Replay", 2, "Play a session from its start"),
    _sessions("session.filter", "slash", "filter", "Filter", 3, "Only sessions with this text",
              plain="slash ctrl+f"),
    _sessions("session.unfilter", "escape", "unfilter", "All", 9, "Show all sessions again"),
    _sessions("session.rename", "m", "rename", "Rename", 5, "Give the session another name"),
    _sessions("session.duplicate", "D", "duplicate", "Duplicate", 6, "Copy it under another name"),
    _sessions("session.export", "e", "export", "Export", 5, "Write samples as CSV, Parquet, ..."),
    _sessions("session.delete", "d", "delete", "Delete", 4, "Put it into the trash",
              plain="delete d"),
    _sessions("session.workspace", "w", "workspace", "Workspace", 6, "Open another workspace"),
    _sessions("sessions.reconnect", "r", "reconnect", "Reconnect", 1, "Look for the engine again"),
    _models("models.kpi", "y", "kpi", "KPI", 2, "Show the next KPI"),
    _models("models.target", "tab", "target", "Target", 1, "Show the next target"),
    _events("events.open", "enter", "open", "Go to", 1, "Show the sample that the line is about"),
    _events("events.filter", "slash", "filter", "Filter", 2, "Only lines with this text",
            plain="slash ctrl+f"),
    _events("events.unfilter", "escape", "unfilter", "All", 2, "Show all lines again"),
    _events("events.level", "l", "level", "Level", 3, "All lines, warnings and errors, or errors"),
    _events("events.follow", "F", "follow", "Follow", 1, "Keep the latest line in sight"),
    _events("events.older", "o", "older", "Older", 4, "Fetch the events before the first line"),
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
    _anywhere("app.places", "i", "places", "Places", 9, "Which files and settings are in use"),
    _anywhere("app.tour", "T", "tour", "Tour", 9, "Five steps through the workbench; again: next"),
    _anywhere("app.end_tour", "X", "end_tour", "End tour", 9, "Put the tour away"),
    _anywhere("app.quit", "q ctrl+c", "quit", "Quit", 0, "Close the screen; a run goes on"),
    _anywhere(
        "app.suspend", "ctrl+z", "suspend_process", "Suspend", 9, "To the shell; `fg` returns"
    ),
)  # fmt: skip


def in_places(places: Iterable[Place], actions: Iterable[Action] = ACTIONS) -> tuple[Action, ...]:
    """The actions of these places, in the order of the registry."""
    wanted = set(places)
    return tuple(action for action in actions if action.place in wanted)
