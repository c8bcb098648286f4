"""How a client takes in much at once without holding up what else there is to do."""

from __future__ import annotations

import asyncio
import itertools
import socket
from pathlib import Path

import pytest

from workbench.domain import codec
from workbench.domain.events import Event, Noted
from workbench.domain.lines import line
from workbench.domain.messages import PROTOCOL_VERSION, Hello, Viewed
from workbench.domain.projection import SessionView
from workbench.link import socket as link
from workbench.link.cooperative_yield import PIECE_S, Pieces
from workbench.link.socket import SocketClient

MANY = 3000


async def test_a_piece_that_is_over_gives_everything_else_a_turn() -> None:
    now = 0.0
    piece = Pieces(lambda: now)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await asyncio.sleep(0)
    before = turns
    for _ in range(5):
        now += PIECE_S / 10
        await piece.give_way()
    assert turns == before, "a short piece is not interrupted"
    now += PIECE_S
    await piece.give_way()
    assert turns == before + 1
    await piece.give_way()
    assert turns == before + 1, "the next piece has only begun"
    task.cancel()


async def test_events_that_come_at_once_all_arrive_in_order_and_others_have_turns_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(link, "Pieces", lambda: Pieces(lambda: next(ticks) * PIECE_S / 8))
    here, there = socket.socketpair()
    told = [Event(n, float(n), "s", Noted("info", f"line {n}")) for n in range(1, MANY + 1)]
    feed = b"".join(
        line({"feed": 1, "session": "s", "event": codec.event_to_plain(event)}) for event in told
    )
    reader, writer = await asyncio.open_connection(sock=there)
    mine = await asyncio.open_unix_connection(sock=here)
    client = SocketClient(tmp_path, *mine, Hello(PROTOCOL_VERSION, "1", "engine"))
    turns, at_end = 0, 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def engine() -> None:
        await reader.readline()
        viewed = codec.message_to_plain(Viewed(SessionView("s")))
        writer.write(line({"id": 1, "reply": viewed}) + feed)

    tasks = [asyncio.create_task(other()), asyncio.create_task(engine())]
    seen: list[Event] = []
    async with asyncio.timeout(60), client.follow("s") as followed:
        begun = turns
        async for change in followed.changes:
            assert isinstance(change, Event)
            seen.append(change)
            if len(seen) == MANY:
                at_end = turns
                break
        assert seen == told
        # A turn for every piece of eight lines, whatever part of them lay ready in the buffer.
        assert at_end - begun > MANY / 8 / 4
        client._lost = client._gone()  # no engine is there to be told that nobody follows
    for task in tasks:
        task.cancel()
    writer.close()
    await client.close()


async def test_an_engine_that_talks_nonsense_ends_the_connection_with_a_sentence(
    tmp_path: Path,
) -> None:
    here, there = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=there)
    mine = await asyncio.open_unix_connection(sock=here)
    client = SocketClient(tmp_path, *mine, Hello(PROTOCOL_VERSION, "1", "engine"))
    writer.write(b"{nonsense\n")
    with pytest.raises(Exception, match="cannot be read"):
        async with asyncio.timeout(60), client.follow("s"):
            pass
    writer.close()
    await client.close()
    del reader
