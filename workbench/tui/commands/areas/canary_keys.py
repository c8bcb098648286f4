"""On Canary."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_canary = partial(action, "canary")

ACTIONS: tuple[Action, ...] = (
    _canary("canary.plan", "n", "plan", "New", 1, "Plan a canary: chain, SLA, share, guard, cost"),
    _canary("canary.accept", "Y", "accept", "Accept", 1, "Put the proposal in force; asks why",
            vim="a"),
    _canary("canary.reject", "d delete", "reject", "Reject", 1, "Turn the proposal down; asks why",
            vim="x"),
    _canary("canary.stop", "s", "end_canary", "Stop", 1, "End the canary after this sample; asks"),
    _canary("canary.abort", "S", "abort_canary", "Abort", 9, "End the canary now; asks first"),
    _canary("canary.drop", "escape", "drop", "Cancel", 1, "Cancel the retraining"),
    _canary("canary.other", "tab", "other", "Switch", 2, "Steps, or the proposal they led to"),
    _canary("canary.open", "o", "open", "Open", 4, "An earlier canary or proposal"),
    _canary("canary.zoom", "z", "zoom", "Zoom", 5, "The plot alone, the steps alone, then both"),
    _canary("canary.log", "l", "log_y", "Log", 6, "KPI axis: logarithmic or linear"),
)  # fmt: skip
