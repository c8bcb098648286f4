"""What the screen Recommend asks of the engine, and what it keeps of the answers."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

from workbench.domain.errors import WorkbenchError
from workbench.domain.events import RecommendationIssued
from workbench.domain.export_requests import GetRecommendOptions, RecommendOptions
from workbench.domain.load_words import load_words
from workbench.domain.messages import (
    ListEvents,
    Request,
    StopRun,
)
from workbench.domain.parameters import PrimaryWorkload
from workbench.domain.questions import Recommend, Recommended, VerifyRecommendation
from workbench.domain.recommendations import Recommendation, Trend
from workbench.domain.sessions import AT_REST
from workbench.domain.trials import REPEATS, usual_s
from workbench.tui.screens.asking import QuestionScreen
from workbench.tui.screens.dialogs import ConfirmScreen
from workbench.tui.screens.recommend import recommend_question as question
from workbench.tui.screens.recommend import recommend_words as words_of
from workbench.tui.screens.recommend.answer import AnswerView
from workbench.tui.screens.recommend.export_dialog import ExportDialog
from workbench.tui.text import duration, plain
from workbench.tui.widgets.field import Form
from workbench.tui.workers import begin

R = TypeVar("R")

ALLOCATIONS = 2
"""That a verification tries at most."""
UNDECIDED = 13
"""Samples that it takes of each at most, where `REPEATS` leave its side of a limit open."""


class RecommendAsking(QuestionScreen):
    """Asks, verifies and exports; `RecommendScreen` draws.

    Attributes
    ----------
    trouble : why there is no answer, as sentences; empty where a field says it.
    options : what the engine offers to choose from; None until it has said so.
    picked : id of the recommendation that is shown; empty: the latest.
    notes : what was said beside an answer, by its id.
    trends : by the sequence number of the event that stored a recommendation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trouble = ""
        self.options: RecommendOptions | None = None
        self.picked = ""
        self.notes: dict[str, tuple[str, ...]] = {}
        self.trends: dict[int, tuple[Trend, ...]] = {}
        self._unstored: Recommended | None = None
        """The latest answer that the session does not keep."""

    # ------------------------------------------------------------------------- what there is

    def known(self) -> list[tuple[Recommendation, int]]:
        """Every recommendation with the event that stored it, the latest last; 0: not stored. Those
        of a recording that is shown meanwhile are none of the session's."""
        if self.opened.previewing:
            return []
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
    def form(self) -> Form:
        return self.query_one(Form)

    @property
    def primary(self) -> PrimaryWorkload | None:
        campaign = self.shown.view.campaign
        return campaign.targets[0].primary if campaign and campaign.targets else None

    @property
    def can_ask(self) -> bool:
        """Whether there is an engine, of now, that answers."""
        watch = self.opened
        return watch.connected and not watch.lost and watch.replay is None

    @property
    def commands(self) -> bool:
        return self.opened.commandable

    @property
    def _at_rest(self) -> bool:
        """Whether the lab is free to be asked about this session."""
        view = self.opened.live.view
        idle = view.under_trial is None and not self.opened.live.queued
        return view.state in AT_REST and idle

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        pair = self.found() if self.ready else None
        busy, chosen = self.asking.busy, pair is not None and pair[0].chosen is not None
        tries = self.opened.live.view.under_trial is not None  # also for who has left this screen
        measures = tries or (busy is not None and busy.measures)
        conditions = {
            "drop": self.asking.waits or self.wrong,
            "back": not self.asking.waits and not self.wrong,
            "end_measuring": measures and self.commands and not self._waits,
            "verify": chosen and busy is None and self.commands and self._at_rest,
            "export": pair is not None and self.can_ask,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        if method in ("verify", "end_measuring") and (why := self.why_no_command()):
            return why
        if said := super().why_not(method):
            return said
        if method in ("ask", "compute", "export") and self.opened.replay is not None:
            return "This is a replay: the engine would answer of the whole session."
        if method in ("ask", "compute"):
            return "The campaign is not planned yet."
        if method in ("verify", "export") and self.found() is None:
            return f"There is no recommendation yet: {self.key('recommend.ask')} asks for one."
        return self._why_not_verified() if method == "verify" else ""

    def _why_not_verified(self) -> str:
        view, pair = self.opened.live.view, self.found()
        if pair is None or pair[0].chosen is None:
            return "Nothing is recommended here."
        if self.asking.busy is not None:
            return "Something else is waited for."
        if view.under_trial is not None:
            return "The lab measures for this session: that comes first."
        if self.opened.live.queued:
            return "A run of it waits for its turn: that comes first."
        return "" if self._at_rest else f"The campaign comes first: it is {view.state}."

    # ------------------------------------------------------------------------- the engine

    async def _ask_engine(self, request: Request[R]) -> R:
        return await (await self.workbench.client()).ask(request)

    async def fetch_options(self, *, aloud: bool = False) -> None:
        try:
            reply = await self._ask_engine(GetRecommendOptions(self.opened.session))
        except (WorkbenchError, OSError) as error:
            if aloud:
                self.workbench.say(str(error), "error")
            return
        if self.ready:
            self.options = reply
            question.offer(self.form, reply, self.commands and not reply.unmeasurable)
            self.draw()

    async def fetch_trends(self, seq: int) -> None:
        """Its curves are in the event, not in the view."""
        try:
            page = await self._ask_engine(ListEvents(self.opened.session, after=seq - 1, limit=1))
        except (WorkbenchError, OSError):
            return
        for event in page.events:
            if isinstance(event.fact, RecommendationIssued):
                self.trends[seq] = event.fact.trends
        self.draw()

    async def _answered(self, request: Recommend | VerifyRecommendation) -> Recommended | None:
        """The answer; None where none came, and the form or `trouble` says why."""
        self.trouble = ""
        reply = await self.asking.answer(request)
        if reply is None and self.asking.refused is not None:
            self._refused(self.asking.refused, request)
        return reply

    def _refused(self, error: WorkbenchError, request: Recommend | VerifyRecommendation) -> None:
        values = self.form.values()
        mistakes = question.placed(error, values) if isinstance(request, Recommend) else {}
        self.form.refuse(mistakes)
        if not mistakes:  # else the form says it; keys stay the screen's all the same
            self.trouble = str(error)

    def edit_form(self) -> None:
        """Give the keys to its first field that is wrong, or its first; it is seen then."""
        self.add_class("-editing")
        self.form.edit()

    @property
    def wrong(self) -> bool:
        """Whether the form shows a mistake."""
        return self.ready and any(field.mistake for field in self.form.fields)

    async def _recommend(self, request: Recommend) -> None:
        told = await self._answered(request)
        if told is None:
            return
        found = told.recommendation
        self._keep(told)
        named = found.id or "The answer"
        said = "an allocation holds" if found.met else "nothing meets the SLA"
        self.workbench.say(f"{named}: {said}.", "information" if found.met else "warning")

    async def _verify(self, id: str) -> None:
        told = await self._answered(VerifyRecommendation(self.opened.session, id))
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
        self.notes[found.id] = told.notes
        self._unstored = None if found.id else told
        self.query_one(AnswerView).rewind()
        self.form.refuse({})
        self.draw()

    # ------------------------------------------------------------------------- actions

    def on_form_submitted(self) -> None:
        """Enter goes on to the next line."""
        self.form.go_on()

    def action_drop(self) -> None:
        """Wait no longer; where nothing is waited for, leave what was refused."""
        if self.asking.waits:
            super().action_drop()
        else:
            self.form.refuse({})
            self.draw()

    def action_compute(self) -> None:
        """Ask what stands in the form."""
        if self.asking.busy is not None and not self.asking.waits:
            self.workbench.say("The lab measures for this session. Wait for it, or stop it.")
            return
        request, mistakes = question.request_of(self.opened.session, self.form.values())
        self.form.refuse(mistakes)
        if mistakes:
            self.edit_form()
            self.draw()
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
        self.asking.begin(
            partial(self._recommend, request), "recommending", measures=request.on_lab
        )

    def action_end_measuring(self) -> None:
        self.confirm(
            "Stop what the lab measures?",
            "It ends after the sample that is being measured; there is no verdict then.",
            StopRun(self.opened.session),
            "will stop after this sample",
        )

    def action_export(self) -> None:
        pair = self.found()
        if pair is None:
            return
        id = pair[0].id
        if not id:
            why = next((note for note in self.notes.get("", ()) if "not stored" in note), "")
            self.workbench.say(f"Only what is stored can be exported. {why}", "warning")
            return

        def stored() -> object:
            return self.opened.live.view.recommendation(id)

        async def export() -> None:
            if self.options is None:  # the engine did not answer before
                await self.fetch_options(aloud=True)
            if self.options is not None:
                formats, writes = self.options.formats, self.opened.role == "operator"
                session = self.opened.session
                screen = ExportDialog(session, id, formats, writes=writes, stored=stored)
                self.show_late(screen)

        begin(self, export, group="export", exclusive=True)

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
                self.asking.begin(
                    partial(self._verify, found.id),
                    f"verifying {found.id} on the lab",
                    measures=True,
                )

        deployment = chosen.deployment
        at, primary = words_of.load(found), self.primary
        load = "its load"
        if primary is not None and at is not None:
            load = load_words(primary.name, f"{at:g}")
        self.app.push_screen(
            ConfirmScreen(
                f"Verify {found.id} on the lab {plain(self.shown.view.lab)}?",
                f"It tries up to {ALLOCATIONS} allocations of {plain(found.chain)} at "
                f"{plain(load)}: {words_of.in_words(deployment)}, or one that may save more. "
                f"Each is deployed and sampled up to {REPEATS} times, up to {UNDECIDED} where its "
                f"side of the limit stays open; what is not valid is taken again. An allocation "
                f"takes {self._lab_time()}. It waits for its turn, and can be stopped. The verdict "
                "is stored.",
            ),
            answered,
        )

    def _lab_time(self) -> str:
        """What an allocation that is tried takes, its deployment included."""
        seconds = usual_s(self.shown.view)
        return f"about {duration(seconds)} of lab time" if seconds is not None else "lab time"
