"""From the summaries of sessions to the lines of their list; plain functions."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.domain.counts import counted
from workbench.domain.messages import EngineStatus
from workbench.domain.recordings import FIRST, shipped
from workbench.domain.sessions import UNDER_WAY, SessionSummary
from workbench.tui import text
from workbench.tui.columns import ListColumn, Sorting
from workbench.tui.widgets.rows import Row


def _state(session: SessionSummary) -> str:
    if session.kind == "session":
        return session.state
    known = shipped(session)
    return known.word if known is not None else "recording"


COLUMNS: tuple[ListColumn[SessionSummary], ...] = (  # on 60 columns, the first five
    ListColumn("session", 20, lambda s: s.name, lambda s: s.name.casefold()),
    ListColumn("state", 11, _state, _state),
    ListColumn("samples", 7, lambda s: f"{s.samples:>7}", lambda s: s.samples, falling=True),
    ListColumn(
        "changed", 11, lambda s: text.day(s.changed_at), lambda s: s.changed_at, falling=True
    ),
    ListColumn("lab", 6, lambda s: s.lab, lambda s: s.lab),
    ListColumn(
        "invalid",
        7,
        lambda s: f"{s.invalid:>7}" if s.invalid else "      –",
        lambda s: s.invalid,
        falling=True,
    ),
    ListColumn("targets", 10, lambda s: ", ".join(s.targets), lambda s: s.targets),
)
LATEST = Sorting("changed", falling=True)
"""What is worked on stands first, until somebody chooses otherwise."""


def queue_rows(status: EngineStatus | None) -> list[Row]:
    """Who measures on this host and who waits; nothing where nobody does."""
    if status is None:
        return []
    parts: list[str] = []
    if status.running:
        parts.append(f"measuring {status.running}")
    if status.preparing:
        parts.append(f"starting {status.preparing}")
    if status.idle_work:
        parts.append(f"for later sessions: {status.idle_work}")
    if status.host_measuring:
        parts.append(f"host noise: {status.host_measuring}")
    if status.host_held_by:
        parts.append(f"host held by {status.host_held_by}")
    if status.queued:
        parts.append(f"queue: {', '.join(status.queued)}")
    if status.scoring:
        parts.append(f"computing: {status.computing}")
    return [((f" {text.plain(' · '.join(parts))}", "accent"),)] if parts else []


def begins(sessions: Sequence[SessionSummary]) -> str:
    """The recording that whoever measured nothing yet had better start with; empty: none."""
    if any(session.kind == "session" for session in sessions):
        return ""
    return next((s.name for s in sessions if s.name == FIRST and shipped(s)), "")


def about_rows(here: SessionSummary | None, first: str, keys: str, width: int) -> list[Row]:
    """What the recording under the cursor shows; nothing of a session. `keys` tells what to press.

    `first` is the name of the recording to start with, empty where that is no question any more.
    """
    known = shipped(here) if here is not None else None
    if here is None or known is None:
        return []
    head = f"Start here: {here.name}" if here.name == first else here.name
    words = f"{known.shows} {keys}" if here.name == first else known.shows
    lines = text.wrapped(f"{head} – {words}", width - 2)
    rows: list[Row] = [((f" {line}", ""),) for line in lines[:3]]
    rows[0] = ((f" {head}", "accent"), (lines[0][len(head) :], ""))
    return rows


def haystack(session: SessionSummary) -> str:
    words = (session.name, session.state, session.campaign, session.lab, *session.targets)
    return " ".join(words).casefold()


def count(sessions: Sequence[SessionSummary]) -> str:
    running = sum(s.state in UNDER_WAY for s in sessions)
    some = counted(len(sessions), "session")
    return f"{some}, {running} running" if running else some
