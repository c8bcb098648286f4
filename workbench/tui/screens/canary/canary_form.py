"""Plan a canary: fields with their defaults, and what it would do, before anything is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from workbench.domain.projection import SessionView
from workbench.domain.questions import CanaryPlanned, PlanCanary, RetrainChain
from workbench.tui.screens.asking import EngineQuestion
from workbench.tui.screens.canary import canary_question
from workbench.tui.screens.dialogs import ConfirmScreen, Dialog
from workbench.tui.text import plain_lines
from workbench.tui.watch import WATCHED_PACE
from workbench.tui.widgets.field import Field, Form

SETTLE_S = 0.3
"""How long nobody types before the plan is asked for."""
KEYS = "f5 start   enter next   ↓ ↑ fields   ← → choose   esc cancel"


@dataclass(frozen=True)
class _Known:
    """What the engine said of a request."""

    request: RetrainChain
    planned: CanaryPlanned


class CanaryForm(Dialog[RetrainChain | None]):
    """The plan follows what is typed; f5 asks once more, and starts."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("f5", "start", "Start"),
        ("pagedown", "scroll(1)", "Page down"),
        ("pageup", "scroll(-1)", "Page up"),
    ]

    def __init__(self, view: SessionView, chains: Sequence[str], chain: str) -> None:
        super().__init__()
        self.view = view
        self.form = Form(canary_question.fields(view, chains, chain), id="canary-fields")
        self.asking = EngineQuestion(self, self._draw_busy)
        self._known: _Known | None = None
        self._planning = False
        """The plan is being asked for: nobody types any more."""
        self._confirming = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog canary-form"):
            yield Static("Plan a canary", classes="dialog-title", markup=False)
            with VerticalScroll(classes="dialog-text", can_focus=False):
                yield self.form
                yield Static("", id="plan", markup=False)
            yield Static(KEYS, classes="dialog-keys", markup=False)

    def on_mount(self) -> None:
        self.form.edit("chain")
        self._ask(0.0)

    def on_resize(self) -> None:
        self.call_after_refresh(self._name_keys)

    @property
    def _text(self) -> VerticalScroll:
        return self.query_one(".dialog-text", VerticalScroll)

    def _name_keys(self) -> None:
        """The one that scrolls only where there is more than is seen."""
        more = "   pgdn more" * bool(self._text.max_scroll_y)
        self.query_one(".dialog-keys", Static).update(f"{KEYS}{more}")

    def action_scroll(self, pages: int) -> None:
        text = self._text
        text.scroll_relative(y=pages * max(1, text.size.height - 1), animate=False)

    # ------------------------------------------------------------------------- the plan

    def on_field_changed(self, event: Field.Changed) -> None:
        event.stop()
        self._ask(SETTLE_S)

    def on_form_submitted(self) -> None:
        self.form.go_on()

    def action_start(self) -> None:
        self._ask(0.0, start=True)

    def on_form_left(self) -> None:
        self.dismiss(None)

    def _ask(self, settle_s: float, start: bool = False) -> None:
        self.asking.begin(partial(self._plan, settle_s, start), "planning")

    async def _plan(self, settle_s: float, start: bool) -> None:
        await asyncio.sleep(settle_s)
        pace = WATCHED_PACE if self.view.lab.partition(":")[0] == "sim" else None
        request, mistakes = canary_question.request_of(self.view.session, self.form.values(), pace)
        self.form.refuse(mistakes)
        if request is None:
            self._say("")
            if start:
                self.form.edit()
            return
        if self._known is None or self._known.request != request:
            self._planning = True
            self._draw_busy()
            try:
                reply = await self.asking.answer(PlanCanary(request))
            finally:
                self._planning = False
            if reply is None:
                self._refused(start)
                return
            self._known = _Known(request, reply)
        known = self._known
        lines = canary_question.plan_lines(self.view, known.planned, request.budget_s)
        self._say("\n".join(lines))
        if start:
            self._confirm(known)

    def _draw_busy(self) -> None:
        """Say what the plan waits for, where it takes its time."""
        if self._planning and self.asking.busy is not None:
            self._say(self.asking.busy.text)

    def _refused(self, start: bool) -> None:
        error = self.asking.refused
        mistakes = canary_question.mistake_of(error) if error is not None else {}
        self.form.refuse(mistakes)
        self._say("" if mistakes else f"! {error}")
        if start and mistakes:
            self.form.edit()

    def _say(self, words: str) -> None:
        self.query_one("#plan", Static).update(plain_lines(words))
        self.call_after_refresh(self._name_keys)

    # ------------------------------------------------------------------------- the start

    def _confirm(self, known: _Known) -> None:
        if self._confirming:
            return
        self._confirming = True
        request, planned = known.request, known.planned
        chain = planned.plan.chain

        def answered(yes: bool | None) -> None:
            self._confirming = False
            if yes:
                self.dismiss(request)

        if request.steps:
            question = f"Load {chain} with {canary_question.steps(planned)}?"
            consequence = (
                f"That takes about {canary_question.cost(planned, request.budget_s)}; "
                f"{canary_question.guarded(planned)}."
            )
        else:
            question = f"Retrain the model of {chain}?"
            consequence = "Nothing is measured; the proposal waits for you to decide."
        self.app.push_screen(ConfirmScreen(question, consequence), answered)
