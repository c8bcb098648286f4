"""Links to the engine in the names of others: for screens that a server starts, or for itself."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

from workbench.domain.errors import EngineError
from workbench.domain.messages import Hello
from workbench.link.fd_passing import open_link
from workbench.link.socket import SocketClient

ATTEMPTS = 3
AGAIN_S = 0.1
"""An engine that is killed may take a link in its last instant: it is asked for anew."""


class Links:
    """Opens them; an engine is started where none runs.

    Parameters
    ----------
    path : the engine's socket.
    engine_up : sees to it that an engine serves it.
    """

    def __init__(self, path: Path, engine_up: Callable[[], Awaitable[None]]) -> None:
        self._path = path
        self._engine_up = engine_up
        self._starting = asyncio.Lock()

    async def open(self, hello: Hello) -> socket.socket:
        """A link on which the hello is said. Raises `EngineError` where there is no engine."""
        async with self._starting:  # of two who come at once, one starts it
            try:
                return await open_link(self._path, hello)
            except OSError:
                await self._engine_up()
            try:
                return await open_link(self._path, hello)
            except OSError as error:
                raise EngineError(f"it cannot be reached: {error.strerror}") from None

    async def client(self, hello: Hello) -> SocketClient:
        """The client of such a link, which the engine has greeted. Raises as `open`."""
        for _ in range(ATTEMPTS):
            try:
                return await SocketClient.adopt(await self.open(hello))
            except OSError as error:
                why = error.strerror
                await asyncio.sleep(AGAIN_S)
        raise EngineError(f"it hangs up: {why}")
