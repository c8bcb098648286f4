"""Session files renamed, copied, thrown away and brought back, over the real socket."""

from __future__ import annotations

import pytest
from session_making import closed_session

from workbench.domain.errors import (
    EngineError,
    SessionError,
    SessionTaken,
    SessionUnknown,
    UsageError,
)
from workbench.domain.housekeeping import (
    DeleteSession,
    DuplicateSession,
    RenameSession,
    RestoreSession,
    Trashed,
)
from workbench.domain.messages import (
    ListSessions,
    RunAccepted,
    SessionList,
    Viewed,
    ViewSession,
)
from workbench.engine.core import Engine
from workbench.link.local import LocalClient
from workbench.link.socket import SocketClient

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def make(engine: Engine, name: str) -> None:
    await closed_session(engine.library.file_of(name))


async def names(client: SocketClient) -> set[str]:
    reply = await client.ask(ListSessions())
    assert isinstance(reply, SessionList)
    return {s.name for s in reply.sessions if s.kind == "session"}


async def samples(client: SocketClient, name: str) -> int:
    reply = await client.ask(ViewSession(name))
    assert isinstance(reply, Viewed)
    assert reply.view.session == name
    return reply.view.samples_taken


async def test_a_renamed_session_is_the_same_under_its_new_name(
    engine: Engine, client: SocketClient
) -> None:
    await make(engine, "first")
    taken = await samples(client, "first")
    assert taken > 0
    assert await client.ask(RenameSession("first", "second")) == RunAccepted("second")
    assert await samples(client, "second") == taken
    assert "first" not in await names(client)
    await make(engine, "third")
    with pytest.raises(SessionTaken, match="'third' already"):
        await client.ask(RenameSession("second", "third"))
    with pytest.raises(UsageError, match="cannot be the name"):
        await client.ask(RenameSession("second", "../second"))
    assert {"second", "third"} <= await names(client)


async def test_who_follows_a_session_that_is_renamed_is_told(
    engine: Engine, client: SocketClient
) -> None:
    await make(engine, "watched")
    async with client.follow("watched") as feed:
        await client.ask(RenameSession("watched", "moved"))
        with pytest.raises(SessionError, match="renamed or deleted"):
            await anext(feed.changes)
    assert await samples(client, "moved") > 0


async def test_a_copy_lives_on_without_its_original(engine: Engine, client: SocketClient) -> None:
    await make(engine, "origin")
    taken = await samples(client, "origin")
    assert await client.ask(DuplicateSession("origin")) == RunAccepted("origin-1")
    assert await client.ask(DuplicateSession("origin", "copy")) == RunAccepted("copy")
    await client.ask(DeleteSession("origin"))
    assert await samples(client, "origin-1") == await samples(client, "copy") == taken


async def test_a_deleted_session_comes_back_whole(engine: Engine, client: SocketClient) -> None:
    await make(engine, "lost")
    taken = await samples(client, "lost")
    trashed = await client.ask(DeleteSession("lost"))
    assert isinstance(trashed, Trashed)
    assert "lost" not in await names(client)
    with pytest.raises(SessionUnknown):
        await client.ask(ViewSession("lost"))
    await make(engine, "lost")  # its name is free, and is taken meanwhile
    assert await client.ask(RestoreSession(trashed.ticket)) == RunAccepted("lost-1")
    assert await samples(client, "lost-1") == taken
    with pytest.raises(SessionUnknown, match="the trash holds no"):
        await client.ask(RestoreSession(trashed.ticket))
    for ticket in ("../lost@1", "lost@../1", "@1", ""):
        with pytest.raises((UsageError, SessionUnknown)):
            await client.ask(RestoreSession(ticket))


async def test_what_is_measured_or_in_use_stays(engine: Engine, client: SocketClient) -> None:
    await make(engine, "busy")
    async with engine.library.borrow("busy") as channel:
        for request in (
            DeleteSession("busy"),
            RenameSession("busy", "x"),
            DuplicateSession("busy"),
        ):
            with pytest.raises(SessionError, match="is in use"):
                await client.ask(request)
        channel.live = True
        with pytest.raises(SessionError, match="is being measured"):
            await client.ask(DeleteSession("busy"))
        channel.live = False
    assert "busy" in await names(client)


async def test_an_observer_moves_nothing(engine: Engine, client: SocketClient) -> None:
    await make(engine, "seen")
    observer = LocalClient(engine, "guest", role="observer")
    for request in (DeleteSession("seen"), RenameSession("seen", "x"), DuplicateSession("seen")):
        with pytest.raises(EngineError, match="observers may watch"):
            await observer.ask(request)
    assert "seen" in await names(client)


async def test_a_file_that_came_meanwhile_is_never_replaced(
    engine: Engine, client: SocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(engine, "mine")
    await make(engine, "theirs")

    async def free(wanted: str, campaign: str) -> str:
        """As it was a moment ago."""
        del campaign
        return wanted

    monkeypatch.setattr(engine.library, "new_name", free)
    for wanted in (RenameSession("mine", "theirs"), DuplicateSession("mine", "theirs")):
        with pytest.raises(SessionError, match="File exists"):
            await client.ask(wanted)
    assert {"mine", "theirs"} <= await names(client)
