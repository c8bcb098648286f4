"""On the grid of resources and workload."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_grid = partial(action, "grid")

ACTIONS: tuple[Action, ...] = (
    _grid("grid.edit", "enter", "edit", "Edit", 1, "Write the setting at the cursor; esc leaves"),
    _grid("grid.target", "tab", "next_target", "Target", 3, "The functions of the next target",
            vim="v"),
    _grid("grid.settings", "h", "settings", "More", 4, "All settings, or those that matter most",
            vim="m"),
    _grid("grid.down", "down j", "move_cursor(1)", "Down", 9, "The cursor to the next setting"),
    _grid("grid.up", "up k", "move_cursor(-1)", "Up", 9, "The cursor to the setting before"),
)  # fmt: skip
