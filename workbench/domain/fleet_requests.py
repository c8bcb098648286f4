"""Requests of the command that runs a campaign over a fleet: what others are to see of it.

The hosts measure into sessions of their own. Until these are folded into one, that one holds what
is planned and how the hosts stand; screens follow it as any session.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.domain.events import RunFinished, SessionCreated
from workbench.domain.fleets import FleetSeen
from workbench.domain.requests import Command, Done
from workbench.domain.sessions import Plan


@dataclass(frozen=True)
class BeginFleetSession(Command[Done]):
    """Make the session that a campaign over a fleet ends in, or go on with it where it was cut off.

    Reply: `Done`. Raises `SessionTaken` where one of that name is anything else.
    """

    session: str
    created: SessionCreated
    plan: Plan
    seen: FleetSeen
    pid: int
    """The process that measures: where that is gone, the session is interrupted."""


@dataclass(frozen=True)
class ReportFleet(Command[Done]):
    """How the hosts stand, and what was said of them since. Reply: `Done`."""

    session: str
    seen: FleetSeen | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EndFleetSession(Command[Done]):
    """Nothing is measured any more. Reply: `Done`.

    With `folded`, the path of a session file, that takes the session's place; who follows it is
    told by `SessionReplaced`, and follows what lies there then.
    """

    session: str
    finished: RunFinished | None = None
    folded: str = ""
