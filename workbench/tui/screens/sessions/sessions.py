"""The sessions of a workspace: what was measured here, and all that is done with a session."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message
from textual.widgets import Static

from workbench.domain.errors import WorkbenchError
from workbench.domain.export_requests import ListFormats
from workbench.domain.housekeeping import (
    DeleteSession,
    DuplicateSession,
    RenameSession,
    RestoreSession,
)
from workbench.domain.messages import (
    EngineStatus,
    ExportSession,
    GetStatus,
    ListSessions,
    Request,
    ResumeSession,
    RunCampaign,
)
from workbench.domain.sessions import UNDER_WAY, SessionSummary
from workbench.tui import text
from workbench.tui.columns import Arrangement, ListColumn
from workbench.tui.plots.canvas import GLYPHS
from workbench.tui.plots.plot import terminal_glyphs
from workbench.tui.replaying.replay import Replay
from workbench.tui.screens.asking import EngineQuestion
from workbench.tui.screens.base import CONNECTING, NO_ENGINE, HasList
from workbench.tui.screens.dialogs import ChoiceScreen, ColumnsScreen, NameScreen
from workbench.tui.screens.sessions import session_rows
from workbench.tui.screens.sessions.launch import LaunchScreen
from workbench.tui.undo import Undo
from workbench.tui.watch import RESUMABLE, WATCHED_PACE
from workbench.tui.widgets.filter import FilterLine
from workbench.tui.widgets.keys import KeyLine
from workbench.tui.widgets.rows import Row, Rows, fit
from workbench.tui.widgets.table import CursorTable
from workbench.tui.widgets.tabs import TabLine
from workbench.tui.workers import begin

R = TypeVar("R")

REFRESH_S = 2.0
WIDE, LONGEST_NAME = 120, 48
"""Columns from which names of sessions have more than the usual cells, and how many at most."""


class SessionsScreen(HasList):
    """Lists, opens, resumes, replays, renames, copies, exports and deletes sessions."""

    NAME: ClassVar[str] = "sessions"

    class Elsewhere(Message):
        """Another workspace was chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: tuple[SessionSummary, ...] = ()
        self.status: EngineStatus | None = None
        self.lost = ""
        self._workspace = 0
        """How many were looked at before: an answer of an earlier one is none of this."""
        self.loaded = False
        self._asking = False
        self.exporting = EngineQuestion(self, self._draw_queue, "exporting")
        self._begun = False
        """Whether the cursor was put where somebody new had better start."""
        self._goes_to = ""
        """The session that the cursor is put on once it is listed: it has another name now."""

    def compose(self) -> ComposeResult:
        yield self.too_small_note()
        with Container(id="top"):
            yield TabLine(id="tabs")
            yield Rows(id="header")
        yield Rows(id="banner")
        yield FilterLine("part of a name, state, lab or target")
        with Container(id="middle"):
            yield CursorTable(id="sessions")
            yield Static("connecting…", id="empty", markup=False)
        yield Rows(id="about")
        yield Rows(id="queue")
        yield Rows(id="tour")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        self.set_interval(REFRESH_S, self._refresh_in_turn)
        self.refresh_list()
        self.call_after_refresh(self.draw)

    def on_screen_resume(self) -> None:
        self.refresh_list()
        self.call_after_refresh(self.draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw)

    def listing(self) -> CursorTable:
        return self._table

    @property
    def _table(self) -> CursorTable:
        return self.query_one(CursorTable)

    # ------------------------------------------------------------------------- what happens

    def _refresh_in_turn(self) -> None:
        pace = self.workbench.pace
        if self.in_sight and not pace.wait_s:
            pace.drawing()
            self.refresh_list()

    def refresh_list(self) -> None:
        """Ask the engine anew; without one, wait until the user says so."""
        if self.in_sight and not self._asking and not self.lost:
            self._asking = True
            begin(self, self._ask)

    async def _ask(self) -> None:
        workspace = self._workspace
        try:
            client = await self.workbench.client()
            reply = await client.ask(ListSessions())
            status = await client.ask(GetStatus())
        except (WorkbenchError, OSError) as error:
            if workspace == self._workspace:
                self.lost = text.without_place(error)
        else:
            if workspace == self._workspace:
                self.sessions, self.loaded, self.status = reply.sessions, True, status
                self.workbench.know(reply.sessions)
        finally:
            if workspace == self._workspace:  # else it was said of another one
                self._asking = False
        if self.in_sight:
            self.draw()

    def on_sessions_screen_elsewhere(self) -> None:
        self._workspace += 1
        self._asking = False
        self.sessions, self.status, self.lost, self.loaded = (), None, "", False
        self._goes_to = ""
        self.refresh_list()
        self.draw()

    # ------------------------------------------------------------------------- drawing

    def draw(self) -> None:
        """Bring the list and the lines around it up to date."""
        if not self.ready or self.too_small:
            return
        shown = self._shown()
        table, empty = self._table, self.query_one("#empty", Static)
        glyphs, sorting = GLYPHS[terminal_glyphs()], self._arrangement.sorting
        columns = self._arrangement.columns(session_rows.COLUMNS)
        table.show_columns(
            [(c.name, sorting.heading(c.name, glyphs, 20), self._cells(c)) for c in columns]
        )
        table.fill([(s.name, [column.text(s) for column in columns]) for s in shown])
        self._begin(table)
        self._follow_renamed(table)
        table.display, empty.display = bool(shown), not shown
        if shown and self.focused is None:
            table.focus()
        if not shown:
            empty.update(self._why_empty())
        waiting = "no engine" if self.lost else "connecting…"
        known = session_rows.count(self.sessions) if self.loaded else waiting
        where = f"  {text.plain(self.status.workspace)}" if self.status else ""
        head: Row = ((" workbench ", "strong"), (f" {known}", "dim"), (where, "dim"))
        self.query_one("#header", Rows).show([head])
        banner = self.query_one("#banner", Rows)
        banner.display = bool(self.lost)
        again = self.key("sessions.reconnect")
        banner.show([((f" {again} to reconnect: {self.lost} ", "alert"),)])
        self._draw_queue()
        tour = self.workbench.tour.rows(self.NAME, self.key, self.size.width)
        self.query_one("#tour", Rows).show_all(tour)
        self._draw_about()
        self.offer_keys()

    def _cells(self, column: ListColumn[SessionSummary]) -> int:
        """Of a column: where the terminal is wide, sessions and targets are not cut off."""
        if column.name not in ("session", "targets") or self.size.width < WIDE:
            return column.width
        longest = max((len(column.text(session)) for session in self.sessions), default=0)
        return max(column.width, min(LONGEST_NAME, longest))

    def _begin(self, table: CursorTable) -> None:
        """Where nothing was measured yet, the cursor begins on the recording to start with."""
        first = session_rows.begins(self.sessions)
        if not self._begun and first in (lines := table.keys()):
            table.move_cursor(row=lines.index(first))
        self._begun = self._begun or self.loaded

    def _follow_renamed(self, table: CursorTable) -> None:
        """Its line comes with the next list."""
        if any(session.name == self._goes_to for session in self.sessions):
            if self._goes_to in (lines := table.keys()):
                table.move_cursor(row=lines.index(self._goes_to))
            self._goes_to = ""

    def _draw_queue(self) -> None:
        """What the engine has to do besides, an export of ours first."""
        if not self.ready:
            return
        busy, rows = self.exporting.busy, session_rows.queue_rows(self.status)
        if busy is not None:
            words = fit(f" … {busy.text}", self.size.width)
            rows = [((words, "accent"),), *rows]
        self.query_one("#queue", Rows).show_all(rows)

    def _draw_about(self) -> None:
        room = self.has_class("-normal") or self.has_class("-tall")
        keys = f"{self.key('session.replay')} replays it, {self.key('session.open')} opens it."
        first = session_rows.begins(self.sessions)
        rows = session_rows.about_rows(self.here, first, keys, self.size.width) if room else []
        self.query_one("#about", Rows).show_all(rows)

    def _heading(self, column: str) -> str:
        return self._arrangement.sorting.heading(column, GLYPHS[terminal_glyphs()])

    def _why_empty(self) -> str:
        if self.lost:
            return f"No engine answers.\n\nPress {self.key('sessions.reconnect')} to look again."
        if not self.loaded:
            return "connecting…"
        if self.sessions:
            shows = self.key("session.unfilter").replace("esc", "escape")
            return f"No session has this text.\n\nPress {shows} to see all."
        return f"No sessions here yet.\n\nPress {self.key('session.new')} to start a campaign."

    def _shown(self) -> list[SessionSummary]:
        wanted = self.query_one(FilterLine).words
        found = [s for s in self.sessions if all(w in session_rows.haystack(s) for w in wanted)]
        return self._arrangement.sorting.sort(found, session_rows.COLUMNS)

    @property
    def _arrangement(self) -> Arrangement:
        stored = self.workbench.memory.columns(self.NAME)
        return Arrangement.remembered(stored, session_rows.COLUMNS, session_rows.LATEST)

    def _arrange(self, arrangement: Arrangement) -> None:
        """Have the list like that from now on; the cursor stays on its session, in sight."""
        here = self._table.here
        self.workbench.memory.arranged(self.NAME, arrangement.stored)
        self.draw()
        if here:
            self._table.go_to(here)

    @property
    def here(self) -> SessionSummary | None:
        """The session under the cursor."""
        name = self._table.here if self.ready else ""
        return next((s for s in self.sessions if s.name == name), None)

    @property
    def session_here(self) -> str:
        return self.here.name if self.here is not None else ""

    # ------------------------------------------------------------------------- actions

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        here, ready = self.here, not self.lost
        idle = here is not None and here.state not in UNDER_WAY and ready
        own = idle and here is not None and here.kind == "session"
        conditions = {
            "open": here is not None and ready,
            "replay": here is not None and ready,
            "resume": own and here is not None and here.state in RESUMABLE,
            "duplicate": idle,
            "draft": here is not None and ready,
            "export": here is not None and ready and self.exporting.busy is None,
            "rename": own,
            "delete": own,
            "new": self.loaded and ready,
            "filter": bool(self.sessions),
            "sort": bool(self.sessions),
            "reverse": bool(self.sessions),
            "columns": bool(self.sessions),
            "unfilter": self.ready and self.query_one(FilterLine).display,
            "workspace": bool(self.workbench.files.workspaces()),
            "reconnect": bool(self.lost),
        }
        return conditions.get(action, super().check_action(action, parameters))

    def why_not(self, method: str) -> str:
        here = self.here
        if self.lost:
            return NO_ENGINE
        if not self.loaded:
            return CONNECTING
        if here is None:
            return "There is no session under the cursor."
        name = text.plain(here.name)
        if method in ("delete", "rename", "resume") and here.kind != "session":
            return f"{name} is a recording, which nobody changes; a copy can be."
        if method in ("delete", "rename", "duplicate") and here.state in UNDER_WAY:
            return f"{name} is being measured: stop its run first."
        if method == "resume":
            return f"{name} is {here.state}: there is nothing to go on with."
        if method == "export":
            return "An export is being written: its end comes first."
        if method == "workspace":
            return "No other workspace is known."
        return ""

    def copied(self) -> tuple[str, str]:
        here = self.here
        return ("the session's name", here.name) if here else ("", "")

    def action_open(self) -> None:
        if here := self.here:
            self.workbench.open_session(here.name)

    def action_resume(self) -> None:
        if here := self.here:
            command = ResumeSession(here.name, pace=WATCHED_PACE)
            self.workbench.open_session(here.name, command=command)

    def action_replay(self) -> None:
        if here := self.here:
            self.workbench.open_session(here.name, replay=Replay())

    def action_new(self) -> None:
        def chosen(command: RunCampaign | None) -> None:
            if command is not None:
                self.workbench.open_session(command=command)

        self.app.push_screen(LaunchScreen(), chosen)

    def action_rename(self) -> None:
        here = self.here
        if here is None:
            return

        async def carry_out(name: str) -> None:
            if name != here.name:
                await self._request(RenameSession(here.name, name))

        def answered(name: str | None) -> None:
            if name and name != here.name:
                self._renamed(here.name, name)

        question = f"Rename {text.plain(here.name)} to"
        self.app.push_screen(NameScreen(question, here.name, carry_out=carry_out), answered)

    def _renamed(self, session: str, name: str) -> None:
        closed = self._let_go(session)  # now that no dialog lies over its screens
        self._goes_to = name

        async def back() -> str:
            await self._request(RenameSession(name, session))
            self._goes_to = session
            self.refresh_list()
            return f"{session} has its name again."

        self.workbench.say(f"Renamed to {name}{closed}.", undo=Undo("Renaming", back))
        self.refresh_list()

    def action_duplicate(self) -> None:
        if here := self.here:
            self._do(self._duplicate(here.name))

    async def _duplicate(self, session: str) -> None:
        reply = await self._request(DuplicateSession(session))
        self.workbench.say(f"Copied {session} to {reply.session}.")
        self.refresh_list()

    def action_draft(self) -> None:
        if here := self.here:
            self._do(self._draft(here.name))

    async def _draft(self, session: str) -> None:
        await self.workbench.draft.of_session(session)
        if self.app.screen is self:  # else somebody is at something else by now
            self.workbench.go("campaign")

    def action_export(self) -> None:
        if here := self.here:
            self._do(self._offer_formats(here.name))

    async def _offer_formats(self, session: str) -> None:
        reply = await self._request(ListFormats())

        def chosen(format: str | None) -> None:
            if format is not None:
                words = f"exporting {text.plain(session)} as {text.plain(format)}"
                self.exporting.begin(partial(self._export, session, format), words)

        width = max((len(one.name) for one in reply.formats), default=0)
        options = [(f.name, f"{f.name.ljust(width)}  {f.meaning}") for f in reply.formats]
        self.show_late(ChoiceScreen(f"Export {text.plain(session)} as", options), chosen)

    async def _export(self, session: str, format: str) -> None:
        reply = await self.exporting.answer(ExportSession(session, format))
        if reply is None:
            self.workbench.say(self.exporting.trouble, "error")
            return
        but = "".join(f" {text.sentence(warning)}." for warning in reply.warnings)
        self.workbench.say(f"Wrote {reply.path}.{but}", "warning" if but else "information")

    def action_delete(self) -> None:
        if here := self.here:
            self._do(self._delete(here.name))

    async def _delete(self, session: str) -> None:
        closed = self._let_go(session)
        reply = await self._request(DeleteSession(session))

        async def back() -> str:
            restored = await self._request(RestoreSession(reply.ticket))
            self.refresh_list()
            return f"{restored.session} is back."

        undo = Undo(f"Deleting {session}", back)
        self.workbench.say(f"{session} is in the trash{closed}.", undo=undo)
        self.refresh_list()

    def _let_go(self, session: str) -> str:
        """The open session's screens must not show a file that goes away; says so of them."""
        if self.workbench.opened.session != session:
            return ""
        self.workbench.close_session()
        return "; its screens are closed"

    def action_workspace(self) -> None:
        def chosen(folder: str | None) -> None:
            if folder is not None:
                self.workbench.choose_workspace(folder)

        folders = self.workbench.files.workspaces()
        options = [(folder, folder) for folder in folders]
        self.app.push_screen(ChoiceScreen("Open the workspace", options), chosen)

    def action_filter(self) -> None:
        self.query_one(FilterLine).open()

    def action_unfilter(self) -> None:
        self.query_one(FilterLine).shut()
        self._table.focus()
        self.draw()

    def action_sort(self) -> None:
        self._arrange(self._arrangement.sorted_by_next(session_rows.COLUMNS))

    def action_reverse(self) -> None:
        self._sort_by(self._arrangement.sorting.by)

    def _sort_by(self, column: str) -> None:
        self._arrange(self._arrangement.sorted_by(column, session_rows.COLUMNS))

    def action_columns(self) -> None:
        def chosen(shown: tuple[str, ...] | None) -> None:
            if shown is not None:
                self._arrange(self._arrangement.showing(shown, session_rows.COLUMNS))

        names = [column.name for column in session_rows.COLUMNS]
        self.app.push_screen(ColumnsScreen(names, self._arrangement.shown), chosen)

    def action_reconnect(self) -> None:
        self.lost, self.loaded = "", False
        self.workbench.reconnect()
        self.refresh_list()
        self.draw()

    def on_input_changed(self) -> None:
        self.draw()

    def on_input_submitted(self) -> None:
        self._table.focus()

    def on_data_table_row_selected(self) -> None:
        self.action_open()

    def on_data_table_header_selected(self, event: CursorTable.HeaderSelected) -> None:
        self._sort_by(event.column_key.value or "")

    def on_data_table_row_highlighted(self) -> None:
        self._draw_about()
        self.offer_keys()

    # ------------------------------------------------------------------------- requests

    async def _request(self, request: Request[R]) -> R:
        return await (await self.workbench.client()).ask(request)

    def _do(self, work: Coroutine[None, None, None]) -> None:
        """Without holding up the keys; what goes wrong is a message."""

        async def done() -> None:
            try:
                await work
            except (WorkbenchError, OSError) as error:
                self.workbench.say(str(error), "error")

        begin(self, done)
