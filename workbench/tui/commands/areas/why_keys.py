"""On Why."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_why = partial(action, "why")

ACTIONS: tuple[Action, ...] = (
    _why("why.pane", "v", "pane", "View", 1, "Causes with their rivals, or all evidence"),
    _why("why.target", "tab", "target", "Target", 2,
         "The next target, at its sample that is slowest relative to its functions alone"),
    _why("why.left", "left", "sample_left", "Left", 9, "The sample of the load before"),
    _why("why.right", "right", "sample_right", "Sample", 3, "The sample of the next load"),
    _why("why.live", "enter", "show_live", "Live", 5, "Show the sample on Live"),
    _why("why.measure", "f5", "measure", "Measure", 4,
         "Measure the point that would tell most; asks first"),
    _why("why.anew", "ctrl+r", "anew", "Refresh", 6, "Ask again, with what was measured since"),
    _why("why.drop", "escape", "drop", "Cancel", 1, "Cancel the question"),
)  # fmt: skip
