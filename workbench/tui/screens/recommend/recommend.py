"""Recommend: which allocation carries an SLA, what else does, verified, and handed on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from workbench.domain.export_requests import RecommendOptions
from workbench.domain.lab_verdicts import lab_verdict
from workbench.domain.recommendations import Recommendation
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.remedies import on_screen
from workbench.tui.screens.base import HasList
from workbench.tui.screens.dialogs import ChoiceScreen
from workbench.tui.screens.recommend import recommend_question as question
from workbench.tui.screens.recommend import recommend_rows as rows_of
from workbench.tui.screens.recommend import recommend_words as words_of
from workbench.tui.screens.recommend.answer import AnswerView, Told
from workbench.tui.screens.recommend.recommend_asking import RecommendAsking
from workbench.tui.widgets.field import Field, Form
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows, fit
from workbench.tui.widgets.waiting import Waiting
from workbench.tui.workers import begin

COPIED_WIDTH = 100


class RecommendScreen(RecommendAsking, HasList):
    """One recommendation at a time: its question, its allocations, what is known of one."""

    NAME: ClassVar[str] = "recommend"

    def __init__(self) -> None:
        super().__init__()
        self._asked_options = self._filled = False
        self._form_of: str | None = None
        """Id of the recommendation whose question stands in the form; None: that of none."""

    def middle(self) -> ComposeResult:
        with Vertical(id="question"):
            yield Form(question.fields(), id="form")
            yield Rows(id="past")
        with Vertical(id="answer"):
            yield Waiting()
            yield AnswerView(id="shown")
            yield Static("", id="empty", markup=False)

    def listing(self) -> Listing:
        return self.query_one(Listing)

    @property
    def editing(self) -> bool:
        return self.ready and self.form.editing

    # ------------------------------------------------------------------------- what is shown

    @property
    def _width(self) -> int:
        """Of the answer."""
        return max(20, self.query_one("#answer").size.width)

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        del shown, choice
        self._prepare()
        pair = self.found()
        first = pair is None and self.asking.busy is not None  # what was asked stays in sight
        self.set_class(self.editing or first or self.wrong, "-editing")
        self.set_class(self.can_ask, "-asks")
        measures = self.asking.busy is not None and self.asking.busy.measures
        key = self.key("recommend.stop" if measures else "recommend.drop")
        self.query_one(Waiting).tell(self.asking.busy, self.trouble, self._width, key)
        empty = self.query_one("#empty", Static)
        empty.display = pair is None and self.asking.busy is None and not self.trouble
        answer = self.query_one(AnswerView)
        answer.display = pair is not None
        self._draw_past()
        if pair is None:
            empty.update(self._empty())
            return
        found, seq = pair
        self._follow(found)
        drawn = self.has_class("-tall") and bool(seq)
        if drawn and seq not in self.trends:
            self.trends[seq] = ()
            begin(self, partial(self.fetch_trends, seq))
        answer.tell(
            Told(
                self._worded(found),
                self.notes.get(found.id, ()),
                self.primary,
                self.trends.get(seq, ()) if drawn else None,
                self._width,
                airy=not self.has_class("-low") and not self.has_class("-short"),
                lab=self._lab(found),
            )
        )

    def _empty(self) -> str:
        if self.opened.replay is not None:
            return "Nothing was recommended by then."
        if self.opened.previewing:
            return "The lab is still being made ready: nothing was measured yet."
        if not self.shown.view.samples_taken:
            live = self.key("go.live")
            return f"Nothing was measured yet, and profiles answer.\n\n{live} shows the run."
        if self.editing:
            return question.GUIDE
        if self.opened.lost:
            return "No recommendation yet.\n\nNobody answers now; the line above says why."
        writes, compute = self.key("recommend.ask"), self.key("recommend.compute")
        asks = f"{writes} writes an SLA, {compute} asks which allocation carries it."
        return f"No recommendation yet.\n\n{asks}"

    def _prepare(self) -> None:
        """The form's first content, once there is a campaign; then what the engine offers."""
        campaign = self.shown.view.campaign
        if campaign is None or self.opened.previewing:  # the form is for the session to come
            return
        if not self._filled:
            self._filled = True
            chains = question.chains_of(self.shown.view)
            question.offer(
                self.form,
                RecommendOptions(chains, (question.DEFAULT_COST,), ()),
                self.commands,
            )
            if campaign.sla is not None:
                self.form.field("sla").value = words_of.sla_text(campaign.sla)
            question.unfold(self.form)
        if not self._asked_options and self.opened.connected:
            self._asked_options = True
            begin(self, self.fetch_options)

    def _follow(self, found: Recommendation) -> None:
        """Let the form hold what the shown answer was asked; what is being written stays."""
        if self._filled and found.id != self._form_of:
            self._form_of = found.id
            if not self.editing:
                question.fill(self.form, found)

    def _draw_past(self) -> None:
        """Those of the session, the latest first; seen where there is room beside the answer."""
        past, here = self.query_one("#past", Rows), self.found()
        width = past.size.width
        rows: list[Row] = [((" recommendations of this session", "strong"),)]
        for found, seq in reversed(self.known()):
            now = here is not None and here[1] == seq
            words = fit(rows_of.past_line(found), max(0, width - 3))
            rows.append(((f" {'›' if now else ' '} ", "accent"), (words, "" if now else "dim")))
        past.show(rows if len(rows) > 1 else [])

    def offer_keys(self) -> None:
        super().offer_keys()
        if self.editing:
            does = (action for action in self.offered() if action.method == "compute")
            self.query_one(KeyLine).offer_form(does)

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        pair = self.found() if self.ready else None
        overflow = self.ready and self.query_one(AnswerView).overflows
        conditions = {
            **dict.fromkeys(
                ("ask", "compute"), self.can_ask and self.shown.view.campaign is not None
            ),
            "open": len(self.known()) > 1,
            "more": pair is not None and overflow,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        if method == "open":
            return "There is no other recommendation."
        if method == "more":
            return "All of it is shown."
        return super().why_not(method)

    def _worded(self, found: Recommendation) -> Recommendation:
        """With keys in its note where that names commands."""
        return replace(found, note=on_screen(found.note, self.key))

    def _lab(self, found: Recommendation) -> rows_of.Lab:
        """What the lab said of an allocation by now."""
        return partial(lab_verdict, self.shown.view, found)

    def copied(self) -> tuple[str, str]:
        pair = self.found() if self.ready else None
        if pair is None:
            return "", ""
        found, lab = self._worded(pair[0]), self._lab(pair[0])
        notes = self.notes.get(found.id, ())
        rows = rows_of.whole(found, notes, self.primary, COPIED_WIDTH, lab)
        return "the recommendation", rows_of.copied(rows)

    def legend(self) -> tuple[str, ...]:
        return (
            "✓ recommended: the cheapest that holds   ≈ nothing holds, this comes closest",
            "chance: that every limit holds at the asked load and below, in steady state",
            "margin: how much more load than asked it carries as surely; ≥ where profiles end",
            "interpolated: between profiled allocations; extrapolated: outside of them",
        )

    def action_ask(self) -> None:
        self.edit_form()
        self.draw()

    def action_more(self) -> None:
        self.query_one(AnswerView).more()
        self.draw()

    def action_open(self) -> None:
        known = [found for found, _ in reversed(self.known())]
        options = [(found.id, rows_of.past_line(found)) for found in known]

        def chosen(id: str | None) -> None:
            if id is None:
                return
            self.picked, self.trouble = id, ""
            self.query_one(AnswerView).rewind()
            self._form_of = None  # asked for: what stands in the form gives way
            self.form.refuse({})
            self.draw()

        self.app.push_screen(ChoiceScreen("Open a recommendation", options), chosen)

    # ------------------------------------------------------------------------- events

    def on_form_left(self) -> None:
        self.draw()

    def on_field_changed(self, event: Field.Changed) -> None:
        event.field.refuse("")
        question.unfold(self.form)

    def on_descendant_focus(self) -> None:
        self.draw()

    def on_descendant_blur(self) -> None:
        self.call_after_refresh(self.draw)

    def on_listing_moved(self) -> None:
        self.draw()

    def on_click(self, event: events.Click) -> None:
        """The question in the answer's first line leads to the form."""
        asked = self.query_one("#asked")
        if asked.region.contains(*event.screen_offset) and self.can_ask:
            self.action_ask()
