"""The link to an engine as the application has it: made when it is first needed, ended once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from workbench.link.client import Client


class EngineConnection:
    """A link that `connect` makes; whoever wants another one takes another `EngineConnection`."""

    def __init__(self, connect: Callable[[], Awaitable[Client]]) -> None:
        self._connect = connect
        self._link: asyncio.Task[Client] | None = None

    async def client(self) -> Client:
        """The client, once the engine answers. Raises what `connect` raised."""
        if self._link is None:
            self._link = asyncio.ensure_future(self._connect())
        return await asyncio.shield(self._link)

    @property
    def share(self) -> float | None:
        """What part of a core the engine leaves us; None where it says nothing."""
        link = self._link
        met = link is not None and link.done() and not link.cancelled() and not link.exception()
        return link.result().share if link is not None and met else None

    async def close(self) -> None:
        """Hang up, or stop trying."""
        link = self._link
        if link is None:
            return
        if not link.done():
            link.cancel()
        elif not link.cancelled() and link.exception() is None:
            await link.result().close()
