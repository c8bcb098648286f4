"""On the grid of resources and workload."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_own = partial(action, "campaign")

ACTIONS: tuple[Action, ...] = (
    _own("campaign.edit", "enter", "edit", "Edit", 1,
         "Write the setting at the cursor; esc leaves"),
    _own("campaign.target", "tab", "next_target(1)", "Target", 3,
         "The functions of the next target", vim="v"),
    _own("campaign.target_before", "shift+tab", "next_target(-1)", "Target", 9,
         "The functions of the target before"),
    _own("campaign.settings", "h", "settings", "More", 4, "All settings, or those that matter most",
            vim="m"),
    _own("campaign.down", "down j", "move_cursor(1)", "Down", 9, "The cursor to the next setting"),
    _own("campaign.up", "up k", "move_cursor(-1)", "Up", 9, "The cursor to the setting before"),
    _own("campaign.first", "home g", "move_cursor(-1000)", "First", 9, "The cursor to the first"),
    _own("campaign.last", "end G", "move_cursor(1000)", "Last", 9, "The cursor to the last"),
)  # fmt: skip
