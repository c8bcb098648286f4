"""A stored session read whole, for who answers from it later."""

from __future__ import annotations

from pathlib import Path

from workbench.domain.events import Event
from workbench.domain.samples import Measurement
from workbench.store.session_file import open_session


def read_whole(path: Path) -> tuple[tuple[Event, ...], tuple[Measurement, ...]]:
    """All events and all measurements of a session file or a bundle. Blocks."""
    session = open_session(path, read_only=True)
    try:
        return session.everything()
    finally:
        session.shut()
