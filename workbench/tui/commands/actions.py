"""The one registry of actions: it feeds keys, the line of keys, help, palette and docs/keys.md.

An action's `id` never changes; keys are bound anew by it (`keymap`). Two actions may share a key
where a screen never offers both at once (`run.pause` and `run.continue`). A *place* is where an
action belongs: `anywhere`, `session` (every screen of an open session), `draft` (every screen of
the open draft), `list` (every screen with a list and a cursor), or the name of a screen. A screen
names the places that it serves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from workbench.tui.commands.catalogue import SCREENS

Place = str

PLACES = ("anywhere", "session", "draft", "list", *(screen.name for screen in SCREENS))

PLACE_TITLES = {
    "list": "In a list",
    "session": "On every screen of a session",
    "draft": "On every screen of a draft",
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
    "full_stop": ".",
    "comma": ",",
    "greater_than_sign": ">",
    "less_than_sign": "<",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
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
_draft = partial(_action, "draft")
_list = partial(_action, "list")
_sessions = partial(_action, "sessions")
_chain = partial(_action, "chain")
_live = partial(_action, "live")
_compare = partial(_action, "compare")
_models = partial(_action, "models")
_canary = partial(_action, "canary")
_recommend = partial(_action, "recommend")
_grid = partial(_action, "grid")
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
    _session("replay.step", "full_stop", "step", "Step", 2, "Show one sample more, and hold"),
    _session("replay.step_back", "comma", "step_back", "Back", 2, "Show one sample less, and hold"),
    _session("replay.seek", "ctrl+g", "seek", "Go to", 3,
             "Go to a time, a sample, an event or a configuration"),
    _session("replay.next_mark", "right_square_bracket", "next_mark", "Next mark", 9,
             "Go to the next decision on the time line"),
    _session("replay.previous_mark", "left_square_bracket", "previous_mark", "Previous mark", 9,
             "Go to the decision before"),
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
    _live("view.replay", "R", "replay_from", "Replay", 9,
          "Replay from the first sample of the configuration shown"),
    _live("view.side_by_side", "v", "side_by_side", "Side by side", 8, "A plot for each target"),
    _live("view.overview", "V", "overview", "Overview", 8, "A sparkline for each configuration"),
    _live("sample.right", "right", "sample_right", "Cursor", 7, "The cursor to the next sample"),
    _live("sample.left", "left", "sample_left", "Left", 9, "The cursor to the sample before"),
    _live("sample.details", "enter", "details", "Details", 1,
          "All that is known of the sample under the cursor"),
    _live("sample.reject", "d", "reject", "Reject", 2,
          "The sample under the cursor is never fitted; asks why"),
    _live("sample.restore", "d", "restore", "Restore", 2, "The sample counts as measured again"),
    _live("sample.pin", "m", "pin", "Pin", 3, "Mark the sample under the cursor; asks why"),
    _live("sample.unpin", "m", "unpin", "Unpin", 3, "Take the mark away"),
    _live("sample.repeat", "o", "repeat", "Once more", 3,
          "Measure one more repetition of the sample under the cursor"),
    _live("sample.point", "O", "point", "Point", 9, "Measure one more point of what is shown"),
    _live("run.budget", "B", "budget", "Budget", 4, "Let the campaign spend more lab time"),
    _live("view.closer", "greater_than_sign", "closer", "Closer", 8,
          "Half the range of loads, around the cursor"),
    _live("view.wider", "less_than_sign", "wider", "Wider", 5, "Twice the range of loads"),
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
    _sessions("session.draft", "N", "draft", "Change", 5, "A draft of its campaign, to be changed"),
    _sessions("session.export", "e", "export", "Export", 5, "Write samples as CSV, Parquet, ..."),
    _sessions("session.delete", "d", "delete", "Delete", 4, "Put it into the trash",
              plain="delete d"),
    _sessions("session.workspace", "w", "workspace", "Workspace", 6, "Open another workspace"),
    _sessions("sessions.reconnect", "r", "reconnect", "Reconnect", 1, "Look for the engine again"),
    _compare("compare.view", "v", "view", "View", 1,
             "Curves, errors, functions alone and chained, two sessions"),
    _compare("compare.chain", "tab", "chain", "Chain", 2, "Show the next chain"),
    _compare("compare.kpi", "y", "kpi", "KPI", 2, "Show the next KPI"),
    _compare("compare.rule", "R", "rule", "Rule", 4,
             "Predict by the next rule; the default is what is in force"),
    _compare("compare.left", "left", "read_left", "Left", 9, "Read out the load before"),
    _compare("compare.right", "right", "read_right", "Read", 5, "Read out the next load"),
    _compare("compare.live", "enter", "show_live", "Live", 4, "Show its samples on Live"),
    _compare("compare.other", "o", "other", "Other", 3, "Compare with another session"),
    _compare("compare.anew", "n", "anew", "Anew", 6, "Compute again, with what was measured since"),
    _compare("compare.profiles", "b", "profiles", "Profiles", 9,
             "Take the functions' profiles of another session"),
    _compare("compare.insist", "I", "insist", "Insist", 1,
             "Take profiles of another host all the same; the answer is marked"),
    _compare("compare.log", "l", "log_y", "Log", 7, "KPI axis: logarithmic or linear"),
    _compare("compare.log_wl", "L", "log_x", "Log wl", 9, "Workload axis: logarithmic or linear"),
    _compare("compare.zoom", "z", "zoom", "Zoom", 6, "The plot alone, the list alone; then both"),
    _models("models.kpi", "y", "kpi", "KPI", 2, "Show the next KPI"),
    _models("models.target", "tab", "target", "Target", 1, "Show the next target"),
    _models("models.pane", "v", "pane", "View", 1, "Scores, then residuals, then coefficients"),
    _models("models.over", "x", "over", "Over", 3, "Residuals over the load, or the predicted KPI"),
    _models("models.roll_back", "b", "roll_back", "Roll back", 1,
            "Put the version under the cursor in force again; asks first"),
    _canary("canary.plan", "n", "plan", "New", 1, "Plan a canary: chain, SLA, share, guard, cost"),
    _canary("canary.accept", "a", "accept", "Accept", 1, "Put the proposal in force; asks why"),
    _canary("canary.reject", "x", "reject", "Reject", 1, "Turn the proposal down; asks why"),
    _canary("canary.stop", "s", "end_canary", "Stop", 1, "End the canary after this sample; asks"),
    _canary("canary.abort", "S", "abort_canary", "Abort", 9, "End the canary now; asks first"),
    _canary("canary.other", "tab", "other", "Switch", 3, "Steps, or the proposal they led to"),
    _canary("canary.open", "o", "open", "Open", 4, "An earlier canary or proposal"),
    _canary("canary.zoom", "z", "zoom", "Zoom", 5, "The plot alone, the steps alone, then both"),
    _canary("canary.log", "l", "log_y", "Log", 6, "KPI axis: logarithmic or linear"),
    _recommend("recommend.ask", "e enter", "ask", "Ask", 1, "Write the SLA; enter asks then"),
    _recommend("recommend.drop", "escape", "drop", "Drop", 1, "Wait no longer for the answer"),
    _recommend("recommend.stop", "s", "end_measuring", "Stop", 1, "End what the lab measures"),
    _recommend("recommend.verify", "v", "verify", "Verify", 2,
               "Measure the recommended allocation on the lab; asks first"),
    _recommend("recommend.export", "x", "export", "Export", 2,
               "Look at it as Helm values, Compose, ... and write it"),
    _recommend("recommend.open", "o", "open", "Open", 3, "An earlier recommendation"),
    _recommend("recommend.more", "tab", "more", "More", 2, "What is below, page by page"),
    _events("events.open", "enter", "open", "Go to", 1, "Show the sample that the line is about"),
    _events("events.filter", "slash", "filter", "Filter", 2, "Only lines with this text",
            plain="slash ctrl+f"),
    _events("events.unfilter", "escape", "unfilter", "All", 2, "Show all lines again"),
    _events("events.level", "l", "level", "Level", 3, "All lines, warnings and errors, or errors"),
    _events("events.follow", "F", "follow", "Follow", 1, "Keep the latest line in sight"),
    _events("events.replay", "R", "replay_from", "Replay", 4, "Replay the session from this line"),
    _events("events.older", "o", "older", "Older", 4, "Fetch the events before the first line"),
    _grid("grid.edit", "enter", "edit", "Edit", 1, "Write the settings, line by line; esc leaves"),
    _grid("grid.target", "v", "next_target", "Target", 3, "The functions of the next target"),
    _grid("grid.settings", "m", "settings", "All", 4, "All settings, or those that matter most"),
    _grid("grid.down", "j down", "scroll(1)", "Down", 9, "Scroll the settings", plain="down"),
    _grid("grid.up", "k up", "scroll(-1)", "Up", 9, "Scroll the settings back", plain="up"),
    _chain("chain.add", "a", "add", "Add", 1, "A function or chain behind the part chosen"),
    _chain("chain.beside", "b", "add_beside", "Beside", 2, "One in parallel with the part chosen"),
    _chain("chain.target", "A", "add_target", "Target", 4, "Another target: a function or chain"),
    _chain("chain.policy", "y", "add_policy", "Policy", 3, "Targets: all chains obeying a policy"),
    _chain("chain.left", "h left", "part_left", "Left", 9, "Choose the function before",
           plain="left"),
    _chain("chain.right", "l right", "part_right", "Right", 9, "Choose the next function",
           plain="right"),
    _chain("chain.widen", "space", "widen", "Widen", 8, "Choose the group around what is chosen"),
    _chain("chain.earlier", "H shift+left", "part_earlier", "Earlier", 6,
           "Move the part towards the source, or up", plain="shift+left"),
    _chain("chain.later", "L shift+right", "part_later", "Later", 6,
           "Move the part towards the sink, or down", plain="shift+right"),
    _chain("chain.replicate", "plus equals_sign", "replicate", "Replicate", 5,
           "One more instance in parallel"),
    _chain("chain.passive", "p", "passive", "Passive", 7, "It gets a copy of the traffic, or not"),
    _chain("chain.remove", "x", "remove_part", "Remove", 4, "Take the part out of the chain",
           plain="delete x"),
    _chain("chain.details", "enter", "details", "Change", 5, "Names, share of a branch, ends"),
    _chain("chain.unpack", "v", "unpack", "Unpack", 7, "A chain's functions in its place"),
    _chain("chain.drop", "d", "remove_target", "Drop", 8, "Remove the target"),
    _chain("chain.copy", "C", "copy_target", "Double", 8, "The target once more, to be changed"),
    _chain("chain.text_down", "J", "text_down", "Text", 9, "Show later lines of the descriptor"),
    _chain("chain.text_up", "K", "text_up", "Text", 9, "Show earlier lines of the descriptor"),
    _chain("chain.grid", "w", "grid", "Grid", 2, "Resources and workload of the targets"),
    _draft("draft.new", "n", "new_draft", "New", 3, "Start a draft, from a template or nothing"),
    _draft("draft.open", "o", "open_draft", "Open", 3, "Go on with another draft"),
    _draft("draft.save", "s", "save_draft", "Save as", 4, "Save it as a template: campaign, chain"),
    _draft("draft.editor", "e", "edit_text", "Editor", 5, "The text in $EDITOR, and back"),
    _draft("draft.discard", "D", "discard_draft", "Discard", 8, "Remove the draft; undo brings it"),
    _draft("draft.run", "R", "run_draft", "Run", 2, "Choose a lab, see the plan, start it"),
    _draft("draft.reconnect", "r", "reconnect_draft", "Reconnect", 1, "Look for the engine again"),
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
