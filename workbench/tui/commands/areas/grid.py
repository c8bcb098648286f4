"""On the grid of resources and workload."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_grid = partial(action, "grid")

ACTIONS: tuple[Action, ...] = (
    _grid("grid.edit", "enter", "edit", "Edit", 1, "Write the settings, line by line; esc leaves"),
    _grid("grid.target", "v", "next_target", "Target", 3, "The functions of the next target"),
    _grid("grid.settings", "m", "settings", "All", 4, "All settings, or those that matter most"),
    _grid("grid.down", "j down", "scroll(1)", "Down", 9, "Scroll the settings", plain="down"),
    _grid("grid.up", "k up", "scroll(-1)", "Up", 9, "Scroll the settings back", plain="up"),
)  # fmt: skip
