"""What clients may take of the engine: bytes that they do not read, work that they leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from driving import Workbench
from session_making import EPOCH, append_all, created

from workbench.domain.errors import EngineError
from workbench.domain.events import Noted
from workbench.domain.lab import ReapStrays, RunDoctor
from workbench.domain.lines import hello_line, line
from workbench.domain.messages import (
    PROTOCOL_VERSION,
    EngineStatus,
    GetStatus,
    Hello,
    Request,
)
from workbench.domain.questions import ChainQuery, CompareChain, RetrainChain, ScoreModels
from workbench.engine import connections, server
from workbench.engine.core import Engine
from workbench.engine.server import Server
from workbench.link.socket import SocketClient
from workbench.paths import Workspace
from workbench.store.session_file import SessionFile

HELLO = hello_line(Hello(PROTOCOL_VERSION, "0", "greedy"))
PAGE = {"type": "ListEvents", "session": "long", "after": 0, "limit": 500}
ENGINE_MB = 300


def asked(number: int, request: dict[str, object] = PAGE) -> bytes:
    return line({"id": number, "request": request})


async def long_session(workspace: Workspace, events: int, letters: int) -> None:
    workspace.sessions.mkdir(parents=True, exist_ok=True)
    file = await SessionFile.create(workspace.sessions / "long.duckdb", created(), at=EPOCH)
    notes = (Noted("info", f"{number} " + "x" * letters) for number in range(events))
    await append_all(file, notes)
    await file.close()


@pytest_asyncio.fixture
async def door(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    monkeypatch.setattr(server, "WATCH_S", 0.01)
    engine = Engine(workspace)
    await engine.start()
    door = Server(engine)
    await door.open()
    yield door
    await door.close()
    await engine.close()


class Greedy:
    """Asks, and does not read."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(path))
        self._socket.setblocking(False)

    def say(self, text: bytes) -> int:
        """How much of it the engine's side took."""
        try:
            return self._socket.send(text)
        except BlockingIOError:
            return 0

    def rest(self) -> bytes | None:
        """What there is to read up to the end; None where there is no end."""
        found = b""
        try:
            while more := self._socket.recv(1 << 20):
                found += more
        except BlockingIOError:
            return None
        except ConnectionError:
            pass
        return found

    def close(self) -> None:
        self._socket.close()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what is waited for rings no bell
            await asyncio.sleep(0.002)


async def test_who_asks_and_does_not_read_holds_one_page_and_is_dropped(
    door: Server, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    await long_session(workspace, 400, 1000)  # a page of 400 kB: twice what a socket takes
    everybody = [Greedy(workspace.socket) for _ in range(6)]
    for greedy in everybody:
        greedy.say(HELLO + b"".join(asked(number) for number in range(1, 100)))
    clients = door.clients

    def stuck() -> bool:
        return all(c.looks > 5 for c in clients.connections.values())

    await until(lambda: len(clients.connections) == 6 and stuck())
    assert all(c.held < 550_000 for c in clients.connections.values())  # 32 replies: 13 MB
    assert clients.most_held < 6 * 550_000

    honest = await SocketClient.connect(workspace.socket, "honest")
    assert isinstance(await honest.ask(GetStatus()), EngineStatus)
    monkeypatch.setattr(connections, "SLOW_LOOKS", 10)
    await until(lambda: clients.dropped == 6)
    await until(lambda: len(clients.connections) == 1)
    assert clients.cancelled == 6 * connections.AT_ONCE, "what they had asked is not answered"
    assert isinstance(await honest.ask(GetStatus()), EngineStatus)
    await honest.close()
    for greedy in everybody:
        assert greedy.rest() is not None, "they are hung up on"
        greedy.close()
    said = [json.loads(text) for text in workspace.log.read_text().splitlines()]
    dropped = [entry for entry in said if entry["event"] == "client dropped"]
    assert len(dropped) == 6
    assert dropped[0]["why"] == "it does not read what it asked for"
    assert dropped[0]["identity"] == "greedy"


async def test_all_clients_together_hold_no_more_than_is_allowed(
    door: Server, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_HELD", 1 << 20)
    await long_session(workspace, 400, 1000)
    honest = await SocketClient.connect(workspace.socket, "honest")
    everybody = [Greedy(workspace.socket) for _ in range(20)]
    for greedy in everybody:
        greedy.say(HELLO + asked(1) + asked(2))
    await until(lambda: door.clients.dropped >= 14)
    assert door.clients.most_held < 1 << 20
    assert isinstance(await honest.ask(GetStatus()), EngineStatus)
    for greedy in everybody:
        greedy.close()
    await honest.close()


async def test_of_a_client_that_says_much_little_is_read(
    door: Server, workspace: Workspace
) -> None:
    await long_session(workspace, 400, 1000)
    greedy = Greedy(workspace.socket)
    waiting, much = HELLO + b"".join(asked(number) for number in range(1, 30_000)), 2_400_000
    assert len(waiting) > much
    (connection,) = await only(door)

    def stuck() -> bool:
        nonlocal waiting
        taken = greedy.say(waiting)
        waiting = waiting[taken:]
        return not taken and connection.looks > 5

    await until(stuck)
    assert len(waiting) > much / 2, "the rest is still the client's"
    assert connection.held < 550_000
    greedy.close()
    await until(lambda: not door.clients.connections)
    assert 0 < door.clients.cancelled <= connections.AT_ONCE


async def only(door: Server) -> list[connections.Connection]:
    await until(lambda: door.clients.connections)
    return list(door.clients.connections.values())


def endless(started: list[Request], ended: list[Request]) -> Callable[..., Awaitable[Any]]:
    async def handle(request: Request, who: Hello) -> Any:
        started.append(request)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(request)
        raise AssertionError

    return handle


async def test_queued_and_running_work_ends_when_its_client_hangs_up(
    door: Server, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Request] = []
    ended: list[Request] = []
    monkeypatch.setattr(door._engine, "handle", endless(started, ended))
    greedy = Greedy(workspace.socket)
    # More than is taken at once: nobody reads on, so that the end itself is not seen there.
    greedy.say(HELLO + b"".join(asked(n, {"type": "RunDoctor"}) for n in range(1, 200)))
    (connection,) = await only(door)
    await until(lambda: len(connection._asked) == connections.AT_ONCE)
    await until(lambda: len(started) == connections.COMPUTED_AT_ONCE)
    greedy.close()
    await until(lambda: not door.clients.connections)
    assert started == ended == [RunDoctor()] * connections.COMPUTED_AT_ONCE
    assert door.clients.cancelled == connections.AT_ONCE
    assert door._engine.clients == 0


async def test_what_changes_something_goes_on_though_who_asked_has_left(
    door: Server, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Request] = []
    ended: list[Request] = []
    monkeypatch.setattr(door._engine, "handle", endless(started, ended))
    greedy = Greedy(workspace.socket)
    greedy.say(HELLO + asked(1, {"type": "ReapStrays"}) + asked(2, {"type": "RunDoctor"}))
    await until(lambda: len(started) == 2)
    greedy.close()
    await until(lambda: ended)
    assert ended == [RunDoctor()]
    assert door._engine.clients == 1, "an engine stays for it"
    assert ReapStrays() in started


async def test_one_question_is_cancelled_and_no_other(
    door: Server, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Request] = []
    ended: list[Request] = []
    monkeypatch.setattr(door._engine, "handle", endless(started, ended))
    mine, others = [await SocketClient.connect(workspace.socket, who) for who in ("me", "other")]
    compare, score = CompareChain(ChainQuery("s", "a-b")), ScoreModels("s")
    measured = RetrainChain("s", steps=3)
    asking = [
        asyncio.ensure_future(client.ask(question))
        for client, question in (
            (mine, compare), (mine, compare), (mine, score), (mine, measured), (others, score)
        )
    ]  # fmt: skip
    await until(lambda: len(started) == 5)
    asking[1].cancel()
    asking[3].cancel()
    await until(lambda: ended)
    assert ended == [compare], "of two that are alike, one; and none that is measured"
    asking[2].cancel()
    await until(lambda: len(ended) == 2)
    assert ended == [compare, score]
    assert not asking[0].done()
    assert not asking[4].done(), "that is somebody else's"
    await mine.close()
    await others.close()
    await asyncio.gather(*asking, return_exceptions=True)


async def test_who_has_no_more_to_ask_may_still_read(door: Server, workspace: Workspace) -> None:
    reader, writer = await asyncio.open_unix_connection(workspace.socket)
    writer.write(HELLO + asked(1, {"type": "GetStatus"}))
    writer.write_eof()
    lines = (await reader.read()).splitlines()
    assert json.loads(lines[-1])["reply"]["type"] == "EngineStatus"
    writer.close()


async def test_who_has_no_more_to_ask_still_follows(door: Server, workspace: Workspace) -> None:
    await long_session(workspace, 1, 1)
    reader, writer = await asyncio.open_unix_connection(workspace.socket)
    writer.write(HELLO + asked(1, {"type": "Subscribe", "session": "long"}))
    writer.write_eof()
    await until(lambda: any(c._feeds for c in door.clients.connections.values()))
    door._engine.library.end_feeds()
    lines = (await asyncio.wait_for(reader.read(), 30.0)).splitlines()
    assert json.loads(lines[-1]) == {"feed": 1, "session": "long", "end": None}
    writer.close()


async def test_who_only_follows_and_hangs_up_is_seen(door: Server, workspace: Workspace) -> None:
    await long_session(workspace, 1, 1)
    _reader, writer = await asyncio.open_unix_connection(workspace.socket)
    writer.write(HELLO + asked(1, {"type": "Subscribe", "session": "long"}))
    writer.write_eof()
    await until(lambda: any(c._feeds for c in door.clients.connections.values()))
    writer.close()
    await until(lambda: not door.clients.connections)


async def test_one_client_more_than_there_is_room_for_is_told_so(
    door: Server, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MOST_CLIENTS", 2)
    first = await SocketClient.connect(workspace.socket, "first")
    second = await SocketClient.connect(workspace.socket, "second")
    third = await SocketClient.connect(workspace.socket, "third")
    with pytest.raises(EngineError, match="there are 2 clients already"):
        await third.ask(GetStatus())
    await third.close()
    await second.close()
    await until(lambda: len(door.clients.connections) == 1)
    fourth = await SocketClient.connect(workspace.socket, "fourth")
    assert await fourth.ask(GetStatus())
    for client in (first, fourth):
        await client.close()


async def test_a_connection_follows_a_bounded_number_of_sessions(
    door: Server, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_FEEDS", 3)
    await long_session(workspace, 3, 10)
    reader, writer = await asyncio.open_unix_connection(workspace.socket, limit=1 << 24)
    subscribe: dict[str, object] = {"type": "Subscribe", "session": "long"}
    writer.write(HELLO + b"".join(asked(number, subscribe) for number in range(1, 6)))
    replies: list[str] = []
    while len(replies) < 5:
        said = json.loads(await reader.readline())
        if "reply" in said:
            replies.append(said["reply"]["type"])
    assert replies == ["Viewed"] * 3 + ["Failed"] * 2
    writer.close()


async def test_five_hundred_who_do_not_read_leave_the_engine_small(
    workbench: Workbench, full_length: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the engine's process; all of them, and one with 2.4 MB of requests, with --accept."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(workbench.runtime))
    workspace = Workspace(workbench.root)
    await long_session(workspace, 500, 2000)
    process = workbench.start("engine", "serve")
    honest = await client_of(workspace)
    count = 500 if full_length else 20
    everybody = [Greedy(workspace.socket) for _ in range(count)]
    pipelined = HELLO + b"".join(asked(number) for number in range(1, 30_000))
    for greedy in everybody:
        greedy.say(HELLO + b"".join(asked(number) for number in range(1, 100)))
    one = Greedy(workspace.socket)
    most_mb = lag_ms = 0.0
    for _ in range(400 if full_length else 20):
        pipelined = pipelined[one.say(pipelined) :]
        status = await honest.ask(GetStatus())
        assert isinstance(status, EngineStatus)
        most_mb = max(most_mb, resident_mb(status.pid))
        lag_ms = max(lag_ms, status.loop_lag_p99_ms)
        await asyncio.sleep(0.05 if full_length else 0)
    sys.stdout.write(f"{count} clients: {most_mb:.0f} MB, loop lag p99 {lag_ms:.0f} ms\n")
    assert most_mb < ENGINE_MB
    for greedy in (*everybody, one):
        greedy.close()
    await honest.close()
    process.terminate()
    process.communicate(timeout=60)


async def client_of(workspace: Workspace) -> SocketClient:
    """Once the engine's process listens."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await SocketClient.connect(workspace.socket, "honest")
            except OSError:
                await asyncio.sleep(0.02)


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
