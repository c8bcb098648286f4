"""The one registry of actions: it feeds key bindings, the line of keys, help and the palette.

Keys can be bound anew by an action's `id`, which never changes (`App.set_keymap`). Two actions may
share a key where a screen never offers both at once (`run.pause` and `run.continue`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from textual.binding import Binding

Place = Literal["anywhere", "live", "sessions"]


@dataclass(frozen=True)
class Action:
    """Something that a user can do on a screen; `action_<handler>` of that screen does it."""

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    place: Place
    handler: str
    rank: int = 9
    """Which are named in the line of keys first; 9 is not named there."""

    @property
    def area(self) -> str:
        return self.id.partition(".")[0]

    @property
    def key_text(self) -> str:
        return " ".join(_KEY_NAMES.get(key, key) for key in self.keys)

    @property
    def first_key(self) -> str:
        return _KEY_NAMES.get(self.keys[0], self.keys[0])


_KEY_NAMES = {
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "escape": "esc",
    "enter": "⏎",
    "down": "↓",
    "up": "↑",
    "ctrl+p": "^p",
    "ctrl+c": "^c",
    "ctrl+z": "^z",
}


def _action(
    place: Place, id: str, keys: str, handler: str, label: str, rank: int, help: str
) -> Action:
    return Action(id, tuple(keys.split()), label, help, place, handler, rank)


_live = partial(_action, "live")
_sessions = partial(_action, "sessions")
_anywhere = partial(_action, "anywhere")

ACTIONS: tuple[Action, ...] = (
    _live("run.pause", "p", "pause", "Pause", 1, "Pause after this sample"),
    _live("run.continue", "p", "continue", "Continue", 1, "Go on measuring"),
    _live("run.stop", "s", "stop", "Stop", 1, "End the run after this sample; asks first"),
    _live("run.abort", "S", "abort", "Abort", 9, "End the run now, lose this sample; asks first"),
    _live("run.skip", "x", "skip", "Skip", 2, "No more samples of the one shown; asks first"),
    _live("run.resume", "r", "resume", "Resume", 1, "Go on with this session"),
    _live("replay.pause", "p", "replay_pause", "Pause", 1, "Hold the replay"),
    _live("replay.play", "p", "replay_play", "Play", 1, "Go on with the replay"),
    _live("replay.faster", "plus equals_sign", "faster", "Faster", 1, "Replay twice as fast"),
    _live("replay.slower", "minus", "slower", "Slower", 1, "Replay half as fast"),
    _live("link.reconnect", "r", "reconnect", "Reconnect", 1, "Look for the engine again"),
    _live(
        "select.next", "j n down", "next_configuration", "Next", 6, "Show the next configuration"
    ),
    _live(
        "select.previous", "k b up", "previous_configuration", "Previous", 9, "Show the one before"
    ),
    _live("select.follow", "F", "follow", "Follow", 2, "Show whichever is being measured"),
    _live("view.freeze", "f", "freeze", "Freeze", 3, "Hold the drawing; measuring goes on"),
    _live("view.unfreeze", "f", "unfreeze", "Unfreeze", 1, "Draw what happens again"),
    _live("view.log", "l", "log_y", "Log", 4, "KPI axis: logarithmic or linear"),
    _live("view.log_wl", "L", "log_x", "Log wl", 9, "Workload axis: logarithmic or linear"),
    _live("view.kpi", "y", "kpi", "KPI", 4, "Show the next KPI"),
    _live("view.zoom", "z", "zoom", "Zoom", 5, "One panel alone: plot, list, usage, log; then all"),
    _live("go.back", "escape", "back", "Back", 3, "Back to the sessions; the run goes on"),
    _sessions("session.open", "enter", "open", "Open", 1, "Open the session under the cursor"),
    _sessions("session.new", "n", "new", "New", 1, "Start a campaign"),
    _sessions("session.resume", "r", "resume", "Resume", 2, "Go on with one that was stopped"),
    _sessions("session.replay", "R", "replay", "Replay", 2, "Play a session from its start"),
    _sessions("session.filter", "slash", "filter", "Filter", 3, "Only sessions with this text"),
    _sessions("sessions.reconnect", "r", "reconnect", "Reconnect", 1, "Look for the engine again"),
    _anywhere("app.help", "question_mark f1", "help", "Help", 0, "Keys and marks of this screen"),
    _anywhere("app.palette", "ctrl+p colon", "palette", "Commands", 9, "Search everything"),
    _anywhere("app.theme", "t", "theme", "Theme", 9, "Dark or light"),
    _anywhere("app.quit", "q ctrl+c", "quit", "Quit", 0, "Close the screen; a run goes on"),
    _anywhere(
        "app.suspend", "ctrl+z", "suspend_process", "Suspend", 9, "To the shell; `fg` returns"
    ),
)


def actions_of(place: Place) -> tuple[Action, ...]:
    """What a screen offers: its own actions, then those of every screen."""
    own = tuple(a for a in ACTIONS if a.place == place)
    return own + tuple(a for a in ACTIONS if a.place == "anywhere" and place != "anywhere")


def bindings(place: Place) -> list[Binding]:
    """Textual's bindings of the actions that belong to exactly this place."""
    return [
        Binding(",".join(a.keys), a.handler, a.label, show=False, tooltip=a.help, id=a.id)
        for a in ACTIONS
        if a.place == place
    ]
