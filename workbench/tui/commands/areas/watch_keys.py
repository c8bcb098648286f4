"""On Watch."""

from __future__ import annotations

from workbench.tui.commands.action import Action, action

ACTIONS: tuple[Action, ...] = (
    action("watch", "watch.details", "enter", "details", "Details", 1,
           "All that is known of the watch: why, changes, how sure the model is"),
)  # fmt: skip
