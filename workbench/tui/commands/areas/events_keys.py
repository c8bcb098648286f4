"""On Events."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_events = partial(action, "events")

ACTIONS: tuple[Action, ...] = (
    _events("events.open", "enter", "open", "Go to", 1, "Show the sample that the line is about"),
    _events("events.filter", "slash ctrl+f", "filter", "Filter", 2, "Only lines with this text"),
    _events("events.unfilter", "escape", "unfilter", "All", 2, "Show all lines again"),
    _events("events.level", "h", "level", "Level", 3, "All lines, warnings and errors, or errors",
            vim="l"),
    _events("events.what", "v", "what", "What", 2, "Events and logs, only events, or only logs"),
    _events("events.follow", "F", "follow", "Follow", 1, "Keep the latest line in sight"),
    _events("events.replay", "R", "replay_from", "Replay", 4, "Replay the session from this line"),
    _events("events.older", "H", "older", "Older", 4, "Fetch the events before the first line",
            vim="o"),
)  # fmt: skip
