"""What happened in the session, line by line: filter, follow, and the way to the sample."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from workbench.domain.errors import WorkbenchError
from workbench.domain.event_log import LogLine
from workbench.domain.messages import EventPage, ListEvents
from workbench.domain.projection import SessionView
from workbench.tui import present
from workbench.tui.present import Choice, Shown
from workbench.tui.screens.base import HasList, Target
from workbench.tui.screens.session import SessionScreen
from workbench.tui.text import clock, plain
from workbench.tui.widgets.filter import FilterLine
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Look, Row, fit

MOST_LINES = 20_000
"""Kept in the list; `Older` fetches what came before."""
PAGE = 500
LEVELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("all", ("info", "warning", "error")),
    ("warnings and errors", ("warning", "error")),
    ("errors", ("error",)),
)
SIGNS: dict[str, tuple[str, Look]] = {"warning": ("!", "warn"), "error": ("×", "bad")}


class EventsScreen(SessionScreen, HasList):
    """Follows the latest line until the user moves the cursor."""

    NAME: ClassVar[str] = "events"

    def __init__(self) -> None:
        super().__init__()
        self.follows = True
        self.level = 0
        self._of: SessionView | None = None
        """Whose lines these are: a replay or a reconnection begins with a view of its own."""
        self._lines: list[LogLine] = []
        self._listed: list[LogLine] = []
        """Those that the filter lets through."""

    def middle(self) -> ComposeResult:
        yield FilterLine("words of a line, such as a target")
        yield Listing(id="events")
        yield Static("", id="empty", markup=False)

    def listing(self) -> Listing:
        return self.query_one(Listing)

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: Choice) -> None:
        del choice
        self._take_in(shown.view)
        cursor = self._seq_under_cursor()
        self._listed = [line for line in self._lines if self._passes(shown.view, line)]
        index = len(self._listed) - 1
        if not self.follows and cursor is not None:
            found = (i for i, line in enumerate(self._listed) if line.seq >= cursor)
            index = next(found, index)
        listing, empty = self.listing(), self.query_one("#empty", Static)
        listing.display, empty.display = bool(self._listed), not self._listed
        listing.show_lines(self._heading(), len(self._listed), self._row, index)
        if not self._listed:
            shows = self.key("events.unfilter").replace("esc", "escape")
            wait = "Nothing happened yet. Events come by themselves."
            empty.update(f"No event is like that.\n\nPress {shows} to see all."
                         if self._lines else wait)  # fmt: skip

    def _take_in(self, view: SessionView) -> None:
        live = self.opened.live.view
        if self._of is not live:
            self._of, self._lines = live, []
        last = self._lines[-1].seq if self._lines else 0
        self._lines += [line for line in view.log if line.seq > last]
        del self._lines[:-MOST_LINES]

    def _passes(self, view: SessionView, line: LogLine) -> bool:
        if line.level not in LEVELS[self.level][1]:
            return False
        words = self.query_one(FilterLine).words
        if not words:
            return True
        text = present.log_line(view, line).casefold()
        return all(word in text for word in words)

    def _heading(self) -> Row:
        whole = len(self._lines)
        first = self._lines[0].seq if self._lines else 1
        some = f"{len(self._listed)} of {whole}" if len(self._listed) < whole else f"{whole}"
        parts = [f" {some} events", f"level {LEVELS[self.level][0]}"]
        if first > 1:
            parts.append(f"{first - 1} older: {self.key('events.older')}")
        if self.follows:
            parts.append("following")
        return ((" · ".join(parts), "strong"),)

    def _row(self, index: int, here: bool, width: int) -> Row:
        line = self._listed[index]
        sign, look = SIGNS.get(line.level, (" ", ""))
        words = present.log_line(self.shown.view, line)
        goes = "→" if line.sample else " "
        head = f"{line.seq:>6} {clock(line.at)} "
        text = fit(f"{sign} {words}", max(0, width - len(head) - 2))
        return (
            (head, "badge" if here else "dim"),
            (text, "badge" if here else look),
            (f"{goes} ", "badge" if here else "dim"),
        )

    def _seq_under_cursor(self) -> int | None:
        cursor = self.listing().cursor
        return self._listed[cursor].seq if cursor < len(self._listed) else None

    @property
    def here(self) -> LogLine | None:
        """The line under the cursor."""
        cursor = self.listing().cursor if self.ready else 0
        return self._listed[cursor] if cursor < len(self._listed) else None

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        here, first = self.here, self._lines[0].seq if self._lines else 1
        filtering = self.ready and self.query_one(FilterLine).display
        conditions = {
            "open": here is not None and bool(here.sample),
            "unfilter": filtering or self.level > 0,
            "back": not filtering and self.level == 0,
            "follow": not self.follows,
            "replay_from": here is not None and self.opened.connected and not self.opened.lost,
            "older": first > 1 and not self.opened.lost,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def copied(self) -> tuple[str, str]:
        here = self.here
        if here is None:
            return "", ""
        return "the line", f"{clock(here.at)} {present.log_line(self.shown.view, here)}"

    def jump_targets(self) -> Iterator[Target]:
        yield from super().jump_targets()
        for offset, index in self.listing().visible_lines():
            yield offset, partial(self._go_to, index)

    def _go_to(self, index: int) -> None:
        self.listing().move(index - self.listing().cursor)

    def on_listing_moved(self) -> None:
        self.follows = self.listing().cursor == len(self._listed) - 1
        self.draw()

    def on_listing_opened(self) -> None:
        self.action_open()

    def action_open(self) -> None:
        here = self.here
        if here is None or not here.sample:
            return
        for item in self.shown.view.configurations:
            if any(sample.id == here.sample for sample in item.samples):
                self.choose(key=item.key, sample=here.sample)
                self.workbench.go("live")
                return
        self.workbench.say("That sample is of trials, which have no curve on the screen Live.")

    def action_replay_from(self) -> None:
        if (here := self.here) is not None:
            self.go_to_moment(here.seq)

    def action_filter(self) -> None:
        self.query_one(FilterLine).open()

    def action_unfilter(self) -> None:
        self.query_one(FilterLine).shut()
        self.level = 0
        self.set_focus(None)
        self.draw()

    def action_level(self) -> None:
        self.level = (self.level + 1) % len(LEVELS)
        self.draw()

    def action_follow(self) -> None:
        self.follows = True
        self.draw()

    def action_older(self) -> None:
        if self._lines and self._lines[0].seq > 1:
            self.run_worker(self._fetch(self._lines[0].seq), group="older", exclusive=True)

    async def _fetch(self, first: int) -> None:
        """A page of events before `first`, in the words that the view has for them."""
        after = max(0, first - 1 - PAGE)
        try:
            client = await self.workbench.client()
            page = await client.ask(ListEvents(self.opened.session, after=after, limit=PAGE))
        except (WorkbenchError, OSError) as error:
            self.workbench.say(plain(str(error)), "error")
            return
        if not isinstance(page, EventPage):
            return
        told = SessionView(self.opened.session, seq=after, campaign=self.opened.live.view.campaign)
        for event in page.events:
            told.apply(event)
        self._lines = [line for line in told.log if line.seq < first] + self._lines
        self.follows = False
        self.draw()

    def on_input_changed(self) -> None:
        self.draw()

    def on_input_submitted(self) -> None:
        self.set_focus(None)
