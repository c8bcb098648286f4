"""From the summaries of sessions to the lines of their list; plain functions."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.domain.counts import counted
from workbench.domain.messages import EngineStatus
from workbench.domain.sessions import SessionSummary
from workbench.tui import text
from workbench.tui.columns import Column, Sorting
from workbench.tui.widgets.rows import Row


def _state(session: SessionSummary) -> str:
    return session.state if session.kind == "session" else session.kind


COLUMNS: tuple[Column[SessionSummary], ...] = (  # on 60 columns, the first five
    Column("session", 20, lambda s: s.name, lambda s: s.name.casefold()),
    Column("state", 11, _state, _state),
    Column("samples", 7, lambda s: f"{s.samples:>7}", lambda s: s.samples, falling=True),
    Column("changed", 11, lambda s: text.day(s.changed_at), lambda s: s.changed_at, falling=True),
    Column("lab", 6, lambda s: s.lab, lambda s: s.lab),
    Column(
        "invalid",
        7,
        lambda s: f"{s.invalid:>7}" if s.invalid else "      –",
        lambda s: s.invalid,
        falling=True,
    ),
    Column("targets", 10, lambda s: ", ".join(s.targets), lambda s: s.targets),
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
    if status.host_measuring:
        parts.append(f"host noise: {status.host_measuring}")
    if status.host_held_by:
        parts.append(f"host held by {status.host_held_by}")
    if status.queued:
        parts.append(f"queue: {', '.join(status.queued)}")
    if status.scoring:
        parts.append(f"computing: {status.scoring}")
    return [((f" {text.plain(' · '.join(parts))}", "accent"),)] if parts else []


def haystack(session: SessionSummary) -> str:
    words = (session.name, session.state, session.campaign, session.lab, *session.targets)
    return " ".join(words).casefold()


def count(sessions: Sequence[SessionSummary]) -> str:
    running = sum(s.state in ("running", "paused") for s in sessions)
    some = counted(len(sessions), "session")
    return f"{some}, {running} running" if running else some
