"""Plan a canary: fields with their defaults, and what it would do, before anything is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import cast

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from workbench.domain.errors import WorkbenchError
from workbench.domain.messages import GetStatus
from workbench.domain.projection import SessionView
from workbench.domain.questions import CanaryPlanned, PlanCanary, RetrainChain
from workbench.tui.application import Application
from workbench.tui.screens.canary import canary_question
from workbench.tui.screens.dialogs import ConfirmScreen, Dialog
from workbench.tui.text import plain_lines
from workbench.tui.watch import WATCHED_PACE
from workbench.tui.widgets.field import Field, Form
from workbench.tui.widgets.waiting import Busy
from workbench.tui.work import begin

LOOK_S = 1.0
"""How often the engine is asked what it computes while an answer is awaited."""
SETTLE_S = 0.3
"""How long nobody types before the plan is asked for."""


@dataclass(frozen=True)
class _Known:
    """What the engine said of a request."""

    request: RetrainChain
    planned: CanaryPlanned


class CanaryForm(Dialog[RetrainChain | None]):
    """The plan follows what is typed; enter asks once more, and starts."""

    def __init__(self, view: SessionView, chains: Sequence[str], chain: str) -> None:
        super().__init__()
        self.view = view
        self.form = Form(canary_question.fields(view, chains, chain), id="canary-fields")
        self._known: _Known | None = None
        self._confirming = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog canary-form"):
            yield Static("Plan a canary", classes="dialog-title", markup=False)
            with VerticalScroll(classes="dialog-text", can_focus=False):
                yield self.form
                yield Static("", id="plan", markup=False)
            yield Static(
                "enter start   ↓ ↑ fields   ← → choose   esc cancel",
                classes="dialog-keys",
                markup=False,
            )

    def on_mount(self) -> None:
        self.form.edit("chain")
        self._ask(0.0)

    # ------------------------------------------------------------------------- the plan

    def on_field_changed(self, event: Field.Changed) -> None:
        event.stop()
        self._ask(SETTLE_S)

    def on_form_submitted(self) -> None:
        self._ask(0.0, start=True)

    def on_form_left(self) -> None:
        self.dismiss(None)

    def _ask(self, settle_s: float, start: bool = False) -> None:
        begin(self, partial(self._plan, settle_s, start), group="plan", exclusive=True)

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
            busy = Busy.of("planning", measures=False)
            self._say(busy.text)
            looking = asyncio.ensure_future(self._look(busy))
            try:
                client = await cast(Application, self.app).client()
                reply = await client.ask(PlanCanary(request))
            except (WorkbenchError, OSError) as error:
                self._refused(error, start)
                return
            finally:
                looking.cancel()
            self._known = _Known(request, reply)
        known = self._known
        lines = canary_question.plan_lines(self.view, known.planned, request.budget_s)
        self._say("\n".join(lines))
        if start:
            self._confirm(known)

    async def _look(self, busy: Busy) -> None:
        """Say what the plan waits for, where it takes its time."""
        with suppress(WorkbenchError, OSError):  # the plan itself tells
            while True:
                await asyncio.sleep(LOOK_S)
                status = await (await cast(Application, self.app).client()).ask(GetStatus())
                busy.hear(status)
                self._say(busy.text)

    def _refused(self, error: WorkbenchError | OSError, start: bool) -> None:
        mistakes = canary_question.mistake_of(error) if isinstance(error, WorkbenchError) else {}
        self.form.refuse(mistakes)
        self._say("" if mistakes else f"! {error}")
        if start and mistakes:
            self.form.edit()

    def _say(self, words: str) -> None:
        self.query_one("#plan", Static).update(plain_lines(words))

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
