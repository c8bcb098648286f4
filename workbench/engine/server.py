"""The engine's unix socket: one JSON object per line (domain/lines.py, docs/link.md)."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any

from workbench import __version__
from workbench.domain import codec, messages
from workbench.domain.errors import EngineError, WorkbenchError
from workbench.domain.events import Event
from workbench.domain.lines import (
    REQUEST_LIMIT,
    hello_line,
    hello_of,
    line,
    refuse_other_protocol,
    request_of,
)
from workbench.domain.messages import PROTOCOL_VERSION, Hello, Reply, Request
from workbench.engine.core import Engine
from workbench.engine.sessions.channel import Following
from workbench.engine.wheels import person
from workbench.log import logger

AT_ONCE = 32
"""Requests of one connection under way; the next waits in its socket."""
HELLO_TIMEOUT_S = 10.0
GOODBYE_TIMEOUT_S = 2.0
SHARING_S = 1.0
"""How often it is looked at who shares what the host can spare for drawing."""

LARGE = messages.Viewed | messages.EventPage | messages.SamplePage
"""Replies that may take more than 20 ms to encode: done in a thread."""

log = logger("engine.server")


class Server:
    """Listens at the workspace's socket for as long as it is open."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], Connection] = {}
        self._sharing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin to listen. Raises `EngineError` if somebody else does at that path."""
        path = self._engine.workspace.socket
        if path.exists():
            if _answers(str(path)):
                raise EngineError(
                    "another engine listens here already",
                    where=str(path),
                    remedy="End it with `workbench engine stop`",
                )
            try:
                path.unlink()  # its engine died; we hold the workspace's lock
            except OSError as error:
                raise EngineError(
                    f"what lies in the socket's place cannot be removed: {error.strerror}",
                    where=str(path),
                    remedy="Move it away",
                ) from None
        self._server = await asyncio.start_unix_server(
            self._connected, path, limit=REQUEST_LIMIT, start_serving=False
        )
        path.chmod(0o600)  # nobody can connect before: it does not listen yet
        await self._server.start_serving()
        self._sharing = asyncio.create_task(self._share_out(), name="share")

    async def close(self) -> None:
        """Stop listening and hang up."""
        if self._server is None:
            return
        if self._sharing is not None:
            self._sharing.cancel()
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._server = None
        self._engine.workspace.socket.unlink(missing_ok=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = self._connections[task] = Connection(self._engine, reader, writer)
        self._engine.clients += 1
        try:
            await connection.serve()
        except (ConnectionError, asyncio.CancelledError):
            return  # the client is gone, or we are going: a normal end
        except Exception as error:  # one connection must not take the engine down
            log.error("connection broke", exc_info=error)
        finally:
            self._engine.clients -= 1
            del self._connections[task]
            writer.close()

    async def _share_out(self) -> None:
        """Tell every client what part of a core it may draw with, whenever that changes."""
        while True:
            share = self._engine.share
            for connection in self._connections.values():
                connection.tell_share(share)
            await asyncio.sleep(SHARING_S)


class Connection:
    """One client: its hello, its requests, the sessions that it follows."""

    def __init__(
        self, engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._engine = engine
        self._reader = reader
        self._writer = writer
        self._writing = asyncio.Lock()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._feeds: dict[asyncio.Task[None], str] = {}
        self._who = Hello(0, "", "")
        self._greeted = False
        self._share: float | None = None

    async def serve(self) -> None:
        """Greet, then answer until the client hangs up or talks nonsense."""
        try:
            await self._greet()
            self._engine.admission.wheels.came(self._who)
            try:
                await self._answer_requests()
            finally:
                self._engine.admission.wheels.left(self._who)
        except (EngineError, ValueError) as error:  # ValueError: the line is too long
            await self._refuse(error)
        except BaseExceptionGroup as group:
            found = group.subgroup((EngineError, ValueError))
            if found is None:
                raise
            await self._refuse(_first(found))

    async def _answer_requests(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            try:
                while text := await self._reader.readline():
                    await self._slots.acquire()
                    number, request = request_of(text)
                    tasks.create_task(self._reply(number, request, tasks))
            finally:
                for feed in self._feeds:
                    feed.cancel()

    async def _greet(self) -> None:
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                self._who = hello_of(await self._reader.readline())
        except TimeoutError:
            raise EngineError("no hello came", remedy="Say hello first (docs/link.md)") from None
        mine = Hello(
            PROTOCOL_VERSION,
            __version__,
            "engine",
            self._who.role,  # a screen learns here as whom it was let in
            str(self._engine.workspace.root),
            {**self._who.details, "you": person(self._who)},
        )
        await self._write(hello_line(mine))
        refuse_other_protocol(mine, self._who)
        self._greeted = True

    def tell_share(self, share: float | None) -> None:
        """What part of a core the client may draw with."""
        if self._greeted and share != self._share and not self._writer.is_closing():
            self._share = share
            self._writer.write(line({"share": share}))  # a few bytes: nothing to wait for

    async def _refuse(self, error: BaseException) -> None:
        """The last word to a peer that does not speak our language."""
        if not isinstance(error, WorkbenchError):
            error = EngineError(
                f"a line is longer than {REQUEST_LIMIT} bytes", remedy="See docs/link.md"
            )
        log.info("connection refused", error=str(error), identity=self._who.identity)
        with suppress(ConnectionError, TimeoutError):
            await self._answer(0, codec.failed(error))
            self._writer.write_eof()
            # Hanging up on unread lines would reset the connection, and the sentence be lost.
            async with asyncio.timeout(GOODBYE_TIMEOUT_S):
                while await self._reader.read(REQUEST_LIMIT):
                    pass

    async def _reply(self, number: int, request: Request, tasks: asyncio.TaskGroup) -> None:
        try:
            with suppress(ConnectionError):  # the reader sees it, too, and ends the connection
                if isinstance(request, messages.Subscribe):
                    await self._subscribe(number, request.session, tasks)
                    return
                if isinstance(request, messages.Unsubscribe):
                    for feed, session in list(self._feeds.items()):
                        if session == request.session:
                            feed.cancel()
                await self._answer(number, await self._engine.handle(request, self._who))
        finally:
            self._slots.release()

    async def _subscribe(self, number: int, session: str, tasks: asyncio.TaskGroup) -> None:
        async with AsyncExitStack() as stack:
            try:
                following = await stack.enter_async_context(self._engine.follow(session))
            except WorkbenchError as error:
                await self._answer(number, codec.failed(error))
                return
            await self._answer(number, messages.Viewed(following.view))
            task = tasks.create_task(
                self._feed(number, session, following, stack.pop_all()), name=f"feed {session}"
            )
            self._feeds[task] = session
            task.add_done_callback(self._feeds.pop)

    async def _feed(
        self, number: int, session: str, following: Following, stack: AsyncExitStack
    ) -> None:
        """Pass on every change. A reader that is slow holds up this task and nothing else."""
        head = {"feed": number, "session": session}
        async with stack:
            with suppress(ConnectionError):
                try:
                    async for change in following.changes:
                        if isinstance(change, Event):
                            await self._send(head | {"event": codec.event_to_plain(change)})
                        else:
                            await self._send(head | {"tick": codec.message_to_plain(change)})
                    await self._send(head | {"end": None})
                except WorkbenchError as error:
                    await self._send(head | {"end": codec.message_to_plain(codec.failed(error))})

    async def _answer(self, number: int, reply: Reply) -> None:
        try:
            if isinstance(reply, LARGE):
                text = await asyncio.to_thread(_line_of, number, reply)
            else:
                text = _line_of(number, reply)
        except ValueError as error:  # a figure that a part of somebody's made: this answer's fault
            failure = EngineError(f"the answer cannot be sent: {error}")
            text = _line_of(number, codec.failed(failure))
        await self._write(text)

    async def _send(self, plain: dict[str, Any]) -> None:
        await self._write(line(plain))

    async def _write(self, text: bytes) -> None:
        async with self._writing:
            self._writer.write(text)
            await self._writer.drain()


def _line_of(number: int, reply: Reply) -> bytes:
    """A reply as a line; a snapshot piece by piece, so that no piece holds the interpreter long."""
    if isinstance(reply, messages.Viewed):
        view = reply.view
        configurations = [codec.to_plain(configuration) for configuration in view.configurations]
        whole = messages.Viewed(replace(view, configurations=[]))
        plain = codec.message_to_plain(whole)
        plain["view"]["configurations"] = configurations
    else:
        plain = codec.message_to_plain(reply)
    return line({"id": number, "reply": plain})


def _first(group: BaseExceptionGroup[Any]) -> BaseException:
    found = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True
