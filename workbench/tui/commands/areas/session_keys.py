"""On every screen of an open session: its run, its replay; and on Live."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_session = partial(action, "session")
_live = partial(action, "live")

ACTIONS: tuple[Action, ...] = (
    _session("run.pause", "p", "pause", "Pause", 1, "Pause after this sample"),
    _session("run.continue", "p", "continue", "Continue", 1, "Go on measuring"),
    _session("run.stop", "s", "stop", "Stop", 1, "End the run after this sample; asks first"),
    _session("run.abort", "S", "abort", "Abort", 9, "End the run now, lose this sample; asks"),
    _session("run.rescue", "ctrl+s", "rescue", "Write again", 1,
             "Write the session again, whose file was replaced or removed; the run goes on"),
    _live("run.skip", "K", "skip", "Skip", 2,
             "Take no more samples of this configuration; asks first", vim="x"),
    _session("control.ask", "w", "ask_control", "Ask", 2, "Ask whoever drives the run for control"),
    _session("control.give", "w", "give_control", "Give", 1, "Let whoever asks drive the run"),
    _session("control.keep", "W", "keep_control", "Keep", 1, "Drive on, though somebody asks"),
    _session("run.resume", "r", "resume", "Resume", 1, "Go on with this session"),
    _session("replay.pause", "p", "replay_pause", "Pause", 1, "Pause the replay"),
    _session("replay.play", "p", "replay_play", "Play", 1, "Resume the replay"),
    _session("replay.faster", "plus equals_sign", "faster", "Faster", 1, "Replay twice as fast"),
    _session("replay.slower", "minus", "slower", "Slower", 1, "Replay half as fast"),
    _session("replay.step", "full_stop", "step", "Step", 2, "Forward by one sample, and pause"),
    _session("replay.step_back", "comma", "step_back", "Back", 2, "Back by one sample, and pause"),
    _session("replay.seek", "ctrl+g", "seek", "Go to", 3,
             "Go to a time, a sample, an event or a configuration"),
    _session("replay.next_mark", "right_square_bracket", "next_mark", "Next mark", 9,
             "Go to the next decision on the time line"),
    _session("replay.previous_mark", "left_square_bracket", "previous_mark", "Previous mark", 9,
             "Go to the decision before"),
    _session("link.reconnect", "r", "reconnect", "Reconnect", 1, "Look for the engine again"),
    _live(
        "select.next", "down j", "next_configuration", "Next", 6, "Show the next configuration",
        vim="j n down",
    ),
    _live(
        "select.previous", "up k", "previous_configuration", "Previous", 9, "Show the one before",
        vim="k b up",
    ),
    _live("select.first", "home g", "first_configuration", "First", 9, "Show the first one"),
    _live("select.last", "end G", "last_configuration", "Last", 9, "Show the last one"),
    _live("select.follow", "F", "follow", "Follow", 2, "Show whichever is being measured"),
    _session("view.freeze", "f", "freeze", "Freeze", 3, "Freeze what is shown; measuring goes on"),
    _session("view.unfreeze", "f", "unfreeze", "Unfreeze", 1, "Show what happens again"),
    _live("view.log", "l", "log_y", "Log", 4, "KPI axis: logarithmic or linear"),
    _live("view.log_wl", "L", "log_x", "Log load", 9, "Load axis: logarithmic or linear"),
    _live("view.kpi", "y", "kpi", "KPI", 4, "Show the next KPI"),
    _live("view.replay", "R", "replay_from", "Replay", 9,
          "Replay from the first sample of the configuration shown"),
    _live("view.side_by_side", "v", "side_by_side", "Side by side", 8, "A plot for each target"),
    _live("view.overview", "V", "overview", "Overview", 8, "A sparkline for each configuration"),
    _live("sample.right", "right", "sample_right", "Cursor", 7, "The cursor to the next sample"),
    _live("sample.left", "left", "sample_left", "Left", 9, "The cursor to the sample before"),
    _live("sample.details", "enter", "details", "Details", 1,
          "All that is known of the sample under the cursor"),
    _live("sample.reject", "d delete", "reject", "Reject", 2,
          "The sample under the cursor is never fitted; asks why"),
    _live("sample.restore", "d delete", "restore", "Restore", 2,
          "The sample counts as measured again"),
    _live("sample.pin", "m", "pin", "Pin", 3, "Mark the sample under the cursor, with a note"),
    _live("sample.unpin", "m", "unpin", "Unpin", 3, "Take the mark away"),
    _live("sample.repeat", "A", "repeat", "Repeat", 3,
          "Measure one more repetition of the sample under the cursor", vim="o"),
    _live("sample.point", "insert", "point", "Point", 9, "Measure one more point of what is shown",
            vim="O"),
    _live("run.budget", "B", "budget", "Budget", 4, "Let the campaign take longer"),
    _live("view.closer", "greater_than_sign", "closer", "Closer", 8,
          "Half the range of loads, around the cursor"),
    _live("view.wider", "less_than_sign", "wider", "Wider", 5, "Twice the range of loads"),
    _live("view.zoom", "z", "zoom", "Zoom", 5, "One panel alone: plot, list, usage, log; then all"),
    _session("go.back", "escape", "back", "Back", 3, "Back to the sessions; the run goes on"),
)  # fmt: skip
