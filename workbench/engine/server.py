"""The engine's unix socket: one JSON object per line (domain/lines.py, docs/link.md)."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, cast

from workbench.domain.errors import EngineError
from workbench.engine.connections import MOST_CLIENTS, READ_AHEAD, Clients, Connection
from workbench.engine.core import Engine
from workbench.log import logger

WATCH_S = 1.0
"""How often it is looked at who has left, who does not read, and who shares what the host can spare
for drawing."""

BEING_REFUSED = 64
"""Beyond the clients that there is room for, as many are told why; more are hung up on at once."""

log = logger("engine.server")


class Server:
    """Listens at the workspace's socket for as long as it is open."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._server: asyncio.Server | None = None
        self.clients = Clients()
        self._watching: asyncio.Task[None] | None = None

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
            self._connected, path, limit=READ_AHEAD, start_serving=False
        )
        path.chmod(0o600)  # nobody can connect before: it does not listen yet
        await self._server.start_serving()
        self._watching = asyncio.create_task(self._watch(), name="watch clients")

    async def close(self) -> None:
        """Stop listening and hang up."""
        if self._server is None:
            return
        if self._watching is not None:
            self._watching.cancel()
        self._server.close()
        connections = list(self.clients.connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        self._server = None
        self._engine.workspace.socket.unlink(missing_ok=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        # No public way to this: a socket may hand over four times what the reader is to keep.
        cast(Any, writer.transport).max_size = READ_AHEAD
        connections = self.clients.connections
        connection = Connection(self._engine, self.clients, reader, writer)
        full = len(connections) >= MOST_CLIENTS
        if len(connections) >= MOST_CLIENTS + BEING_REFUSED:
            writer.transport.abort()
            return
        connections[task] = connection
        self._engine.clients += 1
        try:
            if full:
                await connection.refuse(
                    EngineError(
                        f"there are {MOST_CLIENTS} clients already", remedy="Close some of them"
                    )
                )
            else:
                await connection.serve()
        except (ConnectionError, asyncio.CancelledError):
            return  # the client is gone, or we are going: a normal end
        except Exception as error:  # one connection must not take the engine down
            log.error("connection broke", exc_info=error)
        finally:
            self._engine.clients -= 1
            del connections[task]
            writer.close()

    async def _watch(self) -> None:
        while True:
            try:
                self.clients.look_after(self._engine.share)
            except Exception as error:  # else nobody would bound what slow clients cost
                log.error("clients were not looked after", exc_info=error)
            await asyncio.sleep(WATCH_S)


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True
