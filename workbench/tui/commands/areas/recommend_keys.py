"""On Recommend."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_recommend = partial(action, "recommend")

ACTIONS: tuple[Action, ...] = (
    _recommend("recommend.ask", "e enter", "ask", "Edit", 1, "Edit the question: chain, SLA"),
    _recommend("recommend.compute", "ctrl+r", "compute", "Ask", 1, "Ask what stands in the form"),
    _recommend("recommend.drop", "escape", "drop", "Cancel", 1, "Cancel the question"),
    _recommend("recommend.stop", "s", "end_measuring", "Stop", 1,
               "End what the lab measures; asks first"),
    _recommend("recommend.verify", "f5", "verify", "Verify", 2,
               "Measure the recommended allocation on the lab; asks first", vim="v f5"),
    _recommend("recommend.export", "x", "export", "Export", 2,
               "Look at it as Helm values, Compose, ... and write it"),
    _recommend("recommend.open", "o", "open", "Open", 3, "An earlier recommendation"),
    _recommend("recommend.more", "tab", "more", "More", 2, "What is below, page by page"),
)  # fmt: skip
