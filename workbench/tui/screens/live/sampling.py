"""What a user does with single samples on the screen Live: look closer, decide, ask for more."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

from workbench.domain.configurations import ConfigurationView, SamplePoint
from workbench.domain.errors import UsageError, WorkbenchError
from workbench.domain.messages import Done, Request, ResumeSession, ViewSession
from workbench.domain.projection import SessionView
from workbench.domain.sample_review import (
    DecideSample,
    ExtendBudget,
    GetSample,
    RequestPoint,
    SampleVerdict,
)
from workbench.domain.sessions import UNDER_WAY
from workbench.tui import profile_figure, sample_rows
from workbench.tui.present import Shown, ViewChoice, name_of
from workbench.tui.replaying.seeking import UNITS_S
from workbench.tui.screens.dialogs import MessageScreen, NameScreen
from workbench.tui.screens.reason import ReasonScreen
from workbench.tui.screens.session import SessionScreen
from workbench.tui.text import duration, number
from workbench.tui.undo import Undo
from workbench.tui.watch import RESUMABLE, WATCHED_PACE
from workbench.tui.workers import begin


class SamplingScreen(SessionScreen):
    """The actions; `LiveScreen` draws."""

    def __init__(self) -> None:
        super().__init__()
        self._asked_for: set[tuple[int, str]] = set()
        self._filling: tuple[int, str] | None = None
        """Configurations whose samples were asked for, of which view."""

    @property
    def here(self) -> SamplePoint | None:
        """The sample under the cursor."""
        if not self.choice.sample:
            return None  # every key asks for it, and there may be thousands to look through
        selected = self.shown.selected(self.choice)
        samples = selected.samples if selected is not None else ()
        return next((s for s in samples if s.id == self.choice.sample), None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        watch, here = self.opened, self.here
        view = watch.live.view
        selected = self.shown.selected(self.choice)
        runs = view.state in UNDER_WAY and view.under_trial is None
        spent = view.finished is not None and view.finished.outcome == "budget"
        conditions = {
            "sample_right": selected is not None and bool(selected.samples),
            "sample_left": selected is not None and bool(selected.samples),
            "details": here is not None,
            "reject": watch.commandable and here is not None and here.verdict != "rejected",
            "restore": watch.commandable and here is not None and here.verdict == "rejected",
            "pin": watch.commandable and here is not None and here.verdict == "open",
            "unpin": watch.commandable and here is not None and here.verdict == "pinned",
            "repeat": watch.commandable and here is not None,
            "point": watch.commandable and selected is not None,
            "budget": watch.commandable
            and ((runs and view.budget_s is not None) or (spent and view.state not in RESUMABLE)),
            "closer": selected is not None,
            "wider": self.choice.span is not None,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        if said := super().why_not(method):
            return said
        if method in ("point", "closer", "sample_left", "sample_right"):
            return "Nothing is measured yet."
        if method in ("pin", "unpin") and self.here is not None:
            return f"A rejected sample takes no mark: {self.key('sample.restore')} restores it."
        if method in ("details", "reject", "restore", "pin", "unpin", "repeat"):
            return f"No sample is under the cursor: {self.key('sample.left')} chooses one."
        if method == "budget" and self.opened.live.view.budget_s is None:
            return "This campaign has no budget that could be extended."
        if method == "budget":
            return "The budget does not end this campaign."
        if method == "wider":
            return "The whole range is shown."
        return ""

    # ------------------------------------------------------------------------- cursor and zoom

    def action_sample_right(self) -> None:
        self._step_sample(1)

    def action_sample_left(self) -> None:
        self._step_sample(-1)

    def _step_sample(self, step: int) -> None:
        selected = self.shown.selected(self.choice)
        if selected is None:
            return
        found = sample_rows.neighbour(selected.samples, self.choice.sample, step)
        if found is not None:
            span = self.choice.span
            if span and not span[0] <= found.wl <= span[1]:
                span = self._span(found.wl, 1.0)
            self.choose(replace(self.choice, key=selected.key, sample=found.id, span=span))

    def action_closer(self) -> None:
        self._zoom_to(sample_rows.CLOSER)

    def action_wider(self) -> None:
        self._zoom_to(1 / sample_rows.CLOSER)

    def _zoom_to(self, factor: float) -> None:
        span, here = self.choice.span, self.here
        whole = self._whole()
        if whole is None:
            return
        low, high = span or whole
        log = profile_figure.figure(self.shown, self.choice).log_x
        middle = (low * high) ** 0.5 if log and low > 0 else (low + high) / 2
        self.choose(replace(self.choice, span=self._span(here.wl if here else middle, factor)))

    def _span(self, at: float, factor: float) -> tuple[float, float] | None:
        whole = self._whole()
        if whole is None:
            return None
        log = profile_figure.figure(self.shown, self.choice).log_x
        return sample_rows.closer(self.choice.span, whole, at, factor, log)

    def _whole(self) -> tuple[float, float] | None:
        selected, campaign = self.shown.selected(self.choice), self.shown.view.campaign
        if selected is None or campaign is None:
            return None
        primary = campaign.target_plan(selected.target).primary
        return primary.low, primary.high

    # ------------------------------------------------------------------------- details

    def action_details(self) -> None:
        here = self.here
        if here is None:
            return

        async def show() -> None:
            try:
                client = await self.workbench.client()
                reply = await client.ask(GetSample(self.opened.session, here.id))
            except (WorkbenchError, OSError) as error:
                self.workbench.say(str(error), "error")
                return
            words = sample_rows.detail_text(reply, self.shown.kpi(self.choice))
            self.show_late(MessageScreen(f"Sample, {sample_rows.short_name(here)}", words))

        begin(self, show, group="details", exclusive=True)

    def fill_in(self, shown: Shown, choice: ViewChoice) -> None:
        """Fetch samples of the configuration shown that the view of a long session leaves out."""
        selected, live = shown.selected(choice), self.opened.live.view
        if selected is None or not selected.left_out or self.opened.lost or shown.view is not live:
            return
        wanted = (id(live), selected.key)
        if wanted in self._asked_for or wanted == self._filling:
            return
        self._filling = wanted  # its place may be taken, and then it is asked for again

        async def fetch() -> None:
            try:
                client = await self.workbench.client()
                reply = await client.ask(
                    ViewSession(self.opened.session, until=live.seq, focus=selected.key)
                )
            except (WorkbenchError, OSError):
                self._asked_for.add(wanted)  # what is there is shown as it is
                return
            self._asked_for.add(wanted)
            found = reply.view.configuration(selected.key)
            if found is None or len(found.samples) <= len(selected.samples):
                return
            known = {sample.id for sample in found.samples}
            later = [sample for sample in selected.samples if sample.id not in known]
            taken = selected.taken
            live.points += len(found.samples) + len(later) - len(selected.samples)
            selected.samples = [*found.samples, *later]
            selected.left_out = max(0, taken - len(selected.samples))
            selected.left_out_reasons = found.left_out_reasons
            selected.curve = selected.curve or found.curve
            self.opened.touch()

        begin(self, fetch, group="fill", exclusive=True)

    # ------------------------------------------------------------------------- decisions

    def action_reject(self) -> None:
        words = "It is kept, counts as not valid, and is never fitted."
        self._ask_why("rejected", "Reject the sample", words, needed=True)

    def action_pin(self) -> None:
        words = "It stays in sight; nothing is fitted again."
        self._ask_why("pinned", "Pin the sample", words, needed=False)

    def action_restore(self) -> None:
        self._decide("open", "")

    def action_unpin(self) -> None:
        self._decide("open", "")

    def _ask_why(
        self, verdict: SampleVerdict, question: str, consequence: str, *, needed: bool
    ) -> None:
        here = self.here
        if here is None:
            return

        def answered(why: str | None) -> None:
            if why is not None:
                self._decide(verdict, why)

        title = f"{question} at {sample_rows.short_name(here)}?"
        self.app.push_screen(ReasonScreen(title, consequence, needed=needed), answered)

    def _decide(self, verdict: SampleVerdict, why: str) -> None:
        here, session = self.here, self.opened.session
        if here is None:
            return
        before = here.verdict
        name = sample_rows.short_name(here)
        done = {"rejected": "rejected", "pinned": "pinned", "open": "as measured again"}

        async def send() -> None:
            try:
                client = await self.workbench.client()
                await client.ask(DecideSample(session, here.id, verdict, why))
            except (WorkbenchError, OSError) as error:
                self.workbench.say(str(error), "error")
                return

            async def take_back() -> str:
                again = DecideSample(session, here.id, before, "taken back" * (before != "open"))
                await (await self.workbench.client()).ask(again)
                return f"The sample at {name} is as before."

            undo = Undo(f"The decision on the sample at {name}", take_back)
            self.workbench.say(f"The sample at {name} is {done[verdict]}.", undo=undo)

        begin(self, send)

    # ------------------------------------------------------------------------- asking for more

    def action_repeat(self) -> None:
        here, selected = self.here, self.shown.selected(self.choice)
        if here is not None and selected is not None:
            request = self._point_at(selected, here.wl)
            self.tell(request, f"one more repetition at {number(here.wl)} is asked for")

    def action_point(self) -> None:
        whole, selected = self._whole(), self.shown.selected(self.choice)
        if whole is None or selected is None:
            return

        async def carry_out(written: str) -> None:
            try:
                wl = float(written)
            except ValueError:
                raise UsageError(f"{written!r} is no number", remedy="Write it as 760") from None
            if not math.isfinite(wl):
                raise UsageError(f"{written!r} is no load", remedy="Write it as 760")
            request = self._point_at(selected, wl)  # a run may be at another by now
            await self._carry_out(request, f"a point at {number(wl)} is asked for")

        here = self.here
        low, high = map(number, whole)
        name = name_of(self.shown.view, selected)
        note = (
            f"Of {name}, a load from {low} to {high}. It is measured next; a campaign that ended "
            "resumes."
        )
        start = f"{here.wl:g}" if here else ""
        question = "One more point, at which load?"
        self.app.push_screen(NameScreen(question, start, note, proposal=True, carry_out=carry_out))

    def _point_at(self, selected: ConfigurationView, wl: float) -> RequestPoint:
        place = selected.target, selected.configuration
        return RequestPoint(self.opened.session, *place, wl, pace=WATCHED_PACE)

    async def _carry_out(self, request: Request[Any], done: str) -> None:
        """For a dialog that stays where it is refused. Raises what `ask` raises."""
        reply = await (await self.workbench.client()).ask(request)
        self.workbench.say(reply.note if isinstance(reply, Done) and reply.note else done)

    def action_budget(self) -> None:
        view = self.opened.live.view
        session, ended = self.opened.session, view.finished is not None

        async def carry_out(written: str) -> None:
            found = re.fullmatch(r"\+?\s*(\d{1,9}(?:\.\d{1,9})?)\s*([smhd]?)", written)
            if found is None:
                raise UsageError(f"{written!r} is no duration", remedy="Write it as 30m, 2h or 90s")
            more_s = float(found[1]) * UNITS_S[found[2]]
            if ended:
                await self._carry_out(ResumeSession(session, more_s, WATCHED_PACE), "resumed")
            else:
                await self._carry_out(ExtendBudget(session, more_s), "the budget is extended")

        has = duration(view.budget_s) if view.budget_s else "none"
        note = f"So far {has}, spent {_spent(view)}. Write it as 30m, 2h or 90s."
        question = "How much more time?"
        self.app.push_screen(NameScreen(question, "30m", note, proposal=True, carry_out=carry_out))


def _spent(view: SessionView) -> str:
    """What budgets are of: a simulated lab's own time, elsewhere the clock's."""
    lab_s = view.lab_s - view.trials_s
    if view.lab == "sim":
        return f"{duration(lab_s)} of lab time"
    return f"{duration(max(lab_s, view.ran_s))} on the clock"
