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
    _sessions("session.filter", "slash ctrl+f", "filter", "Filter", 3,
              "Only sessions with this text"),
    _sessions("session.unfilter", "escape", "unfilter", "All", 9, "Show all sessions again"),
    _sessions("sessions.sort", "f6", "sort", "Sort", 6, "Sort the list by the next column",
            vim="o"),
    _sessions("sessions.reverse", "O", "reverse", "Reverse", 9, "Sort it the other way round"),
    _sessions("sessions.columns", "v", "columns", "Columns", 6,
              "Show, hide and move columns of the list"),
    _sessions("session.rename", "e", "rename", "Rename", 5, "Give the session another name",
            vim="m"),
    _sessions("session.duplicate", "C", "duplicate", "Duplicate", 6, "Copy it under another name",
            vim="D"),
    _sessions("session.draft", "N", "draft", "Change", 5, "Make a draft of its campaign"),
    _sessions("session.export", "x", "export", "Export", 5, "Write samples as CSV, Parquet, ...",
            vim="e"),
    _sessions("session.delete", "d delete", "delete", "Delete", 4,
              "Into the trash; undo brings it"),
    _sessions("session.workspace", "ctrl+k", "workspace", "Workspace", 6, "Open another workspace",
            vim="w"),
    _sessions("sessions.reconnect", "r", "reconnect", "Reconnect", 1, "Look for the engine again"),
)  # fmt: skip
