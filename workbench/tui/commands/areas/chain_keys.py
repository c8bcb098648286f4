"""On Chain: the targets of a draft and their parts."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_chain = partial(action, "chain")

ACTIONS: tuple[Action, ...] = (
    _chain("chain.add", "a", "add", "Add", 1, "A function or chain behind the part chosen"),
    _chain("chain.beside", "b", "add_beside", "Beside", 2, "One in parallel with the part chosen"),
    _chain("chain.target", "A", "add_target", "Target", 4, "Another target: a function or chain"),
    _chain("chain.policy", "f3", "add_policy", "Policy", 3, "Targets: all chains obeying a policy",
            vim="y"),
    _chain("chain.left", "left", "part_left", "Left", 9, "Choose the function before",
           vim="h left"),
    _chain("chain.right", "right", "part_right", "Right", 9, "Choose the next function",
           vim="l right"),
    _chain("chain.widen", "space", "widen", "Widen", 8, "Choose the group around what is chosen"),
    _chain("chain.earlier", "shift+left", "part_earlier", "Earlier", 6,
           "Move the part towards the source, or up", vim="H shift+left"),
    _chain("chain.later", "shift+right", "part_later", "Later", 6,
           "Move the part towards the sink, or down", vim="L shift+right"),
    _chain("chain.replicate", "plus equals_sign", "replicate", "Replicate", 5,
           "One more instance in parallel"),
    _chain("chain.passive", "f7", "passive", "Passive", 7,
           "Passive: it gets a copy of the traffic; again: back into the path", vim="p"),
    _chain("chain.remove", "d delete", "remove_part", "Remove", 4,
           "Take the part out; undo brings it", vim="x"),
    _chain("chain.details", "enter", "details", "Change", 5, "Names, share of a branch, ends"),
    _chain("chain.unpack", "f8", "unpack", "Unpack", 7, "A chain's functions in its place",
            vim="v"),
    _chain("chain.drop", "D", "remove_target", "Drop", 8, "Remove the target; undo brings it",
           vim="d"),
    _chain("chain.copy", "C", "copy_target", "Duplicate", 8, "A copy of the target, to be changed"),
    _chain("chain.text_down", "shift+down", "text_down", "Text", 9,
           "Show later lines of the descriptor", vim="J"),
    _chain("chain.text_up", "shift+up", "text_up", "Text", 9,
           "Show earlier lines of the descriptor", vim="K"),
    _chain("chain.campaign", "f4", "campaign", "Campaign", 2,
           "Resources and workload of the targets",
            vim="w"),
)  # fmt: skip
