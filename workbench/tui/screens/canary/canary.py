"""Canaries of the open session: planned, followed step by step, decided; and those of before."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.widgets import Static

from workbench.domain.canaries import CanaryView
from workbench.domain.errors import WorkbenchError
from workbench.domain.handing_on import GetRecommendOptions, RecommendOptions
from workbench.domain.messages import EngineStatus, GetStatus, StopRun
from workbench.domain.questions import ChainRetrained, DecideProposal, RetrainChain, RollBackModel
from workbench.tui.plots.legends import legend, plot_marks
from workbench.tui.plots.plot import ProfilePlot
from workbench.tui.present import Choice, Shown
from workbench.tui.screens.base import HasList
from workbench.tui.screens.canary import canary_figure, canary_names, canary_rows, proposal_rows
from workbench.tui.screens.canary.canary_form import CanaryForm
from workbench.tui.screens.canary.canary_rows import Record, Step
from workbench.tui.screens.dialogs import ChoiceScreen
from workbench.tui.screens.reason import ReasonScreen
from workbench.tui.screens.session import SessionScreen
from workbench.tui.text import day, plain
from workbench.tui.undo import Undo
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows

LOOK_S = 1.0
"""How often the engine is asked what it computes while an answer is awaited."""
ZOOMS = ("", "plot", "lower")


class CanaryScreen(SessionScreen, HasList):
    """The latest canary, or the one that was chosen: steps, guard, curve, proposal."""

    NAME: ClassVar[str] = "canary"

    def __init__(self) -> None:
        super().__init__()
        self.record: int | None = None
        """Which of `canary_rows.records` is shown; None: the latest."""
        self.pane = "steps"
        """What stands below the plot where there is no room for both."""
        self.zoomed = 0
        self._doing = ""
        """What the engine computes for our request; empty where none is awaited."""
        self._chains: tuple[str, ...] = ()
        """That a canary can be of; empty until the engine has said so."""
        self._unmeasurable = ""
        """Why nothing can be measured or decided in this session, as a sentence."""
        self._asked_for = ""
        """The session that these two are of."""
        self._steps: list[Step] = []
        self._following = True
        """The cursor goes along with what is measured, until somebody moves it."""
        self._seen: tuple[str, int] | None = None
        """Proposal and canary that were there at the last drawing."""

    def middle(self) -> ComposeResult:
        yield Rows(id="subject")
        yield Rows(id="in-force")
        yield Rows(id="alarm")
        yield Rows(id="state")
        with Container(id="canary-panels"):
            yield ProfilePlot(id="plot")
            with Container(id="canary-lower"):
                yield Listing(id="steps")
                with VerticalScroll(id="proposal-scroll", can_focus=False):
                    yield Rows(id="proposal")
        yield Static("", id="empty", markup=False)

    def listing(self) -> Listing:
        return self.query_one("#steps", Listing)

    # ------------------------------------------------------------------------- state

    def _records(self, shown: Shown) -> list[Record]:
        return canary_rows.records(shown.view)

    def _here(self, shown: Shown) -> Record | None:
        found = self._records(shown)
        if not found:
            return None
        place = len(found) - 1 if self.record is None else min(self.record, len(found) - 1)
        return found[place]

    @property
    def _under_way(self) -> CanaryView | None:
        return self.opened.live.view.under_canary

    @property
    def _may_command(self) -> bool:
        """Whether we may, and nobody else drives what is being measured."""
        watch = self.opened
        if not watch.commandable or self._unmeasurable:
            return False
        measured = watch.live.view.under_trial is not None or self._under_way is not None
        return not measured or watch.drives or not watch.wheel.driver

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: Choice) -> None:
        found = self._records(shown)
        record = self._here(shown)
        self._notice_news(shown)
        if self.opened.connected and self._asked_for != self.opened.session:
            self._asked_for = self.opened.session
            self.run_worker(self._ask_options())
        for id in ("#subject", "#in-force", "#state", "#canary-panels"):
            self.query_one(id).display = record is not None
        empty = self.query_one("#empty", Static)
        empty.display = record is None
        if record is None:
            self.query_one("#alarm").display = False
            self._steps = []
            empty.update(self._why_empty(shown))
            return
        view, width = shown.view, self.size.width
        place = found.index(record)
        subject = canary_rows.subject_row(view, record, place, len(found), width)
        self.query_one("#subject", Rows).show([subject])
        force = canary_rows.in_force_row(view, record.chain, record.kpi)
        self.query_one("#in-force", Rows).show([force])
        alarm = canary_rows.alarm_row(view, record, self.key("canary.plan"))
        alarmed = self.query_one("#alarm", Rows)
        alarmed.display = alarm is not None
        alarmed.show([alarm] if alarm else [])
        self._put("#state", canary_rows.state_rows(view, record, self._doing, width))
        self._draw_panels(shown, record, choice)

    def _draw_panels(self, shown: Shown, record: Record, choice: Choice) -> None:
        view = shown.view
        both = self._has_room
        proposal, canary = record.proposal, record.canary
        pane = self._pane(record)
        steps = self.listing()
        steps.display = canary is not None and (both or pane == "steps")
        self.query_one("#proposal-scroll").display = proposal is not None and (
            both or pane == "proposal"
        )
        lower = self.query_one("#canary-lower")
        width = lower.size.width or self.size.width
        self._steps = canary_rows.steps_of(view, canary) if canary is not None else []
        unit = canary_names.primary(view, record.chain)[1]
        rows = self._steps
        steps.styles.height = min(len(rows) + 1, max(6, lower.size.height // 2)) if both else "1fr"

        def row(index: int, here: bool, width: int) -> Row:
            return canary_rows.step_row(rows[index], here, width)

        cursor = steps.cursor
        if self._following and canary is not None and canary.under_way:
            cursor = next((i for i, s in enumerate(rows) if s.verdict == "measuring"), cursor)
        steps.show_lines(canary_rows.step_heading(width, unit), len(rows), row, cursor)
        if proposal is not None:
            keys = ("", "")
            if self._may_command:
                keys = (self.key("canary.accept"), self.key("canary.reject"))
            self._put("#proposal", proposal_rows.proposal_rows(view, proposal, keys, width - 1))
        chosen = rows[steps.cursor].sample if rows and steps.display else ""
        plot = self.query_one(ProfilePlot)
        figure = canary_figure.figure(view, record, chosen, choice.log_y)
        plot.show(figure, canary_figure.plot_title(view, record))

    @property
    def _has_room(self) -> bool:
        """Whether steps and proposal are both seen."""
        return self.has_class("-wide") and self.has_class("-tall")

    def _pane(self, record: Record) -> str:
        if record.proposal is None:
            return "steps"
        return "proposal" if record.canary is None else self.pane

    def _notice_news(self, shown: Shown) -> None:
        """A canary that starts and a proposal that is made are shown without being asked for."""
        view = shown.view
        last = view.proposals[-1].proposal.id if view.proposals else ""
        now = (last, len(view.canaries))
        if self._seen is None or self._seen != now:
            begun = self._seen is not None and self._seen[1] != now[1]
            record = self._here(shown)
            self.pane = "steps" if begun or record is None or not record.proposal else "proposal"
            if self._seen is not None:
                self.record = None
                self.listing().cursor = 0
            self._following = self._following or begun
            self._seen = now

    def _put(self, id: str, rows: list[Row]) -> None:
        lines = self.query_one(id, Rows)
        lines.styles.height = max(1, len(rows))
        lines.show(rows)

    def _why_empty(self, shown: Shown) -> str:
        if self._doing:
            return f"{self._doing}…"
        watch = self.opened
        next_key = self.key("canary.plan") if self.check_action("plan", ()) else ""
        return canary_rows.empty(
            shown.view,
            next_key,
            replayed=watch.replay is not None,
            unmeasurable=self._unmeasurable,
            observer=watch.role == "observer",
        )

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        watch = self.opened
        record = self._here(self.shown)
        under_way = self._under_way is not None
        may = self._may_command
        view = watch.live.view
        idle = view.state in canary_rows.AT_REST and view.under_trial is None and not under_way
        waits = record is not None and record.waits and not self._doing
        both = record is not None and record.canary is not None and record.proposal is not None
        conditions = {
            "plan": may and idle and not self._doing,
            "accept": may and waits,
            "reject": may and waits,
            "end_canary": may and under_way,
            "abort_canary": may and under_way,
            "open": len(self._records(self.shown)) > 1,
            "other": both and not self._has_room,
            "log_y": record is not None,
            "zoom": record is not None,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def legend(self) -> tuple[str, ...]:
        verdicts = [f"{sign} {words}" for sign, words, _ in canary_rows.VERDICTS.values()]
        own = ("", "Steps", "   ".join(verdicts[:4]), "   ".join(verdicts[4:]),
               "margin: share of the guard's limit that was left", "")  # fmt: skip
        return (*own, *legend(self.query_one(ProfilePlot).glyphs, plot_marks))

    def copied(self) -> tuple[str, str]:
        if not self.ready:
            return "", ""
        record = self._here(self.shown)
        if record is not None and self._pane(record) == "proposal":
            return "the proposal", self.query_one("#proposal", Rows).text
        table = canary_rows.table(self._steps)
        return ("the steps", table) if table else ("", "")

    def on_listing_moved(self) -> None:
        self._following = False
        self.draw()

    def action_plan(self) -> None:
        record = self._here(self.shown)

        def planned(request: RetrainChain | None) -> None:
            if request is not None:
                self.run_worker(self._retrain(request))

        view = self.opened.live.view
        self.app.push_screen(
            CanaryForm(view, self._chains, record.chain if record else ""), planned
        )

    def action_end_canary(self) -> None:
        self.confirm(
            "Stop the canary?",
            "It ends after the sample that is being measured; what was measured is kept.",
            StopRun(self.opened.session),
            "the canary ends after this sample",
        )

    def action_abort_canary(self) -> None:
        self.confirm(
            "Abort the canary?",
            "It ends now; the sample that is being measured is lost, the others are kept.",
            StopRun(self.opened.session, abort=True),
            "the canary ends now",
        )

    def action_accept(self) -> None:
        self._decide(accept=True)

    def action_reject(self) -> None:
        self._decide(accept=False)

    def action_open(self) -> None:
        found = self._records(self.shown)
        options = [
            (str(place), f"{day(record.at)}  {canary_rows.named(record)}")
            for place, record in reversed([*enumerate(found)])
        ]

        def chosen(place: str | None) -> None:
            if place is not None:
                self.record = int(place) if int(place) < len(found) - 1 else None
                self.pane = "proposal" if found[int(place)].proposal else "steps"
                self.listing().cursor = 0
                self.draw()

        self.app.push_screen(ChoiceScreen("Show", options), chosen)

    def action_other(self) -> None:
        self.pane = "proposal" if self.pane == "steps" else "steps"
        self.draw()

    def action_log_y(self) -> None:
        self.choose(log_y=not self.choice.log_y)

    def action_zoom(self) -> None:
        self.zoomed = (self.zoomed + 1) % len(ZOOMS)
        for name in ZOOMS[1:]:
            self.set_class(name == ZOOMS[self.zoomed], f"zoom-{name}")
        self.call_after_refresh(self.draw)

    def action_back(self) -> None:
        if self.zoomed:
            self.zoomed = len(ZOOMS) - 1
            self.action_zoom()
        else:
            super().action_back()

    # ------------------------------------------------------------------------- requests

    async def _ask_options(self) -> None:
        """Which chains there are, and whether anything can be measured."""
        try:
            client = await self.workbench.client()
            options = await client.ask(GetRecommendOptions(self.opened.session))
        except (WorkbenchError, OSError):
            return  # the form says what is wrong
        if isinstance(options, RecommendOptions):
            self._chains = options.chains
            self._unmeasurable = plain(options.unmeasurable)
            self.draw()

    async def _retrain(self, request: RetrainChain) -> None:
        """Ask, and say what came of it; steps come as events meanwhile."""
        self._doing = "starting"
        self.draw()
        looking = asyncio.ensure_future(self._look())
        try:
            reply = await (await self.workbench.client()).ask(request)
        except (WorkbenchError, OSError) as error:
            self._doing = ""
            self.workbench.say(str(error), "error")
            return
        finally:
            looking.cancel()
            self._doing = ""
        if isinstance(reply, ChainRetrained):
            self.workbench.say(self._told(reply))

    def _told(self, reply: ChainRetrained) -> str:
        ended = f"{reply.canary.ending.note}. " if reply.canary is not None else ""
        if reply.proposal is None:
            notes = " ".join(reply.notes)
            return f"{ended}{notes}"
        accept, reject = self.key("canary.accept"), self.key("canary.reject")
        return f"{ended}A proposal waits: {accept} accepts, {reject} rejects."

    async def _look(self) -> None:
        """Keep saying what the engine computes."""
        while True:
            try:
                status = await (await self.workbench.client()).ask(GetStatus())
            except (WorkbenchError, OSError):
                return  # the request itself tells
            if isinstance(status, EngineStatus) and status.scoring:
                self._doing = plain(status.scoring)
                self.draw()
            await asyncio.sleep(LOOK_S)

    def _decide(self, accept: bool) -> None:
        record = self._here(self.shown)
        if record is None or record.proposal is None:
            return
        proposal = record.proposal.proposal
        verb = "Accept" if accept else "Reject"
        consequence = (
            f"It says {plain(proposal.kpi)} of {plain(proposal.chain)} from now on."
            if accept
            else "What is in force stays so; the same samples are not proposed again."
        )
        if accept and not proposal.gain:
            consequence += " On held-out points it is no better."

        def answered(why: str | None) -> None:
            if why is not None:
                self.run_worker(self._decided(record, accept, why))

        self.app.push_screen(
            ReasonScreen(f"{verb} proposal {proposal.id[:6]}?", consequence, needed=not accept),
            answered,
        )

    async def _decided(self, record: Record, accept: bool, why: str) -> None:
        assert record.proposal is not None
        proposal, session = record.proposal.proposal, self.opened.session
        models = self.opened.live.view.chain_model(proposal.chain, proposal.kpi)
        before = models.current if models is not None else 0
        request = DecideProposal(session, proposal.id, accept, why)
        try:
            await (await self.workbench.client()).ask(request)
        except (WorkbenchError, OSError) as error:
            self.workbench.say(str(error), "error")
            return
        if not accept:
            self.workbench.say(f"Proposal {proposal.id[:6]} is rejected.")
            return

        async def back() -> str:
            client = await self.workbench.client()
            await client.ask(RollBackModel(session, before, proposal.chain, proposal.kpi))
            what = f"model {before}" if before else "the stand-alone profiles"
            return f"{proposal.chain}: {proposal.kpi} is said by {what} again."

        self.workbench.say(
            f"{proposal.chain}: {proposal.kpi} is said by the accepted model.",
            undo=Undo("Accepting", back),
        )
