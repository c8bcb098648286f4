"""The socket as strangers, old clients and dying engines meet it."""

from __future__ import annotations

import asyncio
import json
import math
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from workbench.domain.errors import EngineError
from workbench.domain.lines import REQUEST_LIMIT, hello_line, line
from workbench.domain.messages import (
    PROTOCOL_VERSION,
    EngineStatus,
    GetStatus,
    Hello,
    ListSessions,
    Request,
    StopEngine,
)
from workbench.engine import server
from workbench.engine.core import SCREENS_SHARE, Engine
from workbench.engine.process import serve, serving
from workbench.engine.server import Server
from workbench.link.socket import SocketClient
from workbench.locks import HostLock, own
from workbench.paths import Workspace, measuring_lock


@pytest_asyncio.fixture
async def engine(workspace: Workspace) -> AsyncIterator[Engine]:
    async with serving(workspace) as engine:
        yield engine


async def say(engine: Engine, *lines: bytes) -> list[dict[str, Any]]:
    """Everything that the engine answers until it hangs up."""
    reader, writer = await asyncio.open_unix_connection(engine.workspace.socket)
    try:
        writer.write(b"".join(lines))
        await writer.drain()
        async with asyncio.timeout(30):
            answer = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    return [json.loads(text) for text in answer.splitlines()]


HELLO = hello_line(Hello(PROTOCOL_VERSION, "0", "test"))


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\xff\xfe\n",
        b"[]\n",
        b'{"hello": 7}\n',
        HELLO + b"not json\n",
        HELLO + b'{"id": 1}\n',
        HELLO + b'{"id": "x", "request": {"type": "GetStatus"}}\n',
        HELLO + b'{"id": 1, "request": {"type": "Nothing"}}\n',
        HELLO + b'{"id": 1, "request": {"type": "Done"}}\n',
        HELLO + b'{"id": 1, "request": {"type": "PauseRun"}}\n',
    ],
)
async def test_nonsense_is_answered_by_a_sentence_and_the_line_is_closed(
    engine: Engine, nonsense: bytes
) -> None:
    last = (await say(engine, nonsense))[-1]
    assert last["id"] == 0
    assert last["reply"]["type"] == "Failed"
    assert last["reply"]["error"] == "EngineError"
    assert "docs/link.md" in last["reply"]["remedy"]
    client = await SocketClient.connect(engine.workspace.socket, "after")
    assert isinstance(await client.ask(GetStatus()), EngineStatus)
    await client.close()


async def test_an_endless_line_is_cut_off(engine: Engine) -> None:
    last = (await say(engine, HELLO, b"x" * (2 * REQUEST_LIMIT + 10)))[-1]
    assert "longer than" in last["reply"]["what"]


async def test_another_protocol_is_refused_with_both_versions(engine: Engine) -> None:
    answers = await say(engine, hello_line(Hello(PROTOCOL_VERSION + 1, "9.9", "future")))
    assert answers[0]["hello"]["protocol"] == PROTOCOL_VERSION
    what = answers[1]["reply"]["what"]
    assert f"protocol {PROTOCOL_VERSION} " in what
    assert f"protocol {PROTOCOL_VERSION + 1} (workbench 9.9)" in what


async def test_a_client_refuses_an_engine_of_another_protocol(workspace: Workspace) -> None:
    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(hello_line(Hello(PROTOCOL_VERSION + 1, "9.9", "engine")))
        await reader.readline()
        writer.close()

    async with await asyncio.start_unix_server(old, workspace.socket):
        with pytest.raises(EngineError, match="the engine speaks protocol"):
            await SocketClient.connect(workspace.socket, "me")


async def test_a_client_that_loses_its_engine_gets_a_sentence(workspace: Workspace) -> None:
    async def dying(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(hello_line(Hello(PROTOCOL_VERSION, "0", "engine")))
        await reader.readline()
        await reader.readline()
        writer.close()

    async with await asyncio.start_unix_server(dying, workspace.socket):
        client = await SocketClient.connect(workspace.socket, "me")
        with pytest.raises(EngineError, match="the engine is gone"):
            await client.ask(GetStatus())
        with pytest.raises(EngineError, match="the engine is gone"):
            await client.ask(GetStatus())
        await client.close()


async def test_requests_overlap_on_one_connection(engine: Engine) -> None:
    client = await SocketClient.connect(engine.workspace.socket, "me")
    replies = await asyncio.gather(
        *(client.ask(GetStatus() if i % 2 else ListSessions()) for i in range(100))
    )
    assert [type(r).__name__ for r in replies] == ["SessionList", "EngineStatus"] * 50
    assert replies[1].clients == 1  # type: ignore[union-attr]
    await client.close()


async def test_an_answer_that_json_cannot_say_is_a_sentence_and_the_link_stays(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await SocketClient.connect(engine.workspace.socket, "me")
    status = await client.ask(GetStatus())
    assert isinstance(status, EngineStatus)

    async def strange(request: Request, who: Hello) -> Any:
        return replace(status, loop_lag_p99_ms=math.nan)

    with monkeypatch.context() as patched:
        patched.setattr(engine, "handle", strange)
        with pytest.raises(EngineError, match="answer cannot be sent: JSON cannot say nan"):
            await client.ask(GetStatus())
    assert await client.ask(GetStatus())
    await client.close()


async def test_the_socket_is_for_its_user_alone(engine: Engine) -> None:
    assert stat.S_IMODE(engine.workspace.socket.stat().st_mode) == 0o600


async def test_a_second_engine_is_refused_and_a_stale_socket_removed(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.engine.core.PATIENCE_S", 0.0)
    workspace.socket.touch()  # left by an engine that was killed
    async with serving(workspace) as engine:
        other = Engine(workspace)
        with pytest.raises(EngineError, match=f"held by process {engine.status().pid}"):
            await other.start()
        with pytest.raises(EngineError, match="listens here already"):
            await Server(engine).open()
    assert not workspace.socket.exists()


async def test_what_lies_in_the_sockets_place_is_named(workspace: Workspace) -> None:
    workspace.socket.mkdir(parents=True)
    with pytest.raises(EngineError, match="place cannot be removed"):
        async with serving(workspace):
            """It does not come so far."""


async def test_an_engine_without_campaign_and_client_ends(workspace: Workspace) -> None:
    async with asyncio.timeout(30):
        serving_it = asyncio.create_task(serve(workspace, linger_s=0.3))
        client = await connected(workspace)
        await asyncio.sleep(0.6)
        assert not serving_it.done(), "somebody is there"
        await client.close()
        await serving_it
    await nobody_serves(workspace)


async def connected(workspace: Workspace) -> SocketClient:
    """As soon as an engine listens."""
    while not workspace.socket.exists():  # noqa: ASYNC110 - files ring no bell
        await asyncio.sleep(0)
    return await SocketClient.connect(workspace.socket, "me")


async def nobody_serves(workspace: Workspace) -> None:
    """The engine's socket is gone, and another one may hold the workspace."""
    assert not workspace.socket.exists()
    with pytest.raises(OSError, match="No such file"):
        await asyncio.open_unix_connection(workspace.socket)
    async with serving(workspace):
        assert workspace.socket.exists()


async def test_stop_engine_ends_it(workspace: Workspace) -> None:
    async with asyncio.timeout(30):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(serve(workspace, linger_s=1000))
            client = await connected(workspace)
            await client.ask(StopEngine())
            await client.close()
    await nobody_serves(workspace)


def test_lines_are_lines() -> None:
    assert line({"id": 1, "text": "a\nb"}).count(b"\n") == 1


async def test_while_somebody_measures_on_the_host_clients_share_what_is_left_for_drawing(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "WATCH_S", 0.01)
    async with serving(workspace):
        ann = await SocketClient.connect(workspace.socket, "ann")
        bob = await SocketClient.connect(workspace.socket, "bob")
        await ann.ask(GetStatus())
        assert ann.share is None
        lock = HostLock(measuring_lock())
        assert lock.take(own(Path("another workspace"), "real"))
        await told(ann, SCREENS_SHARE / 2)
        await bob.close()
        await told(ann, SCREENS_SHARE)
        lock.free()
        await told(ann, None)
        await ann.close()


async def told(client: SocketClient, share: float | None) -> None:
    async with asyncio.timeout(30):
        while client.share != share:  # noqa: ASYNC110 - a client tells nobody
            await asyncio.sleep(0.01)
