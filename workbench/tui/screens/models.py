"""Models of the open session: methods and scores, feature influence, versions."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from workbench.domain.errors import WorkbenchError
from workbench.domain.events import TargetModelled
from workbench.domain.messages import EventPage, ListEvents
from workbench.domain.profiles import ModelScore, ModelVersion
from workbench.tui import model_rows
from workbench.tui.present import Choice, Shown
from workbench.tui.screens.base import HasList
from workbench.tui.screens.session import SessionScreen
from workbench.tui.text import kpi_name, plain
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows

EMPTY = """No model of this session is stored yet.

`workbench models {session}` compares the methods and stores the best of each target."""


class ModelsScreen(SessionScreen, HasList):
    """One target and KPI at a time: its versions above, then scores and influence."""

    NAME: ClassVar[str] = "models"

    def __init__(self) -> None:
        super().__init__()
        self.subject = 0
        """Which of `model_rows.subjects` is shown."""
        self._scores: dict[int, tuple[ModelScore, ...]] = {}
        """By the sequence number of the event that stored a version."""

    def middle(self) -> ComposeResult:
        yield Rows(id="subject")
        yield Listing(id="versions")
        yield Rows(id="scores")
        yield Rows(id="influence")
        yield Static("", id="empty", markup=False)

    def listing(self) -> Listing:
        return self.query_one(Listing)

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: Choice) -> None:
        del choice
        subjects = model_rows.subjects(shown.view)
        empty = self.query_one("#empty", Static)
        empty.display = not subjects
        for id in ("#subject", "#versions", "#scores", "#influence"):
            self.query_one(id).display = bool(subjects)
        if not subjects:
            empty.update(EMPTY.format(session=plain(self.opened.session)))
            return
        self.subject = min(self.subject, len(subjects) - 1)
        target, kpi = subjects[self.subject]
        head = f" {plain(target)} · {kpi_name(kpi)}"
        more = f"  {self.subject + 1} of {len(subjects)}"
        self.query_one("#subject", Rows).show([((head, "strong"), (more, "dim"))])
        versions = model_rows.version_lines(shown.view, target, kpi)
        heading = model_rows.version_heading()
        listing = self.listing()
        listing.styles.height = min(len(versions), 6) + 1

        def row(index: int, here: bool, width: int) -> Row:
            return model_rows.version_row(versions[index], here, width)

        listing.show_lines(heading, len(versions), row, min(listing.cursor, len(versions) - 1))
        self._draw_scores(versions[listing.cursor].model)
        influence = next((i for i in shown.view.influences if i.target == target), None)
        self._put("#influence", model_rows.influence_rows(influence, kpi, self.size.width))

    def _draw_scores(self, version: ModelVersion | None) -> None:
        if version is None:
            self._put("#scores", [])
            return
        scores = self._scores.get(version.seq)
        if scores is None:
            self._scores[version.seq] = (version.score,)  # until the others are here
            self.run_worker(self._fetch(version.seq))
        self._put("#scores", model_rows.score_rows(scores or (version.score,), self.size.width))

    def _put(self, id: str, rows: list[Row]) -> None:
        lines = self.query_one(id, Rows)
        lines.display = bool(rows)
        lines.styles.height = max(1, len(rows))
        lines.show(rows)

    async def _fetch(self, seq: int) -> None:
        """All scores that a version was chosen by: they are in its event, not in the view."""
        try:
            client = await self.workbench.client()
            page = await client.ask(ListEvents(self.opened.session, after=seq - 1, limit=1))
        except (WorkbenchError, OSError) as error:
            self.workbench.say(str(error), "error")
            return
        for event in page.events if isinstance(page, EventPage) else ():
            if isinstance(event.fact, TargetModelled):
                self._scores[seq] = event.fact.scores
        self.draw()

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        subjects = model_rows.subjects(self.shown.view)
        conditions = {
            "target": len({target for target, _ in subjects}) > 1,
            "kpi": len(subjects) > 1,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def copied(self) -> tuple[str, str]:
        rows = self.query_one("#scores", Rows) if self.ready else None
        return ("the scores", rows.text) if rows is not None and rows.rows else ("", "")

    def on_listing_moved(self) -> None:
        self.draw()

    def action_kpi(self) -> None:
        """The next subject, whichever target it is of."""
        self._show(self.subject + 1)

    def action_target(self) -> None:
        subjects = model_rows.subjects(self.shown.view)
        if not subjects:
            return
        here = subjects[self.subject][0]
        after = [*range(self.subject, len(subjects)), *range(self.subject)]
        self._show(next((i for i in after if subjects[i][0] != here), self.subject))

    def _show(self, subject: int) -> None:
        subjects = model_rows.subjects(self.shown.view)
        self.subject = subject % max(1, len(subjects))
        self.listing().cursor = 0
        self.draw()
