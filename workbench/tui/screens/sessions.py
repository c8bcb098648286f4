"""The session picker: what was measured here, and what can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.widgets import DataTable, Input, Static

from workbench.domain.errors import WorkbenchError
from workbench.domain.messages import ListSessions, ResumeSession, RunCampaign, SessionList
from workbench.domain.sessions import SessionSummary
from workbench.tui import text
from workbench.tui.actions import Place, bindings
from workbench.tui.replay import Replay
from workbench.tui.screens.base import RESUMABLE, WATCHED_PACE, WorkbenchScreen
from workbench.tui.screens.launch import LaunchScreen
from workbench.tui.screens.live import LiveScreen
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.rows import Rows

REFRESH_S = 2.0
COLUMNS = (
    ("session", 20),
    ("state", 11),
    ("samples", 7),
    ("invalid", 7),
    ("lab", 6),
    ("changed", 11),
    ("targets", 60),
)
EMPTY = "No sessions here yet.\n\nPress n to start a campaign."
NO_MATCH = "No session has this text.\n\nPress escape to see all."


class SessionsScreen(WorkbenchScreen):
    """Lists the workspace's sessions; opens, resumes, replays one, or starts a campaign."""

    PLACE: ClassVar[Place] = "sessions"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("sessions"),
        ("j", "cursor(1)", "Down"),
        ("k", "cursor(-1)", "Up"),
        ("escape", "unfilter", "All"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.sessions: tuple[SessionSummary, ...] = ()
        self.lost = ""
        self.loaded = False
        self._asking = False

    def compose(self) -> ComposeResult:
        yield self.too_small_note()
        yield Rows(id="header")
        yield Rows(id="banner")
        yield Input(placeholder="filter: part of a name, state, lab or target", id="filter")
        with Container(id="middle"):
            yield DataTable(id="sessions", cursor_type="row", zebra_stripes=False)
            yield Static("connecting…", id="empty", markup=False)
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        table = self._table
        for name, width in COLUMNS:
            table.add_column(name, key=name, width=width)
        self.query_one("#filter").display = False
        self.set_interval(REFRESH_S, self._refresh_list)
        self._refresh_list()
        self.draw()

    def on_screen_resume(self) -> None:
        self._refresh_list()
        self.call_after_refresh(self.draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    @property
    def _table(self) -> DataTable[str]:
        return self.query_one("#sessions", DataTable)

    # ------------------------------------------------------------------------- what happens

    def _refresh_list(self) -> None:
        if self.is_current and not self._asking and not self.lost:
            self._asking = True
            self.run_worker(self._ask())

    async def _ask(self) -> None:
        try:
            client = await self.workbench.client()
            reply = await client.ask(ListSessions())
            if isinstance(reply, SessionList):
                self.sessions, self.loaded = reply.sessions, True
        except (WorkbenchError, OSError) as error:
            self.lost = text.plain(str(error))
        finally:
            self._asking = False
        if self.is_current:
            self.draw()

    # ------------------------------------------------------------------------- drawing

    def draw(self) -> None:
        if not self.is_mounted or self.too_small:
            return
        shown = self._shown()
        table, empty = self._table, self.query_one("#empty", Static)
        self._fill(table, shown)
        table.display, empty.display = bool(shown), not shown
        if shown and self.focused is None:
            table.focus()
        if not shown:
            empty.update(self._why_empty())
        known = _count(self.sessions) if self.loaded else "connecting…"
        self.query_one("#header", Rows).show([((" workbench ", "strong"), (f" {known}", "dim"))])
        banner = self.query_one("#banner", Rows)
        banner.display = bool(self.lost)
        banner.show([((f" {self.lost} r to reconnect ", "alert"),)])
        self.offer_keys()

    def _why_empty(self) -> str:
        if self.lost:
            return "No engine answers.\n\nPress r to look for it again."
        if not self.loaded:
            return "connecting…"
        return NO_MATCH if self.sessions else EMPTY

    def _shown(self) -> list[SessionSummary]:
        wanted = self.query_one("#filter", Input).value.casefold().split()
        found = [s for s in self.sessions if all(w in _haystack(s) for w in wanted)]
        return sorted(found, key=lambda s: -s.changed_at)

    def _fill(self, table: DataTable[str], shown: list[SessionSummary]) -> None:
        """Rows are compared by key: what stays where it was keeps cursor and scroll position."""
        if [key.value for key in table.rows] != [s.name for s in shown]:
            here = self._under_cursor()
            table.clear()
            for summary in shown:
                table.add_row(*_cells(summary), key=summary.name)
            if here is not None and any(s.name == here.name for s in shown):
                table.move_cursor(row=table.get_row_index(here.name))
            return
        for summary in shown:
            for (column, _), value in zip(COLUMNS, _cells(summary), strict=True):
                if table.get_cell(summary.name, column) != value:
                    table.update_cell(summary.name, column, value, update_width=False)

    def _under_cursor(self) -> SessionSummary | None:
        table = self._table
        if not table.is_valid_row_index(table.cursor_row):
            return None
        name = list(table.rows)[table.cursor_row].value
        return next((s for s in self.sessions if s.name == name), None)

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        here, ready = self._under_cursor() if self.is_mounted else None, not self.lost
        conditions = {
            "open": here is not None and ready,
            "replay": here is not None and ready,
            "resume": here is not None and ready and here.state in RESUMABLE,
            "new": self.loaded and ready,
            "filter": bool(self.sessions),
            "reconnect": bool(self.lost),
        }
        return conditions.get(action, super().check_action(action, parameters))

    def action_open(self) -> None:
        if here := self._under_cursor():
            self.app.push_screen(LiveScreen(here.name))

    def action_resume(self) -> None:
        if here := self._under_cursor():
            self.app.push_screen(
                LiveScreen(here.name, command=ResumeSession(here.name, pace=WATCHED_PACE))
            )

    def action_replay(self) -> None:
        if here := self._under_cursor():
            self.app.push_screen(LiveScreen(here.name, replay=Replay()))

    def action_new(self) -> None:
        def chosen(command: RunCampaign | None) -> None:
            if command is not None:
                self.app.push_screen(LiveScreen(command=command))

        self.app.push_screen(LaunchScreen(), chosen)

    def action_filter(self) -> None:
        line = self.query_one("#filter", Input)
        line.display = True
        line.focus()

    def action_unfilter(self) -> None:
        line = self.query_one("#filter", Input)
        line.value, line.display = "", False
        self._table.focus()
        self.draw()

    def action_reconnect(self) -> None:
        self.lost, self.loaded = "", False
        self.workbench.reconnect()
        self._refresh_list()
        self.draw()

    def action_cursor(self, by: int) -> None:
        table = self._table
        table.move_cursor(row=table.cursor_row + by)

    def on_input_changed(self) -> None:
        self.draw()

    def on_input_submitted(self) -> None:
        self._table.focus()

    def on_data_table_row_selected(self) -> None:
        self.action_open()

    def on_data_table_row_highlighted(self) -> None:
        self.offer_keys()


def _haystack(session: SessionSummary) -> str:
    words = (session.name, session.state, session.campaign, session.lab, *session.targets)
    return " ".join(words).casefold()


def _cells(session: SessionSummary) -> tuple[str, ...]:
    return tuple(
        text.plain(cell).replace("[", "\\[")
        for cell in (
            session.name,
            session.state,
            f"{session.samples:>7}",
            f"{session.invalid:>7}" if session.invalid else "      –",
            session.lab,
            text.day(session.changed_at),
            ", ".join(session.targets),
        )
    )


def _count(sessions: Sequence[SessionSummary]) -> str:
    running = sum(s.state in ("running", "paused") for s in sessions)
    some = "1 session" if len(sessions) == 1 else f"{len(sessions)} sessions"
    return f"{some}, {running} running" if running else some
