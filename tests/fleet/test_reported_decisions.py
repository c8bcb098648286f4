"""Decisions on samples of a session that a fleet completes: folded with it, or not at all."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from workbench.domain.errors import SessionError
from workbench.domain.events import Event, Noted
from workbench.domain.fleet_requests import BeginFleetSession
from workbench.domain.messages import ListEvents
from workbench.fleet.fleet_reports import FleetReports
from workbench.fleet.fleet_standing import FleetError


class OneIsBroken:
    """An engine that answers for these pages of events, and for no other."""

    def __init__(self, pages: int) -> None:
        self.pages = pages

    async def ask(self, request: Any) -> Any:
        if not isinstance(request, ListEvents):
            return None
        if self.pages <= 0:
            raise SessionError("cannot be read: input/output error")
        self.pages -= 1
        seq = request.after + 1
        events = (Event(seq, 0.0, "s", Noted("info", "said")),)
        return SimpleNamespace(events=events if seq < 3 else ())

    @asynccontextmanager
    async def follow(self, session: str) -> AsyncIterator[Any]:
        raise SessionError("is gone", where=session)
        yield

    async def close(self) -> None:
        pass


def reports(pages: int) -> FleetReports:
    async def connect() -> Any:
        return OneIsBroken(pages)

    nothing: Any = None
    return FleetReports(connect, BeginFleetSession("s", nothing, nothing, nothing, os.getpid()))


async def test_a_session_is_not_folded_without_what_was_decided_on_its_samples() -> None:
    for pages in (0, 1, 2):
        told = reports(pages)
        with pytest.raises(FleetError, match="decided on its samples cannot be read: cannot") as e:
            await told.told()
        assert "the same command with --session s goes on" in str(e.value)
        await told.close()
    whole = reports(3)
    assert [event.seq for event in await whole.told()] == [1, 2]
    await whole.close()
