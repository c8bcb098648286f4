"""Running functions that `workbench watch` tells of: the KPI from their counters, and alarms."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from workbench.domain.errors import WorkbenchError
from workbench.domain.function_watches import FunctionWatch, FunctionWatches, ListWatches
from workbench.tui import text
from workbench.tui.plots.plot import ProfilePlot
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.screens.base import HasList
from workbench.tui.screens.function_watch import watch_rows
from workbench.tui.screens.session import SessionScreen
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows
from workbench.tui.workers import begin

LOOK_S = 1.0
LEAST_PLOT = 8
"""Rows of the plot, below which the details give way."""


class WatchScreen(SessionScreen, HasList):
    """A line for each watch, the KPI of the one under the cursor, and what was told of it."""

    NAME: ClassVar[str] = "watch"

    def __init__(self) -> None:
        super().__init__()
        self._known: FunctionWatches | None = None
        self._of = ""
        """The session whose watches are known."""

    def middle(self) -> ComposeResult:
        yield Listing(id="watches")
        yield ProfilePlot(id="plot")
        yield Rows(id="watched")
        yield Static("", id="empty", markup=False)

    def on_mount(self) -> None:
        self.set_interval(LOOK_S, self._look)
        self._look()

    def on_screen_resume(self) -> None:
        self._look()

    def _look(self) -> None:
        if self.in_sight and not self.too_small:
            begin(self, self._ask, group="watches", exclusive=True)

    async def _ask(self) -> None:
        """Those that there are; what is shown stays where no engine answers."""
        session = self.opened.session
        if session != self._of:
            self._known, self._of = None, session
        since = watch_rows.missing_since(self._known)
        try:
            news = await (await self.workbench.client()).ask(ListWatches(session, since))
        except (WorkbenchError, OSError):
            return
        self._known = watch_rows.merged(self._known, news)
        if self.opened.frozen is None:
            self.draw()

    def listing(self) -> Listing:
        return self.query_one(Listing)

    @property
    def watches(self) -> tuple[FunctionWatch, ...]:
        return self._known.watches if self._known is not None else ()

    @property
    def here(self) -> FunctionWatch | None:
        """The watch under the cursor."""
        cursor = self.listing().cursor if self.ready else 0
        return self.watches[cursor] if cursor < len(self.watches) else None

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        del choice
        some, width = bool(self.watches), self.size.width
        listing, plot, empty = self.listing(), self.query_one(ProfilePlot), self.query_one("#empty")
        listing.display = plot.display = some
        empty.display = not some
        self.query_one("#empty", Static).update(_nothing(shown))
        lines = len(self.watches)
        listing.styles.height = min(lines, 6) + 1
        listing.show_lines(watch_rows.heading(width), lines, self._row, listing.cursor)
        here, below = self.here, self.query_one("#watched", Rows)
        if here is None or self._known is None:
            below.show_all([])
            return
        plot.show(watch_rows.figure(here, self._known.now), watch_rows.title(here))
        room = self.query_one("#middle").size.height - min(lines, 6) - 1 - LEAST_PLOT
        below.show_all(watch_rows.detail_rows(here, width, max(1, room)))

    def _row(self, index: int, under: bool, width: int) -> Row:
        now = self._known.now if self._known is not None else 0.0
        row = watch_rows.watch_row(self.watches[index], now, width)
        return tuple((words, "badge") for words, _ in row) if under else row

    def legend(self) -> tuple[str, ...]:
        return (
            *watch_rows.meanings(),
            "gaps in the curve: no prediction then; nothing is sent through the function",
        )

    def copied(self) -> tuple[str, str]:
        if not self.watches or self._known is None:
            return "", ""
        now = self._known.now
        rows = [watch_rows.heading(120), *(watch_rows.watch_row(w, now, 120) for w in self.watches)]
        return "the watches", "\n".join("".join(t for t, _ in row).rstrip() for row in rows)

    def on_listing_moved(self) -> None:
        self.draw()


def _nothing(shown: Shown) -> str:
    """How one is begun, with this session's own names."""
    campaign, session = shown.view.campaign, text.plain(shown.view.session)
    if shown.view.host is not None and shown.view.host.is_simulated:
        return (
            "This session was simulated, and has no counters to learn from: measure the function "
            "on the Docker lab (`workbench run CAMPAIGN --lab docker`), and open that session."
        )
    alone = [p.target.name for p in campaign.targets if len(p.target.vnfs) == 1] if campaign else []
    function = text.plain(alone[0]) if alone else "FUNCTION"
    return (
        "No running function is watched with the models of this session.\n\n"
        "In another terminal of this host:\n\n"
        f'  workbench watch {session} {function} --at container:NAME --kpi "p95<=100ms"\n\n'
        "tells its KPI from its counters once a second, and is shown here."
    )
