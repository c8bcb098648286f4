"""What who asks over HTTP may take: bytes that it does not read, places, connections, time."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from session_making import EPOCH, append_all, created

from workbench.domain import codec
from workbench.domain.events import Event, Noted
from workbench.domain.lines import hello_line, line, request_of
from workbench.domain.messages import (
    PROTOCOL_VERSION,
    Done,
    EventPage,
    GetStatus,
    Hello,
    ListEvents,
    PauseRun,
    Subscribe,
    Unsubscribe,
    Viewed,
)
from workbench.domain.projection import SessionView
from workbench.engine.core import Engine
from workbench.engine.server import Server
from workbench.link.socket import SocketClient
from workbench.paths import Workspace
from workbench.serve import api
from workbench.serve.api import ApiServer
from workbench.serve.links import Links
from workbench.serve.openapi import Answerable
from workbench.store.session_file import SessionFile

OFFERS = [
    *(Answerable(kind, False, True) for kind in (GetStatus, ListEvents, Subscribe)),
    Answerable(PauseRun, True, False),
]
LETTERS, MANY = 10_000, 1000
PATIENCE_S = 30


def noted(seq: int) -> Event:
    return Event(seq, EPOCH + seq, "s", Noted("info", "x" * LETTERS))


@dataclass
class StandInEngine:
    """Speaks an engine's lines: a page of `page` long events, or `MANY` one after the other."""

    path: Path
    page: int = 400
    dies: int = 0
    """Links that it hangs up on before it greets."""
    listening: asyncio.Server | None = field(default=None, repr=False)

    async def open(self) -> None:
        self.path.unlink(missing_ok=True)
        self.listening = await asyncio.start_unix_server(self._met, self.path)

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert self.listening is not None
        if self.dies:
            self.dies -= 1
            self.listening.close()
            writer.transport.abort()
            return
        try:
            await reader.readline()
            writer.write(hello_line(Hello(PROTOCOL_VERSION, "0", "engine")))
            while text := await reader.readline():
                number, request = request_of(text)
                await self._answer(writer, number, request)
        except ConnectionError:
            return
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, number: int, request: object) -> None:
        if isinstance(request, ListEvents):
            page = EventPage(tuple(map(noted, range(1, self.page + 1))), self.page)
            reply = codec.message_to_plain(page)
            writer.write(line({"id": number, "reply": reply}))
        elif isinstance(request, Subscribe):
            reply = codec.message_to_plain(Viewed(SessionView("s")))
            writer.write(line({"id": number, "reply": reply}))
            for seq in range(1, MANY + 1):
                plain = codec.event_to_plain(noted(seq))
                writer.write(line({"feed": number, "session": "s", "event": plain}))
                await writer.drain()
        elif isinstance(request, Unsubscribe):
            writer.write(line({"id": number, "reply": codec.message_to_plain(Done())}))


class Asker:
    """A TCP client that takes little into its buffer, and reads when it is told to."""

    def __init__(self, port: int) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setblocking(False)

    def say(self, text: str) -> bool:
        """Whether the other side is there."""
        try:
            self._socket.send(text.encode())
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        return True

    async def read(self, most: int = 1 << 16) -> bytes:
        """Empty where it was hung up on."""
        try:
            return await asyncio.get_running_loop().sock_recv(self._socket, most)
        except ConnectionError:
            return b""

    async def rest(self) -> bytes:
        found = b""
        while more := await self.read():
            found += more
        return found

    def close(self) -> None:
        self._socket.close()


@dataclass
class HttpDoorway:
    """An `ApiServer` of this process, and who asks it."""

    server: ApiServer
    port: int
    token: str
    askers: list[Asker] = field(default_factory=list)

    def asker(self) -> Asker:
        self.askers.append(Asker(self.port))
        return self.askers[-1]

    def asking(self, what: str, *more: str) -> Asker:
        asker = self.asker()
        asker.say(self.words(what, *more))
        return asker

    def words(self, what: str, *more: str) -> str:
        own = (f"Host: 127.0.0.1:{self.port}", f"Authorization: Bearer {self.token}", *more)
        return "\r\n".join((f"{what} HTTP/1.1", *own, "", ""))

    @property
    def connections(self) -> int:
        runner: Any = self.server._runner
        return len(runner.server.connections)

    async def status_of(self, what: str) -> int:
        asker = self.asking(what)
        found = await asker.read()
        asker.close()
        return int(found.split()[1]) if found else 0


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    runtime = tempfile.mkdtemp(prefix="wb-")
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    found = Workspace(tmp_path)
    found.socket.parent.mkdir(parents=True, exist_ok=True)
    yield found
    shutil.rmtree(runtime)


@pytest.fixture
def engine(workspace: Workspace) -> StandInEngine:
    return StandInEngine(workspace.socket)


@pytest_asyncio.fixture
async def door(
    workspace: Workspace, engine: StandInEngine, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[HttpDoorway]:
    """Impatient in every way that a test does not set back."""
    monkeypatch.setattr(api, "SLOW_S", 0.4)
    monkeypatch.setattr(api, "WHOLE_S", 0.8)
    monkeypatch.setattr(api, "END_S", 0.2)
    monkeypatch.setattr(api, "IDLE_S", 0.3)
    server = ApiServer(workspace, OFFERS, engine.open)
    token = server.tokens.make("ann", "observer")
    door = HttpDoorway(server, await server.open("127.0.0.1", 0), token)
    yield door
    for asker in door.askers:
        asker.close()
    await server.close()
    if engine.listening is not None:
        engine.listening.close()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for rings no bell
            await asyncio.sleep(0.01)


SUBSCRIBE, PAGE = "GET /v1/Subscribe?session=s", "GET /v1/ListEvents?session=s"


async def test_a_stream_that_nobody_reads_ends_and_costs_the_engine_one_page(
    door: HttpDoorway, workspace: Workspace
) -> None:
    workspace.sessions.mkdir(parents=True)
    file = await SessionFile.create(workspace.sessions / "s.duckdb", created(), at=EPOCH)
    await append_all(file, [Noted("info", "x" * LETTERS)] * 300)
    await file.close()
    real = Engine(workspace)
    await real.start()
    served = Server(real)
    await served.open()
    try:
        askers = [door.asking(SUBSCRIBE, "Last-Event-ID: 0") for _ in range(8)]
        await until(lambda: door.server._streams["ann"] == 8)
        await until(lambda: not door.server._streams.total() and not served.clients.connections)
        await until(lambda: not door.connections)
        assert served.clients.most_held < 8 * 301 * (LETTERS + 500)  # a page of each, and not two
        assert len(await askers[0].rest()) < 3_000_000  # what was under way, and then the end
    finally:
        await served.close()
        await real.close()


async def test_a_reader_that_takes_a_little_at_a_time_is_not_waited_for(
    door: HttpDoorway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "SLOW_S", 60.0)
    monkeypatch.setattr(api, "MOST_BEHIND", 40)
    asker = door.asking(SUBSCRIBE)
    found = b""
    async with asyncio.timeout(PATIENCE_S):
        while more := await asker.read(8192):
            found += more
            await asyncio.sleep(0.002)
    assert b"more than 40 events behind" in found
    assert found.count(b"event: Noted") < MANY
    await until(lambda: not door.server._streams.total())


async def test_an_answer_that_is_not_read_has_a_place_for_a_time(
    door: HttpDoorway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "MOST_ASKED", 2)
    for _ in range(2):
        door.asking(PAGE)
    await until(lambda: door.server._asked == 2)
    assert await door.status_of(PAGE) == 503
    await until(lambda: not door.server._asked and not door.connections)
    assert await door.status_of(PAGE) == 200


async def test_a_stranger_who_takes_a_little_of_what_is_open_to_all_is_hung_up_on(
    door: HttpDoorway,
) -> None:
    stranger = door.asker()
    stranger.say(f"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n\r\n" * 400)
    await until(lambda: door.connections)
    async with asyncio.timeout(PATIENCE_S):
        while door.connections:
            await stranger.read(4096)
            await asyncio.sleep(0.05)


async def test_what_nobody_takes_is_given_up_by_the_kernel(
    door: HttpDoorway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "WHOLE_S", 600.0)
    door.asking(PAGE)
    await until(lambda: door.server._asked)
    await until(lambda: not door.connections)


@pytest.mark.parametrize("before", ["", "GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"])
async def test_headers_that_never_end_are_not_waited_for(door: HttpDoorway, before: str) -> None:
    asker = door.asker()
    asker.say(before)
    reading = asyncio.create_task(asker.rest())
    asker.say("GET /v1/GetStatus HTTP/1.1\r\n")
    async with asyncio.timeout(PATIENCE_S):
        while not reading.done():
            asker.say("X-More: 1\r\n")
            await asyncio.sleep(0.05)
    assert re.findall(rb"HTTP/1.1 (\d+)", await reading) == ([b"200"] if before else [])


async def test_a_body_that_never_ends_is_refused_in_a_sentence(door: HttpDoorway) -> None:
    asker = door.asking(
        "POST /v1/PauseRun", "Content-Type: application/json", "Content-Length: 1000"
    )
    reading = asyncio.create_task(asker.rest())
    async with asyncio.timeout(PATIENCE_S):
        while not reading.done():
            asker.say(" ")
            await asyncio.sleep(0.05)
    assert b"HTTP/1.1 408" in await reading
    assert b"did not come in whole" in await reading


async def test_beyond_so_many_connections_one_is_hung_up_on_until_another_goes(
    door: HttpDoorway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "MOST_CONNECTIONS", 3)
    monkeypatch.setattr(api, "SLOW_S", 60.0)
    idle = [door.asker() for _ in range(3)]
    await until(lambda: door.connections == 3)
    assert await door.status_of("GET /v1/Nothing") == 0
    idle[0].close()
    await until(lambda: door.connections == 2)
    assert await door.status_of("GET /v1/Nothing") == 404


async def test_an_engine_that_dies_as_it_is_asked_is_followed_by_another(
    door: HttpDoorway, engine: StandInEngine
) -> None:
    await engine.open()
    engine.dies = 1
    assert await door.status_of(PAGE) == 200


async def test_an_engine_that_always_dies_is_told_as_gone(
    door: HttpDoorway, engine: StandInEngine, workspace: Workspace
) -> None:
    engine.dies = 100
    assert await door.status_of(PAGE) == 503
    hello = Hello(PROTOCOL_VERSION, "0", "ann")
    with pytest.raises(OSError, match=r"hung up|reset"):
        await SocketClient.adopt(await Links(workspace.socket, engine.open).open(hello))
