"""On Compare."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_compare = partial(action, "compare")

ACTIONS: tuple[Action, ...] = (
    _compare("compare.view", "v", "view", "View", 1,
             "Curves, errors, functions alone and chained, two sessions"),
    _compare("compare.chain", "tab", "chain", "Chain", 2, "Show the next chain"),
    _compare("compare.kpi", "y", "kpi", "KPI", 2, "Show the next KPI"),
    _compare("compare.rule", "f9", "rule", "Rule", 4,
             "Predict by the next rule; the default is what is in force", vim="R"),
    _compare("compare.left", "left", "read_left", "Left", 9, "Read out the load before"),
    _compare("compare.right", "right", "read_right", "Read", 5, "Read out the next load"),
    _compare("compare.live", "enter", "show_live", "Live", 4, "Show its samples on Live"),
    _compare("compare.other", "o", "other", "Other", 3, "Compare with another session"),
    _compare("compare.anew", "ctrl+r", "anew", "Refresh", 6,
             "Compute again, with what was measured since", vim="n"),
    _compare("compare.drop", "escape", "drop", "Cancel", 1, "Cancel the computation"),
    _compare("compare.profiles", "Q", "profiles", "Profiles", 9,
             "Predict from the profiles of another session", vim="b"),
    _compare("compare.insist", "I", "insist", "Insist", 1,
             "Use profiles of another host anyway; the answer is marked"),
    _compare("compare.series", "h", "series", "Series", 8,
             "Switch a series of the plot off, or on again", vim="a"),
    _compare("compare.log", "l", "log_y", "Log", 7, "KPI axis: logarithmic or linear"),
    _compare("compare.log_wl", "L", "log_x", "Log load", 9, "Load axis: logarithmic or linear"),
    _compare("compare.zoom", "z", "zoom", "Zoom", 6, "The plot alone, the list alone; then both"),
)  # fmt: skip
