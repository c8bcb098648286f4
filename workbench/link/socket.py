"""A client of an engine in another process, over its unix socket."""

from __future__ import annotations

import asyncio
import errno
import itertools
import math
import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from workbench import __version__
from workbench.domain import codec
from workbench.domain.errors import EngineError, UsageError, WorkbenchError
from workbench.domain.events import Event, Tick
from workbench.domain.lines import (
    REPLY_LIMIT,
    hello_line,
    hello_of,
    line,
    refuse_other_protocol,
    said,
)
from workbench.domain.messages import (
    PROTOCOL_VERSION,
    Cancel,
    Failed,
    Hello,
    Request,
    Role,
    Subscribe,
    Unsubscribe,
)
from workbench.link.client import Feed, reply_to
from workbench.link.cooperative_yield import Pieces

R = TypeVar("R")

HELLO_TIMEOUT_S = 10.0
"""How long an engine may take to greet; one that is stopped or stuck never does."""


class SocketClient:
    """One connection; requests may overlap, and any number of sessions be followed."""

    def __init__(
        self,
        path: Path,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        engine: Hello,
    ) -> None:
        self.engine = engine
        """Who answers."""
        self.share: float | None = None
        """What part of a core we may draw with now; None: as much as we like."""
        self._path = path
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._feeds: dict[int, _Changes] = {}
        self._lost: EngineError | None = None
        self._closing = False
        self._listening = asyncio.create_task(self._listen(), name="link")

    @classmethod
    async def connect(cls, path: Path, identity: str, role: Role = "operator") -> SocketClient:
        """Meet the engine that listens at `path`.

        Raises `OSError` where nobody listens, or an engine that is dying hangs up before it
        greets; `EngineError` where the engine refuses.
        """
        reader, writer = await asyncio.open_unix_connection(path, limit=REPLY_LIMIT)
        mine = Hello(PROTOCOL_VERSION, __version__, identity, role)
        try:
            writer.write(hello_line(mine))
            await writer.drain()
        except BaseException:
            writer.close()
            raise
        return await cls._met(path, reader, writer)

    @classmethod
    async def adopt(cls, link: socket.socket) -> SocketClient:
        """Go on with a connection on which somebody else has said the hello (`link.fd_passing`).

        Raises as `connect`.
        """
        try:
            path = Path(link.getpeername())
        except OSError:
            link.close()
            raise
        reader, writer = await asyncio.open_unix_connection(sock=link, limit=REPLY_LIMIT)
        return await cls._met(path, reader, writer)

    @classmethod
    async def _met(
        cls, path: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> SocketClient:
        """A client, once the engine has answered the hello."""
        try:
            async with asyncio.timeout(HELLO_TIMEOUT_S):
                if not (greeting := await reader.readline()):
                    raise ConnectionResetError(errno.ECONNRESET, "it hung up before it greeted")
                engine = hello_of(greeting)
            refuse_other_protocol(engine, Hello(PROTOCOL_VERSION, __version__, ""))
        except TimeoutError:
            writer.close()
            raise EngineError(
                f"it does not answer within {HELLO_TIMEOUT_S:g} s", where=str(path)
            ) from None
        except BaseException:
            writer.close()
            raise
        return cls(path, reader, writer, engine)

    @property
    def role(self) -> Role:
        """As what the engine let us in."""
        return self.engine.role

    @property
    def person(self) -> str:
        return self.engine.details.get("you", "")

    @property
    def remote(self) -> bool:
        """Whether we came through a server: the engine takes no path then, no editor is here."""
        return "door" in self.engine.details

    @property
    def lost(self) -> bool:
        """Whether the engine is gone, so that nothing is answered any more."""
        return self._lost is not None

    async def ask(self, request: Request[R]) -> R:
        """The reply to a request. A `Failed` reply is raised as the error it stands for."""
        return await self._ask(next(self._ids), request)

    @asynccontextmanager
    async def follow(self, session: str, most_behind: float = math.inf) -> AsyncIterator[Feed]:
        """Follow a session, live or finished; its feed fails for who lags by more events."""
        number = next(self._ids)
        changes = self._feeds[number] = _Changes(session, most_behind)
        try:
            viewed = await self._ask(number, Subscribe(session))
            yield Feed(viewed.view, changes)
        finally:
            del self._feeds[number]
            others = any(feed.session == session for feed in self._feeds.values())
            if self._lost is None and not others:
                with suppress(WorkbenchError):  # an engine that is gone follows nobody
                    await self.ask(Unsubscribe(session))

    async def close(self) -> None:
        self._closing = True
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _ask(self, number: int, request: Request[R]) -> R:
        if self._lost is not None:
            raise self._lost
        try:
            asked = line({"id": number, "request": codec.message_to_plain(request)})
        except ValueError as error:
            remedy = "Give figures that are finite"
            raise UsageError(f"cannot be asked: {error}", remedy=remedy) from None
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self._writer.write(asked)
            await self._writer.drain()
            reply = await future
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        except (ConnectionError, BrokenPipeError):
            future.cancel()
            if not future.cancelled():
                future.exception()  # `_listen` was told first; nobody else asks for it
            raise self._gone() from None
        finally:
            self._waiting.pop(number, None)
        return reply_to(request, reply)

    def _cancel(self, number: int) -> None:
        """Nobody waits for that answer any more; nor for the one to this."""
        if self._lost is None and not self._writer.is_closing():
            request = codec.message_to_plain(Cancel(number))
            self._writer.write(line({"id": next(self._ids), "request": request}))

    async def _listen(self) -> None:
        """Sort what comes in to who waits for it, until the engine goes."""
        try:
            pieces = Pieces()
            while text := await self._reader.readline():  # which waits for nothing if it is there
                self._sort(text)
                await pieces.give_way()
        except (OSError, ValueError, WorkbenchError) as error:
            why = error.what if isinstance(error, WorkbenchError) else error
            self._lost = EngineError(
                f"the engine's answer cannot be read: {why}", where=str(self._path)
            )
        finally:
            self._lost = self._lost or self._gone()
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(self._lost)
            for feed in self._feeds.values():
                feed.end(None if self._closing else self._lost)

    def _sort(self, text: bytes) -> None:
        now = said(text)
        if now.share is not msgspec.UNSET:
            self.share = now.share
        elif now.feed:
            feed = self._feeds.get(now.feed)
            if feed is None:  # closed here, while this was under way
                return
            if now.event:
                feed.add(codec.event_of(now.event))
            elif now.tick:
                feed.add(codec.message_of(now.tick))
            else:
                end = None if bytes(now.end) == b"null" else codec.message_of(now.end)
                feed.end(codec.error_of(end) if isinstance(end, Failed) else None)
        else:
            self._replied(now.id, codec.message_of(now.reply))

    def _replied(self, number: int, reply: object) -> None:
        future = self._waiting.get(number)
        if future is not None and not future.done():
            future.set_result(reply)
        elif isinstance(reply, Failed) and number == 0:
            raise codec.error_of(reply)

    def _gone(self) -> EngineError:
        return EngineError(
            "the engine is gone; what it announced is stored",
            where=str(self._path),
            remedy="Start again with `workbench`, or go on with `workbench resume NAME`",
        )


class _Changes:
    """What a feed has yet to yield: every event, and of the ticks the latest of each kind."""

    def __init__(self, session: str, most_behind: float) -> None:
        self.session = session
        self._most_behind = most_behind
        self._events: deque[Event] = deque()
        self._ticks: dict[type, Tick] = {}
        self._changed = asyncio.Event()
        self._ended = False
        self._error: WorkbenchError | None = None

    def add(self, change: Event | Tick) -> None:
        if self._ended:
            return
        if isinstance(change, Event):
            self._events.append(change)
            if len(self._events) > self._most_behind:
                self._events.clear()
                self.end(EngineError(f"the reader is more than {self._most_behind} events behind"))
        else:
            self._ticks[type(change)] = change
        self._changed.set()

    def end(self, error: WorkbenchError | None) -> None:
        """No more will come: as it should be, or because of `error`."""
        if not self._ended:
            self._ended, self._error = True, error
            self._changed.set()

    def __aiter__(self) -> _Changes:
        return self

    async def __anext__(self) -> Event | Tick:
        while True:
            if self._events:
                return self._events.popleft()
            if self._ticks:
                return self._ticks.pop(next(iter(self._ticks)))
            if self._error is not None:
                raise self._error
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
