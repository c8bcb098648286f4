"""Requests that move session files about: rename, copy, throw away, bring back."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.domain.requests import Command, RunAccepted

RESCUE = "workbench rescue"
"""The command for `RescueSession`, as a run says it that waits for one."""


@dataclass(frozen=True)
class Trashed:
    session: str
    ticket: str
    """What `RestoreSession` is given; it stays good until somebody empties the trash by hand."""


@dataclass(frozen=True)
class RenameSession(Command[RunAccepted]):
    """Give a session another name; who follows it is told. Reply: `RunAccepted` with that name."""

    session: str
    name: str


@dataclass(frozen=True)
class DuplicateSession(Command[RunAccepted]):
    """Copy a session, or a recording, under another name. Reply: `RunAccepted` with that name."""

    session: str
    name: str | None = None
    """None: its name and a counter."""


@dataclass(frozen=True)
class DeleteSession(Command[Trashed]):
    """Move a session to the workspace's trash, from which `RestoreSession` brings it back.

    Reply: `Trashed`. One that is being measured is refused.
    """

    session: str


@dataclass(frozen=True)
class RestoreSession(Command[RunAccepted]):
    """Bring a deleted session back. Reply: `RunAccepted` with its name.

    Where that name was given to another one meanwhile, it gets a counter.
    """

    ticket: str


@dataclass(frozen=True)
class RescueSession(Command[RunAccepted]):
    """Write a session again whose file was replaced or removed while it was measured; its run goes
    on with what is written. Reply: `RunAccepted`.
    """

    session: str
    folder: str | None = None
    """Absolute path; None: where it lay."""
