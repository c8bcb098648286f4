"""In the list of sessions."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_sessions = partial(action, "sessions")

ACTIONS: tuple[Action, ...] = (
    _sessions("session.open", "enter", "open", "Open", 1, "Open the session under the cursor"),
    _sessions("session.new", "n", "new", "New", 1, "Start a campaign from a template"),
    _sessions("session.resume", "r", "resume", "Resume", 2, "Go on with one that was stopped"),
    _sessions("session.replay", "R", "replay", "Replay", 2, "Play a session from its start"),
    _sessions("session.filter", "slash", "filter", "Filter", 3, "Only sessions with this text",
              plain="slash ctrl+f"),
    _sessions("session.unfilter", "escape", "unfilter", "All", 9, "Show all sessions again"),
    _sessions("sessions.sort", "o", "sort", "Sort", 6, "Sort the list by the next column",
            plain="G"),
    _sessions("sessions.reverse", "O", "reverse", "Reverse", 9, "Sort it the other way round"),
    _sessions("sessions.columns", "v", "columns", "Columns", 6,
              "Show, hide and move columns of the list"),
    _sessions("session.rename", "m", "rename", "Rename", 5, "Give the session another name",
            plain="e"),
    _sessions("session.duplicate", "D", "duplicate", "Duplicate", 6, "Copy it under another name",
            plain="C"),
    _sessions("session.draft", "N", "draft", "Change", 5, "A draft of its campaign, to be changed"),
    _sessions("session.export", "e", "export", "Export", 5, "Write samples as CSV, Parquet, ...",
            plain="x"),
    _sessions("session.delete", "d", "delete", "Delete", 4, "Into the trash; undo brings it",
              plain="delete d"),
    _sessions("session.workspace", "w", "workspace", "Workspace", 6, "Open another workspace",
            plain="ctrl+w"),
    _sessions("sessions.reconnect", "r", "reconnect", "Reconnect", 1, "Look for the engine again"),
)  # fmt: skip
