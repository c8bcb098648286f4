"""On the grid of resources and workload."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_grid = partial(action, "grid")

ACTIONS: tuple[Action, ...] = (
    _grid("grid.edit", "enter", "edit", "Edit", 1, "Write the setting at the cursor; esc leaves"),
    _grid("grid.target", "v", "next_target", "Target", 3, "The functions of the next target",
            plain="tab"),
    _grid("grid.settings", "m", "settings", "More", 4, "All settings, or those that matter most",
            plain="h"),
    _grid("grid.down", "j down", "move_cursor(1)", "Down", 9, "The cursor to the next setting",
          plain="down"),
    _grid("grid.up", "k up", "move_cursor(-1)", "Up", 9, "The cursor to the setting before",
          plain="up"),
)  # fmt: skip
