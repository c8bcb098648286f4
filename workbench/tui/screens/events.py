"""What happened and what functions wrote: filter, follow, and the way to the sample."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from workbench.domain.errors import WorkbenchError
from workbench.domain.event_log import LogLine, Repeated, in_a_row, lines_written
from workbench.domain.events import LogWritten
from workbench.domain.messages import ListEvents
from workbench.domain.projection import SessionView
from workbench.tui import present
from workbench.tui.present import Shown, ViewChoice
from workbench.tui.screens.base import HasList
from workbench.tui.screens.session import SessionScreen
from workbench.tui.text import clock, plain
from workbench.tui.widgets.filter import FilterLine
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Look, Row, fit
from workbench.tui.workers import begin

MOST_LINES = 20_000
"""Kept in the list; `Older` fetches what came before, and as many again at most."""
PAGE = 500
WHAT = ("events and logs", "events", "logs")
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
        self.what = 0
        self.level = 0
        self._of: SessionView | None = None
        """Whose lines these are: a replay or a reconnection begins with a view of its own."""
        self._lines: list[LogLine] = []
        """Events, and between them the lines that were written meanwhile."""
        self._fetched = 0
        """How many more lines are kept, since somebody asked for older ones."""
        self._since = {"events": 1, "logs": 1}
        """Event from which on the lines are complete, for each kind."""
        self._listed: list[Repeated] = []
        """Those that the filter lets through; what says the same again stands there once."""

    def middle(self) -> ComposeResult:
        yield FilterLine("words of a line, such as a target or who wrote it")
        yield Listing(id="events")
        yield Static("", id="empty", markup=False)

    def listing(self) -> Listing:
        return self.query_one(Listing)

    # ------------------------------------------------------------------------- drawing

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        del choice
        self._take_in(shown.view)
        cursor = self.here
        passed = [line for line in self._lines if self._passes(shown.view, line)]
        self._listed = in_a_row(passed)
        index = len(self._listed) - 1
        if not self.follows and cursor is not None:
            place = _place(cursor)
            found = (i for i, said in enumerate(self._listed) if _place(said.line) >= place)
            index = next(found, index)
        listing, empty = self.listing(), self.query_one("#empty", Static)
        listing.display, empty.display = bool(self._listed), not self._listed
        listing.show_lines(self._heading(len(passed)), len(self._listed), self._row, index)
        if not self._listed:
            shows = self.key("events.unfilter").replace("esc", "escape")
            wait = "Nothing happened yet. Events come by themselves."
            empty.update(f"No line is like that.\n\nPress {shows} to see all."
                         if self._lines else wait)  # fmt: skip

    def _take_in(self, view: SessionView) -> None:
        live = self.opened.live.view
        if self._of is not live:
            self._of, self._lines, self._fetched = live, [], 0
            first = view.log[0].seq if view.log else 1
            self._since = {"events": first, "logs": view.written_since}
        last = self._lines[-1].seq if self._lines else 0
        new = (line for line in (*view.log, *view.written) if line.seq > last)
        self._lines += sorted(new, key=_place)
        most = MOST_LINES + self._fetched
        if len(self._lines) > most:
            del self._lines[:-most]
            first = self._lines[0].seq + 1  # that event may have lost some of its lines
            self._since = {kind: max(since, first) for kind, since in self._since.items()}

    @property
    def _first(self) -> int:
        """Event from which on nothing is missing of what is to be seen; 1: of all."""
        return max(since for kind, since in self._since.items() if kind in WHAT[self.what])

    def _passes(self, view: SessionView, line: LogLine) -> bool:
        if _kind(line) not in WHAT[self.what] or line.seq < self._first:
            return False
        if line.level not in LEVELS[self.level][1]:
            return False
        words = self.query_one(FilterLine).words
        if not words:
            return True
        text = f"{line.component} {present.log_line(view, line)}".casefold()
        return all(word in text for word in words)

    def _heading(self, passed: int) -> Row:
        whole = len(self._lines)
        some = f"{passed} of {whole}" if passed < whole else f"{whole}"
        parts = [f" {some} {WHAT[self.what]}", f"level {LEVELS[self.level][0]}"]
        if self._first > 1:
            key = f": {self.key('events.older')}" if self._has_older else ""
            parts.append(f"{self._first - 1} older{key}")
        if self.follows:
            parts.append("following")
        return ((" · ".join(parts), "strong"),)

    def _row(self, index: int, here: bool, width: int) -> Row:
        said = self._listed[index]
        line = said.line
        sign, look = SIGNS.get(line.level, (" ", ""))
        words = present.log_line(self.shown.view, line)
        goes = "→" if line.sample else " "
        head = f"{line.seq:>6} {clock(line.at)} "
        who = f"{plain(line.component)} │ " if line.component else ""
        times = f" × {said.times} since {clock(said.since)}" if said.times > 1 else ""
        left = max(0, width - len(head) - len(who) - len(times) - 4)
        spans: Row = (
            (head, "dim"),
            (f"{sign} ", look),
            (who, "accent"),
            (
                fit(words[: 2 * left], left),
                look,
            ),  # a log's line may be long, and it is cut by cells
            (times, "strong"),
            (f"{goes} ", "dim"),
        )
        return tuple((text, "badge") for text, _ in spans) if here else spans

    @property
    def here(self) -> LogLine | None:
        """The line under the cursor; of several that say the same, the last."""
        cursor = self.listing().cursor if self.ready else 0
        return self._listed[cursor].line if cursor < len(self._listed) else None

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        here = self.here
        filtering = self.ready and self.query_one(FilterLine).display
        filtering = filtering or self.level > 0 or self.what > 0
        conditions = {
            "open": here is not None and bool(here.sample),
            "unfilter": filtering,
            "back": not filtering,
            "follow": not self.follows,
            "replay_from": here is not None and self.opened.connected and not self.opened.lost,
            "older": self._has_older and not self.opened.lost,
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        if said := super().why_not(method):
            return said
        if method in ("open", "replay_from") and self.here is None:
            return "There is no line under the cursor."
        if method == "older" and self._first > 1:
            follow = self.key("events.follow")
            return f"No more older lines are kept: {follow} follows the latest and lets them go."
        return {
            "open": "This line is about no sample.",
            "follow": "The latest line is followed already.",
            "older": "Nothing is older than the first line.",
        }.get(method, "")

    def copied(self) -> tuple[str, str]:
        here = self.here
        if here is None:
            return "", ""
        who = f"{plain(here.component)}: " if here.component else ""
        return "the line", f"{clock(here.at)} {who}{present.log_line(self.shown.view, here)}"

    def on_listing_moved(self) -> None:
        self.follows = self.listing().cursor == len(self._listed) - 1
        self.draw()

    def on_listing_opened(self) -> None:
        self.action_open()

    def take_along(self, name: str) -> None:
        here = self.here
        if name == "why" and here is not None and here.sample:
            for item in self.shown.view.configurations:
                if any(sample.id == here.sample for sample in item.samples):
                    self.opened.choose(replace(self.choice, key=item.key, sample=here.sample))

    def action_open(self) -> None:
        here = self.here
        if here is None or not here.sample:
            return
        for item in self.shown.view.configurations:
            if any(sample.id == here.sample for sample in item.samples):
                self.choose(replace(self.choice, key=item.key, sample=here.sample))
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
        self.level = self.what = 0
        self.set_focus(None)
        self.draw()

    def action_level(self) -> None:
        self.level = (self.level + 1) % len(LEVELS)
        self.draw()

    def action_what(self) -> None:
        self.what = (self.what + 1) % len(WHAT)
        self.draw()

    def action_follow(self) -> None:
        """The latest line; older ones that were fetched make room again."""
        self.follows, self._fetched = True, 0
        self.draw()

    @property
    def _has_older(self) -> bool:
        return self._first > 1 and self._fetched < MOST_LINES

    def action_older(self) -> None:
        if self._has_older:
            begin(self, partial(self._fetch, self._first), group="older", exclusive=True)

    async def _fetch(self, first: int) -> None:
        """A page before event `first`, in the words that the view has for it."""
        after = max(0, first - 1 - PAGE)
        try:
            client = await self.workbench.client()
            page = await client.ask(ListEvents(self.opened.session, after=after, limit=PAGE))
        except (WorkbenchError, OSError) as error:
            self.workbench.say(plain(str(error)), "error")
            return
        told = SessionView(self.opened.session, seq=after, campaign=self.opened.live.view.campaign)
        written: list[LogLine] = []
        for event in page.events:
            told.apply(event)
            if isinstance(event.fact, LogWritten):
                written += lines_written(event.seq, event.at, event.fact)
        whole = {kind for kind, since in self._since.items() if since <= first}
        self._since |= dict.fromkeys(whole, after + 1)
        known = [ln for ln in self._lines if _kind(ln) not in whole or ln.seq >= first]
        fetched = [ln for ln in (*told.log, *written) if _kind(ln) in whole and ln.seq < first]
        self._lines = sorted((*fetched, *known), key=_place)
        self._fetched = min(self._fetched + len(fetched), MOST_LINES)
        self.follows = False
        self.draw()

    def on_input_changed(self) -> None:
        self.draw()

    def on_input_submitted(self) -> None:
        self.set_focus(None)


def _place(line: LogLine) -> tuple[int, int]:
    """Where a line stands among all others."""
    return line.seq, line.place


def _kind(line: LogLine) -> str:
    return "logs" if line.component else "events"
