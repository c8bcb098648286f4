"""On Chain: the targets of a draft and their parts."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_chain = partial(action, "chain")

ACTIONS: tuple[Action, ...] = (
    _chain("chain.add", "a", "add", "Add", 1, "A function or chain behind the part chosen"),
    _chain("chain.beside", "b", "add_beside", "Beside", 2, "One in parallel with the part chosen"),
    _chain("chain.target", "A", "add_target", "Target", 4, "Another target: a function or chain"),
    _chain("chain.policy", "y", "add_policy", "Policy", 3, "Targets: all chains obeying a policy",
            plain="f3"),
    _chain("chain.left", "h left", "part_left", "Left", 9, "Choose the function before",
           plain="left"),
    _chain("chain.right", "l right", "part_right", "Right", 9, "Choose the next function",
           plain="right"),
    _chain("chain.widen", "space", "widen", "Widen", 8, "Choose the group around what is chosen"),
    _chain("chain.earlier", "H shift+left", "part_earlier", "Earlier", 6,
           "Move the part towards the source, or up", plain="shift+left"),
    _chain("chain.later", "L shift+right", "part_later", "Later", 6,
           "Move the part towards the sink, or down", plain="shift+right"),
    _chain("chain.replicate", "plus equals_sign", "replicate", "Replicate", 5,
           "One more instance in parallel"),
    _chain("chain.passive", "p", "passive", "Passive", 7, "It gets a copy of the traffic, or not",
            plain="f7"),
    _chain("chain.remove", "x", "remove_part", "Remove", 4, "Take the part out; undo brings it",
            plain="delete d"),
    _chain("chain.details", "enter", "details", "Change", 5, "Names, share of a branch, ends"),
    _chain("chain.unpack", "v", "unpack", "Unpack", 7, "A chain's functions in its place",
            plain="f8"),
    _chain("chain.drop", "d", "remove_target", "Drop", 8, "Remove the target; undo brings it",
           plain="D"),
    _chain("chain.copy", "C", "copy_target", "Double", 8, "The target once more, to be changed"),
    _chain("chain.text_down", "J", "text_down", "Text", 9, "Show later lines of the descriptor"),
    _chain("chain.text_up", "K", "text_up", "Text", 9, "Show earlier lines of the descriptor"),
    _chain("chain.grid", "w", "grid", "Grid", 2, "Resources and workload of the targets",
            plain="f4"),
)  # fmt: skip
