"""Models of the open session: versions, scores, residuals, coefficients, influence; roll back."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from workbench.domain.answer_tables import Cell
from workbench.domain.errors import WorkbenchError
from workbench.domain.events import TargetModelled
from workbench.domain.messages import ListEvents
from workbench.domain.profiles import ModelScore, ModelVersion
from workbench.domain.questions import ExplainModel, ModelExplained, RollBackModel
from workbench.tui.answer_rows import laid_out
from workbench.tui.columns import ListColumn, Sorting
from workbench.tui.plots.legends import SCORE_COLUMNS, legend, plot_marks
from workbench.tui.plots.plot import ProfilePlot
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.screens.asking import EngineQuestion
from workbench.tui.screens.base import HasList
from workbench.tui.screens.dialogs import ConfirmScreen
from workbench.tui.screens.models import model_rows, residual_rows
from workbench.tui.screens.models.model_rows import VersionLine
from workbench.tui.screens.models.scoring import ScoringScreen
from workbench.tui.screens.proposals.chain_names import plan_of
from workbench.tui.screens.proposals.proposal_rows import proposal_rows
from workbench.tui.text import kpi_name, plain
from workbench.tui.undo import Undo
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows, Span
from workbench.tui.widgets.waiting import Waiting
from workbench.tui.workers import begin

EMPTY = """No model of this session is stored yet.

{score} scores all methods on a target's samples, and stores the best as its model.
{compare} compares the chains, and stores the models that it needs for that."""
THEN = """No model was stored by then.

{score} scores all methods on the samples of the whole session."""
OBSERVED = """No model of this session is stored yet.

{score} scores all methods on a target's samples; for an observer nothing is stored."""
NOT_MEASURED = """No model of this session is stored yet.

A model is fitted to samples: what is planned here has none yet."""

PREDICTING = "predicting held-out samples"
SCORES = "scores"
"""As what the sort key of the scores is remembered."""
PANES = ("scores", "residuals", "coefficients")


class ModelsScreen(ScoringScreen, HasList):
    """One target and KPI at a time: its versions above, what is known of the chosen one below."""

    NAME: ClassVar[str] = "models"

    def __init__(self) -> None:
        super().__init__()
        self.subject = 0
        """Which of `_subjects` is shown."""
        self.pane = "scores"
        self.over_load = True
        """Residuals over the load, or over the predicted KPI."""
        self._scored: tuple[ModelScore, ...] = ()
        """Those that are shown."""
        self._scores: dict[int, tuple[ModelScore, ...]] = {}
        """By the sequence number of the event that stored a version."""
        self._explained: dict[ExplainModel, ModelExplained | str] = {}
        """What the engine said, or why it did not."""
        self._explaining = EngineQuestion(self, self.draw, "explaining")
        self._explains: ExplainModel | None = None
        """What is computed now."""
        self._lines: list[VersionLine] = []

    def middle(self) -> ComposeResult:
        yield Waiting()
        yield Rows(id="subject")
        yield Listing(id="versions")
        yield Rows(id="scores")
        yield Rows(id="influence")
        yield Rows(id="residuals")
        yield ProfilePlot(id="plot")
        yield Listing(id="coefficients")
        yield Static("", id="empty", markup=False)

    @property
    def _versions(self) -> Listing:
        return self.query_one("#versions", Listing)

    def listing(self) -> Listing:
        """Coefficients may be more than fit, and are gone through where they are shown."""
        return self.query_one(
            f"#{'coefficients' if self._has_coefficients else 'versions'}", Listing
        )

    @property
    def _has_coefficients(self) -> bool:
        return self.query_one("#coefficients", Listing).display

    @property
    def _subjects(self) -> list[tuple[str, str]]:
        """Target and KPI of what is stored, then of what was only scored."""
        stored = model_rows.subjects(self.shown.view)
        return list(dict.fromkeys([*stored, *self.scored]))

    @property
    def about(self) -> tuple[str, str]:
        subjects = self._subjects
        if not subjects:
            return "", self.shown.kpi(self.choice)
        return subjects[min(self.subject, len(subjects) - 1)]

    def show_scored(self, target: str, kpi: str) -> None:
        self.subject, self.pane = self._subjects.index((target, kpi)), "scores"
        self._versions.cursor = 0

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        del choice
        subjects = self._subjects
        self.query_one(Waiting).tell(
            self.asking.busy, self.asking.trouble, self.size.width, self.key("models.drop")
        )
        empty = self.query_one("#empty", Static)
        empty.display = not subjects
        for id in ("#subject", "#versions"):
            self.query_one(id).display = bool(subjects)
        for id in ("#scores", "#influence", "#residuals", "#plot", "#coefficients"):
            self.query_one(id).display = False
        self._lines = []
        if not subjects:
            empty.update(self._why_empty())
            return
        self.subject = min(self.subject, len(subjects) - 1)
        target, kpi = subjects[self.subject]
        head = f" {plain(target)} · {kpi_name(kpi)}"
        more = f"  {self.subject + 1} of {len(subjects)}"
        tabs: tuple[Span, ...] = tuple(
            (f" {name} ", "badge" if name == self.pane else "dim") for name in PANES
        )
        self.query_one("#subject", Rows).show([((head, "strong"), (f"{more}   ", "dim"), *tabs)])
        self._lines = versions = model_rows.version_lines(shown.view, target, kpi)
        self._versions.display = bool(versions)
        if not versions:
            self._draw_unstored(target, kpi)
            return
        listing = self._versions
        listing.styles.height = min(len(versions), 6) + 1

        laid = laid_out(model_rows.versions(versions), self.size.width - 4)

        def row(index: int, here: bool, _: int) -> Row:
            return model_rows.version_row(versions[index], laid.lines[index], here)

        heading: Row = ((f"   {laid.heading}", "dim"),)
        listing.show_lines(heading, len(versions), row, min(listing.cursor, len(versions) - 1))
        line = versions[listing.cursor]
        if self.pane == "scores":
            self._draw_scores(shown, line, target, kpi)
        elif self.pane == "residuals":
            self._draw_residuals(shown, line, target, kpi)
        else:
            self._draw_coefficients(shown, line, target, kpi)

    def _why_empty(self) -> str:
        if self.opened.replay is not None:
            words = THEN
        elif not self.shown.view.samples_taken:
            words = NOT_MEASURED
        else:
            words = OBSERVED if self.opened.role == "observer" else EMPTY
        return words.format(score=self.key("models.score"), compare=self.key("go.compare"))

    def _draw_unstored(self, target: str, kpi: str) -> None:
        """What was scored without a version of it in sight: for an observer, or in a replay."""
        why = " Scored now, of all samples of the session; no version of it is stored"
        why += " by then." if self.opened.replay is not None else "."
        rows = self._table(self.scored[target, kpi])
        self._put("#scores", [((why, "dim"),), *rows])  # the rows may be more than fit

    def _draw_scores(self, shown: Shown, line: VersionLine, target: str, kpi: str) -> None:
        if line.proposal is not None:
            keys = ("", "")
            if self.opened.commandable:  # it is decided where its steps are seen
                there = self.key("go.canary")
                accept, reject = self.key("canary.accept"), self.key("canary.reject")
                keys = (f"{there} {accept}", f"{there} {reject}")
            self._put("#scores", proposal_rows(shown.view, line.proposal, keys, self.size.width))
        elif line.model is not None:
            now = self.scored.get((target, kpi)) if line.latest else None
            if now and now[0].samples < line.model.samples:
                now = None  # a later version learned from more
            self._put("#scores", self._score_rows(line.model, now))
        else:
            words = " Each function's own model, composed; what chaining adds is not in them."
            self._put("#scores", [((words, "dim"),)])
        influence = next((i for i in shown.view.influences if i.target == target), None)
        self._put("#influence", model_rows.influence_rows(influence, kpi, self.size.width))

    def _score_rows(self, version: ModelVersion, now: tuple[ModelScore, ...] | None) -> list[Row]:
        """What it was chosen by; in place of that, what was scored `now` by a key."""
        if now is not None:
            return self._table(now)
        scores = self._scores.get(version.seq)
        if scores is None and not self.opened.lost:
            self._scores[version.seq] = (version.score,)  # until the others are here
            begin(self, partial(self._fetch, version.seq))
        return self._table(scores or (version.score,))

    def _table(self, scores: tuple[ModelScore, ...]) -> list[Row]:
        glyphs, self._scored = self.query_one(ProfilePlot).glyphs, scores
        return model_rows.score_rows(scores, self._sorting, glyphs, self.size.width)

    @property
    def _sorting(self) -> Sorting:
        """Of the scores; by no column: the best first."""
        stored, columns = self.workbench.memory.columns(SCORES), self._columns
        return Sorting.remembered(stored, columns, model_rows.BEST_FIRST)

    @property
    def _columns(self) -> tuple[ListColumn[tuple[Cell, ...]], ...]:
        return model_rows.score_columns(self._scored, self.size.width)

    def _draw_residuals(self, shown: Shown, line: VersionLine, target: str, kpi: str) -> None:
        explained = self._explanation(line, target, kpi)
        if not isinstance(explained, ModelExplained):
            self._put("#residuals", [((f" {explained}", "dim"),)])
            return
        self._put("#residuals", [residual_rows.summary(explained)])
        plan = plan_of(shown.view, target)
        log_x = not self.over_load or plan is None or plan.primary.scale == "log"
        plot = self.query_one(ProfilePlot)
        plot.display = True
        plot.show(
            residual_rows.figure(explained, self.over_load, log_x),
            residual_rows.title(shown.view, explained, self.over_load),
        )

    def _draw_coefficients(self, shown: Shown, line: VersionLine, target: str, kpi: str) -> None:
        rows: list[Row]
        if line.proposal is not None:
            rows = residual_rows.term_rows(shown.view, line.proposal.proposal, self.size.width)
        else:
            explained = self._explanation(line, target, kpi)
            rows = [((f" {explained}", "dim"),)]
            if isinstance(explained, ModelExplained):
                rows = residual_rows.coefficient_rows(shown.view, explained, self.size.width)
        listing = self.query_one("#coefficients", Listing)
        listing.display = True

        def row(index: int, *_: object) -> Row:
            return rows[index]

        heading: Row = ((" coefficients, ± standard error", "strong"),)
        listing.show_lines(heading, len(rows), row, min(listing.cursor, len(rows) - 1))

    def _explanation(self, line: VersionLine, target: str, kpi: str) -> ModelExplained | str:
        """What the engine says of a version; a sentence as long as it says nothing."""
        if not line.version:
            if line.back:
                return "These are the functions' own profiles: Compare shows how well they predict."
            return "Accept it first: only models in force are explained."
        session, retrained = self.opened.session, line.model is None
        request = ExplainModel(session, target, kpi, line.version, retrained)
        if (explained := self._explained.get(request)) is not None:
            return explained
        if self.opened.lost:
            return "the engine is gone; it is asked again once it is back"
        if self._explains != request or self._explaining.busy is None:
            # In place of another one, which is asked for again when it is looked at again.
            self._explains = request
            self._explaining.begin(partial(self._explain, request), PREDICTING)
        busy = self._explaining.busy
        return f"… {PREDICTING if busy is None else busy.ended_by(self.key('models.drop'))}"

    @property
    def unanswered(self) -> bool:
        return super().unanswered or self._explaining.busy is not None

    def _put(self, id: str, rows: list[Row]) -> None:
        self.query_one(id, Rows).show_all(rows)

    async def _fetch(self, seq: int) -> None:
        """All scores that a version was chosen by: they are in its event, not in the view."""
        try:
            client = await self.workbench.client()
            page = await client.ask(ListEvents(self.opened.session, after=seq - 1, limit=1))
        except (WorkbenchError, OSError) as error:
            if self.opened.lost:
                self._scores.pop(seq, None)  # it is asked for again once the engine is back
            else:
                self.workbench.say(str(error), "error")
            return
        for event in page.events:
            if isinstance(event.fact, TargetModelled):
                self._scores[seq] = event.fact.scores
        self.draw()

    async def _explain(self, request: ExplainModel) -> None:
        reply = await self._explaining.answer(request)
        if reply is not None:
            self._explained[request] = reply
        elif not self.opened.lost:  # else it is asked for again once the engine is back
            why = plain(self._explaining.trouble)
            self._explained[request] = f"It cannot be explained: {why}"

    # ------------------------------------------------------------------------- actions

    def action_drop(self) -> None:
        """What is scored, or the explanation that the pane waits for; looked at again, it is asked
        for again."""
        if self.asking.busy is not None:
            self.asking.drop()
        else:
            self.pane = PANES[0]
            self._explaining.drop()

    @property
    def _line(self) -> VersionLine | None:
        cursor = self._versions.cursor if self.ready else 0
        return self._lines[cursor] if cursor < len(self._lines) else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        subjects, watch, line = self._subjects, self.opened, self._line
        other = watch.live.view.under_trial is not None and not watch.drives
        may = watch.commandable and not (other and watch.control_lock.driver)
        conditions = {
            "score": self.can_score,
            "drop": self.unanswered,
            "back": not self.unanswered,
            "target": len({target for target, _ in subjects}) > 1,
            "kpi": len(subjects) > 1,
            "pane": line is not None,
            "sort": self._sortable,
            "reverse": self._sortable and bool(self._sorting.by),
            "over": line is not None and self.pane == "residuals",
            "roll_back": may and line is not None and line.back and not line.in_force,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        if method == "roll_back" and (why := self.why_no_command()):
            return why
        if said := super().why_not(method):
            return said
        line, pane = self._line, self.key("models.pane")
        if method in ("target", "kpi", "pane", "over", "sort", "reverse") and not self._subjects:
            return f"No model is stored yet: {self.key('models.score')} scores the methods."
        if method == "roll_back":
            return self._why_no_way_back(line)
        return {
            "target": "Models of one target are here alone.",
            "kpi": "There is no model of another KPI.",
            "pane": "What was scored now has no version, and so nothing else to show.",
            "over": f"Residuals alone have two axes: {pane} goes on to them.",
            "sort": f"No table of scores is shown: {pane} goes on to it.",
            "reverse": f"No column sorts the scores: {self.key('models.sort')} chooses one.",
        }.get(method, "")

    def _why_no_way_back(self, line: VersionLine | None) -> str:
        if line is None or not line.back:
            return "Only an accepted model of a chain, or its profiles, can be put in force again."
        if line.in_force:
            return "It is in force already."
        return f"{plain(self.opened.control_lock.driver)} drives what is being measured."

    def legend(self) -> tuple[str, ...]:
        return (*SCORE_COLUMNS, *legend(self.query_one(ProfilePlot).glyphs, plot_marks))

    def copied(self) -> tuple[str, str]:
        if not self.ready or self.pane == "residuals":
            return self._copied_residuals() if self.ready else ("", "")
        rows = self.query_one("#scores", Rows)
        return ("the scores", rows.text) if rows.display and rows.rows else ("", "")

    def _copied_residuals(self) -> tuple[str, str]:
        subjects, line = self._subjects, self._line
        if line is None or not line.version:
            return "", ""
        target, kpi = subjects[self.subject]
        explained = self._explanation(line, target, kpi)
        if not isinstance(explained, ModelExplained) or not explained.residuals:
            return "", ""
        rows = [
            f"{r.sample_id}\t{r.configuration.key}\t{r.wl}\t{r.measured}\t{r.predicted}"
            for r in explained.residuals
        ]
        return "the residuals", "\n".join(("sample\tconfiguration\twl\tmeasured\tpredicted", *rows))

    def on_listing_moved(self) -> None:
        self.draw()

    def action_kpi(self) -> None:
        """The next subject, whichever target it is of."""
        self._show(self.subject + 1)

    def action_target(self) -> None:
        subjects = self._subjects
        if not subjects:
            return
        here = subjects[self.subject][0]
        after = [*range(self.subject, len(subjects)), *range(self.subject)]
        self._show(next((i for i in after if subjects[i][0] != here), self.subject))

    def action_pane(self) -> None:
        self.pane = PANES[(PANES.index(self.pane) + 1) % len(PANES)]
        self.draw()

    @property
    def _sortable(self) -> bool:
        """Whether scores are shown, and not what a proposal or a chain's profiles say."""
        line = self._line
        scored = bool(self._subjects) if line is None else line.model is not None
        return self.pane == "scores" and scored

    def action_sort(self) -> None:
        """By the next column; after the last one the best is first again."""
        order = [model_rows.BEST_FIRST]
        order += [Sorting(column.name, column.falling) for column in self._columns]
        at = next(i for i, sorting in enumerate(order) if sorting.by == self._sorting.by)
        self._sort(order[(at + 1) % len(order)])

    def action_reverse(self) -> None:
        self._sort(self._sorting.reversed)

    def _sort(self, sorting: Sorting) -> None:
        self.workbench.memory.arranged(SCORES, sorting.stored)
        self.draw()

    def action_over(self) -> None:
        self.over_load = not self.over_load
        self.draw()

    def action_roll_back(self) -> None:
        line, subjects = self._line, self._subjects
        if line is None or not line.back:
            return
        chain, kpi = subjects[self.subject]
        what = f"model {line.version}" if line.version else "the stand-alone profiles"
        by = f" Accepted by {plain(line.by)}." if line.by else ""

        def answered(yes: bool | None) -> None:
            if yes:
                begin(self, partial(self._rolled_back, chain, kpi, line.version))

        question = f"Predict {plain(kpi)} of {plain(chain)} by {what} again?"
        consequence = f"Predictions and recommendations use it from now on.{by}"
        self.app.push_screen(ConfirmScreen(question, consequence), answered)

    async def _rolled_back(self, chain: str, kpi: str, version: int) -> None:
        session = self.opened.session
        models = self.opened.live.view.chain_model(chain, kpi)
        before = models.current if models is not None else 0

        async def go(to: int) -> str:
            client = await self.workbench.client()
            await client.ask(RollBackModel(session, to, chain, kpi))
            what = f"model {to}" if to else "the stand-alone profiles"
            return f"{chain}: {kpi} is predicted by {what} again."

        try:
            said = await go(version)
        except (WorkbenchError, OSError) as error:
            self.workbench.say(str(error), "error")
            return
        self.workbench.say(said, undo=Undo("Rolling back", lambda: go(before)))

    def _show(self, subject: int) -> None:
        self.subject = subject % max(1, len(self._subjects))
        self._versions.cursor = 0
        self.draw()
