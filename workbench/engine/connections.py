"""One client at the engine's socket: its hello, its requests, the sessions that it follows.

What a client may hold of the engine is bounded, whatever it asks and whether or not it reads: few
requests are under way at once, the next line is read when one is done, a page is made when the last
one was taken, and one that takes nothing is dropped. What was asked ends when the client hangs up,
unless it changes something.
"""

from __future__ import annotations

import asyncio
import select
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext, suppress
from dataclasses import replace
from typing import Any, NamedTuple

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
from workbench.domain.messages import PROTOCOL_VERSION, Hello, Request
from workbench.engine.control_locks import person
from workbench.engine.core import Engine
from workbench.engine.handlers import HANDLERS
from workbench.engine.sessions.channel import Following
from workbench.log import logger

MOST_CLIENTS = 512
"""At the same time; each needs a file descriptor, and some memory."""
MOST_FEEDS = 64
"""Sessions that one connection follows at the same time."""
AT_ONCE = 32
"""Requests of one connection under way; the next waits in its socket."""
READ_AHEAD = 1 << 16
"""Bytes of a client that are read before it is their turn."""
COMPUTED_AT_ONCE = 4
"""Questions of one connection that are computed at the same time."""
PAGES_AT_ONCE = 2
"""Replies of many rows that are made at the same time, of all connections."""
MOST_HELD = 24 << 20
"""Bytes that all clients together may hold of the engine: sent and not taken, asked and not
answered. Beyond it the one that takes nothing and holds most is dropped."""
SLOW_LOOKS = 60
"""Looks of the server (one a second) at which a client has taken nothing of what is there for it;
then it is dropped. Not seconds: who was stopped with the engine has not been slow."""
HELLO_TIMEOUT_S = 10.0
GOODBYE_TIMEOUT_S = 2.0

log = logger("engine.server")


class Clients:
    """All connections, and what they share.

    Attributes
    ----------
    dropped : how many were hung up on since they took too much or nothing.
    cancelled : how many requests of clients that left were not answered.
    most_held : the most bytes that all held at a time.
    """

    def __init__(self) -> None:
        self.connections: dict[asyncio.Task[None], Connection] = {}
        self.pages = asyncio.Semaphore(PAGES_AT_ONCE)
        self.dropped = self.cancelled = self.most_held = 0

    def make_room(self) -> None:
        """Drop clients until all hold less than they may."""
        while (held := sum(c.held for c in self.connections.values())) > MOST_HELD:
            holders = [c for c in self.connections.values() if c.held > READ_AHEAD]
            most = max(holders, key=lambda c: (c.looks > 0, c.held), default=None)
            if most is None or (len(holders) == 1 and not most.looks):
                break  # one long answer that is being read
            most.drop(f"all clients together hold more than {MOST_HELD >> 20} MiB")
        self.most_held = max(self.most_held, held)

    def look_after(self, share: float | None) -> None:
        """Tell every client what it may draw with, and see who has left or does not read."""
        for connection in list(self.connections.values()):
            if connection.hung_up:
                connection.leave()
                continue
            connection.tell_share(share)
            connection.look()


class Connection:
    """One client, until it hangs up or is hung up on.

    Attributes
    ----------
    looks : how often it had taken nothing of what was there for it, in a row.
    """

    def __init__(
        self,
        engine: Engine,
        clients: Clients,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._engine = engine
        self._clients = clients
        self._reader = reader
        self._writer = writer
        self._writing = asyncio.Lock()
        self._paging = asyncio.Lock()
        self._computing = asyncio.Semaphore(COMPUTED_AT_ONCE)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._reading: asyncio.Task[None] | None = None
        self._asked: dict[asyncio.Task[None], _Asked] = {}
        """The requests under way that end when nobody waits for them."""
        self._feeds: dict[asyncio.Task[None], str] = {}
        self._who = Hello(0, "", "")
        self._greeted = False
        self._share: float | None = None
        self._line = self._unsent = self._sent = self._taken = 0
        self.looks = 0

    async def serve(self) -> None:
        """Greet, then answer until the client hangs up or talks nonsense."""
        try:
            await self._greet()
            self._engine.admission.control_locks.came(self._who)
            try:
                await self._answer_requests()
            finally:
                self._engine.admission.control_locks.left(self._who)
        except EngineError as error:
            await self._refuse(error)
        except BaseExceptionGroup as group:
            found = group.subgroup(EngineError)
            if found is None:
                raise
            await self._refuse(_first(found))

    async def refuse(self, why: EngineError) -> None:
        """Greet one for whom there is no room, and say so."""
        try:
            await self._greet()
        except EngineError as error:
            why = error
        await self._refuse(why)

    # ------------------------------------------------------------------ what it holds

    @property
    def held(self) -> int:
        """Bytes that wait for it, or that it asked with."""
        if self._writer.transport.is_closing():
            return 0
        waiting: int = self._writer.transport.get_write_buffer_size()
        return waiting + self._unsent + self._line + sum(a.size for a in self._asked.values())

    @property
    def hung_up(self) -> bool:
        """Whether its end is closed; who only has no more to ask may still read."""
        poll = select.poll()
        number = self._writer.get_extra_info("socket").fileno()
        if number < 0:
            return True
        poll.register(number, 0)
        return any(found & select.POLLHUP for _, found in poll.poll(0))

    def _look_for_room(self) -> None:
        if self.held > READ_AHEAD:  # who holds less is not who fills the memory
            self._clients.make_room()

    def look(self) -> None:
        """Drop it if it has taken nothing for too many looks, while something was there for it."""
        waiting = self._writer.transport.get_write_buffer_size()
        taken = self._sent - waiting
        self.looks = self.looks + 1 if waiting and taken == self._taken else 0
        self._taken = taken
        if self.looks >= SLOW_LOOKS:
            self.drop("it does not read what it asked for")

    def drop(self, why: str) -> None:
        """Hang up on a client. It cannot be told: what was sent before is still to be read."""
        log.warning("client dropped", why=why, identity=self._who.identity, held_bytes=self.held)
        self._clients.dropped += 1
        self._writer.transport.abort()
        self.leave()

    def leave(self) -> None:
        """End what the client asked for, now that nobody waits for it."""
        for task in (self._reading, *self._feeds):
            if task is not None:
                task.cancel()
        if ended := self._cancel(list(self._asked)):
            log.info("client left", identity=self._who.identity, requests_cancelled=ended)

    def _cancel(self, tasks: list[asyncio.Task[None]]) -> int:
        tasks = [task for task in tasks if not task.cancelling()]
        for task in tasks:
            task.cancel()
        self._clients.cancelled += len(tasks)
        return len(tasks)

    def tell_share(self, share: float | None) -> None:
        """What part of a core the client may draw with."""
        if self._greeted and share != self._share and not self._writer.is_closing():
            self._share = share
            text = line({"share": share})
            self._sent += len(text)
            self._writer.write(text)  # a few bytes: nothing to wait for

    # ------------------------------------------------------------------ what comes in

    async def _greet(self) -> None:
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                self._who = hello_of(await self._read_line())
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

    async def _read_line(self) -> bytes:
        """The next line; what is there of it at the end. Raises `EngineError` if it is too long."""
        parts: list[bytes] = []
        try:
            while True:
                try:
                    parts.append(await self._reader.readuntil())
                    break
                except asyncio.LimitOverrunError as error:  # the reader keeps less than a long line
                    parts.append(await self._reader.readexactly(error.consumed))
                except asyncio.IncompleteReadError as error:
                    parts.append(error.partial)
                    break
                self._line = sum(map(len, parts))
                if self._line > REQUEST_LIMIT:
                    break
                self._look_for_room()
        finally:
            self._line = 0
        text = b"".join(parts)
        if len(text) > REQUEST_LIMIT:
            what = f"a line is longer than {REQUEST_LIMIT} bytes"
            raise EngineError(what, remedy="See docs/link.md")
        return text

    async def _answer_requests(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            self._reading = tasks.create_task(self._read_requests(tasks))

    async def _read_requests(self, tasks: asyncio.TaskGroup) -> None:
        try:
            while text := await self._read_line():
                self._line = len(text)  # while it waits for its turn
                await self._slots.acquire()
                self._line = 0
                number, request = request_of(text)
                task = tasks.create_task(self._reply(number, request, tasks))
                task.add_done_callback(self._answered)
                if not HANDLERS.of(request).goes_on(request):
                    self._asked[task] = _Asked(number, len(text))
                await asyncio.sleep(0)  # hundreds of clients with much to ask hold nobody up
        except ConnectionError:
            return  # it left without reading the rest; what it commanded goes on
        finally:
            self._line = 0
            if self.hung_up:  # who only has no more to ask still follows
                self.leave()

    def _answered(self, task: asyncio.Task[None]) -> None:
        """Here and not at the task's own end: one that is cancelled at once never begins."""
        self._asked.pop(task, None)
        self._slots.release()

    async def _refuse(self, error: BaseException) -> None:
        """The last word to a peer that does not speak our language."""
        assert isinstance(error, WorkbenchError)
        log.info("connection refused", error=str(error), identity=self._who.identity)
        with suppress(ConnectionError, TimeoutError):
            # Hanging up on unread lines would reset the connection, and the sentence be lost.
            async with asyncio.timeout(GOODBYE_TIMEOUT_S):
                await self._answer(0, codec.failed(error))
                self._writer.write_eof()
                while await self._reader.read(READ_AHEAD):
                    pass

    # ------------------------------------------------------------------ what goes out

    async def _reply(self, number: int, request: Request[Any], tasks: asyncio.TaskGroup) -> None:
        with suppress(ConnectionError):  # the reader sees it, too, and ends the connection
            async with self._turn_of(request):
                if isinstance(request, messages.Subscribe):
                    await self._subscribe(number, request.session, tasks)
                    return
                if isinstance(request, messages.Unsubscribe):
                    for feed, session in list(self._feeds.items()):
                        if session == request.session:
                            feed.cancel()
                if isinstance(request, messages.Cancel):
                    self._cancel([t for t, a in self._asked.items() if a.number == request.asked])
                if HANDLERS.of(request).turn == "page":
                    await self._write(await self._page(number, request))
                    return
                await self._answer(number, await self._engine.handle(request, self._who))

    def _turn_of(self, request: Request[Any]) -> AbstractAsyncContextManager[Any]:
        """Held while a request is answered, so that a connection has few of the costly ones."""
        handler = HANDLERS.of(request)
        if handler.turn == "page":
            return self._paging
        free = handler.turn == "at hand" or handler.goes_on(request)
        return nullcontext() if free else self._computing

    async def _page(self, number: int, request: Request[Any]) -> bytes:
        async with self._clients.pages:
            return await _page_encoded(number, await self._engine.handle(request, self._who))

    async def _view(self, number: int, following: Following) -> bytes:
        async with self._clients.pages:
            return await _page_encoded(number, messages.Viewed(following.view))

    async def _subscribe(self, number: int, session: str, tasks: asyncio.TaskGroup) -> None:
        async with AsyncExitStack() as stack:
            try:
                if len(self._feeds) >= MOST_FEEDS:
                    raise EngineError(
                        f"a connection follows at most {MOST_FEEDS} sessions",
                        remedy="Unsubscribe from others first",
                    )
                following = await stack.enter_async_context(self._engine.follow(session))
            except WorkbenchError as error:
                await self._answer(number, codec.failed(error))
                return
            await self._write(await self._view(number, following))
            if self.hung_up:
                return  # it left before its feed began
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

    async def _answer(self, number: int, reply: object) -> None:
        await self._write(_encoded(number, reply))

    async def _send(self, plain: dict[str, Any]) -> None:
        await self._write(line(plain))

    async def _write(self, text: bytes) -> None:
        self._unsent += len(text)
        self._look_for_room()
        try:
            await self._writing.acquire()
        finally:
            self._unsent -= len(text)
        try:
            self._sent += len(text)
            self._writer.write(text)
            del text  # the transport has a copy of what the socket did not take
            await self._writer.drain()
        finally:
            self._writing.release()


class _Asked(NamedTuple):
    number: int
    size: int
    """Bytes of its line."""


async def _page_encoded(number: int, reply: object) -> bytes:
    """In a thread: it may take more than 20 ms."""
    return await asyncio.to_thread(_encoded, number, reply)


def _encoded(number: int, reply: object) -> bytes:
    try:
        return _line_of(number, reply)
    except ValueError as error:  # a figure that a part of somebody's made: this answer's fault
        failure = EngineError(f"the answer cannot be sent: {error}")
        return _line_of(number, codec.failed(failure))


def _line_of(number: int, reply: object) -> bytes:
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
    found: BaseException = group.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
