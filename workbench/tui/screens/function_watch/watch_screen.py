"""Running functions that `workbench watch` tells of: the KPI from their counters, and alarms."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from workbench.domain.errors import WorkbenchError
from workbench.domain.function_watches import (
    FunctionWatch,
    FunctionWatches,
    ListWatches,
    WatchedFunction,
)
from workbench.tui import text
from workbench.tui.plots.plot import ProfilePlot
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.screens.base import HasList
from workbench.tui.screens.dialogs import MessageScreen
from workbench.tui.screens.function_watch import watch_list, watch_rows
from workbench.tui.screens.function_watch.watch_list import ListColumns, ordered, watch_row
from workbench.tui.screens.session import SessionScreen
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows
from workbench.tui.workers import begin

LOOK_S = 1.0
COPIED = 160
"""Columns of the list that is copied: with places and intervals."""
LEAST_PLOT = 8
"""Rows of the plot, below which the details give way."""
LEAST_LINES = 6
"""Of the list, where there are as many; of a high screen it has a third."""


class WatchScreen(SessionScreen, HasList):
    """A line for each watch, the KPI of the one under the cursor, and what was told of it."""

    NAME: ClassVar[str] = "watch"

    def __init__(self) -> None:
        super().__init__()
        self._known: FunctionWatches | None = None
        self._columns = ListColumns.of((), 80)
        self._of = ""
        """The session whose watches are known."""
        self._chosen: WatchedFunction | None = None
        """Whom the cursor stays on wherever its line goes; None: the first line, which is the
        worst, until somebody moves it."""

    def middle(self) -> ComposeResult:
        yield Listing(id="watches", tells_place=True)
        yield ProfilePlot(id="plot")
        yield Rows(id="watched")
        yield Static("", id="empty", markup=False)

    def on_mount(self) -> None:
        self.set_interval(LOOK_S, self._look)
        self._look()

    def on_screen_resume(self) -> None:
        self._look()

    def _look(self) -> None:
        if self.in_sight and not self.too_small and not self._held:
            begin(self, self._ask, group="watches", exclusive=True)

    @property
    def _held(self) -> bool:
        """Whether the drawing is frozen: keys are for the lines that are seen, and the next look
        has all that came meanwhile."""
        known = self._known is not None and self._of == self.opened.session
        return known and self.opened.frozen is not None

    async def _ask(self) -> None:
        """Those that there are; what is shown stays where no engine answers."""
        session = self.opened.session
        if session != self._of:
            self._known, self._of, self._chosen = None, session, None
        since = watch_rows.missing_since(self._known)
        try:
            news = await (await self.workbench.client()).ask(ListWatches(session, since))
        except (WorkbenchError, OSError):
            return
        if not self._held:
            self._known = watch_rows.merged(self._known, news)
            self.draw()

    def listing(self) -> Listing:
        return self.query_one(Listing)

    @property
    def watches(self) -> tuple[FunctionWatch, ...]:
        """In the order of the list."""
        return ordered(self._known.watches, self._known.now) if self._known is not None else ()

    @property
    def here(self) -> FunctionWatch | None:
        """The watch under the cursor."""
        cursor = self.listing().cursor if self.ready else 0
        watches = self.watches
        return watches[cursor] if cursor < len(watches) else None

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        del choice
        watches, width = self.watches, self.size.width
        listing, plot, empty = self.listing(), self.query_one(ProfilePlot), self.query_one("#empty")
        listing.display = plot.display = bool(watches)
        empty.display = not watches
        self.query_one("#empty", Static).update(_nothing(shown))
        high = self.query_one("#middle").size.height
        lines = min(len(watches), max(LEAST_LINES, high // 3))
        listing.styles.height = lines + 1
        self._columns = ListColumns.of(watches, width)
        at = [watch.watched for watch in watches]
        cursor = at.index(self._chosen) if self._chosen in at else 0
        listing.show_lines(watch_list.heading(self._columns), len(watches), self._row, cursor)
        here, below = self.here, self.query_one("#watched", Rows)
        if here is None or self._known is None:
            below.show_all([])
            return
        plot.show(watch_rows.figure(here, self._known.now), watch_rows.title(here, width))
        room = max(1, high - lines - 1 - LEAST_PLOT)
        below.show_all(watch_rows.detail_rows(here, width, room, self.key("watch.details")))

    def _row(self, index: int, under: bool, width: int) -> Row:
        watches = self.watches
        if self._known is None or index >= len(watches):
            return ()
        row = watch_list.watch_row(watches[index], self._known.now, self._columns)
        return (("".join(words for words, _ in row).ljust(width), "badge"),) if under else row

    def action_unfreeze(self) -> None:
        super().action_unfreeze()
        self._look()

    def action_details(self) -> None:
        """All that is known of the watch under the cursor."""
        here = self.here
        if here is not None and self._known is not None:
            words = watch_rows.whole_text(here, self._known.now)
            self.app.push_screen(MessageScreen("Watch", words))

    def legend(self) -> tuple[str, ...]:
        return (
            *watch_list.meanings(),
            "gaps in the curve: no prediction then; nothing is sent through the function",
        )

    def copied(self) -> tuple[str, str]:
        if not self.watches or self._known is None:
            return "", ""
        now, watches = self._known.now, self.watches
        columns = ListColumns.of(watches, COPIED)
        rows = [watch_list.heading(columns), *(watch_row(each, now, columns) for each in watches)]
        return "the watches", "\n".join("".join(t for t, _ in row).rstrip() for row in rows)

    def on_listing_moved(self) -> None:
        here = self.here
        self._chosen = here.watched if here is not None else None
        self.draw()

    def on_listing_opened(self) -> None:
        self.action_details()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "details":
            return self.here is not None
        return super().check_action(action, parameters)

    def why_not(self, method: str) -> str:
        return "No function is watched." if method == "details" else super().why_not(method)


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
        "tells its KPI from its counters once a second, and is shown here.\n"
        f"`workbench counters --session {session} --function {function}` says which explain it."
    )
