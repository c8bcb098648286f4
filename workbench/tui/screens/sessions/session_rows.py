"""From the summaries of sessions to the lines of their list; plain functions."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.domain.counts import counted
from workbench.domain.messages import EngineStatus
from workbench.domain.sessions import SessionSummary
from workbench.tui import text
from workbench.tui.widgets.rows import Row

COLUMNS = (  # on 60 columns, the first five
    ("session", 20),
    ("state", 11),
    ("samples", 7),
    ("changed", 11),
    ("lab", 6),
    ("invalid", 7),
    ("targets", 10),
)


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


def cells(session: SessionSummary) -> tuple[str, ...]:
    return (
        session.name,
        session.state if session.kind == "session" else session.kind,
        f"{session.samples:>7}",
        text.day(session.changed_at),
        session.lab,
        f"{session.invalid:>7}" if session.invalid else "      –",
        ", ".join(session.targets),
    )


def count(sessions: Sequence[SessionSummary]) -> str:
    running = sum(s.state in ("running", "paused") for s in sessions)
    some = counted(len(sessions), "session")
    return f"{some}, {running} running" if running else some
