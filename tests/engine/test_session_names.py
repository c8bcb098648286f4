"""A session or a copy is never called like a recording that ships: it would hide it."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.domain.errors import SessionTaken
from workbench.domain.housekeeping import DuplicateSession, RenameSession
from workbench.domain.messages import ImportBundle, ListSessions, RunCampaign, SessionList
from workbench.engine.core import Engine
from workbench.link.local import LocalClient
from workbench.paths import Workspace, shipped

RECORDING = "chain-real"


async def test_the_name_of_a_recording_is_refused(tmp_path: Path) -> None:
    engine = Engine(Workspace(tmp_path))
    await engine.start()
    try:
        client = LocalClient(engine, "ann")
        await client.ask(DuplicateSession("demo-real", "copy"))
        for request in (
            RunCampaign("demo", RECORDING, "sim"),
            DuplicateSession("demo-real", RECORDING),
            RenameSession("copy", RECORDING),
            ImportBundle(str(shipped("sessions") / RECORDING)),
        ):
            with pytest.raises(SessionTaken, match="recording that comes with the workbench"):
                await client.ask(request)
        reply = await client.ask(ListSessions())
        assert isinstance(reply, SessionList)
        kinds = {s.name: s.kind for s in reply.sessions}
        assert kinds[RECORDING] == "bundle"
        assert kinds["copy"] == "session"
    finally:
        await engine.close()
