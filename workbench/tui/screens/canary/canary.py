"""Canaries of the open session: planned, followed step by step, decided; and those of before."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Container, VerticalScroll
from textual.widgets import Static

from workbench.domain import canary_tables
from workbench.domain.canary_tables import StepLine
from workbench.tui.answer_rows import laid_out
from workbench.tui.plots.legends import legend, plot_marks
from workbench.tui.plots.plot import ProfilePlot
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.screens.base import HasList
from workbench.tui.screens.canary import canary_figure, canary_rows
from workbench.tui.screens.canary.canary_deciding import DecidingScreen
from workbench.tui.screens.canary.canary_rows import Record
from workbench.tui.screens.dialogs import ChoiceScreen
from workbench.tui.screens.proposals import chain_names
from workbench.tui.screens.proposals.proposal_rows import proposal_rows
from workbench.tui.text import day
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows

ZOOMS = ("", "plot", "lower")
WIDE = 92
"""Columns from which on what was expected has its interval beside it."""


class CanaryScreen(DecidingScreen, HasList):
    """The latest canary, or the one that was chosen: steps, guard, curve, proposal."""

    NAME: ClassVar[str] = "canary"

    def __init__(self) -> None:
        super().__init__()
        self.pane = "steps"
        """What stands below the plot where there is no room for both."""
        self.zoomed = 0
        self._steps: list[StepLine] = []
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

    @property
    def _proposal(self) -> VerticalScroll:
        return self.query_one("#proposal-scroll", VerticalScroll)

    @property
    def _reads_proposal(self) -> bool:
        """Whether it stands in the place of the steps, so that the keys are for it."""
        return self._proposal.display and not self.listing().display

    def move_lines(self, by: int) -> None:
        if self._reads_proposal:
            self._proposal.scroll_relative(y=by, animate=False)
        else:
            super().move_lines(by)

    @property
    def page(self) -> int:
        return max(1, self._proposal.size.height) if self._reads_proposal else super().page

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        found = self.records(shown)
        record = self.here(shown)
        self._notice_news(shown)
        self.ask_once()
        if self._under_way is not None and self.asking.busy is not None:
            self.asking.busy.restart()
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
        self._put("#state", canary_rows.state_rows(view, record, self.waiting_for, width))
        self._draw_panels(shown, record, choice)

    def _draw_panels(self, shown: Shown, record: Record, choice: ViewChoice) -> None:
        view = shown.view
        both = self._has_room
        proposal, canary = record.proposal, record.canary
        pane = self._pane(record)
        steps = self.listing()
        steps.display = canary is not None and (both or pane == "steps")
        self._proposal.display = proposal is not None and (both or pane == "proposal")
        lower = self.query_one("#canary-lower")
        width = lower.size.width or self.size.width
        self._steps = canary_rows.steps_of(view, canary) if canary is not None else []
        unit = chain_names.primary(view, record.chain)[1]
        rows = self._steps
        steps.styles.height = min(len(rows) + 1, max(6, lower.size.height // 2)) if both else "1fr"

        per = chain_names.per(unit).strip()
        table = canary_tables.steps(rows, per, margins=True, intervals=width >= WIDE)
        laid = laid_out(table, width - 4)

        def row(index: int, here: bool, _: int) -> Row:
            return canary_rows.step_row(rows[index], laid.lines[index], here)

        cursor = steps.cursor
        if self._following and canary is not None and canary.under_way:
            cursor = next((i for i, s in enumerate(rows) if s.verdict == "measuring"), cursor)
        steps.show_lines(((f"   {laid.heading}", "dim"),), len(rows), row, cursor)
        if proposal is not None:
            keys = ("", "")
            if self.may_command:
                keys = (self.key("canary.accept"), self.key("canary.reject"))
            self._put("#proposal", proposal_rows(view, proposal, keys, width - 1))
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
            record = self.here(shown)
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
        if self.asking.busy is not None:
            return self.waiting_for
        watch = self.opened
        next_key = self.key("canary.plan") if self.check_action("plan", ()) else ""
        return canary_rows.empty(
            shown.view,
            next_key,
            replayed=watch.replay is not None,
            unmeasurable=self.unmeasurable,
            observer=watch.role == "observer",
        )

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        record = self.here(self.shown)
        both = record is not None and record.canary is not None and record.proposal is not None
        conditions = {
            "open": len(self.records(self.shown)) > 1,
            "other": both and not self._has_room,
            "log_y": record is not None,
            "zoom": record is not None,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        record = self.here(self.shown)
        if method == "open" and record is not None:
            return "There is no other canary or proposal."
        if method == "zoom" or (method in ("open", "log_y") and record is None):
            return "There is no canary yet."
        return super().why_not(method)

    def legend(self) -> tuple[str, ...]:
        signs, words = canary_rows.SIGNS, canary_tables.VERDICTS
        verdicts = [f"{sign} {words[verdict]}" for verdict, (sign, _) in signs.items()]
        own = ("", "Steps", "   ".join(verdicts[:4]), "   ".join(verdicts[4:]),
               "margin: share of the guard's limit that was left", "")  # fmt: skip
        return (*own, *legend(self.query_one(ProfilePlot).glyphs, plot_marks))

    def copied(self) -> tuple[str, str]:
        if not self.ready:
            return "", ""
        record = self.here(self.shown)
        if record is not None and self._pane(record) == "proposal":
            return "the proposal", self.query_one("#proposal", Rows).text
        table = canary_rows.table(self._steps)
        return ("the steps", table) if table else ("", "")

    def on_listing_moved(self) -> None:
        self._following = False
        self.draw()

    def action_open(self) -> None:
        found = self.records(self.shown)
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
        self.choose(replace(self.choice, log_y=not self.choice.log_y))

    def action_zoom(self) -> None:
        self.zoomed = (self.zoomed + 1) % len(ZOOMS)
        for name in ZOOMS[1:]:
            self.set_class(name == ZOOMS[self.zoomed], f"zoom-{name}")
        self.tell_zoom(("plot", "steps and proposal"), self.zoomed)
        self.call_after_refresh(self.draw)

    def action_back(self) -> None:
        if self.zoomed:
            self.zoomed = len(ZOOMS) - 1
            self.action_zoom()
        else:
            super().action_back()
