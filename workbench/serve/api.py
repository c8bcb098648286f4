"""`serve --http`: the requests of the link over HTTP, for who has a token; events as a stream.

Who asks gets a link of their own for each request, on which the server has said the hello with the
token's name and role: what they may do is the engine's to say, as for those who come over SSH.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, cast

from aiohttp import web

from workbench import __version__
from workbench.audit import AuditLog
from workbench.domain import codec
from workbench.domain.errors import (
    WRONG_USE,
    EngineError,
    NameTaken,
    NotAllowed,
    PluginUnknown,
    SessionBusy,
    SessionTaken,
    SessionUnknown,
    UsageError,
    WorkbenchError,
)
from workbench.domain.events import Event, Tick
from workbench.domain.messages import PROTOCOL_VERSION, Hello, Subscribe, Viewed
from workbench.domain.projection import SessionView
from workbench.link.paging import events_between
from workbench.link.socket import SocketClient
from workbench.log import logger
from workbench.own_names import BY_ADDRESS, Handler, OwnNames
from workbench.paths import Workspace
from workbench.serve.links import Links
from workbench.serve.listening import cannot_listen
from workbench.serve.openapi import Answerable, document, operations
from workbench.serve.tokens import Token, Tokens

MOST_CONNECTIONS = 128
"""Beyond them a connection is hung up on."""
MOST_ASKED = 16
"""Requests that are answered at the same time; beyond them one is told to come again."""
MOST_STREAMS, MOST_STREAMS_OF_ONE = 32, 8
LONGEST_BODY = 1 << 18
SLOW_S = 20.0
"""For a request to come in whole, and for a piece of an answer to be taken."""
WHOLE_S = 120.0
"""For an answer to be taken whole: a view of a long session is many megabytes."""
IDLE_S = 15.0
"""A connection without a request is closed; a stream without an event says that it is there."""
END_S = 4.0
MOST_BEHIND = 1000
"""Events that wait for a stream's reader, however little at a time it takes; beyond, it ends."""
PIECE = 1 << 16
"""Bytes of a stream that have to be taken in `SLOW_S`."""
LISTS_NAMES = f"{BY_ADDRESS}, or list that name (`workbench serve --http ... --name`)"
STATUSES: tuple[tuple[type[WorkbenchError], int], ...] = (
    (NotAllowed, 403),
    (SessionUnknown, 404),
    (PluginUnknown, 404),
    (SessionTaken, 409),
    (NameTaken, 409),
    (SessionBusy, 409),
    (EngineError, 409),  # not now; where it is gone it is 503
)
TOKEN: web.RequestKey[Token] = web.RequestKey("token", Token)

log = logger("http")


class _Refused(WorkbenchError):
    """A request that no engine sees."""

    def __init__(self, status: int, what: str, remedy: str | None = None) -> None:
        super().__init__(what, remedy=remedy)
        self.status = status


class ApiServer:
    """One port; each operation of it is a request of the link.

    Parameters
    ----------
    offers : what is answered.
    engine_up : sees to it that an engine serves the workspace's socket.
    names : by which it may be asked for, beside this host's own.
    """

    def __init__(
        self,
        workspace: Workspace,
        offers: Iterable[Answerable],
        engine_up: Callable[[], Awaitable[None]],
        names: Iterable[str] = (),
    ) -> None:
        self.workspace = workspace
        self.audit = AuditLog(workspace.audit)
        self.tokens = Tokens(workspace.tokens)
        self._links = Links(workspace.socket, engine_up)
        self._operations = operations(offers)
        self._document = codec.dumps(document(self._operations, __version__))
        self._names = OwnNames(names, self._tell_refused, LISTS_NAMES)
        self._asked = 0
        self._streams: Counter[str] = Counter()
        self._silent: set[Any] = set()  # connections on which nothing was asked yet
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._ending = asyncio.Event()

    # ------------------------------------------------------------------ life

    async def open(self, host: str, port: int) -> int:
        """Listen; returns the port. Raises `UsageError` if the address cannot be used."""
        app = web.Application(
            middlewares=[self._in_sentences, self._names.only, self._only_with_token],
            client_max_size=LONGEST_BODY,
        )
        app.router.add_get("/openapi.json", self._say_document)
        for operation in self._operations:
            answer = self._stream if operation.offer.kind is Subscribe else self._answer
            app.router.add_route(operation.method, operation.path, answer, name=operation.name)
        self._by_name = {operation.name: operation for operation in self._operations}
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=IDLE_S,
            shutdown_timeout=END_S,
            lingering_time=END_S,
        )
        await self._runner.setup()
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._connection, host, port
            )
        except (OSError, UnicodeError) as error:
            await self.close()
            raise cannot_listen(error, host, port, "Choose another address or port") from None
        for listener in self._listener.sockets:  # what is accepted there has it, too
            # Of bytes that nobody takes, also after the server has closed the connection.
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SLOW_S * 1000))
        listening: int = self._listener.sockets[0].getsockname()[1]
        self.audit.write("listening", host=host, port=listening, door="http")
        return listening

    async def close(self) -> None:
        """End streams and connections; campaigns go on."""
        self._ending.set()
        if self._listener is not None:
            self._listener.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _connection(self) -> asyncio.BaseProtocol:
        """The protocol of a connection: there are so many, and each has to say something soon."""
        assert self._runner is not None
        assert self._runner.server is not None
        if len(self._runner.server.connections) >= MOST_CONNECTIONS:
            return _HangUp()
        protocol = self._runner.server()
        self._silent.add(protocol)
        asyncio.get_running_loop().call_later(SLOW_S, self._hang_up_on_silent, protocol)
        return protocol

    def _hang_up_on_silent(self, protocol: Any) -> None:
        if protocol in self._silent:
            self._silent.discard(protocol)
            protocol.force_close()

    # ------------------------------------------------------------------ who comes

    def _tell_refused(self, request: web.Request) -> None:
        said = {name: request.headers.get(name.title(), "") for name in ("host", "origin")}
        self.audit.write("request_refused", door="http", address=request.remote or "", **said)

    @web.middleware
    async def _in_sentences(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Whatever goes wrong is a `Failed`; what nobody expected is in the log, and not told."""
        self._silent.discard(request.protocol)
        headers, why = {}, WorkbenchError("")
        response: web.StreamResponse | None = None
        try:
            response = await handler(request)
        except web.HTTPException as error:
            why = _Refused(error.status, (error.text or error.reason).strip(". \n"))
            if "Allow" in error.headers:
                headers["Allow"] = error.headers["Allow"]
        except WorkbenchError as error:
            why = error
        except TimeoutError:
            why = _Refused(408, f"it did not come in whole within {SLOW_S:g} s")
        except ConnectionError:
            raise
        except Exception as error:  # one request must not take the others down
            log.error("a request over HTTP broke", exc_info=error)
            why = _Refused(500, f"unexpected {type(error).__name__}; see the log")
        if response is None:
            plain = codec.message_to_plain(codec.failed(why))
            status = _status_of(why)
            if status == 401:
                headers["WWW-Authenticate"] = "Bearer"
            response = _json(codec.dumps(plain), status, headers)
        if not response.prepared:
            await _give(request, response)
        return response

    @web.middleware
    async def _only_with_token(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """All but the document is for who has a token, in a header: an address is in histories."""
        if request.path == "/openapi.json":
            return await handler(request)
        said = request.headers.getall("Authorization", [])
        scheme, _, given = said[0].partition(" ") if len(said) == 1 else ("", "", "")
        token = self.tokens.whose(given.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            self._tell_refused(request)
            raise _Refused(
                401,
                "there is no token with it, or one that opens nothing",
                "Send `Authorization: Bearer TOKEN` with one of `workbench token add NAME`",
            )
        request[TOKEN] = token
        return await handler(request)

    @contextlib.asynccontextmanager
    async def _link(self, request: web.Request) -> AsyncIterator[SocketClient]:
        """A link in the name of who asks."""
        token = request[TOKEN]
        details = {"door": "http", "address": request.remote or ""}
        hello = Hello(PROTOCOL_VERSION, __version__, token.name, token.role, details=details)
        try:
            client = await self._links.client(hello)
        except EngineError as error:
            raise _Refused(503, error.what, error.remedy) from None
        try:
            yield client
        except EngineError as error:
            if client.lost:
                raise _Refused(503, error.what, error.remedy) from None
            raise
        finally:
            await client.close()

    # ------------------------------------------------------------------ what is asked

    async def _say_document(self, _: web.Request) -> web.Response:
        return _json(self._document, 200)

    async def _answer(self, request: web.Request) -> web.Response:
        with self._room():
            asked = await self._request_of(request)
            async with self._link(request) as client:
                reply = await client.ask(asked)
            text = await asyncio.to_thread(lambda: codec.dumps(codec.message_to_plain(reply)))
            response = _json(text, 200)
            await _give(request, response)  # here, so that who does not read has a place
            return response

    async def _request_of(self, request: web.Request) -> Any:
        """The request of the link that was sent. Raises `UsageError`, `_Refused`."""
        operation = self._by_name[request.path.rpartition("/")[2]]
        if operation.method == "GET":
            return operation.request_of_query(request.query.items())
        if request.query_string:
            raise UsageError("fields stand in the body", where=operation.path)
        async with asyncio.timeout(SLOW_S):
            body = await request.read()
        if not body:
            return operation.request({})
        if request.content_type != "application/json":  # which no form of another site can send
            raise _Refused(415, "the body is no application/json")
        try:
            plain = codec.loads(body)
        except WorkbenchError as error:
            raise UsageError(error.what, where=operation.path) from None
        if not isinstance(plain, dict):
            raise UsageError("the body is no JSON object", where=operation.path)
        return operation.request(plain)

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        if self._asked >= MOST_ASKED:
            raise _Refused(503, f"{MOST_ASKED} requests are being answered", "Come again later")
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1

    # ------------------------------------------------------------------ streams

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Server-sent events of a session, until its reader or the engine is gone."""
        name = request[TOKEN].name
        asked = cast(Subscribe, await self._request_of(request))
        after = _last_event(request.headers.get("Last-Event-ID"))
        if self._streams.total() >= MOST_STREAMS or self._streams[name] >= MOST_STREAMS_OF_ONE:
            raise _Refused(503, "there are as many streams as may be", "End one of them")
        self._streams[name] += 1
        try:
            async with (
                self._link(request) as client,
                client.follow(asked.session, MOST_BEHIND) as feed,
            ):
                response = web.StreamResponse(headers=HEADERS)
                response.content_type = "text/event-stream"
                response.charset = "utf-8"
                with _hanging_up(request):
                    await response.prepare(request)
                    try:
                        if after is None:
                            await _send(response, _message("Viewed", Viewed(feed.view)))
                        else:
                            await _send_past(response, client, feed.view, after)
                        await self._send_changes(response, feed.changes)
                        await _send(response, b"event: End\ndata: null\n\n")
                    except WorkbenchError as error:  # such as an engine that went away
                        await _send(response, _message("Failed", codec.failed(error)))
                return response
        finally:
            self._streams[name] -= 1

    async def _send_changes(
        self, response: web.StreamResponse, changes: AsyncIterator[Event | Tick]
    ) -> None:
        ending = asyncio.create_task(self._ending.wait())
        coming: asyncio.Task[Any] | None = None
        try:
            while not ending.done():
                coming = coming or asyncio.ensure_future(anext(changes, None))
                await asyncio.wait(
                    (coming, ending), timeout=IDLE_S, return_when=asyncio.FIRST_COMPLETED
                )
                if not coming.done():
                    await _send(response, b": nothing new\n\n")
                    continue
                change, coming = coming.result(), None
                if change is None:
                    break
                is_event = isinstance(change, Event)
                text = _event(change) if is_event else _message(type(change).__name__, change)
                await _send(response, text)
        finally:
            ending.cancel()
            if coming is not None:
                coming.cancel()


class _HangUp(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()


HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def _json(text: bytes, status: int, more: dict[str, str] | None = None) -> web.Response:
    headers = HEADERS | (more or {})
    return web.Response(body=text, status=status, content_type="application/json", headers=headers)


def _status_of(error: WorkbenchError) -> int:
    if isinstance(error, _Refused):
        return error.status
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return status
    if error.exit_code == WRONG_USE:
        return 400
    return 422 if type(error).exit_code == WorkbenchError.exit_code else 502


def _last_event(said: str | None) -> int | None:
    if said is None or not said.strip():
        return None
    if not (said.isascii() and said.isdecimal() and len(said) < 19):
        raise UsageError("is no event's number", where="Last-Event-ID")
    return int(said)


def _event(event: Event) -> bytes:
    name = type(event.fact).__name__.encode()
    data = codec.dumps(codec.event_to_plain(event))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, name, data)


def _message(name: str, message: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (
        name.encode(),
        codec.dumps(codec.message_to_plain(message)),
    )


async def _send_past(
    response: web.StreamResponse, client: SocketClient, view: SessionView, after: int
) -> None:
    """What happened between the event that was read last and the view."""
    async for event in events_between(client, view.session, after, view.seq):
        await _send(response, _event(event))


async def _give(request: web.Request, response: web.StreamResponse) -> None:
    """Send an answer whole, to whoever it is."""
    with _hanging_up(request):
        async with asyncio.timeout(WHOLE_S):
            await response.prepare(request)
            await response.write_eof()


async def _send(response: web.StreamResponse, text: bytes) -> None:
    for begin in range(0, len(text), PIECE):
        async with asyncio.timeout(SLOW_S):
            await response.write(text[begin : begin + PIECE])


@contextlib.contextmanager
def _hanging_up(request: web.Request) -> Iterator[None]:
    """Who does not take what is sent is hung up on; what is not sent yet goes with that."""
    try:
        yield
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the reader is too slow") from None
