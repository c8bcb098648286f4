"""A recommendation as it is shown: question, verdict, allocations, and all about one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult
from textual.containers import Vertical

from workbench.domain.parameters import PrimaryWorkload
from workbench.domain.recommendations import Recommendation, Trend
from workbench.tui.plots.plot import ProfilePlot
from workbench.tui.screens.proposals.chain_names import per
from workbench.tui.screens.recommend import recommend_rows as rows_of
from workbench.tui.screens.recommend import recommend_words as words_of
from workbench.tui.text import kpi_name, plain
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows


@dataclass(frozen=True)
class Told:
    """What is shown, in `width` cells; without `trends` no plot. `airy`: lines can be spared."""

    found: Recommendation
    notes: Sequence[str]
    primary: PrimaryWorkload | None
    trends: Sequence[Trend] | None
    width: int
    airy: bool
    lab: rows_of.Lab = rows_of.NOT_ASKED


class AnswerView(Vertical):
    """The list has a cursor; what is below it is paged where it does not fit."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._below: list[Row] = []
        self._top = 0

    def compose(self) -> ComposeResult:
        yield Rows(id="asked")
        yield Rows(id="verdict")
        yield Listing(id="allocations")
        yield Rows(id="below")
        yield ProfilePlot(id="plot")

    @property
    def overflows(self) -> bool:
        return len(self._below) > self.query_one("#below").size.height

    def more(self) -> None:
        """The next page of what is below, then the first again."""
        self._top += max(1, self.query_one("#below").size.height)

    def rewind(self) -> None:
        """Something else is shown from now on: from its beginning."""
        self._top = self.query_one(Listing).cursor = 0

    def on_listing_moved(self) -> None:
        self._top = 0

    def tell(self, told: Told) -> None:
        """Show this from now on."""
        found, width = told.found, told.width
        self.query_one("#asked", Rows).show([rows_of.asked_row(found, width)])
        verdict, rows = self.query_one("#verdict", Rows), rows_of.verdict_rows(found, width)
        verdict.styles.height = len(rows)
        verdict.show(rows)
        lines = rows_of.allotted(found)
        columns = rows_of.Columns.within(found, width)
        listing = self.query_one(Listing)
        listing.styles.height = len(lines) + 1
        listing.show_lines(
            rows_of.heading(columns),
            len(lines),
            lambda index, here, _: rows_of.line_row(lines[index], found, columns, here, told.lab),
            min(listing.cursor, len(lines) - 1),
        )
        here = lines[listing.cursor] if lines else None
        parts = rows_of.parts(here, found, told.notes, told.primary, width, told.lab)
        self._below = [row for part in parts for row in [(), *part]][not told.airy :]
        self._show_below(told.trends is not None)
        self._show_plot(here, told)

    def _show_below(self, plotted: bool) -> None:
        below = self.query_one("#below", Rows)
        if self._top >= len(self._below):
            self._top = 0
        below.styles.height = len(self._below) if plotted else "1fr"
        below.show(self._below[self._top :])

    def _show_plot(self, here: rows_of.Allotted | None, told: Told) -> None:
        plot, found = self.query_one(ProfilePlot), told.found
        plot.display = told.trends is not None
        if told.trends is None:
            return
        asked, unit = words_of.load(found), told.primary.unit if told.primary else ""
        name = f"{asked:g}{per(plain(unit))}" if asked is not None else ""
        plot.border_title = plain(f"{kpi_name(found.slas[0].kpi)} of {found.chain}")
        plot.show(rows_of.figure(here, told.trends, found, name))
