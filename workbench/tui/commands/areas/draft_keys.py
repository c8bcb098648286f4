"""On every screen of a draft."""

from __future__ import annotations

from functools import partial

from workbench.tui.commands.action import Action, action

_draft = partial(action, "draft")

ACTIONS: tuple[Action, ...] = (
    _draft("draft.new", "n", "new_draft", "New", 3, "Start a draft, from a template or nothing"),
    _draft("draft.open", "o", "open_draft", "Open", 3, "Go on with another draft"),
    _draft("draft.save", "ctrl+s", "save_draft", "Save as", 4,
           "Save it as a template: campaign, chain", vim="s"),
    _draft("draft.editor", "e", "edit_text", "Editor", 5, "The text in $EDITOR, and back"),
    _draft("draft.discard", "Z", "discard_draft", "Discard", 8, "Remove the draft; undo brings it",
            vim="D"),
    _draft("draft.run", "f5", "run_draft", "Run", 2, "See what it takes, and start it; asks first",
            vim="R f5"),
    _draft("draft.mistake", "f5", "mistake", "Mistake", 2,
           "The line of what must be corrected before it runs", vim="R f5"),
    _draft("draft.reconnect", "r", "reconnect_draft", "Reconnect", 1, "Look for the engine again"),
)  # fmt: skip
