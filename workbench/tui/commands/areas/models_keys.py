"""On Models."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_models = partial(action, "models")

ACTIONS: tuple[Action, ...] = (
    _models("models.kpi", "y", "kpi", "KPI", 2, "Show the next KPI"),
    _models("models.target", "tab", "target", "Target", 1, "Show the next target"),
    _models("models.pane", "v", "pane", "View", 1, "Scores, then residuals, then coefficients"),
    _models("models.sort", "f6", "sort", "Sort", 3, "Sort the scores by the next column", vim="o"),
    _models("models.reverse", "O", "reverse", "Reverse", 9, "Sort them the other way round"),
    _models("models.score", "ctrl+r", "score", "Score", 1,
            "Cross-validate all methods on a target's samples; store the best",
            vim="n"),
    _models("models.drop", "escape", "drop", "Cancel", 1, "Cancel the scoring"),
    _models("models.over", "J", "over", "Over", 3, "Residuals over the load, or the predicted KPI",
            vim="x"),
    _models("models.roll_back", "U", "roll_back", "Roll back", 1,
            "Put the version under the cursor in force again; asks first", vim="b"),
)  # fmt: skip
