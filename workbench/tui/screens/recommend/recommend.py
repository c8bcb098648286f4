"""Recommend: which allocation carries an SLA, what else does, verified, and handed on."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from workbench.domain.errors import WorkbenchError
from workbench.domain.events import RecommendationIssued
from workbench.domain.handing_on import GetRecommendOptions, RecommendOptions
from workbench.domain.messages import (
    EngineStatus,
    EventPage,
    GetStatus,
    ListEvents,
    StopRun,
)
from workbench.domain.parameters import PrimaryWorkload
from workbench.domain.questions import Recommend, Recommended, VerifyRecommendation
from workbench.domain.recommendations import Recommendation, Trend
from workbench.tui.present import Choice, Shown
from workbench.tui.screens.base import HasList
from workbench.tui.screens.dialogs import ChoiceScreen, ConfirmScreen
from workbench.tui.screens.recommend import recommend_question as question
from workbench.tui.screens.recommend import recommend_rows as rows_of
from workbench.tui.screens.recommend import recommend_words as words_of
from workbench.tui.screens.recommend.answer import AnswerView, Told
from workbench.tui.screens.recommend.handing_on import HandOnScreen
from workbench.tui.screens.session import SessionScreen
from workbench.tui.text import duration, plain
from workbench.tui.widgets.field import Field, Form
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows, fit
from workbench.tui.widgets.waiting import Busy, Waiting

POLL_S = 1.0
COPIED_WIDTH = 100
ATTEMPTS = 3
"""Samples that a verification takes at most."""
EDITING_KEYS: Row = (
    (" ⏎", "accent"), (" Ask", ""), ("  ↓ ↑", "accent"), (" Field", ""), ("  ← →", "accent"),
    (" Choose", ""), ("  esc", "accent"), (" Leave", ""),
)  # fmt: skip


class RecommendScreen(SessionScreen, HasList):
    """One recommendation at a time: its question, its allocations, what is known of one."""

    NAME: ClassVar[str] = "recommend"

    def __init__(self) -> None:
        super().__init__()
        self.awaited: Busy | None = None
        self.trouble = ""
        """Why there is no answer, as sentences; empty where a field says it."""
        self.options: RecommendOptions | None = None
        self.picked = ""
        """Id of the recommendation that is shown; empty: the latest."""
        self._unstored: Recommended | None = None
        """The latest answer that the session does not keep."""
        self._notes: dict[str, tuple[str, ...]] = {}
        """What was said beside an answer, by its id."""
        self._trends: dict[int, tuple[Trend, ...]] = {}
        """By the sequence number of the event that stored a recommendation."""
        self._asked_options = self._filled = False

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
    def form(self) -> Form:
        return self.query_one(Form)

    @property
    def editing(self) -> bool:
        return self.ready and self.form.editing

    # ------------------------------------------------------------------------- what is shown

    def known(self) -> list[tuple[Recommendation, int]]:
        """Every recommendation with the event that stored it, the latest last; 0: not stored."""
        live = self.opened.live.view  # what was asked just now is seen, though the drawing is held
        stored = [(one.recommendation, one.seq) for one in live.recommendations]
        if self._unstored is not None:
            stored.append((self._unstored.recommendation, 0))
        return sorted(stored, key=lambda pair: pair[0].at)

    def found(self) -> tuple[Recommendation, int] | None:
        """The one that is shown."""
        known = self.known()
        picked = [pair for pair in known if pair[0].id == self.picked]
        return next(reversed(picked or known), None)

    @property
    def _width(self) -> int:
        """Of the answer."""
        return max(20, self.query_one("#answer").size.width)

    @property
    def _primary(self) -> PrimaryWorkload | None:
        campaign = self.shown.view.campaign
        return campaign.targets[0].primary if campaign and campaign.targets else None

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: Choice) -> None:
        del shown, choice
        self._prepare()
        pair = self.found()
        first = pair is None and self.awaited is not None  # what was asked stays in sight
        self.set_class(self.editing or first, "-editing")
        self.set_class(self._can_ask, "-asks")
        self.query_one(Waiting).tell(self.awaited, self.trouble, self._width)
        empty = self.query_one("#empty", Static)
        empty.display = pair is None and self.awaited is None and not self.trouble
        answer = self.query_one(AnswerView)
        answer.display = pair is not None
        self._draw_past()
        if pair is None:
            empty.update(self._empty())
            return
        found, seq = pair
        drawn = self.has_class("-tall") and bool(seq)
        if drawn and seq not in self._trends:
            self._trends[seq] = ()
            self.run_worker(self._fetch_trends(seq))
        answer.tell(
            Told(
                found,
                self._notes.get(found.id, ()),
                self._primary,
                self._trends.get(seq, ()) if drawn else None,
                self._width,
                airy=not self.has_class("-low") and not self.has_class("-short"),
            )
        )

    def _empty(self) -> str:
        if self.opened.replay is not None:
            return "Nothing was recommended by then."
        if not self.shown.view.samples_taken:
            live = self.key("go.live")
            return f"Nothing was measured yet, and profiles answer.\n\n{live} shows the run."
        if self.editing:
            return question.GUIDE
        asks = f"{self.key('recommend.ask')} writes an SLA and asks which allocation carries it."
        return f"No recommendation yet.\n\n{asks}"

    def _prepare(self) -> None:
        """The form's first content, once there is a campaign; then what the engine offers."""
        campaign = self.shown.view.campaign
        if campaign is None:
            return
        if not self._filled:
            self._filled = True
            chains = question.chains_of(self.shown.view)
            question.offer(
                self.form,
                RecommendOptions(chains, (question.DEFAULT_COST,), ()),
                self._commands,
            )
            if campaign.sla is not None:
                self.form.field("sla").value = words_of.sla_text(campaign.sla)
            question.unfold(self.form)
        if not self._asked_options and self.opened.connected:
            self._asked_options = True
            self.run_worker(self._fetch_options())

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
        if self.editing:  # letters are text now
            self.query_one(KeyLine).show([EDITING_KEYS])

    # ------------------------------------------------------------------------- the engine

    async def _ask_engine(self, request: object) -> object:
        return await (await self.workbench.client()).ask(request)  # type: ignore[arg-type]

    async def _fetch_options(self, *, aloud: bool = False) -> None:
        try:
            reply = await self._ask_engine(GetRecommendOptions(self.opened.session))
        except (WorkbenchError, OSError) as error:
            if aloud:
                self.workbench.say(str(error), "error")
            return
        if isinstance(reply, RecommendOptions):
            self.options = reply
            question.offer(self.form, reply, self._commands and not reply.unmeasurable)
            self.draw()

    async def _fetch_trends(self, seq: int) -> None:
        """Its curves are in the event, not in the view."""
        try:
            page = await self._ask_engine(ListEvents(self.opened.session, after=seq - 1, limit=1))
        except (WorkbenchError, OSError):
            return
        for event in page.events if isinstance(page, EventPage) else ():
            if isinstance(event.fact, RecommendationIssued):
                self._trends[seq] = event.fact.trends
        self.draw()

    async def _answered(
        self, request: Recommend | VerifyRecommendation, words: str, measures: bool
    ) -> Recommended | None:
        """The answer, while the line above says what is done for it; None where none came."""
        busy = self.awaited = Busy.of(words, measures=measures)
        self.trouble = ""
        self.draw()
        asking = asyncio.ensure_future(self._ask_engine(request))
        try:
            while not (await asyncio.wait({asking}, timeout=POLL_S))[0]:
                status = await self._ask_engine(GetStatus())
                busy.doing = status.scoring if isinstance(status, EngineStatus) else ""
                self.draw()
            reply = await asking
        except WorkbenchError as error:
            self._refused(error, request)
            return None
        except OSError as error:
            self.trouble = str(error)
            return None
        finally:
            asking.cancel()
            if self.awaited is busy:
                self.awaited = None
            self.draw()
        return reply if isinstance(reply, Recommended) else None

    def _refused(self, error: WorkbenchError, request: Recommend | VerifyRecommendation) -> None:
        values = self.form.values()
        mistakes = question.placed(error, values) if isinstance(request, Recommend) else {}
        self.form.refuse(mistakes)
        if mistakes:
            self.form.edit()
        else:
            self.trouble = str(error)

    async def _recommend(self, request: Recommend) -> None:
        told = await self._answered(request, "recommending", request.on_lab)
        if told is None:
            return
        found = told.recommendation
        self._keep(told)
        named = found.id or "The answer"
        said = "an allocation holds" if found.met else "nothing meets the SLA"
        self.workbench.say(f"{named}: {said}.", "information" if found.met else "warning")

    async def _verify(self, id: str) -> None:
        request = VerifyRecommendation(self.opened.session, id)
        told = await self._answered(request, f"verifying {id} on the lab", True)
        if told is None:
            return
        self._keep(told)
        verified = told.recommendation.verified
        if verified is not None:
            said = "the lab confirms it" if verified.met else "the lab does not confirm it"
            self.workbench.say(f"{id}: {said}.", "information" if verified.met else "warning")

    def _keep(self, told: Recommended) -> None:
        found = told.recommendation
        self.picked = found.id
        self._notes[found.id] = told.notes
        self._unstored = None if found.id else told
        self.query_one(AnswerView).rewind()
        self.form.refuse({})
        self.draw()

    # ------------------------------------------------------------------------- actions

    @property
    def _can_ask(self) -> bool:
        """Whether there is an engine, of now, that answers."""
        watch = self.opened
        return watch.connected and not watch.lost and watch.replay is None

    @property
    def _commands(self) -> bool:
        return self.opened.commandable

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        pair = self.found() if self.ready else None
        busy, chosen = self.awaited, pair is not None and pair[0].chosen is not None
        waits = busy is not None and not busy.measures
        overflow = self.ready and self.query_one(AnswerView).overflows
        conditions = {
            "ask": self._can_ask and self.shown.view.campaign is not None,
            "drop": waits,
            "back": not waits,
            "end_measuring": busy is not None and busy.measures and self._commands,
            "verify": chosen and busy is None and self._commands,
            "export": pair is not None and self._can_ask,
            "open": len(self.known()) > 1,
            "more": pair is not None and overflow,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def copied(self) -> tuple[str, str]:
        pair = self.found() if self.ready else None
        if pair is None:
            return "", ""
        found = pair[0]
        rows = rows_of.whole(found, self._notes.get(found.id, ()), self._primary, COPIED_WIDTH)
        return "the recommendation", rows_of.copied(rows)

    def legend(self) -> tuple[str, ...]:
        return (
            "✓ recommended: the cheapest that holds   ≈ nothing holds, this comes closest",
            "chance: that every limit holds at the asked load and below, in the long run",
            "margin: how much more load than asked it carries as surely; ≥ where profiles end",
            "interpolated: between profiled allocations; extrapolated: outside of them",
        )

    def action_ask(self) -> None:
        self.add_class("-editing")
        self.form.edit()
        self.draw()

    def action_drop(self) -> None:
        self.workers.cancel_group(self, "asking")
        self.workbench.say("Not waited for any more.")

    def action_end_measuring(self) -> None:
        self.tell(StopRun(self.opened.session), "will stop after this sample")

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
            question.fill(self.form, next(found for found in known if found.id == id))
            self.form.refuse({})
            self.draw()

        self.app.push_screen(ChoiceScreen("Open a recommendation", options), chosen)

    def action_export(self) -> None:
        pair = self.found()
        if pair is None:
            return
        id = pair[0].id
        if not id:
            why = next((note for note in self._notes.get("", ()) if "not stored" in note), "")
            self.workbench.say(f"Only what is stored can be exported. {why}", "warning")
            return

        async def export() -> None:
            if self.options is None:  # the engine did not answer before
                await self._fetch_options(aloud=True)
            if self.options is not None:
                formats, writes = self.options.formats, self.opened.role == "operator"
                screen = HandOnScreen(self.opened.session, id, formats, writes=writes)
                self.app.push_screen(screen)

        self.run_worker(export(), group="export", exclusive=True)

    def action_verify(self) -> None:
        pair = self.found()
        chosen = pair[0].chosen if pair is not None else None
        if pair is None or chosen is None:
            return
        found = pair[0]
        if self.options is not None and self.options.unmeasurable:
            self.workbench.say(
                f"Nothing can be measured here. {self.options.unmeasurable}", "warning"
            )
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(self._verify(found.id), group="asking", exclusive=True)

        deployment = chosen.deployment
        at, primary = words_of.load(found), self._primary
        load = f"{primary.name} {at:g} {primary.unit}" if primary and at is not None else "its load"
        self.app.push_screen(
            ConfirmScreen(
                f"Verify {found.id} on the lab {plain(self.shown.view.lab)}?",
                f"It deploys {words_of.in_words(deployment)} of {plain(found.chain)}, and offers "
                f"{plain(load)} for one sample: {self._lab_time()}, "
                f"again where a sample is not valid, at most {ATTEMPTS} times. "
                "It waits for its turn, and can be stopped. The verdict is stored.",
            ),
            answered,
        )

    def _lab_time(self) -> str:
        """What a sample of this session took, deployments included."""
        view = self.shown.view
        samples = view.samples_taken + view.trial_samples
        return f"about {duration(view.lab_s / samples)} of lab time" if samples else "lab time"

    # ------------------------------------------------------------------------- events

    def on_form_submitted(self) -> None:
        if not self._can_ask:
            return
        if self.awaited is not None and self.awaited.measures:
            self.workbench.say("The lab measures for this session. Wait for it, or stop it.")
            return
        request, mistakes = question.request_of(self.opened.session, self.form.values())
        self.form.refuse(mistakes)
        if mistakes:
            self.form.edit()
            return
        if not request.on_lab:
            self._begin(request)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._begin(request)

        self.app.push_screen(
            ConfirmScreen(
                "Run greedy scaling on the lab?",
                "It deploys one allocation after the other until the SLA holds: "
                f"{self._lab_time()} for each. It waits for its turn, and can be stopped.",
            ),
            answered,
        )

    def _begin(self, request: Recommend) -> None:
        self.set_focus(None)  # keys are the screen's while it waits, and when the answer comes
        self.run_worker(self._recommend(request), group="asking", exclusive=True)

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
        if asked.region.contains(*event.screen_offset) and self._can_ask:
            self.action_ask()
