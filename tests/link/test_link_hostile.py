"""Bytes of strangers at the engine's socket, seeded: no trace, no hang, and it answers on."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import suppress

from workbench.domain.lines import hello_line, line
from workbench.domain.messages import PROTOCOL_VERSION, EngineStatus, GetStatus, Hello
from workbench.engine.process import serving
from workbench.link.socket import SocketClient
from workbench.paths import Workspace

HELLO = hello_line(Hello(PROTOCOL_VERSION, "0", "stranger", "observer"))
REQUESTS = (
    {"type": "GetStatus"},
    {"type": "ListSessions"},
    {"type": "ListEvents", "session": "demo-real", "after": 0, "limit": 3},
    {"type": "ViewSession", "session": "demo-real", "until": 4},
    {"type": "GetTimeLine", "session": "demo-real"},
    {"type": "Subscribe", "session": "nothing"},
    {"type": "CompareSessions", "first": "x", "second": "y"},
)


def mutated(said: bytes, dice: random.Random) -> bytes:
    """A few bytes changed, left out, doubled or put in."""
    text = bytearray(said)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(text) + 1)
        piece = bytes(dice.choices(b'{}[]",:\\\n\0\xff0189eE-+nul', k=dice.randint(1, 4)))
        match dice.randrange(4):
            case 0:
                text[at : at + len(piece)] = piece
            case 1:
                del text[at : at + dice.randint(1, 20)]
            case 2:
                text[at:at] = text[at : at + dice.randint(1, 40)]
            case _:
                text[at:at] = piece
    return bytes(text)


async def test_hostile_bytes_leave_no_trace(workspace: Workspace, full_length: bool) -> None:
    dice, count, answered = random.Random(17), 20_000 if full_length else 300, 0
    async with serving(workspace):
        for _ in range(count):
            asked = b"".join(
                line({"id": n, "request": dice.choice(REQUESTS)}) for n in range(dice.randint(1, 3))
            )
            said = HELLO + mutated(asked, dice) if dice.random() < 0.7 else mutated(HELLO, dice)
            reader, writer = await asyncio.open_unix_connection(workspace.socket, limit=1 << 24)
            writer.write(said)
            writer.write_eof()
            async with asyncio.timeout(60):
                with suppress(ConnectionError):
                    answered += bool(await reader.read())
            writer.close()
        client = await SocketClient.connect(workspace.socket, "after")
        status = await client.ask(GetStatus())
        assert isinstance(status, EngineStatus)
        await client.close()
    logged = workspace.log.read_text()
    assert "Traceback" not in logged
    assert "unexpected" not in logged
    sys.stdout.write(f"{count} hostile conversations, {answered} answered, 0 traces, 0 hangs\n")
