"""The lab hosts that share a campaign: what each does, has done, and how it differs."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.widgets import Static

from workbench.tui.present import Shown, ViewChoice
from workbench.tui.screens.base import HasList
from workbench.tui.screens.fleet_hosts import host_rows
from workbench.tui.screens.fleet_hosts.host_rows import HostLine
from workbench.tui.screens.session import SessionScreen
from workbench.tui.widgets.listing import Listing
from workbench.tui.widgets.rows import Row, Rows

NOTHING = (
    "This session was measured by one host.\n\n"
    "`workbench run CAMPAIGN --fleet hosts.yaml` measures over several."
)
LEAST_LINES = 3
"""Of the list, where the details of a host are long."""


class HostsScreen(SessionScreen, HasList):
    """A line for each host, and below all of the one under the cursor."""

    NAME: ClassVar[str] = "hosts"

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[HostLine] = []

    def middle(self) -> ComposeResult:
        yield Rows(id="whole")
        yield Listing(id="hosts")
        yield Rows(id="host")
        yield Static(NOTHING, id="empty", markup=False)

    def listing(self) -> Listing:
        return self.query_one(Listing)

    def draw_middle(self, shown: Shown, choice: ViewChoice) -> None:
        del choice
        width = self.size.width
        self._lines = host_rows.host_lines(shown.view)
        some = bool(self._lines)
        listing, empty = self.listing(), self.query_one("#empty", Static)
        listing.display, empty.display = some, not some
        whole, host = self.query_one("#whole", Rows), self.query_one("#host", Rows)
        whole.show_all([host_rows.summary_row(shown.view, width)] if some else [])
        heading = host_rows.heading(width)
        listing.show_lines(heading, len(self._lines), self._row, listing.cursor)
        room = self.query_one("#middle").size.height - LEAST_LINES - 2
        here = self.here
        rows = [] if here is None else host_rows.detail_rows(shown.view, here, width)
        host.show_all(rows[: max(0, room)])

    def _row(self, index: int, under: bool, width: int) -> Row:
        row = host_rows.host_row(self._lines[index], width)
        return tuple((words, "badge") for words, _ in row) if under else row

    @property
    def here(self) -> HostLine | None:
        """The host under the cursor."""
        cursor = self.listing().cursor if self.ready else 0
        return self._lines[cursor] if cursor < len(self._lines) else None

    def legend(self) -> tuple[str, ...]:
        return (
            "▶ measures a shard; × is lost: its shard waits for it for two minutes; ■ gets "
            "no work: it is held by a person, or out because of what came of it, as it says",
            "· waiting: for its turn there, while somebody else measures on it or goes first; "
            "queued: its job waits in the queue of Slurm; starting: it comes up; idle: at rest",
            "pace: lab seconds per second on the clock, of the shards that it has finished",
            "noise: how much its own deployments scatter at the lowest anchor load; !: over four "
            "times the other hosts' median",
            "to go: with the hosts that are there now and get work, as of the last change; "
            "unknown until one of them has finished a shard, and where more is planned in rounds",
        )

    def copied(self) -> tuple[str, str]:
        if not self._lines:
            return "", ""
        rows = [host_rows.summary_row(self.shown.view, 120), host_rows.heading(120)]
        rows += [host_rows.host_row(line, 120) for line in self._lines]
        return "the hosts", "\n".join("".join(t for t, _ in row).rstrip() for row in rows)

    def on_listing_moved(self) -> None:
        self.draw()
